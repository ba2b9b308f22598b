"""The child of the harness: reads case after case, and tells what each cost and how it ended."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mutate import Case, case, seeds

from forensics import registry
from forensics.errors import InputError, NotMine
from forensics.io.limits import DEFAULT
from forensics.io.reading import opened_bytes
from forensics.registry import Ingester
from forensics.store.sink import SourceSink

#: Private memory of a worker; an input that asks for more gets a MemoryError, which is a failure.
_MOST_BYTES = 6 << 30
_STATUS = Path("/proc/self/status")


def ingesters() -> Mapping[str, Ingester]:
    """All registered ingesters by name."""
    return {one.name: one for one in registry.load("ingesters").ingesters}


def _memory_kib(field: str) -> int:
    if not _STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in _STATUS.read_text().splitlines() if line.startswith(field))


def _forget_peak() -> None:
    path = Path("/proc/self/clear_refs")
    if path.exists():
        path.write_text("5")


class CheckedSink(SourceSink):
    """The real sink, which also adds up what is accounted for."""

    accounted = 0

    def account(self, *, read_bytes: int = 0, skipped_bytes: int = 0, reason: str = "", records: int = 0) -> None:
        if min(read_bytes, skipped_bytes, records) < 0:
            msg = f"negative account: {read_bytes} {skipped_bytes} {records}"
            raise AssertionError(msg)
        self.accounted += read_bytes + skipped_bytes
        super().account(read_bytes=read_bytes, skipped_bytes=skipped_bytes, reason=reason, records=records)


def run(one: Ingester, found: Case) -> str:
    """Read one case: `read`, `not-mine` or `refused`; anything else is raised."""
    opened = opened_bytes(found.name, found.data)
    sink = CheckedSink(opened.source, DEFAULT)
    try:
        one.read(opened, sink, DEFAULT)
    except NotMine:
        return "not-mine"
    except InputError:
        return "refused"
    if sink.accounted != len(found.data):
        msg = f"{sink.accounted} bytes are accounted for, the file has {len(found.data)}"
        raise AssertionError(msg)
    sink.frames()
    sink.coverage(one.name)
    return "read"


def judged(one: Ingester, found: Case) -> dict[str, Any]:
    """How one case ended: `end`, `why`, `seconds` and the growth of the peak of resident memory in KiB."""
    _forget_peak()
    before = _memory_kib("VmRSS")
    begin = time.perf_counter()
    why = ""
    try:
        end = run(one, found)
    except BaseException as error:  # noqa: BLE001 - that nothing else comes out is what is tested
        end = "raised"
        place = traceback.extract_tb(error.__traceback__)[-1]
        why = (
            f"{type(error).__name__}: {' '.join(str(error).split())[:160]} ({Path(place.filename).name}:{place.lineno})"
        )
    seconds = time.perf_counter() - begin
    return {"end": end, "why": why, "seconds": seconds, "kib": max(_memory_kib("VmHWM") - before, 0)}


def serve() -> None:
    """Answer `<ingester> <seed> <number>` lines on stdin with one JSON line each."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))
    every = ingesters()
    known = {name: seeds(one) for name, one in every.items()}
    for name, one in every.items():
        for warm in known[name][:3]:
            judged(one, warm)  # what is loaded on first use is no cost of an input
    print(json.dumps({"ready": list(every)}), file=answers)
    for line in sys.stdin:
        name, seed, number = line.split()
        print(json.dumps(judged(every[name], case(every[name], known[name], int(seed), int(number)))), file=answers)


if __name__ == "__main__":
    serve()
