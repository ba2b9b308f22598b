"""The one place where the order is written: discover, ingest, rules, diagnosis."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl
from msgspec import Struct, field

from forensics import registry
from forensics.analyses.checkpoints import last_clean
from forensics.analyses.coverage import coverage_of
from forensics.case.processes.attempts import Attempts, attempts, of_judged
from forensics.config import Config
from forensics.diagnosis.actions import advice, advised
from forensics.diagnosis.playbook import missing, playbook
from forensics.diagnosis.restart import restart_of
from forensics.diagnosis.verdict import decide
from forensics.errors import PlaceError
from forensics.io.discover import discover
from forensics.io.limits import DEFAULT, Limits
from forensics.io.places.named import Where, place_of
from forensics.io.places.place import Place
from forensics.io.reading import Opened, open_source, opened_bytes, opened_stream
from forensics.model import FileCoverage, Finding, Issue, Report, Severity, Shape, Source
from forensics.scale.choice import ALONE, Spread
from forensics.scale.shard import Shard
from forensics.store import disk
from forensics.store.fill import fill, held_bytes
from forensics.store.gather import Given, Rows, issues_frame, issues_of, run_from, sources_frame
from forensics.store.run import Run
from forensics.store.slices.cutting import may_be_cut
from forensics.values import replace

#: A run of more bytes than this is spilled to the store on disk instead of staying in memory.
IN_MEMORY_BYTES = 256 << 20
#: Of a run of more records its tables are asked in pieces, as polars does where nobody says anything else: that takes
#: less memory, and twice the time where a table has few rows.
_FEW_RECORDS = 100_000


class Defaults(Struct, frozen=True):
    """The configuration of nobody: no rule ignored, every threshold as shipped, or as a run is judged by already."""

    ignore: tuple[str, ...] = ()
    thresholds: Mapping[type, Any] = field(default_factory=dict[type, Any])

    def for_rule(self, rule: registry.Rule) -> Any:  # noqa: ANN401 - the thresholds type is the rule's own
        """Give the rule's thresholds as its author set them, unless the run has others."""
        if rule.config is None:
            return None
        return self.thresholds[rule.config] if rule.config in self.thresholds else rule.config()


#: Both say which rules are ignored, and give the thresholds of a rule: None where it has none.
RuleConfig = Config | Defaults


class _Gathered(Struct):
    tables: dict[str, Rows] = field(default_factory=dict[str, Rows])
    files: list[FileCoverage] = field(default_factory=list[FileCoverage])
    issues: list[Issue] = field(default_factory=list[Issue])

    def add(self, tables: Iterable[tuple[str, Given]], files: Iterable[FileCoverage], issues: Iterable[Issue]) -> None:
        for table, frame in tables:
            if table not in self.tables:
                self.tables[table] = Rows(table)
            self.tables[table].add(frame)
        self.files.extend(files)
        self.issues.extend(issues)

    def take(self, stored: disk.Stored, *, held: bool = False) -> None:
        tables = ((table, frame.collect()) for table, frame in stored.tables) if held else stored.tables
        self.add(tables, stored.files, stored.issues)

    def run(self, name: str, sources: Iterable[Source]) -> Run:
        by_path = {s.path: s for s in sources}
        files = sorted(self.files, key=lambda f: f.source)
        for table, frame in (("sources", sources_frame(files, by_path)), ("issues", issues_frame(self.issues))):
            self.tables[table] = Rows(table)
            self.tables[table].add(frame)
        return run_from(name, self.tables)


class _Told(Struct):
    tell: Callable[[Progress], None] | None
    of_files: int
    of_bytes: int
    files: int = 0
    size_bytes: int = 0

    def start(self) -> None:
        if self.tell is not None:
            self.tell(Progress(self.files, self.of_files, self.size_bytes, self.of_bytes))

    def done(self, source: Source) -> None:
        self.files += 1
        self.size_bytes += source.size_bytes
        self.start()


class Progress(Struct, frozen=True):
    """How far the reading is: files and bytes that are done, of all; of many runs, `unit` is what is counted."""

    files: int
    of_files: int
    size_bytes: int
    of_bytes: int
    unit: str = "files"


