"""Real small training jobs with a fault that only a truth file outside of the run knows; then what forensics says.

    python tests/lab/lab.py --seed 7 --n 100 --out DIR [--python LAB_PYTHON] [--forensics PROGRAM] [--jobs 2]

`DIR/runs/<job>` is what the job left, `DIR/truth/<job>.json` what happened. Both are kept: a second call with the same
seed and folder runs only what is not there, and scores anew. A job that did not show its fault on disk is dropped here.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults import BY_NAME
from plan import LIBRARIES, Job, jobs
from score import scored, table

HERE = Path(__file__).resolve().parent
MOST_S = 60
#: A slowdown shows when its steps take this much longer on average, with so many records on both sides of its onset.
SLOWER, FEWEST = 1.25, 8
_SCRIPTS = {"hf": "hf.py", "lightning": "lightning_job.py"}


@dataclass(frozen=True, slots=True)
class Paths:
    """Where a job runs, what it runs, what it was asked, and where it notes the truth."""

    place: Path
    scripts: Path
    asked: Path
    notes: Path


def run(job: Job, out: Path, python: str) -> dict[str, Any]:
    """Run one job to its end, by itself or by its limit of 60 s; gives its truth."""
    place, truth = out / "runs" / job.name, out / "truth" / f"{job.name}.json"
    if truth.exists():
        return json.loads(truth.read_text())
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    notes = out / "truth" / f"{job.name}.notes"
    for old in notes.parent.glob(f"{job.name}.notes*"):
        old.unlink()
    paths = Paths(place, out / "src", out / "truth" / f"{job.name}.job", notes)
    paths.asked.write_text(json.dumps(job.document()))
    begin = time.monotonic()
    codes = [_process(job, paths, python, 0)]
    resumed_at = job.at // job.save_every * job.save_every
    again = 3 if job.fault == "resume-loop" else job.fault == "fine-resumed" or job.fault.startswith("resume-")
    codes += [_process(job, paths, python, resumed_at) for _ in range(again if resumed_at else 0)]
    found = _truth(job, notes, codes) | {"seconds": round(time.monotonic() - begin, 1)}
    truth.write_text(json.dumps(found))
    return found


def _process(job: Job, paths: Paths, python: str, start: int) -> int:
    place = paths.place
    script = paths.scripts / _SCRIPTS.get(job.trainer, "train.py")
    environment = os.environ | {
        "LAB_JOB": str(paths.asked), "LAB_NOTES": str(paths.notes), "LAB_START": str(start), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1",
        "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(paths.scripts),
    }  # fmt: skip
    command = [python, str(script)]
    if job.ranks > 1:
        port = str(20_000 + (job.seed * 977 + job.number * 13) % 30_000)
        command = [
            python,
            "-m",
            "torch.distributed.run",
            f"--nproc-per-node={job.ranks}",
            f"--master-port={port}",
            str(script),
        ]
        if job.number % 3 == 0:
            command[3:3] = ["--log-dir=logs", "--redirects=3"]
    pair = job.number % 2 == 0
    log = place / (f"slurm-{4000 + job.number}.out" if pair else "train.log")
    err = place / f"slurm-{4000 + job.number}.err" if pair else None
    with log.open("ab") as stdout, err.open("ab") if err else Path(os.devnull).open("wb") as stderr:
        child = subprocess.Popen(
            command,
            cwd=place,
            env=environment,
            stdout=stdout,
            stderr=stderr if err else stdout,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            code = child.wait(MOST_S)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 15)
            try:
                code = child.wait(5)
            except subprocess.TimeoutExpired:
                code = -9
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, 9)
    return code


def _truth(job: Job, notes: Path, codes: list[int]) -> dict[str, Any]:
    fault = BY_NAME[job.fault]
    said = [
        json.loads(line)
        for path in sorted(notes.parent.glob(notes.name.replace(".notes", "") + ".[0-9]*"))
        for line in path.read_text().splitlines()
    ]
    onsets = [one["onset"] for one in said if "onset" in one]
    shown = [one for one in said if "shown" in one]
    found = {
        "outcome": fault.outcome,
        "shape": fault.shape,
        "causes": fault.causes,
        "says": fault.says,
        "onset": min(onsets) if fault.onset and onsets else (job.at if fault.onset and fault.shape != "none" else None),
        "within": job.log_every,
        "culprits": [job.rank] if fault.culprit else None,
        "fault": job.fault,
        "trainer": job.trainer,
        "ranks": job.ranks,
        "codes": codes,
        "last_shown": max((one["shown"] for one in shown), default=None),
    }
    return found | {"dropped": _missing(job, shown, said, codes)}


def _missing(job: Job, shown: list[dict[str, Any]], said: list[dict[str, Any]], codes: list[int]) -> str:
    """Why the fault did not show on disk, or nothing."""
    kind, ended = job.fault.split("-")[0], any("ended" in one for one in said)
    if not shown:
        return "nothing was logged"
    wrong_end = {
        "fine": not ended or codes[-1] != 0,
        "resume": len(codes) < 2,
        "learn": not ended,
        "hang": ended,
        "crash": codes[-1] == 0,
        "mem": codes[-1] == 0,
        "stop": codes[-1] == 0,
    }
    if wrong_end.get(kind, False):
        return f"a job of this kind does not end so: {codes}, ended {ended}"
    return {"nan": _no_nan, "slow": _not_slower}.get(kind, lambda *_: "")(job, shown)


def _no_nan(job: Job, shown: list[dict[str, Any]]) -> str:
    norms = [float(one["norm"]) for one in shown if one["norm"] != "None"]
    numbers = (
        norms
        if job.fault in {"nan-hidden", "nan-scale"} or job.trainer == "hf"
        else [float(one["loss"]) for one in shown]
    )
    return "" if any(not math.isfinite(number) for number in numbers) else "every number that was logged is finite"


def _not_slower(job: Job, shown: list[dict[str, Any]]) -> str:
    if job.fault == "slow-saves" or job.trainer in LIBRARIES:
        return ""
    before = [one["dt"] for one in shown if one["shown"] <= job.at][2:]
    after = [one["dt"] for one in shown if one["shown"] > job.at]
    if min(len(before), len(after)) < FEWEST:
        return f"fewer than {FEWEST} records on one side of the onset"
    return "" if sum(after) / len(after) > SLOWER * sum(before) / len(before) else "the steps did not become slower"


def main() -> int:
    """Run and score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--forensics", default="forensics")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("-v", action="store_true")
    given = parser.parse_args()
    out = given.out.resolve()
    for name in ("runs", "truth", "src"):
        (out / name).mkdir(parents=True, exist_ok=True)
    for path in (HERE / "job").glob("*.py"):
        shutil.copy(path, out / "src" / path.name)
    chosen = [job for job in jobs(given.seed, given.n) if given.only in job.fault]
    with ThreadPoolExecutor(given.jobs) as pool:
        truths = list(pool.map(lambda job: run(job, out, given.python), chosen))
    rows = []
    for job, truth in zip(chosen, truths, strict=True):
        if truth["dropped"]:
            print(f"dropped {job.name} {job.fault} {job.trainer}: {truth['dropped']}")
            continue
        rows.append(scored(job.name, out / "runs" / job.name, truth, given.forensics))
    print(table(rows, verbose=given.v))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
