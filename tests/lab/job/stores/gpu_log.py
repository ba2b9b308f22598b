"""What a user's background script logs of GPUs: `nvidia-smi --query-gpu=… -l 1` or `dcgmi dmon -d 1000`.

There is no GPU: the numbers are made, in the layout of the tool, by a process of their own that looks once a second
how many steps each rank has done. A GPU is as busy as its rank is quick against its best second so far; one whose rank
stands still is idle.
"""

import os
import random
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

from facts import JOB, NOTES, RANK, WORLD

from stores._turns import turn

_EVERY_S, _HEADER_EVERY = 1.0, 14
_IDLE_W, _BUSY_W, _HELD_MIB, _TOTAL_MIB = 71.0, 640.0, 23412, 81559
_QUERIED = (
    "timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB], "
    "power.draw [W], temperature.gpu, clocks.current.sm [MHz]"
)
#: Short name, unit and width of dcgmi's fields 203, 252, 155, 150 and 1002.
_WATCHED = (("GPUTL", "", 18), ("FBUSD", "", 18), ("POWER", "W", 18), ("TMPTR", "C", 13), ("SMACT", "", 18))


def _beats(rank):
    """Where a rank counts its steps, outside of the run."""
    return Path(f"{NOTES}.beats-{rank}")


class Store:
    everyone = True

    def start(self, config):
        self.done = 0
        self.count = _beats(RANK).open("wb", buffering=0)
        if RANK == 0:
            tool = turn("gpu_log", "smi", "dcgmi")
            path = "gpu_usage.csv" if tool == "smi" else "dcgmi_dmon.log"
            with open(path, "a") as out:
                subprocess.Popen([sys.executable, "-m", "stores.gpu_log", tool], stdout=out, stdin=subprocess.DEVNULL)

    def end(self, step):
        self.done += 1
        self.count.seek(0)
        self.count.write(b"%12d" % self.done)

    def write(self, step, values):
        """Nothing: the log has its own clock."""


def _smi(gpu, busy, rng):
    stamp = datetime.now().strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
    sm_mhz = 1980 if busy else 345
    return (
        f"{stamp}, {gpu}, NVIDIA H100 80GB HBM3, {busy} %, {busy * 2 // 5} %, {_HELD_MIB + gpu} MiB, {_TOTAL_MIB} MiB, "
        f"{_power_w(busy, rng):.2f} W, {_temperature(busy, rng)}, {sm_mhz} MHz"
    )


def _dcgmi(gpu, busy, rng):
    active = busy / 100 * rng.uniform(0.6, 0.7)
    shown = (
        str(busy),
        str(_HELD_MIB + gpu),
        f"{_power_w(busy, rng):.3f}",
        str(_temperature(busy, rng)),
        f"{active:.3f}",
    )
    return f"{f'GPU {gpu}':<10}" + "".join(
        f"{text:<{wide}}" for text, (_, _, wide) in zip(shown, _WATCHED, strict=True)
    )


def _power_w(busy, rng):
    return _IDLE_W + (_BUSY_W - _IDLE_W) * busy / 100 * rng.uniform(0.95, 1.03)


def _temperature(busy, rng):
    return round(31 + busy * 0.3 + rng.uniform(-1, 1))


def _head(tool):
    if tool == "smi":
        return _QUERIED
    names = f"{'#Entity':<10}" + "".join(f"{name:<{wide}}" for name, _, wide in _WATCHED)
    return names + "\n" + f"{'ID':<10}" + "".join(f"{unit:<{wide}}" for _, unit, wide in _WATCHED)


def _counted(rank):
    try:
        return int(_beats(rank).read_bytes() or 0)
    except OSError:  # this rank has not started yet
        return 0


def watch(tool):
    """Log until the job is gone, and once more."""
    rng, job = random.Random(JOB["number"]), os.getppid()
    row = _smi if tool == "smi" else _dcgmi
    before, best, at = [_counted(rank) for rank in range(WORLD)], [1] * WORLD, 0
    print(_head(tool), flush=True)
    alive = True
    while alive:
        time.sleep(_EVERY_S)
        alive = os.getppid() == job
        now = [_counted(rank) for rank in range(WORLD)]
        done = [max(new - old, 0) for new, old in zip(now, before, strict=True)]
        best, before = [max(pair) for pair in zip(best, done, strict=True)], now
        if tool == "dcgmi" and at and at % _HEADER_EVERY == 0:
            print(_head(tool))
        for gpu in range(WORLD):
            busy = min(round(97 * done[gpu] / best[gpu] * rng.uniform(0.96, 1.02)), 100)
            print(row(gpu, busy, rng), flush=True)
        at += 1


if __name__ == "__main__":
    watch(sys.argv[1])
