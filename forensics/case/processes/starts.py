"""Where processes begin inside of each source: signs of a start, after something was done before them.

A sign alone proves nothing (a best model is loaded, a warning comes again). A start is told by a line that says from
which checkpoint a process goes on, by a launcher that starts its workers anew, or by two signs of another kind that
stand together: lines of the log's own head, banners of libraries, a state that was loaded, a counter of steps that
begins again before its plan was reached, an error just before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from math import inf
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct

from forensics.case.errors.coded import codes, ending_with
from forensics.case.progress import ledger
from forensics.case.series import keys_of, metric_records, metric_rows
from forensics.case.steps import at
from forensics.knowledge.errors import by_id, final, telling
from forensics.knowledge.paths import whose
from forensics.stats.spread import median_of
from forensics.store.run import Run, derived
from forensics.values import replace

#: A line of the file's head that is not the first proves a new head together with so many others only.
_HEAD_LINES = 3
#: Records between the sign of a start and the first step that is lower: an evaluation, a sanity check.
_FEW = 3
_HEAD = "head-again"
#: Lines of the head that come again so often, with at most so many times the usual number of records between them, are
#: headings of steps: a block of numbers below one has the same numbers each time, but for an evaluation or a save.
_FEWEST_HEADINGS, _EVEN = 3, 2.0
#: A counter of steps that stood in the middle of its plan and is back where it began.
_COUNTER = "counter-again"
#: Of the rows of checkpoints that were loaded.
_RESUMED = "resumed"
#: Lines that print the time of the day alone are dated on the first day of 1970 and after it: no run began before this.
_FIRST_DATE_NS = 10**17


_Counts = np.ndarray[Any, np.dtype[np.int64]]


class Start(Struct, frozen=True):
    """A place of a source at which a process begins; `step` and `path` are those of the checkpoint it says it loaded.

    `quote` is the line that says so, empty where only the steps went back. `by_launcher`: the launcher restarted its
    workers, and no checkpoint is named.
    """

    source: str
    seq: int
    line: int | None = None
    byte: int | None = None
    t_ns: int | None = None
    step: int | None = None
    path: str | None = None
    quote: str = ""
    resumed: bool = False
    by_launcher: bool = False


def of_one_clock(first: int | None, second: int | None) -> bool:
    """Whether two times tell which was earlier: both are known, and both have a date or neither has."""
    return first is not None and second is not None and (first < _FIRST_DATE_NS) == (second < _FIRST_DATE_NS)


@derived
def starts(run: Run) -> Mapping[str, tuple[Start, ...]]:
    """Give the starts after the first one of each source, in order; sources without any are left out."""
    signs = _signs(run)
    back = _went_back(run)
    done = _activity(run)
    by_source = {str(key[0]): part for key, part in signs.group_by("source", maintain_order=True)}
    found: dict[str, tuple[Start, ...]] = {}
    for source in sorted({*signs["source"].to_list(), *back}):
        own, signed = done.get(source, _NOTHING), by_source.get(source)
        if signed is not None and source not in back and _are_headings(signed, own):
            signed = signed.filter(pl.col("code") != _HEAD)
        mine = _merged(list(_told(signed, own)), back.get(source, []), own)
        if mine:
            found[source] = tuple(_by_bar(run, start) for start in mine)
    return found


def _by_bar(run: Run, start: Start) -> Start:
    """Give a start the step that it loaded, where no line says it and a bar of the training goes on behind it.

    A bar that begins anew is drawn at its first steps; a start from a checkpoint is past the middle of what was done.
    """
    if start.step is not None or start.by_launcher or start.source not in _bars(run):
        return start
    seqs, done = _bars(run)[start.source]
    at = int(np.searchsorted(seqs, start.seq))
    furthest = int(done[:at].max(initial=0))
    went_on = 0 < at < len(done) and 2 * done[at] > furthest + 1
    return replace(start, step=min(int(done[at]) - 1, furthest)) if went_on else start


@derived
def _bars(run: Run) -> Mapping[str, tuple[_Counts, _Counts]]:
    """Of each source that draws a bar of the training: where it was drawn, and the steps that were done by then."""
    plans = [(one.source, one.plan) for one in ledger(run).of("train", "step")]
    if not plans:
        return {}
    own = pl.LazyFrame(plans, schema={"source": pl.String, "plan": pl.Int64}, orient="row").unique()
    drawn = run.scan("progress").filter((pl.col("unit") == "step") & (pl.col("done") > 0) & pl.col("seq").is_not_null())
    rows = drawn.join(own, ["source", "plan"], "semi").select("source", "seq", "done").sort("source", "seq").collect()
    return {
        str(source): (part["seq"].to_numpy(), part["done"].to_numpy())
        for (source,), part in rows.group_by("source", maintain_order=True)
    }


@derived
def openings(run: Run) -> Mapping[str, Start]:
    """Give what the first process of a source says that it loaded, where it says so before it does anything.

    A state that was loaded is that of an earlier process where no record of the source is of a step before it: whose
    steps begin below has loaded the weights of another training.
    """
    signs = _signs(run).filter(pl.col("code").is_in([_RESUMED, *telling("resumed"), *telling("loaded")]))
    done, lowest = _activity(run), _lowest_steps(run)
    told, loaded = dict[str, list[Mapping[str, Any]]](), dict[str, list[Mapping[str, Any]]]()
    for row in signs.iter_rows(named=True):
        source, step = row["source"], row["step"]
        found = told if row["code"] in _strong() else loaded
        goes_on = found is told or (step is not None and 0 < step <= lowest.get(source, step))
        if goes_on and not done.get(source, _NOTHING).before(row["seq"]):
            found.setdefault(source, []).append(row)
    return {source: _start(rows) for source, rows in (loaded | told).items()}


def begun_between(run: Run, source: str, low: int, high: float = inf) -> Mapping[str, Any] | None:
    """Give the first sign of a start between two places of a source, proven or not, as a row of events; else None."""
    own = _signs(run).filter(pl.col("source") == source)
    if own.height and _are_headings(own, _activity(run).get(source, _NOTHING)):
        own = own.filter(pl.col("code") != _HEAD)
    inside = own.filter((pl.col("seq") > low) & (pl.col("seq") < high))
    return inside.row(0, named=True) if inside.height else None


@derived
def _lowest_steps(run: Run) -> Mapping[str, int]:
    """The lowest step of the records of each source that says that it loaded a state."""
    told = _signs(run).filter(pl.col("code").is_in([*telling("loaded")]) & (pl.col("step") > 0))["source"].unique()
    if told.is_empty():
        return {}
    rows = metric_records(run).select("source", at=at()).filter(pl.col("source").is_in(sorted(told)))
    return dict(rows.group_by("source").agg(pl.col("at").min()).drop_nulls().collect().iter_rows())


class _Done(Struct, frozen=True):
    """Places of records, saves and errors of a source, in order, and which of them are errors."""

    seq: _Counts
    failed: np.ndarray[Any, np.dtype[np.bool_]]

    def before(self, seq: int) -> int:
        """How many of them precede a place."""
        return int(np.searchsorted(self.seq, seq))


_NOTHING = _Done(np.zeros(0, np.int64), np.zeros(0, np.bool_))


def is_failure() -> pl.Expr:
    """Whether an event is an error of the run's own, or the end of a process that it reports."""
    return pl.col("attrs").str.contains(r'"role":\s*"(?:root|symptom)"') | (pl.col("code") == "traceback")


