"""What makes text logs fast never changes what is read: layouts that are read with their prefix."""

from __future__ import annotations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from forensics.dialects import _lines, prefixes
from forensics.dialects.engine import Matcher, Tables
from forensics.dialects.spec import TAILS, Dialect, Line

TOYS = [
    Dialect("toy", "Toy", (Line("metrics", "it ", r"^it (?P<step>\d+): (?P<tail>.+)$", tail="eq"),)),
    Dialect("b", "B", (Line("progress", "epoch ", r"epoch (?P<step>\d+)"), Line("metrics", "v=", r"v=(?P<loss>\S+)"))),
]  # fmt: skip

FORMS = {
    "eq": "{k}={v}",
    "colon": "{k}: {v}",
    "pydict": "'{k}': {v}",
    "json": '"{k}": {v}',
    "tight": "{k}:{v}",
    "box": "| {k} | {v} |",
}


def read_in_two(dialects: list[Dialect], blocks: list[str], learn_from: int) -> pl.DataFrame:
    matcher = Matcher(dialects, learn_from=learn_from)
    ready: list[Tables] = []
    begin = 0
    for block in blocks:
        cut = _lines.Cut(block.encode(), first_seq=begin, first_line=begin + 1)
        rest, _ = matcher.take(cut.select(matcher.pattern))
        ready += matcher.feed(prefixes.strip(rest))
        begin += cut.height
    ready += matcher.close()
    return pl.concat(t["metrics"] for t in ready).sort("seq", maintain_order=True) if ready else pl.DataFrame()


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(TAILS)), st.data())
def test_a_layout_read_with_its_prefix_changes_nothing(kind: str, data: st.DataObject) -> None:
    keys = data.draw(st.lists(st.sampled_from(["loss", "lr", "gnorm", "tok/s"]), min_size=1, unique=True))
    prefix = st.sampled_from(
        ["", "[rank 3] ", "[rank12]: ", " 4: ", "[1,2]<stdout>: ", "[default7]:", "7: [rank1]: ", "[12345] ",
         "2031-05-06 07:08:09,123 INFO ", "[rank0]: 2031-05-06 07:08:10,5 INFO ", "INFO ", "99: "]
    )  # fmt: skip
    number = st.sampled_from(["1.5", "nan", "-inf", "2e-5", "1,200", "0", "word", "7"])

    def line(step: int) -> str:
        pairs = ", ".join(FORMS[kind].format(k=k, v=data.draw(number)) for k in keys)
        return f"{data.draw(prefix)}it {step}: {pairs}\n"

    steps = data.draw(st.lists(st.integers(0, 10**6), min_size=2, max_size=16))
    blocks = ["".join(line(s) for s in steps), "".join(line(s) for s in reversed(steps))]
    dialects = [Dialect("t", "T", (Line("metrics", "it ", r"it (?P<step>\d+): (?P<tail>.+)$", tail=kind),))]
    quick, general = read_in_two(dialects, blocks, 1), read_in_two(dialects, blocks, 10**9)
    assert_frame_equal(quick, general)


def test_a_line_in_which_a_detector_speaks_too_is_never_read_by_layout_alone() -> None:
    metrics = Line("metrics", "it ", r"^it (?P<step>\d+): loss=(?P<loss>\S+)")
    dialect = Dialect("t", "T", (metrics, Line("nan", "skip=1", r"it (?P<step>\d+).*skip=1")))
    matcher = Matcher([dialect], learn_from=1)
    ready: list[Tables] = []
    for block in (b"it 1: loss=2.5 skip=0\n", b"it 2: loss=2.5 skip=1\n"):
        rest, _ = matcher.take(_lines.Cut(block).select(matcher.pattern))
        ready += matcher.feed(prefixes.strip(rest))
    ready += matcher.close()
    assert sum(t["events"].height for t in ready) == 1
