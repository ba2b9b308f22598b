"""How much room a level leaves on the device, and on the fullest of the ranks."""

from __future__ import annotations

import numpy as np

from forensics.analyses.memory.kinds import OF_TENSORS
from forensics.analyses.memory.oom_messages import OomMessage
from forensics.analyses.memory.ranks import imbalances
from forensics.analyses.memory.series import Series, series_of
from forensics.analyses.memory.shape import LEVEL
from forensics.knowledge.sizes import least_size
from forensics.rules.kit import Findings, Onset, Run, Struct, proof, rule
from forensics.rules.oom import _memory as memory
from forensics.stats.spread import Floats


class NearCapacity(Struct, frozen=True):
    """Threshold of OOM007: the share of the device from which one longer batch no longer fits."""

    share: float = 0.95


@rule("OOM007 near-capacity", "metrics events facts", cause="near_capacity", causal="context")
def near_capacity(run: Run, cfg: NearCapacity) -> Findings:
    """Find the level device series that leaves least room."""
    every = [s for s in series_of(run) if not s.meaning.is_host and s.form.kind in LEVEL and s.share is not None]
    one = max(every, key=lambda s: s.share or 0.0, default=None)
    if one is None or (one.share or 0.0) < cfg.share:
        return
    died = memory.killer(run, one)
    at = int(np.argmin(one.y) if one.meaning.falls else np.argmax(one.y))
    yield near_capacity.finding(
        f"device memory is level at {100 * (one.share or 0):.0f} % of the device ({memory.amount(one, one.peak)})",
        "it does not grow, and the room that is left is less than one longer batch takes",
        proof(*memory.series_evidence(one, at), memory.message_evidence(died) if died else None),
        Onset(step=one.step(at), rank=one.rank),
        severity="warning" if died else "info",
        confidence="high" if one.capacity else "medium",
        culprits=memory.ranks(one) if died else (),
        numbers={"share": one.share or 0.0},
    )


_OF_SHAPES = 0.02


class CreepsNearCapacity(Struct, frozen=True):
    """Thresholds of OOM028: records, share of the device, GiB, and halves of a run that the room would last.

    A rise is as large in the second half as in the first from `even` times it on: a straight one is printed with
    few digits, and one that comes to an end (a root of the steps) has 0.41.
    """

    samples: int = 5
    share: float = 0.95
    gib: float = 0.2
    halves: float = 2.0
    even: float = 0.8


class _Creep(Struct, frozen=True):
    one: Series
    rise: float
    left: float
    at: int


@rule("OOM028 creeps-near-capacity", "metrics events facts", cause="creep_near_capacity")
def creeps_near_capacity(run: Run, cfg: CreepsNearCapacity) -> Findings:
    """Find the device series that leaves least room and uses it up."""
    own = [s for s in series_of(run) if s.meaning.unit == "GiB" and not s.meaning.is_host and not s.meaning.falls]
    found = [creep for one in own if (creep := _creep(one, cfg)) is not None]
    creep = min(found, key=lambda c: c.left, default=None)
    if creep is None:
        return
    one = creep.one
    words = one.meaning.quantity.replace("_", " ")
    was, now, left = (memory.amount(one, gib) for gib in (one.peak - creep.rise, one.peak, creep.left))
    severity, died = memory.severity_of(run, one)
    told = "the device" if one.capacity else f"a device of {least_size(one.peak):.0f} GiB"
    yield creeps_near_capacity.finding(
        f"{words} memory creeps up from {was} to {now}, and {left} of {told} is left"
        + (memory.until(one, died) if died else ""),
        "it rose again in the second half of the steps, by as much as in the first or more",
        proof(*memory.series_evidence(one, creep.at, 0, -1), *(memory.message_evidence(m) for m in died)),
        Onset(step=one.step(creep.at), rank=one.rank, step_lo=one.step(creep.at - 1)),
        severity=severity,
        confidence="medium" if one.capacity else "low",
        culprits=memory.ranks(one),
        numbers={"rise_gib": creep.rise, "left_gib": creep.left},
    )


