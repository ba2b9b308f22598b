"""Names of folders that no source can break out of, and times that come back."""

from __future__ import annotations

from pathlib import PurePosixPath

import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from forensics.export.points import seconds, series_of
from forensics.store.schema import conform

SOURCES = st.text(min_size=1, max_size=60) | st.lists(
    st.sampled_from(["..", ".", "", "a", "A", "b.log", "~", "C:"]), min_size=1
).map("/".join)


def stems(sources: list[str]) -> list[str]:
    frame = conform(
        "metrics", pl.DataFrame({"source": sources, "attempt": [0] * len(sources), "value": [1.0] * len(sources)})
    )
    return [series.stem for series in series_of(frame)]


@given(st.lists(SOURCES, min_size=1, max_size=8, unique=True))
@example(["../../x", "/etc/passwd", "..", ".", "-rf", "a/b", "a-b", "A-B", "con\x1b[31m", "\u202e", ""])
def test_a_source_becomes_one_safe_component_of_its_own(sources: list[str]) -> None:
    named = stems(sources)
    assert len({stem.casefold() for stem in named}) == len(set(sources))
    for stem in named:
        assert PurePosixPath(stem).parts == (stem,)
        assert stem.isascii()
        assert stem.isprintable()
        assert not stem.startswith(".")
        assert not set(stem) & set('/\\:*?"<>|~ ')
        assert len(stem) <= 100


def test_a_plain_source_keeps_its_name() -> None:
    assert stems(["train.log", "logs/rank0.log"]) == ["train.log", "logs-rank0.log"]


@given(st.floats(1e9, 4e9))
def test_a_time_that_was_a_float_of_seconds_comes_back_exactly(at: float) -> None:
    t_ns = round(at * 1e9)
    assert round(seconds(t_ns) * 1e9) == t_ns


@given(st.integers(10**18, 4 * 10**18))
def test_any_time_comes_back_within_a_quarter_of_a_microsecond(t_ns: int) -> None:
    assert abs(round(seconds(t_ns) * 1e9) - t_ns) <= 512
