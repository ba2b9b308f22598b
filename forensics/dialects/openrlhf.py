"""OpenRLHF: `Global step N: {…}`, a Python dict per rollout step, printed by a Ray actor.

Times (`timing/*`) are seconds, lengths are tokens. The step counts rollouts, not optimizer updates. NaN is printed
bare. `policy_loss` is taken as the loss; it is near zero by nature. The actor's checkpoint is
ckpt/_actor/global_stepN.

Example:
    ```log
    INFO 03-04 05:06:07 ppo_trainer.py:551] Global step 25: {'policy_loss': 0.0125, 'actor_lr': 5e-07, 'kl': 0.25, 'reward': 0.375, 'response_length': 640.0}
    ```
    => step=25 loss=0.0125 actor_lr=5e-07 kl=0.25 reward=0.375 response_length=640

Example:
    ```log
    (PPOTrainer pid=77, ip=10.0.0.9) Global step 26: {'policy_loss': nan, 'kl': nan, 'reward': 0.25}
    ```
    => step=26 loss=nan kl=nan reward=0.25

Not this:
    ```log
    Global step 26: nothing to report
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, Name

DIALECT = Dialect(
    name="openrlhf",
    title="OpenRLHF",
    lines=(
        Line(
            "metrics",
            "Global step ",
            r"Global step (?P<step>\d+): \{(?P<tail>'.*)\}",
            tail="pydict",
            names={"policy_loss": Name("loss")},
        ),
    ),
    metric_rank="any",
    doc=__doc__ or "",
)
