"""Read and judge the runs that a command names, with progress where somebody watches."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from forensics import config, pipeline, registry
from forensics.case.runs import parts, split
from forensics.cli._progress import watched
from forensics.cli._reading import Reading, folders
from forensics.errors import UsageError
from forensics.fleet.judging import How, Judged, answers, named
from forensics.fleet.members import Fleet, Member, fleet_of
from forensics.history.past import Past, judged_already, known_as, past_of, report_of, seen_before
from forensics.history.shelf import History, history, kept
from forensics.io.discover import discover
from forensics.io.places.named import place_of
from forensics.io.places.place import Place
from forensics.io.safe_text import printable
from forensics.model import Report
from forensics.report.phrases import plural
from forensics.store.run import Run
from forensics.values import replace

_SEE = "forensics history"
#: So many files beside the runs are named.
_NAMED = 3


class Asked(Struct, frozen=True):
    """What a command line asks of its runs."""

    runs: tuple[str, ...]
    fail_on: str | None = None
    ignore: tuple[str, ...] = ()
    reading: Reading = field(default_factory=Reading)
    figures: bool = False
    baselines: tuple[str, ...] = ()
    history: str | None = None


def judged(asked: Asked) -> tuple[config.Config, list[Report]]:
    """Give the settings that hold and the report of each run; a place with several runs gives one of each.

    A note beside the settings says how several runs were told apart.
    """
    options = {"fail-on": asked.fail_on, "ignore": list(asked.ignore) or None}
    settings = config.load(cwd=Path.cwd(), runs=folders(map(place_of, asked.runs)), options=options)
    settings = settings.checked(registry.load("rules").rules)
    past = history(asked.history) if asked.history is not None else History()
    judge = _Judge(asked, settings, tuple(asked.reading.one(base) for base in asked.baselines), past)
    if past.unusable:
        judge.told.append(f"{asked.history}: {past.unusable} of its files or lines were not used: they are damaged")
    reports = [report for run in asked.runs for report in judge.reports(place_of(run))]
    return replace(settings, notes=asked.reading.shown((*settings.notes, *judge.told), *judge.read)), reports


def _beside(runs: Sequence[Run], reports: Sequence[Report]) -> list[str]:
    """How the runs of one place compare."""
    from forensics.compare.siblings import Sibling, notes  # noqa: PLC0415 - its statistics take time to load

    return [printable(note) for note in notes([Sibling(*one) for one in zip(runs, reports, strict=True)])]


class _Judge(Struct):
    """Judges places by some settings, against the runs `bases`, and looks failures up in the `past`.

    `told` is how runs were told apart and what they tell of each other and of the baselines, which are `good`; `read`
    the runs of which that speaks.
    """

    asked: Asked
    settings: config.Config
    bases: tuple[Run, ...]
    past: History
    told: list[str] = field(default_factory=list[str])
    read: list[Run] = field(default_factory=list[Run])
    good: list[Report] = field(default_factory=list[Report])

    def reports(self, place: Place) -> Iterator[Report]:
        many = fleet_of(place)
        if many is not None:
            yield from self._of_fleet(place, many)
            return
        read = self.asked.reading.run(place)
        runs = split(read)
        if len(runs) > 1:
            self.told.append(f"{len(runs)} runs in {place.name}: {parts(read)[0].why}")
        said = [self._report(run) for run in runs]
        yield from said
        if len(runs) > 1:
            self.read += runs
            self.told += _beside(runs, said)
        elif self.bases:
            self.read += [*runs, *self.bases]
            self.told += _beside([*runs, *self.bases], [*said, *self._of_bases()])

    def _of_fleet(self, place: Place, many: Fleet) -> Iterator[Report]:
        """Judge run by run; one that cannot be read, or on which the judging fails, costs itself."""
        members = many.members
        self.told.append(f"{len(members):,} runs in {place.name}: {many.why}")
        if many.beside:
            beside = plural(len(many.beside), "file")
            self.told.append(
                f"{beside} beside the runs of {place.name} are not read: {', '.join(many.beside[:_NAMED])}"
            )
        of_bytes, done_bytes = sum(member.size_bytes for member in members), 0
        known = self._known(members)
        new = [member for member in members if member.place.name not in known]
        answered = answers(new, self._how(), self.asked.reading.spread, self.bases, self._keep)
        with watched(quiet=self.asked.reading.quiet) as tell:
            for number, member in enumerate(members):
                if tell is not None:
                    tell(pipeline.Progress(number, len(members), done_bytes, of_bytes, "runs"))
                done_bytes += member.size_bytes
                past = known.get(member.place.name)
                yield from (report_of(past),) if past is not None else self._said(*next(answered))
        if known:
            self.told.append(
                f"{len(known):,} of them are as this version judged them before: {_SEE} {self.asked.history}"
            )

    def _known(self, members: Sequence[Member]) -> dict[str, Past]:
        """The runs that the history knows as they are, by their names; none against baselines, which it does not."""
        before = judged_already(() if self.bases else self.past.past)
        found: dict[str, Past] = {}
        for member in members if before else ():
            with suppress(UsageError):  # it is gone since the runs were listed, which its judging reports
                past = before.get(known_as(member.place.name, discover(member.place).listed))
                if past is not None:
                    found[member.place.name] = past
        return found

    def _how(self) -> How:
        asked = self.asked
        store = asked.reading.store
        return How(
            self.settings, "" if store is None else str(store.absolute()),
            tuple(named(place_of(base)) for base in asked.baselines),
            figures=asked.figures, redact=asked.reading.redact, keeps=asked.history is not None,
        )  # fmt: skip

    def _said(self, member: Member, judged: Judged) -> Iterator[Report]:
        if judged.refused:
            self.told.append(f"a run could not be read: {judged.refused}")
        if judged.failed:
            self.told.append(printable(f"{member.place.name} could not be judged: {judged.failed}"))
        for answer in judged.answers:
            report = self._seen(answer.whole, answer.past)
            yield self.asked.reading.hidden(report, *answer.names)

    def _report(self, run: Run) -> Report:
        if self.bases:
            from forensics.compare.baseline import against  # noqa: PLC0415 - its statistics take time to load

            run = against(run, *self.bases)
        report = pipeline.report_of(run, self.settings)
        if self.asked.history is not None:
            now = past_of(run, report, time.time_ns())
            self._keep([now])
            report = self._seen(report, now)
        if self.asked.figures:
            report = pipeline.with_figures(run, report)
        return self.asked.reading.shown(report, run, *self.bases)

    def _of_bases(self) -> list[Report]:
        """The verdicts on the baselines themselves, judged once."""
        if not self.good:
            self.good += [pipeline.report_of(base, self.settings) for base in self.bases]
        return self.good

    def _seen(self, report: Report, now: Past | None) -> Report:
        """Give a report with what the past says of its failure."""
        if now is None:
            return report
        seen = seen_before(self.past.alike(now.root), now)
        return replace(report, verdict=replace(report.verdict, seen_before=seen))

    def _keep(self, past: Sequence[Past]) -> None:
        """Add what was judged to the history, so that a command that is stopped goes on from here."""
        if self.asked.history is not None:
            kept(self.asked.history, past)
