"""Text logs against a loop over decoded lines: every number, with its line and its byte."""

from __future__ import annotations

import codecs
import gzip
import random
import re
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from forensics import pipeline
from forensics.formats.text.log import PIECE_BYTES, read
from forensics.io.limits import DEFAULT, Limits
from forensics.io.reading import opened_bytes
from forensics.store.sink import SourceSink
from forensics.values import replace

sys.path.insert(0, str(Path(__file__).parent))
from text_logs import STRETCHES, TRAINERS, Point, Stretch, log_of, points

pytestmark = pytest.mark.usefixtures("only_owned_columns")
#: Bytes of a block, and of a piece of it.
BLOCKS = st.sampled_from([1_000, 6_000, 8 << 20]).map(lambda size: replace(DEFAULT, block_bytes=size))
PIECES = st.sampled_from([2_000, PIECE_BYTES])


def ours(data: bytes, limits: Limits, piece_bytes: int = PIECE_BYTES) -> tuple[list[Point], SourceSink]:
    opened = opened_bytes("train.log", data, limits)
    sink = SourceSink(opened.source, limits)
    read(opened, sink, limits, piece_bytes)
    rows = sink.frames().get("metrics")
    if rows is None:
        return [], sink
    columns = ("line", "byte", "raw_name", "step", "value")
    return [
        Point(*row[:-1], repr(row[-1])) for row in rows.sort("seq", maintain_order=True).select(columns).iter_rows()
    ], sink


def same(trainer: str, found: list[Point], expected: list[Point]) -> None:
    """Hold ours to the loop's; other numbers that the trainer prints are not looked at."""
    units = TRAINERS[trainer].units
    assert [p for p in found if p.name in units] == expected


@given(st.sampled_from(sorted(TRAINERS)), STRETCHES, st.integers(0, 1 << 16), BLOCKS, PIECES)
def test_every_number_is_kept(
    trainer: str, stretches: list[Stretch], seed: int, limits: Limits, piece_bytes: int
) -> None:
    data = log_of(trainer, stretches, seed)
    found, sink = ours(data, limits, piece_bytes)
    same(trainer, found, list(points(trainer, data)))
    coverage = sink.coverage("text_log")
    assert (coverage.read_bytes, coverage.skipped_bytes) == (len(data), 0)


def packed(data: bytes, how: str) -> bytes:
    """The same text as another tool leaves it; compressed files have three members."""
    if how.startswith("utf-16"):
        mark = codecs.BOM_UTF16_LE if how.endswith("le") else codecs.BOM_UTF16_BE
        return mark + data.decode().encode(how)
    third = len(data) // 3
    parts = [data[:third], data[third : 2 * third], data[2 * third :]]
    return b"".join(gzip.compress(part) if how == "gzip" else zstandard.compress(part) for part in parts)


@given(
    st.sampled_from(["gzip", "zstd", "utf-16-le", "utf-16-be"]),
    st.sampled_from(["generic", "nanogpt"]),
    STRETCHES,
    st.integers(0, 1 << 16),
    BLOCKS,
)
def test_packed_text_gives_the_same_numbers_at_the_same_places(
    how: str, trainer: str, stretches: list[Stretch], seed: int, limits: Limits
) -> None:
    data = log_of(trainer, stretches, seed, odd=False)
    other = packed(data, how)
    found, sink = ours(other, limits)
    same(trainer, found, list(points(trainer, data)))
    coverage = sink.coverage("text_log")
    assert (coverage.read_bytes, coverage.skipped_bytes) == (len(other), 0)


@given(
    st.sampled_from(["generic", "nanogpt"]),
    STRETCHES,
    st.integers(0, 1 << 16),
    st.sampled_from([300, 1_000, 6_000, 8 << 20]),
    st.sampled_from([120, 700]),
)
def test_the_rest_of_a_long_line_is_lost_and_nothing_else(
    trainer: str, stretches: list[Stretch], seed: int, block_bytes: int, line_bytes: int
) -> None:
    data = log_of(trainer, stretches, seed)
    found, sink = ours(data, replace(DEFAULT, block_bytes=block_bytes, line_bytes=line_bytes))
    same(trainer, found, list(points(trainer, data)))
    lost = sum(max(len(part) - line_bytes, 0) for part in re.split(rb"[\n\r]", data))
    coverage = sink.coverage("text_log")
    assert (coverage.read_bytes, coverage.skipped_bytes) == (len(data) - lost, lost)
    assert [i.count for i in sink.issues] == [sum(len(p) > line_bytes for p in re.split(rb"[\n\r]", data))] * bool(lost)


@pytest.mark.usefixtures("true_size")
@pytest.mark.parametrize("stored", [False, True], ids=["in-memory", "stored"])
def test_every_number_at_true_size(tmp_path: Path, stored: bool) -> None:
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "train.log"
    rng = random.Random(9)
    line, pattern, units = TRAINERS["nanogpt"]
    steps: list[int] = []
    with path.open("wb") as out:
        while out.tell() < 300_000_000:
            first = 1 + (steps[-1] if steps else -1)
            piece = [line(step, rng).encode() for step in range(first, first + 20_000)]
            others = [
                b"[rank %d] DEBUG    cache hit for block %012x" % (n % 8, rng.getrandbits(48)) for n in range(80_000)
            ]
            rows = [row for k, one in enumerate(piece) for row in (one, *others[4 * k : 4 * k + 4])]
            out.write(b"\n".join(rows) + b"\n")
            steps += range(first, first + 20_000)
    rows = pipeline.ingest_run(tmp_path / "run", store=tmp_path / "store" if stored else None).collect("metrics")
    expected: list[tuple[int, int, bytes, bytes, bytes]] = []
    byte = 0
    with path.open("rb") as lines:
        for number, text in enumerate(lines, 1):
            if match := pattern.search(text):
                expected.append((number, byte, *match.groups()[1:]))
            byte += len(text)
    columns = [np.array(column) for column in zip(*expected, strict=True)]
    for at, (name, unit) in enumerate(units.items()):
        own = rows.filter(pl.col("raw_name") == name).sort("seq")
        np.testing.assert_array_equal(own["step"].to_numpy(), steps)
        np.testing.assert_array_equal(own["line"].to_numpy(), columns[0])
        np.testing.assert_array_equal(own["byte"].to_numpy(), columns[1])
        np.testing.assert_array_equal(own["value"].to_numpy(), columns[2 + at].astype(np.float64) * unit)
