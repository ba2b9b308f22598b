"""What a scheduler reports of a job at its end: when it ended, and with which code."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forensics.model import Outcome, Report, Shape
from tests.unit.truth._runs import judged

BEGIN = datetime(2026, 3, 4, 9, 0, tzinfo=UTC)
STEPS = [
    f"{BEGIN + timedelta(seconds=20 * n):%Y-%m-%d %H:%M:%S} - step {n} | loss {3 - n / 100:.3f} | lr 0.001"
    for n in range(1, 121)
]


def lsf(ended: datetime, why: str) -> list[str]:
    return [
        "Started at Wed Mar  4 08:59:40 2026",
        f"Terminated at {ended:%a %b} {ended.day:2} {ended:%H:%M:%S %Y}",
        *(["", why] if why else []),
        "Exited with exit code 130.",
        "Resource usage summary:",
        "    CPU time :                                   1231.00 sec.",
        "    Run time :                                   30512 sec.",
    ]


def answered(folder: Path, lines: list[str], **files: str) -> Report:
    return judged(folder, {"train.log": [*STEPS, *lines], **{name: [text] for name, text in files.items()}})


@pytest.mark.parametrize(("hours", "shape"), [(8, Shape.HANG), (0, Shape.STOPPED)])
def test_the_time_of_a_report_tells_a_silence_before_the_kill(tmp_path: Path, hours: int, shape: Shape) -> None:
    ended = BEGIN + timedelta(minutes=41, hours=hours)
    report = answered(tmp_path, lsf(ended, "TERM_OWNER: job killed by owner."))
    assert (report.verdict.outcome, report.verdict.shape) == (Outcome.FAILED, shape)


def test_the_time_that_a_report_says_a_job_took_is_no_end_of_training(tmp_path: Path) -> None:
    report = answered(
        tmp_path, ["Resource usage summary:", "    Run time :                                   30512 sec."]
    )
    assert report.verdict.outcome is Outcome.CANNOT_SAY


@pytest.mark.parametrize(("code", "outcome"), [("0", Outcome.HEALTHY), ("1", Outcome.FAILED), ("137", Outcome.FAILED)])
def test_the_record_of_a_grid_engine_says_how_a_job_ended(tmp_path: Path, code: str, outcome: Outcome) -> None:
    record = f"qname        gpu.q\nfailed       0\nexit_status  {code}                   \nru_wallclock 8121s"
    files = {"train.log": STEPS, "qacct.txt": record.splitlines()}
    assert judged(tmp_path, files).verdict.outcome is outcome


@pytest.mark.parametrize(("code", "outcome"), [("0", Outcome.HEALTHY), ("1", Outcome.FAILED)])
def test_the_record_of_a_job_of_pbs_says_how_it_ended(tmp_path: Path, code: str, outcome: Outcome) -> None:
    record = ["Job Id: 4412.pbs", "    job_state = F", "    exec_host = gpu3/0", f"    Exit_status = {code}"]
    assert judged(tmp_path, {"train.log": STEPS, "qstat.txt": record}).verdict.outcome is outcome