def is_last_word() -> pl.Expr:
    """Whether an event says how a process ended, if it trains no more below it."""
    return pl.col("code").is_in([code for code in final() if by_id()[code].kind in {"own", "stop"}])


@derived
def _signs(run: Run) -> pl.DataFrame:
    told = _strong() | telling("loaded") | telling("started") | ending_with(run, ".started") | {_HEAD}
    held = told.isdisjoint(codes(run)), "checkpoints" not in run.frames, "progress" not in run.frames
    return _no_signs() if all(held) else _signs_by(run, told)


@cache
def _no_signs() -> pl.DataFrame:
    return _signs_by(Run(""), frozenset())


def _signs_by(run: Run, told: frozenset[str]) -> pl.DataFrame:
    """The rows of checkpoints and counters that are such signs, and events of some codes."""
    code = pl.col("code")
    raised = run.scan("events").filter(code == "traceback").select("source", "line").unique()
    events = (
        run.scan("events")
        .filter(code.is_in(told) & pl.col("seq").is_not_null())
        .join(raised, on=["source", "line"], how="anti")  # `Error(s) in loading state_dict` says that nothing began
        .with_columns(path=pl.col("attrs").str.extract(r'"path":"([^"]*)"'))
        .select("source", "seq", "line", "byte", "t_ns", "step", "path", "code", "text", "attrs")
    )
    loaded = (
        run.scan("checkpoints")
        .filter((pl.col("kind") == "resumed") & pl.col("seq").is_not_null())
        .select("source", "seq", "line", "t_ns", "step", "path", code=pl.lit(_RESUMED))
    )
    every = pl.concat([events, loaded, _counters_again(run)], how="diagonal")
    rows = every.sort("source", "seq", "code", maintain_order=True).collect()
    named = {path: one.step for path in rows["path"].drop_nulls().unique() if (one := whose(path)) is not None}
    by_path = pl.col("path").replace_strict(named, default=None, return_dtype=pl.Int64)
    return rows.with_columns(step=pl.coalesce("step", by_path))


