"""Noise whose neighbours are alike, against sums that are written out term by term."""

from __future__ import annotations

from itertools import pairwise
from math import log, sqrt
from statistics import NormalDist, fmean, median, stdev

import numpy as np
import pytest

from forensics.stats.correlation import LongRun, correlation, long_run, mean_of, noise_about
from forensics.stats.spread import Floats


def wandering(count: int, rho: float, seed: int = 1) -> Floats:
    """Noise of which each value keeps a share of the one before."""
    found = np.random.default_rng(seed).normal(0.0, 1.0, count)
    for at in range(1, count):
        found[at] += rho * found[at - 1]
    return found


def remembering(count: int, decay: float, white: float, seed: int = 1) -> Floats:
    """A slow wave under white noise."""
    rng = np.random.default_rng(seed)
    return wandering(count, decay, seed + 50) * sqrt(1 - decay * decay) + white * rng.normal(0.0, 1.0, count)


SERIES = {
    **{f"{n} of {rho}": wandering(n, rho) for n in (2, 3, 7, 8, 20, 39, 40, 41, 90, 400) for rho in (-0.4, 0.3, 0.9)},
    **{f"slow {d} under {w}": remembering(600, d, w, s) for d in (0.8, 0.97) for w in (0.5, 2.0, 4.0) for s in (1, 2)},
    "a walk": np.cumsum(wandering(700, 0.0)),
    "a short walk": np.cumsum(wandering(30, 0.0)),
    "a slope": np.arange(50.0),
    "two levels": np.repeat([0.0, 5.0], 100) + wandering(200, 0.0),
    "turns": np.tile([1.0, -1.0], 30) + 0.1 * wandering(60, 0.0),
}


def alike(values: list[float], bias: float) -> float:
    """The correlation of neighbours, by hand."""
    middle, n = fmean(values), len(values)
    power = sum((v - middle) ** 2 for v in values)
    raw = sum((a - middle) * (b - middle) for a, b in pairwise(values)) / power
    return min(0.98, max(0.0, raw + (1 + bias * max(raw, 0.0)) / n))


@pytest.mark.parametrize("name", [name for name in SERIES if not name.startswith("2 of")])
def test_a_correlation_is_the_sum_of_products_of_neighbours(name: str) -> None:
    values = SERIES[name] + 7.0
    assert correlation(values) == pytest.approx(alike(values.tolist(), 4.0))
    assert correlation(values, bias=3.0) == pytest.approx(alike(values.tolist(), 3.0))


def test_two_values_and_equal_ones_have_no_correlation_and_three_have() -> None:
    assert correlation(np.array([1.0, 2.0])) == 0.0
    assert correlation(np.full(9, 3.0)) == 0.0
    assert correlation(np.array([1.0, 1.5, 2.0])) == pytest.approx(1 / 3)
    assert correlation(np.arange(5000.0)) == 0.98


@pytest.mark.parametrize("name", ["400 of 0.3", "400 of -0.4", "90 of 0.9", "a walk"])
def test_noise_is_what_is_left_about_the_middle_with_strays_pulled_in(name: str) -> None:
    left = SERIES[name].copy()
    left[[5, 11]] = 300.0, -300.0
    found = noise_about(left + 4.0, np.full(len(left), 4.0))
    sd = 1.4826 * median(np.abs(left).tolist())
    rho = alike([min(4 * sd, max(-4 * sd, v)) for v in left.tolist()], 4.0)
    assert found.sd == pytest.approx(sd)
    assert found.sd_long == pytest.approx(sd * sqrt((1 + rho) / (1 - rho)))
    assert found.of_level(9) == pytest.approx(1.2533 * found.sd_long / 3)
    assert found.of_level(1) == found.of_level(0.25) == pytest.approx(1.2533 * found.sd_long)


def test_noise_is_never_less_than_a_ten_thousandth() -> None:
    assert noise_about(np.zeros(20), np.zeros(20)).sd == 1e-4
    assert noise_about(np.tile([0.0, 2e-4], 10), np.zeros(20)).sd == pytest.approx(1.4826e-4)


NORMAL = NormalDist()
#: The mean of the lowest 80 % of |z|: the density of |z| is twice that of z, and the integral of z phi(z) is -phi(z).
LOWEST = 2 * (NORMAL.pdf(0) - NORMAL.pdf(NORMAL.inv_cdf(0.9))) / 0.8


