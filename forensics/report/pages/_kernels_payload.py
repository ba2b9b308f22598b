"""Kernel profiles as plain values for JSON: seconds, every field named by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from forensics.report.payload import Payload

if TYPE_CHECKING:
    from forensics.compare.kernel_profile import Kernel, KernelProfile, RankProfile, Step
    from forensics.compare.kernels import Change, KernelDiff

_NS = 1_000_000_000


def profile_payload(profile: KernelProfile, top: int) -> Payload:
    """Give `ranks` and `waits` of one run."""
    return {
        "ranks": [rank_payload(rank, top) for rank in profile.ranks],
        "waits": [
            {
                "rank": w.rank,
                "collectives": w.collectives,
                "wait_s": w.wait_ns / _NS,
                "last": w.last,
                "chance": w.chance,
            }
            for w in profile.waits
        ],
    }


def rank_payload(rank: RankProfile, top: int) -> Payload:
    """Give one trace."""
    return {
        "rank": rank.rank,
        "source": rank.source,
        "span_s": rank.span_ns / _NS,
        "busy_s": rank.busy_ns / _NS,
        "idle_s": rank.idle_ns / _NS,
        "compute_s": rank.compute_ns / _NS,
        "comm_s": rank.comm_ns / _NS,
        "memory_s": rank.memory_ns / _NS,
        "overlap_s": rank.overlap_ns / _NS,
        "exposed_comm_s": rank.exposed_ns / _NS,
        "overlap_share": rank.overlap_share,
        "count": rank.count,
        "categories": [
            {"name": c.name, "time_s": c.time_ns / _NS, "share": c.share, "count": c.count} for c in rank.categories
        ],
        "steps": [_step(step) for step in rank.steps],
        "top": _kernels(rank.top[: top or None]),
        "idle": [
            {"cause": i.cause, "time_s": i.time_ns / _NS, "gaps": i.gaps, "longest_s": i.longest_ns / _NS}
            for i in rank.idle
        ],
        "before_window": _group(rank.before_window, top),
        "no_launch": _group(rank.no_launch, top),
        "data_loader": _loader(rank),
    }


def diff_payload(diff: KernelDiff, top: int) -> Payload:
    """Give the comparison: the base's ranks, and what changed."""
    base = profile_payload(diff.base, top)
    return {
        "base": {"run": diff.base.name, **base},
        "diff": {
            "per": diff.per,
            "base_units": diff.base_units,
            "cand_units": diff.cand_units,
            "categories": [_change(c) for c in diff.categories],
            "idle": [_change(c) for c in diff.idle],
            "kernels": [{**_change(k), "category": k.category} for k in diff.kernels[: top or None]],
        },
    }


def _step(step: Step) -> Payload:
    return {
        "step": step.step,
        "dur_s": step.dur_ns / _NS,
        "busy_s": step.busy_ns / _NS,
        "compute_s": step.compute_ns / _NS,
        "comm_s": step.comm_ns / _NS,
        "exposed_comm_s": step.exposed_ns / _NS,
        "memory_s": step.memory_ns / _NS,
    }


def _kernels(found: Sequence[Kernel]) -> list[Payload]:
    return [{"name": k.name, "category": k.category, "time_s": k.time_ns / _NS, "count": k.count} for k in found]


def _group(found: Sequence[Kernel], top: int) -> Payload:
    time = sum(k.time_ns for k in found)
    return {"count": sum(k.count for k in found), "time_s": time / _NS, "top": _kernels(found[: top or None])}


def _loader(rank: RankProfile) -> Payload | None:
    found = rank.loader
    if found is None:
        return None
    return {
        "calls": found.calls,
        "wait_s": found.wait_ns / _NS,
        "share": found.share,
        "in_process": found.in_process,
    }


def _change(change: Change) -> Payload:
    return {
        "name": change.name,
        "state": change.state,
        "base_s": change.base_ns / _NS,
        "cand_s": change.cand_ns / _NS,
        "change_s": change.change_ns / _NS,
        "base_count": change.base_count,
        "cand_count": change.cand_count,
    }
