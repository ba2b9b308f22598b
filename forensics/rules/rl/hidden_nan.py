"""Losses that were replaced before they were logged."""

from __future__ import annotations

import polars as pl

from forensics.analyses.rl.ranges import Hit, Persistence
from forensics.analyses.rl.series import RlSeries, rl_series
from forensics.knowledge.ranges import range_of
from forensics.rules.kit import Finding, Findings, Row, Run, Severity, Shape, rule
from forensics.rules.rl._words import finding_of
from forensics.stats.spread import median
from forensics.values import replace

#: What is not finite only where the update is not, the nearest to it first.
_MASKED = ("grad_norm", "kl", "entropy", "reward")


@rule("RLX010 rl-hidden-nan", "metrics", shape="nan")
def hidden_nan(run: Run, cfg: Persistence) -> Findings:
    """Find losses that were replaced before they were logged."""
    every = rl_series(run, "bad_loss", *_MASKED, "loss")
    for series in (s for s in every if s.quantity == "bad_loss"):
        bad = series.finite["value"] > 0
        if bad.any():
            lasting = series.finite.height >= cfg.last and float(bad.tail(cfg.last).sum()) > cfg.most * cfg.last
            yield _finding(_hit(series, series.finite, bad), Severity.ERROR if lasting else Severity.WARNING)
            return
    losses = [s for s in every if s.quantity == "loss"]
    for series in sorted((s for s in every if s.quantity in _MASKED), key=lambda s: _MASKED.index(s.quantity)):
        masked = [found for loss in losses if (found := _masked(series, loss)) is not None]
        if masked:
            hit, beside = masked[0]
            yield _finding(hit, Severity.WARNING, beside.row(0, named=True))
            return


def _finding(hit: Hit, severity: Severity, *others: Row) -> Finding:
    return replace(finding_of(hit, severity, *others, cause="filtered_by_writer"), shape=Shape.NAN)


def _masked(grads: RlSeries, loss: RlSeries) -> tuple[Hit, pl.DataFrame] | None:
    """What is NaN in records whose loss is finite, twice or to the end; with the loss rows beside it."""
    keys = ["source", "attempt", "seq" if loss.rows["at"].has_nulls() else "at"]  # event files: a record each
    bad = grads.rows["value"].is_nan()
    beside = loss.finite.join(grads.rows.filter(bad), on=keys, how="semi", maintain_order="left")
    if not beside.height or (beside.height < 2 and not bad[-1]):
        return None
    return _hit(grads, grads.rows, bad), beside


def _hit(series: RlSeries, rows: pl.DataFrame, bad: pl.Series) -> Hit:
    values = series.finite["value"]
    last = float(rows["value"][-1])
    share = float(bad.sum()) / bad.len()
    return Hit(range_of("bad_loss"), series, rows, True, int(bad.arg_true()[0]), median(values.head(1)), last, share)  # noqa: FBT003 - the field is named red
