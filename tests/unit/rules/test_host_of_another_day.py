"""What a host's log tells of another day is no failure of the run, and no clue about its hang."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from forensics import triage
from forensics.model import Report

START = datetime(2026, 3, 11, 9, tzinfo=UTC)
XID = "NVRM: Xid (PCI:0000:3b:00): 31, pid=411, name=python, MMU Fault: ENGINE GRAPHICS"
NFS = "nfs: server filer1 not responding, still trying"
LATE = "RuntimeError: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)"


def asked(folder: Path, *, hours: float, told: str, last: str) -> Report:
    times = (START + timedelta(seconds=9 * i) for i in range(80))
    steps = [f"{at:%Y-%m-%d %H:%M:%S} step {i}/90 loss {3 - i / 99:.3f}" for i, at in enumerate(times)]
    (folder / "train.log").write_text("\n".join([*steps, last]) + "\n")
    at = START + timedelta(hours=hours)
    (folder / "dmesg.txt").write_text(f"[{at:%a %b %d %H:%M:%S %Y}] {told}\n")
    return triage(folder)


@pytest.mark.parametrize(
    ("hours", "outcome"), [(-15, "cannot_say"), (-13, "failed"), (0.1, "failed"), (14, "failed"), (16, "cannot_say")]
)
def test_a_fault_that_no_zone_brings_into_the_run_is_not_its_failure(
    hours: float, outcome: str, tmp_path: Path
) -> None:
    assert asked(tmp_path, hours=hours, told=XID, last="saving").verdict.outcome == outcome


def test_a_year_that_is_not_written_proves_nothing(tmp_path: Path) -> None:
    assert asked(tmp_path, hours=-200 * 24, told=XID, last="saving").verdict.outcome == "failed"


@pytest.mark.parametrize(("hours", "clues"), [(-30, 0), (0.2, 1)])
def test_a_file_server_that_was_gone_on_another_day_explains_no_hang(hours: float, clues: int, tmp_path: Path) -> None:
    found = asked(tmp_path, hours=hours, told=NFS, last=LATE).findings
    assert sum(finding.rule.startswith("HNG017") for finding in found) == clues
