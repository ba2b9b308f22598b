"""A job that did nothing for long: before its first step, and after its last."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from forensics.analyses.hang.last_seen import missed, stopped_first
from forensics.case.end_markers import marks_of
from forensics.case.errors.coded import events_telling
from forensics.case.errors.failures import Failure, standing
from forensics.case.errors.kinds import Weight, attributes
from forensics.case.errors.timeline import are_of_one_clock
from forensics.case.processes.starts import begun_between
from forensics.case.progress import ledger
from forensics.case.rank_spans import ranks_text
from forensics.case.series import keys_of, metric_records, record_pieces, shortened
from forensics.case.steps import in_order, where
from forensics.knowledge.errors import telling
from forensics.rules._errors import of_failure
from forensics.rules.hang.clue import RANKS
from forensics.rules.hang.decide import decision
from forensics.rules.kit import (
    Evidence,
    EvidenceRole,
    Finding,
    Findings,
    Locator,
    Onset,
    Run,
    Severity,
    Shape,
    event_evidence,
    proof,
    rule,
)
from forensics.stats.spread import median_of
from forensics.values import replace

_NS = 1e9
_DAY_S = 86400.0
#: Zones of time differ by whole halves of an hour, nearly all of them.
_ZONE_S = 1800.0
_LAST = ("seq", "t_ns", "step", "line")
#: What a counter counts when the program is at work; loading and data are part of a start.
_WORK = frozenset({"train", "eval", "sampling", ""})


class Start(Struct, frozen=True):
    """Threshold of HNG022: seconds from joining to the end; PyTorch gives up a collective of gloo after 1800 s."""

    silence_s: float = 1800.0


@rule(
    "HNG022 stuck-before-first-step",
    "events metrics",
    severity="error",
    confidence="medium",
    cause="stuck_before_first_step",
)
def before_first_step(run: Run, cfg: Start) -> Findings:
    """Find a start that never reached a step."""
    found = standing(run)
    stop = next((f for f in found if f.weight == Weight.STOP and f.t_ns is not None), None)
    if stop is None or stop.t_ns is None or any(f.weight > Weight.STOP for f in found):
        return
    if marks_of(run).final is not None or _worked(run):
        return
    dated = pl.col("code").is_in(telling("joining")) & pl.col("t_ns").is_not_null() & (pl.col("t_ns") < stop.t_ns)
    first = run.scan("events").filter(dated & (pl.col("source") == stop.source)).sort("seq").head(1).collect()
    for row in first.iter_rows(named=True):
        waited_s = (stop.t_ns - row["t_ns"]) / _NS
        if waited_s >= cfg.silence_s:
            yield before_first_step.finding(
                f"no step was logged in the {waited_s / 60:.0f} minutes after the ranks began to join each other",
                "no training record, no error and no success marker is between the start and the end of the job",
                proof(event_evidence(row), of_failure(stop)),
                Onset(t_ns=row["t_ns"], rank=row["rank"]),
                numbers={"waited_s": waited_s},
            )


def _worked(run: Run) -> bool:
    """Whether anything was trained, evaluated or sampled: a record says so, or a counter that moved."""
    moved = any(counter.what in _WORK and counter.done for counter in ledger(run).counters)
    return moved or not metric_records(run).filter("trains").head(1).collect().is_empty()


class Silence(Struct, frozen=True):
    """Thresholds of HNG018: seconds and usual intervals that a gap must exceed; seconds that make it an error.

    No job is silent for a month (`longest_s`) and still prints: a clock has another year. Of `workers` at least all
    must have been ended by force; one that logged within `fresh` usual intervals was at work. A log without an end goes
    on through a gap of `long_s` where its lines come every `between_s` on average; a later process prints some at once.
    """

    silence_s: float = 300.0
    intervals: float = 10.0
    surely_s: float = 1800.0
    fewest: int = 4
    longest_s: float = 2_592_000.0
    workers: int = 2
    fresh: float = 3.0
    long_s: float = 43_200.0
    between_s: float = 3600.0


@rule("HNG018 log-silence", f"{RANKS} progress", cause="silent_stall")
def log_silence(run: Run, cfg: Silence) -> Findings:
    """Find a stop from outside that came long after the last training record of the same log."""
    found = standing(run)
    if marks_of(run).final is not None or any(f.weight > Weight.STOP for f in found):
        return
    ended = [f for f in found if f.weight == Weight.STOP]
    stops = [timed for f in ended if (timed := _timed(run, f)).t_ns is not None]
    records = _records(run, cfg.fewest)
    if forced := tuple(_no_reaction(run, ended, records, cfg)):
        yield from forced
        return
    if not stops:
        yield from _talking(run, records, cfg) if not found else ()
        return
    for row in records.iter_rows(named=True):
        stop = next((f for f in stops if f.source == row["source"] and f.at > (row["line"] or 0)), None)
        if stop is not None and _gap_s(row, stop) > _least_s(row, cfg.silence_s, cfg) and not _is_over(run, row, cfg):
            told = _finding(row, of_failure(stop), _gap_s(row, stop), _absent(run), sure=True)
            told = _explained(told, [f for f in found if f.source == stop.source and row["line"] < f.at < stop.at])
            yield told if _gap_s(row, stop) > cfg.surely_s else replace(told, severity=Severity.WARNING)
            return
    if not any(f.source in records["source"] for f in stops):
        yield from _elsewhere(records, stops[-1], cfg, _absent(run))


def stood_still_since(run: Run) -> int | None:
    """Give the time of the last training record of all, where the job was stopped ten usual intervals later or more.

    A multiple of half an hour between two logs is a difference of zones.
    """
    cfg = Silence()
    stops = [timed for f in standing(run) if f.weight == Weight.STOP and (timed := _timed(run, f)).t_ns is not None]
    for row in _records(run, cfg.fewest).sort("t_ns").tail(1).iter_rows(named=True) if stops else ():
        gap_s = _gap_s(row, stops[0])
        apart_s = gap_s if stops[0].source == row["source"] else min(gap_s % _ZONE_S, -gap_s % _ZONE_S)
        if gap_s > 0 and apart_s > cfg.intervals * _usual_s(row) > 0:
            return row["t_ns"]
    return None


def _timed(run: Run, stop: Failure) -> Failure:
    """A stop with the time at which its scheduler's report says that the job ended, where its line has none."""
    if stop.t_ns is not None:
        return stop
    said = run.scan("events").filter((pl.col("source") == stop.source) & pl.col("code").is_in(telling("job_ended_at")))
    known = said.select("t_ns").collect()["t_ns"].drop_nulls()
    return replace(stop, t_ns=known[-1]) if known.len() else stop


