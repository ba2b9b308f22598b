"""From a ratio to a verdict: each bound from both sides, each figure by its formula."""

from __future__ import annotations

from math import ceil, exp, log, log1p, sqrt

import pytest

from forensics.compare._pair import Estimate
from forensics.compare.decide import Answer, Policy, decide
from forensics.stats.student import t_quantile, t_tail
from forensics.values import replace

MANY = 1e6  # degrees of freedom: t is normal
ALONE = Policy(run_noise=0.0)


def found(log_ratio: float, se: float = 0.001, **parts: float) -> Estimate:
    named = {"df": MANY, "effective": 50.0, "count": 100, "sd_long": 0.01, **parts}
    return Estimate(
        log_ratio, se, float(named["df"]), named["effective"], int(named["count"]), named["sd_long"], "means"
    )


def answer(log_ratio: float, se: float = 0.001, policy: Policy = ALONE, **parts: float) -> Answer:
    return decide(found(log_ratio, se, **parts), policy).answer


def test_the_bounds_are_a_half_and_five_percent_a_change_of_one_and_half_a_percent_between_runs() -> None:
    assert Policy() == Policy(alpha=0.005, tolerance=0.01, max_slowdown=0.0, run_noise=0.005, alpha_same=0.05)
    assert (Policy().slower, Policy().faster) == pytest.approx((-log(0.99), log(1.01)))
    assert Policy(max_slowdown=0.05).slower == pytest.approx(-log(0.95))
    assert Policy(max_slowdown=0.005).slower == pytest.approx(-log(0.99))


@pytest.mark.parametrize(("share", "wanted"), [(0.99, Answer.NO_CHANGE), (1.01, Answer.REGRESSION)])
def test_a_slowdown_counts_from_one_percent_of_the_throughput_on(share: float, wanted: Answer) -> None:
    assert answer(share * -log(0.99)) is wanted
    assert answer(-log1p(-0.01)) is Answer.REGRESSION


@pytest.mark.parametrize(("share", "wanted"), [(0.99, Answer.NO_CHANGE), (1.01, Answer.IMPROVEMENT)])
def test_a_speedup_counts_from_one_percent_of_the_throughput_on(share: float, wanted: Answer) -> None:
    assert answer(share * -log(1.01)) is wanted
    assert answer(-log1p(0.01)) is Answer.IMPROVEMENT


@pytest.mark.parametrize("sign", [1, -1])
def test_a_change_must_be_so_many_errors_large(sign: int) -> None:
    critical = 2.5758  # of a normal value, 0.5 % on one side
    assert answer(sign * 0.1, 0.1 / (critical * 1.01)) in {Answer.REGRESSION, Answer.IMPROVEMENT}
    assert answer(sign * 0.1, 0.1 / (critical * 0.99)) is Answer.INCONCLUSIVE


@pytest.mark.parametrize("sign", [1, -1])
def test_runs_are_the_same_where_the_error_leaves_no_room_for_twice_the_tolerance(sign: int) -> None:
    slack = 2 * log(1.01)
    for log_ratio in (0.0, sign * 0.005):
        se = (slack - abs(log_ratio)) / 1.6449  # 5 % on one side
        assert answer(log_ratio, 0.99 * se) is Answer.NO_CHANGE
        assert answer(log_ratio, 1.01 * se) is Answer.INCONCLUSIVE


def test_a_slowdown_that_was_allowed_is_no_regression() -> None:
    allowing = replace(ALONE, max_slowdown=0.06)
    assert answer(0.05, 0.002, allowing) is Answer.NO_CHANGE
    assert answer(0.07, 0.002, allowing) is Answer.REGRESSION
    assert answer(-0.05, 0.002, allowing) is Answer.IMPROVEMENT
    assert answer(0.05, 0.02, allowing) is Answer.INCONCLUSIVE


def test_few_independent_values_of_many_records_decide_nothing() -> None:
    assert answer(0.1, effective=6.9, count=31) is Answer.INCONCLUSIVE
    assert answer(0.1, effective=7.0, count=31) is Answer.REGRESSION
    assert answer(0.1, effective=6.9, count=30) is Answer.REGRESSION
    few = decide(found(0.1, effective=6.94, count=31), ALONE)
    assert few.why == "the noise is too correlated: 31 records are worth 6.9 independent ones"


def test_what_identical_runs_differ_by_is_added_to_the_error_twice() -> None:
    policy = Policy(run_noise=0.004)
    one = decide(found(0.02, 0.003), policy)
    se = sqrt(0.003**2 + 2 * 0.004**2)
    critical = t_quantile(0.005, MANY)
    assert one.p == pytest.approx(t_tail(0.02 / se, MANY))
    assert one.interval == pytest.approx((exp(-0.02 - critical * se) - 1, exp(-0.02 + critical * se) - 1))
    assert one.change == pytest.approx(exp(-0.02) - 1)
    reach = critical + t_quantile(0.1, MANY)
    assert one.min_detectable == pytest.approx(1 - exp(-reach * se))


