"""A policy that narrows down, leaves its reference, or is not the one that is sampled."""

from __future__ import annotations

import polars as pl

from forensics.analyses.rl.ranges import Hit, Persistence, judge, rewards_of, risen
from forensics.analyses.rl.series import RlSeries, preference_series, rl_series
from forensics.knowledge.ranges import range_of
from forensics.rules.kit import Finding, Findings, Run, Severity, onset_at, proof, rule
from forensics.rules.rl._words import finding_of, outside_of
from forensics.stats.spread import behind_last, median
from forensics.stats.trend import trend_of

#: A fall by this factor within this share of the run is abrupt (axolotl, GRPO training reference, expected trends).
_FALL = 5.0
_WITHIN = 0.1


@rule("RLX003 rl-entropy-collapse", "metrics")
def entropy_collapse(run: Run, cfg: Persistence) -> Findings:
    """Find an entropy that vanished."""
    every = rl_series(run, "entropy", "reward", "reward_fn")
    rose = risen(rewards_of(every))
    words = {None: "no reward is logged", True: "the reward rose meanwhile", False: "the reward did not rise"}[rose]
    for series in every:
        values = series.finite["value"]
        if series.quantity != "entropy" or not (values > 0).any() or (values < 0).any():
            continue
        hit = judge(series, range_of("entropy_low"), cfg)
        if hit is not None and hit.red:
            severity = Severity.ERROR if hit.onset > 0 and rose is False else Severity.WARNING
            yield finding_of(hit, severity, cause="entropy_collapse", note=words)
        elif (sudden := _abrupt(series, cfg)) is not None:
            note = f"it fell to a fifth or less within a tenth of the run; {words}"
            yield finding_of(sudden, Severity.WARNING, cause="entropy_collapse", note=note)
        elif hit is not None and hit.last < hit.row.lo:
            yield finding_of(hit, Severity.INFO, cause="entropy_low", note=words)


def _abrupt(series: RlSeries, cfg: Persistence) -> Hit | None:
    """A fall by a factor within a short part of the run, below the healthy range and not made up since."""
    row, rows = range_of("entropy_low"), series.finite
    if rows.height < 2 * cfg.last:
        return None
    medians = rows["value"].rolling_median(cfg.window, min_samples=1)
    lag = max(cfg.window, round(rows.height * _WITHIN))
    fell = (medians * _FALL < medians.shift(lag)).fill_null(value=False)
    end = median(rows["value"].tail(cfg.last))
    places = fell.arg_true()
    if not places.len() or end >= row.lo:
        return None
    at = int(places[0])
    if end > medians[at] * 2:
        return None
    start = max(0, at - cfg.window + 1)
    half = pl.Series(rows["value"].slice(start, cfg.window) * _FALL < medians[max(0, at - lag)]).arg_true()
    onset = start + int(half[0]) if half.len() else at
    return Hit(row, series, rows, red=False, onset=onset, first=float(medians[at - lag]), last=end, share=1.0)


#: The last fifth is this many times the middle fifth (axolotl, GRPO training reference, expected trends).
_GROWTH = 5.0


@rule("RLX004 rl-kl-divergence", "metrics")
def kl_divergence(run: Run, cfg: Persistence) -> Findings:
    """Find a KL divergence that stays large or shoots up."""
    every = rl_series(run, "kl", "kl_sequence", "reward", "reward_fn")
    rose = risen(rewards_of(every))
    for series in every:
        if series.quantity not in {"kl", "kl_sequence"}:
            continue
        hit = judge(series, range_of("kl_high"), cfg)
        if hit is not None and hit.red:
            note = "the reward rose meanwhile" if rose else "the reward did not rise" if rose is False else ""
            severity = Severity.WARNING if rose else Severity.ERROR
            yield finding_of(hit, severity, cause="kl_divergence", note=note)
        elif (shot := _shooting(series, cfg)) is not None:
            note = "the last fifth is five times the middle fifth"
            yield finding_of(shot, Severity.WARNING, cause="kl_divergence", note=note)
        elif hit is not None and hit.last > hit.row.hi:
            yield outside_of(hit, cause="kl_high")

    for series in preference_series(run):
        if (found := _unlikely(series)) is not None:
            yield found
            return


#: Preferred answers lose some likelihood in most runs: of published runs of DPO on 7B models a tenth to three quarters
#: of their log-probability, 20 to 200 nats. One that doubles says that they are as unlikely as to be drawn twice.
_TIMES, _NATS = 2.0, 50.0
#: Records that say how likely the answers were, and so many at the end that say how likely they are.
_FIRST, _LAST = 3, 5


def _unlikely(series: RlSeries) -> Finding | None:
    """Preferred answers that became far less likely than they were, and stay so."""
    rows = series.finite
    values = rows["value"].to_numpy()
    if len(values) < 2 * _LAST or not (values < 0).all():
        return None
    first, last = median(rows["value"].head(_FIRST)), median(rows["value"].tail(_LAST))
    bound = min(_TIMES * first, first - _NATS)
    at = behind_last(values > bound)
    if last > bound or not 0 < at <= len(values) - _LAST:
        return None
    start, before = rows.row(at, named=True), rows.row(at - 1, named=True)
    return kl_divergence.finding(
        f"{series.raw_name} fell from {first:.4g} to {last:.4g}: the preferred answers became far less likely",
        "their log-probability more than doubled, so they lead only because the others fell further",
        proof(start, before, rows.row(-1, named=True)),
        onset_at(start, before["at"]),
        severity="warning",
        confidence="medium",
        cause="preferred_unlikely",
        causal="root",
        numbers={"first": first, "last": last, "records": len(values)},
    )


def _shooting(series: RlSeries, cfg: Persistence) -> Hit | None:
    row, rows = range_of("kl_high"), series.finite
    fifth = rows.height // 5
    if fifth < cfg.window:
        return None
    values = rows["value"]
    middle, last = median(values.slice(2 * fifth, fifth)), median(values.tail(fifth))
    floor = row.hi if series.quantity == "kl" else 0.0
    trend = trend_of(values.tail(3 * fifth).to_numpy())
    if middle <= 0 or last < _GROWTH * middle or last <= floor or trend is None or trend.z < cfg.trend_z:
        return None
    onset = int((values > (middle * last) ** 0.5).arg_true()[0])
    return Hit(row, series, rows, red=False, onset=onset, first=middle, last=last, share=1.0)


@rule("RLX005 rl-sampler-divergence", "metrics")
def sampler_divergence(run: Run, cfg: Persistence) -> Findings:
    """Find a sampler that lags behind the trained policy."""
    every = rl_series(run, "logp_diff", "is_ratio_min", "reward", "reward_fn")
    rows = (range_of("logp_diff"), range_of("is_ratio_min"))
    hits = [h for row in rows for s in every if (h := judge(s, row, cfg)) is not None]
    red = [h for h in hits if h.red]
    if red:
        rose = risen(rewards_of(every))
        others = (hit.rows.row(hit.onset, named=True) for hit in red[1:])
        note = "the reward rose meanwhile" if rose else ""
        severity = Severity.ERROR if red[0].row.row == "logp_diff" and not rose else Severity.WARNING
        yield finding_of(red[0], severity, *others, cause="sampler_divergence", note=note)
    elif hits:
        yield outside_of(hits[0], cause="sampler_divergence")
