"""Losses that may be below zero, which no logarithm follows: one that gave back what it learned, two that burst."""

from __future__ import annotations

import numpy as np

from forensics.analyses.learning.losses import losses
from forensics.analyses.learning.objective import improved, reinforced
from forensics.analyses.learning.parts import parts_of
from forensics.case.curves.loss import Curve
from forensics.case.series import holding, keys_of
from forensics.rules.kit import Finding, Findings, Run, Struct, number, onset_at, proof, rule
from forensics.stats.running import centred_median
from forensics.stats.spread import Floats, behind_last, median_of, spread


class Signed(Struct, frozen=True):
    """Thresholds of LRN039: records, the share of them at the end, and what a rise and a burst are.

    A rise counts from `sigmas` deviations of single records on, where it gives back `given` of what was learned, or
    all of it that was below zero; it is an error from there on where the loss began. The losses of two networks burst
    where the last are `burst` times the largest of the first half, or `far` times those of the first quarter: of a
    critic with a gradient penalty whose estimate begins near zero they differ tenfold.
    """

    records: int = 20
    end: float = 0.1
    sigmas: float = 6.0
    given: float = 0.5
    burst: float = 100.0
    far: float = 1000.0


#: A record has left the level where it holds so much of the rise, of a loss without noise.
_RISEN = 0.02


@rule("LRN039 signed-loss-lost", "metrics facts", severity="error", confidence="medium", cause="diverged")
def signed_loss_lost(run: Run, cfg: Signed) -> Findings:
    """Find a loss below zero that rose for good, or one of two networks that burst."""
    if not reinforced(run):
        of_sign = (one.curve for one in losses(run) if one.course is None and not one.curve.ends_nonfinite)
        found = (_given_back(run, curve, cfg) for curve in of_sign if len(curve) >= cfg.records)
        yield from [finding for finding in found if finding is not None][:1]
    elif not keys_of(run).select(holding(run, "of_reward").any()).item():
        yield from _bursts(run, cfg)


def _given_back(run: Run, curve: Curve, cfg: Signed) -> Finding | None:
    values = curve.values
    n = len(values)
    last = max(3, int(cfg.end * n))
    if values.min() >= 0:
        return None
    level = centred_median(values, max(3, n // 12) | 1)
    low = int(np.argmin(level[: n - last]))
    first, best, final = median_of(values[: max(3, n // 20)]), float(level[low]), median_of(values[-last:])
    sd, rise = spread((values - level)[: max(low + 1, n // 2)]), final - float(level[low])
    is_back = rise >= cfg.given * (first - best) or final > 0 > best
    if rise <= cfg.sigmas * sd or first - best <= cfg.sigmas * sd or not is_back:
        return None
    onset = min(behind_last(values <= best + max(cfg.sigmas * sd, _RISEN * rise)), n - 1)
    if 2 * rise < float(level[low:].max()) - best or improved(run, curve, onset):
        return None
    row = curve.row(onset)
    return signed_loss_lost.finding(
        f"{curve.raw_name} rose from {number(best)} to {number(final)}, and began at {number(first)}",
        f"it may be below zero; the noise of a record is {number(sd)}",
        proof(row, curve.row(low), curve.row(-1)),
        onset_at(row, curve.step(onset - 1) if onset else None),
        severity="error" if final >= first or final > 0 > best else "warning",
        numbers={"best": best, "final": final, "first": first},
    )


def _bursts(run: Run, cfg: Signed) -> Findings:
    for part in parts_of(run, holding(run, "of_two_players"), cfg.records):
        size: Floats = np.abs(part["value"].to_numpy())
        n = len(size)
        final, half, quarter = median_of(size[-max(3, int(cfg.end * n)) :]), size[: n // 2].max(), size[: n // 4].max()
        top = half if final >= cfg.burst * half else quarter
        if not top > 0 or not (final >= cfg.burst * half or final >= cfg.far * quarter):
            continue
        onset = min(behind_last(size <= 2 * top), n - 1)
        row, before = part.row(onset, named=True), part.row(max(0, onset - 1), named=True)
        yield signed_loss_lost.finding(
            f"{row['raw_name']} burst to {number(final)}, and was within {number(float(top))} before",
            "two networks that hold each other keep both losses within bounds",
            proof(row, before if onset else None, part.row(-1, named=True)),
            onset_at(row, before["at"] if onset else None),
            numbers={"best": float(top), "final": final},
        )
        return
