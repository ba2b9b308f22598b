"""How often the rules on restarts find what is there, and how often what is not, on seeded noise.

`FORENSICS_RATES=1000` measures over so many restarts of each kind; the default keeps the test short.
`FORENSICS_SEED` moves the seeds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from forensics.model import Finding, Severity
from forensics.registry import load
from forensics.store.run import Run, run_of

Floats = npt.NDArray[np.float64]
RULES = [r for r in load("rules").rules if r.id.startswith("RSM")]
COUNT = int(os.environ.get("FORENSICS_RATES", "40"))
SEED = int(os.environ.get("FORENSICS_SEED", "0"))


def wander(chance: np.random.Generator, count: int, rho: float, *, heavy: bool = False) -> Floats:
    """Unit noise with a lag-one correlation of `rho`; `heavy` draws from a t distribution of three degrees."""
    raw = chance.standard_t(3, count) / np.sqrt(3) if heavy else chance.standard_normal(count)
    found, last = np.empty(count), float(chance.standard_normal())
    for i, value in enumerate(raw):
        last = rho * last + np.sqrt(1 - rho * rho) * value
        found[i] = last
    return found


def loss_curve(chance: np.random.Generator, count: int, noise: float, rho: float, *, heavy: bool = False) -> Floats:
    """A training loss that falls as a power of the step and carries autocorrelated noise."""
    steps = np.arange(count) + 1.0
    floor, fall = float(chance.uniform(1.5, 3)), float(chance.uniform(2, 6))
    base = floor + fall * (1 + steps / chance.uniform(5, 60)) ** -chance.uniform(0.3, 0.8)
    return base * np.exp(noise * wander(chance, count, rho, heavy=heavy))


def restarted_run(
    old: Mapping[str, Floats],
    new: Mapping[str, Floats],
    *,
    start: int,
    checkpoint: int | None = None,
    loaded: int | None = None,
) -> Run:
    """Two lives in one log: `old` from step 0 on, `new` from step `start` on; what is saved and said to be loaded."""
    lines = len(next(iter(old.values())))
    frames = [
        pl.DataFrame(
            {
                "source": "train.log",
                "attempt": attempt,
                "seq": np.arange(len(values)) + attempt * (lines + 10),
                "line": np.arange(len(values)) + attempt * (lines + 10),
                "step": np.arange(len(values)) + (start if attempt else 0),
                "name": name,
                "raw_name": name,
                "value": values,
            }
        )
        for attempt, life in enumerate((old, new))
        for name, values in life.items()
    ]
    marks = [("saved", checkpoint, 0), ("resumed", loaded, lines + 5)]
    points = pl.DataFrame(
        [
            {"source": "train.log", "seq": i, "line": line, "step": step, "kind": kind, "attempt": 0}
            for i, (kind, step, line) in enumerate(marks)
            if step is not None
        ],
        schema={
            "source": pl.String,
            "seq": pl.Int64,
            "line": pl.Int64,
            "step": pl.Int64,
            "kind": pl.String,
            "attempt": pl.Int32,
        },
    )
    return run_of("made", {"metrics": pl.concat(frames).sort("seq", maintain_order=True), "checkpoints": points})


def found(run: Run, *ids: str) -> list[Finding]:
    rules = [r for r in RULES if not ids or r.id in ids]
    return [f for r in rules for f in r(run)]


def made(seed: int, kind: str) -> Run:
    """A run of two lives: a healthy restart, or one that lost what `kind` names."""
    chance = np.random.default_rng(seed)
    count = int(chance.choice([150, 400, 1200]))
    noise, rho, heavy = (
        float(chance.uniform(0.01, 0.03)),
        float(chance.choice([0, 0.3, 0.6])),
        bool(chance.random() < 0.3),
    )
    whole = loss_curve(chance, count, noise, rho, heavy=heavy)
    stop = round(count * chance.uniform(0.4, 0.7))
    start = stop - round(stop * chance.choice([0.0, 0.05, 0.2]))
    steps = np.arange(count)
    warm = max(10, count // 20)
    rate = 1e-3 * np.minimum(1, (steps + 1) / warm) * (0.55 + 0.45 * np.cos(np.pi * steps / count))
    grads = chance.uniform(0.3, 2) * np.exp(0.3 * chance.standard_normal(count))
    samples = 64.0 * (steps + 1)
    again = np.exp(noise * wander(chance, count, rho, heavy=heavy) * chance.choice([0.0, 0.1, 1.0]))
    old = {"loss": whole[:stop], "lr": rate[:stop], "grad_norm": grads[:stop], "num_samples": samples[:stop]}
    new = {
        "loss": (whole * again)[start:],
        "lr": rate[start:],
        "grad_norm": grads[start:],
        "num_samples": samples[start:],
    }
    left = len(new["loss"])
    if kind == "optimizer":
        new["loss"] = new["loss"] * (1 + chance.uniform(0.15, 0.4) * 0.95 ** np.arange(left))
    if kind == "scheduler":
        new["lr"] = rate[:left]
    if kind == "data":
        new["num_samples"] = samples[:left]
    if kind == "scratch":
        new = {name: values[:left] for name, values in (old | {"loss": whole * again, "lr": rate}).items()}
        start = 0
    if kind == "step":
        start = 0
    checkpoint = start - 1 if start else stop // 2
    return restarted_run(old, new, start=start, checkpoint=checkpoint)


def test_a_restart_that_goes_on_cleanly_raises_no_warning(capsys: pytest.CaptureFixture[str]) -> None:
    alarms = [
        (seed, f)
        for seed in range(SEED, SEED + COUNT)
        for f in found(made(seed, "clean"))
        if f.severity.rank >= Severity.WARNING.rank
    ]
    with capsys.disabled():
        print(f"\nclean restarts: {len({s for s, _ in alarms})} of {COUNT} with a warning")  # noqa: T201 - the rates are what is measured
        for seed, finding in alarms:
            print(f"  seed {seed}: {finding.rule} {finding.title}")  # noqa: T201 - the rates are what is measured
    assert len({s for s, _ in alarms}) < max(1, 0.01 * COUNT)


@pytest.mark.parametrize(
    ("kind", "rule", "least"),
    [
        ("optimizer", "RSM001", 0.85),
        ("scratch", "RSM002", 0.95),
        ("scheduler", "RSM003", 0.95),
        ("step", "RSM004", 0.95),
        ("data", "RSM005", 0.95),
    ],
)
def test_a_restart_that_lost_something_is_found(
    kind: str, rule: str, least: float, capsys: pytest.CaptureFixture[str]
) -> None:
    count = max(20, COUNT // 2)
    hits = sum(
        any(f.severity.rank >= Severity.WARNING.rank for f in found(made(SEED + 9_000 + seed, kind), rule))
        for seed in range(count)
    )
    with capsys.disabled():
        print(f"\n{rule} {kind} lost: found in {hits} of {count}")  # noqa: T201 - the rates are what is measured
    assert hits >= least * count
