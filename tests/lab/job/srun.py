"""Tasks of a job step with a log each, as `srun --kill-on-bad-exit --output=%j_%t.out` leaves them, and srun's own words."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time

_NODE = "node07"
#: What srun says of a task that a signal ended; of the others it gives the number.
_ENDED_BY = {signal.SIGKILL: "Killed", signal.SIGTERM: "Terminated", signal.SIGSEGV: "Segmentation fault (core dumped)",
             signal.SIGABRT: "Aborted (core dumped)"}  # fmt: skip


def said(text):
    print(text, file=sys.stderr, flush=True)


def task(given, rank):
    """Start one rank with logs of its own."""
    name = f"slurm-{given.job_id}_{rank}"
    environment = os.environ | {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(given.ntasks), "LOCAL_WORLD_SIZE": str(given.ntasks),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(given.port), "SLURM_JOB_ID": str(given.job_id),
        "SLURM_PROCID": str(rank), "SLURM_NTASKS": str(given.ntasks),
    }  # fmt: skip
    with open(f"{name}.out", "ab") as out, open(f"{name}.err" if given.pair else f"{name}.out", "ab") as err:
        return subprocess.Popen([sys.executable, given.script], env=environment, stdout=out, stderr=err)


def main():
    parser = argparse.ArgumentParser()
    for name in ("--ntasks", "--port", "--job-id"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--pair", action="store_true")
    parser.add_argument("script")
    given = parser.parse_args()
    tasks = [task(given, rank) for rank in range(given.ntasks)]

    def end(_signal=None, _frame=None):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S")
        said("srun: Job step aborted: Waiting up to 32 seconds for job step to finish.")
        said(f"slurmstepd: error: *** STEP {given.job_id}.0 ON {_NODE} CANCELLED AT {stamp} ***")
        for one in tasks:
            with contextlib.suppress(ProcessLookupError):
                one.terminate()

    signal.signal(signal.SIGTERM, end)
    codes = {}
    while len(codes) < given.ntasks:
        time.sleep(0.05)
        for rank, code in ((rank, one.poll()) for rank, one in enumerate(tasks) if rank not in codes):
            if code is None:
                continue
            first = code != 0 and not any(codes.values())
            codes[rank] = code
            if code < 0:
                said(f"srun: error: {_NODE}: task {rank}: {_ENDED_BY.get(-code, f'Terminated by signal {-code}')}")
            elif code > 0:
                said(f"srun: error: {_NODE}: task {rank}: Exited with exit code {code}")
            if first and len(codes) < given.ntasks:
                said(f"srun: Terminating StepId={given.job_id}.0")
                end()
    return max(code if code >= 0 else 128 - code for code in codes.values())


if __name__ == "__main__":
    sys.exit(main())
