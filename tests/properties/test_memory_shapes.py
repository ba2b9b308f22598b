"""How well the shape of a memory series is told, and how often growth is claimed where there is none.

Series are made from seeds. `MEMORY_SERIES` sets how many (default 480; the figures in the docs are of 2,400 and more),
`MEMORY_SEED` moves the seeds, `MEMORY_FAMILIES=tuning` takes the families that thresholds were chosen on instead of the
ones kept aside. The confusion matrices are printed: pytest -s.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from forensics.analyses.memory.shape import form_of

SERIES = int(os.environ.get("MEMORY_SERIES", "480"))
SEED = int(os.environ.get("MEMORY_SEED", "0"))
KEPT_ASIDE = os.environ.get("MEMORY_FAMILIES", "aside") != "tuning"
TRUTHS = ("flat", "slope", "staircase", "sawtooth", "spike", "level_shift")
GROWTH = {"slope", "staircase", "level_shift"}
MIB = 1 / 1024
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """How series of one family are made: lengths, levels in GiB, growths as shares, noises in GiB and their law."""

    lengths: tuple[int, ...] = (60, 200, 1000)
    levels: tuple[float, ...] = (40.0,)
    growths: tuple[float, ...] = (0.02, 0.05, 0.2)
    noises: tuple[float, ...] = (0.0, 4 * MIB, 40 * MIB)
    law: str = "normal"
    uneven: bool = False
    missing: float = 0.0


TUNING = (
    Family(),
    Family((90, 350, 1500), (11.0, 71.0), (0.03, 0.08, 0.3), (1 * MIB, 16 * MIB), "laplace"),
    Family((72, 256, 800), (23.0,), (0.04, 0.1), (8 * MIB,), "wandering"),
    Family((100, 400), (7.5, 135.0), (0.05, 0.15), (0.0, 24 * MIB), "uniform", uneven=True),
    Family((150, 600), (30.0,), (0.04, 0.25), (6 * MIB,), "normal", missing=0.3),
    Family((80, 6000), (62.0,), (0.06,), (12 * MIB,), "normal", uneven=True),
)
ASIDE = (
    Family((64, 300, 2000), (17.0, 90.0), (0.025, 0.07, 0.4), (3 * MIB, 30 * MIB), "laplace", uneven=True),
    Family((110, 500), (34.0,), (0.05, 0.2), (20 * MIB,), "wandering"),
    Family((75, 240, 900), (5.5, 180.0), (0.04, 0.12), (0.0, 10 * MIB), "heavy"),
    Family((180, 700), (48.0,), (0.03, 0.3), (9 * MIB,), "uniform", missing=0.15),
    Family((130, 9000), (26.0,), (0.08,), (5 * MIB,), "normal", uneven=True, missing=0.05),
)
FAMILIES = ASIDE if KEPT_ASIDE else TUNING


def noise(rng: np.random.Generator, n: int, sd: float, law: str) -> Floats:
    if law == "laplace":
        return rng.laplace(0, sd / 2**0.5, n)
    if law == "uniform":
        return rng.uniform(-sd * 3**0.5, sd * 3**0.5, n)
    if law == "heavy":
        return sd * rng.standard_t(4, n) / 2**0.5
    e = rng.standard_normal(n)
    if law == "wandering":
        for i in range(1, n):
            e[i] = 0.6 * e[i - 1] + 0.8 * e[i]
    return sd * e


def parts(rng: np.random.Generator, n: int, *, uneven: bool) -> tuple[int, Any]:
    """Which part of 4 to 13 each sample is in, and its place inside of it."""
    count = int(rng.integers(4, min(13, n // 8) + 1))
    widths = rng.uniform(0.8, 1.2, count) if uneven else np.ones(count)
    edges = np.concatenate(([0], np.cumsum(widths) / widths.sum())) * n
    part = np.clip(np.searchsorted(edges, np.arange(n), side="right") - 1, 0, count - 1)
    return count, np.stack((part, (np.arange(n) - edges[part]) / (edges[part + 1] - edges[part])))


def made(rng: np.random.Generator, truth: str, family: Family) -> tuple[Any, Any]:
    n, level = int(rng.choice(family.lengths)), float(rng.choice(family.levels))
    grow = level * float(rng.choice(family.growths))
    t, y = np.arange(n), np.full(n, level)
    count, (part, inside) = parts(rng, n, uneven=family.uneven)
    if truth == "slope":
        y += grow * t / (n - 1)
    elif truth == "staircase":
        y += grow * part / (count - 1)
    elif truth == "sawtooth":
        y += grow * inside
    elif truth == "level_shift":
        y[int(rng.integers(n // 4, 3 * n // 4)) :] += grow
    y = y + noise(rng, n, float(rng.choice(family.noises)), family.law)
    kept = rng.random(n) >= family.missing
    t, y = t[kept], y[kept]
    if truth == "spike":
        y[rng.integers(len(y) // 6, 5 * len(y) // 6, int(rng.integers(1, 3)))] += grow
    return 10.0 * t, y


def judged(series: int, *, printed: float, cumulative: bool) -> Counter[tuple[str, str, bool]]:
    """Counts of (truth, answer, grows)."""
    found: Counter[tuple[str, str, bool]] = Counter()
    for i in range(series):
        rng = np.random.default_rng((SEED, i, KEPT_ASIDE))
        truth = TRUTHS[i % len(TRUTHS)]
        x, y = made(rng, truth, FAMILIES[i // len(TRUTHS) % len(FAMILIES)])
        y = np.maximum.accumulate(y) if cumulative else y
        y = np.round(y / printed) * printed if printed else y
        form = form_of(x, y, printed=printed, cumulative=cumulative)
        found[truth, form.kind, form.grows] += 1
    return found


def say(line: str) -> None:
    sys.stdout.write(line + "\n")


def shown(title: str, found: Counter[tuple[str, str, bool]]) -> None:
    answers = (*TRUTHS, "plateau", "unresolved")
    say(f"\n{title}: {found.total()} series")
    say(f"{'truth':>12}" + "".join(f"{a:>12}" for a in answers))
    for truth in TRUTHS:
        say(f"{truth:>12}" + "".join(f"{found[truth, a, True] + found[truth, a, False]:>12}" for a in answers))


def right(found: Counter[tuple[str, str, bool]]) -> float:
    return sum(count for (truth, answer, _), count in found.items() if truth == answer) / found.total()


def false_growth(found: Counter[tuple[str, str, bool]]) -> float:
    still = {key: count for key, count in found.items() if key[0] not in GROWTH}
    return sum(count for (_, _, grows), count in still.items() if grows) / sum(still.values())


def growth_seen(found: Counter[tuple[str, str, bool]]) -> float:
    rising = {key: count for key, count in found.items() if key[0] in {"slope", "staircase"}}
    return sum(count for (_, _, grows), count in rising.items() if grows) / sum(rising.values())


def test_exact_values_are_told_apart_six_ways() -> None:
    found = judged(SERIES, printed=0.0, cumulative=False)
    shown("exact, interval", found)
    say(f"right {right(found):.4f}, false growth {false_growth(found):.4f}, growth seen {growth_seen(found):.4f}")
    assert right(found) >= 0.95
    assert false_growth(found) <= 0.03
    assert growth_seen(found) >= 0.97


def test_a_running_maximum_hardly_ever_looks_like_growth() -> None:
    found = judged(SERIES, printed=0.0, cumulative=True)
    shown("cumulative", found)
    say(f"false growth {false_growth(found):.4f}, growth seen {growth_seen(found):.4f}")
    assert false_growth(found) <= 0.01
    assert growth_seen(found) >= 0.85


@pytest.mark.parametrize("printed", [0.01, 0.1])
@pytest.mark.parametrize("cumulative", [False, True])
def test_coarsely_printed_values_are_unresolved_rather_than_wrong(printed: float, cumulative: bool) -> None:
    found = judged(SERIES // 2, printed=printed, cumulative=cumulative)
    shown(f"printed to {printed} GiB, {'cumulative' if cumulative else 'interval'}", found)
    mixed = found["slope", "staircase", True] + found["staircase", "slope", True]
    say(f"slope and staircase mixed up {mixed}, false growth {false_growth(found):.4f}")
    assert false_growth(found) <= 0.03
    if not cumulative:
        assert mixed <= 0.02 * found.total()
