"""Every bundled run gets the verdict that its label names, and comes out of its maker byte for byte."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from forensics.analyses.nan.origin import origin
from forensics.compare.baseline import against
from forensics.compare.config.audit import audit
from forensics.pipeline import ingest_run, report_of, triage

FIXTURES = Path(__file__).parents[1] / "fixtures"
LABELS = sorted((FIXTURES / "runs").glob("*.labels.json"))


def maker(script: str = "runs") -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"make_{script}", FIXTURES / "make" / f"{script}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_of_label(labels: Path) -> Path:
    return labels.with_name(labels.name.removesuffix(".labels.json"))


@pytest.mark.parametrize("labels", LABELS, ids=lambda p: p.name.removesuffix(".labels.json"))
def test_a_bundled_run_gets_the_verdict_of_its_label(labels: Path) -> None:
    want = json.loads(labels.read_text(encoding="utf-8"))
    if "baseline" in want:
        base = ingest_run(labels.with_name(want["baseline"]))
        verdict = report_of(against(ingest_run(run_of_label(labels)), base)).verdict
    else:
        verdict = triage(run_of_label(labels)).verdict
    assert verdict.outcome == want["outcome"], verdict.headline
    assert verdict.shape == want["shape"], verdict.headline
    if "onset_step" in want:
        assert verdict.onset.step == want["onset_step"]
    if "culprits" in want:
        assert list(verdict.culprits) == want["culprits"]
    if "cause" in want:
        assert verdict.cause == want["cause"]


@pytest.mark.parametrize("labels", LABELS, ids=lambda p: p.name.removesuffix(".labels.json"))
def test_nan_origin_agrees_with_the_label(labels: Path) -> None:
    want = json.loads(labels.read_text(encoding="utf-8"))
    found = origin(ingest_run(run_of_label(labels)))
    if want["shape"] == "nan":
        assert found.first_bad_step == want["onset_step"]
        assert found.kind == want["cause"]
    if "clean" in want:
        assert found.last_clean_checkpoint is not None
        assert found.last_clean_checkpoint.step == want["clean"]


@pytest.mark.parametrize("labels", [p for p in LABELS if "baseline" in p.read_text(encoding="utf-8")], ids=str)
def test_the_change_that_made_an_evaluation_worse_is_named_first(labels: Path) -> None:
    want = json.loads(labels.read_text(encoding="utf-8"))
    causes = audit(ingest_run(labels.with_name(want["baseline"])), ingest_run(run_of_label(labels))).causes
    assert causes[0].family == want["family"]


@pytest.mark.parametrize("script", ["runs", "bad_eval_runs"])
def test_the_bundled_runs_come_out_of_their_maker_byte_for_byte(script: str) -> None:
    for name, files, _ in maker(script).made():
        for path, text in files.items():
            assert (FIXTURES / "runs" / name / path).read_text(encoding="utf-8") == text
