"""The opcode reader gives what the C unpickler gives for plain data, and ends in a message for anything else."""

from __future__ import annotations

import contextlib
import pickle

from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.errors import InputError
from forensics.io.pickle_ops import read_plain

SCALARS = (
    st.none() | st.booleans() | st.integers(-(1 << 100), 1 << 100) | st.floats(allow_nan=False) | st.text(max_size=40)
)
KEYS = st.text(max_size=12) | st.integers()
DOCUMENTS = st.recursive(
    SCALARS | st.tuples(SCALARS) | st.tuples(SCALARS, SCALARS) | st.lists(SCALARS, max_size=5).map(tuple),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=40,
)


@given(DOCUMENTS, st.integers(2, 5))
@settings(max_examples=150, deadline=None)
def test_plain_documents_are_read_as_the_unpickler_reads_them(document: object, protocol: int) -> None:
    data = pickle.dumps(document, protocol)
    assert repr(read_plain(data)) == repr(pickle.loads(data))


@given(DOCUMENTS, st.integers(2, 5), st.data())
@settings(max_examples=150, deadline=None)
def test_a_changed_document_is_read_or_refused_and_never_more(
    document: object, protocol: int, data: st.DataObject
) -> None:
    changed = bytearray(pickle.dumps(document, protocol))
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputError):
        assert read_plain(bytes(changed)) is not ...


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_random_opcodes_are_read_or_refused(noise: bytes) -> None:
    with contextlib.suppress(InputError):
        assert read_plain(b"\x80\x04" + noise + b".") is not ...
