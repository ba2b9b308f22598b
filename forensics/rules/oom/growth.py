"""Memory of the device that grows: by every step, in stairs, in pieces, or outside of the framework."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from forensics.analyses.memory.kinds import OF_TENSORS
from forensics.analyses.memory.series import Series, series_of
from forensics.analyses.memory.shape import FEWEST, QUANTUM_GIB, Form
from forensics.case.series import metric_rows
from forensics.case.steps import at
from forensics.rules.kit import Confidence, Finding, Findings, Run, Severity, Struct, proof, rule
from forensics.rules.oom import _memory as memory
from forensics.stats.changes import change_points
from forensics.stats.spread import median_of

_RESERVED = ("reserved", "peak_reserved")


class MemoryCreeps(Struct, frozen=True):
    """Thresholds of OOM002: records after warm-up, and the least rise in GiB (below it nobody runs out for it)."""

    samples: int = 12
    sure_samples: int = 20
    gib: float = 0.2


@rule("OOM002 memory-creeps", "metrics events facts", cause="leak_per_step")
def memory_creeps(run: Run, cfg: MemoryCreeps) -> Findings:
    """Find the series of allocated memory that rises most."""
    found = memory.grew(run, OF_TENSORS, ("slope", "unresolved"), cfg.samples, cfg.gib)
    one = memory.worst(found)
    if one is None:
        return
    severity, died = memory.severity_of(run, one)
    form = one.form
    per = (
        f" by {memory.amount(one, form.per_step)} per {'step' if one.by_step else 'record'}"
        if form.per_step > 0
        else ""
    )
    first, last = (memory.amount(one, float(one.y[place])) for place in (form.onset or 0, -1))
    sure = form.kind == "slope" and form.samples - form.warmup >= cfg.sure_samples and one.kind != "cumulative peak"
    yield memory_creeps.finding(
        f"{one.meaning.quantity.replace('_', ' ')} memory rises steadily{per}"
        f" ({first} → {last}){memory.until(one, died)}",
        "it rises by more than its noise and without treads: something is kept at every step"
        + (f" ({form.note})" if form.note else ""),
        proof(*memory.series_evidence(one, form.onset or 0, -1), *(memory.message_evidence(m) for m in died)),
        memory.onset_of(one),
        severity=severity,
        confidence="high" if sure else "medium" if form.kind == "slope" else "low",
        culprits=memory.culprits(one, died),
        numbers={
            "rise_gib": form.rise,
            "gib_per_step": form.per_step,
            "series": len(found),
            **memory.reach_numbers(one),
        },
    )


class MemoryClimbsInStairs(Struct, frozen=True):
    """Thresholds of OOM003: records after warm-up, least rise in GiB, and the share of rises that an event explains.

    A size of what is trained on becomes `larger` times what it was, and by more than one, as no count does.
    """

    samples: int = 12
    gib: float = 0.2
    together: float = 0.7
    larger: float = 1.25


@rule("OOM003 memory-climbs-in-stairs", "metrics events facts checkpoints", cause="leak_periodic")
def memory_climbs_in_stairs(run: Run, cfg: MemoryClimbsInStairs) -> Findings:
    """Find the series of allocated memory whose stairs climb most."""
    found = memory.grew(run, OF_TENSORS, ("staircase",), cfg.samples, cfg.gib)
    one = memory.worst(found)
    if one is None or _sizes_rise_with(run, one, cfg):
        return
    severity, died = memory.severity_of(run, one)
    form, beside = one.form, _memory_climbs_in_stairs_beside(run, one, cfg)
    every = f", every {form.period:.0f} {'steps' if one.by_step else 'records'}" if form.period else ""
    yield memory_climbs_in_stairs.finding(
        f"{one.meaning.quantity.replace('_', ' ')} memory climbs in {len(form.steps)} stairs of about"
        f" {memory.amount(one, form.height or 0.0)}{every}{beside}{memory.until(one, died)}",
        "the rises last, the treads between them are flat, and none comes down again: something is kept at each"
        + (f" ({form.note})" if form.note else ""),
        proof(
            *memory.series_evidence(one, *[s.index for s in form.steps[:3]], -1),
            *(memory.message_evidence(m) for m in died),
        ),
        memory.onset_of(one),
        severity=severity,
        confidence="high" if form.period and one.kind != "cumulative peak" else "medium",
        culprits=memory.culprits(one, died),
        numbers={"rise_gib": form.rise, "stairs": len(form.steps), "height_gib": form.height or 0.0}
        | ({"period": form.period} if form.period else {})
        | memory.reach_numbers(one),
    )


def _sizes_rise_with(run: Run, one: Series, cfg: MemoryClimbsInStairs) -> bool:
    """Whether a logged size grows where the memory does, and nowhere else: a context, a batch, an image."""
    own = (pl.col("source") == one.source) & pl.col("rank").eq_missing(one.rank) & (pl.col("name") != one.name)
    rows = metric_rows(run, own).select("name", "attempt", "value", at=at()).drop_nulls()
    whole = ((pl.col("value") >= 1) & (pl.col("value") == pl.col("value").floor())).all().over("name")
    levels = rows.filter(pl.col("attempt") == one.attempt, whole).sort("name", "at", maintain_order=True)
    before = pl.col("value").shift(1).over("name")
    changes = levels.with_columns(before=before).filter(pl.col("value") != pl.col("before")).collect()
    rises, reach = [step.x for step in one.form.steps], float(one.x[1] - one.x[0])
    for _, sizes in changes.group_by("name"):
        steps = sizes["at"]
        near = sum(1 for x in rises if ((steps >= x - 2 * reach) & (steps <= x + reach)).any())
        grows = ((sizes["value"] >= cfg.larger * sizes["before"]) & (sizes["value"] > sizes["before"] + 1)).all()
        if grows and sizes.height <= len(rises) and near >= cfg.together * len(rises):
            return True
    return False


def _memory_climbs_in_stairs_beside(run: Run, one: Series, cfg: MemoryClimbsInStairs) -> str:
    """Say which periodic event is at most of the rises, or nothing."""
    if not one.by_step or len(one.x) < 2:
        return ""
    rises = [s.x for s in one.form.steps]
    reach = float(one.x[1] - one.x[0])
    evals = metric_rows(run, pl.col("name").str.starts_with("eval")).select(at()).unique().collect()["at"]
    saves = run.scan("checkpoints").filter(pl.col("kind") == "saved").select("step").unique().collect()["step"]
    for what, steps in (("evaluations", evals.drop_nulls()), ("checkpoints", saves.drop_nulls())):
        near = sum(1 for x in rises if ((steps >= x - 2 * reach) & (steps <= x)).any())
        if steps.len() and near >= cfg.together * len(rises) and steps.len() <= 3 * len(rises):
            return f", beside {what}"
    return ""


class FragmentationGapClimbs(Struct, frozen=True):
    """Thresholds of OOM004: records, the gap's growth as a ratio and in GiB, and its share of the reserved growth."""

    samples: int = 12
    ratio: float = 1.5
    gib: float = 0.5
    carried: float = 0.5


