"""Read and judge the runs that a command names, with progress where somebody watches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from forensics import config, pipeline, registry
from forensics.cli._progress import watched
from forensics.compare.baseline import against
from forensics.io.redact import Redactor
from forensics.model import Report
from forensics.report._redacted import redacted


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command line asks of its runs."""

    runs: tuple[Path, ...]
    fail_on: str | None = None
    ignore: tuple[str, ...] = ()
    store: Path | None = None
    figures: bool = False
    redact: bool = False
    quiet: bool = False
    baseline: Path | None = None


def judged(asked: Asked) -> tuple[config.Config, list[Report]]:
    """Give the settings that hold and the report of each run."""
    options = {"fail-on": asked.fail_on, "ignore": list(asked.ignore) or None}
    settings = config.load(cwd=Path.cwd(), runs=list(asked.runs), options=options)
    settings = settings.checked(registry.load("rules").rules)
    if asked.redact:
        settings = replace(settings, notes=tuple(Redactor().text(note) for note in settings.notes))
    return settings, [_report(run, asked, settings) for run in asked.runs]


def _report(path: Path, asked: Asked, settings: config.Config) -> Report:
    with watched(quiet=asked.quiet) as seen:
        run = pipeline.ingest_run(path, store=asked.store, progress=seen)
    if asked.baseline is not None:
        run = against(run, pipeline.ingest_run(asked.baseline, store=asked.store))
    report = pipeline.report_of(run, settings)
    if asked.figures:
        report = pipeline.with_figures(run, report)
    return redacted(report, run) if asked.redact else report
