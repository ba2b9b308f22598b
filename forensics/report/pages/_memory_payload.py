"""The document `forensics.memory/1`: every field named by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forensics.report.payload import Payload
from forensics.report.phrases import utc

if TYPE_CHECKING:
    from forensics.analyses.memory.oom_messages import OomMessage
    from forensics.analyses.memory.ranks import Imbalance
    from forensics.analyses.memory.series import Series
    from forensics.analyses.memory.verdict import Reading
    from forensics.analyses.snapshots.per_device import Growth, Leak, Share, Snapshot
    from forensics.diagnosis.memory import Diff, Memory


def body(memory: Memory) -> Payload:
    """Give series, ranks, snapshots, errors and the diff."""
    return {
        "series": [_series(one, reading) for one, reading in memory.series],
        "ranks": [_ranks(row) for row in memory.ranks],
        "snapshots": [_snapshot(s) for s in memory.snapshots],
        "oom": [_message(m) for m in memory.oom],
        "diff": None if memory.diff is None else _diff(memory.diff),
    }


def _series(one: Series, reading: Reading) -> Payload:
    form = one.form
    return {
        "rank": one.rank,
        "device": one.device,
        "attempt": one.attempt,
        "source": one.source,
        "metric": one.name,
        "raw_name": one.raw_name,
        "kind": one.kind,
        "unit": one.meaning.unit,
        "shape": form.kind,
        "by_step": one.by_step,
        "samples": form.samples,
        "warmup": form.warmup,
        "level": form.level,
        "last": float(one.y[-1]),
        "peak": one.peak,
        "capacity": one.capacity,
        "share": one.share,
        "printed": one.printed,
        "rise": form.rise,
        "onset_step": one.step(form.onset) if form.grows or form.kind in {"level_shift", "spike"} else None,
        "growth_per_step": form.per_step if form.grows else None,
        "period": form.period,
        "height": form.height,
        "steps": [{"step": s.x, "height": s.height} for s in form.steps],
        "gap_shape": one.gap.kind if one.gap is not None else None,
        "gap": [one.gap_first, one.gap_last] if one.gap_first is not None else None,
        "reading": reading.words,
        "why": reading.why,
        "rule_of_thumb": reading.thumb,
        "note": form.note or None,
        "oom_step": None if one.reach is None else [one.reach.low, one.reach.high],
        "oom_step_at_the_latest": one.reach is not None and one.reach.at_the_latest,
    }


def _ranks(row: Imbalance) -> Payload:
    return {
        "metric": row.name,
        "levels": [{"rank": rank, "peak": level} for rank, level in row.levels.items()],
        "highest": row.top.rank,
        "median": row.median,
        "ratio": row.ratio,
    }


def _snapshot(one: Snapshot) -> Payload:
    return {
        "path": one.source,
        "device": one.device,
        "rank": one.rank,
        "quality": one.quality,
        "notes": list(one.notes),
        "events": one.events,
        "peak_bytes": one.peak_bytes,
        "reserved_bytes": one.reserved_bytes,
        "allocated_bytes": one.allocated_bytes,
        "gap_bytes": one.gap_bytes,
        "unreleasable_bytes": one.unreleasable_bytes,
        "fragmentation": one.fragmentation,
        "expandable": one.expandable,
        "leaks": [_leak(leak) for leak in one.leaks],
        "peak_by_stack": [_share(share) for share in one.peak_by_stack],
    }


def _leak(leak: Leak) -> Payload:
    return {
        "stack": list(leak.stack),
        "site": leak.site,
        "bytes": leak.bytes,
        "count": leak.count,
        "per_step": leak.per_step,
        "period": leak.period,
        "confidence": leak.confidence.value,
    }


def _share(share: Share) -> Payload:
    return {
        "stack": list(share.stack),
        "bytes": share.bytes,
        "count": share.count,
        "category": share.category,
        "confidence": share.confidence.value,
        "before": share.before,
    }


def _message(one: OomMessage) -> Payload:
    size = one.sizes
    return {
        "source": one.source,
        "line": one.locator.line,
        "rank": one.rank,
        "step": one.step,
        "time": utc(one.t_ns),
        "where": one.where,
        "phase": one.phase,
        "reading": one.reading,
        "survived": one.survived or None,
        "copies": one.copies,
        "device": size.device,
        "tried_bytes": size.tried,
        "free_bytes": size.free,
        "capacity_bytes": size.capacity,
        "allocated_bytes": size.allocated,
        "reserved_unallocated_bytes": size.unallocated,
        "private_bytes": size.private,
        "allowed_bytes": size.allowed,
        "process_bytes": size.own,
        "others_bytes": size.others,
        "outside_bytes": size.outside,
        "rss_bytes": size.rss,
        "quote": one.quote,
    }


def _diff(diff: Diff) -> Payload:
    return {
        "base": diff.base,
        "series": [
            {"metric": c.metric, "rank": c.rank, "unit": c.unit, "base": c.base, "cand": c.cand} for c in diff.series
        ],
        "grown": [_growth(g) for g in diff.grown],
    }


def _growth(growth: Growth) -> Payload:
    return {
        "stack": list(growth.stack),
        "site": growth.site,
        "bytes": growth.bytes,
        "count": growth.count,
        "per_step": growth.per_step,
    }
