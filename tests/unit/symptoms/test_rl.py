"""Reinforcement learning that stopped learning: the metric that says so, and its remedy."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

import pytest

from tests.unit.symptoms.kit import report, told, written
from tests.unit.symptoms.logs import Value, noisy, spread, steps, trainer

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = """\
rl: grpo
learning_rate: 1e-6
gradient_accumulation_steps: 2
trl:
  temperature: 1.3
  num_generations: 8
  vllm_sync_interval: 16
"""


def policy(**changed: Value) -> dict[str, Value]:
    """What a policy that learns logs, with what is given in its place; `/` is written `__`."""
    healthy: dict[str, Value] = {
        "loss": noisy(lambda _: 0.0, 0.01),
        "grad_norm": spread(0.3),
        "num_tokens": lambda n: 1000.0 * (n + 1),
        "completions/mean_length": noisy(lambda _: 200.0, 5.0),
        "rewards/accuracy/mean": noisy(lambda n: min(0.7, 0.1 + 0.005 * n), 0.03),
        "reward": noisy(lambda n: min(0.7, 0.1 + 0.005 * n), 0.03),
        "reward_std": noisy(lambda _: 0.3, 0.02),
        "entropy": noisy(lambda n: 0.4 - 0.001 * n, 0.01),
        "sampling/sampling_logp_difference/mean": noisy(lambda _: 0.02, 0.002),
    }
    return healthy | {name.replace("__", "/"): value for name, value in changed.items()}


def run_of(folder: Path, **changed: Value) -> Path:
    return written(folder, {"train.log": trainer(200, policy(**changed), epochs=1), "config.yaml": SETTINGS})


def test_a_policy_that_learns_is_healthy(tmp_path: Path) -> None:
    assert told(run_of(tmp_path)).startswith("HEALTHY")


def test_a_high_entropy_without_a_rising_reward_lowers_the_temperature(tmp_path: Path) -> None:
    flat = noisy(lambda _: 0.2, 0.03)
    text = told(run_of(tmp_path, entropy=noisy(lambda _: 1.6, 0.05), reward=flat, rewards__accuracy__mean=flat))
    assert text.startswith("SUSPECT learning")
    assert "(entropy_high, confidence" in text
    assert "Lower the sampling temperature (now trl.temperature = 1.3" in text


@pytest.mark.parametrize(("first", "told_of"), [(0.6, True), (1.3, False)])
def test_an_entropy_that_rises_within_its_first_steps_rose_from_where_it_began(
    tmp_path: Path, first: float, *, told_of: bool
) -> None:
    text = told(run_of(tmp_path, entropy=noisy(lambda n: 1.5 + (first - 1.5) * exp(-n / 20), 0.02)))
    assert ("(entropy_high, confidence" in text) is told_of


def test_a_large_entropy_of_a_policy_whose_reward_rises_is_no_symptom(tmp_path: Path) -> None:
    assert told(run_of(tmp_path, entropy=noisy(lambda _: 1.6, 0.05))).startswith("HEALTHY")


@pytest.mark.parametrize(("every", "outcome"), [(9, "SUSPECT"), (60, "HEALTHY")])
def test_a_gradient_norm_above_ten_in_one_record_of_nine_is_regular(tmp_path: Path, every: int, outcome: str) -> None:
    calm = spread(0.5)
    text = told(run_of(tmp_path, grad_norm=lambda n: 40.0 if n % every == 4 else calm(n)))
    assert text.startswith(outcome)
    assert ("Raise the gradient accumulation" in text) == (every == 9)
    assert ("Lower the learning rate (now learning_rate = 1e-6" in text) == (every == 9)


def test_a_sampler_that_lags_is_synced_more_often_masked_and_corrected(tmp_path: Path) -> None:
    lag = noisy(lambda n: max(0.02, (n - 50) * 0.05), 0.002)
    text = told(run_of(tmp_path, sampling__sampling_logp_difference__mean=lag))
    assert "(sampler_divergence, confidence" in text
    assert "Sync the sampler's weights more often" in text
    assert "now trl.vllm_sync_interval = 16" in text
    assert "off_policy_mask_threshold 0.5" in text
    assert "importance_sampling_level: token" in text


def test_a_reward_that_stays_zero_checks_the_function_its_columns_and_the_served_model(tmp_path: Path) -> None:
    nothing: Value = lambda _: 0.0  # noqa: E731 - a value as the others
    text = told(run_of(tmp_path, reward=nothing, rewards__accuracy__mean=nothing, reward_std=nothing))
    assert text.startswith("FAILED learning")
    assert "Call the reward function outside of the training" in text
    assert "the sampler (vLLM) serves the configured model (curl HOST/v1/models)" in text


@pytest.mark.parametrize(("solved_at", "outcome"), [(30, "SUSPECT"), (150, "HEALTHY")])
def test_a_task_that_was_solved_in_the_first_half_wastes_the_rest(tmp_path: Path, solved_at: int, outcome: str) -> None:
    def reward(n: int) -> float:
        return min(1.0, 0.4 + 0.6 * n / solved_at)

    left: Value = lambda n: max(0.0, 0.3 * (1 - n / solved_at))  # noqa: E731 - a value as the others
    text = told(run_of(tmp_path, reward=reward, rewards__accuracy__mean=reward, reward_std=left))
    assert text.startswith(outcome)
    assert ("fix Give harder prompts, or stop here" in text) == (outcome == "SUSPECT")


@pytest.mark.parametrize(
    ("first", "slope", "cause"), [(0.12, 0.0, "ebft_alignment_low"), (0.1, 0.0008, ""), (0.5, 0.0, "")]
)
def test_an_alignment_below_its_range_is_excused_only_while_it_rises(
    tmp_path: Path, first: float, slope: float, cause: str
) -> None:
    values = {
        "loss": noisy(lambda n: 3.0 - 0.01 * n, 0.01),
        "grad_norm": spread(0.4),
        "ebft/alignment": noisy(lambda n: first + slope * n, 0.01),
        "ebft/diversity": noisy(lambda _: 0.05, 0.003),
        "ebft/cfm_loss": noisy(lambda n: 6 - 0.02 * n, 0.1),
    }
    run = written(tmp_path, {"train.log": trainer(200, values, epochs=1)})
    assert report(run).verdict.cause == cause
    assert ("Check the reference features" in told(run)) == bool(cause)


def test_names_with_slashes_are_read_from_lines_of_key_and_value(tmp_path: Path) -> None:
    lag = noisy(lambda n: max(0.02, (n - 50) * 0.05), 0.002)
    values = {**policy(sampling__sampling_logp_difference__mean=lag), "gnorm": spread(0.3)}
    values.pop("grad_norm")
    run = written(tmp_path, {"train.log": steps(200, **values), "config.yaml": SETTINGS})
    assert report(run).verdict.cause == "sampler_divergence"
    assert "sampling/sampling_logp_difference/mean is" in told(run)


@pytest.mark.parametrize(("spread_of_rewards", "cause"), [(0.0, "reward_zero"), (0.3, "no_gradients")])
def test_a_gradient_of_zero_is_by_design_where_no_answer_has_an_advantage(
    tmp_path: Path, spread_of_rewards: float, cause: str
) -> None:
    nothing: Value = lambda _: 0.0  # noqa: E731 - a value as the others
    paid: Value = nothing if spread_of_rewards == 0 else noisy(lambda _: 0.3, 0.02)
    loss = noisy(lambda _: 0.2, 0.004)
    values = policy(
        loss=loss, grad_norm=nothing, reward_std=lambda _: spread_of_rewards, reward=paid, rewards__accuracy__mean=paid
    )
    run = written(tmp_path, {"train.log": steps(200, **values), "config.yaml": SETTINGS})
    assert report(run).verdict.cause == cause


FLAT = noisy(lambda _: 0.2, 0.03)


def table(records: int, **values: Value) -> str:
    """A CSV of the values."""
    rows = (f"{n + 1}," + ",".join(f"{value(n):.6g}" for value in values.values()) for n in range(records))
    return "\n".join(("step," + ",".join(values), *rows)) + "\n"


#: What a table logs beside loss and reward, the settings beside it, and the cause of the verdict.
TABLES: list[tuple[dict[str, Value], str, str]] = [
    ({"entropy": lambda n: max(0.006, 0.4 - 0.005 * n)}, SETTINGS, "entropy_collapse"),
    ({"entropy": lambda n: max(0.006, 0.4 - 0.005 * n)}, "", ""),
    ({"entropy": lambda n: 0.4 - 0.001 * n}, SETTINGS, ""),
    ({"entropy": lambda n: 0.1 - 0.005 * n}, SETTINGS, ""),
    (
        {"policy/entropy": lambda n: 0.4 if n < 90 else 0.005, "objective/kl": lambda _: 0.02},
        "",
        "entropy_collapse",
    ),
    ({"reward_std": lambda _: 0.0}, "", "no_advantage"),
    ({"grad_norm": spread(18.0)}, SETTINGS, "grad_norm"),
    ({"grad_norm": spread(18.0)}, "", ""),
]


@pytest.mark.parametrize(("values", "settings", "cause"), TABLES)
def test_a_reward_beside_its_spread_or_the_settings_say_that_a_policy_is_trained(
    tmp_path: Path, values: dict[str, Value], settings: str, cause: str
) -> None:
    rises = noisy(lambda n: 0.1 + 0.003 * n, 0.03)
    files = {"metrics.csv": table(150, loss=noisy(lambda _: 0.02, 0.01), reward=rises, **values)}
    assert report(written(tmp_path, files | {"config.yaml": settings} if settings else files)).verdict.cause == cause


def test_a_policy_that_plays_is_not_told_of_prompts(tmp_path: Path) -> None:
    games: dict[str, Value] = {
        "mean_return": lambda n: (-200 + 4 * n if n < 53 else 11 - min(60, 2 * n - 106)) + n % 3,
        "policy_entropy": lambda n: 1.4 * 0.9 ** max(0, n - 40),
    }
    text = told(written(tmp_path / "games", {"metrics.csv": table(153, **games)}))
    assert "(entropy_collapse" in text
    assert "Raise the entropy bonus (ent_coef" in text
    assert "temperature" not in text
    entropy: Value = lambda n: 0.4 if n < 90 else 0.005  # noqa: E731 - a value
    text = told(
        written(tmp_path / "answers", {"metrics.csv": table(150, reward=FLAT, kl=lambda _: 0.02, entropy=entropy)})
    )
    assert "Raise the sampling temperature" in text


@pytest.mark.parametrize(("level", "cause"), [(0.9, "kl_high"), (0.4, "")])
def test_a_divergence_between_its_healthy_range_and_its_red_flag_is_suspect(
    tmp_path: Path, level: float, cause: str
) -> None:
    text = told(run_of(tmp_path, kl=noisy(lambda n: level * (0.8 + 0.001 * n), 0.02)))
    assert text.startswith("SUSPECT" if cause else "HEALTHY")
    assert ("Raise the KL penalty (beta), or lower the learning rate" in text) == bool(cause)


def test_a_reward_that_does_not_rise_beside_a_red_flag_is_its_consequence(tmp_path: Path) -> None:
    spreads = run_of(
        tmp_path, entropy=noisy(lambda n: 0.4 + 0.012 * n, 0.03), reward=FLAT, rewards__accuracy__mean=FLAT
    )
    assert report(spreads).verdict.cause == "entropy_high"


@pytest.mark.parametrize("many", [False, True])
def test_a_chart_of_one_run_prints_the_names_of_its_metrics(tmp_path: Path, *, many: bool) -> None:
    names = ["vague-sun-12 - train/reward", "vague-sun-12 - train/reward_std"] + ["calm-sea-3 - train/reward"] * many
    rows = (f"{n}," + ",".join((f"{0.5 + n % 3 / 100}", "0", "0.5")[: len(names)]) for n in range(90))
    text = "\n".join((",".join(f'"{name}"' for name in ("Step", *names)), *rows)) + "\n"
    said = told(written(tmp_path, {"chart.csv": text}))
    assert ("train/reward_std is 0 from step 0 on" in said) is not many


@pytest.mark.parametrize(("interval", "coarse"), [(25, True), (1, False)])
def test_of_records_that_name_no_step_the_settings_tell_how_rare_they_are(
    tmp_path: Path, interval: int, *, coarse: bool
) -> None:
    lines = [f"{{'loss': 0.02, 'reward': 0.3{n}, 'entropy': 0.8, 'epoch': 0.{n:02d}}}\n" for n in range(9)]
    files = {"train.log": "".join(lines), "config.yaml": f"{SETTINGS}logging_steps: {interval}\n"}
    assert ("one record for every 25 steps" in told(written(tmp_path, files))) is coarse
