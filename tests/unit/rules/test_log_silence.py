"""The last record of each log and the usual time between steps, which a stop from outside is laid beside."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from forensics.api import triage
from forensics.case.steps import in_order
from forensics.pipeline import ingest_bytes, report_of
from forensics.rules.hang import no_progress
from forensics.store.run import run_of

S = 1_000_000_000


def test_a_step_is_its_first_record_and_a_line_counts_once_in_whatever_order_they_are_held() -> None:
    rows = [("b.log", seq, step, at_s * S) for seq, step, at_s in ((0, 1, 0), (1, 2, 10), (2, 2, 15), (3, 3, 40))]
    held = [("a.log", 2, 7, 20 * S), *rows, ("a.log", 0, 5, 0), ("a.log", 0, 9, 0), ("a.log", 1, 6, 10 * S)]
    metrics = pl.DataFrame(held, schema=["source", "seq", "step", "t_ns"], orient="row")
    run = run_of("run", {"metrics": metrics.with_columns(line="seq", name=pl.lit("loss"), value=pl.lit(2.0))})
    found = no_progress._records(run, 3).select(
        "source", "step", "seq", "t_ns", usual=pl.col("usual") / S, count="count"
    )
    assert found.rows() == [("a.log", 7, 2, 20 * S, 10.0, 3), ("b.log", 3, 3, 40 * S, 20.0, 3)]
    assert no_progress._records(run, 4).is_empty()


_STEP = "2031-05-06 07:{:02d}:{:02d} step {} loss {:.3f}\n"
_LINK = (
    "n1:55:56 [1] net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.4.0.11<41231> with status={} opcode=0\n"
)
_LIMIT = "slurmstepd: error: *** JOB 7 ON n0 CANCELLED AT 2031-05-06T12:00:21 DUE TO TIME LIMIT ***\n"


@pytest.mark.parametrize(("said", "cause"), [(_LINK.format(12), "fabric_fault"), ("", "silent_stall")])
def test_what_a_library_reports_before_a_silence_is_its_cause(said: str, cause: str) -> None:
    steps = "".join(_STEP.format(n // 6, n * 10 % 60, n, 2 + 3 / n) for n in range(1, 60))
    verdict = report_of(ingest_bytes("slurm-7.out", (steps + said + _LIMIT).encode())).verdict
    assert (verdict.shape, verdict.cause, verdict.onset.step) == ("hang", cause, 59)


@pytest.mark.parametrize(
    ("last", "cause"),
    [
        ("ERROR timed out after 1800 s waiting for the others at the end of step 59", "never_entered"),
        ("ERROR gave up waiting for rank 1", "never_entered"),
        ("WATCHDOG no step finished in the last 600 s, giving up", "never_entered"),
        ("INFO no step was skipped in epoch 3", "silent_stall"),
        ("INFO waiting for the others", "silent_stall"),
    ],
)
def test_a_program_that_gives_up_its_peers_names_the_one_that_does_not(tmp_path: Path, last: str, cause: str) -> None:
    for rank in range(3):
        steps = "".join(_STEP.format(n // 6, n * 10 % 60, n, 2 + 3 / n) for n in range(1, 60))
        end = "" if rank == 1 else f"2031-05-06 08:00:00 {last}\n"
        (tmp_path / f"rank{rank}.log").write_text(steps + end)
    verdict = triage(tmp_path).verdict
    assert (verdict.cause, verdict.culprits) == (cause, (1,) if cause == "never_entered" else ())


def test_of_many_records_of_a_step_only_the_ends_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = pl.DataFrame({"seq": range(2_000), "step": [at // 20 for at in range(2_000)]}).with_columns(
        source=pl.lit("events"), t_ns=pl.col("seq") * S, byte="seq", name=pl.lit("loss"), value=pl.lit(2.0)
    )
    run, asked = run_of("run", {"metrics": metrics}), list[int]()

    def counted(rows: pl.LazyFrame, *keys: str) -> pl.LazyFrame:
        asked.append(rows.collect().height)
        return in_order(rows, *keys)

    monkeypatch.setattr(no_progress, "in_order", counted)
    found = no_progress._records(run, 3).select("step", "seq", usual=pl.col("usual") / S, count="count")
    assert (found.rows(), asked) == ([(99, 1_980, 20.0, 100)], [200])


_HEAD = "2031-05-{} start training of model small\n"
_STOP = "2031-05-{} WARNING received SIGINT, exiting\n"


@pytest.mark.parametrize(
    ("later", "rules"),
    [
        (_HEAD.format("10 09:00:00") + _STOP.format("10 09:00:40"), {"STP001"}),  # a process of four days later
        (_STOP.format("10 09:00:40"), {"STP001", "HNG018"}),
        (_HEAD.format("06 07:10:20") + _STOP.format("10 09:00:40"), {"STP001", "HNG018"}),  # it began at once, and hung
    ],
)
def test_a_silence_ends_where_a_later_process_begins_in_the_same_log(later: str, rules: set[str]) -> None:
    steps = "".join(_STEP.format(n // 6, n * 10 % 60, n, 2 + 3 / n) for n in range(1, 60))
    found = report_of(ingest_bytes("train.log", (_HEAD.format("06 07:00:00") + steps + later).encode())).findings
    assert {one.rule for one in found if one.severity.name == "ERROR"} == rules


@pytest.mark.parametrize(("lines", "hangs"), [(4, False), (110, False), (130, True)])
def test_a_log_that_goes_on_for_days_prints_a_line_an_hour(lines: int, hangs: bool) -> None:
    steps = "".join(_STEP.format(n // 6, n * 10 % 60, n, 2 + 3 / n) for n in range(1, 60))
    later = "".join(f"2031-05-11 09:{n // 60:02d}:{n % 60:02d} INFO {n * 7} samples are known\n" for n in range(lines))
    found = report_of(ingest_bytes("train.log", (steps + later).encode())).findings
    assert ("HNG018" in {one.rule for one in found}) is hangs