def _talking(run: Run, records: pl.DataFrame, cfg: Silence) -> Findings:
    """Judge a log that goes on to print times long after the last step, and nothing of an end or an evaluation.

    Training that reached its plan is over, whatever its program does then.
    """
    if any(one.is_reached for unit in ("step", "epoch") for one in ledger(run).of("train", unit)):
        return
    last = run.scan("events").filter(pl.col("code") == "last_line").select("source", "t_ns", "line", "text").collect()
    lasts = {row["source"]: row for row in last.iter_rows(named=True) if row["t_ns"] is not None}
    for row in records.iter_rows(named=True):
        end = lasts.get(row["source"])
        gap_s = 0.0 if end is None else (end["t_ns"] - row["t_ns"]) / _NS
        if end is None or not _least_s(row, cfg.surely_s, cfg) < gap_s < cfg.longest_s or _evaluated(run, row):
            continue
        lines = end["line"] - (row["line"] or 0)
        if _is_over(run, row, cfg) or (gap_s > cfg.long_s and gap_s > cfg.between_s * lines):
            continue
        words = Evidence(end["source"], Locator(line=end["line"]), end["text"], t_ns=end["t_ns"])
        yield _finding(row, words, gap_s, (), sure=False)
        return


def _least_s(row: dict[str, Any], silence_s: float, cfg: Silence) -> float:
    """Seconds that a gap behind a record must exceed to be no usual one."""
    return max(silence_s, cfg.intervals * _usual_s(row))


