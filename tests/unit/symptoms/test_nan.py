"""A loss that stopped being a number: what came before it, what is suspect, and what to do."""

from __future__ import annotations

import json
from math import inf
from typing import TYPE_CHECKING

import pytest

from tests.unit.symptoms.kit import report, told, written
from tests.unit.symptoms.logs import FINE_TUNING, Value, at, cosine, falling, noisy, spread, steps, supervised, trainer

if TYPE_CHECKING:
    from pathlib import Path

LOSS = noisy(falling(5.0, 3.0, 100), 0.03)
ONE_BAD = steps(200, loss=at({119}, LOSS), gnorm=spread(0.5))


def test_checkpoints_after_an_isolated_nan_are_usable_when_the_log_says_that_the_update_was_skipped(
    tmp_path: Path,
) -> None:
    line = "Non-finite loss at step 120; skipping optimizer step, gradients zeroed\n"
    place = ONE_BAD.index("step=121 ")
    run = written(tmp_path, {"train.log": ONE_BAD[:place] + line + ONE_BAD[place:]})
    assert report(run).verdict.cause == "skipped_update"
    text = told(run)
    assert text.startswith("SUSPECT")
    assert "those after step 120 are usable because its update was skipped" in text
    assert "the values after it are finite again; the log says that its update was skipped" in text


def test_a_skip_far_from_the_nan_says_nothing_of_it(tmp_path: Path) -> None:
    line = "inf in the gradients: skipped the update\n"
    place = ONE_BAD.index("step=21 ")
    run = written(tmp_path, {"train.log": ONE_BAD[:place] + line + ONE_BAD[place:]})
    assert report(run).verdict.cause == "transient"


def test_a_loss_that_was_nan_once_warns_although_a_detector_spoke_before(tmp_path: Path) -> None:
    line = "Non-finite loss at step 20; skipping optimizer step, gradients zeroed\n"
    place = ONE_BAD.index("step=21 ")
    assert told(written(tmp_path, {"train.log": ONE_BAD[:place] + line + ONE_BAD[place:]})).startswith("SUSPECT nan")


def test_after_an_isolated_nan_the_batch_is_the_suspect(tmp_path: Path) -> None:
    text = told(written(tmp_path, {"train.log": ONE_BAD}))
    assert text.startswith("SUSPECT nan")
    assert "Loss is NaN at step 120" in text
    assert "Inspect the batch of step 120, sample by sample" in text
    assert "where it was made, every checkpoint after it is tainted" in text


BLOWN_UP = steps(
    200,
    loss=at(set(range(160, 200)), LOSS),
    gnorm=lambda n: spread(0.5)(n) * (1.8 ** (n - 149) if 150 <= n < 160 else 1),
)


def test_after_a_blow_up_the_page_shows_the_checklist(tmp_path: Path) -> None:
    text = told(written(tmp_path, {"train.log": BLOWN_UP}))
    assert "Lower the peak learning rate to a half and lengthen the warm-up" in text
    assert "Clip the global gradient norm at 1.0" in text
    assert "repeat the steps in fp32, overfit two examples, and inspect the batch of step 161" in text


def test_a_run_in_fp32_is_not_told_to_repeat_in_fp32(tmp_path: Path) -> None:
    assert "fp32, overfit" not in told(written(tmp_path, {"train.log": BLOWN_UP, "config.yaml": "precision: fp32\n"}))


def test_a_nan_at_the_same_place_of_every_epoch_names_the_sample(tmp_path: Path) -> None:
    values = supervised(300, loss=at({40, 140, 240}, noisy(falling(1.9, 0.9), 0.03)))
    run = written(tmp_path, {"train.log": trainer(300, values), "config.yaml": FINE_TUNING})
    verdict = report(run).verdict
    assert (verdict.cause, verdict.onset.step) == ("bad_sample", 41)
    assert "same place of 3 epochs" in verdict.headline
    assert "Print the samples of that place of the data (step 41)" in told(run)


