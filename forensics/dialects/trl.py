"""TRL: the Hugging Face Trainer's dict with token counts, rewards and completion lengths (SFT, DPO, GRPO, PPO).

num_tokens is cumulative, completions/* are in tokens, step_time in seconds. The step is found as for the Trainer. The
NaN filter of the Trainer applies: loss 0 with `grad_norm` nan is a hidden NaN, entropy turns nan with it. In GRPO a
negative loss is healthy, and loss 0 with grad_norm 0 and `frac_reward_zero_std` 1 only says that every answer got one
reward; NaN weights print nothing here, generation fails on its probability tensor instead.

Example:
    ```log
     25%|██▌       | 5/20 [00:10<00:30,  2.00s/it]
    {'loss': '-0.031', 'grad_norm': '0.71', 'learning_rate': '8e-07', 'num_tokens': '512', 'rewards/exact/mean': '0.25', 'reward_std': '0.4', 'frac_reward_zero_std': '0', 'step_time': '1.5', 'epoch': '0.25'}
    ```
    => loss=-0.031 grad_norm=0.71 lr=8e-07 num_tokens=512 rewards/exact/mean=0.25 reward_std=0.4 step_time_s=1.5 step=5

Example:
    ```log
    {'loss': 1.88, 'grad_norm': nan, 'learning_rate': 2e-05, 'entropy': nan, 'num_tokens': 9000.0, 'mean_token_accuracy': 0.0, 'epoch': 0.4}
    {'eval_loss': 1.9, 'eval_runtime': 3.0, 'eval_entropy': 1.7, 'eval_num_tokens': 9000.0, 'epoch': 0.4}
    ```
    => loss=1.88 grad_norm=nan entropy=nan mean_token_accuracy=0 step=none
    => eval_loss=1.9 eval_entropy=1.7 step=none

Not this:
    ```log
    {'num_tokens': 512, 'loss': 'grpo'}
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects._hf import EXTRA_NAMES, SHARED, fill_step, number
from forensics.dialects.spec import Dialect, Line, Name

_NAMES: dict[str, Name | None] = {
    **EXTRA_NAMES,
    "eval_num_tokens": None,
    "lr": Name("lr"),
    "episode": None,
    "eps": None,
}
# one of these keys tells the dict from the plain Trainer's
_MARK = r"'(?:num_tokens|entropy|mean_token_accuracy|completions/[^']*|rewards?/[^']*|logps/[^']*|logits/[^']*|kl)': "
_LOSS = rf"\{{'loss': {number('loss')}(?P<tail>.*{_MARK}.*), 'epoch': {number('epoch')}"
_PPO = rf"\{{(?P<tail>'eps': .*'objective/kl': .*), 'epoch': {number('epoch')}"

DIALECT = Dialect(
    name="trl",
    title="TRL (SFT, DPO, GRPO, PPO)",
    lines=(
        Line("metrics", "{'loss': ", _LOSS, tail="pydict", names=_NAMES),
        Line("metrics", "'objective/kl': ", _PPO, tail="pydict", names=_NAMES),
        Line(
            "metrics",
            "{'eval_loss': ",
            rf"\{{'eval_loss': {number('eval_loss')}(?P<tail>.*), 'epoch': {number('epoch')}",
            tail="pydict",
            names=_NAMES,
        ),
        *SHARED,
    ),
    sniff=(_LOSS, _PPO),
    finish=fill_step,
    hides_nan=True,
    metric_rank="first",
    doc=__doc__ or "",
)
