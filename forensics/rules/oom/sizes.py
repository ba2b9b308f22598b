"""What the sizes in the message of an allocator say of the request that failed."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np

from forensics.analyses.memory.capacity import Beside, beside_reserved
from forensics.analyses.memory.oom_messages import OomMessage
from forensics.analyses.memory.series import Series, series_of
from forensics.case.settings import keyed, stated
from forensics.rules.kit import Findings, Onset, Row, Run, Struct, fact_evidence, proof, rule
from forensics.rules.oom import _memory as memory


class FragmentedRequest(Struct, frozen=True):
    """Threshold of OOM013: the share of the device from which unusable memory is worth a setting."""

    share: float = 0.1


@memory.of_fatal("OOM013 fragmented-request", "events metrics facts", cause="fragmentation")
def fragmented_request(run: Run, first: OomMessage, cfg: FragmentedRequest) -> Findings:
    """Judge the numbers of the first fatal device message."""
    sizes, unused = first.sizes, first.sizes.unallocated or 0
    if first.reading != "fragmentation" or (sizes.capacity and unused < cfg.share * sizes.capacity):
        return
    on = expandable(run)
    yield fragmented_request.finding(
        f"{memory.size(unused)} was reserved and unused when {memory.size(sizes.tried)} could not be allocated",
        "whole free segments had been returned before, so only pieces that are too small are left",
        proof(memory.message_evidence(first)),
        confidence="medium" if sizes.capacity else "low",
        culprits=memory.ranks(first),
        numbers={"unallocated_bytes": unused, "tried_bytes": sizes.tried or 0}
        | ({} if on is None else {"expandable_segments": int(on)}),
    )


def expandable(run: Run) -> bool | None:
    """Tell whether expandable segments are on by what the run's environment says; None when it does not say."""
    names = r"(?i)(?:CUDA|HIP)_ALLOC_CONF|PYTORCH_ALLOC_CONF|expandable_segments"
    rows = keyed(run, names).select("key", "value").collect()
    said = " ".join(f"{key}={value}" for key, value in rows.iter_rows()).lower().replace('"', "").replace(" ", "")
    if "expandable_segments" not in said:
        return False if rows.height else None
    return "expandable_segments:true" in said or "expandable_segments=true" in said


@memory.of_fatal("OOM011 others-on-device", "events metrics", cause="others_on_device")
def others_on_device(run: Run, first: OomMessage) -> Findings:
    """Find the first fatal message of a device that is shared."""
    found = [m for m in memory.fatal(run) if m.reading == "others"]
    if first not in found:
        return
    held, whole = first.sizes.others or first.sizes.rest or 0, first.sizes.capacity or 1
    yield others_on_device.finding(
        f"other processes held {memory.size(held)} ({100 * min(1.0, held / whole):.0f} %) of the full device",
        "the message counts them beside the run's own process"
        if first.sizes.others
        else "it is neither free nor reserved by PyTorch, whose own context and libraries take 2 GiB or less",
        tuple(memory.message_evidence(m) for m in found[:3]),
        confidence="high" if first.sizes.own else "medium",
        culprits=memory.ranks(first),
        numbers={"others_bytes": held, "capacity_bytes": whole},
    )


class OutsideTheAllocator(Struct, frozen=True):
    """Threshold of OOM015: twice what a context and communicators usually take."""

    gib: float = 3.0


@rule("OOM015 outside-the-allocator", "events metrics facts", cause="outside_allocator", causal="context")
def outside_the_allocator(run: Run, cfg: OutsideTheAllocator) -> Findings:
    """Judge the first fatal device message that counts the whole process, else the driver's count beside it."""
    died = memory.fatal(run)
    first = next((m for m in died if m.sizes.outside is not None), None)
    if first is not None:
        outside = first.sizes.outside or 0
        if outside >= cfg.gib * memory.GIB:
            yield outside_the_allocator.finding(
                f"{memory.size(outside)} of the process's device memory is not the allocator's",
                "the process holds so much more than the framework allocated and reserved",
                proof(memory.message_evidence(first)),
                severity="warning",
                confidence="medium",
                culprits=memory.ranks(first),
                numbers={"outside_bytes": outside},
            )
        return
    found = max(beside_reserved(run), key=lambda one: one.gib, default=None)
    if found is not None and found.gib >= cfg.gib:
        yield from _of_driver(run, found, died)


