"""What makers write logs with: lines of usual trainers, clocks, curves, and the scripts that make the fixtures."""

from __future__ import annotations

import functools
import importlib.util
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

from make.base import Noise, Series, Table, decay, line

_SCRIPTS = Path(__file__).resolve().parents[3] / "fixtures" / "make"
_BEGIN = datetime(2026, 3, 1, 10, 0, 0)  # noqa: DTZ001 - logs print local time
#: A loop of one's own that logs with Python's logging.
LOOP = "{clock} | INFO | step {step} | loss {loss:.4f} | grad_norm {grad_norm:.3f} | lr {lr:.2e}"
BARE = "step {step} loss {loss:.4f} lr {lr:.2e}"
TIMED = "{clock} step {step} loss {loss:.4f} step_time {step_time:.4f}"
KEMPNER = (
    "[rank 0] INFO     [step {step}] loss={loss:.4f} | lr={lr:.2e} | grad_norm={grad_norm:.3f} | tok/s=51,200"
    " | mfu=41.4% | mem={mem:.1f}/80GB | step_time=0.16s"
)
TITAN = (
    "[rank0]:[titan] {clock},120 - root - INFO - step: {step:2d}  loss: {loss:8.5f}  grad_norm: {grad_norm:7.4f}"
    "  memory: {mem:5.2f}GiB({mem_pct:.2f}%)  tps: 7,310  tflops: 301.22  mfu: 30.46%"
)
MEGATRON = (
    " [{clock}] iteration {step:8d}/  500000 | consumed samples: {samples:12d} | elapsed time per iteration (ms): 812.5 |"
    " learning rate: {lr:.6E} | global batch size:   512 | lm loss: {loss:.6E} | loss scale: {scale:.1f} |"
    " grad norm: {grad_norm:.3f} | number of skipped iterations: {skipped:3d} | number of nan iterations: {nans:3d} |"
)


@functools.cache
def fixtures(name: str) -> ModuleType:
    """A script of `fixtures/make`, for what it makes."""
    if str(_SCRIPTS) not in sys.path:
        sys.path.append(str(_SCRIPTS))
    spec = importlib.util.spec_from_file_location(f"fixtures_{name}", _SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def clock(after_s: float) -> str:
    """The time that a log prints so many seconds after the run began."""
    return (_BEGIN + timedelta(seconds=after_s)).strftime("%Y-%m-%d %H:%M:%S")


def clocks(steps_s: Iterable[float], begin_s: float = 30) -> list[str]:
    """The time of each record, from the seconds that each took."""
    at, found = begin_s, list[str]()
    for step_s in steps_s:
        at += step_s
        found.append(clock(at))
    return found


def falling(
    count: int, start: float = 10.8, end: float = 3.0, half: float = 40, *, share: float = 0.01, seed: int = 0
) -> Series:
    """A loss that falls with noise."""
    return Noise(share, seed).on(decay(start, end, count, half))


def steady(level: float, count: int, share: float = 0.05, seed: int = 1) -> Series:
    """Values around one level."""
    return Noise(share, seed).on([level] * count)


def cosine(count: int, peak: float = 3e-4, warmup: int = 10) -> Series:
    """A learning rate that warms up, then falls on a line to a tenth."""
    up = [peak * (at + 1) / warmup for at in range(min(warmup, count))]
    rest = count - len(up)
    return up + line(peak, -0.9 * peak / max(rest, 1), rest)


def run_log(
    columns: Mapping[str, Sequence[Any]], form: str = LOOP, first: int = 1, every: int = 1, step_s: float = 2
) -> list[str]:
    """Log lines over columns; `clock`, a rate and a norm are filled in where they lack."""
    count = max(map(len, columns.values()))
    usual = {
        "clock": clocks([step_s] * count),
        "lr": cosine(count),
        "grad_norm": steady(1.0, count),
        "mem": [31.2] * count,
    }
    return Table({**usual, **columns}, first, every).log(form)


def traceback(last: str, *frames: tuple[str, int, str, str]) -> list[str]:
    """A Python traceback with its last line."""
    shown = [f'  File "{file}", line {number}, in {name}\n    {code}' for file, number, name, code in frames]
    return ["Traceback (most recent call last):", *(part for one in shown for part in one.split("\n")), last]


def waited(rank: int, seq: int = 981, op: str = "ALLREDUCE", after_s: float = 900) -> str:
    """The line of NCCL's watchdog on a rank that waited for the others."""
    at = (_BEGIN + timedelta(seconds=after_s)).strftime("%H:%M:%S")
    return (
        f"[rank{rank}]:[E301 {at}.123456789 ProcessGroupNCCL.cpp:685] [Rank {rank}] Watchdog caught collective operation"
        f" timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn=512, NumelOut=512, Timeout(ms)=600000) ran for 600042"
        " milliseconds before timing out."
    )


MAIN = ("/srv/job/train.py", 211, "<module>", "main(cfg)")
STEP = ("/srv/job/train.py", 148, "main", "loss = trainer.step(batch)")


def start(model: str = "tiny-gpt", world: int = 1, **settings: object) -> list[str]:
    """Lines that a run prints before its first step."""
    told = " ".join(f"{name}={value}" for name, value in settings.items())
    return [
        f"{clock(0)} | INFO | starting run of {model}, world_size={world} {told}".rstrip(),
        f"{clock(3)} | INFO | number of parameters: 124.48M",
        f"{clock(9)} | INFO | loaded 5120 shards in 6.2 s",
    ]


def done(steps: int, after_s: float = 4000) -> str:
    """The line of a loop that ended by itself."""
    return f"{clock(after_s)} | INFO | Training complete: {steps} steps"


def jsons(document: object) -> str:
    """A JSON file."""
    return json.dumps(document, indent=1) + "\n"
