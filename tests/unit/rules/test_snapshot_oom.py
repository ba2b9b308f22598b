"""A request that failed in a memory snapshot: too large, or no piece large enough."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from forensics import triage

MIB = 1 << 20
#: Two segments of 512 MiB, each with half of it free: 512 MiB in pieces of 256.
HALF = 256 * MIB


def segment(address: int) -> dict[str, Any]:
    kept = {"size": HALF, "state": "active_allocated", "requested_size": HALF}
    free = {"size": HALF, "state": "inactive", "requested_size": 0}
    blocks = [
        {"address": address, "frames": [], **kept},
        {"address": address + HALF, "frames": [], **free},
    ]
    sizes = {"total_size": 2 * HALF, "allocated_size": HALF, "active_size": HALF, "requested_size": HALF}
    kind = {"segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False}
    return {"device": 0, "address": address, "stream": 0, "frames": [], "blocks": blocks} | sizes | kind


@pytest.mark.parametrize(
    ("asked", "cause"),
    [
        (HALF, "gpu_out_of_memory"),  # a piece is large enough: another pool, or another stream, asked
        (HALF + MIB, "fragmentation"),
        (2 * HALF + 12 * MIB, "fragmentation"),  # the pieces and the 12 MiB free on the device together
        (2 * HALF + 13 * MIB, "gpu_out_of_memory"),
    ],
)
def test_a_request_that_all_pieces_together_hold_and_none_alone_fails_of_fragmentation(
    asked: int, cause: str, tmp_path: Path
) -> None:
    failed = {"action": "oom", "device_free": 12 * MIB, "size": asked, "stream": 0, "time_us": 1, "frames": []}
    segments = [segment(0x7F0000000000 + number * 2 * HALF) for number in range(2)]
    (tmp_path / "oom.pickle").write_bytes(pickle.dumps({"segments": segments, "device_traces": [[failed]]}))
    report = triage(tmp_path)
    assert report.verdict.cause == cause
    said = "512 MiB free in pieces of at most 256 MiB" in report.findings[0].because
    assert said is (cause == "fragmentation")