def _of_driver(run: Run, found: Beside, died: tuple[OomMessage, ...]) -> Findings:
    used, held = _series(run, found.used), _series(run, found.reserved)
    if used is None or held is None:
        return
    tops = [int(np.argmax(one.y)) for one in (used, held)]
    yield outside_the_allocator.finding(
        f"{memory.size(found.gib * memory.GIB)} of the device's used memory is not the allocator's",
        "the driver counts so much more as used than the framework reserved;"
        " other processes on the device are included",
        proof(
            *memory.series_evidence(used, tops[0]),
            *memory.series_evidence(held, tops[1]),
            *(memory.message_evidence(m) for m in died[:1]),
        ),
        Onset(step=used.step(tops[0]), rank=used.rank),
        severity="warning" if died else "info",
        confidence="low",
        culprits=memory.ranks(used) if died else (),
        numbers={"outside_bytes": round(found.gib * memory.GIB)},
    )


def _series(run: Run, key: tuple[str, int | None, str]) -> Series | None:
    """Give the series of one source, rank and name that a difference was taken of, by its highest value."""
    same = [s for s in series_of(run) if (s.source, s.rank, s.name) == key]
    return max(same, key=lambda s: s.peak, default=None)


_BYTES = (2, 4)


class LogitsTooLarge(Struct, frozen=True):
    """Thresholds of OOM018: how near the sizes must be, and the least request (smaller ones are met by chance)."""

    within: float = 0.05
    least_bytes: int = 1 << 30


@memory.of_fatal("OOM018 logits-too-large", "events metrics facts", cause="logits_too_large")
def logits_too_large(run: Run, first: OomMessage, cfg: LogitsTooLarge) -> Findings:
    """Compare the failed request with the size of the logits by the configuration."""
    tried = first.sizes.tried
    if tried is None or tried < cfg.least_bytes:
        return
    rows, expected = _expected(run, tried, cfg) or ([], 0)
    if not rows and first.phase != "logits":
        return
    words = " x ".join(f"{n:,}" for _, n in rows)
    yield logits_too_large.finding(
        f"the request that failed ({memory.size(tried)}) "
        + ("has the size of the logits of one batch" if rows else "was made where the logits are computed"),
        f"{words} x {expected // prod(n for _, n in rows)} bytes = {memory.size(expected)}"
        if rows
        else "the stack says so",
        proof(memory.message_evidence(first), *(fact_evidence(row) for row, _ in rows)),
        confidence="medium" if rows else "low",
        culprits=memory.ranks(first),
        numbers={"tried_bytes": tried} | ({"expected_bytes": expected} if rows else {}),
    )


def _expected(run: Run, tried: int, cfg: LogitsTooLarge) -> tuple[list[tuple[Row, int]], int] | None:
    """The settings whose product is the request, and that product; None where none is as large."""
    batch, length = _first(run, "micro_batch", "batch"), _first(run, "sequence", "completion_length")
    vocabulary, many = _first(run, "vocabulary"), _first(run, "generations")
    if batch is None or length is None or vocabulary is None:
        return None
    one = [batch, length, vocabulary]
    for width, used in product(_BYTES, (one, [*one, many]) if many is not None else (one,)):
        expected = width * prod(n for _, n in used)
        if abs(expected - tried) <= cfg.within * tried:
            return used, expected
    return None


def _first(run: Run, *names: str) -> tuple[Row, int] | None:
    """Give the first fact that states a count, by the first of the settings that has one, and the count."""
    for row in (row for name in names for row in stated(run, name).iter_rows(named=True)):
        if row["said"].isdigit() and 0 < int(row["said"]) < 1 << 40:
            return row, int(row["said"])
    return None
