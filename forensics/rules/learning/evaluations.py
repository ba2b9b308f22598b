"""An evaluation loss beside the training loss, and one that repeats."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from forensics.analyses.evals.curves import EvalCurve, eval_curves, training_scores
from forensics.analyses.evals.results import benchmark_of
from forensics.analyses.learning.losses import fell_by, losses
from forensics.analyses.learning.objective import ADAPTER, FULL, paired, regime_of, reinforced
from forensics.case.curves.loss import Curve, beside, curves
from forensics.knowledge.scores import is_of_positives
from forensics.rules.kit import Finding, Findings, Run, Struct, number, onset_at, proof, rule
from forensics.stats.spread import Floats, behind_last, median_of


class Apart(Struct, frozen=True):
    """Thresholds of LRN020; `gap` is in nats: half a nat is a third of what chat data give.

    Dropout of 0.1 and label smoothing of 0.1 raise a training loss by less than `below` allows for; mixup with label
    smoothing by up to four times (ImageNet recipes: 2.6 in training beside 0.7 to 0.8), which `far_below` allows for.
    Where nothing says what is trained, a training loss above `nats`, the cost of a guess among a million classes, holds
    something that the evaluation does not.
    """

    evaluations: int = 3
    above: float = 1.5
    below: float = 0.6
    far_below: float = 0.2
    gap: float = 0.5
    moves: float = 0.5
    copied: int = 5
    nats: float = 14.0


@rule("LRN020 eval-apart", "metrics facts", severity="warning")
def eval_apart(run: Run, cfg: Apart) -> Findings:
    """Find the first evaluation loss that differs from the training loss of its source."""
    regime = regime_of(run)
    if regime not in {ADAPTER, FULL, ""} or paired(run) or reinforced(run):
        return
    below = cfg.below if regime else cfg.far_below
    for evals in curves(run, "eval_loss"):
        if _goes_on(run, evals) or _since(evals.values) == 0:
            continue
        training = beside(run, evals, "loss")
        if training is not None and _is_copy(training, evals, cfg):
            yield eval_apart.finding(
                f"{evals.raw_name} equals {training.raw_name} to the last digit in each of {len(evals)} evaluations",
                "other samples, or the same ones without dropout, give another loss",
                proof(evals.row(0), evals.row(-1), training.row(-1)),
                onset_at(evals.row(0)),
                confidence="medium",
                cause="eval_is_training",
                numbers={"evaluations": len(evals)},
            )
            return
        levels = np.empty(0) if training is None else _levels(training, evals)
        told = np.isfinite(levels)  # evaluations that have a training before them
        if int(told.sum()) < cfg.evaluations:
            continue
        pair = Pair(evals, np.flatnonzero(told).tolist(), evals.values[told], levels[told])
        if not regime and median_of(pair.levels) > cfg.nats:
            continue
        gaps, ratio = pair.values - pair.levels, median_of(pair.values / pair.levels)
        if bool((gaps >= cfg.gap).all()) and ratio >= cfg.above:
            if float(np.ptp(gaps)) < cfg.moves * median_of(gaps):
                yield _finding(pair, "above", "eval_shifted", sure=bool(regime))
                return
        elif bool((-gaps >= cfg.gap).all() and (pair.values > 0).any()) and ratio <= below:
            yield _finding(pair, "below", "eval_leak", sure=bool(regime))
            return


def _is_copy(training: Curve, evals: Curve, cfg: Apart) -> bool:
    """Whether each evaluation has the number of the training at its step, and these are of `copied` kinds or more."""
    then = dict(zip(training.at, training.values.tolist(), strict=True))
    values = evals.values.tolist()
    equal = all(then.get(step) == value for step, value in zip(evals.at, values, strict=True))
    return equal and len(set(values)) >= cfg.copied


def _goes_on(run: Run, evals: Curve) -> bool:
    """Whether another curve of the same name holds earlier evaluations, as that of the file before a restart does."""
    first = evals.step(0)
    others = (other for other in curves(run, "eval_loss") if other.raw_name == evals.raw_name)
    return first is not None and any((step := other.step(0)) is not None and step < first for other in others)


class Pair(Struct, frozen=True):
    """The evaluations of `evals` at some `places` of it, and the training loss before each."""

    evals: Curve
    places: list[int]
    values: Floats
    levels: Floats


def _levels(training: Curve, evals: Curve) -> Floats:
    """The median training loss of the later half of the records since the evaluation before; NaN without a record.

    An evaluation at the step of a training record is of the weights that the record made.
    """
    ends = np.searchsorted(training.places, evals.places, side="right")
    starts = np.concatenate([[0], ends[:-1]])
    starts += (ends - starts) // 2
    values = training.values
    return np.array([median_of(values[a:b]) if a < b else np.nan for a, b in zip(starts, ends, strict=True)])


def _finding(pair: Pair, side: str, cause: str, *, sure: bool) -> Finding:
    evals, levels = pair.evals, pair.levels
    gap, level = median_of(pair.values - levels), median_of(levels)
    return eval_apart.finding(
        f"{evals.raw_name} is {number(round(abs(gap), 3))} {side} the training loss from the first evaluation on",
        f"{number(float(pair.values[0]))} beside {number(float(levels[0]))} at first,"
        f" {number(float(pair.values[-1]))} beside {number(float(levels[-1]))} at last"
        + (": overfitting would grow" if side == "above" else ""),
        proof(evals.row(pair.places[0]), evals.row(pair.places[-1])),
        confidence="medium" if sure else "low",
        cause=cause,
        numbers={"gap": gap, "train": level},
    )


class FrozenEval(Struct, frozen=True):
    """Thresholds of LRN034: evaluations that agree, their share of all, and the digits that make chance agree rarely.

    An evaluation loss that still falls by a thousandth repeats five digits once in a hundred, three times once in 10⁴.
    One that never moved is of the evaluation alone where the training loss fell by `learns` beside it.
    """

    repeats: int = 3
    share: float = 0.5
    digits: int = 5
    learns: float = 0.1


@rule("LRN034 frozen-eval", "metrics", severity="warning", confidence="medium", cause="frozen_loss")
def frozen_eval(run: Run, cfg: FrozenEval) -> Findings:
    """Find the first evaluation loss that moved and then repeats, or that never moved while the model learned."""
    for evals in curves(run, "eval_loss"):
        start = _since(evals.values)
        count, value = len(evals) - start, float(evals.values[-1]) if len(evals) else 0.0
        if count < max(cfg.repeats, cfg.share * len(evals)) or _digits(evals.values) < cfg.digits or value == 0:
            continue
        same = f"{evals.raw_name} is {number(value)} to the last digit in"
        numbers = {"value": value, "evaluations": count}
        if start:
            yield frozen_eval.finding(
                f"{same} its last {count} evaluations",
                "one evaluation set gives one loss only where no weight changed between",
                proof(evals.row(start), evals.row(start - 1), evals.row(-1)),
                onset_at(evals.row(start), evals.step(start - 1)),
                numbers=numbers,
            )
            return
        if not _goes_on(run, evals) and any(fell_by(one) >= cfg.learns for one in losses(run)):
            yield frozen_eval.finding(
                f"{same} each of its {count} evaluations while the training loss fell",
                "weights that learn change this loss: the evaluated weights are not those that are trained",
                proof(evals.row(0), evals.row(-1)),
                onset_at(evals.row(0)),
                cause="stale_evaluation",
                numbers=numbers,
            )
            return


def _since(values: Floats) -> int:
    """The position from which on every evaluation has the last one's value."""
    return behind_last(values != values[-1]) if len(values) else 0


