"""The place where a run went non-finite, the events before it, and the checkpoint to start again from."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Literal, cast

import polars as pl
from msgspec import Struct

from forensics.analyses.nan.kind import (
    Kind,
    Precursor,
    climbed_from,
    kind_of,
    lost_from,
    resumed_from,
    scale_fell_first,
)
from forensics.analyses.nan.onset import NanOnset, nan_onset
from forensics.analyses.nan.scale import Collapse, collapse_of, overflows
from forensics.analyses.nan.series import Status
from forensics.case.checkpoints import Doubt, judged, known
from forensics.case.epochs import epoch_scale
from forensics.case.evidence import Row, checkpoint_evidence, event_evidence, metric_evidence
from forensics.case.restart import restart_command
from forensics.case.series import metric_rows
from forensics.case.steps import at
from forensics.case.trainers import trainers, trainers_by_source
from forensics.model import Checkpoint, Evidence, EvidenceRole
from forensics.store.run import Run, derived
from forensics.values import replace

KindName = Literal[
    "optimization_blowup", "data_or_numerics", "loss_scale_collapse", "from_start", "from_resume",
    "filtered_by_writer", "none", "unknown",
]  # fmt: skip

#: The step of the first bad record, and that of the last clean one.
_Places = tuple[int | None, int | None]
#: A line about a step follows its record, or comes before it, by this many lines at most.
_BESIDE = 5
NO_STEP = "no step of the first bad record is known to compare it with"
_FINITE_NORM = "the gradient norm of its own step is finite"


class JudgedCheckpoint(Struct, frozen=True):
    """A checkpoint and whether it may be used: `clean`, `unknown`, `dirty`, `removed` or `incomplete`, and why."""

    step: int
    path: str | None
    state: str
    why: str


class Rise(Struct, frozen=True):
    """A metric that rose before the first bad step, the begin of its rise, and its ratio to its past."""

    metric: str
    step: int | None
    ratio: float


class NanOrigin(Struct, frozen=True):
    """The answer to `forensics nan-origin`; the bracket is (last_clean_step, first_bad_step].

    `kind` is `none` when every value is finite, or training went on after a stumble. It is `unknown` with a first bad
    metric when nothing tells what came before, and without one when no metric was recognised at all.
    """

    kind: KindName
    first_bad_step: int | None = None
    first_bad_metric: str | None = None
    last_clean_step: int | None = None
    last_clean_checkpoint: Checkpoint | None = None
    precursor: Rise | None = None
    restart: str | None = None
    checkpoints: tuple[JudgedCheckpoint, ...] = ()
    evidence: tuple[Evidence, ...] = ()


@derived
def origin(run: Run) -> NanOrigin:
    """Find the origin of the NaN of the attempt that counts."""
    found, collapse = nan_onset(run), collapse_of(run)
    if found is not None:  # a later attempt that trains on is judged, and not the earlier one
        stumbled = found.status is Status.TRANSIENT
        if found.status is Status.EARLIER or (stumbled and collapse is None):
            return NanOrigin("none", found.step, found.metric, found.clean_step, evidence=found.evidence())
        if not stumbled and not scale_fell_first(found, collapse):
            return _with_checkpoints(run, found, kind_of(run), collapse)
    if collapse is not None:
        return _collapsed(run, collapse)
    nothing = run.scan("metrics").head(1).collect().is_empty()
    return NanOrigin("unknown" if nothing else "none")


def _with_checkpoints(run: Run, found: NanOnset, kind: Kind, collapse: Collapse | None) -> NanOrigin:
    rise = kind.precursor
    clean, loaded = found.clean_step, resumed_from(run, found)
    doubt = min(_doubts(run, found, rise), key=lambda one: one.step, default=None)
    if doubt is None and loaded is not None and loaded.step is not None:
        doubt = Doubt(loaded.step, "no record is finite after it was loaded", never=True)
        clean = loaded.step - 1 if clean is None else clean
    risen = () if rise is None else (metric_evidence(rise.row),)
    fallen = collapse.evidence if collapse is not None and kind.name == "loss_scale_collapse" else ()
    answer = NanOrigin(
        cast("KindName", kind.name),
        found.step,
        found.metric,
        found.clean_step,
        precursor=None if rise is None else Rise(rise.metric, rise.step, rise.ratio),
        evidence=(*found.evidence(), *risen, *fallen),
    )
    return _from_a_checkpoint(run, answer, _placed(run, found, clean), proof=_proof_of_update(run, found), doubt=doubt)


def _doubts(run: Run, found: NanOnset, rise: Precursor | None) -> Iterator[Doubt]:
    """Give the steps from which on a checkpoint may hold what went wrong."""
    if (lost := lost_from(run, found)) is not None:
        yield Doubt(lost, f"saved while every loss was over twice the first, from step {lost} on", never=True)
    if (climbed := climbed_from(run, found)) is not None:
        yield Doubt(climbed, f"saved after the loss began to rise at step {climbed}", never=True)
    if rise is not None and rise.step is not None:
        yield Doubt(rise.step, f"saved after a rise began at step {rise.step}")


def _placed(run: Run, found: NanOnset, clean: int | None) -> _Places:
    """Give the steps of the first bad record and of the last clean one: by their epochs where they number none."""
    if found.step is not None:
        return found.step, clean
    scale, bad, good = epoch_scale(run), _epoch(found.first.row), _epoch(found.clean)
    if scale is None or bad is None:
        return None, clean
    first = scale.first_of(bad)
    return first, min(first - 1, scale.first_of(good)) if clean is None and good is not None else clean


def _epoch(row: Row | None) -> float | None:
    epoch = None if row is None else row.get("epoch")
    return epoch if isinstance(epoch, float) and isfinite(epoch) else None


def _collapsed(run: Run, collapse: Collapse) -> NanOrigin:
    """A loss scale that collapsed without any NaN being printed."""
    steps = metric_rows(run, pl.col("name") == "loss").filter(pl.col("value").is_finite()).select(at())
    before = steps.filter(pl.col("at") < collapse.step).max().collect().item() if collapse.step is not None else None
    clean = int(before) if before is not None else None
    answer = NanOrigin("loss_scale_collapse", collapse.step, "loss_scale", clean, evidence=collapse.evidence)
    return _from_a_checkpoint(run, answer, (collapse.step, clean), proof=_FINITE_NORM)


def _from_a_checkpoint(
    run: Run, answer: NanOrigin, places: _Places, *, proof: str, doubt: Doubt | None = None
) -> NanOrigin:
    """Judge every known checkpoint and add the last clean one; one that is doubted only where `doubt` lets it pass."""
    rows, (first, clean) = known(run), places
    if rows.is_empty():
        return answer
    if first is None:
        states = rows.with_columns(state=pl.lit("unknown"), why=pl.lit(NO_STEP))
    else:
        states = judged(rows, first_bad=first, last_clean=clean, proof=proof, doubt=doubt)
    every = tuple(JudgedCheckpoint(**r) for r in states.select("step", "path", "state", "why").iter_rows(named=True))
    usable = [c for c in every if c.state == "clean"]
    doubted = [c for c in every if c.state == "unknown" and clean is not None and c.step <= clean]
    usable = usable or [c for c in doubted if doubt is None or not doubt.never or c.step < doubt.step]
    if not usable:
        return replace(answer, checkpoints=every)
    best = usable[-1]
    rows = rows.filter(pl.col("step") == best.step)
    return replace(
        answer,
        last_clean_checkpoint=Checkpoint(best.step, best.path),
        restart=restart_command(trainers(run), best.step, best.path),
        checkpoints=every,
        evidence=(*answer.evidence, *(checkpoint_evidence(row) for row in rows.iter_rows(named=True))),
    )


def _proof_of_update(run: Run, found: NanOnset) -> str:
    """Why the update of the last clean step was finite, empty where nothing says so."""
    if found.clean_step is None:
        return ""
    norms = found.rows.filter((pl.col("role") == "grad_norm") & (pl.col("at") == found.clean_step))
    return _FINITE_NORM if len(norms) and not norms["bad"].any() else _skips(run, found, "gradient")


class Skip(Struct, frozen=True):
    """Why the update of a bad step was not made: words for a sentence, and the line that says it where one does."""

    words: str
    line: Evidence | None = None


def skip_of(run: Run, found: NanOnset) -> Skip | None:
    """Tell from a line beside the first bad record, else from the trainer; None where nothing says so."""
    row = found.first.row
    said = overflows(run).filter(pl.col("source") == row["source"])
    near = said.filter((pl.col("line") - (row["line"] or 0)).abs() <= _BESIDE) if row["line"] is not None else said
    if not near.is_empty():
        line = event_evidence(near.row(0, named=True), EvidenceRole.RELATED)
        return Skip("the log says that its update was skipped", line)
    known = _skips(run, found, "gradient" if found.first.role == "grad_norm" else "loss")
    return Skip(known) if known else None


def _skips(run: Run, found: NanOnset, what: str) -> str:
    """Name the trainer of the first bad place, where it skips an update whose loss or gradient is not finite."""
    wrote = trainers_by_source(run).get(str(found.first.row["source"]), ())
    known = next((one for one in wrote if one.nan.skips == what), None)
    return "" if known is None else f"{known.title} skips an update whose {what} is not finite"
