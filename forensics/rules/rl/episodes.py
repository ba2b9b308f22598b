"""The reward of an environment's episodes: one that was earned and is lost, and one that never comes."""

from __future__ import annotations

from forensics.analyses.rl.episodes import Episodes, fall_of, is_stuck
from forensics.analyses.rl.ranges import gain_of
from forensics.analyses.rl.series import RlSeries, episode_series
from forensics.knowledge.ranges import range_of
from forensics.rules.kit import Findings, Run, Struct, at_step, number, onset_at, proof, rule
from forensics.stats.spread import behind_last, median
from forensics.values import replace

#: What a quantity beyond its range makes of a reward that falls.
_CAUSES = {"update_kl": "policy_steps_large", "clip_ratio": "policy_steps_large", "entropy": "entropy_collapse"}


@rule("RLX012 rl-episode-reward-falls", "metrics", severity="warning")
def episode_reward_falls(run: Run, cfg: Episodes) -> Findings:
    """Find the reward of episodes that fell and did not come back."""
    every = episode_series(run)
    stuck = [s for s in every if s.quantity == "entropy" and is_stuck(s, cfg)]
    own = replace(cfg, lost=cfg.stuck) if stuck else cfg
    falls = [fall for s in every if s.quantity == "episode_reward" and (fall := fall_of(s, own)) is not None]
    fall = max(falls, key=lambda fall: fall.series.finite.height, default=None)
    if fall is None:
        return
    rows, name = fall.series.finite, fall.series.raw_name
    start, before = rows.row(fall.onset, named=True), rows.row(max(0, fall.onset - 1), named=True)
    far = [(s, words) for s in every if (words := _goes_far(s, cfg))]
    far = far or [(s, "the policy no longer explores") for s in stuck]
    told = "".join(
        f"; {s.raw_name} is {number(median(s.finite['value'].tail(cfg.many)))} ({words})" for s, words in far[:1]
    )
    how = "after it had risen" if fall.rose else "and was not higher before"
    yield episode_reward_falls.finding(
        f"{name} fell from {number(fall.best)} to {number(fall.last)} from {at_step(start['at'])} on",
        f"it stays down over the last of {rows.height} records, {how}{told}",
        proof(
            start,
            rows.row(fall.peak, named=True) if fall.peak != fall.onset else None,
            rows.row(-1, named=True) if fall.onset != rows.height - 1 else None,
            *(s.finite.row(-1, named=True) for s, _ in far[:1]),
        ),
        onset_at(start, before["at"] if fall.onset else None),
        confidence="medium" if rows.height >= cfg.many else "low",
        cause=_CAUSES[far[0][0].quantity] if far else "episode_reward_falls",
        numbers={"best": fall.best, "last": fall.last, "records": rows.height},
    )


def _goes_far(series: RlSeries, cfg: Episodes) -> str:
    """What it means that most updates move the policy beyond a red flag; empty where they do not."""
    values = series.finite["value"]
    rows = (row for row in map(range_of, ("update_kl", "clip_ratio")) if row.quantity == series.quantity)
    if values.len() < cfg.few:
        return ""
    return next((r.meaning for r in rows if r.red is not None and median(values.tail(cfg.many)) > r.red), "")


class NoChoice(Struct, frozen=True):
    """Thresholds of RLX014: entropies at the end, their share of all, and the nats below which there is no choice.

    The reward is lost where it ends `lost` of its size below its first level; where it only did not rise by so much,
    the entropy must have been above `open` at first: a policy that had learned its task before may begin without any.
    """

    few: int = 5
    share: float = 0.5
    none: float = 0.001
    open: float = 0.1
    lost: float = 0.25


