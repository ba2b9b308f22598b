"""A training loss that stops moving: early, or to the last digit."""

from __future__ import annotations

from math import exp, log

from forensics.analyses.learning.causes import reason_of
from forensics.analyses.learning.levels import Levels, from_the_start
from forensics.analyses.learning.losses import losses
from forensics.analyses.learning.lr_config import configured
from forensics.analyses.learning.lr_schedule import Schedule, schedule_beside
from forensics.analyses.learning.objective import ADAPTER, FULL, improved, regime_of, reinforced
from forensics.analyses.learning.parts import parts_of
from forensics.analyses.learning.still import Frozen, Still, still_of
from forensics.case.curves.loss import Curve
from forensics.case.series import holding
from forensics.knowledge.ranges import range_of
from forensics.rules.kit import Finding, Findings, Run, Struct, fact_evidence, number, onset_at, proof, rule


class Plateau(Struct, frozen=True):
    """Thresholds of LRN006: shares of records, of the peak learning rate and of ln(vocabulary); falls are relative."""

    records: int = 24
    early: float = 0.3
    least_fall: float = 0.01
    sigmas: float = 2.33
    lr_up: float = 0.5
    shown: float = 0.25
    high: float = 0.55
    uniform: float = 0.98


#: When other rules call a loss settled.
PLATEAU = Plateau()


@rule("LRN006 early-plateau", "metrics facts", cause="plateau", causal="symptom")
def early_plateau(run: Run, cfg: Plateau) -> Findings:
    """Find the first training loss that settled early."""
    if reinforced(run):
        return
    for one in losses(run):
        curve, levels = one.curve, one.levels
        if levels is None or curve.ends_nonfinite or not is_plateau(curve, levels, cfg):
            continue
        schedule = schedule_beside(run, curve)
        if schedule is None or not _is_up(schedule, levels, cfg) or improved(run, curve, len(curve) // 2):
            continue
        yield _finding(run, curve, levels, schedule, cfg)
        return


def _is_up(schedule: Schedule, levels: Levels, cfg: Plateau) -> bool:
    """Whether the rate was up for long enough behind the place where the loss settled."""
    v = schedule.curve.values
    late = v[min(len(v), int(levels.settled * len(v) / max(levels.records, 1))) :]
    return int((late >= cfg.lr_up * schedule.peak).sum()) >= max(cfg.shown * len(v), 1) and schedule.peak > 0


def is_plateau(curve: Curve, levels: Levels, cfg: Plateau) -> bool:
    """Whether a loss fell, and then stayed at one level from early on."""
    bound = max(cfg.sigmas * levels.late_error, -log(1 - cfg.least_fall))
    return (
        levels.records >= cfg.records
        and from_the_start(curve)
        and 0 < levels.settled < cfg.early * len(curve)
        and levels.fall > 3 * levels.fall_error
        and abs(levels.late_fall) < min(bound, 0.05)
    )


def _finding(run: Run, curve: Curve, levels: Levels, schedule: Schedule, cfg: Plateau) -> Finding:
    vocab, chat = configured(run, "vocabulary"), range_of("chat_loss")
    size = vocab.number if vocab is not None else None
    uniform = log(size) if size is not None and size > 1 else None
    tuned = regime_of(run) in {ADAPTER, FULL}
    high, lost = tuned and levels.last > chat.hi, tuned and levels.last > range_of("finetune_loss").hi
    high |= uniform is not None and cfg.high * uniform < levels.last < cfg.uniform * uniform
    reason = reason_of(run, schedule) if high else None
    first = curve.row(levels.settled)
    level = f"; ln(vocabulary) is {number(uniform)}" if uniform is not None else ""
    level += f"; chat data give {chat.healthy}" if tuned else ""
    why = f"; {reason.words}" if reason is not None else ""
    fact = fact_evidence(vocab.row) if vocab is not None else None
    return early_plateau.finding(
        f"{curve.raw_name} stayed at {number(levels.last)} from {curve.where(levels.settled)} on,"
        " with the learning rate up",
        f"over the last half it fell by {levels.late_fall:.2%} ± {levels.late_error:.2%}{level}{why}",
        proof(first, curve.row(-1), reason.evidence if reason is not None else fact),
        severity="warning" if high else "info",
        confidence="medium" if high else "low",
        cause=reason.cause if reason is not None else "finetune_loss_high" if lost else "plateau",
        causal="symptom" if reason is None else "root",
        numbers={"level": levels.last, "late_fall": levels.late_fall, "error": levels.late_error},
    )


#: The largest loss in nats that a uniform answer costs: over a million classes.
_UNIFORM = 14.0


@rule("LRN014 frozen-loss", "metrics")
def frozen_loss(run: Run, cfg: Frozen) -> Findings:
    """Find the loss that does not move."""
    still = None if reinforced(run) else still_of(run, cfg)
    if still is None:
        yield from _frozen_parts(run, cfg)
        return
    curve, first = still.loss.curve, still.loss.curve.row(still.left)
    proved = still.idle is not None or still.how == "stuck" or still.count >= cfg.many
    sure = proved and still.how not in {"froze", "vanished"}
    is_zero = still.how in {"masked", "vanished"}
    yield frozen_loss.finding(
        _title(still),
        _because(still),
        proof(
            first,
            curve.row(0) if still.left else None,
            curve.row(-1),
            still.idle.row(-1) if still.idle is not None else None,
        ),
        severity="error" if sure else "warning",
        confidence="high" if sure and still.how != "stuck" else "medium",
        cause="loss_zero" if is_zero else "loss_died" if still.left else "frozen_loss",
        numbers={"value": still.value, "records": still.count},
    )


def _frozen_parts(run: Run, cfg: Frozen) -> Findings:
    """Find losses of two players that all keep one value; where all are zero, a policy's are so by construction."""
    parts = parts_of(run, holding(run, "of_loss"), cfg.many) if reinforced(run) else []
    values = {value for one in parts for value in one["value"].unique()}
    if not 1 < len(values) == len(parts):
        return
    first, last, count = parts[0].row(0, named=True), parts[0].row(-1, named=True), min(one.height for one in parts)
    told = ", ".join(f"{one['raw_name'][0]} {number(float(one['value'][0]))}" for one in parts[:3])
    yield frozen_loss.finding(
        f"no loss changes in {count} records: {told}",
        "batches differ, so a loss should",
        proof(first, *(one.row(-1, named=True) for one in parts[1:3]), last),
        onset_at(first),
        severity="warning",
        confidence="medium",
        cause="frozen_loss",
        numbers={"records": count},
    )


def _title(still: Still) -> str:
    curve, value = still.loss.curve, number(still.value)
    if still.how in {"masked", "frozen"}:
        return f"{curve.raw_name} is {value} in every one of {still.count} records"
    if still.how == "stuck":
        return f"{curve.raw_name} is frozen: {number(float(curve.values.min()))} → {value}"
    if still.how == "vanished":
        before = number(float(curve.values[still.start - 1]))
        return f"{curve.raw_name} is exactly 0 in its last {still.count} records; before them it was {before}"
    began = number(float(curve.values[0]))
    return f"{curve.raw_name} froze at {value} for its last {still.count} records; it began at {began}"


def _because(still: Still) -> str:
    if still.how == "stuck" and 1 < still.value < _UNIFORM:
        classes = round(exp(still.value))
        return f"every later record is the same; ln({classes}) is what a uniform answer over that many classes costs"
    if still.idle is not None:
        return f"{still.idle.raw_name} is zero throughout"
    if still.how in {"masked", "vanished"}:
        return "nothing is learned from a loss of zero"
    return "batches differ, so a loss should"
