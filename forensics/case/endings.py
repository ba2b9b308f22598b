"""How a run ended: by its own end marker, with exit code 0, at the end of its plan, or in a way that nothing records.

Where no plan is told, a learning rate that decayed to nothing with the last step shows it. Only the first three prove
that it finished. A log that stops may have been cut, or its process killed.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from msgspec import Struct

from forensics.case.curves.loss import curves
from forensics.case.end_markers import ends_the_log, last_lines, marks_of
from forensics.case.errors.coded import events_telling
from forensics.case.joined.stores import counted_record_pieces, counted_records
from forensics.case.processes.attempts import attempts
from forensics.case.progress import CLOSE, Counter, is_close, ledger
from forensics.case.series import metric_rows, of_each_source
from forensics.case.steps import at, of_training, rises
from forensics.model import Evidence, EvidenceRole, Locator
from forensics.store.run import Run, derived

#: What a tracker writes of a run that did not end itself.
_BROKEN = frozenset(("FAILED", "KILLED"))
_CODE, _STATUS = "exit code ", "mlflow.status"


class Reach(Struct, frozen=True):
    """How far training came: `done` of `plan` in `unit` (step or epoch); `plan` is None where none is known."""

    done: int | None = None
    plan: int | None = None
    unit: str = "step"
    is_reached: bool = False

    def __str__(self) -> str:
        """`step 55 of 100`, `epoch 3 of 10`, `step 55`: a plan that was passed counts something else."""
        counts_alike = self.plan is not None and (self.done is None or self.done <= self.plan)
        return f"{self.unit} {self.done}" + (f" of {self.plan}" if counts_alike else "")


class Ending(Struct, frozen=True):
    """What says that a run ended, and how far it came.

    `success` is its end marker or its exit code of 0; `status` what a tracker recorded (FINISHED, FAILED, KILLED,
    RUNNING, an exit code that is not 0, or empty); `lacks_exit`: a tracker's file ends without the record that the end
    of a process leaves.
    """

    reach: Reach
    success: Evidence | None = None
    status: str = ""
    lacks_exit: bool = False

    @property
    def is_broken(self) -> bool:
        """Whether a tracker recorded that the run failed or was killed."""
        return self.status in _BROKEN or self.status.startswith(_CODE)


@derived
def ending(run: Run) -> Ending:
    """Say how a run ended."""
    status, lacks_exit = _recorded(run)
    return Ending(_reach(run), _marker(run) or _exit_of_zero(run) or _finished(run), status, lacks_exit)


def _marker(run: Run) -> Evidence | None:
    mark = marks_of(run).final
    if mark is None:
        return None
    where = Locator(line=mark.line, byte=mark.byte)
    return Evidence(mark.source, where, mark.quote, t_ns=mark.t_ns, role=EvidenceRole.CONTRADICTS)


def _exit_of_zero(run: Run) -> Evidence | None:
    """The line that says that the program ended with code 0, if it is at the end of its log."""
    rows = events_telling(run, "ended_with_zero", order=("source", "seq"))
    last = last_lines(run) if rows.height else {}
    for row in reversed(rows.to_dicts()):
        if ends_the_log(row["source"], row["line"], last):
            where = Locator(line=row["line"], byte=row["byte"])
            return Evidence(row["source"], where, row["text"] or "", t_ns=row["t_ns"], role=EvidenceRole.CONTRADICTS)
    return None


def _finished(run: Run) -> Evidence | None:
    for source, line, key, value in _facts_of_exit(run):
        if key == _STATUS and _bare(value) == "FINISHED":
            quote = f"{key} = FINISHED"
            return Evidence(source, Locator(line=line, path=key), quote, role=EvidenceRole.CONTRADICTS)
    return None


def _recorded(run: Run) -> tuple[str, bool]:
    """The word of a tracker on the end of the run, and whether one wrote no exit record."""
    said = [(key, value) for _, _, key, value in _facts_of_exit(run)]
    words = [_bare(value) for key, value in said if key == _STATUS]
    words += [f"{_CODE}{value}" for key, value in said if key.endswith("exit_code") and value not in {None, "0"}]
    return (words[-1] if words else ""), any(key.endswith("exit_record") and value == "false" for key, value in said)


def _bare(value: str | None) -> str:
    return (value or "").strip('"')


@derived
def _facts_of_exit(run: Run) -> list[tuple[str, int | None, str, str | None]]:
    """Source, line, key and value of the facts that tell of an end."""
    facts = run.scan("facts").filter((pl.col("family") == "exit") & pl.col("key").is_not_null())
    return facts.select("source", "line", "key", "value").collect().rows() if "facts" in run.frames else []


def _reach(run: Run) -> Reach:
    """The furthest of all counters of training; one that is at its end decides, whatever else was counted later.

    A bar that is drawn at each epoch's begin alone never moved: whatever did comes before it.
    """
    ways = sorted([*_by_counters(run), *_by_plans(run)], key=lambda way: way.done == 0)
    reached = next((way for way in ways if way.is_reached), None)
    if reached is not None:
        return reached
    return next((way for way in ways if way.plan is not None), None) or Reach(
        _steps(run)[1], is_reached=_schedule_is_over(run)
    )


#: A decay by a line or a cosine to this share of the peak has at most 0.7 % of its way left, and half of the way from
#: the peak it was at this share or more: one by steps or by powers of ten has no end.
_OVER, _HALFWAY = 1e-4, 0.25
#: Records in which a rate went down, of a schedule that is seen.
_WAY = 10


def _schedule_is_over(run: Run) -> bool:
    """Whether the learning rate reached the end of a decay with the last step: a schedule is as long as its plan."""
    for curve in curves(run, "lr"):
        if len(curve) <= _WAY or curve.step(-1) != _steps(run)[1] or curve.ends_nonfinite:
            continue
        values = curve.values
        way = values[int(values.argmax()) :]
        falls = way[:-1] - way[1:]
        if (falls > 0).sum() < _WAY or falls.min() < 0 or falls[-1] == 0:
            continue
        if way[-1] <= _OVER * way[0] and way[len(way) // 2] >= _HALFWAY * way[0]:
            return True
    return False


def _by_counters(run: Run) -> Iterator[Reach]:
    """Counters of steps that run once from the beginning, and of epochs whose last one is complete."""
    found = ledger(run)
    steps = [c for c in found.of("train", "step") if c.passes == 1]
    for one in sorted(steps, key=lambda c: -c.plan):
        if one.done is not None:
            yield Reach(one.done, one.plan, "step", one.is_reached)
    batches = found.of("train", "batch")
    for one in found.of("train", "epoch"):
        if one.done is not None:
            whole = _is_whole(run, one, [b for b in batches if (b.source, b.rank) == (one.source, one.rank)])
            yield Reach(one.done, one.plan, "epoch", one.done >= one.last and whole)


def _is_whole(run: Run, epoch: Counter, batches: list[Counter]) -> bool:
    """Whether the last epoch was finished: its batches did, or it left as many records as the one before.

    A line that sums an epoch up follows its batches, with those of an evaluation between: they ran once for each epoch.
    """
    if batches:
        begun = None if epoch.done is None or epoch.first is None else epoch.done - epoch.first + 1
        return any(b.is_reached and (b.seq >= epoch.seq - 1 or b.passes == begun) for b in batches)
    return _last_epoch_is_full(run) or _has_all_records(run, epoch)


def _has_all_records(run: Run, epoch: Counter) -> bool:
    """Whether a heading alone counts the epochs, and as many records stand below the last one as below the one before.

    Those of evaluations count, too: the last of them ends an epoch.
    """
    if _epochs(run) is not None or epoch.done is None or _steps(run)[1] != epoch.done:
        return False
    rows = run.scan("metrics").filter(pl.col("source").cast(pl.String) == epoch.source)
    last = rows.filter(
        pl.col("attempt").fill_null(0) == pl.col("attempt").fill_null(0).max(),
        pl.col("step").is_in([epoch.done - 1, epoch.done]),
    )
    counts = last.group_by("step").agg(records=pl.col("seq").n_unique()).sort("step").collect()["records"].to_list()
    return len(counts) == 2 and counts[1] >= counts[0]


def _by_plans(run: Run) -> Iterator[Reach]:
    """The records against the plan that lines or settings tell, in steps where both are."""
    step = _steps(run)[1]
    steps, epochs = ledger(run).planned("step"), ledger(run).planned("epoch")
    if step is not None and steps is not None:
        yield _against(run, step, steps)
    elif epochs is not None:
        yield from _by_epochs(run, epochs)
        yield from _one_each(run, epochs)


def _one_each(run: Run, plan: int) -> Iterator[Reach]:
    """Records that name no epoch and count by ones to a plan of epochs, neither short of it nor beyond: one each."""
    first, last, every = _steps(run)
    if _epochs(run) is None and every == 1 and first in {0, 1} and last == plan - (first == 0):
        yield Reach(plan, plan, "epoch", is_reached=True)


def _against(run: Run, step: int, plan: int) -> Reach:
    """The steps of the records against a plan from elsewhere; a loop from 0 ends one before it."""
    first, _, every = _steps(run)
    last = plan - (first == 0)
    return Reach(step, plan, "step", step >= plan - 1 or is_close(step, last, every))


def _by_epochs(run: Run, plan: int) -> Iterator[Reach]:
    epochs = _epochs(run)
    if epochs is None:
        return
    first, last, whole = epochs
    if not whole:
        yield Reach(int(last), plan, "epoch", last >= plan * (1 - CLOSE / 10))
        return
    yield Reach(int(last), plan, "epoch", last >= plan - (first == 0) and _last_epoch_is_full(run))


def _epochs(run: Run) -> tuple[float, float, bool] | None:
    """The first and the last epoch of the records, and whether all are whole numbers."""
    epoch = pl.col("epoch").filter(pl.col("epoch").is_finite())
    row = counted_records(run).select(
        epoch.min().alias("a"), epoch.max().alias("b"), (epoch == epoch.floor()).all().alias("w")
    )
    a, b, whole = row.collect().row(0)
    return None if a is None or b is None else (a, b, bool(whole))


def _last_epoch_is_full(run: Run) -> bool:
    """Whether the last epoch left no fewer training records than the one before it."""
    rows = (
        metric_rows(run, of_training())
        .filter(pl.col("epoch").is_not_null())
        .group_by("source", pl.col("epoch").floor())
        .agg(records=pl.col("seq").n_unique())
        .sort("source", "epoch")
        .group_by("source", maintain_order=True)
        .agg(pl.col("records").tail(2))
        .collect()
    )
    return any(len(r) == 2 and r[1] >= r[0] for r in rows["records"].to_list())


@derived
def _steps(run: Run) -> tuple[int | None, int | None, int]:
    """The first and the last step of the last attempt's training records, and the usual distance of two."""
    rows = of_each_source(run, *map(_trained, counted_record_pieces(run, inner=False)), same=("at", "attempt"))
    if not rows:
        return None, None, 0
    furthest = max(map(_of_last_attempt, rows.values()), key=lambda steps: int(str(steps.max())))
    furthest = furthest if rises(furthest) else furthest.unique().sort()
    gaps = furthest.cast(pl.Int64).diff().drop_nulls()
    every = gaps.median() if gaps.len() else None
    return int(furthest[0]), int(furthest[-1]), int(every) if isinstance(every, float) else 0


def _trained(records: pl.LazyFrame) -> pl.LazyFrame:
    return records.filter(pl.col("trains") & at().is_not_null()).select("source", pl.col("attempt").fill_null(0), at())


def _of_last_attempt(rows: pl.DataFrame) -> pl.Series:
    tried, last = rows["attempt"], rows["attempt"].max()
    return rows["at"] if tried.min() == last else rows.filter(tried == last)["at"]


def loop_words(run: Run) -> str:
    """Say that attempts died where the judged one did, and from which checkpoint all went on; empty where none did."""
    loop = attempts(run).loop
    if not loop:
        return ""
    steps = {one.start.step for one in loop if one.start is not None}
    only = steps.pop() if len(steps) == 1 else None
    return f"{len(loop)} attempts died at step {loop[-1].last}" + (
        "" if only is None else f" from the checkpoint of step {only}"
    )