def _is_over(run: Run, row: dict[str, Any], cfg: Silence) -> bool:
    """Whether the process of a record had ended: the next sign of life of its log is that of a start, long after it."""
    again = begun_between(run, row["source"], row["seq"])
    at_ns = None if again is None else again["t_ns"]
    return at_ns is not None and (at_ns - row["t_ns"]) / _NS > _least_s(row, cfg.surely_s, cfg)


def _evaluated(run: Run, row: dict[str, Any]) -> bool:
    """Whether an evaluation or a counter of another kind goes on behind a record."""
    later = (pl.col("source") == row["source"]) & (pl.col("seq") > row["seq"])
    tests = metric_records(run).filter(later & ~pl.col("trains")).head(1).collect()
    moved = run.scan("progress").filter(later & (pl.col("done") != row["step"])).head(1).collect()
    return bool(tests.height or moved.height)


def _elsewhere(records: pl.DataFrame, stop: Failure, cfg: Silence, absent: tuple[int, ...]) -> Findings:
    """Judge a stop that a log without records tells by the record that came last of all."""
    for row in records.sort("t_ns").tail(1).iter_rows(named=True):
        gap_s = _gap_s(row, stop)
        zones = min(gap_s % _ZONE_S, -gap_s % _ZONE_S)
        if gap_s > _least_s(row, cfg.surely_s, cfg) and zones > cfg.silence_s:
            yield _finding(row, of_failure(stop), gap_s, absent, sure=False)


def _gap_s(row: dict[str, Any], stop: Failure) -> float:
    """Seconds from a record to a stop; where only one of them has a date, those from one time of day to the other."""
    gap_s = ((stop.t_ns or 0) - row["t_ns"]) / _NS
    return gap_s if are_of_one_clock((row["t_ns"], stop.t_ns or 0)) else (gap_s + _DAY_S / 2) % _DAY_S - _DAY_S / 2


def _usual_s(row: dict[str, Any]) -> float:
    return (row["usual"] or 0) / _NS


def _records(run: Run, fewest: int) -> pl.DataFrame:
    """The first training record of the last step of each source, and the median time between steps."""
    known = pl.col("step").is_not_null() & pl.col("t_ns").is_not_null()
    named = pl.col("source").cast(pl.Enum(keys_of(run)["source"].unique().sort()))  # a text takes 16 bytes a record
    pieces = record_pieces(run, inner=False)  # the first of a step is among these
    held = (one.filter(known).select(named, *_LAST).collect() for one in pieces)
    rows = in_order(pl.concat(map(shortened, held), how="vertical_relaxed").lazy(), "source", "seq").collect()
    for column in ("seq", "step"):
        rows = where(rows, _begins(rows, "source") | _begins(rows, column))
    times = rows["t_ns"].cast(pl.Int64).to_numpy()
    begins = [*np.flatnonzero(_begins(rows, "source")).tolist(), rows.height]
    found = [
        {
            **rows.row(end - 1, named=True),
            "usual": median_of(np.diff(times[first:end])) if end - first > 1 else None,
            "count": end - first,
        }
        for first, end in pairwise(begins)
        if end - first >= fewest
    ]
    numbers = {**dict.fromkeys(_LAST, pl.Int64), "usual": pl.Float64, "count": pl.Int64}
    return pl.DataFrame(found, schema={"source": pl.String, **numbers})


def _begins(rows: pl.DataFrame, column: str) -> NDArray[np.bool_]:
    """Which rows have another value than the one before, or none."""
    values = rows[column]
    other = (values.slice(1) != values.head(max(rows.height - 1, 0))).fill_null(value=True)
    return np.concatenate([np.ones(min(rows.height, 1), np.bool_), other.to_numpy()])