def test_a_nan_at_other_places_of_the_epochs_names_no_sample(tmp_path: Path) -> None:
    values = supervised(300, loss=at({40, 177, 262}, noisy(falling(1.9, 0.9), 0.03)))
    run = written(tmp_path, {"train.log": trainer(300, values), "config.yaml": FINE_TUNING})
    assert report(run).verdict.cause == "transient"


@pytest.mark.parametrize(("again", "cause"), [(257, "bad_sample"), (289, "transient")])
def test_epochs_of_whole_numbers_give_the_place_by_their_records(tmp_path: Path, again: int, cause: str) -> None:
    loss = at({57, again}, noisy(falling(1.9, 0.9), 0.03))
    run = written(tmp_path, {"train.log": steps(300, epoch=lambda n: n // 100, loss=loss)})
    assert report(run).verdict.cause == cause


@pytest.mark.parametrize(("last", "cause"), [(11, "unknown"), (10, "from_start")])
def test_rewards_of_many_steps_before_a_nan_that_an_exception_tells_are_no_start(
    tmp_path: Path, last: int, cause: str
) -> None:
    lines = "".join(f"INFO Mill. Step: {last - 12 + n}. Mean Reward: {21 + n / 10:.3f}.\n" for n in range(13))
    error = 'Traceback (most recent call last):\n  File "mill.py", line 9, in run\n    check(obs)\n'
    error += "RuntimeError: The observations provided had NaN values.\n"
    assert report(written(tmp_path, {"train.log": lines + error})).verdict.cause == cause


HOOKS = """\
⚠  non-finite in layers.7.attn: NaN=False Inf=True
⚠  non-finite in layers.7: NaN=True Inf=True
⚠  non-finite in layers.8.attn: NaN=True Inf=False
"""
ANOMALY = """\
/venv/lib/python3.11/site-packages/torch/autograd/graph.py:823: UserWarning: Error detected in SqrtBackward0. \
Traceback of forward call that caused the error:
  File "/home/me/train.py", line 88, in <module>
    main()
  File "/home/me/model.py", line 41, in forward
    std = var.sqrt()
  File "/venv/lib/python3.11/site-packages/torch/_tensor.py", line 39, in wrapped
    return f(*args, **kwargs)
 (Triggered internally at /pytorch/torch/csrc/autograd/python_anomaly_mode.cpp:122.)
  return Variable._execution_engine.run_backward(  # Calls into the C++ engine to run the backward pass
Traceback (most recent call last):
  File "/home/me/train.py", line 88, in <module>
    main()
  File "/home/me/train.py", line 63, in main
    loss.backward()
RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
"""
GOOD = steps(60, loss=LOSS, gnorm=spread(0.5))


@pytest.mark.parametrize("counted", [False, True])
def test_the_first_layer_that_a_hook_names_is_where_it_began(tmp_path: Path, *, counted: bool) -> None:
    hooks = HOOKS.replace("False", "0").replace("True", "4096") if counted else HOOKS
    run = written(tmp_path, {"train.log": GOOD + hooks + "step=61 loss=nan gnorm=nan\nstep=62 loss=nan gnorm=nan\n"})
    verdict = report(run).verdict
    assert (verdict.cause, verdict.onset.step) == ("named_operation", 61)
    text = told(run)
    assert "The first non-finite value comes from layers.7.attn" in text
    assert "Guard layers.7.attn: compute the softmax in fp32" in text


def test_hook_lines_are_enough(tmp_path: Path) -> None:
    assert "comes from layers.7.attn" in told(written(tmp_path, {"train.log": HOOKS}))


def test_a_hook_that_counts_batches_names_no_layer(tmp_path: Path) -> None:
    run = written(tmp_path, {"train.log": GOOD + "non-finite in 0 of 12 batches\n" + GOOD.replace("step=", "step=1")})
    assert not any(f.rule == "NAN011" for f in report(run).findings)


def test_anomaly_detection_names_the_operation_and_the_line_of_the_program(tmp_path: Path) -> None:
    text = told(written(tmp_path, {"train.log": GOOD + ANOMALY}))
    assert text.startswith("FAILED nan")
    assert "comes from SqrtBackward0, called at /home/me/model.py:41 in forward" in text
    assert "Guard /home/me/model.py:41 in forward: add an epsilon inside the square root" in text
    assert "the gradient of a square root is infinite at zero" in text


def test_an_exception_behind_a_forward_call_is_read_as_it_was(tmp_path: Path) -> None:
    events = report(written(tmp_path, {"train.log": GOOD + ANOMALY})).findings
    raised = next(e for f in events for e in f.evidence if e.name == "anomaly-nan" or "RuntimeError" in e.quote)
    assert raised.locator.line == len((GOOD + ANOMALY).splitlines())


def test_a_softmax_in_fp16_is_to_be_computed_in_fp32(tmp_path: Path) -> None:
    log = GOOD + ANOMALY.replace("SqrtBackward0", "SoftmaxBackward0")
    text = told(written(tmp_path, {"train.log": log, "config.yaml": "fp16: true\nlr: 0.0003\n"}))
    assert "softmax over very large or very small logits overflows in fp16" in text
    assert "compute the softmax in fp32, or train in bf16" in text


def lost(first: int, norm: Value, records: int = 200) -> dict[str, Value]:
    """A fine-tuning whose loss and gradient norm are NaN from a record on."""
    bad = range(first, records)
    return supervised(records, loss=at(bad, noisy(falling(1.9, 0.9), 0.03)), norm=at(bad, norm))


def test_fp16_is_named_behind_the_rate_when_the_gradient_norm_rose(tmp_path: Path) -> None:
    log = trainer(200, lost(120, at({118, 119}, spread(0.6), 25.0)), ended=False)
    text = told(written(tmp_path, {"train.log": log, "config.yaml": FINE_TUNING + "fp16: true\n"}))
    assert "Lower the peak learning rate" in text
    assert "Train in bf16 instead of fp16" in text
    assert "config.yaml:9" in text


def test_a_run_in_bf16_is_not_told_to_use_it(tmp_path: Path) -> None:
    log = trainer(200, lost(120, at({118, 119}, spread(0.6), 25.0)), ended=False)
    text = told(written(tmp_path, {"train.log": log, "config.yaml": FINE_TUNING + "bf16: true\n"}))
    assert "Train in bf16" not in text
    assert "Clip the global gradient norm at 1.0" in text


def test_a_gradient_norm_that_is_infinite_before_the_loss_is_lost_is_a_blow_up(tmp_path: Path) -> None:
    norm = at({119}, spread(0.6), inf)
    log = trainer(200, lost(120, norm), ended=False)
    verdict = report(written(tmp_path, {"train.log": log, "config.yaml": FINE_TUNING})).verdict
    assert (verdict.cause, verdict.onset.step) == ("optimization_blowup", 120)
    text = told(tmp_path)
    assert "grad_norm is infinite from step 120 on" in text
    assert "Lower the peak learning rate" in text
    assert "Clip the global gradient norm at 1.0" in text


def test_where_no_step_is_printed_the_earlier_line_is_the_onset(tmp_path: Path) -> None:
    log = trainer(200, lost(120, at({119}, spread(0.6), inf)), ended=False)
    bare = "".join(line + "\n" for line in log.splitlines() if line.startswith("{"))
    verdict = report(written(tmp_path, {"train.log": bare})).verdict
    assert verdict.headline.startswith("grad_norm is infinite")
    assert verdict.cause == "optimization_blowup"


def test_a_blow_up_within_the_warm_up_asks_for_a_longer_one(tmp_path: Path) -> None:
    values = lost(28, at({26, 27}, spread(0.6), 25.0), 60) | {"learning_rate": cosine(1e-3, 60, 30)}
    run = written(tmp_path, {"train.log": trainer(60, values, ended=False), "config.yaml": "warmup_steps: 30\n"})
    assert "warmup_too_short" in {f.cause for f in report(run).findings}
    assert "Lengthen the warm-up of the learning rate (now warmup_steps = 30" in told(run)


def test_a_rate_held_since_its_warm_up_is_not_within_it(tmp_path: Path) -> None:
    rate: Value = lambda n: 2e-5 * min(1.0, (n + 1) / 10)  # noqa: E731 - a value as the others
    held = {**lost(120, at({118, 119}, spread(0.6), 25.0)), "learning_rate": rate}
    run = written(tmp_path, {"train.log": trainer(200, held, ended=False), "config.yaml": "warmup_steps: 10\n"})
    assert "warmup_too_short" not in {f.cause for f in report(run).findings}


@pytest.mark.parametrize("fp8", ["true", "false"])
def test_fp8_is_turned_off_first_and_the_library_upgraded(tmp_path: Path, fp8: str) -> None:
    log = trainer(60, lost(0, spread(0.6), 60), ended=False)
    text = told(written(tmp_path, {"train.log": log, "config.yaml": FINE_TUNING + f"fp8: {fp8}\n"}))
    assert text.startswith("FAILED nan")
    assert ("fix Turn fp8 off in the restart" in text) == (fp8 == "true")
    assert ("guard a scale of zero" in text) == (fp8 == "true")


@pytest.mark.parametrize(("fall", "cause"), [(6.0, "log_softmax_overflow"), (3.0, "data_or_numerics")])
def test_log_probabilities_that_fell_five_times_overflow(tmp_path: Path, fall: float, cause: str) -> None:
    logps = noisy(lambda n: -120.0 if n < 100 else -120.0 * fall, 2.0)
    log = trainer(200, {**lost(120, spread(2.0)), "logps/rejected": logps}, ended=False)
    run = written(tmp_path, {"train.log": log, "config.yaml": "rl: dpo\nfp16: true\nlearning_rate: 5e-7\n"})
    assert report(run).verdict.cause == cause
    assert ("Compute the log-softmax and the ratios of probabilities in fp32" in told(run)) == (fall > 5)


def test_a_lowest_log_probability_below_what_exp_can_hold_overflows(tmp_path: Path) -> None:
    lowest = noisy(lambda n: -30.0 if n < 60 else -92.0, 2.0)
    log = trainer(200, {**lost(120, spread(2.0)), "logps/min": lowest}, ended=False)
    assert report(written(tmp_path, {"train.log": log})).verdict.cause == "log_softmax_overflow"


def test_the_loop_that_prints_three_bare_numbers_is_read(tmp_path: Path) -> None:
    values = lost(200, at({198, 199}, spread(0.8), 20.0), 300)
    lines = (f"{n} {values['loss'](n):.6g} {values['grad_norm'](n):.6g}\n" for n in range(300))
    verdict = report(written(tmp_path, {"train.log": "".join(lines)})).verdict
    assert (verdict.cause, verdict.onset.step) == ("optimization_blowup", 200)


def test_the_line_of_a_check_that_stopped_is_enough(tmp_path: Path) -> None:
    log = "step=0 loss=2.3100 gnorm=0.4312\nstep=50 loss=1.9100 gnorm=0.4012\nNaN at step 117\n"
    verdict = report(written(tmp_path, {"sanity.log": log})).verdict
    assert (verdict.outcome, verdict.onset.step) == ("failed", 117)
    assert "Inspect the batch of step 117" in told(tmp_path)


@pytest.mark.parametrize(
    ("error", "shape"),
    [
        ("RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.", "nan"),
        ("KeyError: 2215", "crash"),
    ],
)
def test_a_backward_call_that_anomaly_detection_names_is_a_nan_only_where_one_is_said(
    tmp_path: Path, error: str, shape: str
) -> None:
    steps = [f"step {step} loss {3 - step / 100:.3f} lr 1e-4" for step in range(1, 60)]
    trace = [
        "Traceback (most recent call last):",
        '  File "/home/me/train.py", line 8, in <module>',
        "    loss.backward()",
    ]
    named = "UserWarning: Error detected in SqrtBackward0. Traceback of forward call that caused the error:"
    call = ['  File "/home/me/model.py", line 41, in forward', "    return x.sqrt()"]
    log = "\n".join([*steps, named, *call, *trace, error]) + "\n"
    verdict = report(written(tmp_path, {"train.log": log})).verdict
    assert verdict.shape is not None
    assert verdict.shape.value == shape


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("WARNING NaN/Inf in loss at step 61: skipping the optimizer step", ""),
        ("[WARNING] NaN/Inf detected in loss at step 61 (1/10 consecutive)", "transient"),
        ("INFO no NaN/Inf in loss at step 61", ""),
        ("WARNING NaN loss at step 61, gradients zeroed, optimizer step skipped", ""),
    ],
)
def test_the_line_of_a_detector_alone_warns_of_its_step_unless_the_update_was_skipped(
    tmp_path: Path, line: str, cause: str
) -> None:
    after = steps(60, loss=LOSS, gnorm=spread(0.5)).replace("step=", "step=1")
    verdict = report(written(tmp_path, {"train.log": GOOD + line + "\n" + after})).verdict
    assert (verdict.cause, verdict.onset.step) == (cause, 61 if cause else None)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("NaN loss, gradients zeroed, optimizer step skipped", "number"),
        ("found NaN in gradients, update skipped", "gradient"),
        ("skip_nan_loss is on: steps with a NaN loss are not made", ""),
        ("gradient overflow, step skipped", ""),  # of fp16, and usual
    ],
)
def test_a_program_that_skips_an_update_for_a_nan_is_heard(tmp_path: Path, line: str, what: str) -> None:
    after = steps(60, loss=LOSS, gnorm=spread(0.5)).replace("step=", "step=1")
    text = told(written(tmp_path, {"train.log": GOOD + line + "\n" + after}))
    said = [one for one in ("number", "gradient") if f"the program says that a {one} is not finite at step 61" in text]
    assert said == ([what] if what else [])


