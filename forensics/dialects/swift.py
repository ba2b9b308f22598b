"""ms-swift: Hugging Face dicts with `'global_step/max_steps': 'N/M'` in them.

`train_speed(s/it)` is the mean since the start (older releases: iterations per second), so it hides a slowdown;
`memory(GiB)` is the running maximum of reserved memory and can only rise. The NaN filter of the Hugging Face trainer
is on: a NaN step shows as a stale or zero loss beside a NaN gradient norm. The same keys stand in logging.jsonl.

Example:
    ```log
    {'loss': 1.375, 'grad_norm': 0.75, 'learning_rate': 2.5e-05, 'token_acc': 0.625, 'epoch': 0.1, 'global_step/max_steps': '5/100', 'percentage': '5.00%', 'elapsed_time': '12s', 'remaining_time': '3m 40s', 'memory(GiB)': 20.5, 'train_speed(s/it)': 2.125}
    ```
    => step=5 loss=1.375 grad_norm=0.75 lr=0.000025 token_acc=0.625 mem_reserved_max_gib=20.5 step_time_avg_s=2.125

Not this:
    ```log
    {'loss': 1.375, 'grad_norm': 0.75, 'learning_rate': 2.5e-05, 'epoch': 0.1}
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, Name

DIALECT = Dialect(
    name="swift",
    title="ms-swift",
    lines=(
        Line(
            "metrics",
            "'global_step/max_steps': '",
            r"\{(?P<tail>'.*?'global_step/max_steps': '(?P<step>\d+)/(?P<max_steps>\d+)'.*)\}",
            tail="pydict",
            names={
                "global_step/max_steps": None,
                "percentage": None,
                "elapsed_time": None,
                "remaining_time": None,
                "memory(GiB)": Name("mem_reserved_max_gib"),
                "train_speed(s/it)": Name("step_time_avg_s"),
                "train_speed(iter/s)": Name("steps_per_sec_avg"),
            },
        ),
    ),
    hides_nan=True,
    doc=__doc__ or "",
)