def _counters_again(run: Run) -> pl.LazyFrame:
    """Places at which a counter of steps is back at its first number although its plan was not reached."""
    own = ("source", "attempt", "rank", "label", "plan", "dialect")
    done, before = pl.col("done"), pl.col("done").shift().over(own)
    steps = (pl.col("unit") == "step") & done.is_not_null() & pl.col("seq").is_not_null()
    again = (done == done.min().over(own)) & (before > done) & (before < pl.col("plan"))
    told = run.scan("progress").filter(steps).sort("source", "seq").filter(again)
    quoted = pl.format("{}/{}", done, "plan")
    return told.select("source", "seq", "line", "byte", "t_ns", code=pl.lit(_COUNTER), text=quoted)


@derived
def _went_back(run: Run) -> dict[str, list[Start]]:
    """Places at which a reader saw the steps of a source go back, all ranks together."""
    if not any(keys_of(run)["attempt"]):
        return {}
    rows = (
        metric_rows(run, pl.col("attempt").fill_null(0) > 0)
        .group_by("source", "attempt")
        .agg(pl.col("seq").min(), pl.col("line", "byte", "t_ns").sort_by("seq").first())
    )
    first = keys_of(run).lazy().group_by("source").agg(lowest=pl.col("attempt").fill_null(0).min())
    table = rows.join(first, on="source").filter(pl.col("attempt") > pl.col("lowest")).sort("source", "seq").collect()
    found: dict[str, list[Start]] = {}
    for row in table.iter_rows(named=True):
        place = Start(row["source"], row["seq"], row["line"], row["byte"], row["t_ns"])
        found.setdefault(row["source"], []).append(place)
    return found


@derived
def _activity(run: Run) -> dict[str, _Done]:
    """What is done in each source that has a sign of a start."""
    sources = {*_signs(run)["source"].to_list(), *_went_back(run)}
    if not sources:
        return {}
    mine = pl.col("source").is_in(sorted(sources)) & pl.col("seq").is_not_null()
    saved = pl.col("kind") == "saved"
    stepped = pl.col("step").is_not_null() | pl.col("gstep").is_not_null()
    bad = is_failure() | is_last_word()
    frames = [
        metric_records(run).filter(mine & stepped).select("source", "seq", failed=pl.lit(value=False)),
        metric_rows(run, pl.col("name") == "loss").filter(mine).select("source", "seq", failed=pl.lit(value=False)),
        run.scan("checkpoints").filter(mine & saved).select("source", "seq", failed=pl.lit(value=False)),
        run.scan("events").filter(mine & bad).select("source", "seq", failed=pl.lit(value=True)),
    ]  # fmt: skip
    rows = pl.concat(frames).unique().sort("source", "seq").collect()
    return {
        str(key[0]): _Done(part["seq"].to_numpy(), part["failed"].to_numpy())
        for key, part in rows.group_by("source", maintain_order=True)
    }


