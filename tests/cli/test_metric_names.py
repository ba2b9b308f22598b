"""A metric under a name of the program's own is read where the configuration says what it is."""

from __future__ import annotations

import json
from pathlib import Path

from .conftest import Call

CONFIG = '[metrics]\n"my/amount" = "loss"\n'


def a_run(folder: Path, *, last: float = float("nan")) -> Path:
    """A run whose objective becomes NaN, or `last`, at step 50, printed under a name that says nothing."""
    values = [3.0 - step / 100 if step < 50 else last for step in range(1, 61)]
    rows = [json.dumps({"step": step, "my/amount": v, "lr": 1e-4}) for step, v in enumerate(values, start=1)]
    (folder / "metrics.jsonl").write_text("\n".join(rows) + "\n")
    return folder / "metrics.jsonl"


def test_a_name_that_says_nothing_is_read_and_not_recognised(call: Call, tmp_path: Path) -> None:
    assert call("triage", a_run(tmp_path)).out.startswith("SUSPECT  nan")
    done = call("triage", a_run(tmp_path, last=2.5))
    assert done.out.startswith("CANNOT SAY")
    told = " ".join(done.out.split())
    assert "1 metric read and not recognised: my/amount; [metrics] in forensics.toml names them" in told


def test_a_name_that_the_configuration_gives_is_judged_by_each_command(call: Call, tmp_path: Path) -> None:
    log = a_run(tmp_path)
    Path("forensics.toml").write_text(CONFIG)
    verdict = call("triage", log, "-f", "json").document["verdict"]
    assert (verdict["outcome"], verdict["shape"], verdict["onset"]["step"]) == ("failed", "nan", 50)
    assert call("nan-origin", log, "-f", "json").document["first_bad_step"] == 50
    assert call("triage", log, "-f", "json").document["coverage"]["unrecognised"] == []


def test_a_name_that_no_analysis_reads_is_refused_with_the_nearest(call: Call, tmp_path: Path) -> None:
    Path("forensics.toml").write_text('[metrics]\n"my/amount" = "los"\n')
    done = call("triage", a_run(tmp_path))
    assert done.code == 2
    assert "no analysis reads 'los' (did you mean 'loss'?)" in done.err
    assert "help: docs/how-to/add-a-metric-name.md" in done.err


def test_a_threshold_acts_on_the_verdict_that_hang_and_restart_show(call: Call, tmp_path: Path) -> None:
    rows = [json.dumps({"step": s, "loss": float("nan") if s % 8 == 0 else 2.0 + s / 1e4}) for s in range(1, 206)]
    log = tmp_path / "m.jsonl"
    log.write_text("\n".join(rows) + "\n")
    usual = call("restart", log, "-f", "json").document["headline"]
    Path("forensics.toml").write_text("[rules.NAN001]\nfault_share = 0.1\n")
    triage = call("triage", log, "-f", "json").document["verdict"]
    assert triage["outcome"] == "failed"
    assert usual != call("restart", log, "-f", "json").document["headline"] == triage["headline"]
