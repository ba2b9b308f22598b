"""Restarts on one time line: the lives of a run (what one process trained), and what each life went on from.

A life is a stretch of training records of one rank in one source, ended where the steps go back or where a process
begins (`starts`). A life of another source belongs to the same time line when it prints the same loss and
begins, by its clock or by the checkpoint it names, where an earlier one had been. Steps are the source's own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import polars as pl
from msgspec import Struct

from forensics.case.end_markers import Marks, marks_of
from forensics.case.joined.stores import Strand, stores_of
from forensics.case.processes.launches import launches
from forensics.case.processes.starts import Start, of_one_clock, openings, starts
from forensics.case.progress import ledger
from forensics.case.series import chosen, index_of, keys_of, metric_rows, standing_in
from forensics.case.steps import WRITER, at, parts
from forensics.io.columns import as_column
from forensics.store.run import Run, derived
from forensics.store.schema import TABLES
from forensics.values import replace

Kind = Literal["continues", "replays", "gap", "scratch", "stage"]
#: Quantities whose rows make a life, the first that a source prints.
QUANTITIES = ("loss", "reward", "grad_norm", "lr")
#: With more lives than this only those of one source are put in order.
_MANY = 300
_KEY = ("source", "rank", "raw_name")
#: For each source the places at which processes begin, and what says so.
_Begins = Mapping[str, tuple[tuple[int, Start], ...]]


class Life(Struct, frozen=True):
    """What one process trained: records `seq_first` to `seq_last` of one attempt, steps `first` to `last`.

    `every` is the usual distance of the steps of two records, `start` what says that its process began, where anything
    does, times are nanoseconds or None.
    """

    source: str
    rank: int | None
    raw_name: str
    attempt: int
    seq_first: int
    seq_last: int
    line_first: int | None
    line_last: int | None
    first: int
    last: int
    records: int
    every: float
    t_first: int | None
    t_last: int | None
    start: Start | None = None

    @property
    def resumed_step(self) -> int | None:
        """The step of the checkpoint that the life says it loaded."""
        return None if self.start is None else self.start.step


class Boundary(Struct, frozen=True):
    """One restart: `after` went on from `before`.

    `kind`: continues at the next step, replays steps that `before` had done (`replayed` of them), leaves a gap, counts
    from the start again (scratch), or begins after `before` had come to its end (stage): the next stage of a pipeline,
    the next epoch, or another run. `fork`: `before` is not the life just before it: two lives have one parent.
    """

    before: Life
    after: Life
    kind: Kind
    replayed: int = 0
    fork: bool = False


@derived
def lives(run: Run) -> tuple[Life, ...]:
    """List the lives of a run in the order of their sources and records; sources without steps have none."""
    rows = (
        metric_rows(run, standing_in(run, _printed_most(run)), without=stores_of(run).left_out, coded=True)
        .filter(pl.col("value_class") != "null")
        .select("source", "rank", "name", "raw_name", "seq", "line", "t_ns", at(), pl.col("attempt").fill_null(0))
        .filter(pl.col("at").is_not_null())
    )
    begins = {s: tuple((one.seq, one) for one in own) for s, own in starts(run).items()} | _silent(rows, run)
    rows = _marked(rows, begins)
    step = pl.col("at")
    table = (
        rows.group_by(*_KEY, "name", "attempt", "mark")
        .agg(
            pl.col("seq").min().alias("seq_first"),
            pl.col("seq").max().alias("seq_last"),
            pl.col("line").min().alias("line_first"),
            pl.col("line").max().alias("line_last"),
            step.min().alias("first"),
            step.max().alias("last"),
            pl.len().alias("records"),
            ((step.max() - step.min()) / (step.n_unique() - 1).clip(lower_bound=1)).cast(pl.Float64).alias("every"),
            pl.col("t_ns").min().alias("t_first"),
            pl.col("t_ns").max().alias("t_last"),
        )
        .cast({"source": pl.String, "raw_name": pl.String})
        .collect()
    )
    kept = table.sort("source", "rank", "attempt", "seq_first", nulls_last=False)
    first = openings(run)
    return tuple(_life(row, begins, first) for row in kept.iter_rows(named=True))


@derived
def boundaries(run: Run) -> tuple[Boundary, ...]:
    """List the restarts of a run, each with the life that it went on from."""
    every = lives(run)
    found: list[Boundary] = []
    before: dict[tuple[str, int | None], list[Life]] = {}
    for life in every:
        mine = before.setdefault((life.source, life.rank), [])
        parent = _parent(life, mine)
        if parent is None and not mine and len(every) <= _MANY:
            parent = _parent(life, [e for e in every if _is_earlier(e, life)])
        if parent is not None:
            fork = bool(mine) and mine[-1] is not parent
            found.append(_boundary(parent, life, fork=fork))
        elif mine:
            found.append(Boundary(mine[-1], life, "stage" if _has_reached(run, mine[-1], life) else "scratch"))
        mine.append(life)
    ends = marks_of(run)
    return tuple(replace(edge, kind="stage") if _has_finished(ends, edge) else edge for edge in found)


def _has_reached(run: Run, life: Life, after: Life) -> bool:
    """Whether a life reached the end of the steps that it counted against a plan, before the one after it began.

    Of several plans the one is meant in which it got about as far as in its records: the bar of an evaluation fills up
    many times in a training.
    """
    own = [c for c in ledger(run).of("train", "step") if (c.source, c.rank) == (life.source, life.rank)]
    seen = pl.col("seq").is_between(life.seq_first, after.seq_first, closed="left") & (pl.col("unit") == "step")
    frames = run.scan("progress").filter((pl.col("source") == life.source) & seen) if own else None
    if frames is None:
        return False
    counted = frames.filter(pl.col("done").is_not_null())  # a plan may be told before anything is done
    done = dict(counted.group_by("plan").agg(pl.col("done").max()).collect().iter_rows())
    apart = {c.plan: abs(done[c.plan] - life.last) for c in own if c.plan in done}
    nearest = (c for c in own if c.plan in apart and apart[c.plan] == min(apart.values()))
    return any(replace(c, done=done[c.plan]).is_reached for c in nearest)


def _has_finished(ends: Marks, edge: Boundary) -> bool:
    """Whether the old life says that it finished before the new one began."""
    old, new = edge.before, edge.after
    low, high = old.line_last or old.seq_last, new.line_first if new.line_first is not None else new.seq_first
    within = math.inf if old.source != new.source else high
    return any(mark.source == old.source and low <= mark.at <= within for mark in ends.successes)


def rows_of(run: Run, life: Life, *names: str) -> pl.DataFrame:
    """Metric rows of one life with a finite value, of some canonical names, with `at`, in order."""
    found = run.derived(_Finite(names)).get((life.source, life.attempt, life.rank))
    if found is None:
        return _NO_ROWS
    seqs = found["seq"].to_numpy()
    first, end = seqs.searchsorted(life.seq_first, "left"), seqs.searchsorted(life.seq_last, "right")
    return found.slice(int(first), int(end - first))


_NO_ROWS = pl.DataFrame(schema={**TABLES["metrics"], "at": pl.Int64})


class _Finite(Struct, frozen=True):
    """The finite rows with a step of some canonical names, in the order of their records: one look for all lives."""

    names: tuple[str, ...]

    def __call__(self, run: Run) -> dict[tuple[str, int, int | None], pl.DataFrame]:
        """Give the rows by source, attempt and rank."""
        rows = metric_rows(run, pl.col("name").is_in([*self.names]), coded=True)
        rows = rows.filter(pl.col("value_class") == "finite").with_columns(at(), pl.col("attempt").fill_null(0))
        kept = rows.filter(pl.col("at").is_not_null()).sort("seq", maintain_order=True).collect()
        keys = kept.select(WRITER).unique(maintain_order=True).rows()
        return dict(zip(keys, kept.partition_by(WRITER, maintain_order=True), strict=True))


def _marked(rows: pl.LazyFrame, begins: _Begins) -> pl.LazyFrame:
    """Training rows with `mark`: how many starts of a process precede them in their source."""
    places = [(source, seq, i + 1) for source, own in begins.items() for i, (seq, _) in enumerate(own)]
    if not places:
        return rows.with_columns(mark=pl.lit(0, dtype=pl.Int64))
    types = {"source": pl.String, "seq": pl.Int64, "mark": pl.Int64}
    marks = pl.LazyFrame(places, schema=types, orient="row").sort("seq")
    ordered = rows.with_columns(pl.col("source").cast(pl.String)).sort("seq", maintain_order=True)
    joined = ordered.join_asof(marks, on="seq", by="source", strategy="backward", check_sortedness=False)
    return joined.with_columns(pl.col("mark").fill_null(0))


def _silent(rows: pl.LazyFrame, run: Run) -> dict[str, tuple[tuple[int, Start], ...]]:
    """Where a process began in sources that only go on counting, as another source tells."""
    if starts(run).keys() >= {*keys_of(run)["source"].to_list()}:
        return {}
    told = [*_first_steps(run), *steps_of_launches(run), *steps_of_copies(run)]
    if not told:
        return {}
    quiet = rows.select(pl.col("source").cast(pl.String), "seq", "at")
    quiet = quiet.filter(~pl.col("source").is_in(sorted(starts(run)))).collect()
    if quiet.is_empty():
        return {}
    found: dict[str, dict[int, Start]] = {}
    for start, step in told:
        behind = pl.col("at") >= step
        ends = quiet.group_by("source").agg(pl.col("seq").filter(behind).min(), kept=behind.not_().any())
        for source, seq in ends.filter("kept").drop_nulls("seq").select("source", "seq").iter_rows():
            found.setdefault(source, {}).setdefault(seq, start)
    return {source: tuple(sorted(places.items())) for source, places in found.items()}


def _first_steps(run: Run) -> list[tuple[Start, float]]:
    """Starts that a line tells, with the step behind its checkpoint, else of the next record."""
    told = [s for own in starts(run).values() for s in own if s.quote]
    if not told:
        return []
    steps = metric_rows(run, pl.col("source").is_in(sorted({s.source for s in told})))
    later = steps.select("source", "seq", at=at()).filter(pl.col("at").is_not_null()).sort("seq").collect()
    own = {str(part["source"][0]): part for part in parts(later, ("source",)) if part.height}
    found: list[tuple[Start, float]] = []
    for start in told:
        rows = own.get(start.source, later.clear())
        next_one = int(rows["seq"].to_numpy().searchsorted(start.seq))
        behind = int(rows["at"][next_one]) if next_one < rows.height else math.inf
        found.append((start, start.step + 1 if start.step else behind))
    return found


def steps_of_launches(run: Run) -> list[tuple[Start, float]]:
    """Later launches whose log numbers no steps, each with the step at which another store has its first record."""
    later = {source for source, number in launches(run).items() if number}
    found: list[tuple[Start, float]] = []
    for match in [m for link in stores_of(run).links for m in link.same] if later else ():
        (own, other), (begins, place) = (match.a, match.b), match.first
        if other.source in later:
            own, other, begins, place = other, own, place, begins
        if own.source in later and not own.numbered and other.numbered and begins == own.seq[0]:
            start = openings(run).get(own.source, Start(own.source, int(own.seq[0])))
            found.append((start, float(other.at.filter(other.seq == place)[0])))
    return found


def steps_of_copies(run: Run) -> list[tuple[Start, float]]:
    """Files that hold a later part of another one and begin where a file of its earlier part ends.

    A tracker opens a new file for each process, while a log that is kept with the checkpoints only goes on counting.
    """
    parts: dict[tuple[str, str], list[tuple[float, float, Strand]]] = {}
    for match in [m for link in stores_of(run).links for m in link.same]:
        own, other, place = (match.b, match.a, match.first[0]) if match.covers_b else (match.a, match.b, match.first[1])
        if (match.covers_a or match.covers_b) and own.numbered and other.numbered and len(own) > 1:
            first = float(other.at.filter(other.seq == place)[0])
            last = first + float(own.at[-1] - own.at[0])
            parts.setdefault((other.source, other.raw_name), []).append((first, last, own))
    found: dict[str, tuple[Start, float]] = {}
    for spans in parts.values():
        for first, last, own in spans:
            near = 2 * max(1.0, (last - first) / (len(own) - 1))
            if any(begin < first - near <= end < first for begin, end, _ in spans):
                start = openings(run).get(own.source, Start(own.source, int(own.seq[0])))
                found.setdefault(own.source, (start, first))
    return sorted(found.values(), key=lambda one: one[1])


def _printed_most(run: Run) -> pl.DataFrame:
    """Of each source and rank one printed name: of the first quantity, the one with most records."""
    index = index_of(run)
    own = index.keys.filter(as_column(chosen(index, pl.col("name").is_in(QUANTITIES), stores_of(run).left_out)))
    order = pl.col("name").replace_strict({n: i for i, n in enumerate(QUANTITIES)}, return_dtype=pl.Int32)
    return (
        own.filter(pl.col("n_stepped") > 0)
        .with_columns(order=order)
        .group_by(*_KEY, "name", "order", maintain_order=True)
        .agg(pl.col("n_stepped").sum())
        .sort("order", "n_stepped", "raw_name", descending=[False, True, False])
        .unique(["source", "rank"], keep="first", maintain_order=True)
        .select(*_KEY, "name")  # a trainer may print several quantities under one name, each on a line of its own
    )


def _life(row: Mapping[str, Any], begins: _Begins, first: Mapping[str, Start]) -> Life:
    fields = (
        "source", "rank", "raw_name", "attempt", "seq_first", "seq_last", "line_first", "line_last",
        "first", "last", "records", "every", "t_first", "t_last",
    )  # fmt: skip
    source, mark = str(row["source"]), int(row["mark"])
    start = begins[source][mark - 1][1] if mark else first.get(source)
    return Life(**{name: row[name] for name in fields}, start=start)


def _is_earlier(other: Life, life: Life) -> bool:
    """Whether a life of another source can be what this one went on from."""
    if other.source == life.source or other.rank != life.rank or other.raw_name != life.raw_name:
        return False
    if other.t_last is not None and life.t_first is not None and of_one_clock(other.t_last, life.t_first):
        return other.t_last <= life.t_first
    follows = life.first > other.last and life.records > 1  # a summary that is printed once at the end is no process
    return follows or (life.resumed_step is not None and other.first < life.resumed_step <= other.last)


def _parent(life: Life, candidates: list[Life]) -> Life | None:
    """The latest of the candidates that had been at the step where this life begins."""
    loaded = life.resumed_step
    if life.first <= 1.5 * life.every and not (loaded and loaded < life.first):
        return None
    fitting = [c for c in candidates if c.first < life.first and life.first <= c.last + 2 * max(c.every, life.every, 1)]
    near = fitting or [c for c in candidates if c.source == life.source and c.first < life.first]
    return near[-1] if near else None


def _boundary(before: Life, after: Life, *, fork: bool) -> Boundary:
    if after.first <= before.last:
        return Boundary(before, after, "replays", before.last - after.first + 1, fork)
    far = after.first > before.last + 2 * max(before.every, after.every, 1)
    return Boundary(before, after, "gap" if far else "continues", 0, fork)


#: What goes on for so many times the steps of what came before is no next epoch of it.
_LONGER = 1.5


def is_new(run: Run, boundary: Boundary) -> bool:
    """Whether a life that counts from the start trains anew: its loss begins where the one before it began.

    Steps that start again may be the next epoch of the same process, whose loss begins where the last one ended, unless
    it goes on for much longer and ends lower. Where the epochs start again, too, a loss that leaps by more than it had
    ever moved is another task's, or another model's.
    """
    old, new = _losses(run, boundary.before), _losses(run, boundary.after)
    before, after = old["value"].to_list(), new["value"].to_list()
    if not before or not after:
        return True
    if boundary.after.last > _LONGER * boundary.before.last and after[-1] < before[-1]:
        return True
    leap = abs(after[0] - before[-1])
    return abs(after[0] - before[0]) < leap or (_counts_epochs_anew(old, new) and leap > max(before) - min(before))


def _counts_epochs_anew(old: pl.DataFrame, new: pl.DataFrame) -> bool:
    """Whether the epochs go back, too: the next one of the same process would be counted on."""
    last, first = old["epoch"][-1], new["epoch"][0]
    return last is not None and first is not None and first < last


def _losses(run: Run, life: Life) -> pl.DataFrame:
    rows = rows_of(run, life, "loss")
    return rows.filter(rows["raw_name"] == life.raw_name)
