"""Real small training jobs with a fault that only a truth file outside of the run knows; then what forensics says.

    python tests/lab/lab.py --seed 7 --n 100 --out DIR [--python LAB_PYTHON] [--forensics PROGRAM] [--jobs 2]

`DIR/runs/<job>` is what the job left, `DIR/truth/<job>.json` what happened, `DIR/scores.json` what was said of each.
Runs and truths are kept: a second call with the same seed and folder runs only what is not there, and scores anew. A
job that did not show its fault on disk is dropped here.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import launch
import trainers
from faults import BY_NAME
from faults.row import HEALTHY, Facts, Fault, last, of
from plan import Job, jobs
from score import scored, table
from spy import spied

HERE = Path(__file__).resolve().parent
#: No job takes longer; its processes are asked to end, and ended.
MOST_S = 60
#: The exit code of a process that had to be ended, as timeout(1) gives it.
_LATE = 124
_GRACE_S = 5
#: A third of a control that waited so much more for a CPU than another was slow: a smaller change is a finding (SLO001).
MOST_BUSY = 1.25


@dataclass(frozen=True, slots=True)
class Paths:
    """Where a job runs, what it runs, what it was asked, and where it notes the truth."""

    place: Path
    scripts: Path
    asked: Path
    notes: Path


def run(job: Job, out: Path, python: str) -> dict[str, Any]:
    """Run one job to its end, by itself or by its limit of 60 s; gives its truth."""
    place, truth_file = out / "runs" / job.name, out / "truth" / f"{job.name}.json"
    if truth_file.exists():
        return json.loads(truth_file.read_text())
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    notes = out / "truth" / f"{job.name}.notes"
    for old in notes.parent.glob(f"{job.name}.[0-9]*"):
        old.unlink()
    paths = Paths(place, out / "src", out / "truth" / f"{job.name}.job", notes)
    paths.asked.write_text(json.dumps(job.document()))
    begin = time.monotonic()
    starts = BY_NAME[job.fault].starts if job.resumes_at or BY_NAME[job.fault].beside else 1
    codes = [_process(job, paths, python, start, MOST_S - (time.monotonic() - begin)) for start in range(starts)]
    truth = _truth(job, paths, codes) | {"seconds": round(time.monotonic() - begin, 1)}
    truth_file.write_text(json.dumps(truth, indent=1))
    return truth


def _process(job: Job, paths: Paths, python: str, start: int, most_s: float) -> int:
    """Run the job's process number `start` in its place; gives its exit code."""
    script = paths.scripts / trainers.BY_NAME[job.trainer].script
    beside = BY_NAME[job.fault].beside
    environment = os.environ | {
        "LAB_JOB": str(paths.asked), "LAB_NOTES": str(paths.notes), "LAB_START": str(start),
        "LAB_STARTS": str(BY_NAME[job.fault].starts), "CUDA_VISIBLE_DEVICES": "",
        "LAB_STARTED_AT": str(job.resumes_at if start and not beside else 0), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1",
        "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(paths.scripts), "TORCH_FR_BUFFER_SIZE": "100",
    }  # fmt: skip
    # every process of a place appends to the same log, a run of its own does not
    place = paths.place / f"seed-{job.seed + start}" if beside else paths.place
    place.mkdir(exist_ok=True)
    log = place / launch.log_name(job)
    err = log.with_suffix(".err") if launch.paired(job) else None
    with log.open("ab") as stdout, err.open("ab") if err else Path(os.devnull).open("wb") as stderr:
        child = subprocess.Popen(
            launch.command(job, python, script),
            cwd=place,
            env=environment,
            stdout=stdout,
            stderr=stderr if err else stdout,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            if "pyspy" in job.stores:
                most_s -= spied(child, python, paths.place, paths.notes, max(most_s, 1))
            code = child.wait(max(most_s, 1))
        except subprocess.TimeoutExpired:
            code = _LATE
            os.killpg(child.pid, 15)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_GRACE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, 9)
    return code


