"""The kind of origin of a NaN: from the records before it, the loss scale, and the way the writer hid it."""

from __future__ import annotations

from functools import cache
from math import inf, isfinite, log

import polars as pl
from msgspec import Struct

from forensics.analyses.learning.course import Departure
from forensics.analyses.learning.course import kind_of as course_kind
from forensics.analyses.learning.limits import Limits
from forensics.analyses.learning.losses import Loss, losses
from forensics.analyses.nan.onset import SPOKEN, NanOnset, before, nan_onset
from forensics.analyses.nan.scale import Collapse, ScaleLimits, collapse_of
from forensics.analyses.nan.series import losses_beside
from forensics.case.curves.loss import Curve, curves
from forensics.case.epochs import epoch_scale
from forensics.case.errors.kinds import attributes
from forensics.case.evidence import Row
from forensics.case.nonfinite import Watched
from forensics.case.processes.attempts import attempts
from forensics.case.processes.starts import Start
from forensics.case.steps import SERIES
from forensics.io.tables import table_rows
from forensics.model import Confidence
from forensics.stats.running import robust
from forensics.stats.spread import behind_last
from forensics.store.run import Run, derived

#: A log that begins this late cannot tell the beginning from the course.
_LATE = 50
#: A first record at most so many steps after a resume blames what was loaded; a later one may blame the steps as well.
_SOON = 10
#: A detector looks at every step, so that the steps before it were finite: the first ones belong to the start.
_SPOKEN_LATE = 10
#: A first record more intervals in than this has others before it, which the log lacks.
_INTERVALS = 2
#: A program prints more than so many lines before its first loss: what stands above them opens an excerpt.
_OPENING_LINES = 3
#: The least noise of a loss that is printed with four digits.
_EPS = 1e-4


class Alarm(Struct, frozen=True):
    """When a rise before the NaN is an alarm.

    `window` records make the past, the last `within` before the onset are looked at; both numbers `sigma` (robust) and
    `ratio` must be passed. The gradient norm of a fresh model falls, so that its level long ago hides a rise: where the
    past shows none, the last `loss_within` are compared with the `near_window` before each (of 1,500 drawn norms
    without a rise up to 0.4 % more pass then). A rise of more records than `window` holds is its own past there: a norm
    of `slow_ratio` times the level of the `slow_window` before is one, however slowly it came. `loss_sigma` and
    `loss_ratio` are those of the loss over the last `loss_within` records, above the `loss_window` before each: a loss
    falls, so that its level long ago hides a rise. Of 11,118 losses of controls 25 pass both numbers of the loss, and
    23 would pass six deviations: five let in two more. A learning rate that at once becomes `rate_ratio` times its
    peak, behind `rate_records` records or more and within the last `within` before the onset, is an alarm by itself: a
    warm-up that is logged so often never triples between two records, and no schedule restarts above its peak. A loss
    at over `lost_ratio` times its first is worse than untrained: where the last `lost_records` or more before the onset
    are, what was saved since then is in doubt.
    """

    window: int = 50
    within: int = 10
    sigma: float = 5.0
    ratio: float = 3.0
    near_window: int = 20
    loss_within: int = 3
    loss_window: int = 20
    slow_window: int = 200
    slow_ratio: float = 10.0
    loss_sigma: float = 5.0
    loss_ratio: float = 1.5
    rate_ratio: float = 3.0
    rate_records: int = 3
    lost_ratio: float = 2.0
    lost_records: int = 3


class Precursor(Struct, frozen=True):
    """The greatest rise before the onset; `z` in robust standard deviations of the logarithm, `lead` in records."""

    row: Row
    metric: str
    step: int | None
    ratio: float
    z: float
    lead: int


@cache
def told(kind: str) -> tuple[str, str]:
    """Give a kind in words: to end a sentence that begins with the observation, and as a sentence of its own."""
    return next((end, whole) for name, end, whole in table_rows("forensics.analyses.nan", "kinds.tsv") if name == kind)