def _are_headings(signs: pl.DataFrame, done: _Done) -> bool:
    """Whether lines of the head come again evenly while the steps go on: what a loop prints above each of its steps."""
    if not _strong().isdisjoint(signs["code"]) or done.failed.any():
        return False
    places = {done.before(seq) for seq in signs.filter(pl.col("code") == _HEAD)["seq"]} - {0}
    if len(places) < _FEWEST_HEADINGS:
        return False
    gaps = np.diff([0, *sorted(places)])
    return bool(gaps.max() <= _EVEN * median_of(gaps))


def _told(signs: pl.DataFrame | None, done: _Done) -> Iterator[Start]:
    """One start for the signs between which nothing was done, where they prove one."""
    groups: dict[int, list[Mapping[str, Any]]] = {}
    for row in () if signs is None else signs.iter_rows(named=True):
        groups.setdefault(done.before(row["seq"]), []).append(row)
    for before, rows in groups.items():
        # what stands before all that was done is the first start, unless the first line of the head stands there again
        again = next((i for i, row in enumerate(rows) if is_first_line(row)), len(rows))
        own = rows if before else rows[again:]
        if _proven(own, failed=bool(before and done.failed[before - 1])):
            yield _start(own)


def _proven(rows: Sequence[Mapping[str, Any]], *, failed: bool) -> bool:
    codes = {row["code"] for row in rows}
    if codes & _strong():
        return True
    heads = {row["attrs"] for row in rows if row["code"] == _HEAD}
    if len(heads) >= _HEAD_LINES or (len(heads) > 1 and any(map(is_first_line, rows))):
        return True
    banners = {row["text"][:20] for row in rows if row["code"] not in {_HEAD, *telling("loaded")}}
    return bool(heads) + bool(codes & telling("loaded")) + len(banners) + failed > 1


def _strong() -> frozenset[str]:
    """Codes that prove a start by themselves."""
    return telling("resumed") | telling("restarted") | {_RESUMED}


def is_first_line(row: Mapping[str, Any]) -> bool:
    """Whether a sign of a start is the first line of the log, again."""
    return row["code"] == _HEAD and '"head":"0"' in row["attrs"]


def _start(rows: Sequence[Mapping[str, Any]]) -> Start:
    """The start that signs show: it is at the first of them, and what was loaded is in the last that says it."""
    first = rows[0]
    loads = [row for row in rows if row["code"] in {_RESUMED, *telling("resumed"), *telling("loaded")}]
    named = next((row for row in reversed(loads) if row["step"] is not None), loads[-1] if loads else None)
    said = named or first
    return Start(
        first["source"], first["seq"], first["line"], first["byte"], said["t_ns"] or first["t_ns"],
        None if named is None else named["step"], None if named is None else named["path"],
        said["text"] or str(said["code"]), resumed=named is not None,
        by_launcher=bool(by := {row["code"] for row in rows} & _strong()) and by <= telling("restarted"),
    )  # fmt: skip


def _merged(told: Sequence[Start], back: Sequence[Start], done: _Done) -> tuple[Start, ...]:
    """Starts in order; steps that went back are the start told above them, when nothing was done in between."""
    known = [done.before(start.seq) for start in told]
    extra = [s for s in back if not any(0 <= done.before(s.seq) - place < _FEW for place in known)]
    return tuple(sorted([*told, *extra], key=lambda start: start.seq))
