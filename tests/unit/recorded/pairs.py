"""Pairs of runs whose steps take more or less as long; `pairs.txt` holds what a comparison says of them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import product

import numpy as np
import polars as pl
from paces import Floats, noise, rows

from forensics.compare._comparable import differences
from forensics.compare._pair import Side, estimate
from forensics.compare._series import matched, series_of
from forensics.compare.decide import Policy
from forensics.compare.diff import diff
from forensics.compare.model import Options
from forensics.store.run import Run, run_of


def _run(name: str, metrics: pl.DataFrame, **facts: str) -> Run:
    told = pl.DataFrame(
        {"source": "config.json", "family": "config", "key": list(facts), "value": list(facts.values())}
    )
    return run_of(name, {"metrics": metrics} | ({"facts": told} if facts else {}))


def _drawn(seed: int) -> tuple[list[Run], Run, Options]:
    """Bases and a candidate that is slower by some percent, with noise, pauses, modes and onsets of their own."""
    rng = random.Random(seed)
    count, sd = rng.choice((9, 30, 80, 200, 200)), rng.choice((0.003, 0.01, 0.04))
    slower = rng.choice((1.0, 1.0, 1.004, 1.012, 1.03, 1.2, 0.96, 0.8))
    rho, name = rng.choice((0.0, 0.0, 0.5, 0.9)), rng.choice(("step_time_s", "tokens_per_sec", "throughput"))
    same_work, modes = rng.random() < 0.2, rng.choice((0.0, 0.0, 0.0, 0.05, 0.3))
    work = 0.2 * np.random.default_rng(seed).standard_normal(400) if same_work else np.zeros(400)
    apart, onset, pauses = rng.choice((1, 1, 1, 5)), rng.choice((None, None, None, 0, 1)), rng.choice((0, 0, 20))
    bases = rng.choice((1, 1, 1, 2, 3))
    made: list[Run] = []
    for side in range(bases + 1):
        logs = noise(100 * seed + side, count, sd, rho) + work[:count]
        logs += np.log(1.5) * (np.random.default_rng(100 * seed + side).random(count) < modes)
        if side == bases:
            logs += np.log(slower)
        if onset == side:
            logs += 0.4 * (np.arange(count) >= count // 2)
        seconds = 0.5 * np.exp(logs)
        if pauses:
            seconds[pauses - 1 :: pauses] += 3
        every = apart if side == bases else 1
        facts = {"micro_batch_size": str(4 + 4 * (side == bases and rng.random() < 0.15))}
        made.append(_run(f"run-{side}", _metrics(name, seconds, every), **facts))
    policy = Policy(run_noise=rng.choice((0.005, 0.0, 0.01)), max_slowdown=rng.choice((0.0, 0.0, 0.05)))
    options = Options(policy=policy, noise_given=rng.random() < 0.3, anyway=rng.random() < 0.5)
    return made[:-1], made[-1], options


def _metrics(name: str, seconds: Floats, every: int) -> pl.DataFrame:
    count = len(seconds) // every
    means = seconds[: count * every].reshape(count, every).mean(axis=1)
    values = means if name == "step_time_s" else 4096 / means
    raw = {"throughput": "samples/s"}.get(name, name)
    return rows(values, name, raw_name=raw, step=every * np.arange(1, count + 1))


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.5g}"


def _said(bases: list[Run], cand: Run, options: Options) -> Iterator[str]:
    for section in diff(bases, cand, options, names=["throughput"]).sections:
        figures = " ".join(map(_number, (section.change, *(section.interval or ()), section.min_detectable)))
        yield f"{section.answer} by {section.metric} {figures} notes {len(section.notes)}"
        yield " ".join(f"{k} {_number(v) if isinstance(v, float) else v}" for k, v in section.numbers.items())
        sides = (one for one in (section.base, section.cand) if one is not None)
        yield from (
            f"{s.n} {_number(s.median)} {s.dropped} {s.warmup} {s.pauses} {_number(s.pause_share)}" for s in sides
        )
        yield from (f"{e.role} {e.quote}" for e in section.evidence)
    yield "; ".join(map(str, differences(bases[0], cand)))


def _series() -> Iterator[tuple[str, str]]:
    """Which series of a run is compared, of several that it prints."""
    x = 0.5 * np.exp(noise(1, 60))
    some = {
        "times": rows(x), "rates": rows(4096 / x, "tokens_per_sec"), "seven": rows(x[:8]),
        "rough": rows(np.round(x, 1)),
        "samples": rows(64 / x, "samples_per_sec"), "again": rows(x, attempt=1, seq=np.arange(60, 120)),
        "rank": rows(1.1 * x, rank=1), "clock": rows(np.cumsum(x), "train_time_s"),
    }  # fmt: skip
    for (one, first), (other, second) in product(some.items(), some.items()):
        both = pl.concat([first, second.with_columns(seq=pl.col("seq") + 500)], how="diagonal")
        run, alone = _run("run", both), _run("other", second)
        told = (f"{s.clock.name} {len(s.seconds)} {s.key} {_number(s.resolution)} {s.dropped}" for s in series_of(run))
        chosen = matched([run, alone], None)
        words = chosen if isinstance(chosen, str) else " and ".join(s.clock.name for s in chosen)
        yield f"{one} and {other}", f"{', '.join(told)} with {words}"
    for metric in ("step_time_s", "tokens_per_sec", "nothing"):
        found = matched([_run("run", some["times"]), _run("other", some["rates"])], metric)
        yield f"asked for {metric}", found if isinstance(found, str) else "found"


def _estimates() -> Iterator[tuple[str, str]]:
    for seed in range(120):
        rng = np.random.default_rng(seed)
        n, m = int(rng.choice([8, 19, 20, 21, 60, 150])), int(rng.choice([8, 20, 40, 150]))
        common, modes = float(rng.choice([0.0, 0.02, 0.1])), float(rng.choice([0.0, 0.0, 0.3, 0.5]))
        work, shift = common * rng.standard_normal(400), int(rng.choice([0, 0, 5, 100]))
        a = work[:n] + noise(seed, n, 0.02) + np.log(1.4) * (rng.random(n) < modes)
        b = work[shift : shift + m] + noise(999 - seed, m, 0.02) + 0.03 + np.log(1.4) * (rng.random(m) < modes)
        found = estimate(Side(a, np.arange(n)), Side(b, shift + np.arange(m)), multimodal=bool(seed % 2))
        figures = (found.log_ratio, found.se, found.df, found.effective, found.sd_long)
        shares = " ".join(map(_number, found.slow_share or ()))
        yield f"estimate {seed}", f"{found.method} {' '.join(map(_number, figures))} of {found.count} {shares}"


def _settings() -> Iterator[tuple[str, str]]:
    x = rows(0.5 * np.exp(noise(1, 20)))
    for key, one, other in (
        ("micro_batch_size", "4", "4.0"),
        ("train.micro_batch_size", "4", "8"), ("precision", '"bf16"', "torch.bfloat16"),
        ("precision", "null", "none"),
        ("eval.batch_size", "1", "2"), ("seq_len", "128", "256"),
        ("fp16.enabled", "true", "false"),
        ("optimizer", "a", "b"), ("world_size.value", "8", "16"), ("val_batch_size", "1", "2"),
    ):  # fmt: skip
        found = differences(_run("a", x, **{key: one}), _run("b", x, **{key: other}))
        yield f"{key} {one} and {other}", "; ".join(map(str, found)) or "no difference"
    for more in (1.005, 1.02, 2.0):
        both = [pl.concat([x, rows(np.full(20, 1e4 * k), "num_tokens_step")]) for k in (1.0, more)]
        found = differences(_run("a", both[0]), _run("b", both[1]))
        yield f"work of {more} times", "; ".join(map(str, found)) or "no difference"


def answers() -> Iterable[tuple[str, str]]:
    """What is said of each of them."""
    for seed in range(130):
        yield f"pair {seed}", " | ".join(_said(*_drawn(seed))).replace("\n", " ").replace("\t", " ")
    yield from _series()
    yield from _estimates()
    yield from _settings()
