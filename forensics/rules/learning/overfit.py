"""An evaluation that gets worse while training goes on."""

from __future__ import annotations

from math import hypot, log, sqrt

import numpy as np
import polars as pl

from forensics.analyses.evals.breaks import breaks
from forensics.analyses.evals.curves import eval_curves
from forensics.analyses.learning.objective import reinforced
from forensics.case.checkpoints import nearest_words
from forensics.case.curves.loss import Curve, curves
from forensics.case.joined.stores import counted
from forensics.case.names.splits import without_split
from forensics.case.series import metric_names
from forensics.knowledge.scores import direction, is_of_loss
from forensics.knowledge.vocabulary import stands_for
from forensics.rules.kit import Evidence, Findings, Locator, Run, Severity, Struct, number, onset_at, proof, rule
from forensics.stats.correlation import noise_about
from forensics.stats.running import centred_median
from forensics.stats.spread import Floats, bending, median_of

#: Fewer values have one second difference at most.
_BENDS = 3


class Overfit(Struct, frozen=True):
    """Thresholds of LRN002: `rises`, `rise` and `training_left` for the error, the others for the milder forms.

    `least` is the smallest relative rise of the evaluation loss, `warn` the one that is a warning, `sigmas` the
    significance of the fall of the training loss, from its `near` records before the lowest evaluation or from the
    third of its records after that; `doubled` is the rise that is an error where the training loss fell to
    `training_left` and no score of an evaluation got better meanwhile; `factor` times the expected depth of the lowest
    evaluation (Cramer 1946: about sqrt(2 ln n) deviations below the mean) must be exceeded. `few` evaluations are
    enough where the last is `far` above the lowest: two of one model differ by 1 to 5 % (Dodge et al. 2020), and a
    fine-tuning evaluates once in an epoch. Of one less than `evaluations`, `parting` that are each worse than the one
    before warn where they rise by `parted` while the training loss is lower at each: of 20,000 made runs whose four
    evaluation losses fall, with noise of 3 %, none does so. Where the first evaluation is the best and no score was
    ever more than `stands` above its median or reached `guess`, nothing that was learned holds for the evaluation.
    Where no loss of training was recorded, as of boosted trees, `alone` evaluations warn that fell by `warn`, and rose
    by as much with at most `at_once` of it between two evaluations: what breaks off diverged.
    """

    evaluations: int = 5
    few: int = 3
    far: float = 0.5
    parting: int = 2
    parted: float = 0.03
    rises: int = 3
    rise: float = 0.25
    training_left: float = 1 / 3
    least: float = 0.01
    warn: float = 0.1
    doubled: float = 1.0
    sigmas: float = 3.0
    factor: float = 1.2
    near: int = 3
    stands: float = 0.1
    guess: float = 0.6
    alone: int = 20
    at_once: float = 0.25


