"""The child of the harness: reads case after case, and tells what each cost and how it ended."""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amplify import amplified
from mutate import Case, case, seeds

from forensics import pipeline, registry
from forensics.errors import InputError, NotMine
from forensics.io.budget import WorkExceeded
from forensics.io.limits import DEFAULT
from forensics.io.reading import Opened, opened_bytes
from forensics.model import FileStatus
from forensics.registry import Ingester
from forensics.store.sink import WORK_ISSUE, SourceSink

AMPLIFY = "amplify"
#: Private memory of a worker; an input that asks for more gets a MemoryError, which is a failure.
_MOST_BYTES = 6 << 30
_STATUS = Path("/proc/self/status")
#: Characters that no output may hold as they are: those that steer a terminal, line ends and tabs left out.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


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


def run(one: Ingester, found: Case, opened: Opened) -> str:
    """Read one case: `read`, `not-mine`, `refused` or `ended` with its budget; anything else is raised."""
    sink = CheckedSink(opened.source, DEFAULT, budget=opened.budget)
    try:
        one.read(opened, sink, DEFAULT)
    except NotMine:
        return "not-mine"
    except WorkExceeded:
        pass
    except InputError:
        return "refused"
    sink.settle_work()
    if not opened.budget.ended and sink.accounted != len(found.data):
        msg = f"{sink.accounted} bytes are accounted for, the file has {len(found.data)}"
        raise AssertionError(msg)
    sink.frames()
    coverage = sink.coverage(one.name)
    if not opened.budget.ended:
        return "read"
    if coverage.status is FileStatus.READ or WORK_ISSUE not in {issue.code for issue in sink.issues}:
        msg = "the budget ended and the file passes as whole"
        raise AssertionError(msg)
    if coverage.read_bytes + coverage.skipped_bytes != len(found.data):
        msg = f"{coverage.read_bytes} + {coverage.skipped_bytes} bytes, the file has {len(found.data)}"
        raise AssertionError(msg)
    return "ended"


def told(found: Case) -> None:
    """Ask every rule about one case and write every kind of report; nothing may raise or steer a terminal."""
    run_of = pipeline.ingest_bytes(found.name, found.data)
    report = pipeline.report_of(run_of)
    drawn = pipeline.with_figures(run_of, report)
    for renderer in registry.load("renderers").renderers:
        text = "\n".join(renderer.render(drawn if renderer.drawn else report))
        if steering := _STEERING.search(text):
            msg = (
                f"{renderer.name} holds {steering.group()!r}: {text[max(steering.start() - 40, 0) : steering.end()]!r}"
            )
            raise AssertionError(msg)


def judged(one: Ingester, found: Case, *, tell: bool = False) -> dict[str, Any]:
    """How one case ended: `end`, `why`, decoded `bytes`, `seconds` of CPU, growth of the resident peak in KiB.

    With `tell`, rules and renderers are asked too, after the measurement.
    """
    _forget_peak()
    before = _memory_kib("VmRSS")
    begin = time.process_time()
    why = ""
    opened = opened_bytes(found.name, found.data)
    seconds, kib = 0.0, 0
    try:
        end = run(one, found, opened)
        seconds, kib = time.process_time() - begin, max(_memory_kib("VmHWM") - before, 0)
        if tell:
            told(found)
    except BaseException as error:  # noqa: BLE001 - that nothing else comes out is what is tested
        end = "raised"
        place = traceback.extract_tb(error.__traceback__)[-1]
        why = (
            f"{type(error).__name__}: {' '.join(str(error).split())[:160]} ({Path(place.filename).name}:{place.lineno})"
        )
    return {"end": end, "why": why, "bytes": opened.budget.size_bytes, "seconds": seconds, "kib": kib}


def serve() -> None:
    """Answer `<ingester> <seed> <number> <tell>` lines on stdin with one JSON line each.

    The seed `amplify` stands for the amplifications; behind the last of them the answer is `end: none`.
    """
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
    made: tuple[str, list[tuple[str, Case]]] = "", []
    for line in sys.stdin:
        name, seed, number, tell = line.split()
        if seed == AMPLIFY:
            if made[0] != name:
                made = name, list(amplified(every[name], known[name]))
            if int(number) >= len(made[1]):
                print(json.dumps({"end": "none"}), file=answers)
                continue
            label, found = made[1][int(number)]
        else:
            label, found = "", case(every[name], known[name], int(seed), int(number))
        print(json.dumps({**judged(every[name], found, tell=tell == "1"), "label": label}), file=answers)


if __name__ == "__main__":
    serve()