def _truth(job: Job, paths: Paths, codes: Sequence[int]) -> dict[str, Any]:
    fault = BY_NAME[job.fault]
    trainer = trainers.BY_NAME[job.trainer]
    facts = [
        json.loads(line)
        for path in sorted(paths.notes.parent.glob(f"{job.name}.[0-9]*"))
        for line in path.read_text().splitlines()
    ]
    onsets = [one["onset"] for one in of(facts, "onset")]
    onset = (min(onsets) if onsets else job.at) if fault.onset and fault.shape != "none" else None
    saved = [one["saved"] for one in of(facts, "saved") if onset is None or one["saved"] < onset]
    failed = fault.outcome == "failed"
    own = partial(_counted, trainer)
    truth = {
        "outcome": fault.outcome,
        "shape": fault.shape,
        "causes": fault.causes,
        "says": fault.says,
        "onset": own(onset),
        "within": own(max(job.log_every, trainer.window)),
        "culprits": [job.rank] if fault.culprit and job.ranks > 1 else None,
        "checkpoint": own(max(saved)) if saved and failed else None,
        "fault": job.fault,
        "trainer": job.trainer,
        "ranks": job.ranks,
        "epoch_steps": round(1 / trainer.counts) if trainer.counts < 1 else None,
        "stores": job.stores,
        "codes": codes,
        "last_shown": own(max((one["shown"] for one in of(facts, "shown")), default=None)),
    }
    if fault.after:
        truth |= fault.after(job, paths.place, facts, random.Random(f"after-{job.name}"))
    return truth | {"dropped": _not_shown(job, fault, facts, list(codes))}


def _counted(trainer: trainers.Trainer, step: int | None) -> int | None:
    """A step of ours as the trainer's own files count it."""
    return None if step is None else math.ceil(step * trainer.counts)


def _not_shown(job: Job, fault: Fault, facts: Facts, codes: list[int]) -> str:
    """Why the fault does not show on disk, or nothing."""
    if not of(facts, "shown") and not fault.early:
        return "nothing was logged"
    if _LATE in codes:
        return f"it took longer than {MOST_S} s"
    done = last(facts, "ended") is not None and codes[-1] == 0
    wrong = {"done": not done, "failed": codes[-1] == 0, "unfinished": done, "": False}[fault.ends]
    if wrong or (len(codes) < fault.starts):
        return f"a job of this kind does not end so: {codes}, done {done}"
    if fault.outcome == HEALTHY and (times := made_slower(facts)) > MOST_BUSY:
        return f"the machine made a part of it {times:.2f} times slower than another"
    return fault.shown(job, facts, codes)


def made_slower(facts: Facts) -> float:
    """How many times slower the machine made one third of a process's records than another, by waiting for a CPU."""
    worst = 1.0
    for key in {(one["by"], one["process"]) for one in of(facts, "shown")}:
        shown = [one for one in of(facts, "shown") if (one["by"], one["process"]) == key]
        ends = [shown[len(shown) * third // 3 - (third == 3)] for third in range(4)]
        took = [(b["at_s"] - a["at_s"], b["waited_s"] - a["waited_s"]) for a, b in pairwise(ends)]
        slowed = [wall / (wall - waited) for wall, waited in took if wall > waited]
        worst = max([worst, *(a / b for a in slowed for b in slowed)])
    return worst


def program(name: str) -> str:
    """A program that a job can start from its own folder; a link (as in a virtual environment) stays one."""
    return str(Path(name).absolute()) if os.sep in name else name


def main() -> int:
    """Run and score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--forensics", default="forensics")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="faults or trainers whose name holds this")
    parser.add_argument("-v", action="store_true")
    given = parser.parse_args()
    out, python = given.out.resolve(), program(given.python)
    for name in ("runs", "truth"):
        (out / name).mkdir(parents=True, exist_ok=True)
    shutil.copytree(HERE / "job", out / "src", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    chosen = [job for job in jobs(given.seed, given.n) if given.only in f"{job.fault} {job.trainer} {job.stores}"]
    with ThreadPoolExecutor(given.jobs) as pool:
        truths = list(pool.map(lambda job: run(job, out, python), chosen))
        kept = [(job, truth) for job, truth in zip(chosen, truths, strict=True) if not truth["dropped"]]
        rows = list(
            pool.map(lambda both: scored(both[0].name, out / "runs" / both[0].name, both[1], given.forensics), kept)
        )
    for job, truth in zip(chosen, truths, strict=True):
        if truth["dropped"]:
            print(f"dropped {job.name} {job.fault} {job.trainer}: {truth['dropped']}")
    (out / "scores.json").write_text(json.dumps({"seed": given.seed, "planned": len(chosen), "rows": rows}, indent=1))
    print(table(rows, verbose=given.v))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
