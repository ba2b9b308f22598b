"""Scores and losses of evaluations that the run made while it trained."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import hypot, sqrt
from typing import Any

import numpy as np
import polars as pl

from forensics.analyses.evals.breaks import ScoreFalls, breaks, high_by_chance, levels_about
from forensics.analyses.evals.curves import EvalCurve, eval_curves, training_scores
from forensics.analyses.evals.results import benchmark_of
from forensics.analyses.learning.losses import losses
from forensics.analyses.learning.objective import reinforced
from forensics.analyses.rl.episodes import Episodes, fall_of
from forensics.analyses.rl.ranges import rewards_of
from forensics.analyses.rl.series import RlSeries, rl_series
from forensics.case.checkpoints import nearest_words
from forensics.case.curves.loss import Curve, curves
from forensics.case.names.splits import without_split
from forensics.case.nonfinite import series_of, watched, watched_of, watched_series
from forensics.case.series import holding, metric_names
from forensics.case.steps import SERIES
from forensics.knowledge.scores import counts_right, is_error_rate, is_of_loss
from forensics.knowledge.vocabulary import stands_for
from forensics.patterns import lazily
from forensics.rules.kit import Finding, Findings, Onset, Run, Severity, Struct, at_step, proof, rule, times
from forensics.stats.spread import median_of, scatter
from forensics.values import replace


@rule("EVL022 score-falls", "metrics", severity="warning", confidence="medium", cause="overfitting")
def score_falls(run: Run, cfg: ScoreFalls) -> Findings:
    """Report the score that broke off, else the one that fell furthest from its best."""
    broken = next(_breaks(run), None)
    if broken is not None:
        yield broken
        return
    every = [c for c in eval_curves(run) if c.higher]
    rewards = rewards_of(rl_series(run, "reward", "reward_fn")) if every else []
    falls = [(c, best) for c in every if (best := _best(c, cfg, paid=bool(rewards))) is not None]
    losses = [c for c in curves(run, "loss") if c.at.null_count() == 0] if falls and not rewards else []
    falls = [
        (c, best)
        for c, best in falls
        if any(_improved(loss, c, best, cfg) for loss in losses)
        or any(_earned_more(one, c, best, cfg) for one in rewards)
    ]
    if not falls:
        found = next(_lost(run, cfg), None) or next(_last_lost(run, cfg), None)
        yield from filter(None, [found])
        return
    curve, best = min(falls, key=lambda pair: float(pair[0].values[-1] / pair[0].values[pair[1]]))
    best = _left(curve, best, cfg)
    top, last = curve.row(best), curve.row(-1)
    knew = _guessed(curve.name) is not None
    gained = any(_gained(c, top["at"], cfg) for c in every if c is not curve)
    more = f"; {len(falls)} scores fell like that" if len(falls) > 1 else ""
    yield score_falls.finding(
        f"{curve.name} fell from {top['value']:.4g} at step {top['at']} to {last['value']:.4g} at step {last['at']}"
        f" while the {'reward rose' if rewards else 'loss improved'}{more}",
        "the last evaluations are all below the best one by more than noise explains"
        + ("; another score rose meanwhile" if gained else ""),
        proof(curve.row(best + 1), top, last),
        Onset(step=top["at"]),
        cause="reward_hacking" if rewards else "forgetting" if gained or knew else "overfitting",
        numbers={"best": top["value"], "last": last["value"], "best_step": top["at"]},
        next=(f"take {nearest_words(run, top['at'])}", "evaluate it and the last one on more documents"),
    )


#: What a break says, by whether an evaluation loss rose there, and whether another score gained.
_BREAKS = {
    (True, True): "an evaluation loss rose at the same place, and another score leapt there: it learned something else",
    (True, False): "an evaluation loss rose at the same place, and nothing that is learned breaks off like this in"
    " training alone",
    (False, False): "no evaluation loss got worse: it is the score that is made in another way, and not the model",
}


def _breaks(run: Run) -> Iterator[Finding]:
    """Scores that fell between two evaluations, and stayed there, while the training loss kept its level."""
    for one in breaks(run):
        curve, rose, gained = one.curve, one.rose, one.gained
        before, after = curve.row(one.at - 1), curve.row(one.at)
        yield score_falls.finding(
            f"{curve.name} fell from {before['value']:.4g} to {after['value']:.4g} between two evaluations and stays"
            " there although the training loss did not rise",
            _BREAKS[rose, gained],
            proof(after, before, curve.row(-1)),
            Onset(step=after["at"], step_lo=before["at"]),
            cause="forgetting" if gained else "cause_not_recorded",
            numbers={"best": before["value"], "last": curve.row(-1)["value"], "best_step": before["at"]},
            next=()
            if gained
            else (
                f"evaluate the checkpoint of step {before['at']} with today's data and code",
                "compare order and labels of the evaluation set, its preprocessing, and the mode of the model (eval())",
            ),
        )


#: Error rates are shares or percentages.
_SHARE, _PERCENT = 1.0, 100.0


def _lost(run: Run, cfg: ScoreFalls) -> Iterator[Finding]:
    """The first score that was gained and is lost for good, of an evaluation or of training.

    A part of the loss that training lowers is no task of before: it is learned by heart. What follows a NaN is its
    consequence. Where the loss left its level, that explains the fall, unless another score
    rose meanwhile: then the model learned something else. A cost that was best at first is lost only in that case.
    """
    is_broken = watched_series(run).filter(pl.col("n_bad") > 0).height > 0
    if is_broken:
        return
    is_left = any(one.gone is not None for one in losses(run))
    trained = _parts_of_training(run)
    every = [one for one in eval_curves(run) if not (is_of_loss(one.name) and without_split(one.name) in trained)]
    held_out = [(one, score) for one in every if (score := _as_score(one)).rows.height]
    training = [] if reinforced(run) else [(one, one) for one in training_scores(run)]
    for curve, score in (*held_out, *training):
        fall = fall_of(RlSeries("score", curve.name, score.rows), Episodes())
        if fall is None or stands_for("of_reinforcement", curve.name):
            continue
        at = score.row(fall.peak)["at"]
        is_traded = any(_gained(other, at, cfg) for one, other in held_out if one is not curve)
        is_task = stands_for("score_of_a_task", curve.name)  # that it was learned before, its name says
        if not (fall.rose or _guessed(curve.name) is not None or (is_traded and (is_task or not curve.higher))):
            continue
        if is_left and not is_traded:
            continue
        top, start = curve.row(fall.peak), curve.row(fall.onset)
        level = median_of(curve.values[fall.onset :])
        is_part = not curve.higher and stands_for("part_of_loss", curve.name)  # the others are parts, and no tasks
        yield score_falls.finding(
            f"{curve.name} {'fell' if curve.higher else 'rose'} from {top['value']:.4g} to {level:.4g}"
            f" from {at_step(start['at'])} on, and stays there",
            f"what it {'had gained' if fall.rose or is_part else 'knew'} is lost, and nothing of the last fifth comes"
            " back",
            proof(start, top, curve.row(-1)),
            Onset(step=start["at"], step_lo=curve.row(max(0, fall.onset - 1))["at"]),
            cause="overfitting" if is_part else "forgetting" if is_traded or not fall.rose else "cause_not_recorded",
            numbers={"best": top["value"], "last": level, "best_step": top["at"]},
        )
        return


def _parts_of_training(run: Run) -> frozenset[tuple[str, ...]]:
    """The losses that a run logs of its training, by their names without the word that says so."""
    names = metric_names(run)["raw_name"].drop_nulls().unique().to_list()
    return frozenset(without_split(name) for name in names if stands_for("names_training", name) and is_of_loss(name))


def _last_lost(run: Run, cfg: ScoreFalls) -> Iterator[Finding]:
    """Scores of which next to nothing is left in the last evaluation, although the ones before it were steady."""
    if reinforced(run) or watched_series(run).filter(pl.col("n_bad") > 0).height > 0:
        return
    for curve in (c for c in eval_curves(run) if c.higher and len(c.values) >= cfg.evaluations):
        before, last = curve.values[-1 - cfg.last : -1], float(curve.values[-1])
        is_steady = float(before.min()) >= cfg.broken * float(before.max()) > 0
        if not is_steady or median_of(before) <= curve.values[0] or not 0 <= last <= cfg.gone * float(before.min()):
            continue
        end, known = curve.row(-1), curve.row(-2)
        yield score_falls.finding(
            f"{curve.name} fell from {known['value']:.4g} to {last:.4g} in the last evaluation",
            f"the {cfg.last} evaluations before it are steady, and next to nothing is left of them",
            proof(end, known),
            Onset(step=end["at"], step_lo=known["at"]),
            confidence="low",
            cause="cause_not_recorded",
            numbers={"best": known["value"], "last": last, "best_step": known["at"]},
            next=(f"evaluate {nearest_words(run, end['at'])} once more, and the one before it with the same code",),
        )
        return


def _as_score(curve: EvalCurve) -> EvalCurve:
    """A metric as a score of which more is better; without rows where it is none, or where other rules judge it.

    A cost is what its best value is a share of: at twice the best it is a half. An error rate that reached zero is
    turned round.
    """
    value, least, most = pl.col("value"), float(curve.values.min()), float(curve.values.max())
    if curve.higher:
        return curve
    if curve.higher is False and least > 0 and curve.name != "eval_loss":
        return replace(curve, rows=curve.rows.with_columns(value=least / value))
    if curve.higher is None or least != 0 or not is_error_rate(curve.name):
        return replace(curve, rows=curve.rows.clear())
    whole = _SHARE if most <= _SHARE else max(_PERCENT, most)  # more words than there are can be wrong
    return replace(curve, rows=curve.rows.with_columns(value=whole - value))


#: Two scores that differ by this share of them are equal: seeds differ by 1 to 5 % (Dodge et al. 2020).
_AS_GOOD = 0.01
#: Errors of two levels by which one is above the other.
_SURE = 3.0


def _guessed(name: str) -> float | None:
    """What a guess scores by this metric, if that is known: in a known benchmark, or 0 in a correlation."""
    return 0.0 if stands_for("correlation", name) else benchmark_of(name)


def _best(curve: EvalCurve, cfg: ScoreFalls, *, paid: bool) -> int | None:
    """The place of the best value, where the end is surely below it.

    A policy that is `paid` knew something before its first evaluation, and no share of right answers is its error.
    """
    values = curve.values
    if len(values) < cfg.evaluations:
        return None
    top = float(values.max())
    best = int(np.flatnonzero(values == top)[-1])  # a fall begins behind the last of equal ones
    bound = max(cfg.fall * top, high_by_chance(values))
    # a score is a share or a percentage, and first rises or stays; else it is an error under the name of a score
    is_score = 0 < top <= 1 or top > cfg.percent or (top > 0 and stands_for("held_out_reward", curve.name))
    below = bool((values[-cfg.last :] < top - bound).all())
    chance = _guessed(curve.name)
    chance = 0.0 if chance is None and paid and counts_right(curve.name) else chance
    knew = chance is not None and top > (chance if top <= 1 else 100 * chance) + bound
    stood = bool((values[: cfg.last + 1] >= (1 - _AS_GOOD) * top).all())  # all as good as the best
    rose = top > float(values[0]) + bound or knew or stood
    return best if is_score and rose and below and best < len(values) - cfg.last else None


def _left(curve: EvalCurve, best: int, cfg: ScoreFalls) -> int:
    """The last place that is as good as the best, where half of the fall comes right behind it; else the best."""
    values, top = curve.values, float(curve.values[best])
    near = max(high_by_chance(values) / 2, _AS_GOOD * top)
    left = int(np.flatnonzero(values >= top - near)[-1])
    behind = values[left + 1 : left + 1 + cfg.stays]
    return left if len(behind) and values[left] - behind.min() >= (top - float(values[-1])) / 2 else best


def _gained(curve: EvalCurve, step: int, cfg: ScoreFalls) -> bool:
    """Whether a score is higher at its end than it ever was up to a step, by a share of its size and its noise."""
    before = curve.values[curve.steps <= step]
    end = float(curve.values[-cfg.last :].min())
    if not len(before):
        return stands_for("score_of_a_task", curve.name)
    return end > float(before.max()) + max(cfg.fall * end, high_by_chance(curve.values))


def _improved(loss: Curve, curve: EvalCurve, best: int, cfg: ScoreFalls) -> bool:
    levels = levels_about(loss, curve, best, cfg)
    return levels is not None and levels[1] < levels[0]


def _earned_more(reward: RlSeries, curve: EvalCurve, best: int, cfg: ScoreFalls) -> bool:
    """Whether a reward rose behind an evaluation by more than the errors of its levels explain."""
    rows = reward.finite.drop_nulls("at").sort("at")
    at, values = rows["at"].to_numpy(), rows["value"].to_numpy()
    then = values[at <= curve.row(best)["at"]][-cfg.records :]
    now = values[at > curve.row(best)["at"]][-cfg.records :]
    if min(len(then), len(now)) < cfg.last:
        return False
    levels = [median_of(part) for part in (then, now)]
    spread = hypot(*(scatter(part - level) for part, level in zip((then, now), levels, strict=True)))
    return levels[1] - levels[0] > _SURE * spread / sqrt(min(len(then), len(now)))


_EMA = lazily(r"(?i)[_/. -]?(?<![a-z])(?:ema|averaged|swa)(?![a-z])[_/. -]?")


class AveragedWorse(Struct, frozen=True):
    """Thresholds of EVL023: by what share the average is worse, at how many last steps."""

    worse: float = 0.1
    last: int = 3


@rule("EVL023 averaged-weights-worse", "metrics", severity="warning", confidence="medium", cause="averaged_weights")
def averaged_worse(run: Run, cfg: AveragedWorse) -> Findings:
    """Compare each averaged metric with its plain one."""
    every = eval_curves(run)
    plain = {name: c for c in every if not _EMA.search(c.name) for name in (c.row(0)["raw_name"] or c.name, c.name)}
    plain |= {re.sub(r"[_/. -]", "/", name): c for name, c in plain.items()}
    for curve in every:
        name = re.sub(r"[_/. -]", "/", _EMA.sub("/", curve.name).strip("/"))
        own = plain.get(name) if _EMA.search(curve.name) and curve.higher is not None else None
        places = _far(own, curve, cfg) if own is not None else None
        if own is None or places is None:
            continue
        mine, other = own.row(places[0]), curve.row(places[1])
        yield averaged_worse.finding(
            f"{curve.name} is {other['value']:.4g} at step {other['at']}, without averaging {mine['value']:.4g}",
            "the average of the weights scores worse than the weights at the last steps",
            proof(other, mine),
            Onset(step=other["at"]),
            numbers={"averaged": other["value"], "plain": mine["value"]},
        )
        return


def _far(own: EvalCurve, averaged: EvalCurve, cfg: AveragedWorse) -> tuple[int, int] | None:
    """The last common places, where the average is the worse one at each of the last common steps."""
    _, left, right = np.intersect1d(own.steps, averaged.steps, return_indices=True)
    if len(left) < cfg.last:
        return None
    a, b = own.values[left[-cfg.last :]], averaged.values[right[-cfg.last :]]
    gaps = (a - b if averaged.higher else b - a) / np.maximum(np.abs(a), 1e-12)
    return (int(left[-1]), int(right[-1])) if bool((gaps > cfg.worse).all()) else None


#: So many finite training losses at the end show that training is sound.
_SOUND = 3
_SHOWN = 3
#: So many evaluations behind the first are finite where it alone was none: of a model that knew nothing yet.
_SETTLED = 10


@rule("EVL027 eval-loss-not-a-number", "metrics", cause="eval_loss_nan")
def eval_loss_nan(run: Run) -> Findings:
    """Find the evaluation loss that is no number although the training loss is one."""
    of_loss = bool(watched_series(run).filter((pl.col("role") == "eval") & (pl.col("n_bad") > 0)).height)
    scores = [] if of_loss else _lost_scores(run)
    if not of_loss and not scores:
        return
    training = watched(run).filter(pl.col("role") == "loss").frame(*SERIES, "seq", "bad")
    every = watched(run).filter(pl.col("role") == "eval").frame()
    series = [*(own for _, own in every.group_by(*SERIES, maintain_order=True)), *scores]
    bad = [own for own in series if own["bad"].any() and not _before_training(own, training)]
    bad = [own for own in bad if not _not_made(own, training)]
    if not bad or not _is_sound(training):
        return
    lost = [own for own in bad if own["bad"][-1]]
    worst = max(lost or bad, key=lambda own: own["bad"].sum())
    finite_too = bool(scores) or any(not own["bad"][-1] for own in series)
    settled = not worst["bad"].tail(-1).any() and worst.height > _SETTLED
    sure = Severity.ERROR if lost and not finite_too else Severity.INFO if settled else Severity.WARNING
    yield _eval_loss_nan_finding(worst, sure)


def _lost_scores(run: Run) -> list[pl.DataFrame]:
    """What evaluations measured that is no number any more, to the end: of constant answers a correlation is none."""
    table = series_of(run, holding(run, "evaluation_metric"), {})
    lost = table.filter((pl.col("n_before") > 0) & (pl.col("n_after") == 0) & (pl.col("n_bad") == pl.col("n_tail")))
    return [watched_of(run, own).frame() for own in lost.filter(pl.col("n_bad") >= _SOUND)["own"].to_list()]


def _before_training(own: pl.DataFrame, training: pl.DataFrame) -> bool:
    """Whether the only evaluation precedes the first training record of its source."""
    first = training.filter(pl.col("source") == own["source"][0])["seq"].min()
    return own.height == 1 and first is not None and own["seq"][0] < first


def _not_made(own: pl.DataFrame, training: pl.DataFrame) -> bool:
    """Whether it fills the training records at which no evaluation was made: those before the first, or those between.

    An evaluation's value then stands in the records up to the next, or evaluations are equally many records apart.
    """
    made = (~own["bad"]).arg_true().to_numpy()
    beside = own.filter("bad").join(training, on=("source", "seq"), how="semi")
    if len(made) < _SOUND or beside.height < own.height - len(made):
        return False
    gaps = np.diff(made)
    is_carried = bool((gaps == 1).all()) and own.filter(~pl.col("bad"))["value"].n_unique() < len(made)
    is_prefix = is_carried and made[-1] == own.height - 1
    return is_prefix or bool(gaps[0] > 1 and (gaps == gaps[0]).all() and max(made[0], own.height - made[-1]) <= gaps[0])


def _is_sound(training: pl.DataFrame) -> bool:
    """Whether there are enough training losses, each finite to its end."""
    ends = [own["bad"].tail(_SOUND) for _, own in training.group_by(*SERIES, maintain_order=True)]
    return bool(ends) and max(map(len, ends)) >= _SOUND and not any(end.any() for end in ends)


def _eval_loss_nan_finding(own: pl.DataFrame, severity: Severity) -> Finding:
    rows: list[dict[str, Any]] = own.filter("bad").to_dicts()
    first, always = rows[0], len(rows) == own.height
    finite = own.filter(~pl.col("bad") & (pl.col("seq") < first["seq"])).tail(1).to_dicts()
    what = "infinite" if first["value_class"] in ("+inf", "-inf") else "NaN"
    where = "in every evaluation" if always else f"from {at_step(first['at'])} on"
    if not own["bad"][-1]:
        where = f"at {at_step(first['at'])}" + (f" and {times(len(rows) - 1)} more" if len(rows) > 1 else "")
    return eval_loss_nan.finding(
        f"{first['raw_name'] or first['name']} is {what} {where}, while the training loss stays finite",
        ("the only evaluation gives" if own.height == 1 else f"{len(rows)} of {own.height} evaluations give")
        + " no number: "
        + ("the evaluation set, its labels or its precision" if always else "precision, weights or single batches"),
        proof(*rows[:_SHOWN], *finite),
        Onset(step=first["at"], t_ns=first["t_ns"], step_lo=finite[0]["at"] if finite else None),
        severity=severity,
        confidence="high" if len(rows) > 1 else "medium",
        numbers={"evaluations": own.height, "not_finite": len(rows)},
    )