def blocks(values: list[float]) -> list[tuple[int, float]]:
    """Block lengths, and the deviation of one value by differences of neighbouring block means, trimmed."""
    jumps = sorted(abs(b - a) for a, b in pairwise(values))
    seen = [(1, 1.4826 * median(jumps) / sqrt(2) if len(values) > 2 else 0.0)]
    for length in (2, 4, 8, 16, 32, 64, 128, 256):
        if len(values) // length < 12:
            break
        means = [fmean(values[at : at + length]) for at in range(0, len(values) // length * length, length)]
        steps = sorted(abs(b - a) for a, b in pairwise(means))
        lowest = steps[: int(0.8 * len(steps))]
        seen.append((length, sqrt(length) * fmean(lowest) / LOWEST / sqrt(2)))
    return seen


LONG = {
    **{f"{n} of {rho}": wandering(n, rho, 3) for n in (23, 24, 47, 48, 191, 192, 400) for rho in (0.0, 0.9)},
    **{f"seed {s}": remembering(800, 0.99, 1.5, s) for s in range(8)},
    "a walk": np.cumsum(wandering(3100, 0.0)),
    "longest": wandering(9000, 0.5),
    "two": np.array([1.0, 2.0]),
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_run_is_the_largest_of_block_means_and_remembers_how_it_grew(name: str) -> None:
    values = LONG[name]
    seen, found = blocks(values.tolist()), long_run(values)
    assert (found.sd, found.lag) == (pytest.approx(max(sd for _, sd in seen)), seen[-1][0])
    if len(seen) < 5:
        assert found.memory == 0.0
    else:
        grown = log(seen[-1][1] / seen[-3][1]) / log(4)
        assert found.memory == (pytest.approx(min(grown, 0.5)) if grown > 0.2 else 0.0)


def test_what_a_long_run_remembers_is_none_a_part_and_the_whole_in_these_series() -> None:
    memories = {name: long_run(values).memory for name, values in LONG.items()}
    assert 0.0 in memories.values()
    assert any(0.2 < memory < 0.4 for memory in memories.values())
    assert memories["a walk"] == 0.5


def test_longer_means_are_trusted_less_by_the_memory_and_up_to_a_cap() -> None:
    one = LongRun(2.0, 16, 0.5)
    assert (one.over(64, 9.0), one.over(64, 1.5), one.over(16, 9.0), one.over(4, 9.0)) == (4.0, 3.0, 2.0, 2.0)


def batches(left: list[float], length: int) -> float:
    """Standard error of a mean by overlapping batches, each summed by itself."""
    n = len(left)
    means = [sum(left[at : at + length]) / length for at in range(n - length + 1)]
    return sqrt(fmean([m * m for m in means]) * length / (n - length))


def slow(left: list[float]) -> float:
    """How much more the mean varies where a correlation decays slowly under white noise."""
    n, power = len(left), sum(v * v for v in left)
    if n < 40 or power <= 0:
        return 1.0
    acf = [sum(a * b for a, b in zip(left, left[k:], strict=False)) / power + 1 / n for k in range(1, 9)]
    near, far = fmean(acf[:4]), fmean(acf[4:])
    if near <= 1.6 / sqrt(n) or acf[0] <= 0:
        return 1.0
    decay = min(0.985, (far / near) ** 0.25 if far > 0 else 0.0)
    decay = min(0.985, decay + (1 + 3 * decay) / n)
    first = near * 4 / (1 + decay + decay**2 + decay**3)
    return 1 + 2 * min(first, 1.0) / (1 - decay)


@pytest.mark.parametrize("name", SERIES)
def test_a_mean_has_the_largest_of_three_standard_errors(name: str) -> None:
    values = SERIES[name].tolist()
    n, middle = len(values), fmean(values)
    left = [v - middle for v in values]
    rho = alike(values, 3.0) if n > 2 else 0.0
    near = (1 + min(rho, 0.97)) / (1 - min(rho, 0.97)) if n >= 8 and rho > 1 / sqrt(n) else 1.0
    effective = max(3.0, n / max(near, slow(left)))
    se, df = stdev(values) / sqrt(effective), effective - 1
    for length, margin in ((round(sqrt(n)), 1.15), (n // 6, 1.6)) if n >= 40 else ():
        batch = batches(left, length)
        if batch > margin * se:
            se, df = batch, min(df, max(2.0, 1.5 * n / length - 1))
            effective = min(effective, (stdev(values) / batch) ** 2)
    found = mean_of(SERIES[name])
    assert (found.value, found.count) == (pytest.approx(middle), n)
    assert (found.se, found.df, found.effective) == (pytest.approx(se), pytest.approx(df), pytest.approx(effective))
    assert found.sd_long == pytest.approx(se * sqrt(n))


def test_equal_values_have_a_mean_without_error() -> None:
    assert (mean_of(np.full(50, 2.0)).se, mean_of(np.full(50, 2.0)).value) == (0.0, 2.0)
