"""Matches of one dialect to rows of the store: steps filled in, restarts counted, metrics laid out long."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct, field

from forensics.dialects import _counters
from forensics.dialects._match import Batch
from forensics.dialects.names import canonical
from forensics.dialects.spec import Dialect
from forensics.io.columns import as_column
from forensics.knowledge.vocabulary import stands_for, words_for
from forensics.stats.spread import each_once

CHECKPOINTS = ("saved", "committed", "removed", "resumed")
_I64, _I32, _F64, _STR = pl.Int64(), pl.Int32(), pl.Float64(), pl.String()
_PLACE = {"seq": _I64, "line": _I64}
_OWNER = {"attempt": _I32, "rank": _I64} | _PLACE | {"byte": _I64, "step": _I64, "epoch": _F64, "t_ns": _I64}
_METRICS = _OWNER | {"raw_name": _STR, "name": _STR, "value": _F64}
_CHECKPOINTS = _PLACE | {"step": _I64, "path": _STR, "t_ns": _I64, "attempt": _I32, "kind": _STR}
_EVENT_ROWS = _PLACE | {
    "byte": _I64,
    "t_ns": _I64,
    "rank": _I64,
    "step": _I64,
    "text": _STR,
    "code": _STR,
    "attrs": _STR,
}
_EVENTS = {"started": "context", "ended": "benign", "overflow": "context", "nan": "symptom"}
_CONTEXT_ROWS = 256


# Restarts: a training stream whose step goes back begins the next attempt.

Ints = npt.NDArray[np.int64]
#: Share of repeated steps from which a stream is taken for several ranks that print without a prefix.
_CROWD = 0.2
_WINDOW = 32
#: So many steps of a stream decide on the next one.
RECENT = _WINDOW + 1


class Stream(Struct):
    """What is remembered of one stream (dialect, rank) from block to block; `first` are its first steps, from `at` on.

    `at` is the number (`seq`) of the segment that has the first of them.
    """

    restarts: int = 0
    kind: int | None = None
    recent: list[int] = field(default_factory=list[int])
    first: list[int] = field(default_factory=list[int])
    at: int | None = None


def restarts(steps: Ints, before: list[int]) -> npt.NDArray[np.bool_]:
    """Which records begin a new attempt: the step is below the one before (`before`: earlier steps of the stream).

    Where several ranks write into one stream without a prefix, steps repeat among the 32 records before, and one that
    lags by at most two typical increments is a slow neighbour, not a restart.
    """
    joined = np.concatenate([np.asarray(before, np.int64), steps])
    deltas = np.diff(joined)
    back = deltas < 0
    if back.any():
        at = np.arange(len(deltas))
        low = np.maximum(at - _WINDOW, 0)
        repeated = _within(deltas == 0, low, at)
        forward = _within(deltas > 0, low, at)
        gained = _within(np.maximum(deltas, 0), low, at)
        typical = np.maximum(gained / np.maximum(forward, 1), 1)
        crowd = (at > low) & (repeated >= _CROWD * (at - low))
        back &= ~(crowd & (-deltas <= 2 * typical))
    first = np.zeros(min(1, len(joined)), np.bool_)
    return np.concatenate([first, back])[len(before) :]


def _within(values: npt.NDArray[np.generic], low: Ints, high: Ints) -> Ints:
    """Sums of `values[low:high]` for each pair of bounds."""
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)])
    return total[high] - total[low]


def recent(before: Sequence[int], steps: Sequence[int]) -> list[int]:
    """The steps that decide whether the next one is a restart."""
    return [*before, *steps][-RECENT:]


def advance(stream: Stream, steps: Ints) -> Ints:
    """Attempt number of each record of a stream, in order; the stream remembers where it stood."""
    numbers = stream.restarts + np.cumsum(restarts(steps, stream.recent))
    if len(steps):
        stream.restarts = int(numbers[-1])
        stream.recent = recent(stream.recent, steps[-RECENT:].tolist())
        stream.first += steps[: RECENT - len(stream.first)].tolist()
    return numbers.astype(np.int64)


class Memory(Struct):
    """What one dialect remembers of a file from chunk to chunk."""

    streams: dict[int, Stream] = field(default_factory=dict[int, Stream])
    starts: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    before: pl.DataFrame | None = None


def empty() -> dict[str, pl.DataFrame]:
    """The tables without rows."""
    schemas = {"metrics": _METRICS, "checkpoints": _CHECKPOINTS, "events": _EVENT_ROWS}
    tables = {name: pl.DataFrame(schema=schema) for name, schema in schemas.items()}
    return tables | {"progress": _counters.empty()}


def needs_whole_file(dialect: Dialect) -> bool:
    """Whether steps depend on other lines, so that matches are held back and resolved together."""
    return dialect.finish is not None or any(line.carry or line.meaning == "progress" for line in dialect.lines)


def assemble(dialect: Dialect, batches: Sequence[Batch], memory: Memory) -> dict[str, pl.DataFrame]:
    """Tables metrics, checkpoints, events and progress of matches in hand, in order of `seq`; some are left out."""
    if not batches:
        return {}
    meanings = [line.meaning for line in dialect.lines]
    flat = pl.concat(b.meta.hstack(_kind_of(b, meanings[b.kind])) for b in batches).with_row_index("at")
    in_order = bool((np.diff(flat["seq"].to_numpy()) > 0).all())
    ordered = flat if in_order else flat.sort("seq", "kind", maintain_order=True)
    ordered = _with_attempts(_with_steps(dialect, ordered, memory), memory)
    tables = {
        "metrics": _metrics(ordered if in_order else ordered.sort("at"), batches),
        "progress": _counters.rows_of(ordered, dialect.name),
    }
    said = {meanings[b.kind] for b in batches}
    if not said.isdisjoint(CHECKPOINTS):
        tables["checkpoints"] = _checkpoints(ordered)
    if not said.isdisjoint(_EVENTS):
        tables["events"] = _events(dialect, ordered)
    return tables


def _kind_of(batch: Batch, meaning: str) -> list[pl.Series]:
    kind, meant = pl.Series("kind", [batch.kind], dtype=pl.Int32), pl.Series("meaning", [meaning], dtype=pl.String)
    return [one.new_from_index(0, batch.meta.height) for one in (kind, meant)]


def _with_steps(dialect: Dialect, frame: pl.DataFrame, memory: Memory) -> pl.DataFrame:
    if not needs_whole_file(dialect):
        return frame
    joined = frame
    if memory.before is not None:
        before = memory.before.with_columns(at=pl.lit(None, dtype=frame["at"].dtype))
        joined = pl.concat([before, frame], how="diagonal")
    if any(line.meaning == "section" for line in dialect.lines):
        joined = _with_sections(joined)
    carried = [k for k, line in enumerate(dialect.lines) if line.carry]
    nearest = pl.col("step").forward_fill()
    if carried:
        without = pl.col("step").is_null() & pl.col("kind").is_in(carried)
        joined = joined.with_columns(step=pl.when(without).then(nearest).otherwise(pl.col("step")))
    if dialect.finish is not None:
        finished = dialect.finish(joined)
        joined = joined if finished is frame else _finished(joined, finished)
    elif any(line.meaning == "progress" for line in dialect.lines):
        joined = joined.with_columns(
            step=pl.when(pl.col("meaning") == "metrics").then(pl.coalesce("step", nearest)).otherwise(pl.col("step"))
        )
    fresh = joined if memory.before is None else joined.filter(pl.col("at").is_not_null())
    memory.before = joined.tail(_CONTEXT_ROWS)
    return fresh


#: One title of training may head a whole run.
_FEWEST_TITLES = 2


def _with_sections(joined: pl.DataFrame) -> pl.DataFrame:
    """Add `held_out`: whether a row is below the title of an evaluation, before what trains or counts again.

    Where what trains has its titles, too, these alone part them, and an evaluation may count its batches.
    """
    earlier = pl.col("held_out") if "held_out" in joined.columns else pl.lit(None, dtype=pl.Boolean())
    is_title, counts = pl.col("meaning") == "section", pl.any_horizontal(pl.col("step", "iter", "epoch").is_not_null())
    opens = pl.col("text").str.contains(words_for("title_of_evaluation"))
    ours = joined.select(trains=(is_title & ~opens).sum(), evaluates=(is_title & opens).sum()).row(0)
    counts &= ours[0] < max(ours[1] - 1, _FEWEST_TITLES)
    told = (
        pl.when(earlier.is_not_null()).then(earlier).when(is_title).then(opens).when(counts).then(pl.lit(value=False))
    )
    return joined.with_columns(held_out=told.forward_fill().over("rank").fill_null(value=False))


def _finished(joined: pl.DataFrame, finished: pl.DataFrame) -> pl.DataFrame:
    """Give the rows their finished steps; those of the chunk before have no number `at`, and lose theirs."""
    rises = bool((np.diff(joined["seq"].to_numpy()) > 0).all())
    if rises and finished["at"].equals(joined["at"], null_equal=True):
        step, old = finished["step"], joined["at"].is_null()
        return joined.with_columns(step=step.set(old, None) if old.any() else step)
    steps = finished.select("at", "step")
    return joined.drop("step").join(steps, on="at", how="left").sort("seq", "kind", maintain_order=True)


def _filled(column: pl.Series, value: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Whole numbers with `value` where there is none, and where there is one."""
    missing = column.null_count()
    if missing == len(column):
        return np.full(len(column), value, np.int64), np.zeros(len(column), np.bool_)
    there = column.is_not_null().to_numpy() if missing else np.ones(len(column), np.bool_)
    return (column.fill_null(value) if missing else column).to_numpy(), there