@rule("LRN002 overfit", "metrics", confidence="medium", cause="overfit")
def overfit(run: Run, cfg: Overfit) -> Findings:
    """Find the first evaluation loss that rises to the end while the training loss falls, the worst kind first."""
    training = [c for c in curves(run, "loss") if len(c) >= cfg.few]
    found = [
        (c, hit)
        for c in curves(run, "eval_loss")
        if (hit := _judge(c, own := _of_its_attempt(training, c), cfg) or _parting(c, own, cfg)) is not None
    ]
    is_alone = not found and not training and _is_alone(run)
    if is_alone:
        found = [
            (c, (best, Severity.WARNING)) for c in curves(run, "eval_loss") if (best := _turned(c, cfg)) is not None
        ]
    if not found:
        return
    curve, (best, severity) = max(found, key=lambda pair: pair[1][1].rank)
    if severity is not Severity.INFO and _scores_rose(run, curve.step(best)):
        severity = Severity.INFO if _is_part(run, curve) else Severity.WARNING
    low, last = float(curve.values[best]), float(curve.values[-1])
    step, epoch, rising = curve.step(best), curve.epochs[best], curve.row(best + 1)
    where = f"evaluation {best + 1}" if np.isnan(epoch) else f"epoch {epoch:.3g}"
    where = where if step is None else f"step {step}"
    taken = f"the checkpoint of {where}" if step is None else nearest_words(run, step)
    meanwhile = f" while the training loss {'vanished' if severity is Severity.ERROR else 'fell'}"
    apart = best == 0 and len(curve) >= cfg.evaluations and _never_scored(run, cfg)
    yield overfit.finding(
        f"{curve.raw_name} rose from {low:.4g} at {where} to {last:.4g}{'' if is_alone else meanwhile}",
        "every evaluation after the lowest is worse than the one before it"
        if bool((np.diff(curve.values[best:]) > 0).all())
        else "the last evaluations are above the lowest by more than their noise explains",
        proof(rising, curve.row(best), curve.row(-1)),
        onset_at(rising, step),
        severity=severity,
        confidence="low" if is_alone or (len(curve) < cfg.evaluations and severity is Severity.WARNING) else "medium",
        cause="learned_for_training_only" if apart else "overfit",
        numbers={"best": low, "last": last},
        next=("evaluate a part of the training set with the code of the evaluation",)
        if apart
        else (f"use {taken}", "stop earlier, regularise, or add data"),
    )


def _is_alone(run: Run) -> bool:
    """Whether no loss of training was recorded, not even a part of one, and nothing is rewarded."""
    names = metric_names(run)["raw_name"].drop_nulls().unique().to_list()
    costs = [name for name in names if stands_for("of_loss", name)]
    return not reinforced(run) and all(stands_for("held_out_word", name) for name in costs)


def _turned(evals: Curve, cfg: Overfit) -> int | None:
    """The lowest of many evaluations that fell to it, and rose behind it step by step."""
    values, best = evals.values, int(np.argmin(evals.values))
    low = float(values[best])
    if len(values) < cfg.alone or low <= 0 or values[0] < low * (1 + cfg.warn) or evals.ends_nonfinite:
        return None
    rise, most = _rise(values, best, cfg), float(np.diff(values[best:]).max(initial=0.0))
    return best if rise is not None and rise >= cfg.warn and most <= cfg.at_once * rise * low else None


def _of_its_attempt(training: list[Curve], evals: Curve) -> list[Curve]:
    """The training losses beside an evaluation loss in one file, of the same attempt or fold; else those of any.

    Of a sum that is logged in its parts only the same part.
    """
    beside = [one for one in training if (one.source, one.attempt) == (evals.source, evals.attempt)]
    twins = [one for one in beside if without_split(one.raw_name) == without_split(evals.raw_name)]
    return twins or beside or training


def _is_part(run: Run, evals: Curve) -> bool:
    """Whether an evaluation loss is one part of a sum: more of its file have their own part of the training loss."""
    parts = {without_split(one.raw_name) for one in curves(run, "loss") if one.source == evals.source}
    return len(parts) > 1 and without_split(evals.raw_name) in parts


def _never_scored(run: Run, cfg: Overfit) -> bool:
    """Whether there are scores of evaluations, and none was ever clearly better than the first one and the others."""
    scores = [one.values for one in eval_curves(run) if one.higher and len(one.values) >= cfg.evaluations]
    return bool(scores) and all(
        float(values.max()) <= (1 + cfg.stands) * median_of(values)
        and float(values.max()) < cfg.guess * (1 if values.max() <= 1 else 100)
        for values in scores
    )


def _scores_rose(run: Run, step: int | None) -> bool:
    """Whether a score of which more is better, as an accuracy, reached more after the lowest evaluation loss."""
    for score in eval_curves(run):
        if score.higher and step is not None:
            before, after = score.values[score.steps <= step], score.values[score.steps > step]
            if len(before) and len(after) and after.max() > before.max():
                return True
    return False


