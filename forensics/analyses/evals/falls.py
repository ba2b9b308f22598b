"""Whether a score fell at an evaluation by more than its noise, although training did not: the first such evaluation.

Each task is compared with the best sound evaluation before it, and the mean of all tasks with the last sound one. The
noise is the printed standard error, else the binomial one of the documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import hypot, isfinite, sqrt
from typing import Any

from msgspec import Struct

from forensics.analyses.evals.results import Key, Row, error_of, higher_is_better, members_of, scale_of
from forensics.analyses.evals.sittings import Sitting, filed_step, sittings
from forensics.case.curves.loss import curves
from forensics.patterns import lazily
from forensics.stats.spread import MEDIAN_TO_MEAN, Floats, median_of, spread
from forensics.stats.student import normal
from forensics.store.run import Run
from forensics.values import firsts

_NUMBERS = lazily(r"\d+|(?<![a-z])(?:final|last|latest|best)(?![a-z])")


class Limits(Struct, frozen=True):
    """Thresholds of a fall.

    `alpha`: chance gives one in all results that were looked at in so many cases (Bonferroni).
    `share`, `relative`: what one task loses at least, of the scale and of its score before; `mean`, `of_mean`: what the
    mean of all does; `risen`: by what share of itself a perplexity or an error rises. Checkpoints of sound runs differ
    by less whatever the documents: in 26 series of checkpoints of Pythia (84 results) one task lost 6.8 points and
    13 %, and one perplexity rose by 41 %, while no mean lost 5 points.
    `loss`: a training loss that rose by more than this explains it, unless chance moves the two medians so far:
    `loss_sigmas` of the standard error of their difference. `records`: of a median of the loss.
    """

    alpha: float = 0.001
    share: float = 0.08
    relative: float = 0.15
    mean: float = 0.05
    of_mean: float = 0.1
    risen: float = 1.0
    loss: float = 0.1
    loss_sigmas: float = 3.0
    records: int = 10


class TaskFall(Struct, frozen=True):
    """A task that fell, or the mean of all in the name of one: both results, as shares where they are scores.

    `gap` is what was lost, `noise` its standard error, `level` what was there before.
    """

    before: Row
    after: Row
    gap: float
    noise: float
    level: float

    @property
    def errors(self) -> float:
        """The fall in standard errors."""
        return self.gap / self.noise

    @property
    def lost(self) -> float:
        """The fall as a share of the level before it."""
        return self.gap / self.level


class Fall(Struct, frozen=True):
    """The first evaluation at which scores fell.

    `tasks`: those that fell, the furthest first. `errors`, `lost`: of the clearest test, which may be that of the mean.
    `sound`: evaluations before it. `fallen`: it, and those after it that are worse than the best before. `is_abrupt`:
    at least half of the fall came between two evaluations. `losses`: rows of the training loss at both.
    """

    step: int | None
    step_before: int | None
    tasks: tuple[TaskFall, ...]
    errors: float
    lost: float
    sound: tuple[Sitting, ...]
    fallen: tuple[Sitting, ...]
    is_abrupt: bool
    losses: tuple[Mapping[str, Any], ...] = ()


def masked(model: str | None) -> str:
    """Give the name of a model with its numbers masked: checkpoints of one run have one name."""
    return _NUMBERS.sub("0", model or "")


def first_fall(run: Run) -> Fall | None:
    """The first evaluation that scores worse than chance and training explain; None where there is none."""
    limits = run.threshold(Limits)
    every = sittings(run)
    looked = sum(len(one.rows) for one in every[1:]) + len(every[1:])
    if not looked:
        return None
    bound = normal().inv_cdf(1 - limits.alpha / looked)
    best = dict(every[0].rows)
    sound = [every[0]]
    for at, one in enumerate(every[1:], 1):
        tests = _tests(best, sound[-1], one, limits)
        worst = max((test for test in tests if test.errors > bound), key=lambda test: test.errors, default=None)
        losses = _losses(run, sound[-1].step, one.step, limits) if worst is not None else ()
        if worst is not None and losses is not None:
            return _fall(worst, tests, (bound, best), (tuple(sound), every[at:]), losses)
        if worst is None:
            sound.append(one)
            best |= {k: row for k, row in one.rows.items() if k not in best or _gap(best[k], row) < 0}
    return None


def rises_beside(run: Run, fall: Fall) -> bool:
    """Whether another task got better at the evaluation of a fall by what counts as a fall: the model learned that."""
    limits = run.threshold(Limits)
    before: Mapping[Key, Row] = fall.sound[-1].rows
    after: Mapping[Key, Row] = fall.fallen[0].rows if fall.fallen else {}
    better = [(row, before[key]) for key, row in after.items() if key in before and _gap(before[key], row) < 0]
    gains = [gain for now, was in better if (gain := fall_between(now, was)) is not None]
    bound = normal().inv_cdf(1 - limits.alpha / max(len(after), 1))
    return any(gain.errors > bound and _is_material(gain, limits) for gain in gains)


def _gap(before: Row, after: Row) -> float:
    """By how much a result is worse than another one; 0 where the direction is not known."""
    is_higher = higher_is_better(before, after)
    return 0.0 if is_higher is None else (1 if is_higher else -1) * (float(before["value"]) - float(after["value"]))


def _tests(best: Mapping[Key, Row], last: Sitting, one: Sitting, limits: Limits) -> list[TaskFall]:
    """Every task that fell materially, and the mean of all of them in the name of the one that fell furthest."""
    tests = [test for key, row in one.rows.items() if key in best and (test := _tested(best[key], row)) is not None]
    pooled = _pooled([test for key, row in _plain(one) if key in last.rows and (test := _tested(last.rows[key], row))])
    far = [test for test in tests if _is_material(test, limits)]
    if pooled is not None and pooled.gap > limits.mean and pooled.lost > limits.of_mean:
        far.append(pooled)
    return far


def _is_material(test: TaskFall, limits: Limits) -> bool:
    """Whether a task lost more than checkpoints of a sound run differ by."""
    if higher_is_better(test.before, test.after) is False:
        return test.lost > limits.risen
    return test.gap > limits.share and test.lost > limits.relative


def _plain(one: Sitting) -> list[tuple[Key, Row]]:
    """One score of each task; a group gives way to its members."""
    scores = (pair for pair in one.rows.items() if not members_of(pair[1]) and higher_is_better(pair[1]))
    return firsts(scores, lambda pair: pair[0][0])


def _tested(before: Row, after: Row) -> TaskFall | None:
    """Compare two results of one model, of checkpoints of one run, or with the model at step 0 that they come from."""
    alike = masked(before["model"]) == masked(after["model"]) or filed_step(before) == 0
    return fall_between(before, after) if alike else None


def fall_between(before: Row, after: Row) -> TaskFall | None:
    """Measure how far one result is below another; None where a value, the noise or the direction is not known."""
    if not (isfinite(before["value"]) and isfinite(after["value"])):
        return None
    scale = scale_of(before, after)
    errors = error_of(before, scale), error_of(after, scale)
    if errors[0] is None or errors[1] is None or hypot(errors[0], errors[1]) <= 0 or not before["value"]:
        return None
    level = abs(float(before["value"])) / scale
    return TaskFall(before, after, _gap(before, after) / scale, hypot(errors[0], errors[1]) / scale, level)


def _pooled(tests: Sequence[TaskFall]) -> TaskFall | None:
    """The mean of several tasks."""
    if len(tests) < 2:
        return None
    worst, count = max(tests, key=lambda one: one.errors), len(tests)
    noise = sqrt(sum(one.noise * one.noise for one in tests)) / count
    return TaskFall(
        worst.before, worst.after, sum(t.gap for t in tests) / count, noise, sum(t.level for t in tests) / count
    )


def _losses(run: Run, before: int | None, after: int | None, limits: Limits) -> tuple[Mapping[str, Any], ...] | None:
    """Rows of the training loss at both steps; None where it rose, so that training explains the fall."""
    if before is None or after is None or after <= before:
        return ()
    for curve in curves(run, "loss"):
        at = curve.at.to_numpy()
        ends = [int((at <= step).sum()) for step in (before, after)]
        if 0 < ends[0] < ends[1]:
            spans = ((0, ends[0]), (ends[0], ends[1]))
            then, now = (curve.values[max(start, end - limits.records) : end] for start, end in spans)
            return None if _rose(then, now, limits) else (curve.row(ends[0] - 1), curve.row(ends[1] - 1))
    return ()


def _rose(then: Floats, now: Floats, limits: Limits) -> bool:
    """Whether the median of a loss rose by a good part of itself and by more than its noise."""
    before, after = median_of(then), median_of(now)
    noise = hypot(*(MEDIAN_TO_MEAN * spread(values) / sqrt(len(values)) for values in (then, now)))
    return after - before > max(limits.loss * abs(before), limits.loss_sigmas * noise)


def _fall(
    worst: TaskFall,
    tests: Sequence[TaskFall],
    than: tuple[float, Mapping[Key, Row]],
    course: tuple[tuple[Sitting, ...], Sequence[Sitting]],
    losses: tuple[Mapping[str, Any], ...],
) -> Fall:
    bound, best = than
    sound, rest = course
    clear = {id(test.after): test for test in tests if test.errors > bound}
    tasks = sorted(clear.values(), key=lambda test: -test.errors)
    key = next(key for key, row in rest[0].rows.items() if row is tasks[0].after)
    previous = sound[-1].rows.get(key, tasks[0].before)
    return Fall(
        step=rest[0].step,
        step_before=sound[-1].step,
        tasks=tuple(tasks),
        errors=worst.errors,
        lost=max(worst.lost, tasks[0].lost),
        sound=sound,
        fallen=tuple(one for one in rest if any(k in best and _gap(best[k], row) > 0 for k, row in one.rows.items())),
        is_abrupt=2 * _gap(previous, tasks[0].after) >= _gap(tasks[0].before, tasks[0].after),
        losses=losses,
    )