class Kind(Struct, frozen=True):
    """The kind of origin, how sure, and the rise that came before if there was one; `quiet` is the last flat record.

    `norms` counts the finite gradient norms before an origin that is unknown; None where the log holds no norm at all.
    """

    name: str
    confidence: Confidence
    precursor: Precursor | None
    quiet: Precursor | None
    norms: int | None = None

    @property
    def cause(self) -> str:
        """The cause that a finding gives: of an unknown kind, whether a gradient norm is missing or its past is."""
        return "norms_too_few" if self.name == "unknown" and self.norms is not None else self.name

    @property
    def words(self) -> str:
        """Words to end a sentence that begins with the observation."""
        if self.name != "unknown" or self.norms is None:
            return told(self.name)[0]
        if not self.norms:
            return "no gradient norm of a step before it is in the log, so nothing tells what came before"
        what = "one gradient norm before it is" if self.norms == 1 else f"{self.norms} gradient norms before it are"
        return f"{what} too few to tell a rise from calm"


@derived
def kind_of(run: Run) -> Kind:
    """Classify the onset of a run; in this order: loss scale, writer, resume, start, a rise before it, none."""
    found = nan_onset(run)
    assert found is not None
    cfg, collapse = run.threshold(Alarm), collapse_of(run)
    norms = _past(found, "grad_norm")
    tops = _tops(norms, "grad_norm", cfg, cfg.within)
    near = _tops(norms, "grad_norm", cfg, cfg.loss_within, cfg.near_window)
    rises = [p for past in (tops, near) for p in past if p.z > cfg.sigma and p.ratio >= cfg.ratio]
    far = [] if rises else _tops(norms, "grad_norm", cfg, cfg.within, cfg.slow_window)
    rises += [p for p in far if p.z > cfg.sigma and p.ratio >= cfg.slow_ratio]
    rise = rises[0] if rises else _loss_rise(found, cfg) or _rate_rise(run, found, cfg) or _climb(run, found, cfg)
    quiet = tops[-1] if tops else None
    if collapse is not None and _before(collapse, found, run.threshold(ScaleLimits)):
        return Kind("loss_scale_collapse", Confidence.HIGH, rise, quiet)
    if hidden(found):
        return Kind("filtered_by_writer", Confidence.HIGH, rise, quiet)
    if resumed_from(run, found) is not None:
        return Kind("from_resume", Confidence.MEDIUM, None, quiet)
    if found.n_before <= 1 and found.first.role != "echo" and _seen_from_the_start(run, found):
        return Kind("from_start", _sure_of_the_start(found), None, quiet)
    if rise is not None:
        return Kind(
            "optimization_blowup", Confidence.HIGH if rise.metric == "grad_norm" else Confidence.MEDIUM, rise, quiet
        )
    return _calm(found, len(norms), quiet, cfg)


def scale_fell_first(found: NanOnset, collapse: Collapse | None) -> bool:
    """Whether a loss scale that collapsed is the onset: no update came through from its first fall on."""
    if collapse is None or collapse.step is None:
        return False
    return found.step is None or collapse.step < found.step or (found.said and collapse.step == found.step)


def _seen_from_the_start(run: Run, found: NanOnset) -> bool:
    """Whether the records begin where the run does: not so many intervals in that others must have been before them.

    An attempt that went on from an earlier one may begin at any step. A lone line that names a late step says nothing
    of the steps before it, and one that names none stands behind the losses that were logged. Where neither a step nor
    a loss tells, the log must have said something before. A log without a loss is late by its other records.
    """
    spoken = found.first.role in SPOKEN
    if found.step is None:
        losses = found.rows.filter(pl.col("role") == "loss")
        told, step = (losses.frame("at").lazy(), "at") if len(losses) else (run.scan("metrics"), "step")
        late = not told.filter(pl.col(step) > _LATE).head(1).collect().is_empty()
        return not (spoken and late) and not _opens_its_log(found)
    if found.first.row.get("attempt"):
        return True
    if not run.scan("checkpoints").filter(pl.col("kind") == "resumed").head(1).collect().is_empty():
        return True
    if found.clean_step is not None:
        return found.clean_step <= _INTERVALS * max(1, found.step - found.clean_step)
    if spoken and found.n_before == 0:
        return found.step <= _SPOKEN_LATE
    return found.step <= _LATE or (not spoken and found.step <= _INTERVALS * _interval(found))


