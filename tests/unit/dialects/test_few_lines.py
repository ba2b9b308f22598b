"""What is looked for in few lines one by one is what a query over many lines finds."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from forensics.dialects import _lines, prefixes, sniff
from forensics.dialects.learned.families import finish
from forensics.dialects.spec import Dialect, Line


def dialect(name: str, pattern: str, *, mark: str = "") -> Dialect:
    line = Line("metrics", "loss", pattern)
    return Dialect(name=name, title=name, lines=(line,), sniff=(mark,) if mark else ())


FITS = dialect("fits", r"loss (?P<loss>\d+)")
NEAR_MISS = dialect("near_miss", r"loss=(?P<loss>\d+)")
ENGINE_ONLY = dialect("engine_only", r"^\p{L}+ (?P<loss>\d+)")
REFUSED = dialect("refused", r"loss (?=\d)")
MARKED = dialect("marked", r"loss (?P<loss>\d+)", mark=r"^epoch")


@pytest.mark.parametrize("lines", [3, 300])
def test_the_dialects_of_a_sample_are_the_same_however_many_lines_it_has(lines: int) -> None:
    sample = pl.Series(["loss 3"] * lines)
    found = sniff.active((NEAR_MISS, FITS, REFUSED, ENGINE_ONLY, MARKED), sample)
    assert [one.name for one in found] == ["fits", "engine_only"]


@pytest.mark.parametrize(
    ("pattern", "needle"),
    [
        (r"^step\s+\d+/\d+ \| (?:train )?loss \S+\s*\| norm ", "| norm "),
        (r"lost?=", "los"),
        (r"a{10,} Step (?P<step>\d+)/", " Step "),
        (r"[a]bc]def", "bc]def"),
        (r"[]x]y", "y"),
        (r"one|three", ""),
        (r"(?:one|three) more", " more"),
        (r"(?i)loss", ""),
        (r"\x41bcd", ""),
        (r"\d+", ""),
    ],
)
def test_a_needle_is_what_all_contain_that_a_pattern_finds(pattern: str, needle: str) -> None:
    assert sniff.needle_of(pattern) == needle


def test_a_dialect_is_asked_where_all_literals_of_a_pattern_stand_in_a_line_whatever_its_digits() -> None:
    apart = dialect("apart", r"loss 2: (?P<loss>\d+) \| lr")
    assert sniff.literals_of(apart.lines[0].pattern) == ("loss 2: ", " | lr")
    assert [d.name for d in sniff.active((apart,), pl.Series(["loss 1: 3 | lr", "loss 2: 3 | lr"]))] == ["apart"]
    assert not sniff.active((apart,), pl.Series(["loss 1: 3 | lr", "loss 2: 3"]))


@pytest.mark.parametrize("height", [3, 10_000])
def test_lines_with_a_literal_are_those_that_the_pattern_of_literals_finds(height: int) -> None:
    data = b"loss 1\nCUDA error: bad (x)\nnan | nan\n" * height
    literals = ("CUDA error: bad (", "n | n")
    cut = _lines.Cut(data)
    found = cut.select(_lines.alternation(literals), literals=literals)
    assert found["line"].to_list() == [line for line in range(1, 3 * height + 1) if line % 3 != 1]
    assert found.equals(cut.select(_lines.alternation(literals)))


SHAPES = 32


@pytest.mark.parametrize("words", [["none"], [f"{chr(97 + n)}{chr(98 + n % 20)}" for n in range(SHAPES + 3)]])
@pytest.mark.parametrize("more", ["", "x" * 1_001])
def test_literals_with_digits_are_found_as_written_in_few_shapes_of_lines_and_in_many(
    words: list[str], more: str
) -> None:
    lines = [*(f"{word} 1{more}" for word in words), "exit code 137", "exit code 138", "exit code 13", "Code 137 ü"]
    literals = ("code 137", "EI0002", "ü")
    cut = _lines.Cut("\n".join(lines).encode())
    found = cut.select(_lines.alternation(literals), literals=literals)
    assert found["text"].to_list() == ["exit code 137", "Code 137 ü"]
    assert found.equals(cut.select(_lines.alternation(literals)))


def test_a_block_without_a_literal_gives_no_line_and_neither_do_lines_that_are_left_out() -> None:
    cut = _lines.Cut(b"loss 1\nCUDA error 2\n")
    assert not cut.select("EI0002", literals=("EI0002",)).height
    assert not cut.select("CUDA", but=np.array([1]), literals=("CUDA",)).height
    assert not cut.select("CUDA", but=np.array([0, 1]), literals=("CUDA",)).height


@pytest.mark.parametrize("lines", [2, 1_001])
def test_a_prefix_is_taken_off_the_lines_that_have_one(lines: int) -> None:
    frame = prefixes.strip(pl.DataFrame({"text": ["[rank3]: loss 1", *["loss 2"] * (lines - 1)]}))
    assert frame.columns == ["text", "raw", "rank"]
    assert frame.row(0) == ("loss 1", "[rank3]: loss 1", 3)
    assert frame.row(1) == ("loss 2", "loss 2", None)


@pytest.mark.parametrize("times", [1, 500])
def test_lines_without_a_prefix_stay_as_they_are_and_name_no_rank(times: int) -> None:
    lines = ["loss 1", "worker-ü: [rank2]: loss 2"] * times  # the name of a host is of ASCII
    frame = prefixes.strip(pl.DataFrame({"text": lines}))
    assert frame.rows() == [(line, line, None) for line in lines]
    assert frame.schema["rank"] == pl.Int64


@pytest.mark.parametrize("times", [1, 500])
def test_the_host_before_a_rank_is_part_of_the_prefix_in_few_and_in_many_lines(times: int) -> None:
    frame = prefixes.strip(pl.DataFrame({"text": ["worker_2.a-b: [rank20]: loss 1", "3: loss 2", "loss 3"] * times}))
    assert frame["text"].to_list() == ["loss 1", "loss 2", "loss 3"] * times
    assert frame["rank"].to_list() == [20, 3, None] * times


def test_steps_that_are_all_printed_are_not_filled_and_one_that_is_missing_is() -> None:
    nothing = pl.Series([None, None], dtype=pl.Int64)
    told = {"meaning": ["metrics"] * 2, "iter": nothing, "iters": nothing, "epoch": [0.0, 1.0]}
    frame = pl.DataFrame({"step": [4, 7], "seq": [0, 1], **told})
    assert finish(frame) is frame
    gap = frame.with_columns(step=pl.Series([4, None], dtype=pl.Int64))
    assert finish(gap)["step"].to_list() == [4, 4]


@pytest.mark.parametrize(
    ("epochs", "steps"),
    [
        ([1.0, 2.0, 3.0], [1, 2, 3]),
        ([0.98, 1.0, 1.02], [None, None, None]),
        ([math.nan, 1.0, 2.0], [None, 1, 2]),
    ],
)
def test_epochs_are_the_steps_of_records_that_name_whole_ones(epochs: list[float], steps: list[int | None]) -> None:
    nothing = pl.Series([None] * 3, dtype=pl.Int64)
    told = {"meaning": ["metrics"] * 3, "iter": nothing, "iters": nothing, "epoch": epochs}
    assert finish(pl.DataFrame({"step": nothing, "seq": [0, 1, 2], **told}))["step"].to_list() == steps


@pytest.mark.parametrize(
    ("before", "steps"),
    [
        ((3, 3.0), [4, 5]),  # steps of the rows before are epochs
        ((3, None), [4, 5]),
        ((900, 3.0), [900, 900]),  # they are counted in lines of their own
    ],
)
def test_epochs_stay_steps_in_every_part_of_a_log(before: tuple[int, float | None], steps: list[int]) -> None:
    nothing = pl.Series([None] * 3, dtype=pl.Int64)
    told = {"meaning": ["metrics"] * 3, "kind": [0] * 3, "iter": nothing, "iters": nothing}
    rows = {"step": [before[0], None, None], "epoch": [before[1], 4.0, 5.0], "seq": [0, 1, 2], "at": [None, 0, 1]}
    assert finish(pl.DataFrame(rows | told))["step"].to_list()[1:] == steps


@pytest.mark.parametrize("times", [10, 600])
def test_lines_that_have_a_needle_are_the_same_be_it_a_usual_or_a_rare_one(times: int) -> None:
    texts = ["step 1 loss 2.0", "step 2 loss 1.9", "saved step", "wait"] * times + ["resumed", "step 3 resumed"]
    needles = ("step", "", "resumed", "saved", "ended", "loss")
    for parts in (needles, needles[:2], needles[2:]):
        found = [part["text"].to_list() for part in _lines.marked(pl.DataFrame({"text": texts}), parts)]
        assert found == [[text for text in texts if needle in text] for needle in parts]