def _digits(values: Floats) -> int:
    """Significant digits of the most precise value: a file drops the zeros at the end of the others."""
    return max(len(Decimal(repr(float(value))).normalize().as_tuple().digits) for value in values)


class OneScore(Struct, frozen=True):
    """Thresholds of LRN036: equal scores at the end, their share of all, and the most that a guesser reaches.

    A small set of samples repeats its score while the model learns: a training loss that fell by `learns` says so. Of
    one that fell to `left` beside `many` equal scores of `poor` at most, none of what was learned holds there, unless
    another score rose by `rises` of the whole. `zeros`: evaluations without a right answer of the class that is sought.
    A score of `precise` digits is of hundreds of samples: `still` equal ones, from the first on, are no chance. A score
    of `low` at most moves further than by `near` of itself within `many` evaluations of a model that learns.
    """

    repeats: int = 5
    share: float = 0.8
    most: float = 0.9
    learns: float = 0.1
    many: int = 8
    poor: float = 0.6
    left: float = 0.25
    rises: float = 0.1
    zeros: int = 3
    precise: int = 4
    still: int = 10
    low: float = 0.1
    near: float = 0.01


def _none_found(run: Run, cfg: OneScore) -> Finding | None:
    """Scores of single classes, half of them zero in every evaluation, beside one of the others that is not."""
    every = [one for one in eval_curves(run) if one.higher and len(one.values) >= cfg.zeros]
    sought = [one for one in every if is_of_positives(one.name)]
    zeros = [one for one in sought if not one.values.any()]
    right = next((one for one in every if one not in zeros and bool((one.values > 0).all())), None)
    if right is None or not zeros or 2 * len(zeros) < len(sought):
        return None
    one = max(zeros, key=lambda curve: len(curve.values))
    return one_score.finding(
        f"{one.name} is 0 in every one of {len(one.values)} evaluations, and {right.name} is"
        f" {number(float(right.values[-1]))}",
        "no sample of the class that is sought was found: the score of the rest is the share of the other class",
        proof(one.row(0), one.row(-1), right.row(-1)),
        numbers={"value": float(right.values[-1]), "evaluations": len(one.values)},
    )