def _judge(evals: Curve, training: list[Curve], cfg: Overfit) -> tuple[int, Severity] | None:
    values = evals.values
    if len(values) < cfg.few:
        return None
    best = int(np.argmin(values))
    tail = values[best:]
    if tail[0] <= 0:
        return None
    before = [(t, until) for t in training if (until := _until(t, evals, best))]
    few = len(values) < cfg.evaluations
    only_rises = len(tail) > cfg.rises and bool((np.diff(tail) > 0).all()) and tail[-1] >= tail[0] * (1 + cfg.rise)
    far = tail[-1] >= tail[0] * (1 + cfg.far)
    if (far if few else only_rises) and any(_vanished(t, until, cfg) for t, until in before):
        return best, Severity.ERROR
    rise = None if few else _rise(values, best, cfg)
    if rise is None or not any(_falls(t, until, cfg) for t, until in before):
        return None
    if rise >= cfg.doubled and any(_vanished(t, until, cfg) for t, until in before):
        return best, Severity.ERROR
    return best, Severity.WARNING if rise >= cfg.warn else Severity.INFO


def _parting(evals: Curve, training: list[Curve], cfg: Overfit) -> tuple[int, Severity] | None:
    """The best of few evaluations, from which on each is worse than the one before, and the training loss better."""
    best, count = int(np.argmin(evals.values)), len(evals)
    tail = evals.values[best:]
    rises = cfg.parting < len(tail) and count == cfg.evaluations - 1 and bool((np.diff(tail) > 0).all())
    if not rises or not 0 < tail[0] <= tail[-1] / (1 + cfg.parted):
        return None
    for one in training:
        until = [_until(one, evals, at) for at in range(best, count)]
        if min(until) >= 1 and bool((np.diff(one.values[np.array(until) - 1]) < 0).all()):
            return best, Severity.WARNING
    return None