@rule("OOM004 fragmentation-gap-climbs", "metrics events facts", confidence="medium", cause="fragmentation")
def fragmentation_gap_climbs(run: Run, cfg: FragmentationGapClimbs) -> Findings:
    """Find the reserved series whose difference to the allocated one grows most."""
    found = [one for one in series_of(run) if one.meaning.quantity in _RESERVED and _grows(one, cfg)]
    if not found:
        return
    one = max(found, key=lambda s: s.gap.rise if s.gap else 0.0)
    was, now = (memory.size((gap or 0.0) * memory.GIB) for gap in (one.gap_first, one.gap_last))
    gap, first, last = one.gap, one.gap_first or 0.0, one.gap_last or 0.0
    severity, died = memory.severity_of(run, one)
    yield fragmentation_gap_climbs.finding(
        f"reserved memory pulls away from allocated memory: {was} → {now} unused{memory.until(one, died)}",
        "the difference rises by more than its noise and carries most of the growth of what is reserved:"
        " free memory is in pieces too small for the requests",
        proof(*memory.series_evidence(one, one.form.onset or 0, -1), *(memory.message_evidence(m) for m in died)),
        memory.onset_of(one),
        severity=severity,
        culprits=memory.culprits(one, died),
        numbers={"gap_first_gib": first, "gap_last_gib": last, "gap_rise_gib": gap.rise if gap else 0.0}
        | memory.reach_numbers(one),
    )


def _grows(one: Series, cfg: FragmentationGapClimbs) -> bool:
    gap, first, last = one.gap, one.gap_first, one.gap_last
    if gap is None or first is None or last is None or gap.samples - gap.warmup < cfg.samples or not gap.grows:
        return False
    grown = last - first
    reserved = max(one.form.rise, float(one.y[-1] - one.y[one.form.warmup]))
    return grown >= cfg.gib and last >= cfg.ratio * first and grown >= cfg.carried * reserved


#: A rise of the framework's own memory by this share of the driver's explains it.
_HALF = 0.5


class DriverCountGrows(Struct, frozen=True):
    """Thresholds of OOM026: records, and the least rise in GiB, above what contexts and communicators add late.

    Where nothing of the framework's is logged the rise may be its own: a job that grows into its longest sequences
    took 0.6 GiB in a golden run that is well. A single jump counts from `jump_gib` on, twice what a context and
    communicators usually take, and only beside what the allocator reserves.
    """

    samples: int = 12
    gib: float = 0.5
    alone_gib: float = 2.0
    jump_gib: float = 3.0