def _creep(one: Series, cfg: CreepsNearCapacity) -> _Creep | None:
    size = one.capacity or least_size(one.peak)
    if len(one.y) < cfg.samples or size is None or one.peak < cfg.share * size:
        return None
    highest: Floats = np.maximum.accumulate(one.y)
    rises = np.flatnonzero(np.diff(highest) > 0) + 1
    half = int(np.count_nonzero(one.x <= (float(one.x[0]) + float(one.x[-1])) / 2)) - 1
    first, second = float(highest[half] - highest[0]), float(highest[-1] - highest[half])
    rise, left = first + second, max(0.0, float(size) - one.peak)
    if len(rises) < 2 or rise < cfg.gib or second < cfg.even * first or left > cfg.halves * second:
        return None
    shaped = one.form.grows and one.form.rise >= _OF_SHAPES * abs(one.form.level)
    return None if shaped else _Creep(one, rise, left, int(rises[0]))


class OneRankHigher(Struct, frozen=True):
    """Thresholds of OOM008: ranks, ratio to the median, and GiB above it (less is a logger's or NCCL's own memory)."""

    ranks: int = 3
    ratio: float = 1.2
    gib: float = 1.0


@rule("OOM008 one-rank-higher", "metrics events facts", confidence="medium", cause="memory_imbalance", causal="context")
def one_rank_higher(run: Run, cfg: OneRankHigher) -> Findings:
    """Find the rank that differs most."""
    for row in imbalances(run):
        if len(row.levels) < cfg.ranks or row.ratio < cfg.ratio or row.top.peak - row.median < cfg.gib:
            continue
        died = [m for m in memory.fatal(run) if m.rank == row.top.rank]
        yield one_rank_higher.finding(
            f"rank {row.top.rank} reaches {memory.size(row.top.peak * memory.GIB)}, {row.ratio:.2f} times the median of"
            f" {len(row.levels)} ranks ({memory.size(row.median * memory.GIB)}; {row.name})",
            "the fullest rank decides whether the job fits; the highest value of each rank is compared",
            proof(
                *memory.series_evidence(row.top, int(np.argmax(row.top.y))),
                *memory.series_evidence(row.lowest, int(np.argmax(row.lowest.y))),
                *(memory.message_evidence(m) for m in died[:1]),
            ),
            Onset(rank=row.top.rank),
            severity="warning" if died else "info",
            culprits=memory.ranks(row.top),
            numbers={"ratio": row.ratio, "median_gib": row.median, "ranks": len(row.levels)},
        )
        return


class OneLargeRequest(Struct, frozen=True):
    """Threshold of OOM016: records after warm-up that make a series level."""

    samples: int = 10


@memory.of_fatal("OOM016 one-large-request", "events metrics facts", confidence="medium", cause="one_large_request")
def one_large_request(run: Run, first: OomMessage, cfg: OneLargeRequest) -> Findings:
    """Find a level series that a fatal device message follows."""
    if first.reading in {"others", "limit"}:
        return
    tried, capacity = first.sizes.tried, first.sizes.capacity
    if tried is not None and capacity is not None and tried > capacity:
        yield one_large_request.finding(
            f"one request of {memory.size(tried)} is larger than the whole device, which has {memory.size(capacity)}",
            "no batch that fits asks for one tensor of that size",
            (memory.message_evidence(first),),
            culprits=memory.ranks(first),
            cause="request_larger_than_device",
            confidence="high",
            numbers={"tried_bytes": tried},
        )
        return
    held = [s for s in series_of(run) if s.meaning.quantity in OF_TENSORS]
    level = [s for s in held if s.form.samples - s.form.warmup >= cfg.samples and memory.killer(run, s) is first]
    if not level or any(s.form.kind not in LEVEL for s in level):
        return
    asked = f"one request of {memory.size(tried)}" if tried else "one request"
    yield one_large_request.finding(
        f"memory was level before it ran out: {asked} was too large, and nothing leaked",
        f"{len(level)} memory series up to then {'is' if len(level) == 1 else 'are'} flat or levelled off",
        (memory.message_evidence(first), *memory.series_evidence(level[0], -1)),
        culprits=memory.ranks(first),
        numbers={} if tried is None else {"tried_bytes": tried},
    )
