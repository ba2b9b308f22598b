"""How a run learned: each mechanism in a few records, and beside it the nearest thing that is all right."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
import pytest

from forensics.analyses.learning import spikes
from forensics.analyses.learning.course import kind_of
from forensics.analyses.learning.limits import Limits
from forensics.analyses.learning.losses import losses, staged
from forensics.analyses.learning.lr_schedule import Again, climbs, schedule_of, warms_again
from forensics.analyses.learning.objective import paired, reinforced, tuned
from forensics.analyses.learning.ranks import parted
from forensics.analyses.learning.rate import Warming, Zero, ended_early, jump_before, rose_to_the_end
from forensics.analyses.learning.spikes import onset_of
from forensics.analyses.learning.still import Frozen, still_of
from forensics.case.curves.loss import curves
from forensics.knowledge.causes import causes as known_causes
from forensics.model import Finding
from forensics.registry import load
from forensics.store.run import Run, run_of

RULES = [rule for rule in load("rules").rules if rule.id.startswith("LRN")]
Values = Sequence[float] | np.ndarray


def noisy(levels: Values, sd: float = 0.02, seed: int = 7) -> np.ndarray:
    return np.asarray(levels, dtype=float) * np.exp(sd * np.random.default_rng(seed).standard_normal(len(levels)))


def falling(count: int, first: float = 4.3, last: float = 1.3, half: float = 12) -> np.ndarray:
    return last + (first - last) * np.exp(-np.arange(count) / half)


def rows_of(name: str, values: Values, *, every: int = 1, rank: int | None = None, attempt: int = 0) -> pl.DataFrame:
    return pl.DataFrame({"value": np.asarray(values, dtype=float)}).with_columns(
        source=pl.lit("train.log" if rank is None else f"rank{rank}.log"),
        seq=pl.int_range(pl.len()) + 10_000 * attempt,
        step=(pl.int_range(pl.len()) + 1) * every,
        name=pl.lit(name),
        raw_name=pl.lit(name),
        rank=pl.lit(rank, dtype=pl.Int32),
        attempt=pl.lit(attempt, dtype=pl.Int32),
    )


def made(
    *more: pl.DataFrame, every: int = 1, done: bool = False, facts: Mapping[str, str] | None = None, **series: Values
) -> Run:
    frames = [rows_of(name, values, every=every) for name, values in series.items()]
    tables = {"metrics": pl.concat([*frames, *more], how="diagonal_relaxed")}
    if done:
        tables["events"] = pl.DataFrame(
            {"source": ["train.log"], "seq": [99_999], "code": ["success"], "text": ["Training complete"]}
        )
    if facts:
        said = {"source": "c.json", "key": list(facts), "value": list(facts.values()), "family": "config"}
        tables["facts"] = pl.DataFrame(said)
    return run_of("made", tables)


def told(run: Run) -> list[Finding]:
    """Warnings and errors of all rules about learning, the worst first."""
    every = [f for rule in RULES for f in rule(run)]
    return sorted((f for f in every if f.severity.rank >= 1), key=lambda f: -f.severity.rank)


def causes(run: Run) -> list[str | None]:
    return [f.cause for f in told(run)]


# --- a loss that leaves its course


def test_three_records_tell_an_explosion() -> None:
    (hit,) = told(made(loss=[2.2, 8e27, 5e30]))
    assert (hit.cause, hit.onset.step, hit.severity.value) == ("diverged", 2, "error")


def test_a_few_records_at_three_times_all_before_them_are_a_warning() -> None:
    (hit,) = told(made(loss=[12.5, 12.4, 40.8, 41.7]))
    assert (hit.cause, hit.onset.step, hit.severity.value) == ("diverged", 3, "warning")
    assert told(made(loss=[12.5, 12.4, 36.0, 35.0])) == []
    assert told(made(loss=[0.05, 0.04, 0.5, 0.6])) == []


def test_a_spike_of_one_record_at_the_end_is_none() -> None:
    assert told(made(loss=[*noisy(falling(80)), 9.0])) == []


def test_a_loss_that_exploded_and_ends_above_its_start_is_lost_although_it_falls() -> None:
    peak = 1e6 * np.exp(-np.arange(40) / 3) + 7.5
    (hit,) = told(made(loss=[4.3, 4.4, *peak]))
    assert (hit.onset.step, hit.severity.value) == (3, "error")


def test_a_loss_that_exploded_and_came_back_below_its_start_is_not_lost() -> None:
    back = 1e5 * np.exp(-np.arange(60) / 2) + 1.5
    assert [f for f in told(made(loss=[4.3, 4.2, *back])) if f.severity.value == "error"] == []


def test_a_sum_over_all_records_is_no_explosion() -> None:
    assert told(made(loss=np.cumsum(np.full(3000, 2.2)))) == []


def test_a_slow_ramp_begins_where_it_leaves_the_level_and_not_half_way_up() -> None:
    ramp = np.concatenate([falling(60), 1.32 * np.exp(0.012 * np.arange(1, 181))])
    (hit,) = told(made(loss=noisy(ramp)))
    assert hit.onset.step is not None
    assert 55 <= hit.onset.step <= 75


@pytest.mark.parametrize(("shape", "first"), [("step", 50), ("hinge", 50)])
def test_an_onset_is_the_first_record_of_the_rise(shape: str, first: int) -> None:
    rise = np.full(50, 1.0) if shape == "step" else np.arange(1, 51) / 25
    y = np.concatenate([np.zeros(50), rise]) + 0.05 * np.random.default_rng(1).standard_normal(100)
    assert abs(onset_of(y, 10, 99, 0.0, 0.05) - first) <= 2


def test_an_onset_among_three_records_is_the_first_of_the_two_that_lie_up() -> None:
    assert onset_of(np.array([0.0, 3.0, 3.0]), 0, 2, 0.0, 0.05) == 1


@pytest.mark.parametrize("seed", range(5))
def test_an_explosion_begins_at_its_first_record_and_not_at_the_lowest_of_the_noise_before_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    calm = 1.4 * np.exp(0.2 * rng.standard_normal(86))
    calm[80] = 0.8
    burst = 1500 * np.exp(0.2 * rng.standard_normal(50))
    (hit,) = told(made(loss=[*calm, 11.0, 280.0, *burst]))
    assert hit.onset.step == 87


def test_a_rise_in_the_last_three_records_is_seen_and_in_two_of_three_not() -> None:
    calm = noisy(falling(150), 0.1)
    assert "diverged" in causes(made(loss=[*calm, 2.9, 3.6, 5.1]))
    assert causes(made(loss=[*calm, 2.9, 1.3, 5.1])) == []


def test_a_rise_at_the_end_that_came_back_before_is_left_alone() -> None:
    waves = noisy(falling(150), 0.1)
    waves[80:84] = [2.9, 3.6, 3.8, 3.3]
    assert "diverged" not in causes(made(loss=[*waves, 2.9, 3.6, 3.5]))


def test_a_rate_that_leapt_just_before_is_the_cause_and_the_onset() -> None:
    loss = [*noisy(falling(60)), 5.5, 44.0, 46.0, 30.0, *noisy(np.full(40, 9.5))]
    rate = np.full(len(loss), 3e-3)
    rate[59:61] = 0.45
    run = made(loss=loss, lr=rate)
    hit = told(run)[0]
    assert (hit.rule, hit.cause, hit.onset.step) == ("LRN001", "lr_jump", 60)
    assert jump_before(run, curves(run, "loss")[0], 20) is None


def test_a_loss_that_steps_up_and_learns_on_under_a_steady_gradient_is_another_stage() -> None:
    stages = [falling(50, 4.2, 2.0), falling(50, 3.0, 2.5), falling(50, 3.8, 3.3)]
    loss = noisy(np.concatenate(stages), 0.003)
    calm, wild = np.ones(150), np.repeat([0.5, 4.0, 9.0], 50)
    run = made(loss=loss, grad_norm=calm)
    assert staged(run, losses(run)[0])
    assert told(run) == []
    unmoved = made(loss=loss, grad_norm=np.zeros(150))
    assert not staged(unmoved, losses(unmoved)[0])  # there is nothing to compare with
    assert "diverged" in causes(made(loss=loss, grad_norm=wild))
    assert "diverged" in causes(made(loss=loss))


@pytest.mark.parametrize(("burst", "is_staged"), [(2.5, True), (10.0, False)])
def test_a_gradient_norm_that_bursts_with_the_loss_and_settles_did_not_stay(burst: float, *, is_staged: bool) -> None:
    norm = [*np.ones(50), burst, burst, burst, *np.ones(47)]
    loss = [*falling(50, 4.0, 1.0), *noisy(np.linspace(3.2, 3.0, 50), 0.002)]
    run = made(loss=loss, grad_norm=norm)
    assert staged(run, losses(run)[0]) is is_staged
    assert ("diverged" in causes(run)) is not is_staged


@pytest.mark.parametrize(
    ("after", "told_causes"),
    [(falling(50, 4.7, 3.5, 3), ["level_shift"]), (falling(50, 4.5, 3.3, 3), []), (falling(50, 4.8, 3.9, 40), [])],
    ids=["gave back 85 % and stays there", "gave back 76 %", "gave back all and learns again"],
)
def test_a_loss_that_gave_back_at_one_step_what_it_had_learned_and_stays_there_has_lost_it(
    after: np.ndarray, told_causes: list[str]
) -> None:
    loss = noisy(np.concatenate([falling(50, 4.2, 1.6), after]), 0.004)
    for every in (1, 5):  # a gradient norm that stays tells it where no record is of one step
        assert causes(made(loss=loss, grad_norm=np.ones(100), every=every)) == told_causes


@pytest.mark.parametrize(
    ("rise", "every", "cause"),
    [
        ([5.6, 5.2, 5.0], 1, "level_shift"),
        ([3.0, 2.9, 2.9], 1, "level_shift"),
        ([5.6, 5.2, 7.5], 1, "diverged"),
        ([2.7, 2.6, 2.6], 1, "diverged"),
        ([5.6, 5.2, 5.0], 2, "diverged"),
    ],
    ids=[
        "at one step",
        "little more than twice the level",
        "goes on rising",
        "less than twice the level",
        "two steps between two records",
    ],
)
def test_a_rise_that_one_update_makes_is_a_change_of_the_level_and_one_of_several_a_divergence(
    rise: list[float], every: int, cause: str
) -> None:
    loss = [*noisy(falling(60, 4.3, 1.4), 0.004), *rise, *noisy(np.full(40, rise[-1]), 0.004)]
    (hit,) = told(made(loss=loss, every=every))
    assert (hit.rule, hit.cause) == ("LRN001", cause)


@pytest.mark.parametrize(
    ("last", "noise", "flat"),
    [(0.80, 0.005, False), (0.60, 0.005, False), (0.57, 0.005, True), (0.66, 0.06, True)],
    ids=["rose by half", "rose by a seventh", "rose by a twelfth", "rose within its noise"],
)
def test_a_sum_that_stays_while_a_score_rises_hides_what_is_learned(last: float, noise: float, *, flat: bool) -> None:
    score = 0.525 + (last - 0.525) * (1 - np.exp(-np.arange(120) / 12))
    run = made(loss=noisy(np.full(120, 6.2), 0.003), **{"val f1": score * (1 + noise * np.tile([1, -1, -1, 1], 30))})
    assert ("not_learning" in causes(run)) is flat


@pytest.mark.parametrize(
    ("after", "warned"),
    [([2.5, 4.1, *[4.16] * 8], True), ([2.5, 4.1, *[4.16] * 4, 1.9, 1.7, 1.4, 1.2], False)],
    ids=["the first record is on the way up", "came back half of the way"],
)
def test_a_short_loss_that_gave_back_all_it_learned_is_a_warning(after: list[float], *, warned: bool) -> None:
    loss = [4.03, 3.19, 2.28, 1.74, 1.17, 1.48, 1.72, 1.15, *after]
    severities = [hit.severity.value for hit in told(made(loss=loss, every=5)) if hit.rule == "LRN001"]
    assert severities == ["warning"] * warned


def test_the_last_attempt_is_judged() -> None:
    bad, good = [*falling(40), *np.full(60, 40.0)], falling(60)
    first, second = rows_of("loss", bad), rows_of("loss", good, attempt=1)
    assert "diverged" in causes(made(first))
    assert causes(made(first, second)) == []


# --- a loss that does not move


def test_a_loss_of_zero_without_gradients_is_masked() -> None:
    (hit,) = told(made(loss=[0.0] * 4, grad_norm=[0.0] * 4))
    assert (hit.rule, hit.cause, hit.severity.value) == ("LRN014", "loss_zero", "error")
    assert "mask" in known_causes()[hit.cause].actions[0].text


def test_a_loss_of_zero_with_nothing_beside_it_is_a_warning() -> None:
    assert [(f.cause, f.severity.value) for f in told(made(loss=[0.0] * 4))] == [("loss_zero", "warning")]


def test_a_loss_of_zero_beside_gradients_or_rewards_is_none() -> None:
    assert told(made(loss=[0.0] * 60, grad_norm=noisy(np.full(60, 0.4)))) == []
    assert told(made(loss=[0.0] * 60, reward=np.linspace(0, 1, 60))) == []


def test_a_loss_that_was_learned_down_to_zero_is_not_masked() -> None:
    assert "loss_zero" not in causes(made(loss=[*falling(40, 4.3, 0.001, 4), *[0.0] * 20]))


def test_nine_epochs_with_the_same_four_digits_are_frozen() -> None:
    assert causes(made(loss=[2.3026] * 9)) == ["frozen_loss"]
    assert causes(made(loss=[2.3026] * 4)) == []
    assert causes(made(loss=[2.3] * 9)) == []
    assert causes(made(loss=[2.3026] * 4 + [2.3025] * 5)) == []


@pytest.mark.parametrize(("value", "how"), [(2.3026, "frozen"), (0.0, "masked")])
def test_a_loss_that_never_moved_stands_still_from_its_first_record_on(value: float, how: str) -> None:
    still = still_of(made(loss=[value] * 9), Frozen())
    assert still is not None
    assert (still.how, still.value, still.start, still.left, still.count) == (how, value, 0, 0, 9)


def test_one_loss_that_moves_clears_another_that_repeats() -> None:
    run = made(rows_of("loss", falling(9), rank=1), loss=[2.3026] * 9)
    assert still_of(run, Frozen()) is None


def test_a_loss_that_died_above_its_best_dates_from_where_it_left() -> None:
    still = still_of(made(loss=[1.637, 11.8, 10.9, *[10.3735] * 6]), Frozen())
    assert still is not None
    assert (still.how, still.left, still.count) == ("stuck", 1, 6)


def test_shuffled_labels_leave_a_fresh_loss_near_its_start() -> None:
    loss = noisy(4.18 + 0.12 * np.exp(-np.arange(100) / 15), 0.006)
    assert "not_learning" in causes(made(loss=loss))
    assert "loss_crawls" in causes(made(loss=noisy(np.linspace(4.3, 4.18, 100), 0.006)))
    trained = {"model_name_or_path": "org/base"}
    assert "not_learning" in causes(made(loss=loss, facts=trained))  # chat data cost a trained model 3.0 at most
    assert causes(made(loss=loss - 1.4, facts=trained)) == []
    assert causes(made(loss=loss, logit_scale=np.linspace(1, 2, 100))) == []
    assert causes(made(loss=noisy(np.full(100, 0.92), 0.006))) == []
    assert causes(made(loss=loss[:40])) == []


def test_chance_over_the_stated_classes_is_told_below_three_nats() -> None:
    loss = noisy(np.full(120, math.log(12)), 0.006)
    assert causes(made(loss=loss)) == []
    assert causes(made(loss=loss, facts={"num_labels": "12"})) == ["uniform_loss", "not_learning"]


# --- the learning rate


def test_a_rate_of_zero_long_before_the_end_is_told_and_a_decay_to_zero_is_not() -> None:
    cut = [*np.linspace(6e-3, 4.7e-3, 15), *[0.0] * 20]
    assert "lr_zero" in causes(made(loss=noisy(falling(35)), lr=cut))
    assert causes(made(loss=noisy(falling(35)), lr=np.linspace(6e-3, 0, 35))) == []


def _ends_early(rate: Sequence[float]) -> bool:
    return ended_early(schedule_of(curves(made(lr=rate), "lr")[0]), Zero())


def test_a_smooth_decay_to_zero_before_the_end_is_told_where_digits_show_it_or_for_half_of_the_run() -> None:
    smooth = 6e-3 * np.clip(np.cos(np.arange(100) / 100 * math.pi), 0, None)
    assert _ends_early(list(smooth))
    assert _ends_early(list(np.round(smooth, 4)))
    assert not _ends_early(list(np.round(smooth, 4))[:99])
    assert not _ends_early(list(np.round(6e-3 * 0.9 ** np.arange(100), 4)))  # it is small, and never zero


def test_a_warm_up_that_ends_with_the_run_is_told_where_the_loss_hardly_fell() -> None:
    rate, loss = np.linspace(1e-6, 1e-4, 100), noisy(np.linspace(4.36, 4.05, 100), 0.006)
    assert "lr_not_as_configured" in causes(made(loss=loss, lr=rate, done=True))
    assert "lr_not_as_configured" not in causes(made(loss=loss, lr=rate))
    assert "lr_not_as_configured" not in causes(made(loss=noisy(falling(100)), lr=rate, done=True))


def test_a_warm_up_of_too_few_records_for_a_trend_is_judged_by_its_ends() -> None:
    rate = np.linspace(1e-6, 1e-4, 19)
    flat, learned = noisy(np.linspace(4.24, 4.07, 19), 0.01), noisy(np.linspace(4.24, 2.8, 19), 0.01)
    assert "lr_not_as_configured" in causes(made(loss=flat, lr=rate, every=5, done=True))
    assert "lr_not_as_configured" not in causes(made(loss=learned, lr=rate, every=5, done=True))


@pytest.mark.parametrize(
    "rate",
    [
        np.full(100, 1e-4),
        np.concatenate([np.linspace(1e-6, 1e-4, 40), np.full(60, 1e-4)]),
        1e-6 * np.exp(np.arange(100) / 20),
        np.linspace(5e-5, 1e-4, 100),
        np.linspace(1e-6, 1e-4, 40),
        np.zeros(100),
        np.concatenate([np.linspace(1e-6, 1e-4, 50), np.full(50, 1e-4)]),
        np.concatenate([np.linspace(1e-6, 1e-4, 99), [9.9e-5]]),
    ],
)
def test_other_rates_are_no_unfinished_warm_up(rate: np.ndarray) -> None:
    assert not rose_to_the_end(schedule_of(curves(made(lr=rate), "lr")[0]), Warming())


@pytest.mark.parametrize(("first", "rose"), [(151, True), (152, False)])
def test_a_warm_up_rose_to_the_end_over_fifty_steps_of_whatever_numbers(first: int, rose: bool) -> None:
    at = np.linspace(first, 200, 25).round()
    rate = rows_of("lr", np.linspace(1e-6, 1e-4, 25)).with_columns(step=pl.Series(at, dtype=pl.Int64))
    assert rose_to_the_end(schedule_of(curves(made(rate), "lr")[0]), Warming()) is rose


WARM = np.concatenate([np.linspace(1e-5, 1e-4, 10), np.full(10, 1e-4)])


@pytest.mark.parametrize(
    ("after", "at"),
    [
        (WARM, 20),
        (WARM[1:], 20),
        (WARM[2:], 20),
        (WARM[3:], None),
        (WARM * 1.019, 20),
        (WARM * 1.021, None),
        (WARM[:4], 20),
        (WARM[:3], None),
        (WARM[9::-1], None),
        (np.full(10, 1e-5), None),
    ],
    ids=[
        "from its first record", "its second", "its third", "its fourth", "two percent off", "more off",
        "four records of it", "three records", "a fall", "one low rate",
    ],
)  # fmt: skip
def test_a_rate_warms_again_where_it_falls_to_its_first_records_and_rises(after: np.ndarray, at: int | None) -> None:
    assert warms_again(np.concatenate([WARM, after]), Again()) == at


@pytest.mark.parametrize(("share", "at"), [(0.89, 6), (0.91, None)])
def test_a_rate_warms_again_only_behind_a_fall_by_a_tenth(share: float, at: int | None) -> None:
    begin = np.array([1.0, 1.02, 1.04, 1.06])
    assert warms_again(np.concatenate([begin, np.full(2, 1 / share), begin]), Again()) == at


def test_a_rate_that_falls_in_each_of_its_cycles_warms_in_none() -> None:
    assert warms_again(np.tile(np.geomspace(1, 0.1, 12), 3), Again()) is None


@pytest.mark.parametrize(
    ("before", "between", "high", "at"), [(8, 7, 2.1, 8), (7, 7, 2.1, None), (8, 6, 2.1, None), (8, 7, 1.9, None)]
)
def test_a_rate_climbs_from_a_dip_of_one_record_far_from_both_ends_to_twice_its_peak(
    before: int, between: int, high: float, at: int | None
) -> None:
    assert climbs(np.repeat([1.0, 0.4, 1.0, high], [before, 1, between, 4]), 2.0, 8) == at


def test_a_leap_of_the_rate_in_the_last_record_alone_may_be_a_number_cut_short() -> None:
    rate = [*np.linspace(3e-3, 2.4e-3, 60), 2.38]
    assert causes(made(lr=rate)) == []
    assert causes(made(lr=[*rate, 2.38])) == ["lr_jump"]


# --- evaluations and ranks


def test_an_evaluation_contradicts_a_rise_only_once_half_of_it_is_made() -> None:
    loss = np.concatenate([noisy(falling(60)), noisy(1.33 * np.exp(np.arange(40) / 80))])

    def evaluated(at: int) -> Run:
        at_steps = pl.Series("step", [50, at], dtype=pl.Int32)
        return made(rows_of("eval_loss", [1.5, 1.4]).with_columns(at_steps), loss=loss)

    assert "diverged" in causes(evaluated(66))
    assert "diverged" not in causes(evaluated(95))


def test_an_evaluation_that_rises_by_half_after_a_quick_fall_of_the_training_loss_is_overfit() -> None:
    loss = noisy(0.56 + 3.7 * np.exp(-np.arange(40) / 2.2), 0.01)
    evals = rows_of("eval_loss", [2.99, 1.77, 1.98, 2.2, 2.44, 2.5, 2.55, 2.6, 2.63, 2.65], every=20)
    assert "overfit" in causes(made(evals, loss=loss, every=5))


def ranks(count: int, *, odd: int | None = None, times: float = 3.0, steps: int = 80) -> Run:
    frames = []
    for rank in range(count):
        own = noisy(falling(steps), 0.15, seed=rank)
        if rank == odd:
            own[50:] *= times
        frames.append(rows_of("loss", own, rank=rank))
    return made(*frames)


@pytest.mark.parametrize("count", [2, 4, 8])
def test_a_rank_whose_own_loss_leaves_the_others_is_the_culprit(count: int) -> None:
    hit = told(ranks(count, odd=1))[0]
    assert (hit.cause, hit.culprits, hit.severity.value) == ("ranks_parted", (1,), "error")
    assert hit.onset.step is not None
    assert abs(hit.onset.step - 51) <= 2
    assert "diverged" not in causes(ranks(count, odd=1))


@pytest.mark.parametrize("odd", [0, 1])
def test_of_two_ranks_with_one_averaged_loss_the_one_that_moves_from_it_is_the_culprit(odd: int) -> None:
    loss = noisy(falling(80))
    frames = [
        rows_of("loss", np.where((np.arange(80) < 50) | (rank != odd), loss, 3 * loss), rank=rank) for rank in (0, 1)
    ]
    found = parted(made(*frames))
    assert found is not None
    assert (found.how, found.odd, found.onset) == ("equal", odd, 50)


@pytest.mark.parametrize("count", [2, 4, 8])
def test_ranks_whose_losses_differ_by_their_data_agree(count: int) -> None:
    assert parted(ranks(count)) is None
    assert told(ranks(count)) == []


def test_all_ranks_that_leave_their_level_together_are_no_disagreement() -> None:
    frames = [rows_of("loss", noisy([*falling(50), *np.full(30, 9.0)], 0.1, seed=r), rank=r) for r in range(4)]
    run = made(*frames)
    assert parted(run) is None
    assert causes(run) == ["level_shift"]


# --- what a loss measures


def test_a_preference_loss_is_judged_and_a_policy_loss_is_not() -> None:
    assert not reinforced(made(**{"loss": [0.69], "rewards/chosen": [0.1], "rewards/margins": [0.1]}))
    assert reinforced(made(**{"loss": [0.1], "rewards/chosen": [0.1], "kl": [0.1]}))
    assert reinforced(made(loss=[0.1], loss_d=[0.1]))


def test_settings_say_that_a_trained_model_is_trained_on() -> None:
    assert tuned(made(loss=[1.0], facts={"model.init_from": "gpt2"}))
    assert not tuned(made(loss=[1.0], facts={"model.init_from": "scratch"}))
    assert paired(made(**{"loss": [1.0], "train/contrastive_loss": [1.0]}))
    assert not paired(made(loss=[1.0]))


def test_a_departure_needs_records_after_it_to_be_named() -> None:
    (one,) = losses(made(loss=[*noisy(falling(100)), 2.4, 2.5]))
    assert one.gone is None or kind_of(one.gone, Limits()) == "unresolved"


@pytest.mark.parametrize("count", [0, 3, 5, 6, 400])
def test_a_rise_is_held_where_the_median_of_it_and_the_four_behind_it_is_above(count: int) -> None:
    excess, limits = np.random.default_rng(count).normal(size=count), Limits()
    least = max(spikes._HELD * limits.spike_z * 0.1, math.log(spikes._HELD_RATIO), 0.0)
    medians = [float(np.median(excess[at : at + 5])) if at + 5 <= count else 0.0 for at in range(count)]
    wanted = [value > least < median for value, median in zip(excess.tolist(), medians, strict=True)]
    assert spikes._held(excess, 0.1, 0.0, limits).tolist() == wanted
    assert any(wanted) or count < 400
