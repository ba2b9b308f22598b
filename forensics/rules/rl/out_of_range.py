"""Ranges of the other quantities, and how often any of them is logged."""

from __future__ import annotations

from forensics.analyses.rl.ranges import Persistence, judge, rewards_of, risen
from forensics.analyses.rl.series import rl_series
from forensics.case.settings import settings
from forensics.knowledge.ranges import ranges
from forensics.rules.kit import Findings, Onset, Run, Severity, proof, rule
from forensics.rules.rl._words import finding_of, outside_of
from forensics.stats.spread import median

#: Quantities whose healthy range depends on the model too much for a remark short of the red flag.
_ONLY_RED = frozenset(("grad_norm", "entropy"))


#: An entropy that ends so many times higher than it began has risen; noise and warm-up move it by less than a fifth.
_ROSE = 1.5
#: It began within this share of the records, of which three are the fewest that a median parts from noise.
_BEGIN, _FEWEST = 0.1, 3


@rule("RLX008 rl-out-of-range", "metrics")
def out_of_range(run: Run, cfg: Persistence) -> Findings:
    """Judge each series by its rows of the table; of one quantity the first row that holds is reported."""
    rows = [r for r in ranges().values() if r.rule == "RLX008"]
    every = rl_series(run, *{r.quantity for r in rows}, "reward", "reward_fn")
    rewards = rewards_of(every)
    told: set[str] = set()
    for row in rows:
        for series in every:
            hit = judge(series, row, cfg)
            if hit is None or series.raw_name in told or (row.quantity in _ONLY_RED and not hit.red):
                continue
            began = median(hit.rows["value"].head(max(_FEWEST, min(cfg.window, int(_BEGIN * hit.rows.height)))))
            if row.row == "entropy_high" and risen(rewards) is not False and hit.last < _ROSE * began:
                continue
            told.add(series.raw_name)
            yield finding_of(hit, Severity.WARNING, cause=row.row) if hit.red else outside_of(hit, cause=row.row)


_RECORDS = 5


@rule("RLX011 rl-coarse-logging", "metrics", severity="info", confidence="medium", cause="coarse_logging")
def coarse_logging(run: Run) -> Findings:
    """Tell how many steps are between two records."""
    quantities = ("reward", "reward_fn", "frac_zero_std", "length", "entropy", "kl")
    longest = max(rl_series(run, *quantities), key=lambda s: s.rows.height, default=None)
    if longest is None or longest.rows.height < _RECORDS:
        return
    every = longest.rows["at"].drop_nulls().unique().sort().diff().median()
    stated = settings(run).get("logging_interval")
    if every is None and stated is not None and stated.value.isdigit():  # records that name no step
        every = int(stated.value)
    if not isinstance(every, int | float) or every <= 1:
        return
    first = longest.rows.row(0, named=True)
    yield coarse_logging.finding(
        f"one record for every {every:g} steps of reinforcement learning",
        "red flags of reinforcement learning are stated per step; shorter events cannot be seen",
        proof(first, longest.rows.row(1, named=True)),
        Onset(step=first["at"]),
        numbers={"steps_per_record": float(every)},
    )
