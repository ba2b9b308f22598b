"""The reward of an environment's episodes: one that was earned and is lost."""

from __future__ import annotations

from forensics.analyses.rl.episodes import Episodes, Fall, fall_of
from forensics.analyses.rl.series import RlSeries, episode_series
from forensics.case.evidence import at_step
from forensics.knowledge.ranges import Range, range_of
from forensics.rules.kit import Finding, Findings, Onset, Run, metric_evidence, number, proof, rule
from forensics.stats.spread import median


@rule("RLX012 rl-episode-reward-falls", "metrics", severity="warning")
def episode_reward_falls(run: Run, cfg: Episodes) -> Findings:
    """Find the reward of episodes that fell and did not come back."""
    every = episode_series(run)
    falls = [fall for s in every if s.quantity == "episode_reward" and (fall := fall_of(s, cfg)) is not None]
    if falls:
        yield _finding(max(falls, key=lambda fall: fall.series.finite.height), every, cfg)


def _finding(fall: Fall, every: tuple[RlSeries, ...], cfg: Episodes) -> Finding:
    rows, name = fall.series.finite, fall.series.raw_name
    start, before = rows.row(fall.onset, named=True), rows.row(max(0, fall.onset - 1), named=True)
    far = [(s, row) for s in every for row in _steps() if s.quantity == row.quantity and _is_far(s, row, cfg)]
    told = "".join(f"; {s.raw_name} is {number(median(s.finite['value']))} ({row.meaning})" for s, row in far[:1])
    how = "after it had risen" if fall.rose else "and was not higher before"
    return episode_reward_falls.finding(
        f"{name} fell from {number(fall.best)} to {number(fall.last)} from {at_step(start['at'])} on",
        f"it stays down over the last of {rows.height} records, {how}{told}",
        proof(
            start,
            rows.row(fall.peak, named=True) if fall.peak != fall.onset else None,
            rows.row(-1, named=True) if fall.onset != rows.height - 1 else None,
            *(metric_evidence(s.finite.row(-1, named=True)) for s, _ in far[:1]),
        ),
        Onset(start["at"], start["t_ns"], start["rank"], before["at"] if fall.onset else None),
        confidence="medium" if rows.height >= cfg.many else "low",
        cause="policy_steps_large" if far else "episode_reward_falls",
        numbers={"best": fall.best, "last": fall.last, "records": rows.height},
    )


def _steps() -> tuple[Range, Range]:
    return range_of("update_kl"), range_of("clip_ratio")


def _is_far(series: RlSeries, row: Range, cfg: Episodes) -> bool:
    """Whether most updates move the policy beyond the red flag of a row."""
    values = series.finite["value"]
    return values.len() >= cfg.few and row.red is not None and median(values.tail(cfg.many)) > row.red


@rule("RLX013 rl-episode-reward-constant", "metrics", severity="warning", cause="episode_reward_constant")
def episode_reward_constant(run: Run, cfg: Episodes) -> Findings:
    """Find the reward of episodes that is one number, whatever the policy does.

    A reward of zero is one that was not met yet, in a game for long; one above zero may be the best one.
    """
    for series in episode_series(run):
        rows = series.finite
        if series.quantity != "episode_reward" or rows.height < cfg.few or rows["value"].n_unique() > 1:
            continue
        value = float(rows["value"][0])
        if value >= 0:
            continue
        yield episode_reward_constant.finding(
            f"{series.raw_name} is {number(value)} in every one of {rows.height} records",
            "a policy that changes earns more or less; one that may explore, too",
            proof(rows.row(0, named=True), rows.row(-1, named=True)),
            confidence="medium",
            numbers={"value": value, "records": rows.height},
        )
        return
