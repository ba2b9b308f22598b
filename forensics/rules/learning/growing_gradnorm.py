"""LRN013 growing-gradnorm: the gradient norm grew tenfold and stayed up.

What it detects: a gradient norm whose last level is many times its lowest one, without having turned into a NaN.

Why it matters: growing gradients precede spikes and divergence by hundreds of steps; with clipping they silently shrink
every update.

How it decides: the level of the last tenth is above `times` the lowest moving level after the first twentieth, above
the first level, and by `sigmas` standard errors of autocorrelated noise. With a loss that rises as well it is a
warning, else a note.

What else looks like this: a fine-tuning that goes to very small losses, where the gradient of the logarithm grows; a
batch size or sequence length that shrinks.

What to do next: lower the learning rate from a checkpoint before the growth; check weight decay and attention logits.

References: Wortsman et al. 2023, "Small-scale proxies for large-scale Transformer training instabilities"; OLMo 2.

Example:
    ```metrics
    step: 10..260/10
    loss: 2.998 2.951 2.906 2.844 2.799 2.743 2.687 2.672 2.596 2.549 2.475 2.436 2.487 2.534 2.58 2.603 2.639 2.695
        2.734 2.761 2.814 2.841 2.883 2.929 2.961 2.989
    grad_norm: 0.4914 0.5057 0.528 0.4735 0.4941 0.4684 0.4443 0.6173 0.4832 0.4961 0.4974 0.7113 1.031 1.417 1.922
        2.088 2.602 3.855 4.938 5.615 8.093 9.317 12.18 16.43 19.75 22.83
    ```
    => LRN013 warning confidence=medium step=130 cause=growing_gradients causal=context low=0.4914 ratio=17.67
Not this:
    ```metrics
    step: 10..260/10
    loss: 4.991 4.765 4.564 4.313 4.145 3.952 3.775 3.752 3.528 3.414 3.221 3.153 3.095 3.028 2.963 2.839 2.763 2.739
        2.68 2.595 2.575 2.502 2.466 2.439 2.388 2.331
    grad_norm: 2.415 1.977 1.703 1.108 1.003 0.7703 0.6085 1.058 0.5967 0.5903 0.343 0.4103 0.5087 0.5723 0.6291 0.446
        0.4167 0.552 0.5471 0.428 0.5381 0.4319 0.4476 0.4929 0.432 0.35
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np

from forensics.analyses.learning.losses import loss_beside
from forensics.analyses.learning.objective import improved, reinforced
from forensics.case.curves.loss import Curve, curves
from forensics.rules.kit import Finding, Findings, Run, at_step, number, onset_at, proof, rule
from forensics.stats.correlation import noise_about
from forensics.stats.running import centred_median, logs, ratio_of


@dataclass(frozen=True, slots=True)
class Growing:
    """Thresholds of LRN013: the ratio of levels, standard errors, and the fewest records."""

    records: int = 24
    times: float = 10.0
    sigmas: float = 6.0
    window: int = 51


@rule("learning", needs=("metrics",), config=Growing, confidence="medium", cause="growing_gradients", causal="context")
def growing_gradnorm(run: Run, cfg: Growing) -> Findings:
    """Find the gradient norm that grew most."""
    if reinforced(run):
        return
    found = [(c, grown) for c in curves(run, "grad_norm") if (grown := _grown(c, cfg)) is not None]
    if found:
        yield _finding(run, *max(found, key=lambda pair: pair[1][2] / pair[1][1]))


def _grown(norm: Curve, cfg: Growing) -> tuple[int, float, float] | None:
    """Give where the growth began, the lowest and the last level; None when it is too small."""
    y, place = logs(norm.values)
    n = len(y)
    if n < cfg.records or norm.ends_nonfinite:
        return None
    middle = centred_median(y, min(cfg.window, (n // 6) * 2 + 1))
    noise = noise_about(y, middle)
    skip, last = n // 20, max(10, n // 10)
    low = int(np.argmin(middle[skip:])) + skip
    final, first = float(np.median(y[-last:])), float(np.median(y[: max(5, skip)]))
    bound = max(log(cfg.times), cfg.sigmas * noise.of_level(last))
    if final - float(middle[low]) < bound or final <= first:
        return None
    below = np.flatnonzero(middle <= middle[low] + bound / 4)
    return int(place[min(int(below[-1]) + 1, n - 1)]), ratio_of(float(middle[low])), ratio_of(final)


def _finding(run: Run, norm: Curve, grown: tuple[int, float, float]) -> Finding:
    at, low, final = grown
    row, one = norm.row(at), loss_beside(run, norm)
    loss, trend = (one.curve, one.trend) if one is not None else (None, None)
    worse = (
        loss is not None
        and trend is not None
        and trend.late_fall < -3 * trend.late_error
        and not improved(run, loss, min(at, len(loss) - 1))
    )
    last = loss.row(-1) if loss is not None else None
    return growing_gradnorm.finding(
        f"{norm.raw_name} grew from {number(low)} to {number(final)} from {at_step(row['at'])} on",
        "the loss rises over its last half as well" if worse else "the loss does not rise with it",
        proof(row, norm.row(-1), last),
        onset_at(row),
        severity="warning" if worse else "info",
        numbers={"low": low, "final": final, "ratio": final / low},
    )