@rule("OOM026 driver-count-grows", "metrics events facts", confidence="medium")
def driver_count_grows(run: Run, cfg: DriverCountGrows) -> Findings:
    """Find the device whose used memory grows most, or what is reserved where it is all that is logged."""
    one = memory.worst(memory.grew(run, ("used",), ("slope", "staircase"), cfg.samples, cfg.gib))
    held = [s for s in series_of(run) if s.meaning.quantity in (*OF_TENSORS, *_RESERVED) and s.meaning.unit == "GiB"]
    if one is None and any(s.meaning.quantity in _RESERVED for s in held):
        one = memory.worst(_jumped(held, run, cfg))
    if one is not None and any(s.form.rise >= _HALF * one.form.rise for s in held):
        one = None
    if one is not None and (rise := _while_it_trained(run, one)) is not None and rise < cfg.gib:
        one = None
    if one is None and not any(s.meaning.quantity in OF_TENSORS for s in held):
        one, held = memory.worst(memory.grew(run, _RESERVED, ("slope", "staircase"), cfg.samples, cfg.alone_gib)), []
    if one is None or (not held and one.form.rise < cfg.alone_gib):
        return
    level, beside = max(held, key=lambda s: s.peak, default=None), ""
    if level is not None:
        words, peak = level.meaning.quantity.replace("_", " "), memory.amount(level, level.peak)
        beside = f", while the framework's {words} memory stays at {peak}"
    at_once = one.form.kind == "level_shift"
    first, last = (memory.amount(one, float(one.y[place])) for place in (max((one.form.onset or 0) - at_once, 0), -1))
    severity, died = memory.severity_of(run, one)
    yield driver_count_grows.finding(
        f"{_counted(one)} {'jumps' if at_once else 'climbs'} from {first} to {last}{beside}{memory.until(one, died)}",
        "it rose at once, by more than a context and communicators take, and stayed there"
        if at_once
        else "it rises to the end, by more than its noise",
        proof(
            *memory.series_evidence(one, one.form.onset or 0, -1),
            *(() if level is None else memory.series_evidence(level, -1)),
            *(memory.message_evidence(m) for m in died),
        ),
        memory.onset_of(one),
        severity=severity,
        culprits=memory.culprits(one, died),
        cause="device_memory_grows" if level is None else "outside_allocator",
        numbers={"rise_gib": one.form.rise, **memory.reach_numbers(one)},
    )


def _while_it_trained(run: Run, one: Series) -> float | None:
    """The rise of a device between the first and the last loss, by the clock; None where no clock tells."""
    losses = metric_rows(run, pl.col("name") == "loss").select(pl.col("t_ns"))
    began, ended = (
        losses.select(pl.col("t_ns").min().alias("began"), pl.col("t_ns").max().alias("ended")).collect().row(0)
    )
    times = one.table.gather("t_ns", one.places)
    if began is None or times.null_count():
        return None
    inside = one.y[((times >= began) & (times <= ended)).to_numpy()]
    return float(inside.max() - inside[0]) if len(inside) > 1 else None


def _jumped(held: Sequence[Series], run: Run, cfg: DriverCountGrows) -> Iterator[Series]:
    """The devices whose used memory rose once and stayed, after it had room for all that the framework reserves."""
    reserved = max(one.peak for one in held if one.meaning.quantity in _RESERVED)
    for one in memory.grew(run, ("used",), ("level_shift", "plateau", "flat"), cfg.samples, 0.0):
        y = one.y
        cuts = change_points(y, max(one.form.noise, QUANTUM_GIB))
        if len(cuts) != 1 or min(cuts[0], len(y) - cuts[0]) < FEWEST:
            continue
        before, after = median_of(y[: cuts[0]]), median_of(y[cuts[0] :])
        if before >= reserved and after - before >= cfg.jump_gib:
            yield replace(one, form=Form("level_shift", len(y), rise=after - before, onset=cuts[0]))


def _counted(one: Series) -> str:
    if one.meaning.quantity != "used":
        return f"{one.meaning.quantity.replace('_', ' ')} memory"
    return "used memory of the device" if one.device is None else f"used memory of GPU {one.device}"


def died_of(run: Run) -> Iterator[Finding]:
    """Find the growth that killed a run: what it asked for last is only where the memory was used up."""
    rules = (memory_creeps, memory_climbs_in_stairs, fragmentation_gap_climbs, driver_count_grows)
    every = (finding for one in rules for finding in one(run))
    return (f for f in every if f.severity is Severity.ERROR and f.confidence is not Confidence.LOW)