def _rise(values: Floats, best: int, cfg: Overfit) -> float | None:
    """Give the relative rise after the lowest value; None when noise may explain it."""
    n = len(values)
    late = values[n // 4 :]
    sd = bending(late) if len(late) > _BENDS else float(np.ptp(values))
    low = float(values[best])
    depth = 1.5 + sqrt(2 * log(max(2, n - n // 4)))
    bound = max(cfg.least * low, cfg.factor * depth * max(sd, 1e-4 * low))
    after = values[best + 1 :]
    if len(after) < cfg.rises:
        return None
    rise = median_of(after[-cfg.rises :]) - low
    return rise / low if rise > bound and bool((after[-cfg.rises :] > low + bound / 2).all()) else None


def _vanished(training: Curve, until: int, cfg: Overfit) -> bool:
    return 0 <= float(training.values[-1]) <= cfg.training_left * float(training.values[until - 1])


def _falls(training: Curve, until: int, cfg: Overfit) -> bool:
    """Whether the training loss fell significantly from the best evaluation, after `until` records, to the end."""
    after = training.values[max(0, until - 1) :]
    third = len(after) // 3
    if third < 3:
        return False
    near = min(third, until, cfg.near)
    noise = noise_about(after, centred_median(after, min(51, (len(after) // 6) * 2 + 1)))
    last = median_of(after[-third:])
    earlier = (after[:third], training.values[until - near : until])
    return any(
        median_of(part) - last > cfg.sigmas * hypot(noise.of_level(len(part)), noise.of_level(third))
        for part in earlier
    )


def _until(training: Curve, evals: Curve, index: int) -> int:
    """Count the training records up to an evaluation: by the step, by the epoch, or by their places in one file."""
    step, epoch = evals.step(index), evals.epochs[index]
    if step is not None:
        return int((training.at <= step).sum())
    if not np.isnan(epoch) or evals.source != training.source:
        return int((training.epochs <= epoch).sum())
    return int((training.table.numbers("seq", training.places) <= evals.cell("seq", index)).sum())


class Regained(Struct, frozen=True):
    """Thresholds of LRN019: `worse` (loss) and `score` are relative to the best evaluation.

    A third more loss, and a fifth more errors or a fifth less score, at every later evaluation: far outside what two
    evaluations of one model differ by (Dodge et al. 2020 find 1 to 5 % between seeds).
    """

    evaluations: int = 5
    after: int = 3
    worse: float = 1 / 3
    score: float = 0.2


@rule("LRN019 never-regained", "metrics", severity="error", confidence="medium", cause="never_regained")
def never_regained(run: Run, cfg: Regained) -> Findings:
    """Find the first evaluation loss that was never near its best again, with a score that agrees."""
    found = [(curve, best) for curve in curves(run, "eval_loss") if (best := _best(curve, cfg)) is not None]
    names = metric_names(run)["name"].unique().drop_nulls().sort().to_list() if found else []
    names = [n for n in names if stands_for("held_out_prefix", n) and direction(n) is not None and not is_of_loss(n)]
    broken = {one.curve.row(one.at)["at"] for one in breaks(run) if one.rose and not one.gained}
    for curve, best in found:
        if curve.step(best + 1) in broken:  # what is evaluated changed, or how (EVL022)
            continue
        scores = (score for name in names for score in _scores(run, name, curve.source))
        step, first = curve.step(best), curve.row(best + 1)
        score = next((s for s in scores if _worse(s, step, cfg)), None)
        if score is None:
            continue
        (then, _), end = _since(score, step), score.row(-1, named=True)
        losses, name, last = (float(curve.values[best]), float(curve.values[-1])), end["raw_name"], end["value"]
        where, at = Locator(line=end["line"], byte=end["byte"]), end["step"]
        shown = Evidence(end["source"], where, f"{name} = {number(last)}", step=at, name=name, value=last)
        yield never_regained.finding(
            f"{curve.raw_name} went from {number(losses[0])} at step {step} to {number(losses[1])} and never came back",
            f"{name} agrees: {number(then)} then, {number(last)} at last, and worse in between",
            proof(first, curve.row(best), curve.row(-1), shown),
            onset_at(first, step),
            severity="warning" if _is_lucky(curve.values, best) else "error",
            numbers={"best": losses[0], "last": losses[1], "score": last},
            next=(f"use {nearest_words(run, step)}", "lower the peak learning rate and lengthen the warm-up"),
        )
        return


def _scores(run: Run, name: str, source: str) -> list[pl.DataFrame]:
    """The finite values of one metric of a source, of each attempt, rank and printed name by itself."""
    own = counted(run, (pl.col("name") == name) & (pl.col("source") == source)).filter(
        pl.col("value_class") == "finite"
    )
    rows = own.with_columns(pl.col("raw_name").fill_null(name)).sort("seq", maintain_order=True).collect()
    return rows.partition_by("attempt", "rank", "raw_name", maintain_order=True)


def _best(curve: Curve, cfg: Regained) -> int | None:
    if len(curve) < cfg.evaluations or curve.ends_nonfinite:
        return None
    values = curve.values
    best = int(np.argmin(values))
    later, low = values[best + 1 :], float(values[best])
    return best if len(later) >= cfg.after and low > 0 and bool((later >= low * (1 + cfg.worse)).all()) else None


def _is_lucky(values: Floats, best: int) -> bool:
    """Whether a later evaluation is better than all that preceded the best one: the curve is jumpy, not lost."""
    return best > 0 and bool(values[best + 1 :].min() < values[:best].min())


def _worse(score: pl.DataFrame, step: int | None, cfg: Regained) -> bool:
    """Whether a score was worse at every evaluation after a step than at that step."""
    if step is None or step not in score["step"]:
        return False
    then, later = _since(score, step)
    if len(later) < cfg.after or then <= 0:
        return False
    if direction(score["raw_name"][0]) is False:
        return all(v >= then * (1 + cfg.score) for v in later)
    return all(v <= then * (1 - cfg.score) for v in later)


def _since(score: pl.DataFrame, step: int | None) -> tuple[float, list[float]]:
    """The value at a step, and those after it."""
    values = score["value"].to_list()[score["step"].to_list().index(step) :]
    return values[0], values[1:]
