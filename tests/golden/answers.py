"""What the program answers of a run that was read: the one place here that knows how each command is asked.

Answers are plain values: places in files, numbers to four digits, no path of this machine. `triage` gives the verdict
and every finding, `nan_origin`, `memory`, `hang` and `kernels` what their commands give, `diff` what two runs give.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from forensics import pipeline
from forensics.analyses.coverage import coverage_of
from forensics.analyses.nan.origin import origin
from forensics.compare.baseline import against
from forensics.compare.diff import diff
from forensics.compare.model import Options
from forensics.diagnosis.hang import picture
from forensics.diagnosis.memory import memory_of
from forensics.model import Coverage, Finding, Report
from forensics.report import text as text_page
from forensics.report.pages import diff as diff_page
from forensics.report.pages import hang as hang_page
from forensics.report.pages import memory as memory_page
from forensics.report.pages import nan_origin as nan_page
from forensics.store.run import Run

#: Fields that repeat the input or change with a release of the program.
_LEFT_OUT = frozenset(("schema", "tool", "run", "coverage", "issues", "evidence", "checkpoints", "verdict"))
_DIGITS = 4
_LOGS = "text_log"


def read(place: Path) -> Run:
    """Read a run, and hold its tables in memory under the name of its folder."""
    run = pipeline.ingest_run(place)
    return Run(place.name, {table: frame.collect().lazy() for table, frame in run.frames.items()})


def judged(run: Run) -> Report:
    """The report of a run that was read."""
    return pipeline.report_of(run)


def triage(report: Report) -> dict[str, Any]:
    """The verdict, and each finding with its onset, its numbers and its first place."""
    verdict = report.verdict
    return {
        "outcome": verdict.outcome.value,
        "shape": verdict.shape.value if verdict.shape else None,
        "headline": verdict.headline,
        "onset": [verdict.onset.step, verdict.onset.rank],
        "culprits": list(verdict.culprits),
        "checkpoint": asdict(verdict.checkpoint) if verdict.checkpoint else None,
        "cause": verdict.cause,
        "confidence": verdict.confidence.value,
        "chain": list(verdict.chain),
        "runner_up": verdict.runner_up,
        "actions": [action.text for action in verdict.actions],
        "findings": sorted(_finding(one) for one in report.findings),
    }


def _finding(one: Finding) -> str:
    numbers = " ".join(f"{name}={_plain(value)}" for name, value in one.numbers.items())
    return (
        f"{one.rule} {one.severity.value} {one.confidence.value} @{one.onset.step} {one.evidence[0].place}: {one.title}"
        f" [{one.cause}; {numbers}]"
    )


def answers(run: Run, report: Report | None = None) -> dict[str, Any]:
    """What read the run, and what every command that takes one run says of it; `report` is its own, where made."""
    report = report or judged(run)
    found = {"read": read_as(run), "triage": triage(report)}
    coverage = Coverage(())
    nan = nan_page.LAYOUT.payload(nan_page.Page(origin(run), run.name, coverage=coverage))
    if nan["first_bad_metric"] is not None:
        found["nan_origin"] = _kept(nan)
    memory = memory_of(run)
    if not memory.empty:
        found["memory"] = _kept(memory_page.LAYOUT.payload(memory_page.Page(memory, coverage=coverage)))
    page = hang_page.Page(picture(run), report.verdict, run.name, coverage=coverage)
    if hang_page.is_hang(page):
        found["hang"] = _kept(hang_page.LAYOUT.payload(page))
    return found


def compared(base: Sequence[Run], cand: Run) -> dict[str, Any]:
    """What `forensics diff` says of a candidate beside its baselines, and `triage` with them as `--baseline`."""
    found = diff(list(base), cand, Options())
    beside = triage(pipeline.report_of(against(cand, *base)))
    page = _kept(diff_page.LAYOUT.payload(diff_page.Page(found, coverage=Coverage(()))))
    return page | {"verdict": found.answer.value, "triage": beside}


def text(run: Run, report: Report | None = None) -> str:
    """What `forensics triage` prints of it, without colours, 80 columns wide."""
    return "\n".join(text_page.render(replace(report or judged(run), run=run.name))) + "\n"


def read_as(run: Run) -> list[str]:
    """Readers of the files of a run, logs with each dialect that they speak: `tfevents`, `text_log megatron`."""
    found = set[str]()
    for file in coverage_of(run).files:
        dialects = file.format.split("+") if file.ingester == _LOGS else [""]
        found |= {f"{file.ingester} {dialect}".strip() for dialect in dialects}
    return sorted(found - {""})


def _kept(document: Mapping[str, Any]) -> dict[str, Any]:
    return json.loads(
        json.dumps({name: _plain(value) for name, value in document.items() if name not in _LEFT_OUT}, sort_keys=True)
    )


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
