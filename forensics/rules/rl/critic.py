"""An estimate of what states and actions are worth that grows without end."""

from __future__ import annotations

import polars as pl

from forensics.analyses.learning.parts import parts_of
from forensics.analyses.rl.series import RlSeries, episode_series
from forensics.case.series import holding
from forensics.rules.kit import Findings, Run, Struct, at_step, number, onset_at, proof, rule
from forensics.stats.spread import behind_last, median


class Critic(Struct, frozen=True):
    """Thresholds of RLX015: records, the share of them that is a level, and by what the loss grows from its middle on.

    The loss of a critic grows with the square of what is earned: of returns that grow tenfold a hundredfold. Where they
    do not grow by `earns` of their size, `grown` from the middle of the run to its end is no learning. Below `least` a
    loss is small whatever it was.
    """

    records: int = 30
    level: float = 0.1
    grown: float = 100.0
    earns: float = 0.1
    least: float = 1.0


@rule("RLX015 rl-critic-diverges", "metrics", severity="warning", confidence="medium", cause="critic_diverges")
def critic_diverges(run: Run, cfg: Critic) -> Findings:
    """Find the first loss of a critic that grows to the end of the run while no more is earned."""
    earned = [one for one in episode_series(run) if one.quantity == "episode_reward" and one.finite.height > 1]
    if not earned or any(_grows(one, cfg) for one in earned):
        return
    for rows in parts_of(run, holding(run, "loss_of_critic"), cfg.records):
        values = rows["value"]
        middle, last = _middle_and_last(values, cfg)
        if last < cfg.least or not 0 < cfg.grown * max(middle, median(values.head(values.len() // 2))) <= last:
            continue
        start = behind_last((values <= 2 * middle).to_numpy())
        first, reward = rows.row(start, named=True), earned[0].finite.row(-1, named=True)
        yield critic_diverges.finding(
            f"{first['raw_name']} grew from {number(middle)} to {number(last)} from {at_step(first['at'])} on,"
            f" and {earned[0].raw_name} did not rise",
            "a critic whose target is its own estimate adds to its errors, and the policy follows them",
            proof(first, rows.row(-1, named=True), reward),
            onset_at(first, rows["at"][start - 1] if start else None),
            numbers={"before": middle, "last": last},
        )
        return


def _grows(earned: RlSeries, cfg: Critic) -> bool:
    """Whether more is earned at the end of a run than in its middle."""
    middle, last = _middle_and_last(earned.finite["value"], cfg)
    return last - middle > cfg.earns * max(abs(middle), abs(last), 1e-9)


def _middle_and_last(values: pl.Series, cfg: Critic) -> tuple[float, float]:
    count, half = max(1, int(cfg.level * values.len())), values.len() // 2
    return median(values.slice(half - count // 2, count)), median(values.tail(count))
