"""Whether the dynamic loss scale of fp16 training collapsed, and from which step on: its series, falls and skips."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
from msgspec import Struct

from forensics.analyses.nan.series import step_after
from forensics.case.end_markers import ends_the_log, last_lines
from forensics.case.errors.coded import ending_with, events_of, events_telling
from forensics.case.evidence import Row, event_evidence, metric_evidence
from forensics.case.joined.stores import counted
from forensics.case.nonfinite import Watched, watched
from forensics.case.series import metric_records
from forensics.case.settings import settings
from forensics.case.steps import WRITER, at, ordered
from forensics.knowledge.errors import telling
from forensics.model import Evidence, EvidenceRole
from forensics.patterns import lazily
from forensics.store.run import Run, derived
from forensics.values import replace


class ScaleLimits(Struct, frozen=True):
    """What is more than calibration: the first `warmup` steps are ignored, whatever happens in them.

    A collapse is a scale at or under `floor` for `at_floor` records after a fall by `fall`, `burst` falls within
    `burst_records` records, or a share of skipped updates above `skip_share` with at least `least_skips` of them.
    Where a line says of each fall to what the scale falls, `burst` of them without another update in between are one
    too, or `at_floor` of them that all fall to `floor` or less, where they end at `calibrated` or below, or behind the
    warm-up before a loss that is lost: the search for a scale at the start ends above `calibrated`, as the lowest one
    that a trainer begins with is 128 (fairseq, --fp16-init-scale), and a sixteenth of it is left out.
    """

    warmup: int = 50
    floor: float = 1.0
    at_floor: int = 3
    fall: float = 16.0
    burst: int = 5
    burst_records: int = 12
    skip_share: float = 0.05
    least_skips: int = 10
    calibrated: float = 8.0


class Collapse(Struct, frozen=True):
    """Where the scale began to fall for good, in words and with evidence; `share` of skipped updates if counted."""

    step: int | None
    words: str
    evidence: tuple[Evidence, ...]
    share: float | None = None


#: Values of a precision that needs a loss scale; Lightning writes the bits alone.
_HALF = lazily(r"(?i)(?:torch\.)?(?:float16|fp16|half|16(?:-mixed|-true)?)")
_PLACE = pl.coalesce("line", "seq").fill_null(0)
#: Records on either side of a fall that tell the level of a loss, and what is left of it where it still learns: without
#: updates it wanders about one level.
_ENDS, _LEARNED = 3, 0.9


@derived
def collapse_of(run: Run) -> Collapse | None:
    """Find a collapse by the series of the scale, by words of its floor, or by counting skipped updates."""
    cfg = run.threshold(ScaleLimits)
    fallen = _by_series(run, cfg)
    if fallen is not None:
        return _placed(run, fallen)
    counted_off = None if _is_unused(run, cfg) else _by_counters(run, cfg)
    return counted_off or _by_lines(run, cfg) or _by_falls(run, cfg)


def _placed(run: Run, collapse: Collapse) -> Collapse:
    """A collapse with a step: of a scale on a line of its own it is the one after the last loss before that line."""
    if collapse.step is not None:
        return collapse
    first = collapse.evidence[0]
    before = _losses(run, first.source).filter((first.locator.line or first.locator.record or 0) > _PLACE)
    return replace(collapse, step=step_after(before))


def _losses(run: Run, source: str) -> Watched:
    return watched(run, every=True).filter((pl.col("source") == source) & (pl.col("role") == "loss"))


def _by_series(run: Run, cfg: ScaleLimits) -> Collapse | None:
    rows = scale(run)
    for _, own in rows.group_by("source", "attempt", "rank", maintain_order=True):
        last = own["attempt"][0] == rows.filter(pl.col("source") == own["source"][0])["attempt"].max()
        found = _fall(own, cfg) if last else None
        if found is not None and not (own["value"][0] <= cfg.floor and _learns_on(run, found[0])):
            first, end, words = found
            return Collapse(first["at"], words, _both(metric_evidence, first, end))
    return None


def _learns_on(run: Run, fall: Row) -> bool:
    """Whether the loss of a source is finite from a fall of its scale on, and goes on falling: updates come through."""
    losses = _losses(run, fall["source"]).frame("line", "seq", "value", "bad").with_columns(place=_PLACE)
    after = fall["line"] if fall["line"] is not None else fall["seq"]
    before, behind = (losses.filter(side)["value"] for side in (pl.col("place") <= after, pl.col("place") > after))
    if losses.filter(pl.col("bad"), pl.col("place") > after).height or not len(before) or len(behind) < _ENDS:
        return False
    then, now = before.tail(_ENDS).median(), behind.tail(_ENDS).median()
    return isinstance(then, float) and isinstance(now, float) and now < _LEARNED * then


def _fall(own: pl.DataFrame, cfg: ScaleLimits) -> tuple[Row, Row, str] | None:
    """The first falling row of the last burst, the row where it ends, and the kind of collapse."""
    own = own.with_row_index("i")
    # after the warm-up, by the step or, without steps, by the place
    warm = pl.col("at" if own["at"].null_count() == 0 else "i") >= cfg.warmup
    falls = own.filter((pl.col("change") < 0) & warm)
    if falls.is_empty():
        return None
    rises = own.filter(pl.col("change") > 0)["i"].to_list()
    places = [int(i) for i in falls["i"]]
    start = len(places) - 1
    while start and places[start] - places[start - 1] <= cfg.burst_records:
        if any(places[start - 1] < rise < places[start] for rise in rises):
            break
        start -= 1
    top, end = own["value"][max(0, places[start] - 1)], own["value"][-1]
    stays = places[-1] + cfg.at_floor <= own.height and end <= cfg.floor and not any(r > places[-1] for r in rises)
    burst = len(places) - start >= cfg.burst and own.height - places[-1] <= cfg.burst_records
    if not (burst or (stays and top >= cfg.fall * max(end, 1e-30))):
        return None
    words = f"the loss scale fell from {top:g} to {end:g}" + (" and stayed there" if stays else "")
    return own.row(places[start], named=True), own.row(places[-1], named=True), words


def _by_counters(run: Run, cfg: ScaleLimits) -> Collapse | None:
    rows = skipped(run).filter((pl.col("name") != "nan_steps") & (pl.col("at") >= cfg.warmup))
    for _, own in rows.group_by("source", "attempt", "rank", "name", maintain_order=True):
        late = own.slice(1)
        span = 0 if late.is_empty() else int(own["at"][-1]) - int(own["at"][0])
        count = float(late["delta"].sum())
        hits = late.filter(pl.col("delta") > 0)
        if span > 0 and count >= cfg.least_skips and count / span > cfg.skip_share and _late(hits, own):
            first, share = _dense_from(hits, cfg, span), min(1.0, count / span)
            evidence = _both(metric_evidence, first, hits.row(-1, named=True))
            return Collapse(first["at"], f"{count:g} of {span} updates were skipped", evidence, share)
    return None


def _is_unused(run: Run, cfg: ScaleLimits) -> bool:
    """Whether the scale is 1 in every record and no setting says fp16: trainers print it in bf16, which has none."""
    values, said = scale(run)["value"], settings(run).get("precision")
    return values.len() > 0 and bool((values == cfg.floor).all()) and not (said is not None and _is_half(said.value))


def _is_half(precision: str) -> bool:
    return _HALF.fullmatch(precision) is not None


def _late(hits: pl.DataFrame, own: pl.DataFrame) -> bool:
    """Whether updates are still skipped in the last tenth of the steps."""
    lo, hi = int(own["at"][0]), int(own["at"][-1])
    return bool(hits["at"][-1] >= hi - max(1, (hi - lo) // 10))


def _dense_from(hits: pl.DataFrame, cfg: ScaleLimits, span: int) -> Row:
    """The first skip of those that follow each other closely to the end."""
    steps = [int(s) for s in hits["at"]]
    gap = max(span * cfg.skip_share, 2 * (steps[-1] - steps[0]) / max(1, len(steps)))
    start = len(steps) - 1
    while start and steps[start] - steps[start - 1] <= gap:
        start -= 1
    return hits.row(start, named=True)


def _by_lines(run: Run, cfg: ScaleLimits) -> Collapse | None:
    floor, lines = floors(run), overflows(run)
    if floor.is_empty() and lines.is_empty():
        return None
    floor = floor.filter(pl.col("step").is_null() | (pl.col("step") >= cfg.warmup))
    lines = lines.filter(pl.col("step") >= cfg.warmup)
    known = metric_records(run).select(at().max()).collect().item()
    span = int(known or 0) - cfg.warmup
    storm = lines.height >= cfg.least_skips and span > 0 and lines.height / span > cfg.skip_share
    storm = storm and int(lines["step"][-1]) >= int(known) - max(1, span // 10)
    last = last_lines(run)
    fatal = any(ends_the_log(source, line, last) for source, line in floor.select("source", "line").iter_rows())
    many = floor.height >= cfg.at_floor and (
        storm or floor["step"].null_count() < floor.height or floor.height >= cfg.least_skips
    )
    if fatal or many:  # a line that ended the run needs no other to be believed
        first = lines.row(0, named=True) if storm else floor.row(0, named=True)
        evidence = _both(event_evidence, first, floor.row(-1, named=True))
        return Collapse(first["step"], "the loss scale is at its minimum and cannot fall further", evidence)
    if not storm:
        return None
    words = f"{lines.height} of {span} updates overflowed and were skipped"
    evidence = _both(event_evidence, lines.row(0, named=True), lines.row(-1, named=True))
    return Collapse(int(lines["step"][0]), words, evidence, min(1.0, lines.height / span))


def _both(evidence: Callable[[Row, EvidenceRole], Evidence], first: Row, last: Row) -> tuple[Evidence, Evidence]:
    return evidence(first, EvidenceRole.PRIMARY), evidence(last, EvidenceRole.RELATED)


def _by_falls(run: Run, cfg: ScaleLimits) -> Collapse | None:
    """A scale that lines let fall at one update after the other, up to the last update of their log."""
    falls = falling(run)
    for source in falls["source"].unique(maintain_order=True) if falls.height else ():
        own = falls.filter(pl.col("source") == source)
        rises = own.filter(pl.col("scale") >= pl.col("scale").shift(1))
        last = own if rises.is_empty() else own.filter(pl.col("seq") > rises["seq"][-1] - 1)
        first, end = last.row(0, named=True), last.row(-1, named=True)
        low = first["scale"] <= cfg.floor
        if last.height < (cfg.at_floor if low else cfg.burst) or not _in_a_row(run, last, cfg):
            continue
        words = f"the loss scale fell {last.height} times in a row, to {end['scale']:g}"
        found = _placed(run, Collapse(first["step"], words, _both(event_evidence, first, end)))
        warm = found.step is not None and found.step >= cfg.warmup
        if end["scale"] <= cfg.calibrated or (warm and _loses(run, first)):
            return found
    return None


def _loses(run: Run, fall: Row) -> bool:
    """Whether a loss that is not finite was logged in the source of a fall, behind it."""
    after = fall["line"] if fall["line"] is not None else fall["seq"]
    return len(_losses(run, fall["source"]).filter(pl.col("bad"), after < _PLACE)) > 0


def _in_a_row(run: Run, falls: pl.DataFrame, cfg: ScaleLimits) -> bool:
    """Whether no more than one loss was logged for each fall, as dense as in a burst, and hardly a finite one after."""
    rows = _losses(run, falls["source"][0]).filter(~pl.col("bad")).frame("at", "line", "seq").select("at", place=_PLACE)
    places, own = rows["place"], falls.select(place=_PLACE)["place"]
    between = places.is_between(own[0], own[-1])
    steps = rows.filter(between)["at"].drop_nulls()
    dense = cfg.burst_records * max(falls.height, cfg.burst) / cfg.burst
    near = steps.is_empty() or int(steps[-1]) - int(steps[0]) <= dense
    return near and int(between.sum()) <= falls.height and int((places > own[-1]).sum()) < cfg.at_floor


# The dynamic loss scale: its series, its falls, and the updates that were skipped for it.


@derived
def scale(run: Run) -> pl.DataFrame:
    """Rows of `loss_scale` with `at` and `change`: -1 where the scale fell, 1 where it rose, else 0."""
    rows = ordered(counted(run, pl.col("name") == "loss_scale").filter(pl.col("value").is_finite())).collect()
    return rows.with_columns(change=pl.col("value").diff().over(WRITER).sign().fill_null(0).cast(pl.Int64))


@derived
def overflows(run: Run) -> pl.DataFrame:
    """Event rows that announce a skipped update, one per line, in file order."""
    return _once(_overflows(run))


def falling(run: Run) -> pl.DataFrame:
    """Event rows that let the scale fall and say to what, with `scale`, in file order; without it where none does."""
    rows = _overflows(run)
    if rows.is_empty():
        return rows
    to = [pl.col("attrs").str.json_path_match(f"$.{name}") for name in ("to", "scale")]
    number = pl.coalesce(*to).str.strip_chars_end(".,").cast(pl.Float64, strict=False)
    return _once(rows.with_columns(scale=number).filter(pl.col("scale").is_not_null()))


def _overflows(run: Run) -> pl.DataFrame:
    return events_of(run, ending_with(run, ".overflow") | telling("skipped_update"), ("source", "seq"))


def _once(rows: pl.DataFrame) -> pl.DataFrame:
    """One row for each line: a trainer's row and the catalogue's row for one line report one update."""
    if rows.is_empty():
        return rows
    return rows.unique(("source", "line", "byte"), keep="first", maintain_order=True)


def floors(run: Run) -> pl.DataFrame:
    """Event rows that say that the scale is at its minimum, in file order."""
    return events_telling(run, "scale_at_floor", order=("source", "seq"))


@derived
def skipped(run: Run) -> pl.DataFrame:
    """Rows of skip and NaN counters with `at` and `delta`: updates skipped in each record.

    A name that ends in `_total` counts from the start and is differenced; the others count per record.
    """
    names = ("skipped_steps", "skipped_steps_total", "nan_steps")
    rows = ordered(counted(run, pl.col("name").is_in(names)).filter(pl.col("value").is_finite())).collect()
    step = pl.col("value").diff().over("source", "attempt", "rank", "name")
    total = pl.col("name").str.ends_with("_total")
    return rows.with_columns(delta=pl.when(total).then(step.fill_null(pl.col("value"))).otherwise("value").clip(0))
