"""A training loss that does not fall, and answers that are guesses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import ceil, exp, floor, log

import numpy as np

from forensics.analyses.evals.curves import EvalCurve, eval_curves
from forensics.analyses.learning.causes import Reason, reason_of
from forensics.analyses.learning.levels import Levels, from_the_start
from forensics.analyses.learning.losses import losses
from forensics.analyses.learning.lr_config import configured, number_of
from forensics.analyses.learning.lr_schedule import schedule_beside
from forensics.analyses.learning.objective import (
    ADAPTER,
    FULL,
    improved,
    paired,
    preferring,
    regime_of,
    reinforced,
    scored_more,
    tuned,
)
from forensics.analyses.learning.rate import Zero, spent
from forensics.analyses.learning.still import finds_nothing, has_idle_score
from forensics.case.curves.loss import Curve, beside
from forensics.case.endings import ending
from forensics.case.evidence import metric_evidence
from forensics.case.folds import has_folds
from forensics.case.settings import OFF
from forensics.knowledge.ranges import range_of
from forensics.patterns import lazily
from forensics.rules.kit import Finding, Findings, Onset, Run, Struct, fact_evidence, number, proof, rule
from forensics.rules.learning.standstill import PLATEAU, is_plateau
from forensics.rules.learning.updates.vanishing import VANISHING, vanished
from forensics.stats.spread import median_of, quantiles_of

#: Classes of widely used data sets: 10 (MNIST, CIFAR-10), 100 (CIFAR-100), 1000 (ImageNet).
_CLASSES = (10, 100, 1000)
_NUMBERS = lazily(r"\d+")
#: Of batches of 8 pairs and more.
_FEWEST_POWER = 3


class Flat(Struct, frozen=True):
    """Thresholds of LRN005; falls are relative.

    `least_fall` and three standard errors bound what counts as a fall; `ever` is the fall of any moving level. Noise
    that would hide a fall of `shown` (`shown_short` in fewer than `records` records) decides nothing. Labels that are
    shuffled still let a model learn how frequent they are, which is worth a few percent (`least_fall`) of the loss.
    A run spans `steps`, or `epochs` where that is what it counts: a model learns something of data seen ten times.
    Noise bounces for `bounced` records without a trend where it would hide no fall of `hidden`.
    A loss that rose threefold (`most_rise`) does not bounce: a curriculum of four stages raised a healthy one 5.5-fold.
    A loss over pairs is that of a guess within `exact` of the logarithm of a power of two, as batches have; one level
    in sixty is. Many trained models have losses near ln(2): `coin` bounds both ends of one that knows nothing.
    Of files of like names, one is left behind where all others fell by `others`, in logarithms, from its `level`.
    An update of Adam moves a weight by no more than the rate, or little more (Kingma and Ba 2015), and weights are some
    hundredths: rates that add up to less than `moved` change none of them by a thousandth.
    `by_heart` is the loss that two examples reach within 200 steps where loop, loss and model are right.
    """

    records: int = 100
    steps: int = 90
    epochs: int = 10
    sigmas: float = 3.0
    least_fall: float = 0.05
    ever: float = 0.08
    fresh: float = 3.0
    near: float = 0.02
    coin: float = 0.005
    noise: float = 0.1
    scores: int = 10
    shown: float = 0.1
    shown_short: float = 0.05
    bounces: float = 0.08
    bounced: int = 60
    hidden: float = 0.25
    swings: float = 2.0
    most_rise: float = 1.1
    tiny: float = 1e-4
    by_heart: float = 0.1
    moved: float = 1e-5
    exact: float = 0.001
    others: float = 0.3
    level: float = 0.15


#: What the rules about zero learning rates, zero gradients and chance call flat.
FLAT = Flat()


@rule("LRN005 loss-not-decreasing", "metrics facts", causal="symptom")
def no_decrease(run: Run, cfg: Flat) -> Findings:
    """Find the longest training loss that never fell."""
    if reinforced(run) or vanished(run, VANISHING) is not None or spent(run, Zero()):
        return
    known = [(one.curve, one.levels) for one in losses(run) if not one.curve.ends_nonfinite and one.levels is not None]
    if not known:
        return
    curve, levels = max(known, key=lambda pair: len(pair[0]))
    if not tuned(run) and all(_bounces(*one, cfg) for one in known):
        yield no_decrease.finding(
            f"{curve.raw_name} bounces around {number(levels.last)} and does not fall",
            f"its noise is {levels.noise.sd:.0%} of its level over {levels.records} records, without a trend",
            proof(curve.row(0), curve.row(-1)),
            severity="warning",
            confidence="medium",
            cause="loss_bounces",
            numbers={"first": levels.first, "last": levels.last, "noise": levels.noise.sd},
        )
    elif all(is_flat(t, cfg) and _would_show(t, cfg) for _, t in known) and not (
        improved(run, curve, 1) or scored_more(run)
    ):
        yield _no_decrease_finding(run, curve, levels, cfg)
    elif (alone := _left_behind(run, known, cfg)) is not None:
        curve, levels, others = alone
        fold = f"fold {curve.attempt + 1} of {len(others) + 1}"
        where, near = (fold, "folds") if has_folds(run) else (curve.source, "files of like names")
        yield no_decrease.finding(
            f"{curve.raw_name} of {where} stays at {number(levels.last)}, and that of {len(others)} {near} fell",
            f"each of the others lost {1 - exp(-min(one.fall for one in others)):.0%} or more of that level",
            proof(curve.row(0), curve.row(-1)),
            severity="warning",
            confidence="medium",
            cause="not_learning",
            numbers={"level": levels.last, "others": len(others)},
        )


def _left_behind(
    run: Run, known: Sequence[tuple[Curve, Levels]], cfg: Flat
) -> tuple[Curve, Levels, list[Levels]] | None:
    """The first loss that stays where those of two or more folds, or files whose names differ in numbers, began."""
    groups: dict[str, list[tuple[Curve, Levels]]] = {}
    for curve, levels in known:
        if curve.rank is None and (curve.attempt == 0 or has_folds(run)):
            groups.setdefault(_NUMBERS.sub("#", curve.source), []).append((curve, levels))
    for group in groups.values():
        for curve, levels in group:
            others = [one for other, one in group if (other.source, other.attempt) != (curve.source, curve.attempt)]
            fell = all(one.fall >= cfg.others and abs(levels.last / one.first - 1) <= cfg.level for one in others)
            if len(others) > 1 and fell and is_flat(levels, cfg) and _would_show(levels, cfg):
                return curve, levels, others
    return None


def _bounces(curve: Curve, levels: Levels, cfg: Flat) -> bool:
    """Whether a loss has no trend, and swings by a good part of the level of a model that knows little."""
    least = -min(cfg.swings * levels.noise.sd, cfg.most_rise)
    flat = least < levels.fall < cfg.sigmas * levels.fall_error < cfg.hidden and levels.noise.sd >= cfg.bounces
    return flat and levels.records >= cfg.bounced and levels.last >= cfg.fresh and from_the_start(curve)


def _long(run: Run, curve: Curve, levels: Levels, cfg: Flat) -> bool:
    first, last = curve.step(0), curve.step(-1)
    span = levels.records if first is None or last is None else last - first + 1
    reach = ending(run).reach
    passes = max(reach.done or 0 if reach.unit == "epoch" else 0, _epochs_of(curve))
    shown = max(span / cfg.steps, passes / cfg.epochs) >= 1 or has_idle_score(run, cfg.scores)
    return shown and from_the_start(curve) and levels.noise.sd_long < cfg.noise


def _epochs_of(curve: Curve) -> float:
    """How many epochs the records of a loss span; 0 where they print none."""
    told = curve.epochs[np.isfinite(curve.epochs)]
    return float(told.max() - told.min() + 1) if len(told) else 0.0


def _is_fresh(run: Run, levels: Levels, cfg: Flat) -> bool:
    """Whether the first level is one of a model that has learned nothing yet."""
    mock = configured(run, "mock_data")
    if mock is not None and mock.text.lower() not in OFF:
        return False
    if paired(run):
        return all(_is_guess_of_pairs(level, cfg) for level in (levels.first, levels.last))
    if preferring(run):
        return all(abs(level / log(2) - 1) <= cfg.near for level in (levels.first, levels.last))
    if tuned(run):
        return regime_of(run) in {ADAPTER, FULL, ""} and levels.first > range_of("finetune_loss").hi
    stated = number_of(run, "vocabulary") or number_of(run, "classes")
    if levels.first >= cfg.fresh:
        return True
    chance = [log(k) for k in (*_CLASSES, *((stated,) if stated else ())) if k > 1]
    ends = (levels.first, levels.last)
    near = any(abs(level / of - 1) <= cfg.near for level in ends for of in chance)
    return near or all(abs(level / log(2) - 1) <= cfg.coin for level in ends)


def _is_guess_of_pairs(level: float, cfg: Flat) -> bool:
    """Whether a loss over the pairs of a batch is that of one who cannot tell them: the logarithm of a power of two."""
    power = level / log(2)
    return round(power) >= _FEWEST_POWER and abs(power / round(power) - 1) <= cfg.exact


def is_flat(levels: Levels, cfg: Flat) -> bool:
    """Whether a loss neither fell to its end, nor in between, nor rose."""
    bound = max(cfg.sigmas * levels.fall_error, -log(1 - cfg.least_fall))
    return abs(levels.fall) < bound and levels.fell < max(bound, -log(1 - cfg.ever))


def _would_show(levels: Levels, cfg: Flat) -> bool:
    """Whether noise is low enough that a fall could be seen."""
    return cfg.sigmas * levels.fall_error < (cfg.shown if levels.records >= cfg.records else cfg.shown_short)


def _is_tiny(run: Run, curve: Curve, cfg: Flat) -> bool:
    """Whether the gradient norm beside a loss is next to nothing, and not exactly nothing, from the start."""
    norm = beside(run, curve, "grad_norm")
    return norm is not None and bool(median_of(norm.values) > 0 and quantiles_of(norm.values, [0.9])[0] < cfg.tiny)


def _starves(run: Run, curve: Curve, cfg: Flat) -> Curve | None:
    """The learning rate beside a loss whose values, added up over all steps, move no weight; None for another one."""
    rate = beside(run, curve, "lr")
    first, last = curve.step(0), curve.step(-1)
    if rate is None or first is None or last is None or rate.ends_nonfinite:
        return None
    return rate if 0 < float(rate.values.mean()) * (last - first + 1) < cfg.moved else None


def _no_decrease_finding(run: Run, curve: Curve, levels: Levels, cfg: Flat) -> Finding:
    tiny = _is_tiny(run, curve, cfg)
    # all the time, by next to nothing
    crawls = levels.fall > cfg.sigmas * levels.fall_error and levels.late_fall > cfg.sigmas * levels.late_error
    reason = None if tiny else _reason(run, curve, levels, cfg)
    knows_nothing = (
        _is_fresh(run, levels, cfg) or finds_nothing(run, cfg.scores) or (levels.last > cfg.by_heart and tiny)
    )
    sure = reason is not None or (knows_nothing and _long(run, curve, levels, cfg))
    what = "hardly fell" if crawls else "did not fall"
    course = "weights_too_small" if tiny else "loss_crawls" if crawls else "not_learning"
    return no_decrease.finding(
        f"{curve.raw_name} {what}: {number(levels.first)} at first, {number(levels.last)} at last",
        f"a fall of more than {max(cfg.least_fall, cfg.sigmas * levels.fall_error):.1%} would have shown"
        f" over {levels.records} records{_usual(run, levels)}" + (f"; {reason.words}" if reason is not None else ""),
        proof(curve.row(0), curve.row(-1), reason.evidence if reason is not None else None),
        severity="warning" if sure else "info",
        confidence="medium" if sure else "low",
        cause=course if reason is None else reason.cause,
        numbers={"first": levels.first, "last": levels.last, "records": levels.records},
    )


def _reason(run: Run, curve: Curve, levels: Levels, cfg: Flat) -> Reason | None:
    """What alone holds a loss up, as far as its learning rate and its settings say; None where nothing does."""
    starving = _starves(run, curve, cfg)
    if starving is not None:
        words = f"the learning rate is {number(float(starving.values.max()))} at most, and moves no weight"
        return Reason("lr_low", words, metric_evidence(starving.row(int(starving.values.argmax()))))
    schedule = schedule_beside(run, curve) if levels.last > range_of("chat_loss").hi else None
    return reason_of(run, schedule) if schedule is not None else None


def _usual(run: Run, levels: Levels) -> str:
    """Say which losses are usual where a pretrained model is tuned, and this one is above them."""
    usual = range_of("finetune_loss")
    return f"; chat data give a pretrained model {usual.healthy}" if tuned(run) and levels.last > usual.hi else ""


#: Settings that say among how many answers a model chooses.
_SIZES = ("vocabulary", "classes")
#: Vocabulary sizes of widely used tokenizers, as their model cards give them.
_USUAL = (30522, 32000, 32064, 49152, 50257, 50304, 65536, 100352, 128256, 151936, 152064, 256000, 262144)


class Uniform(Struct, frozen=True):
    """Thresholds of LRN007: how near to ln(V) a level must be, relatively, and from how many records it is an error.

    In fewer than `fewest` records a run has hardly begun: 60 steps of a demonstration end at chance, and are well.
    A loss that fell from a bad start, settled early (LRN006) and ends up to `over` above ln(V) knows no more.
    """

    fewest: int = 20
    near: float = 0.02
    near_guess: float = 0.01
    records: int = 100
    over: float = 0.25


@rule("LRN007 loss-at-uniform", "metrics facts", cause="uniform_loss")
def uniform_loss(run: Run, cfg: Uniform) -> Findings:
    """Find whether the longest training loss never left ln(vocabulary), or ln(classes)."""
    if reinforced(run):
        return
    one = max(losses(run), key=lambda loss: len(loss.curve), default=None)
    if one is None or one.levels is None or one.curve.ends_nonfinite:
        return
    curve, levels = one.curve, one.levels
    flat = is_flat(levels, FLAT)
    if not flat and not is_plateau(curve, levels, PLATEAU):
        return
    said = filter(None, map(partial(configured, run), _SIZES))
    sizes = {int(one.number): one for one in said if one.number is not None and one.number > 1}
    vocab = _nearest(levels.last, tuple(sizes), cfg) if flat else _below(levels.last, tuple(sizes), cfg)
    if vocab is None or levels.records < cfg.fewest or improved(run, curve, 1):
        return
    known, mock = sizes.get(vocab), configured(run, "mock_data")
    certain = flat and known is not None and levels.records >= cfg.records and from_the_start(curve)
    mocked = mock is not None and mock.text.lower() not in OFF
    yield uniform_loss.finding(
        f"{curve.raw_name} stays at {number(levels.last)}: ln({vocab}) = {number(log(vocab))} is the cost of chance",
        f"first level {number(levels.first)}, last level {number(levels.last)}, over {levels.records} records",
        proof(
            curve.row(0 if flat else levels.settled),
            curve.row(-1),
            *(fact_evidence(one.row) for one in (known, mock) if one is not None),
        ),
        severity="info" if mocked else "error" if certain else "warning",
        confidence="high" if certain else "low" if known is None else "medium",
        numbers={"level": levels.last, "ln_vocab": log(vocab), "vocab": vocab},
    )


def _nearest(level: float, sizes: tuple[int, ...], cfg: Uniform) -> int | None:
    near = cfg.near if sizes else cfg.near_guess
    best = min(sizes or _USUAL, key=lambda v: abs(log(v) - level))
    return best if abs(log(best) / level - 1) <= near else None


def _below(level: float, sizes: tuple[int, ...], cfg: Uniform) -> int | None:
    """The size of which a guess costs no more than this level, and not much less."""
    return next((v for v in sizes if (1 - cfg.near) * log(v) <= level <= (1 + cfg.over) * log(v)), None)


class Guessing(Struct, frozen=True):
    """Thresholds of LRN035.

    A loss within `near` of ln(k) leaves room for the confidence of a model that learned its training set by heart. The
    best of ten evaluations of a hundred samples in ten classes is below `luck` times chance in 999 of 1000 cases.
    """

    evaluations: int = 5
    steps: int = 90
    many: int = 10
    near: float = 0.1
    around: float = 0.15
    luck: float = 2.0
    fall: float = 0.05


@rule("LRN035 eval-guesses", "metrics", severity="warning", confidence="medium", cause="not_learning")
def guessing(run: Run, cfg: Guessing) -> Findings:
    """Find an evaluation score and its loss that stay at chance."""
    every = eval_curves(run)
    costs = [c for c in every if c.higher is False and _is_idle(c, cfg)]
    for score in (c for c in every if c.higher):
        for cost in costs:
            if not (classes := _classes(score, cost, cfg)):
                continue
            level, chance = median_of(cost.values), median_of(score.values)
            yield guessing.finding(
                f"{score.name} stays at {number(chance)} in {len(score.values)} evaluations:"
                f" guessing among {classes} classes",
                f"{cost.name} is {number(level)} throughout, and guessing costs ln({classes}) = {number(log(classes))}",
                proof(score.row(0), score.row(-1), cost.row(-1)),
                Onset(step=score.row(0)["at"]),
                numbers={"level": level, "classes": classes, "score": chance},
            )
            return


def _is_idle(cost: EvalCurve, cfg: Guessing) -> bool:
    """Whether an evaluation loss was followed for long, and never fell."""
    values, third = cost.values, max(1, len(cost.values) // 3)
    if len(values) < cfg.evaluations or values.min() <= 0:
        return False
    if len(values) < cfg.many and cost.steps[-1] - cost.steps[0] < cfg.steps:
        return False
    return bool(median_of(values[-third:]) >= (1 - cfg.fall) * median_of(values[:third]))


def _classes(score: EvalCurve, cost: EvalCurve, cfg: Guessing) -> int:
    """The number of classes among which a score and a loss say that it is guessed; 0 where they do not."""
    shares = score.values / (100.0 if score.values.max() > 1 else 1.0)
    chance, level = median_of(shares), median_of(cost.values)
    if len(shares) < cfg.evaluations or not 0 < chance < 1:
        return 0
    about = range(max(2, ceil((1 - cfg.around) / chance)), floor((1 + cfg.around) / chance) + 1)
    classes = min(about, key=lambda k: abs(level / log(k) - 1), default=0)
    if not classes or shares.max() > min(cfg.luck / classes, (1 + 1 / classes) / 2):
        return 0
    return classes if abs(level / log(classes) - 1) <= cfg.near else 0