def _rise_of(score: EvalCurve) -> float:
    """By what share of the whole the best score lies above the first."""
    values = score.values
    return float(values.max() - values[0]) / (100.0 if float(values.max()) > 1 else 1.0)


@rule("LRN036 eval-score-constant", "metrics", severity="warning", confidence="medium", cause="one_answer")
def one_score(run: Run, cfg: OneScore) -> Findings:
    """Find the first evaluation score that is the same number again and again, whatever is learned, if anything."""
    if not reinforced(run) and (found := _none_found(run, cfg)) is not None:
        yield found
        return
    fell = max(map(fell_by, losses(run)), default=0.0)
    learned = fell >= cfg.learns
    if reinforced(run):
        return
    scores = [one for one in eval_curves(run) if one.higher]
    benchmarks = _benchmarks(run) if learned else []
    benchmarks += () if scores else training_scores(run)  # no score of batches is the same to the last digit
    stood = next((one for one in (*scores, *benchmarks) if _stood(one, cfg)), None)
    if stood is not None:
        is_stale = stood not in scores and benchmark_of(stood.name) is not None
        yield _constant(stood, 0, fell if learned else 0.0, "stale_evaluation" if is_stale else "one_answer")
        return
    idle = [one for one in scores if _is_stuck(one, cfg)]
    if learned and idle and not any(_rise_of(one) >= cfg.near for one in scores):
        yield _constant(idle[0], 0, fell, "learned_for_training_only")
        return
    if learned and (fell < 1 - cfg.left or any(_rise_of(one) >= cfg.rises for one in scores)):
        return
    repeats, most = (cfg.many, cfg.poor) if learned else (cfg.repeats, cfg.most)
    for score in scores:
        values = score.values
        start = _since(values)
        count, value = len(values) - start, float(values[-1])
        share = value / (100.0 if value > 1 else 1.0)
        if count < max(repeats, cfg.share * len(values)) or not 0 < share <= most:
            continue
        if learned and float(values.min()) < (1 - cfg.learns) * value:  # it learned what the evaluation asks, and stays
            continue
        yield _constant(
            score, start, fell if learned else 0.0, "learned_for_training_only" if learned else "one_answer"
        )
        return


def _benchmarks(run: Run) -> list[EvalCurve]:
    """Scores of known benchmarks, which no training batch has, whatever their names say of a split."""
    return [one for one in training_scores(run) if benchmark_of(one.name) is not None]


def _stood(score: EvalCurve, cfg: OneScore) -> bool:
    """Whether many evaluations of hundreds of samples gave one score, from the first on."""
    values = score.values
    share = float(values[-1]) / (100.0 if values[-1] > 1 else 1.0)
    return len(values) >= cfg.still and _since(values) == 0 and 0 < share < 1 and _digits(values) >= cfg.precise


def _is_stuck(score: EvalCurve, cfg: OneScore) -> bool:
    """Whether many evaluations gave nearly one score, from the first on, which is next to nothing."""
    least, most = float(score.values.min()), float(score.values.max())
    share = most / (100.0 if most > 1 else 1.0)
    return len(score.values) >= cfg.many and 0 < share <= cfg.low and least >= (1 - cfg.near) * most


def _constant(score: EvalCurve, start: int, fell: float, cause: str) -> Finding:
    value, count = float(score.values[-1]), len(score.values) - start
    about = "" if bool((score.values[start:] == value).all()) else "about "
    return one_score.finding(
        f"{score.name} is {about}{number(value)} in each of the last {count} evaluations"
        + (f" while the training loss fell by {fell:.0%}" if fell else ""),
        "a model that changes gives other answers, unless it gives every sample the same one",
        proof(score.row(start), score.row(-1)),
        cause=cause,
        numbers={"value": value, "evaluations": count},
    )