def _with_attempts(frame: pl.DataFrame, memory: Memory) -> pl.DataFrame:
    """Add `attempt`: restarts of the busiest kind of metrics line, per rank, laid over all its lines by position.

    Of two kinds as busy, as lines of training and of validation are, the one that comes first in an epoch tells.
    """
    attempt = np.zeros(frame.height, np.int64)
    seqs = frame["seq"].to_numpy()
    ranks, _ = _filled(frame["rank"], -1)
    kinds, (steps, printed) = frame["kind"].to_numpy(), _filled(frame["step"], 0)
    metric = (frame["meaning"] == "metrics").to_numpy() & printed
    if "held_out" in frame.columns:
        metric &= ~frame["held_out"].to_numpy()
    for rank in each_once(ranks):
        mine = ranks == rank
        stream = memory.streams.setdefault(int(rank), Stream())
        starts = memory.starts.setdefault(int(rank), [])
        own = mine & metric
        if stream.kind is None and own.any():
            values, first, counts = np.unique(kinds[own], return_index=True, return_counts=True)
            stream.kind = int(values[np.lexsort((first, -counts))[0]])
        own &= kinds == (-1 if stream.kind is None else stream.kind)
        if stream.at is None and own.any():
            stream.at = int(seqs[own][0])
        numbers = advance(stream, steps[own])
        fresh = np.flatnonzero(np.diff(numbers, prepend=len(starts)))
        starts.extend(seqs[own][fresh].tolist())
        attempt[mine] = np.searchsorted(np.asarray(starts, np.int64), seqs[mine], side="right")
    return frame.hstack([as_column(attempt, "attempt").cast(pl.Int32)])


