"""Items of history rows are cut out as they were written, whatever letters they hold."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from forensics.formats.wandb._batch import Keys, values_of
from forensics.formats.wandb._wire import PAD, cells_of

plain = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=200)
odd = st.text(st.characters(max_codepoint=0x3FF, exclude_categories=("Cs",)), min_size=1, max_size=8)
Rows = list[tuple[list[tuple[str, str]], bytes]]
tails = st.sampled_from([b"", b"\x12\x02\x08\x0a", b"\x12\x04\x08\x8a\x8a\x01"])


def rows_of(text: st.SearchStrategy[str]) -> st.SearchStrategy[Rows]:
    """Rows of (key, value), and the bytes of the fields behind them."""
    return st.lists(st.tuples(st.lists(st.tuples(text, text), min_size=1, max_size=4), tails), min_size=1, max_size=4)


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def block(tag: bytes, content: bytes) -> bytes:
    return tag + varint(len(content)) + content


def shown(rows: Rows) -> tuple[list[str], list[str]]:
    bodies = [
        b"".join(block(b"\x0a", block(b"\x0a", k.encode()) + block(b"\x82\x01", v.encode())) for k, v in items) + tail
        for items, tail in rows
    ]
    text = bytearray(b"".join((*bodies, PAD)))
    cells = cells_of(np.frombuffer(text, np.uint8), np.array([len(body) for body in bodies]))
    keys = Keys()
    return [keys.names[code] for code in keys.of(cells, text).tolist()], values_of(cells, text).to_list()


def expected(rows: Rows) -> tuple[list[str], list[str]]:
    items = [item for row, _ in rows for item in row]
    return [key for key, _ in items], [value for _, value in items]


@given(rows_of(odd | plain))
def test_keys_and_values_come_out_as_they_are(rows: Rows) -> None:
    nested = [key for key in expected(rows)[0] if key[0] in "\n\x12"]

    keys, values = shown(rows)

    assert values == expected(rows)[1]
    assert keys == expected(rows)[0] or nested
