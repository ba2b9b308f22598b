"""Hugging Face Trainer, and what runs on it: axolotl, unsloth, most fine-tuning scripts.

One Python dict a logging window, never JSON: version 4 prints plain numbers, version 5 strings rounded to four
digits. The loss is the mean of the window; grad_norm is the last update's, before clipping; memory keys are
axolotl's, in GiB. There is no step in the dict: it is the count of the training bar drawn before it, else epoch x
total steps / epochs of the header, else unknown. With the default `logging_nan_inf_filter` a NaN or infinite loss is
replaced before the mean is taken: the window of the first one prints a finite, even lower loss with `grad_norm` nan,
and every later window 0. Version 5 prints no line for a checkpoint; version 4 does at INFO.

Example:
    ```log
     14%|█▍        | 30/210 [00:41<04:08,  1.38s/it]
    {'loss': '3.417', 'grad_norm': '0.955', 'learning_rate': '4.3e-05', 'epoch': '0.29'}
    ```
    => loss=3.417 grad_norm=0.955 lr=4.3e-05 step=30

Example:
    ```log
    ***** Running training *****
      Num Epochs = 2
      Total optimization steps = 1,400
    {'loss': 1.2044, 'learning_rate': 0.00015, 'epoch': 0.5}
    {'eval_loss': 1.31, 'eval_runtime': 12.5, 'eval_samples_per_second': 40.1, 'eval_steps_per_second': 5.0, 'epoch': 1.0}
    ```
    => loss=1.2044 lr=0.00015 step=350
    => eval_loss=1.31 eval_time_s=12.5 step=700

Example:
    ```log
    {'loss': '0', 'grad_norm': 'nan', 'learning_rate': '0.0002', 'epoch': '0.7'}
    ```
    => loss=0 grad_norm=nan step=none

Example:
    ```log
    [INFO|trainer.py:3110] 2024-05-06 07:08:09,101 >> Saving model checkpoint to out/tuned/checkpoint-250
    ```
    => saved step=250 path=out/tuned/checkpoint-250

Not this:
    ```log
    print({'loss': loss, 'epoch': epoch})
    {'loss': 3.1, 'step': 40}
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects._hf import ANY, EXTRA_NAMES, SHARED, fill_step, number
from forensics.dialects.spec import Dialect, Line

# other writers' dicts begin alike: only keys known to be the Trainer's or axolotl's may stand between and after
_EXTRA = rf"(?:, '(?:memory/|tokens_per_second|num_input_tokens|train_tokens|ppl|perplexity)[^']*': {ANY})*"
_LOSS = (
    rf"^[^>]*\{{'loss': {number('loss')}(?:, 'grad_norm': {number('grad_norm')})?"
    rf"(?:, 'learning_rate': {number('lr')})?(?P<tail>{_EXTRA}), 'epoch': {number('epoch')}{_EXTRA}\}}"
)
_EVAL_END = rf"'eval_steps_per_second': {ANY}, 'epoch': {ANY}"

DIALECT = Dialect(
    name="hf_trainer",
    title="Hugging Face Trainer (axolotl, unsloth)",
    lines=(
        Line("metrics", "{'loss': ", _LOSS, tail="pydict", names=EXTRA_NAMES),
        Line(
            "metrics",
            "{'eval_loss': ",
            rf"^[^>]*\{{'eval_loss': {number('eval_loss')}(?P<tail>.*), 'epoch': {number('epoch')}",
            tail="pydict",
            names=EXTRA_NAMES,
        ),
        *SHARED,
    ),
    sniff=(_LOSS, _EVAL_END),
    finish=fill_step,
    hides_nan=True,
    metric_rank="first",
    doc=__doc__ or "",
)
