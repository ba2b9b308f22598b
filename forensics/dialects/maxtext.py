"""MaxText (`completed step: N, …`), Levanter (a `train:` bar) and one-line EasyLM dicts.

MaxText: seconds of the step, TFLOP/s and tokens/s of one device; steps count from 0, and steps 0 and 1 contain the
compilation, which takes minutes. NaN is printed and the run goes on; with `jax_debug_nans` it raises instead.
Orbax writes to a temporary folder first: a folder named `…orbax-checkpoint-tmp` was never committed.

Example:
    ```log
    completed step: 12, seconds: 3.25, TFLOP/s/device: 180.5, Tokens/s/device: 2400.25, total_weights: 65536, loss: 7.125
    saved a checkpoint at step 12
    ```
    => step=12 step_time_s=3.25 tflops_per_device=180.5 tokens_per_sec_per_device=2400.25 loss=7.125
    => committed step=12

Example:
    ```log
    eval metrics after step: 12, loss=6.875, total_weights=65536.0
    train:  10%|#         | 100/1000 [02:00<18:00,  1.20s/it, loss=3.25]
    {'accuracy': 0.25, 'learning_rate': 0.0003, 'loss': 3.375, 'step': 100}
    ```
    => step=12 eval_loss=6.875
    => step=100 loss=3.25
    => step=100 accuracy=0.25 lr=0.0003 loss=3.375

Not this:
    ```log
    completed step: waiting for 12 hosts
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, N, Name

DIALECT = Dialect(
    name="maxtext",
    title="MaxText, Levanter, EasyLM (JAX)",
    lines=(
        Line(
            "metrics",
            "completed step: ",
            r"completed step: (?P<step>\d+), (?P<tail>.+)$",
            tail="colon",
            names={
                "seconds": Name("step_time_s"),
                "TFLOP/s/device": Name("tflops_per_device"),
                "total_weights": Name("num_tokens_step"),
            },
        ),
        Line(
            "metrics",
            "eval metrics after step: ",
            rf"eval metrics after step: (?P<step>\d+), loss=(?P<eval_loss>{N})",
        ),
        Line(
            "metrics",
            "train: ",
            rf"^train:\s+\d+%\|[^|]*\|\s*(?P<step>\d+)/(?P<max_steps>\d+) \[[^\]]*?\bloss=(?P<loss>{N})",
        ),
        Line(
            "metrics",
            ", 'step': ",
            r"^\{(?P<tail>'.*'loss': .*), 'step': (?P<step>\d+)",
            tail="pydict",
        ),
        Line("committed", "saved a checkpoint at step ", r"saved a checkpoint at step (?P<step>\d+)"),
    ),
    metric_rank="any",
    doc=__doc__ or "",
)
