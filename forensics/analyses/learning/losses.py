"""The judged training losses of a run: each with its course, its levels, and the metrics beside it."""

from __future__ import annotations

from math import exp

from msgspec import Struct

from forensics.analyses.learning.course import Course, Departure, course_of, kind_of
from forensics.analyses.learning.levels import WINDOW, Levels, level_of, levels_of
from forensics.analyses.learning.limits import Limits
from forensics.case.curves.loss import Curve, beside, curves
from forensics.case.folds import has_folds
from forensics.case.processes.attempts import attempts
from forensics.case.processes.starts import begun_between, is_first_line, starts
from forensics.stats.spread import Floats, median_of
from forensics.store.run import Run, derived

#: A gradient norm whose level stays within this ratio did not follow the loss.
_STEADY = 1.5
#: One that rises so far in the first records after the onset burst with it, wherever it settles later: of made runs
#: whose model broke it rises tenfold, at a new task of `tests/golden/make/controls.py` by a few per cent.
_BURST = 3.0
#: A new task leaves a share of what was learned: of `tests/golden/make/controls.py` four stages give back 0.61 of it. A
#: loss that gives back more at once and then no longer falls has lost it: with labels of another data set 0.92.
_GIVEN_BACK = 0.8
#: Records of each end whose median is a level, where there are too few for a trend: one outlier does not move it.
_ENDS = 3


class Loss(Struct, frozen=True, eq=False):
    """One training loss: `course` and `levels` are None where it has too few positive values for them."""

    curve: Curve
    course: Course | None
    levels: Levels | None

    @property
    def gone(self) -> Departure | None:
        """Where it left its level for good, if it did and ends in a number."""
        return self.course.departure if self.course is not None and not self.curve.ends_nonfinite else None


@derived
def losses(run: Run) -> tuple[Loss, ...]:
    """Give the training losses of the last attempt of each source."""
    limits = run.threshold(Limits)
    return tuple(_loss(run, curve, limits) for curve in judged(run, "loss"))


def _loss(run: Run, curve: Curve, limits: Limits) -> Loss:
    level = level_of(curve, limits.window)
    usual = level if limits.window == WINDOW else level_of(curve, WINDOW)
    course = course_of(level, limits)
    return Loss(curve, None if course is None else _of_one_process(run, curve, course), levels_of(usual))


def _of_one_process(run: Run, curve: Curve, course: Course) -> Course:
    """Leave out what begins with the first record of a later process, where neither steps nor a resume tell of it.

    Steps that a reader counts from batches go on: only the first line of the log that comes again parts those. Epochs
    that go back begin another part of a process: the next layer that it trains, the next model.
    """
    epochs = curve.epochs

    def is_first(i: int) -> bool:
        if i and epochs[i] < epochs[i - 1]:
            return True
        sign = begun_between(run, curve.source, curve.cell("seq", i - 1), curve.cell("seq", i)) if i else None
        return sign is not None and (curve.step(i) is None or (is_first_line(sign) and curve.source not in starts(run)))

    gone = course.departure
    return Course(
        tuple(spike for spike in course.spikes if not is_first(spike.index)),
        None if gone is not None and is_first(gone.onset) else gone,
    )


def judged(run: Run, name: str) -> tuple[Curve, ...]:
    """Give the curves of one metric that a later attempt did not begin anew; no fold begins another one anew."""
    tried = attempts(run)
    if len(tried.every) == 1 or has_folds(run):
        return curves(run, name)

    def is_over(curve: Curve) -> bool:  # by its last record: a store of several attempts goes on counting
        line, byte, t_ns = (curve.cell(column, -1) for column in ("line", "byte", "t_ns"))
        return tried.is_over(curve.source, line=line, byte=byte, t_ns=t_ns)

    return tuple(curve for curve in curves(run, name) if not is_over(curve))


def staged(run: Run, loss: Loss) -> bool:
    """Whether a loss stepped up and learned on while its gradient norm stayed: what is asked of the model changed."""
    gone = loss.gone
    return stepped(run, loss) and gone is not None and (gone.lost < _GIVEN_BACK or gone.slope < 0)


def stepped(run: Run, loss: Loss) -> bool:
    """Whether a loss rose by single steps while its gradient norm stayed: its data or task changed, not its course."""
    norms = _norms_beside(run, loss)
    if norms is None or loss.gone is None or not loss.gone.stepwise or burst(run, loss):
        return False
    return 1 / _STEADY <= median_of(norms[1]) / median_of(norms[0]) <= _STEADY


def burst(run: Run, loss: Loss) -> bool:
    """Whether the gradient norm burst where the loss left its level: the model broke, whatever it was given."""
    norms = _norms_beside(run, loss)
    return norms is not None and median_of(norms[1][:_ENDS]) > _BURST * median_of(norms[0])


def _norms_beside(run: Run, loss: Loss) -> tuple[Floats, Floats] | None:
    """Gradient norms at the records before and after the onset, as many before as after at most; None without any."""
    gone, norm = loss.gone, beside(run, loss.curve, "grad_norm")
    if gone is None or norm is None or len(norm) != len(loss.curve):
        return None
    before, after = norm.values[max(0, gone.onset - gone.left) : gone.onset], norm.values[gone.onset :]
    return (before, after) if len(before) and median_of(before) > 0 else None


def kind(run: Run, loss: Loss) -> str | None:
    """Name the course of a loss: `divergence`, `level_shift`, `unresolved`, or None where it stayed on its course."""
    return None if loss.gone is None else kind_of(loss.gone, run.threshold(Limits))


def fell_by(loss: Loss) -> float:
    """Give the share of its first level that a loss lost; of too few records for a trend, between its ends' medians."""
    if loss.levels is not None:
        return 1 - exp(-loss.levels.fall)
    first, last = (median_of(part) for part in (loss.curve.values[:_ENDS], loss.curve.values[-_ENDS:]))
    return 1 - last / first if first > 0 else 1.0


def loss_beside(run: Run, curve: Curve) -> Loss | None:
    """Give the judged loss of the same source, attempt and rank as another metric; None where there is none."""
    found = beside(run, curve, "loss")
    return None if found is None else _by_curve(run).get(found)


@derived
def _by_curve(run: Run) -> dict[Curve, Loss]:
    return {one.curve: one for one in losses(run)}
