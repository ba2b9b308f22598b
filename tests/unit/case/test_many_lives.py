"""With more lives than 300 only those of one source are put in order: to look at all pairs would take too long."""

from __future__ import annotations

import polars as pl
import pytest

from forensics.case.processes.lives import boundaries, lives
from forensics.store.run import run_of


@pytest.mark.parametrize(("count", "joined"), [(300, True), (301, False)])
def test_a_later_log_goes_on_from_an_earlier_one_among_up_to_300_lives(count: int, joined: bool) -> None:
    # the first log goes on in the second; each of the others begins at the start
    spans = [("000.log", 1, 40), ("001.log", 41, 60), *((f"{n:03}.log", 1, 3) for n in range(2, count))]
    rows = [(source, step, step, step * 10**9 if source != "001.log" else step * 10**9 + 1)
            for source, first, last in spans for step in range(first, last + 1)]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["source", "seq", "step", "t_ns"], orient="row").with_columns(
        name=pl.lit("loss"), raw_name=pl.lit("loss"), value=2.0 + pl.int_range(pl.len()) % 7 / 100
    )
    run = run_of("made", {"metrics": frame})
    assert len(lives(run)) == count
    found = [(edge.before.source, edge.after.source) for edge in boundaries(run)]
    assert (("000.log", "001.log") in found) is joined
