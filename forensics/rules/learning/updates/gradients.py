"""Gradient norms: zero, vanishing, or growing."""

from __future__ import annotations

from math import log

import numpy as np

from forensics.analyses.learning.losses import Loss, loss_beside
from forensics.analyses.learning.objective import improved, reinforced
from forensics.analyses.rl.series import lacks_advantage
from forensics.case.curves.loss import Curve, beside, curves
from forensics.rules.kit import Finding, Findings, Run, Struct, at_step, number, onset_at, proof, rule
from forensics.rules.learning.flat import FLAT, is_flat
from forensics.stats.correlation import noise_about
from forensics.stats.running import centred_median, logs, ratio_of
from forensics.stats.spread import behind_last, median_of


class ZeroNorm(Struct, frozen=True):
    """Thresholds of LRN011: the share of zeros, and the fewest records, also of those at the end that are all zero."""

    records: int = 20
    always: float = 0.95
    falls: float = 0.05


@rule("LRN011 zero-gradnorm", "metrics", severity="error", confidence="high", cause="no_gradients")
def zero_gradnorm(run: Run, cfg: ZeroNorm) -> Findings:
    """Find the first gradient norm that is zero while the loss stays."""
    if lacks_advantage(run, cfg.always):
        return
    for curve in curves(run, "grad_norm"):
        share = float((curve.values == 0).mean())
        if len(curve) >= cfg.records and share < cfg.always and (lost := _lost(run, curve, cfg)) is not None:
            yield lost
            return
        if len(curve) < cfg.records or share < cfg.always:
            continue
        one = loss_beside(run, curve)
        if one is None or one.levels is None or not is_flat(one.levels, FLAT) or improved(run, one.curve, 1):
            continue
        loss = one.curve
        yield zero_gradnorm.finding(
            f"{curve.raw_name} is zero in {share:.0%} of the records, and the loss does not fall",
            "no gradient reaches the parameters",
            proof(curve.row(0), curve.row(-1), loss.row(-1)),
            numbers={"zeros": share, "records": len(curve)},
        )
        return


def _lost(run: Run, curve: Curve, cfg: ZeroNorm) -> Finding | None:
    """Gradients that were there and are zero from some record to the end, while the loss keeps its level."""
    start = behind_last(curve.values != 0)
    loss = beside(run, curve, "loss")
    if len(curve) - start < cfg.records or loss is None or reinforced(run):
        return None
    behind = loss.values[np.asarray(loss.places) >= curve.places[start]]
    third = len(behind) // 3
    if (
        third < 2 or median_of(behind) < FLAT.by_heart
    ):  # what is learned by heart has gradients that are rounded to zero
        return None
    if median_of(behind[-third:]) < (1 - cfg.falls) * median_of(behind[:third]):
        return None
    return zero_gradnorm.finding(
        f"{curve.raw_name} is zero from {at_step(curve.step(start))} to the end, and the loss does not fall any more",
        "no gradient reaches the parameters",
        proof(curve.row(start), curve.row(start - 1), loss.row(-1)),
        onset_at(curve.row(start), curve.step(start - 1)),
        confidence="medium",
        numbers={"zeros": float((curve.values == 0).mean()), "records": len(curve)},
    )


class Growing(Struct, frozen=True):
    """Thresholds of LRN013: the ratio of levels, standard errors, and the fewest records."""

    records: int = 24
    times: float = 10.0
    sigmas: float = 6.0
    window: int = 51


@rule("LRN013 growing-gradnorm", "metrics", confidence="medium", cause="growing_gradients", causal="context")
def growing_gradnorm(run: Run, cfg: Growing) -> Findings:
    """Find the gradient norm that grew most."""
    if reinforced(run):
        return
    found = [(c, grown) for c in curves(run, "grad_norm") if (grown := _grown(c, cfg)) is not None]
    if not found:
        return
    norm, (at, low, final) = max(found, key=lambda pair: pair[1][2] / pair[1][1])
    row, one = norm.row(at), loss_beside(run, norm)
    worse = one is not None and _rises(one) and not improved(run, one.curve, min(at, len(one.curve) - 1))
    yield growing_gradnorm.finding(
        f"{norm.raw_name} grew from {number(low)} to {number(final)} from {at_step(row['at'])} on",
        "the loss rises over its last half as well" if worse else "the loss does not rise with it",
        proof(row, norm.row(-1), one.curve.row(-1) if one is not None else None),
        severity="warning" if worse else "info",
        numbers={"low": low, "final": final, "ratio": final / low},
    )


def _rises(loss: Loss) -> bool:
    return loss.levels is not None and loss.levels.late_fall < -3 * loss.levels.late_error


def _grown(norm: Curve, cfg: Growing) -> tuple[int, float, float] | None:
    """Give where the growth began, the lowest and the last level; None when it is too small."""
    y, place = logs(norm.values)
    n = len(y)
    if n < cfg.records or norm.ends_nonfinite:
        return None
    skip, last = n // 20, max(10, n // 10)
    final, first = median_of(y[-last:]), median_of(y[: max(5, skip)])
    if final <= first or final - float(y.min()) < log(cfg.times):  # no level is below all records
        return None
    middle = centred_median(y, min(cfg.window, (n // 6) * 2 + 1))
    noise = noise_about(y, middle)
    low = int(np.argmin(middle[skip:])) + skip
    bound = max(log(cfg.times), cfg.sigmas * noise.of_level(last))
    if final - float(middle[low]) < bound:
        return None
    below = np.flatnonzero(middle <= middle[low] + bound / 4)
    return int(place[min(int(below[-1]) + 1, n - 1)]), ratio_of(float(middle[low])), ratio_of(final)
