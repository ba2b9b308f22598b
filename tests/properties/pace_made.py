"""Step times made from seeds, with known truth: noise, pauses, warm-up, changes of speed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]


@dataclass(frozen=True)
class Made:
    """How a series is made; times in units of a usual step, `onset` as a position."""

    n: int = 1000
    sd: float = 0.05
    rho: float = 0.0
    heavy: bool = False
    pink: bool = False
    warm: int = 0
    eval_every: int = 0
    save_every: int = 0
    gc: float = 0.0
    two: tuple[float, float] | None = None
    lengths: float = 0.0
    every: int = 1
    onset: int | None = None
    factor: float = 1.0
    ramp: int = 0
    end: int | None = None
    stall_from: int | None = None
    stall_share: float = 0.0


def correlated(e: Floats, rho: float) -> Floats:
    out, last, scale = np.empty_like(e), 0.0, math.sqrt(1 - rho * rho)
    for i, value in enumerate(e):
        last = rho * last + scale * value
        out[i] = last
    return out


def noise(rng: np.random.Generator, m: Made) -> Floats:
    if m.pink:
        wave = np.fft.rfft(rng.standard_normal(m.n))
        wave[1:] /= np.sqrt(np.arange(1, len(wave)))
        e = np.fft.irfft(wave, m.n)
        return m.sd * (e - e.mean()) / e.std()
    e = rng.standard_t(3, m.n) / math.sqrt(3) if m.heavy else rng.standard_normal(m.n)
    return m.sd * (correlated(e, m.rho) if m.rho else e)


def level(m: Made) -> Floats:
    x = np.zeros(m.n)
    if m.onset is not None:
        after = np.arange(m.n) - m.onset
        x = math.log(m.factor) * (np.clip(after / m.ramp, 0, 1) if m.ramp else (after >= 0))
        if m.end is not None:
            x[m.end :] = 0.0
    return x


def times(rng: np.random.Generator, m: Made) -> tuple[Floats, Floats]:
    """Steps and seconds, shape (n,) each; means over `every` steps where that is above 1."""
    x = level(m) + noise(rng, m)
    if m.lengths:
        x = x + m.lengths * rng.standard_normal(m.n)
    if m.two is not None:
        x = x + math.log(m.two[1]) * (rng.random(m.n) < m.two[0])
    t = np.exp(x)
    if m.warm:
        t[: m.warm] += np.geomspace(30, 1, m.warm) * rng.uniform(0.5, 1.5)
    if m.eval_every:
        t[int(rng.integers(m.eval_every)) :: m.eval_every] += 20 * rng.uniform(0.9, 1.1)
    if m.save_every:
        t[m.save_every - 1 :: m.save_every] += 8 * rng.uniform(0.7, 1.4)
    t += rng.random(m.n) < m.gc
    if m.stall_from is not None:
        t[m.stall_from :] += 3.0 * (rng.random(m.n - m.stall_from) < m.stall_share)
    steps = np.arange(1, m.n + 1)
    if m.every > 1:
        count = m.n // m.every
        t = t[: count * m.every].reshape(count, m.every).mean(axis=1)
        steps = steps[: count * m.every].reshape(count, m.every)[:, -1]
    return steps, t
