"""When each rank was last seen: its last step is that of its records or of its bar, whichever came later."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

from forensics.analyses.hang.differs import slip_by_steps
from forensics.analyses.hang.last_seen import last_seen
from forensics.pipeline import ingest_run
from forensics.store.run import Run, run_of


def bar(done: int) -> str:
    return f"{done * 2}%|###| {done}/50 [00:{done % 60:02d}<01:00,  2.00it/s]"


def test_a_bar_that_went_on_after_the_last_record_is_the_last_sign(tmp_path: Path) -> None:
    logged = [line for at in range(1, 41) for line in (*([f"step {at} loss 2.1"] if at % 10 == 0 else []), bar(at))]
    for rank in (0, 1):
        until = 40 + rank
        lines = [*logged, *(bar(at) for at in range(41, until + 4))]
        (tmp_path / f"rank_{rank}.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert {rank: seen.step for rank, seen in last_seen(ingest_run(tmp_path)).items()} == {0: 43, 1: 44}


def test_without_a_bar_the_last_record_is_the_last_sign(tmp_path: Path) -> None:
    for rank in (0, 1):
        lines = [f"step {at} loss 2.1" for at in range(1, 31 + rank)]
        (tmp_path / f"rank_{rank}.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert {rank: seen.step for rank, seen in last_seen(ingest_run(tmp_path)).items()} == {0: 30, 1: 31}


def at_steps(steps: Mapping[int, int]) -> Run:
    """Ranks that each logged up to a step."""
    rows = [
        {"source": f"rank{rank}.log", "rank": rank, "seq": step, "step": step, "name": "loss", "raw_name": "loss"}
        for rank, last in steps.items()
        for step in range(1, last + 1)
    ]
    types = {"rank": pl.Int32, "seq": pl.Int64, "step": pl.Int64}
    frame = pl.DataFrame(rows).cast(types).with_columns(value=pl.lit(2.5))  # pyright: ignore[reportArgumentType]
    return run_of("run", {"metrics": frame})


@pytest.mark.parametrize(
    ("last", "cause"),
    [(6, "skipped_collective"), (5, "mismatch"), (4, "extra_collective")],
    ids=["a step ahead", "at the same step", "a step behind"],
)
def test_a_rank_ahead_of_the_others_skipped_a_collective_and_one_behind_issued_one_more(last: int, cause: str) -> None:
    assert slip_by_steps(at_steps({0: 5, 1: 5, 2: last}), (2,), "mismatch") == cause


def test_where_half_of_the_ranks_are_odd_their_steps_tell_nothing() -> None:
    assert slip_by_steps(at_steps({0: 5, 1: 5, 2: 6, 3: 6}), (2, 3), "mismatch") == "skipped_collective"
    assert slip_by_steps(at_steps({0: 5, 1: 6, 2: 6}), (1, 2), "mismatch") == "mismatch"