def test_a_speedup_has_the_same_p_as_the_slowdown() -> None:
    assert decide(found(-0.02), ALONE).p == decide(found(0.02), ALONE).p < 0.5


def test_a_difference_between_runs_that_was_measured_replaces_the_assumed_one_but_not_the_error_within() -> None:
    one = found(0.02, 0.003, df=9.0)
    assert decide(one, Policy(), runs_se=0.01, df=4.0).p == pytest.approx(t_tail(2.0, 4.0))
    assert decide(one, Policy(), runs_se=0.001, df=4.0).p == pytest.approx(t_tail(0.02 / 0.003, 4.0))
    assert decide(one, Policy(run_noise=0.0)).p == pytest.approx(t_tail(0.02 / 0.003, 9.0))
    assert decide(one, Policy(), runs_se=0.01, df=4.0).possible is Answer.REGRESSION


def test_what_can_be_found_is_never_less_than_the_tolerance() -> None:
    assert decide(found(0.1, 1e-9), ALONE).min_detectable == 0.01
    assert decide(found(0.1, 1e-9), replace(ALONE, tolerance=0.3)).min_detectable == 0.3


def test_the_error_between_runs_under_which_a_verdict_still_holds_is_told() -> None:
    one = decide(found(0.05, 0.003), ALONE)
    assert one.run_noise_max is not None
    assert one.run_noise_max == pytest.approx(sqrt(((0.05 / t_quantile(0.005, MANY)) ** 2 - 0.003**2) / 2))
    for share, settled in ((0.99, True), (1.01, False)):
        policy = Policy(run_noise=share * one.run_noise_max)
        assert (decide(found(0.05, 0.003), policy).answer is Answer.REGRESSION) is settled
    assert decide(found(-0.05, 0.003), ALONE).run_noise_max == pytest.approx(one.run_noise_max)
    assert decide(found(0.0), ALONE).run_noise_max is None


def test_what_would_settle_it_is_told_where_nothing_was_settled() -> None:
    one = decide(found(0.01, 0.02, count=40, sd_long=0.3), ALONE)
    reach = t_quantile(0.005, MANY) + t_quantile(0.1, MANY)
    target = 2 * log(1.01)
    assert (one.answer, one.why) == (Answer.INCONCLUSIVE, "the noise is too large for so few records")
    assert one.steps_needed == ceil(0.3**2 / (target / reach) ** 2)
    assert one.runs_needed == ceil((0.02 * reach / target) ** 2)
    assert decide(found(0.01, 0.02, count=40_000, sd_long=0.3), ALONE).steps_needed == 40_001
    settled = decide(found(0.1), ALONE)
    assert (settled.steps_needed, settled.runs_needed, settled.why) == (None, None, "")


def test_a_target_is_the_slowdown_allowed_where_that_is_more_than_twice_the_tolerance() -> None:
    one = decide(found(0.01, 0.05, sd_long=0.9), replace(ALONE, max_slowdown=0.08))
    reach = t_quantile(0.005, MANY) + t_quantile(0.1, MANY)
    assert one.steps_needed == ceil((0.9 * reach / -log(0.92)) ** 2)
    assert one.runs_needed == ceil((0.05 * reach / -log(0.92)) ** 2)


def test_no_number_of_records_settles_what_runs_differ_by_themselves() -> None:
    reach, target = t_quantile(0.005, MANY) + t_quantile(0.1, MANY), 2 * log(1.01)
    hiding = target / reach / sqrt(2)
    assert decide(found(0.01, 0.02), Policy(run_noise=1.01 * hiding)).steps_needed is None
    noise = 0.9 * hiding
    one = decide(found(0.01, 0.02, sd_long=0.3), Policy(run_noise=noise))
    assert one.steps_needed == ceil(0.3**2 / ((target / reach) ** 2 - 2 * noise**2))
    assert one.runs_needed == ceil((0.02**2 + 2 * noise**2) * (reach / target) ** 2)
    assert decide(found(0.011, 0.001), Policy(run_noise=0.005)).runs_needed == 2


def test_a_change_that_identical_runs_may_show_is_said_to_be_that() -> None:
    one = decide(found(0.013, 0.001), Policy(run_noise=0.006))
    assert (one.answer, one.possible) == (Answer.INCONCLUSIVE, Answer.REGRESSION)
    assert one.why == "identical runs may differ as much as that"
    other = decide(found(-0.013, 0.001), Policy(run_noise=0.006))
    assert (other.possible, other.why) == (Answer.IMPROVEMENT, "identical runs may differ as much as that")


def test_a_ratio_beyond_every_number_has_an_interval_all_the_same() -> None:
    far = decide(found(-650.0, 100.0), ALONE)
    assert far.interval[1] == exp(700.0) - 1
    assert decide(found(650.0, 100.0), ALONE).interval[0] == pytest.approx(-1.0)


def test_an_error_of_nothing_is_taken_for_a_millionth() -> None:
    assert decide(found(3e-6, 0.0), ALONE).p == pytest.approx(t_tail(3.0, MANY))
