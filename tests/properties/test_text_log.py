"""Text logs of any bytes, cut anywhere: nothing raises, nothing moves, every byte is accounted for."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from forensics.dialects import _lines, _numbers, prefixes
from forensics.dialects.engine import Matcher
from forensics.dialects.reader import Bounds, Reader
from forensics.dialects.spec import TAILS, Dialect, Line
from forensics.errors import NotMine
from forensics.formats.text import log as text_log
from forensics.io.reading import opened_bytes
from forensics.store.sink import SourceSink

KINDS = tuple(TAILS)
FORMS = {
    "eq": "{k}={v}",
    "colon": "{k}: {v}",
    "pydict": "'{k}': {v}",
    "json": '"{k}": {v}',
    "tight": "{k}:{v}",
    "box": "| {k} | {v} |",
}
TOYS = [
    Dialect("toy", "Toy", (Line("metrics", "it ", r"^it (?P<step>\d+): (?P<tail>.+)$", tail="eq"),)),
    Dialect("bar", "Bar", (Line("progress", "|", r"(?P<step>\d+)\|"), Line("metrics", "v=", r"v=(?P<loss>\S+)"))),
]
WORDS = st.sampled_from(
    ["it 1: loss=2.5", "it 2: loss=nan | lr=1e-4", "it 10: loss=1,000 | x=abc", "[rank3]: it 4: loss=0.5", "7|",
     "v=1.5", "Traceback (most recent call last):", '  File "a.py", line 3, in f', "ValueError: x", "", " ",
     "\x1b[31mred\x1b[0m", "OSError: [Errno 28] No space left on device", "2: [rank2]: NCCL communicator was aborted",
     "Training complete"]
)  # fmt: skip
BREAKS = st.sampled_from([b"\n", b"\n", b"\n", b"\r", b"\r\n", b"\x08\x08"])
NOISE = st.binary(max_size=6)
LOGS = st.lists(st.tuples(WORDS, NOISE | st.just(b""), BREAKS), max_size=40).map(
    lambda parts: b"".join(word.encode() + noise + end for word, noise, end in parts)
)


def tables_of(data: bytes, cuts: list[int]) -> dict[str, pl.DataFrame]:
    """Everything that is read of `data` when its lines are fed in blocks that end near `cuts`."""
    reader, begin, out = Reader(TOYS, Bounds()), 0, []
    for cut in [*sorted(cuts), len(data)]:
        end = len(data) if cut >= len(data) else data.rfind(b"\n", begin, cut) + 1
        if end > begin:
            out += reader.feed(data[begin:end], offset=begin, first_line=1 + data.count(b"\n", 0, begin))
            begin = end
    out += reader.close()[0]
    whole = {name: [t[name] for t in out if name in t] for name in ("metrics", "events", "checkpoints")}
    order = {"metrics": ["seq", "raw_name", "value"], "events": ["seq", "code", "text"], "checkpoints": ["seq"]}
    return {name: pl.concat(f, how="diagonal").sort(order[name]) for name, f in whole.items() if f}


@settings(max_examples=60, deadline=None)
@given(LOGS, st.lists(st.integers(0, 800), max_size=5))
def test_where_a_log_is_cut_into_blocks_changes_nothing(data: bytes, cuts: list[int]) -> None:
    whole, parts = tables_of(data, []), tables_of(data, cuts)
    for name in whole:
        assert_frame_equal(whole[name], parts[name], check_column_order=False)


@settings(max_examples=60, deadline=None)
@given(LOGS)
def test_a_segment_stands_where_its_place_says(data: bytes) -> None:
    for row in _lines.Cut(data).select(None).iter_rows(named=True):
        assert row["line"] == 1 + data.count(b"\n", 0, row["byte"])
        first = row["text"][:1].encode()
        assert not first.isascii() or first in {b"?", b""} or b"\x1b" in data or data[row["byte"] :].startswith(first)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30), st.sampled_from(KINDS), st.data())
def test_a_layout_never_changes_what_is_read(steps: list[int], kind: str, data: st.DataObject) -> None:
    form = FORMS[kind]
    keys = data.draw(st.lists(st.sampled_from(["loss", "lr", "gnorm", "tok/s", "mem_gib"]), min_size=1, unique=True))
    glue = data.draw(st.sampled_from([" | ", ", ", "  ", " - "]))
    unit = data.draw(st.sampled_from(["", "ms", "%", "/80GB", " s"]))
    number = st.sampled_from(["1.5", "nan", "-inf", "2e-5", "1,200", "3k", "0", "word", ""])
    lines = [f"it {step}: " + glue.join(form.format(k=k, v=data.draw(number)) + unit for k in keys) for step in steps]
    dialect = Dialect("t", "T", (Line("metrics", "it ", r"^it (?P<step>\d+): (?P<tail>.+)$", tail=kind),))
    found = prefixes.strip(_lines.Cut("\n".join(lines).encode()).select("it "))
    frames: list[pl.DataFrame] = []
    for learn_from in (1, 10**9):
        matcher = Matcher([dialect], learn_from=learn_from)
        ready = [t["metrics"] for t in matcher.feed(found) + matcher.close()]
        frames.append(pl.concat(ready).sort("seq", maintain_order=True) if ready else pl.DataFrame())
    if frames[1].height or frames[0].height:
        assert_frame_equal(frames[0], frames[1])


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=3000))
def test_any_bytes_are_read_or_left_to_others_and_accounted_for(data: bytes) -> None:
    opened = opened_bytes("x.log", data)
    sink = SourceSink(opened.source)
    try:
        text_log.read(opened, sink)
    except NotMine:
        return
    coverage = sink.coverage("text_log")
    assert coverage.read_bytes + coverage.skipped_bytes == len(data)
    assert coverage.skipped_bytes == 0 or coverage.reason


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=400))
def test_repaired_bytes_are_unicode_of_the_same_length(data: bytes) -> None:
    fixed = _lines.repaired(data)
    assert len(fixed) == len(data)
    fixed.decode()
    assert _lines.repaired(fixed) == fixed


@settings(max_examples=100, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_a_number_that_python_prints_is_read_back(value: float) -> None:
    read = _numbers.floats(pl.Series([repr(value), f"{value:,.3f}"])).to_list()
    assert read[0] == value
    assert read[1] == pytest.approx(value, abs=6e-4, rel=1e-6)
