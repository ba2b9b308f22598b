"""The opcode reader gives what the C unpickler gives for plain data, and ends in a message for anything else."""

from __future__ import annotations

import contextlib
import pickle

from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.errors import InputError
from forensics.io.pickle.machine import Machine, PickleBounds
from forensics.io.pickle.ops import read_plain, run

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


@given(st.lists(st.integers(0, 200_000), min_size=1, max_size=6), st.sampled_from([4, 5]))
@settings(max_examples=60)
def test_frames_of_a_sound_pickle_are_as_long_as_they_say(sizes: list[int], protocol: int) -> None:
    machine = Machine(pickle.dumps([f"{n}" + "x" * n for n in sizes], protocol), PickleBounds())
    run(machine)
    assert (machine.misframed, machine.damaged_texts) == (0, 0)


@given(st.integers(20, 300), st.integers(1, 30), st.booleans())
def test_bytes_that_are_missing_or_stand_twice_in_a_frame_never_pass(at: int, width: int, twice: bool) -> None:
    data = pickle.dumps({f"key{n}": n for n in range(60)}, 4)
    middle = data[at : at + width] * 2 if twice else b""
    machine = Machine(data[:at] + middle + data[at + width :], PickleBounds())
    with contextlib.suppress(InputError):
        run(machine)
        assert machine.misframed == 1


def test_a_text_that_no_pickler_writes_is_counted_and_a_lone_surrogate_is_none() -> None:
    machine = Machine(pickle.dumps("a\udcff", 4).replace(b"a\xed\xb3\xbf", b"a\xff\xb3\xbf"), PickleBounds())
    run(machine)
    assert machine.damaged_texts == 1
    machine = Machine(pickle.dumps("a\udcff", 4), PickleBounds())
    run(machine)
    assert machine.damaged_texts == 0