def ingest_run(
    where: Where,
    *,
    store: Path | None = None,
    limits: Limits = DEFAULT,
    progress: Callable[[Progress], None] | None = None,
    spread: Spread = ALONE,
) -> Run:
    """Read a run directory, what a bucket holds, or one file, into tables.

    `progress` is called before the first file and after each. With `store`, or for a run above `IN_MEMORY_BYTES`, the
    tables are on disk and only files whose content changed are read again; otherwise they stay in memory. Files count
    as their readers say that they grow. `spread` says where files are read, which changes nothing of the tables. Raises
    `UsageError` when the place does not exist; `PlaceError` when the machine refuses the store, or the run as a whole.
    """
    found = discover(place_of(where), limits)
    gathered = _Gathered(files=list(found.skipped), issues=list(found.issues))
    job = _job(found.place, found.sources, limits, progress, spread)
    is_large = sum(held_bytes(s, job.ingesters, limits) for s in found.sources) > IN_MEMORY_BYTES
    if store is not None or is_large or spread.is_remote:
        gathered.take(disk.ingest_to_disk(job, store if store is not None else disk.default_place()))
    elif spread.is_wide(found.sources):
        with _spool() as shelves:
            gathered.take(disk.ingest_to_packs(job, Path(shelves)), held=True)
    else:
        for source in found.sources:
            sink, file = fill(open_source(found.place, source, limits), source, job.ingesters, limits)
            gathered.add(sink.handed_over(), (file,), sink.issues)
            if job.done is not None:
                job.done(source)
    return gathered.run(found.place.name, (*found.sources, *found.empty))


def ingest_shard(
    where: Where,
    shard: Shard,
    *,
    store: Path,
    progress: Callable[[Progress], None] | None = None,
    spread: Spread = ALONE,
) -> Run:
    """Read one share of a run's files into the store, where `ingest_run` finds them, and give the rows of these files.

    Raises `UsageError` when the place does not exist; `PlaceError` when the machine refuses the store, or the run as a
    whole.
    """
    found = discover(place_of(where))
    own = [source for source in found.sources if shard.has(source.path) or may_be_cut(source)]
    gathered = _Gathered()
    job = replace(_job(found.place, own, DEFAULT, progress, spread), has=shard.has)
    gathered.take(disk.ingest_to_packs(job, store))
    return gathered.run(found.place.name, own)


def _job(
    place: Place,
    sources: Sequence[Source],
    limits: Limits,
    progress: Callable[[Progress], None] | None,
    spread: Spread,
) -> disk.Job:
    told = _Told(progress, len(sources), sum(s.size_bytes for s in sources))
    told.start()
    ingesters = registry.load("ingesters").ingesters
    return disk.Job(place, sources, ingesters, limits, told.done, spread.map())


@contextlib.contextmanager
def _spool() -> Generator[str]:
    """Give a folder in which processes leave the rows of a run that is then held in memory."""
    try:
        with tempfile.TemporaryDirectory(prefix="forensics-", ignore_cleanup_errors=True) as place:
            yield place
    except OSError as error:
        raise PlaceError(f"the temporary folder {tempfile.gettempdir()}", error) from error


def ingest_bytes(name: str, data: bytes, *, limits: Limits = DEFAULT) -> Run:
    """Read one file's content, as from a pipe, into tables in memory."""
    return _ingest_opened(opened_bytes(name, data, limits), limits)


def ingest_stream(name: str, stream: BinaryIO, *, limits: Limits = DEFAULT) -> Run:
    """Read a pipe to its end, by way of an unnamed temporary file, into tables in memory.

    Raises `LimitExceeded` when the pipe gives more than `limits.expanded_bytes`.
    """
    with opened_stream(name, stream, limits) as opened:
        return _ingest_opened(opened, limits)


def _ingest_opened(opened: Opened, limits: Limits) -> Run:
    ingesters = registry.load("ingesters").ingesters
    sink, file = fill(contextlib.nullcontext(opened), opened.source, ingesters, limits)
    gathered = _Gathered()
    gathered.add(sink.handed_over(), (file,), sink.issues)
    return gathered.run(opened.source.path, [opened.source])


def findings_of(run: Run, config: RuleConfig, shapes: frozenset[Shape] | None = None) -> Iterator[Finding]:
    """Ask every rule, or those of some shapes; a rule that fails is a bug of ours and is raised with its name."""
    for rule in registry.load("rules").rules:
        if shapes is not None and rule.shape not in shapes:
            continue
        if not any(table in run.frames for table in rule.needs):
            continue  # a rule says nothing of tables that nobody wrote
        try:
            yield from rule(run, config.for_rule(rule))
        except Exception as error:
            error.add_note(f"in rule {rule.id} ({rule.origin})")
            raise


