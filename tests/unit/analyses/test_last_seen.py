"""When each rank was last seen: its last step is that of its records or of its bar, whichever came later."""

from __future__ import annotations

from pathlib import Path

from forensics.analyses.hang.last_seen import last_seen
from forensics.pipeline import ingest_run


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
