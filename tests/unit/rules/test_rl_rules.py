"""Rules on reinforcement learning: each trainer's names, and what only looks like a collapse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import nan

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.analyses.rl.ranges import onset_of, stay_of
from forensics.analyses.rl.series import name_table, rl_series
from forensics.knowledge.causes import causes
from forensics.knowledge.ranges import ranges
from forensics.model import Finding, Severity
from forensics.registry import load
from forensics.rules.rl.hidden_nan import hidden_nan
from forensics.stats.trend import together, trend_of
from forensics.store.run import Run, run_of

RULES = [r for r in load("rules").rules if r.id.startswith("RLX")]
FLAT = [0.25, 0.2, 0.3, 0.225] * 10


def made(series: Mapping[str, Sequence[float]], *, source: str = "train.log", every: int = 1) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {
                "source": source,
                "seq": i,
                "line": i + 1,
                "step": (i + 1) * every,
                "name": name,
                "raw_name": name,
                "value": v,
            }
            for name, values in series.items()
            for i, v in enumerate(values)
        ],
        schema_overrides={"value": pl.Float64},
    )


def rl_run(series: Mapping[str, Sequence[float]]) -> Run:
    return run_of("made", {"metrics": made(series)})


def found(run: Run, *, least: Severity = Severity.WARNING) -> list[Finding]:
    every = [f for r in RULES for f in r(run)]
    return [f for f in every if f.severity.rank >= least.rank]


def ids(run: Run) -> list[str]:
    return [f.rule for f in found(run)]


def test_every_row_of_the_table_names_its_source_and_a_rule_that_exists() -> None:
    rows = [r for r in ranges().values() if r.regime == "rl"]
    assert {r.rule for r in ranges().values()} <= {r.id for r in load("rules").rules}
    assert {r.rule for r in rows} <= {r.id for r in RULES}
    assert {r.quantity for r in rows} <= {quantity for quantity, _, _ in name_table()}
    assert all(r.source and r.meaning for r in ranges().values())
    assert all(causes()[r.row].likely for r in rows if r.rule == "RLX008")


@pytest.mark.parametrize(
    ("row", "healthy"),
    [("mfu", "at least 0.15"), ("clipped_ratio", "at most 0.3"), ("grad_norm", "0.001 to 1"), ("length_growth", "")],
)
def test_a_row_says_its_healthy_range_in_words(row: str, healthy: str) -> None:
    assert ranges()[row].healthy == healthy


@pytest.mark.parametrize(
    ("reward", "mark"),
    [
        ("critic/score/mean", "actor/pg_loss"),
        ("reward", "response_length"),
        ("train/rewards/exact/mean", "train/frac_reward_zero_std"),
        ("objective/scores", "objective/kl"),
        ("reward", "kl"),
        ("mean_reward", "kl_ref"),
        ("mean_reward", "policy/kl_to_ref"),
    ],
)
def test_a_dead_reward_is_found_under_the_names_of_each_trainer(reward: str, mark: str) -> None:
    [hit] = found(rl_run({reward: [0.0] * 30, mark: FLAT[:30]}), least=Severity.ERROR)
    assert (hit.rule, hit.cause, hit.onset.step) == ("RLX001", "reward_zero", 1)


def test_a_reward_that_becomes_zero_for_good_is_found_where_it_does() -> None:
    [hit] = found(rl_run({"rewards/exact/mean": [*FLAT, *[0.0] * 25]}), least=Severity.ERROR)
    assert (hit.onset.step_lo, hit.onset.step) == (40, 41)


def test_twenty_zero_rewards_after_mostly_zero_rewards_are_a_sparse_reward() -> None:
    assert ids(rl_run({"rewards/exact/mean": [0.0, 0.0, 0.5, 0.0] * 10 + [0.0] * 22})) == []


def test_a_reward_of_mean_zero_whose_answers_differ_is_no_dead_reward() -> None:
    assert "RLX001" not in ids(rl_run({"reward": [0.0] * 40, "reward_std": FLAT, "completions/mean_length": FLAT}))


def test_one_dead_function_beside_one_that_pays_is_a_warning() -> None:
    [hit] = found(rl_run({"rewards/format/mean": [0.0] * 40, "rewards/exact/mean": FLAT, "reward": FLAT}))
    assert (hit.rule, hit.severity) == ("RLX001", Severity.WARNING)


@pytest.mark.parametrize(("records", "dead"), [(40, True), (20, False)])
def test_a_record_without_a_step_is_of_one_step_at_least(records: int, *, dead: bool) -> None:
    rows = made({"reward": [0.0] * records, "kl": FLAT[:records]}).with_columns(step=pl.lit(None, dtype=pl.Int64))
    assert ("RLX001" in ids(run_of("made", {"metrics": rows}))) is dead


def test_a_penalty_that_is_never_due_is_only_a_remark() -> None:
    run = rl_run({"rewards/overlong_penalty/mean": [0.0] * 40, "rewards/exact/mean": FLAT, "reward": FLAT})
    assert ids(run) == []
    assert "RLX001" in [f.rule for f in found(run, least=Severity.INFO)]


def test_a_task_that_is_solved_at_the_end_is_only_a_remark() -> None:
    spread, none = [0.3] * 24 + [0.0] * 20, [0.2] * 24 + [1.0] * 20
    run = rl_run({"reward": [0.4] * 24 + [1.0] * 20, "reward_std": spread, "frac_reward_zero_std": none})
    assert ids(run) == []
    assert "task_exhausted" in [f.cause for f in found(run, least=Severity.INFO)]


def test_a_reward_without_a_reference_or_a_length_is_one_of_episodes() -> None:
    rose = [0.2 + 0.01 * (at % 3) + 0.01 * min(at, 60) for at in range(120)]
    fell = [*rose[:80], *(value / 8 for value in rose[80:])]
    assert ids(rl_run({"mean_reward": fell, "entropy": FLAT * 3})) == ["RLX012"]
    assert ids(rl_run({"mean_reward": rose, "entropy": FLAT * 3})) == []


@pytest.mark.parametrize(
    "series",
    [
        {"rewards/chosen": [0.0] * 60, "rewards/rejected": [0.0] * 60, "entropy": [0.001] * 60, "loss": [0.69] * 60},
        {"loss": [1.5] * 60, "entropy": [1.9] * 60, "grad_norm": [30.0] * 60},
        {"reward": [0.0] * 60, "episode_length": [200.0] * 60, "entropy": [0.001] * 60},
        {"rewards/chosen": [0.0] * 60, "kl": [9.0] * 60, "entropy": [0.001] * 60},
    ],
    ids=["preference tuning", "supervised fine-tuning", "a game", "preference tuning with a KL"],
)
def test_what_is_no_reinforcement_learning_on_a_language_model_is_not_judged(series: dict[str, list[float]]) -> None:
    assert rl_series(rl_run(series), "reward", "entropy", "grad_norm") == ()
    assert found(rl_run(series), least=Severity.INFO) == []


def test_a_kl_and_an_entropy_that_are_not_computed_are_no_collapse() -> None:
    run = rl_run({"reward": FLAT, "completions/mean_length": FLAT, "kl": [0.0] * 40, "entropy": [0.0] * 40})
    assert ids(run) == []


def test_evaluations_are_not_mixed_with_training() -> None:
    run = rl_run({"frac_reward_zero_std": FLAT, "eval_rewards/exact/mean": [0.0] * 40, "eval/kl": [9.0] * 40})
    assert ids(run) == []


def test_an_entropy_that_collapses_while_the_reward_rises_is_a_warning_and_else_an_error() -> None:
    low = [0.4] * 20 + [0.003] * 40
    rising = [0.01 * i for i in range(60)]
    flat = (FLAT * 2)[:60]
    for reward, severity in ((rising, Severity.WARNING), (flat, Severity.ERROR)):
        run = rl_run({"completions/mean_length": [200.0] * 60, "entropy": low, "reward": reward})
        [hit] = [f for f in found(run) if f.rule == "RLX003"]
        assert (hit.severity, hit.onset.step) == (severity, 21)


def test_an_entropy_that_falls_at_once_but_not_to_nothing_is_a_warning() -> None:
    run = rl_run({"completions/mean_length": [200.0] * 80, "entropy": [0.4] * 40 + [0.03] * 40})
    [hit] = [f for f in found(run) if f.rule == "RLX003"]
    assert hit.severity is Severity.WARNING
    assert hit.onset.step == 41


@pytest.mark.parametrize(("began", "told"), [(0.6, ["RLX008"]), (1.4, [])])
def test_an_entropy_that_rose_within_the_first_of_few_records_does_not_settle(began: float, told: list[str]) -> None:
    rises = [1.7 - (1.7 - began) * 0.85**i for i in range(48)]
    rewarded = [0.1 + 0.01 * i for i in range(48)]
    step = range(40, 40 * 49, 40)
    metrics = made({"completions/mean_length": [200.0] * 48, "reward": rewarded, "entropy": rises})
    steps = pl.col("step").replace_strict(dict(zip(range(1, 49), step, strict=True)), return_dtype=pl.Int64)
    assert ids(run_of("made", {"metrics": metrics.with_columns(step=steps)})) == told


def test_a_kl_that_shoots_up_late_is_a_warning_before_it_is_far() -> None:
    values = [0.05 + 0.001 * i for i in range(60)] + [0.11 * 1.06**i for i in range(40)]
    run = rl_run({"completions/mean_length": [200.0] * 100, "kl": values})
    assert ids(run) == ["RLX004"]


def test_length_that_the_reward_pays_for_is_called_so() -> None:
    length = [min(100.0 + 10 * i, 500.0) for i in range(60)]
    run = rl_run(
        {
            "completions/mean_length": length,
            "completions/max_length": [512.0] * 60,
            "reward": [v / 1000 + 0.01 * (i % 3) for i, v in enumerate(length)],
        }
    )
    assert [f.cause for f in found(run)] == ["length_hacking"]


def test_a_configured_maximum_is_taken_from_the_facts() -> None:
    metrics = made({"completions/mean_length": [min(100.0 + 10 * i, 500.0) for i in range(60)]})
    for limit, expected in (("512", ["RLX006"]), ("4096", [])):
        facts = pl.DataFrame({"source": ["c.yaml"], "key": ["trl.max_completion_length"], "value": [limit]})
        assert ids(run_of("made", {"metrics": metrics, "facts": facts})) == expected


def test_single_points_beyond_a_bound_are_never_a_finding() -> None:
    spiky = [50.0 if i % 9 == 0 else 0.2 for i in range(90)]
    seldom = [50.0 if i % 40 == 0 else 0.2 for i in range(90)]
    run = rl_run(
        {
            "completions/mean_length": [200.0] * 90,
            "grad_norm": seldom,
            "kl": spiky,
            "clip_ratio": [v / 4 for v in spiky],
        }
    )
    assert ids(run) == []


def test_what_recovered_is_not_told() -> None:
    run = rl_run({"completions/mean_length": [200.0] * 90, "kl": [0.1] * 20 + [5.0] * 30 + [0.1] * 40})
    assert ids(run) == []


def test_one_metric_in_two_stores_is_one_finding() -> None:
    series = {"kl": [5.0] * 40, "completions/mean_length": [200.0] * 40}
    twice = pl.concat([made(series), made({f"train/{k}": v for k, v in series.items()}, source="events.tfevents")])
    assert [f.rule for f in found(run_of("made", {"metrics": twice}))] == ["RLX004"]


def test_nan_values_do_not_hide_the_rest_of_a_series() -> None:
    run = rl_run(
        {"completions/mean_length": [200.0] * 60, "kl": [float("nan") if i % 4 == 0 else 5.0 for i in range(60)]}
    )
    assert ids(run) == ["RLX004"]


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(1, 30))
def test_a_stay_begins_after_its_last_break(held: list[bool], last: int) -> None:
    stay = stay_of(pl.Series(held), last=last)
    assert all(held[stay.onset :])
    assert stay.onset == 0 or not held[stay.onset - 1]
    assert 0 <= stay.share <= 1


@given(st.lists(st.booleans(), min_size=20, max_size=80))
def test_an_onset_lies_inside_its_series(held: list[bool]) -> None:
    values = pl.Series(held)
    assert 0 <= onset_of(values, values, last=20, window=10) < len(held)


@given(st.lists(st.floats(-5, 5), min_size=40, max_size=90, unique=True))
def test_a_sorted_series_has_the_strongest_trend(values: list[float]) -> None:
    up, down = trend_of(np.array(sorted(values))), trend_of(np.array(sorted(values, reverse=True)))
    assert up is not None
    assert down is not None
    assert (up.tau, down.tau) == (1.0, -1.0)


def test_a_flat_series_correlates_with_nothing() -> None:
    a = pl.DataFrame({"at": [1, 2, 3, 4], "value": [1.0, 2.0, 3.0, 4.0]})
    assert together(a, a.with_columns(value=pl.lit(1.0))) == 0.0
    assert together(a, a) == pytest.approx(1.0)


COLLAPSED = [*range(20, 200, 12), 195.0, 160.0, 90.0, 40.0, 30.0, 28.0, 31.0, 29.0, 30.0]
EPISODES = [
    "rollout/ep_rew_mean", "ep_rewmean", "episode_reward_mean", "env_runners/episode_return_mean",
    "charts/episodic_return", "AverageEpRet", "Environment/Cumulative Reward", "EpRewMean", "Mean episode reward",
    "mean_return", "Average reward", "Last reward", "avg_reward_100", "score", "avg score", "rew", "Average Score",
    "total_reward", "mean return (100)", "avg_return_100", "ret",
]  # fmt: skip


@pytest.mark.parametrize("name", EPISODES)
def test_an_episode_reward_that_is_lost_is_found_under_the_name_of_each_library(name: str) -> None:
    only = [f for f in found(rl_run({name: COLLAPSED})) if f.rule == "RLX012"]
    assert [f.cause for f in only] == ["episode_reward_falls"]
    assert only[0].onset.step is not None
    assert 17 <= only[0].onset.step <= 19


@pytest.mark.parametrize(("end", "told"), [(-0.8, ["episode_reward_falls"]), (0.9, [])])
def test_a_reward_that_rose_a_little_and_fell_far_below_its_start_has_collapsed(end: float, told: list[str]) -> None:
    rewards = [*(0.85 + at / 300 + at % 3 / 300 for at in range(60)), *(end + at % 3 / 300 for at in range(60))]
    assert [f.cause for f in found(rl_run({"mean_return": rewards})) if f.rule == "RLX012"] == told


#: Rises by 210 and loses 60 of it, which is none of a collapse alone.
HALF = [*(-200 + 4 * at + at % 3 for at in range(53)), *(11 - min(60, 2 * at) + at % 3 for at in range(100))]


@pytest.mark.parametrize(
    ("entropy", "told"),
    [
        ([1.4] * 40 + [1.4 * 0.9**at for at in range(113)], ["entropy_collapse"]),
        ([1.4] * 40 + [1.4 * 0.985**at for at in range(113)], []),
        ([1.4] * 40 + [1.4 - at / 20 for at in range(113)], []),
        (None, []),
    ],
)
def test_a_policy_without_entropy_does_not_find_back_to_what_it_earned(
    entropy: list[float] | None, told: list[str]
) -> None:
    other = {} if entropy is None else {"policy entropy": entropy}
    assert [f.cause for f in found(rl_run({"mean_return": HALF, **other})) if f.rule == "RLX012"] == told


@pytest.mark.parametrize(
    "name", ["eval/episode_reward_mean", "episode_reward_max", "Episode_Reward/lin_vel", "fps", "max_return"]
)
def test_a_part_or_an_evaluation_of_an_episode_reward_is_not_the_reward(name: str) -> None:
    assert "RLX012" not in ids(rl_run({name: COLLAPSED}))


def test_a_mean_reward_is_one_of_episodes_beside_their_length_only() -> None:
    assert "RLX012" in ids(rl_run({"Mean reward": COLLAPSED, "Mean episode length": [200.0] * len(COLLAPSED)}))
    assert "RLX012" not in ids(rl_run({"Mean reward": COLLAPSED}))


def test_a_score_is_a_reward_only_where_no_loss_is_printed() -> None:
    losses = [3 - at / 40 for at in range(len(COLLAPSED))]
    assert "RLX012" not in ids(rl_run({"score": COLLAPSED, "loss": losses}))
    assert "RLX012" in ids(rl_run({"average_reward": COLLAPSED, "loss": losses}))


def test_an_episode_reward_that_dips_and_comes_back_is_no_fall() -> None:
    assert "RLX012" not in ids(rl_run({"episode_reward_mean": [*COLLAPSED, *range(40, 200, 10), *([195.0] * 10)]}))


def test_updates_that_move_the_policy_far_explain_the_fall_of_its_reward() -> None:
    beside = {"ep_rew_mean": COLLAPSED, "approx_kl": [0.08] * len(COLLAPSED)}
    near = {"ep_rew_mean": COLLAPSED, "approx_kl": [0.008] * len(COLLAPSED)}
    assert [f.cause for f in found(rl_run(beside)) if f.rule == "RLX012"] == ["policy_steps_large"]
    assert [f.cause for f in found(rl_run(near)) if f.rule == "RLX012"] == ["episode_reward_falls"]


@pytest.mark.parametrize("module", ["info/learner/default_policy/learner_stats", "learners/default_policy"])
def test_a_learner_of_rllib_names_its_policy_and_its_updates_below_its_module(module: str) -> None:
    still = {"episode_reward_mean": [21.0, 22.0] * 30, f"{module}/entropy": [0.693] * 60}
    assert "RLX016" in ids(rl_run(still))
    far = {"episode_reward_mean": COLLAPSED, f"{module}/mean_kl_loss": [0.08] * len(COLLAPSED)}
    assert [f.cause for f in found(rl_run(far)) if f.rule == "RLX012"] == ["policy_steps_large"]
    weight = {"episode_reward_mean": COLLAPSED, f"{module}/curr_kl_coeff": [0.08] * len(COLLAPSED)}
    assert [f.cause for f in found(rl_run(weight)) if f.rule == "RLX012"] == ["episode_reward_falls"]


def test_few_answers_that_all_earn_nothing_are_told_without_certainty() -> None:
    few = {"completions/mean_length": [396.0] * 6, "reward": [0.375, *[0.0] * 5], "reward_std": [0.5, *[0.0] * 5]}
    only = [f for f in found(rl_run(few)) if f.rule == "RLX001"]
    assert [(f.severity, f.confidence.value, f.onset.step) for f in only] == [(Severity.WARNING, "low", 2)]


def test_four_answers_that_earn_nothing_or_one_that_is_paid_tell_nothing() -> None:
    four = {"completions/mean_length": [396.0] * 4, "reward": [0.0] * 4, "reward_std": [0.0] * 4}
    paid = {"completions/mean_length": [396.0] * 6, "reward": [0.0] * 5 + [0.125], "reward_std": [0.0] * 5 + [0.3]}
    assert ids(rl_run(four)) == []
    assert ids(rl_run(paid)) == []


LONG = 262.0
SLOW = [100 + n / 10 for n in range(60)]


@pytest.mark.parametrize(
    ("lengths", "onset"),
    [
        ([100 + 4.0 * n for n in range(41)], 1),
        ([*SLOW, *(106 + 7.7 * n for n in range(20)), *(260 + n / 40 for n in range(40))], 65),
        ([*SLOW[:30], *(259 + n / 30 for n in range(90))], 31),
    ],
    ids=["all along", "late", "at once"],
)
def test_answers_that_grow_at_last_grew_from_there_on(lengths: list[float], onset: int) -> None:
    rows = {"completions/mean_length": lengths, "completions/max_length": [LONG] * len(lengths)}
    only = [f for f in found(rl_run(rows)) if f.rule == "RLX006"]
    assert [f.onset.step for f in only] == [pytest.approx(onset, abs=1)]


@pytest.mark.parametrize(("at", "onset"), [(130, 133), (100, 103), (None, 81)])
def test_a_reward_that_is_lost_at_once_fell_there(at: int | None, onset: int) -> None:
    rewards = [0.6 - 0.0001 * n - 0.035 * min(max(0, n - at), 15) if at else 0.6 - 0.003 * n for n in range(1, 161)]
    rows = {"reward": rewards, "kl": [0.01] * 160, "completions/mean_length": [200.0] * 160}
    only = [f for f in found(rl_run(rows)) if f.rule == "RLX009"]
    assert [f.onset.step for f in only] == [pytest.approx(onset, abs=1)]


@pytest.mark.parametrize(("lost", "told"), [(6, ["kl"]), (9, ["kl"]), (99, [])])
def test_what_an_event_file_holds_in_records_of_their_own_is_laid_side_by_side_by_its_step(
    lost: int, told: list[str]
) -> None:
    values: dict[str, Callable[[int], float]] = {
        "frac_reward_zero_std": lambda _: 0.2,
        "loss": lambda _: 0.01,
        "kl": lambda n: nan if n >= lost else 0.02,
    }
    rows = [
        {"source": "events", "seq": 9 * n + place, "step": n, "name": name, "raw_name": name, "value": value(n)}
        for n in range(10)
        for place, (name, value) in enumerate(values.items())
    ]
    found = list(hidden_nan(run_of("run", {"metrics": pl.DataFrame(rows)})))
    assert [f.title.split()[0] for f in found] == told


@pytest.mark.parametrize(
    ("entropy", "reward", "told"),
    [
        ([0.011, *[0.0] * 9], [20.0, *[15.0] * 9], True),
        ([0.011, *[0.0] * 9], [20.0, *[15.1] * 9], False),  # a quarter less is lost
        ([0.1, *[0.0] * 9], [20.0, *[26.6] * 9], True),  # a quarter of it more has risen
        ([0.1, *[0.0] * 9], [20.0, *[26.7] * 9], False),
        ([0.099, *[0.0] * 9], [20.0] * 10, False),  # it began with what it had learned
        ([0.5] * 5 + [0.001] * 5, [20.0] * 10, True),
        ([0.5] * 5 + [0.0011] * 5, [20.0] * 10, False),
        ([0.5] * 6 + [0.0] * 5, [20.0] * 11, False),  # less than half of the run
        ([0.5] * 4 + [0.0] * 4, [20.0] * 8, False),  # four are too few
    ],
)
def test_a_policy_without_a_choice_is_told_where_the_reward_did_not_rise(
    entropy: list[float], reward: list[float], *, told: bool
) -> None:
    run = rl_run({"entropy_loss": entropy, "rollout/ep_rew_mean": reward, "rollout/ep_len_mean": reward})
    assert any(f.rule == "RLX014" for f in found(run)) is told


@pytest.mark.parametrize(
    ("records", "at", "left", "told"),
    [
        (200, 0.78, 0.05, True),
        (200, 0.78, 0.14, True),
        (200, 0.78, 0.16, False),  # 0.85 of the gain is lost
        (200, 0.95, 0.05, False),  # the last tenth is not all down
        (40, 0.85, 0.05, True),
        (39, 0.85, 0.05, False),
    ],
)
def test_a_reward_that_collapses_within_the_last_quarter_is_told(
    records: int, at: float, left: float, *, told: bool
) -> None:
    begun = [0.0] * (records // 10)
    height = [*begun, *(1.0 if n < at * records else left for n in range(len(begun), records))]
    reward = [100 * level for level in height]
    run = rl_run({"episode_return_mean": reward})
    assert any(f.rule == "RLX012" for f in found(run)) is told
