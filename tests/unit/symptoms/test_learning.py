"""A loss that does not do what it should: what it does, the likeliest cause, and what to do first."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

import pytest

from tests.unit.symptoms.kit import report, told, written
from tests.unit.symptoms.logs import (
    ADAPTER,
    Value,
    at,
    cosine,
    falling,
    noisy,
    spread,
    steps,
    supervised,
    trainer,
)

if TYPE_CHECKING:
    from pathlib import Path

COSINE = "lr_scheduler: cosine\n"


def spiky(places: set[int], height: float = 3.0) -> Value:
    """A falling loss with spikes that take two records to come back."""
    calm = noisy(falling(1.9, 0.9), 0.02)
    return lambda n: calm(n) * (height if n in places else (height + 1) / 2 if n - 1 in places else 1.0)


def tuned(folder: Path, values: dict[str, Value], settings: str = ADAPTER, records: int = 300) -> str:
    return told(written(folder, {"train.log": trainer(records, values), "config.yaml": settings}))


def test_spikes_at_the_same_place_of_every_epoch_are_a_sample(tmp_path: Path) -> None:
    text = tuned(tmp_path, supervised(300, spiky({60, 160, 260})), ADAPTER + "sample_packing: true\n")
    assert text.startswith("SUSPECT learning")
    assert "(bad_sample, confidence" in text
    assert "3 of 3 are at the same place of their epochs" in text
    assert "Turn sample packing off for a test" in text


def test_spikes_near_the_peak_of_the_rate_ask_for_a_lower_one_and_a_longer_warm_up(tmp_path: Path) -> None:
    values = supervised(300, spiky({56, 64, 72, 85}), rate=cosine(1e-3, 300, 60))
    text = tuned(tmp_path, values, ADAPTER + "warmup_steps: 60\n")
    assert "(spikes_at_peak_rate, confidence" in text
    assert "Lower the peak learning rate 2 to 5 times" in text
    assert "Lengthen the warm-up of the learning rate (now warmup_steps = 60" in text


@pytest.mark.parametrize("bf16", ["true", "auto"])
def test_spikes_that_share_nothing_name_batch_precision_and_effective_batch(tmp_path: Path, bf16: str) -> None:
    values = supervised(300, spiky({77, 141, 171, 236}, 8.0))
    text = tuned(tmp_path, values, ADAPTER + f"sample_packing: true\nbf16: {bf16}\n")
    assert "(loss_spike, confidence" in text
    assert "Look at the gradient norm and the batch of step" in text
    assert "with sample packing off" in text
    assert "Repeat the steps around the spike in fp32" in text
    assert "the effective batch is 2 x 4 = 8 samples of each device" in text


@pytest.mark.parametrize(("places", "height"), [({77}, 3.0), ({77, 171}, 3.0), ({77, 141, 236}, 2.2)])
def test_few_or_small_spikes_that_recovered_are_no_fault(tmp_path: Path, places: set[int], height: float) -> None:
    assert tuned(tmp_path, supervised(300, spiky(places, height))).startswith("HEALTHY")


def test_a_schedule_made_for_twice_the_steps_is_longer_than_the_run(tmp_path: Path) -> None:
    text = tuned(tmp_path, supervised(200, rate=cosine(2e-4, 400)), ADAPTER + COSINE, 200)
    assert text.startswith("SUSPECT learning")
    assert "at its end, step 200, the rate is 52% of its peak" in text
    assert "Give the scheduler the number of optimizer steps of this run" in text


@pytest.mark.parametrize(("ended", "told_of"), [("Training complete.\n", True), ("", False)])
def test_the_end_of_training_is_the_plan_where_no_line_states_one(tmp_path: Path, ended: str, *, told_of: bool) -> None:
    values = supervised(200, rate=cosine(2e-4, 400))
    run = written(tmp_path, {"train.log": steps(200, **values) + ended, "config.yaml": ADAPTER + COSINE})
    assert ("the schedule is longer than the run" in told(run).lower()) == told_of


@pytest.mark.parametrize("settings", [COSINE, COSINE + "cosine_min_lr_ratio: 0.5\n", "lr_scheduler: constant\n"])
def test_a_schedule_that_ends_with_the_run_or_has_a_lowest_rate_is_not(tmp_path: Path, settings: str) -> None:
    rate = cosine(2e-4, 200 if settings == COSINE else 400)
    assert tuned(tmp_path, supervised(200, rate=rate), ADAPTER + settings, 200).startswith("HEALTHY")


@pytest.mark.parametrize(
    ("first", "last", "cause"),
    [(3.9, 3.4, "eval_shifted"), (0.6, 0.3, "eval_leak"), (1.9, 1.0, ""), (1.7, 0.82, "")],
)
def test_an_evaluation_that_is_apart_from_the_start_is_no_overfitting(
    tmp_path: Path, first: float, last: float, cause: str
) -> None:
    log = trainer(300, supervised(300, noisy(falling(1.9, 0.9, 60), 0.02)), evals=falling(first, last, 60))
    run = written(tmp_path, {"train.log": log, "config.yaml": ADAPTER})
    assert report(run).verdict.cause == cause
    assert ("Decode samples of both sets" in told(run)) == bool(cause)


def test_an_evaluation_far_below_training_says_nothing_where_nobody_fine_tunes_text(tmp_path: Path) -> None:
    log = trainer(300, supervised(300, noisy(falling(4.0, 3.0, 60), 0.02)), evals=falling(2.0, 1.0, 60))
    assert not any(f.rule == "LRN020" for f in report(written(tmp_path, {"train.log": log})).findings)


@pytest.mark.parametrize(("sd", "cause"), [(0.9, "loss_bounces"), (0.03, "not_learning")])
def test_a_rate_that_is_too_high_bounces_and_one_too_low_crawls(tmp_path: Path, sd: float, cause: str) -> None:
    log = steps(300, loss=noisy(lambda n: 7.0 - 0.0003 * n, sd), gnorm=spread(2.0), lr=lambda _: 0.1)
    run = written(tmp_path, {"train.log": log})
    assert report(run).verdict.cause == cause
    assert "too low crawls, too high bounces" in told(run)


@pytest.mark.parametrize(("rise", "cause"), [(0.9, "loss_bounces"), (-2.5, "")])
def test_a_loss_that_bounces_may_rise_by_less_than_two_swings(tmp_path: Path, rise: float, cause: str) -> None:
    log = steps(300, loss=noisy(lambda n: 7.0 + rise * n / 300, 0.9), gnorm=spread(4.0), lr=lambda _: 0.1)
    assert report(written(tmp_path, {"train.log": log})).verdict.cause == cause


@pytest.mark.parametrize(("records", "cause"), [(80, "loss_bounces"), (56, "")])
def test_records_of_swings_around_one_level_bounce_from_sixty_on(tmp_path: Path, records: int, cause: str) -> None:
    log = steps(records, loss=noisy(lambda _: 6.8, 0.9), gnorm=spread(9.0), lr=lambda _: 0.01)
    assert report(written(tmp_path, {"train.log": log + "Training complete.\n"})).verdict.cause == cause


def test_swings_that_would_hide_a_fall_by_a_quarter_do_not_bounce(tmp_path: Path) -> None:
    log = steps(80, loss=noisy(lambda _: 12.0, 3.2), gnorm=spread(9.0), lr=lambda _: 0.01)
    found = report(written(tmp_path, {"train.log": log + "Training complete.\n"})).findings
    assert "loss_bounces" not in {f.cause for f in found}


def unnumbered(loss: Value, rate: Value, records: int = 40, evals: Value | None = None) -> str:
    """Records of the trainer that number no step, and the line of its end."""
    lines = [
        f"{{'loss': {loss(n):.4f}, 'grad_norm': 0.91, 'learning_rate': {rate(n):.3e}, 'epoch': {n / 20:.2f}}}"
        + (f"\n{{'eval_loss': {evals(n):.4f}, 'epoch': {n / 20:.2f}}}" if evals is not None else "")
        for n in range(1, records + 1)
    ]
    return "\n".join((*lines, "{'train_runtime': 142.6, 'train_samples_per_second': 11.2, 'train_loss': 1.21}\n"))


@pytest.mark.parametrize(
    ("settings", "level", "cause"),
    [
        ("weight_decay: 0.3\n", 2.9, "weight_decay_high"),
        ("weight_decay: 0.3\n", 1.6, ""),
        ("weight_decay: 0.05\n", 2.9, ""),
    ],
)
def test_a_flat_loss_above_the_usual_and_a_setting_that_holds_it_are_suspect(
    tmp_path: Path, settings: str, level: float, cause: str
) -> None:
    log = unnumbered(noisy(lambda _: level, 0.02), lambda _: 2e-4)
    of_adapter = "adapter: lora\nlora_r: 8\nlearning_rate: 2e-4\n"
    run = written(tmp_path, {"train.log": log, "config.yaml": of_adapter + settings})
    assert report(run).verdict.cause == cause


@pytest.mark.parametrize(("length", "told_of"), [(80, True), (40, False)])
def test_a_schedule_longer_than_a_run_whose_records_number_no_step_is_told(
    tmp_path: Path, length: int, *, told_of: bool
) -> None:
    log = unnumbered(noisy(falling(2.4, 1.1, 8), 0.02), lambda n: 1e-4 * (1 - n / length))
    run = written(tmp_path, {"train.log": log, "config.yaml": "learning_rate: 1e-4\nlr_scheduler: linear\n"})
    assert ("the schedule is longer than the run: at its end, the rate is" in told(run).lower()) == told_of


@pytest.mark.parametrize(("count", "records", "outcome"), [(4, 60, "SUSPECT"), (3, 60, "HEALTHY"), (4, 100, "HEALTHY")])
def test_large_spikes_that_come_again_and_again_are_suspect(
    tmp_path: Path, count: int, records: int, outcome: str
) -> None:
    places = [records - at for at in (13, 21, 29, 37)[:count]]
    calm = noisy(falling(2.4, 1.1, 8), 0.01)
    log = unnumbered(lambda n: calm(n) * (2.4 if n in places else 1.0), lambda _: 2e-3, records)
    assert told(written(tmp_path, {"train.log": log})).startswith(outcome)


@pytest.mark.parametrize(
    ("first", "last", "cause"), [(3.6, 2.9, "eval_shifted"), (0.9, 0.2, "eval_leak"), (2.6, 1.3, "")]
)
def test_evaluations_at_the_steps_of_the_training_records_are_apart_as_well(
    tmp_path: Path, first: float, last: float, cause: str
) -> None:
    log = unnumbered(noisy(falling(2.6, 1.1, 8), 0.01), lambda _: 2e-4, evals=falling(first, last, 8))
    assert report(written(tmp_path, {"train.log": log, "config.yaml": ADAPTER})).verdict.cause == cause


@pytest.mark.parametrize(("part", "told_of"), [(0.0, True), (200.0, False)])
def test_a_training_loss_that_no_guess_costs_is_of_another_kind_than_that_of_the_evaluation(
    tmp_path: Path, part: float, *, told_of: bool
) -> None:
    learned = noisy(falling(2.6, 1.6, 8), 0.01)
    log = unnumbered(lambda n: learned(n) + part, lambda _: 2e-4, evals=falling(0.3, 0.1, 8))
    found = report(written(tmp_path, {"train.log": log})).findings
    assert ("eval_leak" in {f.cause for f in found}) == told_of


def test_a_curriculum_whose_stages_are_harder_each_time_does_not_bounce(tmp_path: Path) -> None:
    log = steps(300, loss=noisy(lambda n: (4.0 ** (n // 75)) * (3.0 + 4.0 * 0.9 ** (n % 75)), 0.3), gnorm=spread(4.0))
    assert not any(f.cause == "loss_bounces" for f in report(written(tmp_path, {"train.log": log})).findings)


def test_a_noisy_loss_that_falls_does_not_bounce(tmp_path: Path) -> None:
    log = steps(300, loss=noisy(falling(9.0, 5.0, 100), 0.6), gnorm=spread(2.0))
    assert not any(f.rule == "LRN005" for f in report(written(tmp_path, {"train.log": log})).findings)


@pytest.mark.parametrize("says", ["setting", "line"])
@pytest.mark.parametrize(("last", "learned"), [(2.1, False), (0.004, True)])
def test_one_batch_that_is_not_learned_is_a_bug_and_no_tuning(
    tmp_path: Path, last: float, says: str, *, learned: bool
) -> None:
    log = steps(200, loss=falling(2.4, last, 20), gnorm=spread(0.5))
    files = {"train.log": log, "config.json": '{"overfit_batches": 1, "lr": 0.001}'}
    if says == "line":
        files = {"train.log": "Overfitting a single batch of 4 examples\n" + log}
    text = told(written(tmp_path, files))
    assert ("A single batch is not learned by heart: loss is 2.1" in text) != learned
    assert ("Find the bug in the model, the loss or the data before anything is tuned" in text) != learned


def test_two_examples_that_were_not_learned_are_told_by_the_check_itself(tmp_path: Path) -> None:
    log = "step=0 loss=2.3100 gnorm=0.4312\nstep=50 loss=2.2900 gnorm=0.4012\nstep=150 loss=2.2800 gnorm=0.3912\n"
    line = "Failed to overfit 2 examples — check the loop, loss, or model\n"
    text = told(written(tmp_path, {"sanity.log": log + line}))
    assert text.startswith("SUSPECT learning")
    assert "Check the loop, the loss and the labels before tuning anything" in text


@pytest.mark.parametrize(("norm", "cause"), [(2e-6, "weights_too_small"), (0.4, "not_learning")])
def test_a_gradient_norm_next_to_nothing_from_the_start_is_the_initialisation(
    tmp_path: Path, norm: float, cause: str
) -> None:
    run = written(tmp_path, {"train.log": steps(300, loss=noisy(lambda _: 4.605, 0.002), gnorm=spread(norm))})
    assert report(run).verdict.cause == cause
    assert ("He or Xavier" in told(run)) == (cause == "weights_too_small")


def test_a_loss_that_rises_from_the_start_asks_for_rate_and_initialisation(tmp_path: Path) -> None:
    log = trainer(120, supervised(120, noisy(lambda n: 10.8 + min(20.0, 0.4 * n), 0.1), spread(20.0)))
    text = told(written(tmp_path, {"train.log": log}))
    assert "(diverged_from_start, confidence" in text
    assert "Lower the peak learning rate to a tenth" in text
    assert "Check the initialisation" in text


def test_a_loss_that_rises_after_it_fell_asks_for_the_rate_and_no_initialisation(tmp_path: Path) -> None:
    loss = noisy(lambda n: 4.8 - 0.02 * n if n < 150 else 1.8 + min(6.0, 0.05 * (n - 150)), 0.03)
    text = told(
        written(tmp_path, {"train.log": trainer(300, supervised(300, loss, at(range(148, 300), spread(0.6), 3.0)))})
    )
    assert "(diverged, confidence" in text
    assert "Lower the peak learning rate to a half" in text


def test_no_gradient_at_all_asks_for_requires_grad_and_the_optimizer(tmp_path: Path) -> None:
    log = steps(300, loss=noisy(lambda _: 4.6, 0.03), gnorm=lambda _: 0.0)
    text = told(written(tmp_path, {"train.log": log}))
    assert text.startswith("FAILED learning")
    assert "Check requires_grad of the parameters" in text
    assert "the optimizer holds the parameters that should learn" in text


@pytest.mark.parametrize(("epochs", "is_told"), [(22, True), (9, False)])
def test_a_loss_at_chance_after_ten_passes_over_the_data_is_told(tmp_path: Path, epochs: int, is_told: bool) -> None:
    chance = noisy(lambda _: 4.16, 0.0005)
    lines = [f"Epoch {n}/{epochs}\n5/5 - 0s - 34ms/step - loss: {chance(n):.4f}" for n in range(1, epochs + 1)]
    text = told(written(tmp_path, {"train.log": "\n".join(lines) + "\n"}))
    assert ("SUSPECT learning" in text) is is_told


@pytest.mark.parametrize(
    ("level", "norm", "outcome"),
    [(1.9, 3e-7, "suspect"), (1.9, 0.8, "healthy"), (0.05, 3e-7, "healthy")],
)
def test_a_flat_loss_with_next_to_no_gradient_is_a_symptom_at_any_level_that_is_not_learned_by_heart(
    tmp_path: Path, level: float, norm: float, outcome: str
) -> None:
    log = steps(200, loss=noisy(lambda _: level, level / 60), grad_norm=spread(norm)) + "Training complete\n"
    folder = written(tmp_path, {"train.log": log})
    assert report(folder).verdict.outcome.value == outcome
    if outcome == "suspect":
        text = told(folder)
        assert "(weights_too_small, confidence" in text
        assert "nn.init.kaiming_normal_" in text


@pytest.mark.parametrize(("level", "outcome"), [(3.4, "suspect"), (2.4, "healthy")])
def test_a_trained_model_whose_loss_stays_far_above_chat_data_does_not_learn(
    tmp_path: Path, level: float, outcome: str
) -> None:
    values = supervised(240, noisy(lambda _: level, 0.05), rate=cosine(2e-5, 240))
    settings = "model_name_or_path: meta-llama/Llama-3.1-8B\nbf16: true\n"
    folder = written(tmp_path, {"train.log": trainer(240, values), "config.yaml": settings})
    assert report(folder).verdict.outcome.value == outcome


@pytest.mark.parametrize(
    ("line", "is_one_batch"),
    [
        ("sanity check: training on one batch repeatedly", True),
        ("Repeating a single batch", True),
        ("mode: overfit_one_batch (8 samples)", True),
        ("overfit_one_batch             False", False),
        ("training on 12 batches of 8", False),
    ],
)
def test_a_batch_that_is_not_learned_by_heart_is_a_bug(tmp_path: Path, line: str, *, is_one_batch: bool) -> None:
    log = f"{line}\n" + steps(200, loss=noisy(falling(5.1, 1.7), 0.01), grad_norm=spread(1.2))
    text = told(written(tmp_path, {"train.log": log}))
    assert ("is not learned by heart" in text) is is_one_batch


@pytest.mark.parametrize(("level", "cause"), [(3.9, "eval_shifted"), (0.22, "eval_leak"), (1.1, "")])
def test_evaluations_apart_are_told_where_the_base_model_names_its_size(
    tmp_path: Path, level: float, cause: str
) -> None:
    log = trainer(240, supervised(240), evals=noisy(lambda _: level, 0.02))
    folder = written(tmp_path, {"train.log": log, "config.yaml": "model_name_or_path: meta-llama/Llama-3.1-8B\n"})
    assert (report(folder).verdict.cause or "") == cause


@pytest.mark.parametrize(("decay", "cause"), [(25.0, "vanishing_gradients"), (1e9, "not_learning")])
def test_a_loss_that_never_fell_is_the_gradients_where_they_vanish(tmp_path: Path, decay: float, cause: str) -> None:
    norm = noisy(lambda n: 0.9 * exp(-n / decay) + 1e-9, 1e-9)
    log = steps(300, loss=noisy(lambda _: 6.3, 0.003), grad_norm=norm, lr=lambda _: 1e-3)
    verdict = report(written(tmp_path, {"train.log": log})).verdict
    assert verdict.cause == cause


@pytest.mark.parametrize(("share", "at", "cause"), [(1e-9, 30, "lr_zero"), (2e-9, 30, ""), (1e-9, 120, "not_learning")])
def test_a_rate_of_a_billionth_of_its_peak_is_none_and_explains_a_loss_that_stands_from_then_on(
    tmp_path: Path, share: float, at: int, cause: str
) -> None:
    log = steps(200, loss=noisy(lambda _: 8.1, 0.02), lr=lambda n: 1e-3 * (1 if n < at else share))
    assert report(written(tmp_path, {"train.log": log})).verdict.cause == (cause or "not_learning")


def test_a_rate_that_the_program_scales_by_zero_is_told(tmp_path: Path) -> None:
    line = "Setting learning rate to 0.00e+00 = 1 (accumulate_grad_batches) * 0 (num_gpus) * 1 (batchsize)\n"
    text = told(written(tmp_path, {"train.log": line + steps(60, loss=noisy(lambda _: 1.0, 0.01))}))
    assert "The log says that the learning rate is zero" in text
    assert "one is zero (no GPU was counted)" in text
