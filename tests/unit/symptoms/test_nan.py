"""A loss that stopped being a number: what came before it, what is suspect, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.unit.symptoms.kit import report, told, written
from tests.unit.symptoms.logs import FINE_TUNING, at, falling, noisy, spread, steps, supervised, trainer

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
    assert "training went on finite; the log says that its update was skipped" in text


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


def test_the_first_layer_that_a_hook_names_is_where_it_began(tmp_path: Path) -> None:
    run = written(tmp_path, {"train.log": GOOD + HOOKS + "step=61 loss=nan gnorm=nan\nstep=62 loss=nan gnorm=nan\n"})
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
