"""RLX006 rl-length-growth: answers grow longer step by step until they are cut at the maximum.

What it detects: a mean length of answers that only grows and ends at the maximum length.

Why it matters: a reward that pays for length, or answers that never end, fill the budget with text and are cut, so that
the last steps learn from torsos.

How it decides: over 20 equal parts of the run Kendall's tau of the length is above 0.8, and the last level is at least
0.9 of the maximum. The maximum is that of the configuration, else the longest answer where many records reach exactly
it. A correlation of reward and length above 0.7 says that length is what is paid for.

What else looks like this: reasoning that grows with the difficulty of the task and stays clear of the maximum.

What to do next: add a penalty on length, check that answers can end, or raise the maximum if longer answers are meant.

References: axolotl, GRPO training reference; Singhal et al. 2023, "A Long Way to Go: length correlations in RLHF".

Example:
    ```metrics
    step: 1..40
    completions/mean_length: 100..248/4 248 248
    completions/max_length: 256
    ```
    => RLX006 warning confidence=medium step=1 cause=length_growth first=114.0 last=238.0
Not this:
    ```metrics
    step: 1..40
    completions/mean_length: 100..178/2
    completions/max_length: (480 511 512 500)*10
    ```
    => nothing
"""

from __future__ import annotations

import polars as pl

from forensics.analyses.rl.ranges import Hit, Persistence, rewards_of
from forensics.analyses.rl.series import RlSeries, rl_series
from forensics.knowledge.ranges import range_of
from forensics.knowledge.vocabulary import words_for
from forensics.rules.kit import EvidenceRole, Findings, Run, Severity, fact_evidence, rule
from forensics.rules.rl._words import finding_of
from forensics.stats.spread import median
from forensics.stats.trend import together, trend_of

#: Kendall's tau, share of the maximum, and correlation from which a growth counts (axolotl, GRPO training reference).
_TAU, _SHARE, _PAID = 0.8, 0.9, 0.7
#: Share of records whose longest answer is exactly the longest of all, from which that is the maximum.
_AT_LIMIT = 0.2


@rule("learning", needs=("metrics", "facts"), config=Persistence)
def length_growth(run: Run, cfg: Persistence) -> Findings:
    """Find answers that grow to the maximum length."""
    every = rl_series(run, "length", "length_max", "reward", "reward_fn")
    series = next((s for s in every if s.quantity == "length"), None)
    if series is None or series.finite.height < 2 * cfg.last:
        return
    limits = _configured(run)
    limit = float(limits["limit"][0]) if limits.height else _reached(every)
    values = series.finite["value"]
    trend, last = trend_of(values), median(values.tail(cfg.window))
    if trend is None or limit is None or trend.tau <= _TAU or last < _SHARE * limit:
        return
    rewards = rewards_of(every)
    paid = max((together(s.finite, series.finite) for s in rewards), default=0.0)
    hacked = paid > _PAID
    note = f"the maximum is {limit:g}" + (f"; reward and length correlate by {paid:.2f}" if rewards else "")
    hit = Hit(range_of("length_growth"), series, series.finite, True, 0, trend.first, last, trend.tau)  # noqa: FBT003 - the field is named red
    facts = [fact_evidence(row, EvidenceRole.RELATED) for row in limits.head(1).iter_rows(named=True)]
    cause = "length_hacking" if hacked else "length_growth"
    yield finding_of(hit, Severity.WARNING, cause=cause, note=note, others=facts)


def _configured(run: Run) -> pl.DataFrame:
    facts = run.scan("facts").filter(pl.col("key").str.contains(words_for("response_limit_setting")))
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