def _opens_its_log(found: NanOnset) -> bool:
    """Whether a text log begins with the bad place, or with the traceback that ends in it, without a finite loss."""
    line = found.first.row["line"]
    if found.n_before or line is None or found.first.n > _OPENING_LINES:
        return False
    head = attributes(found.first.row.get("attrs") or "").get("head_line", "")
    return min(line, int(head) if head.isdigit() else line) <= _OPENING_LINES


def _interval(found: NanOnset) -> int:
    """The steps between the onset and the next record of its series; 0 where it has no other."""
    row = found.first.row
    later = found.rows.of(row).filter(pl.col("at") > row["at"])["at"]
    return 0 if later.is_empty() else int(later[0]) - row["at"]


def _sure_of_the_start(found: NanOnset) -> Confidence:
    if found.clean_step is not None:
        return Confidence.HIGH
    if found.step is None:
        return Confidence.MEDIUM
    return Confidence.LOW if found.step > _LATE else Confidence.HIGH if found.step <= 2 else Confidence.MEDIUM


def _calm(found: NanOnset, norms: int, quiet: Precursor | None, cfg: Alarm) -> Kind:
    """Classify an onset that no rise announced."""
    if found.metric == "grad_norm" and found.first.row.get("value_class") == "+inf":
        return Kind("optimization_blowup", Confidence.MEDIUM, None, quiet)
    if quiet is None:
        logged = norms or len(found.rows.filter(pl.col("role") == "grad_norm"))
        return Kind("unknown", Confidence.LOW, None, None, norms if logged else None)
    close = found.step is None or quiet.step is None or found.step - quiet.step <= cfg.within
    return Kind("data_or_numerics", Confidence.MEDIUM if close else Confidence.LOW, None, quiet)


def resumed_from(run: Run, found: NanOnset) -> Start | None:
    """Give the start of the attempt whose first record is the onset, a few steps behind a checkpoint; else None.

    Where an attempt before it met the same number, the onset is there: that one had not loaded the checkpoint.
    """
    tried, row = attempts(run), found.first.row
    judged = tried.judged
    start = judged.start if judged is not tried.every[0] else None
    if start is None or start.step is None or judged.first is None or found.step is None:
        return None
    inside = tried.of(row["source"], line=row["line"], byte=row.get("byte"), t_ns=row["t_ns"]) == judged.number
    return start if inside and found.step <= judged.first and found.step - start.step <= _SOON else None


def hidden(found: NanOnset) -> bool:
    """Whether the loss printed from the onset on is a number that the writer put in place of NaN."""
    if found.first.role in {"zero", "counter"} or found.first.row.get("value_class") == "filtered-by-writer":
        return True
    if found.first.role != "grad_norm":
        return False
    row = found.first.row
    losses = found.rows.filter(losses_beside(row) & (pl.col("seq") >= row["seq"]))
    return len(losses) > 0 and not losses["bad"].any() and losses["value"][-1] == 0.0


def _before(collapse: Collapse, found: NanOnset, limits: ScaleLimits) -> bool:
    """Whether the scale began to fall before the onset; an infinite gradient norm is the overflow that it falls for."""
    if collapse.step is None or found.step is None:
        return True
    overflow = found.metric == "grad_norm" and found.first.row.get("value_class") == "+inf"
    return collapse.step <= found.step + (limits.burst_records if overflow else 0)


def _past(found: NanOnset, role: str) -> Watched:
    """Finite rows of one role before the onset, of the series that has most of them; the onset's own source first."""
    row = found.first.row
    rows = found.rows.filter((pl.col("role") == role) & ~pl.col("bad"))
    own = before(found.first, rows.filter(pl.col("source") == row["source"]))
    if not len(own) and found.step is not None:
        own = rows.filter((pl.col("source") != row["source"]) & (pl.col("at") < found.step))
    series = own.count(*SERIES)
    if series.height <= 1:
        return own
    return own.of(series.filter(pl.col("len") == pl.col("len").max()).row(0, named=True))


