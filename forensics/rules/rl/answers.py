"""Answers that grow, and answers that are cut."""

from __future__ import annotations

import polars as pl

from forensics.analyses.rl.ranges import Hit, Persistence, judge, left_at, rewards_of
from forensics.analyses.rl.series import RlSeries, rl_series
from forensics.case.settings import keyed
from forensics.knowledge.ranges import range_of
from forensics.knowledge.vocabulary import words_for
from forensics.rules.kit import Findings, Run, Severity, fact_evidence, rule
from forensics.rules.rl._words import finding_of, outside_of
from forensics.stats.spread import median
from forensics.stats.trend import together, trend_of
from forensics.values import replace

#: Kendall's tau, share of the maximum, and correlation from which a growth counts (axolotl, GRPO training reference).
_TAU, _SHARE, _PAID = 0.8, 0.9, 0.7
#: Share of records whose longest answer is exactly the longest of all, from which that is the maximum.
_AT_LIMIT = 0.2


@rule("RLX006 rl-length-growth", "metrics facts")
def length_growth(run: Run, cfg: Persistence) -> Findings:
    """Find answers that grow to the maximum length."""
    every = rl_series(run, "length", "length_max", "reward", "reward_fn")
    series = next((s for s in every if s.quantity == "length"), None)
    if series is None or series.finite.height < 2 * cfg.last:
        return
    limits = _configured(run)
    limit = float(limits["limit"][0]) if limits.height else _reached(every)
    values = series.finite["value"]
    trend, last = trend_of(values.to_numpy()), median(values.tail(cfg.window))
    if trend is None or limit is None or trend.tau <= _TAU or last < _SHARE * limit:
        return
    rewards = rewards_of(every)
    paid = max((together(s.finite, series.finite) for s in rewards), default=0.0)
    note = f"the maximum is {limit:g}" + (f"; reward and length correlate by {paid:.2f}" if rewards else "")
    onset, row = left_at(values, cfg.window), range_of("length_growth")
    hit = Hit(row, series, series.finite, True, onset, trend.first, last, trend.tau)  # noqa: FBT003 - the field is named red
    facts = map(fact_evidence, limits.head(1).iter_rows(named=True))
    cause = "length_hacking" if paid > _PAID else "length_growth"
    yield finding_of(hit, Severity.WARNING, *facts, cause=cause, note=note)


def _configured(run: Run) -> pl.DataFrame:
    facts = keyed(run, words_for("response_limit_setting"))
    return (
        facts.with_columns(limit=pl.col("value").str.strip_chars('"').cast(pl.Float64, strict=False))
        .filter(pl.col("limit") > 1)
        .sort("source", "line", maintain_order=True)
        .collect()
    )


def _reached(every: tuple[RlSeries, ...]) -> float | None:
    """The longest answer of all, when many records reach exactly it."""
    longest = next((s.finite["value"] for s in every if s.quantity == "length_max" and s.finite.height), None)
    if longest is None:
        return None
    most = float(longest.max())  # type: ignore[arg-type] - a column of floats
    return most if float((longest == most).sum()) >= _AT_LIMIT * longest.len() else None


@rule("RLX007 rl-truncated-answers", "metrics")
def truncated_answers(run: Run, cfg: Persistence) -> Findings:
    """Find a run whose answers are mostly cut."""
    every = rl_series(run, "clipped", "length", "length_terminated")
    for series in every:
        hit = judge(series, range_of("clipped_ratio"), cfg)
        if hit is None:
            continue
        biased = None if hit.red else _biased(hit, every, cfg)
        if biased is not None:
            ended = biased[1].finite.row(-1, named=True)
            note = f"the mean length is {biased[0]:.2g} times the mean of answers that end"
            told = replace(hit, row=range_of("terminated_length"))
            yield finding_of(told, Severity.WARNING, ended, cause="truncation_bias", note=note)
        else:
            cause = "truncated_answers"
            yield finding_of(hit, Severity.WARNING, cause=cause) if hit.red else outside_of(hit, cause=cause)
        return


def _biased(hit: Hit, every: tuple[RlSeries, ...], cfg: Persistence) -> tuple[float, RlSeries] | None:
    """How much longer all answers are than those that end, if that is a bias."""
    length = next((s for s in every if s.quantity == "length"), None)
    ended = next((s for s in every if s.quantity == "length_terminated"), None)
    if length is None or ended is None or hit.last <= hit.row.hi:
        return None
    whole, stopped = (median(s.finite.tail(cfg.last)["value"]) for s in (length, ended))
    ratio = whole / stopped if stopped > 0 else 0.0
    return (ratio, ended) if ratio >= (range_of("terminated_length").red or 0.0) else None
