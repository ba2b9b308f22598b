"""Student's t against closed forms, a printed table, and the integral of its density."""

from __future__ import annotations

from math import atan, exp, lgamma, log, pi, sqrt
from statistics import NormalDist

import pytest

from forensics.stats.student import hypot, t_quantile, t_tail, welch_df

#: Values exceeded with a probability of 0.4, 0.1, 0.05, 0.025, 0.01, 0.005 and 0.0005, by degrees of freedom, as tables
#: print them (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2).
TAILS = (0.40, 0.10, 0.05, 0.025, 0.01, 0.005, 0.0005)
TABLE = {
    1: (0.325, 3.078, 6.314, 12.706, 31.821, 63.657, 636.619),
    2: (0.289, 1.886, 2.920, 4.303, 6.965, 9.925, 31.599),
    5: (0.267, 1.476, 2.015, 2.571, 3.365, 4.032, 6.869),
    10: (0.260, 1.372, 1.812, 2.228, 2.764, 3.169, 4.587),
    30: (0.256, 1.310, 1.697, 2.042, 2.457, 2.750, 3.646),
    100: (0.254, 1.290, 1.660, 1.984, 2.364, 2.626, 3.390),
}


def integral(t: float, df: float) -> float:
    """Tail above a positive t: one half less the integral of the density from 0, by Simpson's rule."""
    pieces = 4000
    front = exp(lgamma((df + 1) / 2) - lgamma(df / 2)) / sqrt(df * pi)
    heights = [front * exp(-(df + 1) / 2 * log(1 + (t * i / pieces) ** 2 / df)) for i in range(pieces + 1)]
    weights = [1 if i in {0, pieces} else 4 if i % 2 else 2 for i in range(pieces + 1)]
    return 0.5 - t / pieces / 3 * sum(w * h for w, h in zip(weights, heights, strict=True))


@pytest.mark.parametrize("t", [0.0, 0.1, 0.7, 1.0, 2.0, 5.0, 40.0])
def test_a_tail_of_one_two_and_four_degrees_of_freedom_is_its_closed_form(t: float) -> None:
    assert t_tail(t, 1) == pytest.approx(0.5 - atan(t) / pi, rel=1e-10)
    assert t_tail(t, 2) == pytest.approx(0.5 - t / 2 / sqrt(2 + t * t), rel=1e-8, abs=1e-12)
    root = sqrt(1 + t * t / 4)
    four = 0.5 - 3 / 8 * t / root * (1 - t * t / 12 / root**2)
    assert t_tail(t, 4) == pytest.approx(four, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("df", [0.7, 1.5, 2.3, 3.0, 7.9, 33.0, 400.5, 20_000.0, 99_000.0])
@pytest.mark.parametrize("t", [0.2, 1.1, 2.6])
def test_a_tail_is_the_integral_of_the_density(df: float, t: float) -> None:
    assert t_tail(t, df) == pytest.approx(integral(t, df), abs=1e-9)
    assert t_tail(-t, df) == pytest.approx(1 - integral(t, df), abs=1e-9)


@pytest.mark.parametrize("df", TABLE)
def test_quantiles_are_those_of_the_table(df: int) -> None:
    assert [round(t_quantile(tail, df), 3) for tail in TAILS] == list(TABLE[df])


@pytest.mark.parametrize("df", [1.0, 3.7, 50.0, 99_000.0])
@pytest.mark.parametrize("tail", [0.49, 0.3, 0.025, 1e-5])
def test_the_tail_above_a_quantile_is_the_one_that_was_asked_for(tail: float, df: float) -> None:
    assert t_tail(t_quantile(tail, df), df) == pytest.approx(tail, rel=1e-9)


def test_from_100_000_degrees_of_freedom_on_the_normal_distribution_is_taken() -> None:
    normal = NormalDist()
    assert t_tail(1.96, 100_001) == 1 - normal.cdf(1.96)
    assert t_tail(1.96, 100_000) != 1 - normal.cdf(1.96)
    assert t_quantile(0.025, 100_001) == normal.inv_cdf(0.975)
    assert t_quantile(0.025, 100_000) != normal.inv_cdf(0.975)
    assert t_quantile(0.025, 100_000) == pytest.approx(normal.inv_cdf(0.975), rel=2e-5)


def test_half_lies_above_0_and_nothing_above_what_is_beyond_every_number() -> None:
    assert t_tail(0.0, 5) == 0.5
    assert (t_tail(1e200, 5), t_tail(-1e200, 5)) == (0.0, 1.0)


def test_degrees_of_freedom_of_a_difference_are_those_of_welch() -> None:
    # by hand: (4 + 9)^2 / (16 / 8 + 81 / 27)
    assert welch_df((2.0, 8.0), (3.0, 27.0)) == pytest.approx(169 / 5)
    assert welch_df((3.0, 27.0), (2.0, 8.0)) == pytest.approx(169 / 5)
    assert welch_df((2.0, 8.0), (0.0, 3.0)) == pytest.approx(8.0)
    assert welch_df((0.0, 8.0), (0.0, 3.0)) == 3.0


def test_a_hypotenuse_is_the_root_of_the_squares() -> None:
    assert (hypot(), hypot(3.0), hypot(3.0, 4.0), hypot(2.0, 3.0, 6.0)) == (0.0, 3.0, 5.0, 7.0)