def _metrics(flat: pl.DataFrame, batches: Sequence[Batch]) -> pl.DataFrame:
    parts: list[pl.DataFrame] = []
    base = 0
    kept = [*_OWNER, *({"held_out"} & {*flat.columns})]
    places = pl.DataFrame([flat.get_column(name) for name in kept])  # no query: most files are small
    for batch in batches:
        if batch.values is not None and batch.values.height:
            row, *told = batch.values
            parts.append(places[(row + base).cast(pl.UInt32)].hstack(told))
        base += batch.meta.height
    if not parts:
        return pl.DataFrame(schema=_METRICS)
    rows = parts[0] if len(parts) == 1 else pl.concat(parts)
    rows = _of_evaluations(rows) if "held_out" in rows.columns else rows
    return rows if rows["seq"].is_sorted() else rows.sort("seq", maintain_order=True)


def _of_evaluations(rows: pl.DataFrame) -> pl.DataFrame:
    """Give metrics below the title of an evaluation the names of held-out ones."""
    own = rows.filter("held_out")["name"].unique()
    measured = [name for name in own if stands_for("printed_metric", name) and not stands_for("printed_rate", name)]
    held = {name: canonical(f"val {name}").canonical for name in measured if not stands_for("held_out_word", name)}
    name = pl.when("held_out").then(pl.col("name").replace(held)).otherwise("name")
    return rows.with_columns(name=name).drop("held_out")


def _checkpoints(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.col("meaning").is_in(CHECKPOINTS)).select(
        "seq", "line", "step", "path", "t_ns", "attempt", kind=pl.col("meaning")
    )


def _events(dialect: Dialect, frame: pl.DataFrame) -> pl.DataFrame:
    found = frame.filter(pl.col("meaning").is_in(list(_EVENTS)))
    role = pl.col("meaning").replace_strict(_EVENTS, default="context", return_dtype=pl.String)
    shape = pl.when(pl.col("meaning").is_in(["nan", "overflow"])).then(pl.lit("nan")).otherwise(pl.lit(""))
    head = pl.concat_str(pl.lit('{"role":"'), role, pl.lit('","shape":"'), shape, pl.lit('"'))
    said = (
        pl.when(pl.col("said").is_null() | (pl.col("said") == "{}"))
        .then(pl.lit("}"))
        .otherwise(pl.concat_str(pl.lit(","), pl.col("said").str.slice(1)))
    )
    return found.select(
        "seq",
        "line",
        "byte",
        "t_ns",
        "rank",
        "step",
        "text",
        code=pl.concat_str(pl.lit(dialect.name + "."), pl.col("meaning")),
        attrs=pl.concat_str(head, said),
    )