@pytest.mark.parametrize(("highest", "outcome"), [(32007, "FAILED nan"), (31999, "FAILED nan")])
def test_a_token_id_outside_the_vocabulary_is_the_cause_of_the_nan(tmp_path: Path, highest: int, outcome: str) -> None:
    values = {**lost(120, spread(0.6), 140), "max_token_id": at({119}, lambda _: 31990.0, highest)}
    run = written(tmp_path, {"train.log": steps(140, **values), "config.json": '{"vocab_size": 32000, "n_layer": 2}'})
    text = told(run)
    assert text.startswith(outcome)
    assert ("holds token id 32007, and the vocabulary has 32000" in text) == (highest > 32000)
    assert ("Tokenize the data with the model's own tokenizer" in text) == (highest > 32000)


def falling_scale(falls: int, ends_at: int) -> str:
    """Apex's lines of so many falls of the scale from a step on, one after each record, then a loss that is NaN."""
    lines: list[str] = []
    for n in range(1, ends_at + falls + 6):
        lost = n > ends_at + falls
        lines.append(f"step {n} | loss {'nan' if lost else f'{3 - n / 200:.4f}'} | norm {1 + n % 5 / 9:.4f}")
        if ends_at < n <= ends_at + falls:
            to = 65536 / 2 ** (n - ends_at)
            lines.append(f"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {to}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("falls", [6, 15])
def test_a_scale_that_falls_at_every_step_collapses_however_often_it_falls(tmp_path: Path, falls: int) -> None:
    text = told(written(tmp_path, {"train.log": falling_scale(falls, 200)}))
    assert "(loss_scale_collapse, confidence" in text
    assert "bf16" in text


def test_a_hidden_nan_names_the_option_that_hides_it(tmp_path: Path) -> None:
    rows = [
        {"step": n, "loss": 0.0 if n > 90 else 2 - n / 100, "grad_norm": float("nan") if n > 90 else 1 + n % 7 / 10}
        for n in range(1, 121)
    ]
    text = told(written(tmp_path, {"log.jsonl": "\n".join(map(json.dumps, rows)) + "\n"}))
    assert "(filtered_by_writer, confidence" in text
    assert "logging_nan_inf_filter=False" in text


def test_fp8_that_fails_within_three_steps_asks_for_a_newer_library_and_an_empty_cache(tmp_path: Path) -> None:
    log = "".join(
        f"step {n} loss {'nan' if n > 2 else 2 - n / 9:.4} grad_norm {'nan' if n > 2 else 1.2}\n" for n in range(1, 30)
    )
    text = told(written(tmp_path, {"train.log": log, "config.yaml": "fp8: true\nsample_packing: false\n"}))
    assert "Turn fp8 off" in text
    assert "~/.triton/cache" in text
    assert "zero-padded embeddings" in text


def emptied(from_step: int, *, until: int = 120, beside: bool = True, named: str = "lr") -> str:
    """JSON lines of 120 steps whose loss is null from a step on, as a writer without NaN leaves it."""
    loss = noisy(falling(3.0, 2.0), 0.02)
    rows = (
        {"step": n, "loss": loss(n) if n < from_step or n > until else None}
        | ({named: 1e-4 if named == "lr" else n / 200} if beside or n < from_step else {})
        for n in range(1, 121)
    )
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_a_loss_that_is_null_to_the_end_beside_other_numbers_is_a_nan_that_was_not_stored(tmp_path: Path) -> None:
    run = written(tmp_path, {"metrics.jsonl": emptied(71)})
    verdict = report(run).verdict
    assert (verdict.shape, verdict.onset.step, verdict.onset.step_lo) == ("nan", 71, 70)
    assert "The loss is empty (null) from step 71 on" in told(run)
    assert "NAN009" in {finding.rule for finding in report(run).findings}


@pytest.mark.parametrize(
    "lines",
    [
        emptied(119),  # two records at the end: a summary, an evaluation
        emptied(71, until=110),  # it comes back
        emptied(71, beside=False),  # nothing of the training is logged beside it
        emptied(71, named="eval_accuracy"),  # nor here
    ],
)
def test_an_empty_loss_that_comes_back_or_stands_beside_nothing_of_the_training_is_none(
    tmp_path: Path, lines: str
) -> None:
    assert report(written(tmp_path, {"metrics.jsonl": lines})).verdict.shape is None


def test_a_loss_of_every_tenth_record_that_is_null_between_them_is_none(tmp_path: Path) -> None:
    loss = noisy(falling(3.0, 2.0), 0.02)
    rows = [{"step": n, "loss": None if n % 10 else loss(n), "lr": 1e-4} for n in range(1, 120)]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    assert report(written(tmp_path, {"metrics.jsonl": lines})).verdict.shape is None


def test_an_export_of_a_data_frame_in_which_the_loss_ends_in_nan_is_lost(tmp_path: Path) -> None:
    loss = noisy(falling(3.0, 2.0), 0.02)
    rows = [
        {"_step": n, "_timestamp": 1.75e9 + n, "train/loss": loss(n) if n < 71 else float("nan"), "train/lr": 1e-4}
        for n in range(1, 121)
    ]
    verdict = report(written(tmp_path, {"history.json": json.dumps(rows)})).verdict
    assert (verdict.shape, verdict.onset.step) == ("nan", 71)


def in_a_table(empty: range, *, every: int = 1) -> str:
    """A CSV of 120 records whose loss is empty within some, or is logged every so many only."""
    loss = noisy(falling(3.0, 2.0), 0.02)
    cells = (f"{loss(n):.4f}" if n not in empty and not n % every else "" for n in range(1, 121))
    return "step,loss,lr\n" + "".join(f"{n},{cell},0.0001\n" for n, cell in enumerate(cells, 1))


def test_an_empty_loss_to_the_end_of_a_table_is_a_nan_that_was_not_stored(tmp_path: Path) -> None:
    run = written(tmp_path, {"metrics.csv": in_a_table(range(71, 121))})
    verdict = report(run).verdict
    assert (verdict.shape, verdict.onset.step, verdict.onset.step_lo) == ("nan", 71, 70)
    assert "The loss column is gone from step 71 on" in told(run)


@pytest.mark.parametrize(
    "table", [in_a_table(range(119, 121)), in_a_table(range(71, 110)), in_a_table(range(0), every=9)]
)
def test_an_empty_loss_that_comes_back_or_is_logged_rarely_in_a_table_is_none(tmp_path: Path, table: str) -> None:
    assert report(written(tmp_path, {"metrics.csv": table})).verdict.shape is None