def thresholds_of(config: RuleConfig) -> dict[type, Any]:
    """Give the thresholds that differ from the shipped ones, by their type; rules of one analysis share them."""
    asked = (config.for_rule(rule) for rule in registry.load("rules").rules if rule.config is not None)
    return {type(one): one for one in asked if one != type(one)()}


def configured(run: Run, settings: Config) -> Run:
    """Give a run under the names and thresholds that the user set; no rule is loaded where none is set.

    Raises `UsageError` for a name or a threshold that is not known.
    """
    if settings.metrics:
        from forensics.dialects.names import meanings  # noqa: PLC0415 - few users have names of their own

        run = run.renamed(settings.named(sorted(meanings())))
    if not settings.rule_tables:
        return run
    return run.under(thresholds_of(settings.checked(registry.load("rules").rules)))


def _of_judged(run: Run, config: RuleConfig, found: Sequence[Finding]) -> Iterator[Finding]:
    """Ask the rules once more of the last attempt whose findings only report an earlier one: many tell the first."""
    tried = attempts(run)
    if len(tried.every) < 2:
        return
    over = {f.rule for f in found if f.severity is Severity.ERROR and _is_over(tried, f)}
    again = over - {f.rule for f in found if not _is_over(tried, f)}
    rest = of_judged(run) if again else run
    for rule in registry.load("rules").rules:
        if rule.id in again:
            yield from rule(rest, config.for_rule(rule))


def _is_over(tried: Attempts, finding: Finding) -> bool:
    proof = finding.evidence[0]
    return tried.is_over(proof.source, line=proof.locator.line, byte=proof.locator.byte, t_ns=proof.t_ns)


@contextlib.contextmanager
def _asked_whole(run: Run) -> Generator[None]:
    """Let polars answer questions about a run of few records with its engine that takes a table whole.

    An engine that the user set for the process stays.
    """
    few = int(run.collect("sources")["records"].sum()) <= _FEW_RECORDS
    with contextlib.ExitStack() as kept:
        if few and "POLARS_ENGINE_AFFINITY" not in os.environ:
            kept.enter_context(pl.Config(engine_affinity="in-memory"))
        yield


def report_of(run: Run, config: RuleConfig | None = None, shapes: frozenset[Shape] | None = None) -> Report:
    """Judge a run that has been read, by every rule or by those of some shapes only."""
    with _asked_whole(run):
        return _report_of(run, config, shapes)


def _report_of(run: Run, config: RuleConfig | None, shapes: frozenset[Shape] | None) -> Report:
    config = config if config is not None else Defaults(thresholds=run.thresholds)
    run = run.under(thresholds_of(config))
    every = tuple(findings_of(run, config, shapes))
    every += tuple(_of_judged(run, config, every))
    kept = tuple(f for f in every if f.rule not in config.ignore)
    coverage = coverage_of(run)
    verdict = decide(kept, run, coverage)
    verdict = replace(verdict, checkpoint=last_clean(run, verdict, kept))
    verdict = replace(verdict, actions=advice(run, verdict, kept))
    verdict = replace(verdict, restart=restart_of(run, verdict, kept))
    checks = playbook(run, verdict, kept)
    return Report(
        run=run.name,
        verdict=replace(verdict, missing=missing(run, verdict, checks), playbook=checks),
        findings=advised(run, verdict, kept),
        coverage=coverage,
        issues=issues_of(run),
        suppressed=len(every) - len(kept),
        plugins=tuple(f"{b.kind}: {b.name}: {b.why}" for b in registry.broken()),
    )


def with_figures(run: Run, report: Report) -> Report:
    """Give the report with the figures that a page draws of its run."""
    from forensics import figures  # noqa: PLC0415 - only a page needs them, and they load numpy

    return replace(report, figures=figures.figures_of(run, report))


def triage(
    where: Where, *, config: RuleConfig | None = None, store: Path | None = None, limits: Limits = DEFAULT
) -> Report:
    """Read a run and judge it; raises `ForensicsError` when the path cannot be read at all."""
    return report_of(ingest_run(where, store=store, limits=limits), config)