def _tops(past: Watched, role: str, cfg: Alarm, within: int, window: int | None = None) -> list[Precursor]:
    """The last records before the onset, in order, each with its height above the past before the window began."""
    late = past[-max(cfg.window, window or 0) - within :]
    tail = robust(late.frame(), window=window or cfg.window).tail(within).drop_nulls("z")
    rows = enumerate(tail.iter_rows(named=True))
    return [Precursor(row, role, row["at"], float(row["ratio"]), float(row["z"]), len(tail) - i) for i, row in rows]


def _loss_rise(found: NanOnset, cfg: Alarm) -> Precursor | None:
    past = _past(found, "loss")
    tops = _tops(past, "loss", cfg, cfg.loss_within, cfg.loss_window)
    rise = next((p for p in tops if p.z > cfg.loss_sigma and p.ratio >= cfg.loss_ratio), None)
    if rise is not None:
        return rise
    long = _tops(past, "loss", cfg, cfg.loss_within, cfg.slow_window)
    return next((p for p in long if p.z > cfg.loss_sigma and p.ratio >= cfg.ratio), None)


def lost_from(run: Run, found: NanOnset) -> int | None:
    """Give the step from which every loss before the onset was worse than untrained; None where the last was not."""
    cfg, past = run.threshold(Alarm), _past(found, "loss")
    first = past[:1]["value"].to_numpy()
    if not len(first) or first[0] <= 0:
        return None
    lasting = 0
    for piece in reversed([*past.pieces()]):  # mostly the last record was not
        last = behind_last(~(piece["value"].to_numpy() > cfg.lost_ratio * first[0]))
        lasting += len(piece) - last
        if last:
            break
    return past[len(past) - lasting :][:1]["at"][0] if lasting >= cfg.lost_records else None


def climbed_from(run: Run, found: NanOnset) -> int | None:
    """Give the step from which the loss rose until it was no number; None where it did not."""
    steps = [step for loss, gone in _climbs(run, found) if (step := _step_at(run, loss.curve, gone.onset)) is not None]
    return min((step for step in steps if found.step is None or step <= found.step), default=None)


def _climbs(run: Run, found: NanOnset) -> list[tuple[Loss, Departure]]:
    """The losses that left their level and rose until they were no number, those of the source of the onset first."""
    limits, source = run.threshold(Limits), found.first.row["source"]
    known = [(loss, loss.course.departure) for loss in losses(run) if loss.curve.ends_nonfinite and loss.course]
    own = [pair for pair in known if pair[0].curve.source == source] or known
    return [(loss, gone) for loss, gone in own if gone is not None and course_kind(gone, limits) == "divergence"]


def _climb(run: Run, found: NanOnset, cfg: Alarm) -> Precursor | None:
    """The last record of a loss that rose for longer than the windows of the other rises are."""
    for loss, gone in _climbs(run, found):
        last = len(loss.curve) - 1
        if gone.net >= cfg.loss_ratio and loss.levels is not None:
            z = log(gone.net) / max(loss.levels.noise.sd, _EPS)
            return Precursor(loss.curve.row(last), "loss", loss.curve.step(last), gone.net, z, 1)
    return None


def _step_at(run: Run, curve: Curve, index: int) -> int | None:
    """The step of a record: by its epoch where it numbers none."""
    step, epoch, scale = curve.step(index), float(curve.epochs[index]), epoch_scale(run)
    return scale.first_of(epoch) if step is None and scale is not None and isfinite(epoch) else step


def _rate_rise(run: Run, found: NanOnset, cfg: Alarm) -> Precursor | None:
    """The last record before the onset at which the learning rate left all its past behind at once."""
    for rate in curves(run, "lr"):
        until, values = len(rate) if found.step is None else int((rate.at <= found.step).sum()), rate.values
        for i in range(until - 1, max(cfg.rate_records, until - cfg.within) - 1, -1):
            peak = float(values[:i].max())
            if peak > 0 and values[i] >= cfg.rate_ratio * peak:
                return Precursor(rate.row(i), "lr", rate.step(i), float(values[i]) / peak, inf, until - i)
    return None