@rule("RLX014 rl-policy-without-choice", "metrics", severity="warning", confidence="medium", cause="entropy_collapse")
def policy_without_choice(run: Run, cfg: NoChoice) -> Findings:
    """Find a policy of a game that takes one action alone, and earns no more than at first."""
    every = episode_series(run)
    earned = max(
        (s for s in every if s.quantity == "episode_reward" and s.finite.height >= cfg.few),
        key=lambda s: s.finite.height,
        default=None,
    )
    if earned is None:
        return
    values = earned.finite["value"]
    first, last = median(values.head(max(1, values.len() // 10))), median(values.tail(values.len() // 5))
    for series in (s for s in every if s.quantity in {"entropy", "entropy_cost"}):
        rows = series.finite
        entropy = rows["value"].abs().to_numpy()
        start = behind_last(entropy > cfg.none)
        stays = len(entropy) - start
        if stays < max(cfg.few, cfg.share * len(entropy)) or not entropy.any():
            continue
        grew = (last - first) / max(abs(first), abs(last), 1e-9)
        if grew > -cfg.lost and (grew >= cfg.lost or entropy[0] < cfg.open):
            continue
        begun, before = rows.row(start, named=True), rows.row(max(0, start - 1), named=True)
        yield policy_without_choice.finding(
            f"{series.raw_name} is zero from {at_step(begun['at'])} on: the policy takes one action in each state",
            f"{earned.raw_name} is {number(last)} after {number(first)}: without a choice it finds nothing better",
            proof(begun, before if start else None, earned.finite.row(-1, named=True)),
            onset_at(begun, before["at"] if start else None),
            numbers={"first": first, "last": last, "records": stays},
        )
        return


@rule("RLX013 rl-episode-reward-constant", "metrics", severity="warning", cause="episode_reward_constant")
def episode_reward_constant(run: Run, cfg: Episodes) -> Findings:
    """Find the reward of episodes that is one number, whatever the policy does, or none at all.

    A reward of zero is one that was not met yet, in a game for long; one above zero may be the best one. The mean over
    no episode is not a number: after many iterations none has ended.
    """
    every = [series for series in episode_series(run) if series.quantity == "episode_reward"]
    if every and all(series.finite.is_empty() for series in every) and every[0].rows.height >= cfg.many:
        rows = every[0].rows
        yield episode_reward_constant.finding(
            f"{every[0].raw_name} is not a number in any of {rows.height} records",
            "it is the mean over the episodes that ended, and the mean over none is not a number",
            proof(rows.row(0, named=True), rows.row(-1, named=True)),
            confidence="medium",
            cause="no_episode_ended",
            numbers={"records": rows.height},
        )
        return
    for series in every:
        rows = series.finite
        if rows.height < cfg.few or rows["value"].n_unique() > 1:
            continue
        if (value := float(rows["value"][0])) >= 0:
            continue
        yield episode_reward_constant.finding(
            f"{series.raw_name} is {number(value)} in every one of {rows.height} records",
            "a policy that changes earns more or less; one that may explore, too",
            proof(rows.row(0, named=True), rows.row(-1, named=True)),
            confidence="medium",
            numbers={"value": value, "records": rows.height},
        )
        return


class Unmoved(Struct, frozen=True):
    """Thresholds of RLX016: records, the share by which an entropy stays where it began, and the gain that is none.

    Of 2,000 made runs of 50 to 400 records each, 5 % of noise on the reward, none is told whose entropy falls by 2 % or
    more, none whose reward rises by 60 % under 10 % of noise, and all are of which neither moves.
    """

    records: int = 50
    entropy: float = 0.01
    gain: float = 0.2


@rule("RLX016 rl-policy-unmoved", "metrics", severity="warning", confidence="medium", cause="policy_unmoved")
def policy_unmoved(run: Run, cfg: Unmoved) -> Findings:
    """Find a policy of a game that is as undecided at the end as at the begin, and earns as much."""
    every = [series for series in episode_series(run) if series.finite.height >= cfg.records]
    earned = [series for series in every if series.quantity == "episode_reward"]
    still = next((s for s in every if s.quantity in {"entropy", "entropy_cost"} and _is_still(s, cfg)), None)
    if still is None or not earned or not all(_earns_alike(series, cfg) for series in earned):
        return
    rows, entropy = max(earned, key=lambda series: series.finite.height).finite, still.finite
    fifth = rows.height // 5
    first, last = median(rows["value"].head(fifth)), median(rows["value"].tail(fifth))
    yield policy_unmoved.finding(
        f"{rows['raw_name'][0]} is {number(last)} after {number(first)} over {rows.height} records: nothing is learned",
        f"{still.raw_name} is {number(float(entropy['value'][-1]))} after {number(float(entropy['value'][0]))}: the"
        " policy chooses as it did at first",
        proof(rows.row(0, named=True), rows.row(-1, named=True), entropy.row(-1, named=True)),
        numbers={"first": first, "last": last, "records": rows.height},
    )


def _is_still(series: RlSeries, cfg: Unmoved) -> bool:
    """Whether an entropy ends where it began, and is one of a policy that has a choice."""
    values = series.finite["value"].abs()
    first, last = (median(part) for part in (values.head(values.len() // 5), values.tail(values.len() // 5)))
    return first > 0 and abs(last - first) <= cfg.entropy * first


def _earns_alike(series: RlSeries, cfg: Unmoved) -> bool:
    """Whether noise leaves no room for a gain or a loss of any use; zero is a reward that was not met yet."""
    gain = gain_of(series)
    size = median(series.finite["value"].abs())
    return gain is not None and abs(gain[0]) + _SURE * gain[1] < cfg.gain * size and not _is_at_most(series)


def _is_at_most(series: RlSeries) -> bool:
    """Whether most records earn the same, and none earns more: it may be all that the task pays."""
    values = series.finite["value"]
    most = values.max()
    return isinstance(most, float) and most > 0 and 2 * int((values == most).sum()) > values.len()


#: Standard errors that a gain may be larger than measured.
_SURE = 2.0
