"""Runs whose records tell a pace, made from seeds and named by what they truly do; `paces.txt` holds what is said."""
# ruff: noqa: C901 - lists of runs

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from forensics.analyses.pace.account import Gravity, Paced, paced, pauses_of, stands_out, tier_of
from forensics.analyses.pace.change import Change
from forensics.analyses.pace.clocks import clocks
from forensics.analyses.pace.parts import data_waits, paddings
from forensics.analyses.pace.ranks import Straggling, stragglers
from forensics.rules.slowdown.changes import confidence_of, severity_of
from forensics.store.run import Run, run_of

Floats = NDArray[np.float64]
Made = Iterator[tuple[str, Run]]
N = 240
T = np.arange(N)
TENTHS = np.arange(10, 2001, 10)
#: Usual steps of half a second that take half as long again from step 120 on.
SLOWER = 0.5 * np.exp(np.random.default_rng(26).normal(0, 0.02, 200) + np.log(1.5) * (np.arange(200) >= 120))


def noise(seed: int, count: int = N, sd: float = 0.03, rho: float = 0.0, *, heavy: bool = False) -> Floats:
    rng = np.random.default_rng(seed)
    found = rng.standard_t(3, count) / 3**0.5 if heavy else rng.standard_normal(count)
    for at in range(1, count):
        found[at] = rho * found[at - 1] + (1 - rho * rho) ** 0.5 * found[at]
    return sd * found


def share(seed: int, of: float, count: int = N) -> NDArray[np.bool_]:
    return np.random.default_rng(seed).random(count) < of


def rows(values: Any, name: str = "step_time_s", **columns: Any) -> pl.DataFrame:
    """Records of one metric, of steps 1, 2, 3… unless told otherwise."""
    count = len(values)
    own = {"source": "run.log", "seq": np.arange(count), "line": np.arange(1, count + 1), "name": name}
    own |= {"raw_name": name, "step": np.arange(1, count + 1), "value_class": "finite", "attempt": 0}
    types = {"rank": pl.Int32, "t_ns": pl.Int64, "attempt": pl.Int32}
    frame = pl.DataFrame({**own, "value": np.asarray(values, dtype=np.float64), **columns})
    return frame.with_columns(pl.col(key).cast(kind) for key, kind in types.items() if key in frame.columns)


def run(*frames: pl.DataFrame, **tables: pl.DataFrame) -> Run:
    return run_of("made", {"metrics": pl.concat(frames, how="diagonal"), **tables} if frames else tables)


def runs() -> Made:
    for name, logs in _steps():
        yield name, run(rows(0.5 * np.exp(logs)))
    for kind in (_rises, _stalls, _forms, _work, _busy, _ranks, _parts, _bars):
        yield from kind()


def _steps() -> Iterator[tuple[str, Floats]]:
    """Logarithms of the times of steps."""
    for count in (11, 12, 13, 24, 60, N):
        yield f"{count} steady steps", noise(count, count)
    yield "correlated steps", noise(1, rho=0.8)
    yield "heavy tails", noise(2, sd=0.06, heavy=True)
    yield "closely correlated steps", noise(3, sd=0.05, rho=0.95)
    yield "long and slower", noise(24, 5000, 0.05) + np.log(1.3) * (np.arange(5000) >= 3000)
    yield "a walk", 0.3 * np.cumsum(noise(25, 600, 0.01))
    for of in (0.05, 0.14, 0.3):
        yield f"{of} of the steps slow", noise(4) + np.log(1.5) * share(4, of)
    for count in (1, 3, 10, 20, 47, 49, 60):
        yield f"warm-up of {count}", noise(5) + 0.9 * (count > T)
    for height in (0.1, 0.13, 0.16, 0.3):
        yield f"warm-up by {height}", noise(6, sd=0.01) + height * (T < 8)
    for every in (3, 7, 10, 25, 60):
        yield f"a pause every {every}", noise(7) + 1.2 * (T % every == every - 1)
    yield "pauses of two periods", noise(7) + 1.2 * (T % 10 == 9) + 2 * (T % 37 == 5)
    yield "pauses without a period", noise(8) + 1.1 * share(8, 0.04)
    for every in (2, 4, 5):
        yield f"a pattern of {every}", noise(9, sd=0.02) + 0.5 * (T % every == 0)
    yield "a short pattern", (noise(9, sd=0.02) + 0.5 * (T % 4 == 0))[:26]
    yield "faster", noise(20) - 0.5 * (T >= 100)
    yield "slow, fast, slow", noise(20) + 0.5 * ((T < 60) | (T >= 160))
    yield "fast, slow, slower", noise(20) + 0.4 * (T >= 60) + 0.3 * (T >= 160)
    yield "slow, then half back", noise(20) + 0.6 * (T >= 80) - 0.3 * (T >= 160)
    for count in (8, 15, 19, 20, 22, 40):
        yield f"slower for {count}", noise(19) + np.log(1.8) * ((T >= 100) & (100 + count > T))
    yield from _jumps()
    yield from _ramps()


