"""Runs that left memory snapshots: a leak, an out-of-memory event, pieces, pools, and one that was begun too late."""

from __future__ import annotations

from collections.abc import Iterator

from make._logs import MAIN, STEP, done, falling, fixtures, run_log, start, traceback
from make.base import Label, Made, lines
from make.rules.memory import oom


def runs() -> Iterator[Made]:
    """Leaks, pieces and pools in recordings of the allocator, with and without a log beside them."""
    snap = fixtures("memory_snapshot")
    plan = snap.Plan(steps=14, leak_every=1, layers=1, oom=True)
    yield Made(
        "oom-snapshot-leak",
        {"memory_snapshot.pickle": snap.pickled(snap.made(plan)[0])},
        Label("failed", "oom", ("snapshot_leak", "leak")),
    )
    plan = snap.Plan(steps=6, layers=1, oom=True)
    log = lines(start(), run_log({"loss": falling(6)}), traceback(oom(0.0625, 77, 1), MAIN, STEP))
    yield Made(
        "oom-snapshot-and-log",
        {"snapshots/oom_rank0.pickle": snap.pickled(snap.made(plan)[0]), "train.log": log},
        Label("failed", "oom", onset=6, within=1),
    )
    grown = {
        f"snapshots/step_{10 * n}.pickle": snap.pickled(
            snap.made(snap.Plan(steps=4 * n, layers=1, unit=4 << 20, leak_every=1))[0]
        )
        for n in (1, 2, 3)
    }
    ended = lines(start(), run_log({"loss": falling(60)}), done(60))
    yield Made("suspect-snapshots-grow", {**grown, "train.log": ended}, Label("suspect", "oom", ("snapshot_leak",)))
    late = snap.made(snap.Plan(steps=5, since=4, layers=2, unit=2 << 20))[0]
    yield Made("snapshot-begun-too-late", {"memory.pickle": snap.pickled(late), "train.log": ended}, Label("healthy"))
    pieces, address = [], 0x7F00_0000_0000
    for number in range(6):
        held, total = (260 + 8 * number) << 20, 512 << 20
        blocks = [
            {"address": address, "size": held, "requested_size": held, "state": "active_allocated", "frames": []},
            {"address": address + held, "size": total - held, "requested_size": 0, "state": "inactive", "frames": []},
        ]
        pieces.append({
            "device": 0, "address": address, "total_size": total, "allocated_size": held, "active_size": held, "requested_size": held,
            "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks,
        })  # fmt: skip
        address += total
    event = {
        "action": "oom",
        "device_free": 12 << 20,
        "size": 640 << 20,
        "stream": 0,
        "time_us": 1_700_000_000_000_000,
        "frames": [],
    }
    yield Made(
        "oom-snapshot-in-pieces",
        {"oom.pickle": snap.pickled({"segments": pieces, "device_traces": [[event]]})},
        Label("failed", "oom", ("fragmentation",), says=("expandable", "fragment")),
    )
    pooled = [one | {"segment_pool_id": (0, 1 if n > 2 else 0)} for n, one in enumerate(pieces)]
    for one in pooled[3:]:
        one["blocks"] = [
            {
                "address": one["address"],
                "size": one["total_size"],
                "requested_size": 0,
                "state": "inactive",
                "frames": [],
            }
        ]
        one |= {"allocated_size": 0, "active_size": 0, "requested_size": 0}
    yield Made(
        "healthy-graph-pools-hold-memory",
        {"memory.pickle": snap.pickled({"segments": pooled, "device_traces": [[]]}), "train.log": ended},
        Label("healthy"),
    )
