"""Read and judge the runs that a command names, with progress where somebody watches."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path

from forensics import config, pipeline, registry
from forensics.case.runs import parts, split
from forensics.cli._reading import Reading, folders
from forensics.history.past import Past, past_of, seen_before
from forensics.history.shelf import History, history, kept
from forensics.io.places.named import place_of
from forensics.model import Report
from forensics.store.run import Run


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command line asks of its runs."""

    runs: tuple[str, ...]
    fail_on: str | None = None
    ignore: tuple[str, ...] = ()
    store: Path | None = None
    figures: bool = False
    redact: bool = False
    quiet: bool = False
    baselines: tuple[str, ...] = ()
    history: Path | None = None

    @property
    def reading(self) -> Reading:
        """How runs are read, and how what they say is shown."""
        return Reading(self.store, self.redact, self.quiet)


def judged(asked: Asked) -> tuple[config.Config, list[Report]]:
    """Give the settings that hold and the report of each run; a place with several runs gives one of each.

    How several runs were told apart is a note beside the settings.
    """
    options = {"fail-on": asked.fail_on, "ignore": list(asked.ignore) or None}
    settings = config.load(cwd=Path.cwd(), runs=folders(map(place_of, asked.runs)), options=options)
    settings = settings.checked(registry.load("rules").rules)
    reports: list[Report] = []
    told = list(settings.notes)
    past = history(asked.history) if asked.history is not None else History()
    if past.unusable:
        told.append(f"{asked.history}: {past.unusable} of its files or lines were not used: they are damaged")
    added: list[Past] = []
    for named in asked.runs:
        place = asked.reading.run(named)
        runs = split(place)
        if len(runs) > 1:
            told.append(f"{len(runs)} runs in {place.name}: {parts(place)[0].why}")
        for run in runs:
            report = _report(run, asked, settings)
            if asked.history is not None:
                added.append(now := past_of(run, report, time.time_ns()))
                report = replace(report, verdict=replace(report.verdict, seen_before=seen_before(past.past, now)))
            reports.append(report)
    if asked.history is not None:
        kept(asked.history, added)
    return replace(settings, notes=asked.reading.shown(tuple(told))), reports


def _report(run: Run, asked: Asked, settings: config.Config) -> Report:
    runs = [run, *(asked.reading.one(base) for base in asked.baselines)]
    if len(runs) > 1:
        from forensics.compare.baseline import against  # noqa: PLC0415 - its statistics take time to load

        run = against(*runs)
    report = pipeline.report_of(run, settings)
    if asked.figures:
        report = pipeline.with_figures(run, report)
    return asked.reading.shown(report, *runs)
