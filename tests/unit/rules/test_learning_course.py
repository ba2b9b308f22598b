"""Spikes, jumps, plateaus, learning rates and gradient norms of single curves."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.analyses.learning.levels import WINDOW, level_of, levels_of
from forensics.analyses.learning.limits import Limits
from forensics.analyses.learning.lr_config import adapter_of, configured
from forensics.analyses.learning.lr_schedule import schedule_of
from forensics.case.curves.loss import beside, curves
from forensics.case.progress import ledger
from forensics.diagnosis.precedence import leads, preference
from forensics.model import EvidenceRole, Finding, Severity
from forensics.registry import load
from forensics.rules.learning.updates import gradients
from forensics.stats.correlation import noise_about
from forensics.stats.running import centred_median, past_median
from forensics.store.run import Run, run_of

RULES = {rule.id: rule for rule in load("rules").rules}


def run_with(
    facts: dict[str, str] | None = None, first_step: int = 1, every: int = 1, **series: np.ndarray | list[float]
) -> Run:
    frames = [
        pl.DataFrame({"value": np.asarray(values, dtype=float)}).with_columns(
            source=pl.lit("a.log"),
            seq=pl.int_range(pl.len()),
            step=pl.int_range(pl.len()) * every + first_step,
            name=pl.lit(name),
            raw_name=pl.lit(name),
        )
        for name, values in series.items()
    ]
    facts = facts or {}
    said = pl.DataFrame(
        {"source": "c.yaml", "key": list(facts), "value": list(facts.values()), "family": "config"},
        schema_overrides={"key": pl.String, "value": pl.String},
    )
    return run_of("made", {"metrics": pl.concat(frames)} | ({"facts": said} if facts else {}))


def said(rule_id: str, run: Run) -> list[Finding]:
    rule = RULES[rule_id]
    return list(rule(run))


def noisy(level: np.ndarray, sd: float = 0.01) -> np.ndarray:
    return level * np.exp(sd * np.random.default_rng(5).standard_normal(len(level)))


FALLING = noisy(2 + 5 * np.exp(-np.arange(200) / 30))
FLAT = noisy(np.full(200, 4.5))


def test_a_spike_that_lasts_three_records_is_noted_with_its_height() -> None:
    loss = FALLING.copy()
    loss[120:123] *= [2.5, 2.0, 1.5]
    (hit,) = said("LRN003", run_with(loss=loss))
    assert (hit.severity, hit.onset.step) == (Severity.INFO, 121)
    assert float(hit.numbers["peak"]) == pytest.approx(2.5, rel=0.1)


@pytest.mark.parametrize(("floor", "severity"), [(1e-6, Severity.INFO), (1e-3, Severity.WARNING)])
def test_spikes_of_a_loss_that_was_minimised_to_nearly_nothing_are_a_note(floor: float, severity: Severity) -> None:
    loss = noisy(np.maximum(np.exp(-np.arange(400) / 9), floor), 0.05)
    loss[250:253] *= 7
    loss[320:323] *= 5
    (hit,) = said("LRN003", run_with(loss=loss))
    assert (hit.severity, hit.numbers["spikes"]) == (severity, 2)


def test_a_step_of_the_level_is_a_shift_and_no_spike_and_no_divergence() -> None:
    loss = FALLING.copy()
    loss[150:] *= 1.15
    run = run_with(loss=loss)
    assert [f.onset.step for f in said("LRN004", run)] == [151]
    assert said("LRN003", run) == []
    assert all(f.severity is Severity.INFO for f in said("LRN001", run))


def test_a_setting_of_the_course_acts_on_every_rule_that_reads_it_and_on_no_other_run() -> None:
    loss = FALLING.copy()
    loss[120:123] *= [2.5, 2.0, 1.5]
    loss[150:] *= 1.15
    run = run_with(loss=loss)
    deaf = run.under({Limits: Limits(jump_z=1e9, climb_z=1e9, spike_z=1e9)})
    assert [len(said(rule, run)) for rule in ("LRN003", "LRN004")] == [1, 1]
    assert [said(rule, deaf) for rule in ("LRN001", "LRN003", "LRN004")] == [[], [], []]


def test_an_evaluation_that_improves_contradicts_a_level_shift() -> None:
    loss = FALLING.copy()
    loss[150:] *= 1.15
    assert said("LRN004", run_with(loss=loss, eval_loss=np.linspace(3, 2, 200))) == []


def test_a_loss_of_a_reinforced_run_need_not_fall() -> None:
    run = run_with(loss=FLAT, reward=np.linspace(0, 1, 200))
    assert [said(i, run) for i in ("LRN001", "LRN003", "LRN004", "LRN005", "LRN006", "LRN007")] == [[]] * 6


def test_a_flat_loss_of_a_resumed_run_is_only_a_note() -> None:
    assert [f.severity for f in said("LRN005", run_with(loss=FLAT))] == [Severity.WARNING]
    assert [f.severity for f in said("LRN005", run_with(first_step=5000, loss=FLAT))] == [Severity.INFO]


def test_noise_that_would_hide_a_fall_decides_nothing() -> None:
    assert said("LRN005", run_with(loss=noisy(np.full(60, 4.5), 0.3))) == []


def test_chance_over_a_known_vocabulary_is_an_error_and_over_a_usual_one_a_warning() -> None:
    loss = noisy(np.full(200, math.log(50257)), 0.003)
    assert [f.severity for f in said("LRN007", run_with({"model.vocab_size": "50257"}, loss=loss))] == [Severity.ERROR]
    assert [f.severity for f in said("LRN007", run_with(loss=loss))] == [Severity.WARNING]


def test_chance_over_a_known_vocabulary_leads_what_says_only_that_the_loss_did_not_fall() -> None:
    run = run_with({"vocab_size": "50257"}, every=10, loss=noisy(np.full(50, math.log(50257)), 0.003))
    [symptom], [cause] = said("LRN005", run), said("LRN007", run)
    assert not leads(symptom, cause)
    assert preference(cause) < preference(symptom)


@pytest.mark.parametrize(("falls_over", "told"), [(1, True), (3, True), (40, False)])
def test_a_loss_that_fell_within_its_first_records_and_never_again_is_on_a_plateau(falls_over: int, told: bool) -> None:
    loss = noisy(2.9 + 0.8 * np.exp(-np.arange(70) / falls_over), 0.005)
    run = run_with({"adapter": "lora", "weight_decay": "0.4"}, loss=loss, lr=np.full(70, 2e-4))
    assert [f.cause for f in said("LRN006", run)] == (["weight_decay_high"] if told else [])


def test_an_attempt_that_ended_at_chance_says_nothing_of_a_longer_one() -> None:
    chance, falling = noisy(np.full(40, math.log(50257)), 0.003), np.linspace(10.8, 3, 400)
    frames = [run_with(loss=values).scan("metrics").collect() for values in (chance, falling)]
    rows = pl.concat([frame.with_columns(attempt=pl.lit(i)) for i, frame in enumerate(frames)], how="diagonal_relaxed")
    assert said("LRN007", run_of("test", {"metrics": rows})) == []


def test_chance_over_random_data_is_a_note() -> None:
    run = run_with({"vocab_size": "50257", "mock_data": "true"}, loss=noisy(np.full(200, math.log(50257)), 0.003))
    assert [f.severity for f in said("LRN007", run)] == [Severity.INFO]


def test_a_vocabulary_that_two_files_give_differently_is_not_known() -> None:
    run = run_with({"vocab_size": "50257", "model.vocab_size": "50304"}, loss=FLAT)
    assert configured(run, "vocabulary") is None


def test_a_learning_rate_of_zero_is_believed_only_beside_a_flat_loss() -> None:
    zero = np.zeros(200)
    assert [f.severity for f in said("LRN008", run_with(loss=FLAT, lr=zero))] == [Severity.ERROR]
    assert said("LRN008", run_with(loss=FALLING, lr=zero)) == []
    policy = run_with(loss=FLAT, lr=zero, reward=np.linspace(0, 1, 200))
    assert [f.severity for f in said("LRN008", policy)] == [Severity.WARNING]


def test_a_smooth_decay_whose_digits_vanish_in_print_is_no_early_end() -> None:
    lr = np.round(5e-6 * np.clip(1 - np.arange(200) / 140, 0, 1), 7)
    assert said("LRN008", run_with(loss=FALLING, lr=lr)) == []


def test_a_restart_to_a_known_height_is_a_note_and_a_new_peak_a_warning() -> None:
    down = np.linspace(1e-3, 1e-4, 100)
    assert [f.severity for f in said("LRN009", run_with(lr=[*down, *down]))] == [Severity.INFO]
    assert [f.severity for f in said("LRN009", run_with(lr=[*down, *(3 * down)]))] == [Severity.WARNING]


def test_a_warmup_printed_more_often_than_it_changes_has_no_jump() -> None:
    stairs = np.repeat(np.arange(16) * 6.5e-9, 2)
    assert said("LRN009", run_with(lr=[0.0] * 4 + [*stairs])) == []
    assert [f.severity for f in said("LRN009", run_with(lr=[*stairs, *([8e-7] * 10)]))] == [Severity.WARNING]


def test_a_cyclic_schedule_has_no_jump() -> None:
    assert said("LRN009", run_with(lr=[*np.linspace(1e-3, 1e-4, 25)] * 8)) == []


def test_a_peak_that_was_scaled_is_a_note() -> None:
    run = run_with({"learning_rate": "0.0001"}, lr=np.linspace(8e-4, 1e-5, 100))
    assert [(f.severity, f.cause) for f in said("LRN010", run)] == [(Severity.INFO, "peak_differs")]


def test_a_warm_up_in_other_units_is_left_alone_when_the_rate_rises() -> None:
    run = run_with({"warmup_steps": "100"}, lr=[*np.linspace(1e-6, 1e-4, 40), *np.linspace(1e-4, 1e-5, 60)])
    assert said("LRN010", run) == []


def test_a_gradient_norm_that_is_not_filled_in_is_no_fault() -> None:
    assert said("LRN011", run_with(loss=FALLING, grad_norm=np.zeros(200))) == []
    assert [f.severity for f in said("LRN011", run_with(loss=FLAT, grad_norm=np.zeros(200)))] == [Severity.ERROR]


def test_gradients_that_shrink_with_the_learning_rate_do_not_vanish() -> None:
    fade = np.where(np.arange(200) < 190, 1.0, 1e-4)
    run = run_with(loss=FLAT, grad_norm=noisy(fade, 0.1), lr=np.linspace(1e-3, 0, 200))
    assert said("LRN012", run) == []


def test_of_a_norm_that_ends_within_ten_times_its_lowest_record_no_level_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def counted(y: np.ndarray, window: int) -> np.ndarray:
        asked.append(len(y))
        return centred_median(y, window)

    monkeypatch.setattr(gradients, "centred_median", counted)
    for last, made in ((9.9, 0), (10.1, 100)):
        assert len(said("LRN013", run_with(loss=FALLING, grad_norm=np.repeat([1.0, last], 50)))) == bool(made)
        assert sum(asked) == made


def test_growing_gradients_are_a_warning_only_with_a_rising_loss() -> None:
    norm = noisy(np.where(np.arange(200) < 80, 1.0, np.exp((np.arange(200) - 80) / 30)), 0.1)
    assert [f.severity for f in said("LRN013", run_with(loss=FALLING, grad_norm=norm))] == [Severity.INFO]
    worse = noisy(3 + np.maximum(0, np.arange(200) - 80) / 100)
    assert [f.severity for f in said("LRN013", run_with(loss=worse, grad_norm=norm))] == [Severity.WARNING]


def test_a_loss_rounded_to_one_digit_is_not_frozen() -> None:
    assert said("LRN014", run_with(loss=np.full(100, 0.7))) == []
    assert [f.severity for f in said("LRN014", run_with(loss=np.full(100, 0.6931)))] == [Severity.ERROR]


def test_a_huge_first_gradient_norm_is_a_note() -> None:
    assert [f.severity for f in said("LRN016", run_with(grad_norm=[5e4, 3.0, 1.0]))] == [Severity.INFO]


@pytest.mark.parametrize(("first_step", "every", "notes"), [(50, 50, 1), (5000, 50, 0), (11, 1, 0)])
def test_the_first_loss_of_a_log_is_the_one_that_its_interval_ends_with(
    first_step: int, every: int, notes: int
) -> None:
    run = run_with({"vocab_size": "32000"}, first_step, every, loss=[900.0, 90.0, 9.0, 8.0])
    assert len(said("LRN016", run)) == notes


def test_a_gradient_norm_at_the_end_of_a_long_interval_is_no_first_one() -> None:
    assert said("LRN016", run_with(None, 50, 50, grad_norm=[5e4, 3.0, 1.0])) == []


@pytest.mark.parametrize(("key", "value", "known"), [("adapter", '"qlora"', True), ("finetuning_type", "full", False)])
def test_an_adapter_is_what_the_configuration_names(key: str, value: str, *, known: bool) -> None:
    assert (adapter_of(run_with({key: value}, loss=FLAT)) is not None) is known


def test_only_what_says_that_it_fine_tunes_has_usual_ranges() -> None:
    assert said("LRN017", run_with({"learning_rate": "0.5"}, loss=FLAT)) == []
    hit, level = said("LRN017", run_with({"lora_r": "16", "weight_decay": "0.5"}, loss=FLAT))
    assert level.cause == "finetune_loss_high"
    assert hit.cause == "finetune_settings"


def test_numbers_of_a_configuration_are_read_through_quotes() -> None:
    run = run_with({"trainer.max_steps": '"600"', "lr_scheduler_type": '"cosine"'}, loss=FLAT)
    assert ledger(run).planned("step") == 600
    scheduler = configured(run, "scheduler")
    assert scheduler is not None
    assert scheduler.text == "cosine"


def test_a_schedule_knows_its_peak_and_where_it_dies() -> None:
    (curve,) = curves(run_with(lr=[1e-4, 2e-4, 1e-4, 0.0, 0.0]), "lr")
    schedule = schedule_of(curve)
    assert (schedule.top, schedule.dead, schedule.before_dead, schedule.zeros) == (1, 3, 1e-4, 0.4)


def test_a_curve_finds_what_its_own_source_logs_beside_it() -> None:
    (loss,) = curves(run := run_with(loss=FLAT, grad_norm=FLAT), "loss")
    found = beside(run, loss, "grad_norm")
    assert found is not None
    assert found.raw_name == "grad_norm"
    assert beside(run, loss, "lr") is None


@pytest.mark.parametrize(("file", "known"), [("mlruns/0/a/metrics/lr", True), ("mlruns/0/b/metrics/lr", False)])
def test_a_curve_finds_the_file_of_another_metric_beside_its_own(file: str, known: bool) -> None:
    rows = run_with(loss=FLAT, lr=FLAT).scan("metrics").collect()
    loss, lr = (rows.filter(pl.col("name") == name) for name in ("loss", "lr"))
    files = (loss.with_columns(source=pl.lit("mlruns/0/a/metrics/loss")), lr.with_columns(source=pl.lit(file)))
    (curve,) = curves(run := run_of("test", {"metrics": pl.concat(files)}), "loss")
    assert (beside(run, curve, "lr") is not None) is known


def test_every_finding_of_a_bad_run_shows_rows_that_exist() -> None:
    run = run_with({"vocab_size": "50257"}, loss=FLAT, lr=np.zeros(200), grad_norm=np.zeros(200))
    findings = [f for rule_id in RULES if rule_id.startswith("LRN") for f in said(rule_id, run)]
    assert {f.rule for f in findings} >= {"LRN005", "LRN008", "LRN011"}
    for finding in findings:
        assert any(e.role is EvidenceRole.PRIMARY for e in finding.evidence)
        assert all(e.step is None or 1 <= e.step <= 200 for e in finding.evidence)


values = st.lists(st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.just(0.0)), min_size=1, max_size=90)


@settings(deadline=None, max_examples=60)
@given(values, values, values)
def test_no_series_whatever_makes_a_rule_fail(loss: list[float], lr: list[float], norm: list[float]) -> None:
    run = run_with({"vocab_size": "100", "adapter": "lora", "learning_rate": "1"}, loss=loss, lr=lr, grad_norm=norm)
    for rule_id in RULES:
        if rule_id.startswith("LRN"):
            assert all(finding.title for finding in said(rule_id, run))


@settings(deadline=None)
@given(st.lists(st.floats(-5, 5), min_size=3, max_size=80), st.sampled_from([3, 11, 51]))
def test_moving_medians_keep_the_length_and_stay_within_the_values(numbers: list[float], window: int) -> None:
    y = np.asarray(numbers)
    middle = centred_median(y, window)
    assert len(middle) == len(past_median(y, window)) == len(y)
    assert y.min() <= middle.min() <= middle.max() <= y.max()
    assert noise_about(y, middle).sd_long >= noise_about(y, middle).sd > 0


def test_a_levels_of_a_falling_loss_is_significant() -> None:
    levels = levels_of(level_of(curves(run_with(loss=FALLING), "loss")[0], WINDOW))
    assert levels is not None
    assert levels.fall > 10 * levels.fall_error
    assert levels.first > levels.last


def test_the_last_of_many_short_optimizations_in_one_log_has_not_diverged() -> None:
    def fall(lowest: float) -> np.ndarray:
        return lowest + 7.0 * np.exp(-np.arange(20) / 2.5)

    many = np.concatenate([fall(low) for low in (0.2, 0.09, 0.15, 0.13, 0.2, 0.14, 0.088, 0.16, 0.11, 0.13) * 2])
    assert said("LRN001", run_with(loss=many)) == []
    assert [f.severity for f in said("LRN001", run_with(loss=[*fall(0.2), *fall(0.09), *([9.0] * 40)]))] == [
        Severity.ERROR
    ]


def learned_anew(at: int, records: int = 176, back: float = 60.0) -> np.ndarray:
    """A loss that is learned within 20 records, and begins anew at a record; it is back after some times `back`."""
    first = 1.4 + 3 * np.exp(-np.arange(records) / 8)
    anew = 1.4 + 3 * np.exp(-np.arange(records - at) / back)
    return noisy(np.concatenate([first[:at], anew]), 0.15)


def test_a_loss_that_is_learned_anew_is_told_though_it_first_fell_as_far_as_it_rose() -> None:
    (found,) = said("LRN001", run_with(loss=learned_anew(120)))
    assert found.severity is Severity.WARNING
    assert found.onset.step == 121


def test_a_noisy_loss_that_fell_far_and_stays_has_no_rise() -> None:
    assert said("LRN001", run_with(loss=learned_anew(176))) == []


@pytest.mark.parametrize(("records", "told"), [(19, 0), (20, 1)])
def test_chance_over_few_records_is_that_of_a_run_that_has_hardly_begun(records: int, told: int) -> None:
    loss = noisy(np.full(records, math.log(50257)), 0.003)
    assert len(said("LRN007", run_with({"model.vocab_size": "50257"}, loss=loss))) == told


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.03])
@pytest.mark.parametrize("course", ["falls and climbs", "falls and bursts", "rests and climbs"])
def test_a_loss_that_climbs_on_left_its_level_where_the_climb_begins(course: str, noise: float) -> None:
    turn, count = 140, 300
    steps = np.arange(count)
    after = np.maximum(steps - turn, 0) / (count - turn)
    if course == "falls and bursts":
        level = np.where(steps < turn, 4 - 1.5 * steps / turn, 2.5 * np.exp(2 * after))
    else:
        fall = 2.6 + 6 * np.exp(-np.minimum(steps, turn) / (25 if course == "rests and climbs" else 60))
        level = fall * (1 + after)
    (found,) = said("LRN001", run_with(loss=noisy(level, noise)))
    assert found.onset.step is not None
    assert abs(found.onset.step - 1 - turn) <= 0.04 * count


@pytest.mark.parametrize("noise", [0.003, 0.03, 0.05])
def test_a_step_of_the_level_is_placed_at_the_step_although_the_loss_climbs_on(noise: float) -> None:
    steps = np.arange(160)
    level = np.where(steps < 80, 2.0, 2.6 * np.exp((steps - 80) / 160))
    (found,) = said("LRN001", run_with(loss=noisy(level, noise)))
    assert found.onset.step == 81


@pytest.mark.parametrize("seed", range(6))
def test_a_step_in_much_noise_is_placed_before_the_first_record_that_stands_out(seed: int) -> None:
    steps = np.arange(160)
    level = np.where(steps < 80, 2.0, 2.6 * np.exp((steps - 80) / 160))
    loss = level * np.exp(0.05 * np.random.default_rng(seed).standard_normal(160))
    (found,) = said("LRN001", run_with(loss=loss))
    assert found.onset.step is not None
    assert abs(found.onset.step - 81) <= 2
