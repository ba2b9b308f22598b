"""Runs that became slow, and pairs of runs to compare: jumps, ramps, stalls, pauses, stragglers, throttled clocks."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from make._logs import TIMED, clock, clocks, done, falling, run_log, start, steady
from make.base import Label, Made, Noise, Pair, Series, Table, line, lines

_SLOW = ("slow", "profil", "trace", "loader", "clock", "storage", "compare")


def runs() -> Iterator[Made]:
    """Slow from a step on, now and then, or on one rank; slow for reasons that are none; pairs."""
    yield from _lasting()
    yield from _now_and_then()
    yield from _one_rank()
    yield from _devices()
    yield from _not_slow()
    yield from _paired()


def pairs() -> Iterator[Pair]:
    """What `diff` says of two runs of one job."""
    yield Pair("half-speed", ("pair-base",), "pair-half-speed", "regression")
    yield Pair("five-percent-slower", ("pair-base", "pair-base-again"), "pair-five-percent-slower", "regression")
    yield Pair("same-speed", ("pair-base",), "pair-base-again", "no_change")
    yield Pair("faster", ("pair-half-speed",), "pair-base", "improvement")
    yield Pair("slower-than-both", ("pair-base", "pair-base-again"), "pair-half-speed", "regression")
    yield Pair("slower-than-the-slower", ("pair-base", "pair-five-percent-slower"), "pair-half-speed", "regression")
    yield Pair(
        "as-fast-as-the-slower", ("pair-base", "pair-half-speed"), "pair-five-percent-slower", "no_change|inconclusive"
    )
    yield Pair("one-change-inside", ("healthy-noisy-step-times",), "slow-step-change-2x", "regression")
    yield Pair("stalls-inside", ("healthy-noisy-step-times",), "slow-stalls-begin", "regression|inconclusive")
    yield Pair("nothing-in-common", ("pair-base",), "cannot-say-no-times-no-end", "inconclusive")
    yield Pair("too-few-records", ("pair-base",), "pair-few-records", "inconclusive")


def timed(times: Series, plan: int | None = None, *, end: bool = True, saves: int = 0) -> str:
    """The log of a loop that prints its step times; with a checkpoint every `saves` steps."""
    count = len(times)
    log = run_log({"loss": falling(count, half=80), "step_time": times, "clock": clocks(times)}, TIMED)
    for at in range(count - count % saves if saves else 0, 0, -saves or -1):
        log.insert(at, f"saved checkpoint to out/step_{at}.pt")
    return lines(start(plan=plan or count), log, [done(count, 30 + sum(times) + 5)] if end else [])


def _lasting() -> Iterator[Made]:
    jump = [*steady(0.52, 130, 0.02), *steady(1.06, 150, 0.02, 2)]
    yield Made(
        "slow-step-change-2x", {"train.log": timed(jump)}, Label("suspect", "slowdown", onset=131, within=2, says=_SLOW)
    )
    mild = [*steady(0.52, 160, 0.01), *steady(0.61, 160, 0.01, 2)]
    yield Made(
        "slow-step-change-17-percent",
        {"metrics.csv": Table({"loss": falling(320), "step_time": mild}).csv(), "train.log": lines(start(), done(320))},
        Label("suspect", "slowdown", onset=161, within=5),
    )
    ramp = Noise(0.015, 4).on([*[0.5] * 60, *line(0.5, 0.004, 200)])
    yield Made("slow-ramp", {"train.log": timed(ramp)}, Label("suspect", "slowdown", onset=61, within=25))
    short = [*steady(0.5, 60, 0.01), *steady(1.6, 40, 0.01, 2)]
    limit = "slurmstepd: error: *** JOB 771 ON node9 CANCELLED AT 2026-03-01T10:03:11 DUE TO TIME LIMIT ***"
    yield Made(
        "slow-until-time-limit",
        {"slurm-771.out": timed(short, 400, end=False) + limit + "\n"},
        Label("failed", "slowdown|stopped", onset=61, within=2),
    )
    back = [*steady(0.5, 120, 0.01), *steady(0.9, 60, 0.01, 2), *steady(0.5, 120, 0.01, 3)]
    yield Made("slow-for-a-while", {"train.log": timed(back)}, Label("suspect", "slowdown", onset=121, within=3))


def _now_and_then() -> Iterator[Made]:
    rng = random.Random(3)
    stalls = [
        one * (6 if (at > 160 and rng.random() < 0.2) or rng.random() < 0.004 else 1)
        for at, one in enumerate(steady(0.5, 400, 0.01))
    ]
    yield Made("slow-stalls-begin", {"train.log": timed(stalls)}, Label("suspect", "slowdown", onset=161, within=12))
    few = [
        one * (4 if at > 200 and at % 17 in {3, 11} and rng.random() < 0.5 else 1)
        for at, one in enumerate(steady(0.5, 400, 0.01))
    ]
    yield Made("slow-a-few-stalls-begin", {"train.log": timed(few)}, Label("suspect", "slowdown", onset=201, within=30))
    periodic = [one + (2.2 if at % 10 == 9 else 0) for at, one in enumerate(steady(0.5, 240, 0.01))]
    yield Made(
        "slow-every-tenth-step", {"train.log": timed(periodic)}, Label("suspect", "slowdown", onset=10, within=10)
    )
    saves = [one + (4.1 if at % 20 == 19 else 0) for at, one in enumerate(steady(0.5, 240, 0.01))]
    yield Made(
        "slow-saves-eat-the-time",
        {"train.log": timed(saves, saves=20)},
        Label("suspect", "slowdown", onset=20, within=20),
    )


def _one_rank() -> Iterator[Made]:
    form = "{clock} | INFO | rank={rank} | step {step} | loss {loss:.4f} | forward_time {own:.4f} | step_time {step_time:.4f}"
    files = {}
    for rank in range(4):
        own = steady(0.29 if rank == 2 else 0.2, 80, 0.01, rank)
        columns = {"loss": falling(80), "own": own, "step_time": steady(0.46, 80, 0.01, 9), "rank": [rank] * 80}
        files[f"logs/rank{rank}.log"] = lines(run_log(columns, form), done(80))
    yield Made("slow-one-rank-of-four", files, Label("suspect", "slowdown", culprits=(2,)))
    waits = {}
    for rank in range(4):
        wait = steady(0.02 if rank == 1 else 0.12, 120, 0.03, rank)
        rows = Table({"loss": falling(120), "comm_time": wait, "step_time": steady(0.5, 120, 0.01, 9)})
        waits[f"metrics/rank_{rank}.jsonl"] = rows.jsonl()
    yield Made(
        "slow-one-rank-never-waits",
        {**waits, "train.log": lines(start(world=4), done(120))},
        Label("suspect", "slowdown", culprits=(1,)),
    )
    reports = [
        f"{clock(60 * at)} | WARNING | STRAGGLER DETECTION WARNING: Some GPUs have worse relative performance."
        f" Affected ranks: {{StragglerId(rank={rank}, node='mill-{rank // 4}')}}"
        for at, rank in ((2, 5), (4, 5), (6, 1), (8, 5))
    ]
    log = timed(steady(0.71, 160, 0.02)).splitlines()
    yield Made(
        "slow-rank-in-the-reports-of-a-detector",
        {"train.log": lines(log[:80], reports, log[80:])},
        Label("suspect", "slowdown", culprits=(5,), says=("slow",)),
    )


def _devices() -> Iterator[Made]:
    rows = [
        "timestamp, index, name, utilization.gpu [%], temperature.gpu, clocks.current.sm [MHz], power.draw [W], memory.used [MiB], memory.total [MiB]"
    ]
    rng = random.Random(5)
    for at in range(80):
        hot = at >= 30
        rows += [
            f"2026/03/01 10:{at // 6:02d}:{at % 6 * 10:02d}.000, {gpu}, NVIDIA H100 80GB HBM3, {97 + rng.randrange(3)} %, {87 if hot and gpu == 0 else 63},"
            f" {(1185 if hot and gpu == 0 else 1965) + rng.randrange(15)} MHz, {420 + rng.randrange(30)}.25 W, 61234 MiB, 81559 MiB"
            for gpu in (0, 1)
        ]
    jump = [*steady(3.0, 100, 0.01), *steady(4.9, 120, 0.01, 2)]
    yield Made(
        "slow-gpu-clock-throttled",
        {"train.log": timed(jump), "gpu.csv": lines(rows)},
        Label("suspect", "slowdown", onset=101, within=2),
    )
    compiled = [
        "[rank0]:W0301 10:00:40.120000 4100 torch/_dynamo/convert_frame.py:906] [0/8] torch._dynamo hit config.recompile_limit (8)"
    ]
    mfu = Table({"loss": falling(120), "mfu": steady(0.06, 120), "tokens_per_sec": steady(21000, 120, 0.01)}).jsonl()
    yield Made(
        "low-mfu-and-recompiles",
        {"metrics.jsonl": mfu, "train.log": lines(start(), compiled, done(120))},
        Label("healthy|suspect", "none|slowdown"),
    )


def _not_slow() -> Iterator[Made]:
    rng = random.Random(8)
    two = [one * rng.choice((1, 1, 1.8)) for one in steady(0.5, 200, 0.01)]
    yield Made("healthy-batches-of-two-lengths", {"train.log": timed(two)}, Label("healthy"))
    coarse = [round(one, 1) for one in steady(0.34, 150, 0.1)]
    form = "{clock} step {step} loss {loss:.4f} step_time {step_time:.1f}"
    log = run_log({"loss": falling(150), "step_time": coarse}, form)
    yield Made("healthy-coarse-step-times", {"train.log": lines(start(), log, done(150))}, Label("healthy"))
    stairs = [0.4 * (1 + at // 60) for at in range(240)]
    tokens = Table({"loss": falling(240), "seq_len": [512 * (1 + at // 60) for at in range(240)], "step_time": Noise(0.01, 2).on(stairs),
                    "tokens_per_sec": steady(41000, 240, 0.01)}).jsonl()  # fmt: skip
    yield Made(
        "healthy-longer-sequences", {"metrics.jsonl": tokens, "train.log": lines(start(), done(240))}, Label("healthy")
    )
    warm = [8.1, 2.3, *steady(0.5, 200, 0.04)]
    yield Made("healthy-noisy-step-times", {"train.log": timed(warm)}, Label("healthy"))
    yield Made(
        "cannot-say-no-times-no-end",
        {
            "train.log": lines(start(), run_log({"loss": falling(25)}, "step {step} loss {loss:.4f}")),
            "config.yaml": "max_steps: 20000\n",
        },
        Label("cannot_say"),
    )


def _paired() -> Iterator[Made]:
    def pace(times: Sequence[float], seed: int) -> dict[str, str]:
        tokens = [65536 / one for one in times]
        rows = Table({"loss": falling(len(times), seed=seed), "step_time": times, "tokens_per_sec": tokens})
        end = lines(start(plan=len(times)), f"{clock(900)} | INFO | Training complete: {len(times)} steps")
        return {
            "metrics.jsonl": rows.jsonl(),
            "train.log": end,
            "config.yaml": f"lr: 3.0e-4\nseed: {seed}\nmax_steps: {len(times)}\n",
        }

    yield Made("pair-base", pace(steady(0.5, 200, 0.02, 11), 1), Label("healthy"))
    yield Made("pair-base-again", pace(steady(0.5, 200, 0.02, 12), 2), Label("healthy"))
    yield Made("pair-half-speed", pace(steady(1.0, 200, 0.02, 13), 3), Label("healthy"))
    yield Made("pair-five-percent-slower", pace(steady(0.525, 200, 0.02, 14), 4), Label("healthy"))
    yield Made("pair-few-records", pace(steady(0.55, 6, 0.02, 15), 5), Label("healthy"))
