"""Two things that went wrong in one run, in either order: which of them is the cause, and how sure one may be."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from make.base import Label, Made, lines

_STEPS = 60
_TRACE = ("Traceback (most recent call last):", '  File "train.py", line 88, in <module>', "    loss.backward()")
#: What went wrong, as a log tells it; `{rank}` and `{clock}` stand for the rank and the time.
_SAID: Mapping[str, tuple[str, ...]] = {
    "oom": (
        *_TRACE,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.12 GiB is free. Including non-PyTorch memory, this process has 78.02 GiB memory in use. Of the allocated memory 71.40 GiB is allocated by PyTorch, and 5.91 GiB is reserved by PyTorch but unallocated.",
    ),
    "crash": (*_TRACE, "KeyError: 'labels'"),
    "watchdog": (
        "[rank0]:[E101 10:15:00.123456789 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=982, OpType=ALLREDUCE, NumelIn=512, NumelOut=512, Timeout(ms)=600000) ran for 600031 milliseconds before timing out.",
    ),
    "peer": (*_TRACE, "RuntimeError: [rank0]: Connection closed by peer [10.0.0.2]:29500"),
    "limit": ("slurmstepd: error: *** JOB 48213 ON n1 CANCELLED AT 2026-01-01T13:00:00 DUE TO TIME LIMIT ***",),
    "cancel": ("slurmstepd: error: *** JOB 48213 ON n1 CANCELLED AT 2026-01-01T13:00:00 ***",),
    "killed": ("/var/spool/slurmd/job48213/slurm_script: line 12: 4711 Killed                  python train.py",),
}
_SHAPES = {"oom": "oom", "crash": "crash", "watchdog": "hang", "peer": "crash|hang", "limit": "stopped", "cancel": "stopped", "killed": "crash|oom"}  # fmt: skip
#: What explains a wait, a stop or a lost peer, in whatever order it is printed.
_OWN = ("oom", "crash")


def steps(
    count: int = _STEPS, first: int = 1, *, loss: Sequence[float] | None = None, pace: float = 0.16, slow_from: int = 10**6, clock: bool = False, rank: int = 0
) -> list[str]:  # fmt: skip
    """Lines of training as KempnerForge prints them."""
    rng = random.Random(first * 7 + rank)
    found: list[str] = []
    for at in range(count):
        step = first + at
        value = loss[at] if loss else 3.0 + 7.8 * 0.5 ** (step / 40) + rng.gauss(0, 0.02)
        took = pace * (1 + rng.gauss(0, 0.01)) * (1.8 if step >= slow_from else 1)
        when = f"2026-01-01 12:{step // 60:02d}:{step % 60:02d} " if clock else ""
        found.append(
            f"{when}[rank {rank}] INFO     [step {step}] loss={value:.4f} | lr=3.00e-04 | grad_norm={1.1 + rng.gauss(0, 0.05):.3f}"
            f" | tok/s={8192 / took:,.0f} | mfu=21.4% | mem=12.6/80GB | step_time={took:.3f}s"
        )
    return found


def runs() -> Iterator[Made]:
    """Every pair of things in one log, each alone, and some over two ranks."""
    for word, said in _SAID.items():
        yield _made(word, lines(steps(), said), _SHAPES[word])
        yield _made(f"{word}-then-on", lines(steps(), said, steps(30, 61)), "none", "healthy|suspect|cannot_say")
        yield _made(
            f"{word}-then-success", lines(steps(), said, "Training complete"), f"none|{_SHAPES[word]}", "healthy|failed"
        )
        yield _made(f"success-then-{word}", lines(steps(), "Training complete", said), "none", "healthy")
        yield _made(
            f"{word}-then-anew", lines(steps(), said, steps(40)), f"none|{_SHAPES[word]}", "healthy|cannot_say|failed"
        )
    for first, second in permutations(("oom", "crash", "watchdog", "limit", "killed"), 2):
        cause = first if first in _OWN or second not in _OWN else f"{first}|{second}"
        shape = "|".join(_SHAPES[word] for word in cause.split("|"))
        yield _made(f"{first}-then-{second}", lines(steps(), _SAID[first], _SAID[second]), shape)
    yield from _soft()
    yield from _ranks()


def _made(name: str, log: str, shape: str, outcome: str = "failed") -> Made:
    return Made(f"edge-verdict-{name}", {"train.log": log}, Label(outcome=outcome, shape=shape))


def _soft() -> Iterator[Made]:
    """Runs that learn wrongly, turn NaN or become slow before something ends them, or after it."""
    rising = [3.0 - 0.02 * at if at < 50 else 2.0 + 0.25 * (at - 50) for at in range(100)]
    still = [2.302 + 0.0004 * (at % 3) for at in range(100)]
    gone = [3.0 - 0.02 * at if at < 70 else float("nan") for at in range(100)]
    bodies = {
        "slow": steps(160, slow_from=90), "diverged": steps(100, loss=rising), "still": steps(100, loss=still),
        "nan": steps(100, loss=gone), "diverged-then-nan": steps(100, loss=[*rising[:80], *gone[80:]]),
        "slow-then-nan": [*steps(160, slow_from=90), *steps(30, 161, loss=[float("nan")] * 30, slow_from=90)],
    }  # fmt: skip
    shapes = {"slow": "slowdown", "diverged": "learning", "still": "learning|none", "nan": "nan", "diverged-then-nan": "learning|nan", "slow-then-nan": "nan"}  # fmt: skip
    for word, body in bodies.items():
        yield _made(
            word, lines(body), shapes[word], "failed|suspect|cannot_say" if word == "still" else "failed|suspect"
        )
        yield _made(f"{word}-then-success", lines(body, "Training complete"), shapes[word], "failed|suspect|healthy")
        for end in ("oom", "watchdog", "limit", "cancel") if word in {"slow", "diverged", "nan"} else ():
            soft = word in {"slow", "still"}
            shape = _SHAPES[end] if soft and end != "limit" else f"{shapes[word]}|{_SHAPES[end]}"
            yield _made(f"{word}-then-{end}", lines(body, _SAID[end]), shape)


def _ranks() -> Iterator[Made]:
    """What one rank suffers from what another one did, with clocks and without."""
    for clock in (True, False):
        for first, second in permutations(("oom", "crash", "watchdog"), 2):
            files: dict[str, str] = {}
            for rank, word, minute in ((0, first, 10), (1, second, 20)):
                stamp = f"2026-01-01 12:{minute}:00 " if clock else ""
                said = [(stamp + one if at == 0 else one).replace("[rank0]", f"[rank{rank}]").replace("[Rank 0]", f"[Rank {rank}]") for at, one in enumerate(_SAID[word])]  # fmt: skip
                files[f"logs/rank_{rank}.log"] = lines(steps(30, clock=clock, rank=rank), said)
            cause = first if first in _OWN or second not in _OWN else second
            # without a clock nobody can tell which of two ranks failed first
            either = not clock and {first, second} == set(_OWN)
            label = Label(outcome="failed", shape=f"{_SHAPES[first]}|{_SHAPES[second]}" if either else _SHAPES[cause])
            yield Made(f"edge-verdict-ranks-{first}-{second}{'' if clock else '-no-clock'}", files, label)
    for clock in (True, False):
        for word, other in (("crash", "crash"), ("limit", "cancel")):
            files = {}
            for rank, said, minute in ((0, word, 20), (1, other, 10)):
                stamp = f"2026-01-01 12:{minute}:00 " if clock else ""
                texts = [(stamp + one if clock else one).replace("labels", f"labels{rank}") for one in _SAID[said]]
                files[f"logs/rank_{rank}.log"] = lines(steps(30, clock=clock, rank=rank), texts)
            name = f"edge-verdict-both-ranks-{word}-{other}{'' if clock else '-no-clock'}"
            yield Made(name, files, Label(outcome="failed", shape=f"{_SHAPES[word]}|hang"))
    for first, early in ((1, 0), (1, 4), (1, 5), (1, 6), (1, 7), (1001, 7), (801, 30), (801, 48)):
        yield _who(first, early)
    yield _who(1, -40)


def _who(first: int, early: int) -> Made:
    """Steps become slow, and one rank computes longer from step 80 of the log on: at once, or some steps later."""
    files: dict[str, str] = {}
    for rank in range(3):
        rng = random.Random(rank)
        rows: list[str] = []
        for at in range(160):
            own = 0.2 * (1 + rng.gauss(0, 0.01)) * (1.8 if rank == 1 and at >= 80 - min(0, early) else 1)
            took = 0.5 * (1.6 if at >= 80 - max(0, early) else 1) * (1 + rng.gauss(0, 0.005))
            rows.append(
                f'{{"step": {first + at}, "rank": {rank}, "loss": {3 - at / 100:.3f}, "forward_time": {own:.4f}, "step_time": {took:.4f}}}'
            )
        files[f"rank_{rank}/metrics.jsonl"] = lines(rows)
    label = Label(outcome="failed|suspect", shape="slowdown", culprits=(1,))
    return Made(f"edge-verdict-slow-and-who-{early}-later-from-{first}", files, label)