def _jumps() -> Iterator[tuple[str, Floats]]:
    for times in (1.04, 1.06, 1.09, 1.12, 1.28, 1.32, 2):
        for place in (60, 180):
            yield f"slower {times} times from {place}", noise(10) + np.log(times) * (place <= T)
    for count in (3, 5, 7, 8, 12, 19, 21):
        for times in (1.25, 1.6, 2.2, 4):
            yield f"the last {count} slower {times} times", (noise(11) + np.log(times) * (160 - count <= T))[:160]
    for count in (3, 5, 12, 19, 21):
        for times in (1.6, 2.5):
            yield f"all but {count} slower {times} times", (noise(12) + np.log(times) * (count <= T))[:160]
    for sd in (0.05, 0.1, 0.2):
        yield f"slower by a third in noise of {sd}", noise(13, sd=sd) + np.log(1.35) * (T >= 120)
        yield f"slower by a third in wandering noise of {sd}", noise(13, sd=sd, rho=0.7) + np.log(1.35) * (T >= 120)
    for of in (0.25, 0.5, 0.75):
        yield f"load in {of} of the late steps", noise(14, sd=0.02) + 0.6 * ((T >= 120) & share(14, of))
    for mean in (0.2, 0.4, 0.6):
        burst = np.random.default_rng(15).exponential(mean, N) * share(16, 0.45)
        yield f"slower on a busy machine, bursts of {mean}", noise(15, sd=0.02) + burst + np.log(1.5) * (T >= 130)
    yield "even stairs", noise(16, sd=0.02) + 0.25 * np.minimum(T // 60, 3)
    yield "uneven stairs", noise(16, sd=0.02) + 0.2 * (T >= 60) + 0.5 * (T >= 90) + 0.2 * (T >= 200)
    yield "four even stairs", noise(16, 300, 0.01) + 0.3 * (np.arange(300) // 60)
    for second in (1.0, 1.08, 1.15, 1.5):
        stairs = np.log(1 + 0.5 * (T >= 80) + 0.5 * second * (T >= 150))
        yield f"two stairs, the second {second} times the first", stairs + noise(17, sd=0.01)


def _ramps() -> Iterator[tuple[str, Floats]]:
    for count in (4, 8, 12, 30, 80, 200):
        for times in (1.06, 1.25, 1.6):
            climb = np.clip((T - (N - count) / 2) / count, 0, 1)
            yield f"a ramp of {count} to {times} times", noise(18, sd=0.02) + np.log(times) * climb
    yield "a ramp to the end", noise(18, sd=0.02) + 0.5 * np.clip((T - 100) / 140, 0, 1)
    yield "a ramp of 30 steps in all", noise(18, 30, 0.02) + 0.6 * np.linspace(0, 1, 30)
    yield "a long ramp", noise(18, 900) + 0.6 * np.clip((np.arange(900) - 300) / 400, 0, 1)


def _rises() -> Made:
    for unit in (0.1, 0.05, 0.01):
        for times in (1.1, 1.2, 1.4):
            values = 0.5 * np.exp(noise(23, sd=0.02) + np.log(times) * (T >= 120))
            yield f"slower {times} times, printed to {unit}", run(rows(np.round(values / unit) * unit))
    partly = SLOWER.copy()
    partly[120] = (partly[119] + partly[121]) / 2
    yield "every tenth step", run(rows(SLOWER, step=TENTHS))
    yield "every tenth step, one partly slow", run(rows(partly, step=TENTHS))
    yield "two attempts", run(rows(SLOWER), rows(1.4 * SLOWER, attempt=1, seq=np.arange(200, 400)))


def _stalls() -> Made:
    place = np.arange(400)
    for of in (0.03, 0.06, 0.1, 0.2):
        for before in (0.0, of / 3):
            many = np.random.default_rng(21).random(400) < np.where(place >= 200, of, before)
            times = 0.5 * np.exp(noise(21, 400, 0.02)) + 1.5 * many
            yield f"stalls in {of} of the late steps and {before:.3f} of the early ones", run(rows(times))
    for every in (3, 5, 10, 20):
        for first in (30, 120):
            pauses = 0.08 * every * ((first <= T) & (T % every == every - 1))
            yield f"pauses every {every} from {first}", run(rows(0.5 * np.exp(noise(22, sd=0.02)) + pauses))


def _forms() -> Made:
    """The same steps told by other metrics, clocks and averages."""
    x, k = SLOWER, np.arange(1, 201)
    yield "tokens a second", run(rows(4096 / x, "tokens_per_sec"))
    yield "samples a second", run(rows(64 / x, "throughput", raw_name="samples/s"))
    yield "a share of the peak", run(rows(40 / x, "mfu"))
    yield "milliseconds", run(rows(1e3 * x, "step_time_ms"))
    yield "two names", run(rows(x), rows(64 / x, "samples_per_sec"))
    yield "an average since the start", run(rows(np.cumsum(x) / k, "step_time_avg_s"))
    yield "an average under another name", run(rows(np.cumsum(x) / k))
    yield "a rate since the start", run(rows(np.round(4096 * k / np.cumsum(x)), "tokens_per_sec_avg"))
    yield "a rate that begins with 0", run(rows(np.append([0.0], 4096 / x), "tokens_per_sec"))
    for count in (59, 75, 90):
        yield f"an average of {count} under another name", run(rows((np.cumsum(x) / k)[:count]))
    running = rows(np.cumsum(10 * x), "train_time_s", step=TENTHS)
    yield "a running clock", run(running)
    yield "a running clock beside milliseconds named seconds", run(running, rows(1e3 * x, step=TENTHS))
    for tick in (1, 10**3, 10**6, 10**8, 10**9):
        times = _stamps(10 * x, tick)
        yield f"time stamps of {tick} ns", run(rows(np.linspace(3, 2, 200), "loss", step=TENTHS, t_ns=times))
    yield "time stamps nearer than ticks", run(rows(np.linspace(3, 2, 200), "loss", t_ns=_stamps(0.4 * x, 10**8)))
    for factor in (1, 1e3, 1.9e3, 2.1e3, 1e6, 1e-3):
        yield f"{factor:g} times what time stamps tell", run(rows(factor * x, t_ns=_stamps(x, 1)))


def _stamps(seconds: Floats, tick: int) -> NDArray[np.int64]:
    return (np.cumsum(seconds) * 1e9).astype(np.int64) // tick * tick + 1_700_000_000_000_000_000


def _work() -> Made:
    late, vary = np.arange(200) >= 120, np.exp(noise(27, 200, 0.3))
    for more in (1.0, 1.3, 1.5, 2.0):
        yield (
            f"slower steps of {more} times the tokens",
            run(rows(SLOWER), rows(1e4 * more**late * np.ones(200), "num_tokens_step")),
        )
        rate = 4e3 * more**late / SLOWER * SLOWER.min()
        yield f"slower steps, {more} times the rate beside", run(rows(SLOWER), rows(rate, "tokens_per_sec"))
    yield "tokens that vary", run(rows(SLOWER * vary), rows(1e4 * vary, "num_tokens_step"))
    yield "tokens in all", run(rows(SLOWER * vary), rows(np.cumsum(1e4 * vary), "num_tokens"))
    yield "lengths that grow", run(rows(SLOWER), rows(128 * (1 + late), "seq_len"))
    yield "tokens of few steps", run(rows(SLOWER), rows(1e4 * (1 + late[90:150]), "num_tokens_step"))


def _busy() -> Made:
    """Evaluations and saves, and what they cost."""
    step = np.arange(1, 201)
    for every in (10, 25):
        held = step % every == 0
        at = {"seq": np.flatnonzero(held), "step": step[held]}
        evaluated = rows(np.ones(held.sum()), "eval_loss", **at)
        saved = pl.DataFrame({"source": "run.log", "kind": "saved", "path": "c", **at})
        for first in (0, 40):
            for height in (0.5, 2):
                x = 0.5 * np.exp(noise(28, 200, 0.02)) + height * (held & (step > first))
                told = f"every {every}, of {height} s from {first} on"
                yield f"evaluations {told}", run(rows(x), evaluated)
                yield f"saves {told}", run(rows(x), checkpoints=saved)
                yield f"saves {told}, and all steps so slow", run(rows(x + height * (step > 60)), checkpoints=saved)


def _ranks() -> Made:
    for count, times, first in ((2, 1.3, 0), (2, 1.1, 0), (4, 1.12, 0), (4, 1.3, 100), (8, 1.06, 0), (8, 1.5, 150)):
        for name, usual, power in (("compute_time", 0.5, 1), ("allreduce_time", 0.1, -3)):
            late = np.arange(200) >= first
            own = [
                usual * np.exp(noise(30 + r, 200)) * np.where(late & (r == 1), times**power, 1) for r in range(count)
            ]
            told = f"{name} of {count} ranks, one {times} times slower from {first} on"
            yield told, run(*(rows(x, name, rank=r) for r, x in enumerate(own)))
            if count < 8:
                whole = [rows(np.full(200, 0.8), rank=r) for r in range(count)]
                yield f"{told}, and the steps", run(*(rows(x, name, rank=r) for r, x in enumerate(own)), *whole)
    for steps in (11, 12):
        both = (rows([0.5 + 0.3 * r] * steps, "compute_time", rank=r) for r in range(2))
        yield f"{steps} steps of two ranks", run(*both)
    alone = (rows(np.full(60, 0.3 if r == 2 else 0.001), "data_time", rank=r) for r in range(4))
    yield "a rank that alone takes time", run(*alone)


def _parts() -> Made:
    for part in (0.1, 0.4, 0.9):
        yield f"data take {part} of a step", run(rows(SLOWER), rows(part * SLOWER, "data_time"))
        full = rows(np.full(50, 1e3), "tokens")
        yield f"{part} of the tokens are padding", run(full, rows(np.full(50, 1e3 * (1 - part)), "effective_tokens"))
        yield f"a ratio of padding of {part}", run(rows(np.full(50, part), "pad_ratio"))
        yield f"padding of {100 * part:.0f} percent", run(rows(np.full(50, 100 * part), "pad_pct"))
    counted = rows(1e3 * np.arange(1, 51), "tokens")
    yield "tokens since the start", run(counted, rows(np.full(50, 600.0), "effective_tokens"))
    yield "data in milliseconds", run(rows(SLOWER), rows(300 * SLOWER, "data_time_ms"))


def _bars() -> Made:
    x = np.exp(noise(40, 1300) + np.log(1.6) * (np.arange(1300) >= 120))
    for kind in ("since its begin", "forgetting", "of the step"):
        for seconds in (0.1, 0.5, 3.0):
            yield f"a bar, mean {kind}, of {seconds} s", bar(seconds * x, kind)
        yield f"a bar, mean {kind}, to hundredths", bar(0.5 * x, kind, digits=2)
        yield f"a bar, mean {kind}, of three epochs", bar(0.5 * x, kind, plan=100, epochs=3)
        yield f"a bar, mean {kind}, drawn every fifth step", bar(0.5 * x, kind, every=5)
    yield "a bar of Keras", bar(0.5 * x, per="ms/step")
    for first in (15, 50):
        yield f"a bar that goes on from {first}", bar(0.5 * x, first=first)
        yield f"a bar that goes on from {first} and counts all", bar(0.5 * x, first=first, counts_all=True)
    yield "a bar of an evaluation", bar(0.5 * x, label="Evaluating")
    for plan in (11, 12):
        yield f"a bar of {plan}", bar(0.5 * x, plan=plan)
    yield "a slow bar", bar(45 * x, plan=60)
    yield "a bar of a rate", bar(0.5 * x, per="it/s")
    yield "a bar of examples", bar(0.5 * x, per="examples/s")
    yield "a crowded bar", bar(0.5 * x, "forgetting", plan=1300, every=4)


def bar(
    seconds: Floats, kind: str = "since its begin", *, plan: int = 200, first: int = 0, every: int = 1,
    epochs: int = 1, digits: int = 9, per: str = "s/it", label: str = "", counts_all: bool = False,
) -> Run:  # fmt: skip
    """A run whose only records are the draws of a bar."""
    drawn: list[tuple[int, int, float, float]] = []
    for epoch in range(epochs):
        own = seconds[epoch * plan + first : (epoch + 1) * plan]
        spent = np.cumsum(own)
        steps = list(accumulate(own, lambda old, _: 0.3 + 0.7 * old, initial=0.0))[1:]
        newest = list(accumulate(own, lambda old, new: 0.3 * new + 0.7 * old, initial=0.0))[1:]
        for at in range(len(own)):
            done = first + at + 1
            mean = {
                "since its begin": spent[at] / (done if counts_all else at + 1),
                "forgetting": newest[at] / steps[at],
                "of the step": own[at],
            }[kind]
            if done % every == 0:
                drawn.append((len(drawn) * (1 + (every > 1)), done, float(spent[at] // 1), round(float(mean), digits)))
    frame = pl.DataFrame(drawn, schema=["seq", "done", "elapsed_s", "mean_s"], orient="row")
    named = {"source": "run.log", "label": label, "unit": "step", "per": per}
    told = frame.with_columns(*(pl.lit(v).alias(k) for k, v in named.items()), plan=plan, line=pl.col("seq") + 1)
    return run(progress=told.with_columns(attempt=pl.lit(0, dtype=pl.Int32)))


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


def _series(one: Paced) -> str:
    s = one.steady
    kind = "".join((" with modes" * s.multimodal, " shared" * s.shared, f" pattern {s.period}" * (s.period > 0)))
    figures = (s.resolution, s.spikes.sd, s.values.mean(), s.values.std(), s.excess.sum(), one.interval)
    combs = " ".join(f"{c.period} from {c.phase} {c.teeth}" for c in s.pauses)
    return (
        f"{one.clock.name} {len(s)} warm-up {s.warmup} slow {s.slow.sum()} far {s.spikes.far.sum()}{kind} "
        f"{' '.join(map(_number, figures))} {combs}"
    )


def _change(one: Paced, change: Change) -> str:
    sure = "confirmed" if change.confirmed else "possible"
    cuts = " ".join(map(str, change.cuts))
    judged = f"{tier_of(one, change, Gravity())} {severity_of(one, change, Gravity())} {confidence_of(one, change)}"
    figures = (change.before, change.ratio, change.z, stands_out(one.steady, change), one.lost(change))
    return (
        f"{change.kind} {change.form} {change.first} to {change.end} {sure} {judged} {' '.join(map(_number, figures))} "
        f"cuts {cuts} period {change.period}"
    )


def _said(of: Run) -> Iterator[str]:
    for one in paced(of):
        yield _series(one)
        if one.change is not None:
            yield _change(one, one.change)
    for clock, cost in pauses_of(of):
        if cost.share or cost.saving or cost.evaluating:
            figures = " ".join(map(_number, (cost.share, cost.saving, cost.evaluating, cost.steps)))
            yield f"pauses of {clock.name} {figures} at {len(cost.records)} saves {len(cost.saves)}"
    for clock in clocks(of):
        busy, calm = clock.rows["busy"].sum(), len(clock.calm())
        figures = f"{_number(clock.quantum)} {_number(clock.seconds.mean())} busy {busy} calm {calm}"
        yield f"clock {clock.form} {clock.unit} {clock.order} of {len(clock)} {figures} {' '.join(clock.notes)}"
    for one in stragglers(of, Straggling(excess=0.1, z=4.0, blocks=0.75)):
        figures = " ".join(map(_number, (one.excess, one.z, one.blocks, one.own, one.others)))
        yield f"rank {one.rank} of {one.ranks} {figures} like the others until {one.last_like} {one.rows.height}"
    for name, found in (("data", data_waits(of)), ("padding", paddings(of))):
        yield from (f"{name} {_number(p.share)} {_number(p.amount)} {_number(p.whole)} {p.records}" for p in found)


def answers() -> Iterable[tuple[str, str]]:
    """What is said of each run."""
    return ((name, " | ".join(_said(of)) or "nothing") for name, of in runs())