def _absent(run: Run) -> tuple[int, ...]:
    """Give the ranks that did not come where most others wait, else those whose records end before the others'."""
    return missed(run) or stopped_first(run)


def _finding(row: dict[str, Any], end: Evidence, gap_s: float, absent: tuple[int, ...], *, sure: bool) -> Finding:
    """Report a gap between the last record and an end in its own log (`sure`) or elsewhere."""
    usual_s = _usual_s(row)
    words = f"last training record: step {row['step']}"
    whom = f"; the others wait for {ranks_text(absent)}" if absent else ""
    t_ns = (end.t_ns or 0) - round(gap_s * _NS)  # dated as the end is
    last = Evidence(row["source"], Locator(line=row["line"]), words, row["step"], t_ns=t_ns)
    return log_silence.finding(
        f"nothing was trained in the last {gap_s / 60:.0f} minutes of the job (step {row['step']}){whom}",
        f"records usually came every {usual_s:.3g} s, and neither an error nor a success marker is between",
        proof(last, end),
        Onset(step=row["step"], t_ns=t_ns, rank=absent[0] if len(absent) == 1 else None, step_lo=row["step"]),
        culprits=absent,
        severity="error",
        confidence="medium" if sure else "low",
        numbers={"gap_s": gap_s, "usual_s": usual_s},
    )


def _explained(told: Finding, between: Sequence[Failure]) -> Finding:
    """Add what a library reported of peers or links between the last record and the end: it says why nothing came."""
    first = next((f for f in between if f.shape == "hang" and f.weight == Weight.TIMEOUT), None)
    if first is None:
        return told
    said = replace(of_failure(first), role=EvidenceRole.RELATED)
    because = f"{told.because.partition(', and ')[0]}, and a library reported this before the job ended"
    return replace(told, because=because, evidence=(*told.evidence, said), cause=first.cause)


def _no_reaction(run: Run, stops: Sequence[Failure], records: pl.DataFrame, cfg: Silence) -> Findings:
    """Judge a stop from outside to which no worker reacted: each stood in a call that does not return."""
    if not stops:
        return
    rows = events_telling(run, "ended_alive", "forced", order=("source", "line")).drop_nulls("line")
    asked, forced = (_pids(rows, telling(fact)) for fact in ("ended_alive", "forced"))
    if len(forced) < cfg.workers or asked.keys() != forced.keys():
        return
    place = min(forced.values(), key=lambda row: (row["source"], row["line"]))
    first = min(stops, key=lambda f: (f.source != place["source"], f.at))
    here = (pl.col("source") == first.source) & (pl.col("line") < first.at) & pl.col("trains")
    last = metric_records(run).filter(here).sort("line").tail(1).collect()
    for row in records.filter(pl.col("source") == first.source).iter_rows(named=True):
        if first.t_ns is None or _gap_s(row, first) <= cfg.fresh * _usual_s(row):
            return
    found = decision(run)
    who = found if found is not None and found.shape is Shape.HANG else None
    for row in last.iter_rows(named=True):
        words = f"last training record: step {row['step']}"
        yield log_silence.finding(
            f"none of {len(forced)} workers reacted when the run was stopped: each had to be killed by force",
            "a worker that trains ends within seconds; one that waits in a collective or for a lock does not",
            proof(Evidence(row["source"], Locator(line=row["line"]), words, row["step"]), event_evidence(place)),
            Onset(step=row["step"], step_lo=row["step"], rank=who.ranks[0] if who and who.ranks else None),
            culprits=who.ranks if who else (),
            cause=who.cause if who else "silent_stall",
            severity="error",
            confidence="medium",
            numbers={"workers": len(forced)},
            decides=True,
        )


def _pids(rows: pl.DataFrame, codes: frozenset[str]) -> dict[str, dict[str, Any]]:
    """Give the lines about a process, by its number."""
    told = rows.filter(pl.col("code").is_in(codes)).iter_rows(named=True)
    return {pid: row for row in told if (pid := attributes(row["attrs"]).get("pid", ""))}
