"""Kernel profiles as plain values for JSON: seconds, every field named by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from forensics.report.payload import Payload, named

if TYPE_CHECKING:
    from forensics.compare.kernel_profile import Kernel, KernelProfile, RankProfile
    from forensics.compare.kernels import KernelDiff

_NS = 1_000_000_000
_RANK = "rank source span_ns busy_ns idle_ns compute_ns comm_ns memory_ns overlap_ns exposed_comm_ns=exposed_ns"
_STEP = "step dur_ns busy_ns compute_ns comm_ns exposed_comm_ns=exposed_ns memory_ns"
_CHANGE = "name state base_ns cand_ns change_ns base_count cand_count"


def profile_payload(profile: KernelProfile, top: int) -> Payload:
    """Give `ranks` and `waits` of one run."""
    return {
        "ranks": [rank_payload(rank, top) for rank in profile.ranks],
        "waits": [_seconds(w, "rank collectives wait_ns last chance") for w in profile.waits],
    }


def rank_payload(rank: RankProfile, top: int) -> Payload:
    """Give one trace."""
    return {
        **_seconds(rank, f"{_RANK} overlap_share count"),
        "categories": [_seconds(c, "name time_ns share count") for c in rank.categories],
        "steps": [_seconds(step, _STEP) for step in rank.steps],
        "top": _kernels(rank.top[: top or None]),
        "idle": [_seconds(i, "cause time_ns gaps longest_ns") for i in rank.idle],
        "before_window": _group(rank.before_window, top),
        "no_launch": _group(rank.no_launch, top),
        "data_loader": None if rank.loader is None else _seconds(rank.loader, "calls wait_ns share in_process"),
    }


def diff_payload(diff: KernelDiff, top: int) -> Payload:
    """Give the comparison: the base's ranks, and what changed."""
    return {
        "base": {"run": diff.base.name, **profile_payload(diff.base, top)},
        "diff": {
            **named(diff, "per base_units cand_units"),
            "categories": [_seconds(c, _CHANGE) for c in diff.categories],
            "idle": [_seconds(c, _CHANGE) for c in diff.idle],
            "kernels": [_seconds(k, f"{_CHANGE} category") for k in diff.kernels[: top or None]],
        },
    }


def _seconds(value: object, names: str) -> Payload:
    """Fields of a value; those whose names end in `_ns` are given in seconds, and named so."""
    found = named(value, names)
    return {
        f"{name[:-3]}_s" if name.endswith("_ns") else name: held / _NS if name.endswith("_ns") else held
        for name, held in found.items()
    }


def _kernels(found: Sequence[Kernel]) -> list[Payload]:
    return [_seconds(k, "name category time_ns count") for k in found]


def _group(found: Sequence[Kernel], top: int) -> Payload:
    time = sum(k.time_ns for k in found)
    return {"count": sum(k.count for k in found), "time_s": time / _NS, "top": _kernels(found[: top or None])}
