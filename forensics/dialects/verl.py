"""verl: `step:N - key:value - key:value …`, one line of several kilobytes per RL step.

`perf/throughput` is tokens per second of one GPU, `timing_s/*` seconds, `*_gb` GiB, mfu a fraction. The step counts
rollouts. Only numbers are printed; NumPy 2 prints `np.float64(nan)`. `actor/pg_loss` is taken as the loss; `critic/*`
keep their names. Checkpoints are global_step_N/ folders.

Example:
    ```log
    (TaskRunner pid=123, ip=10.0.0.9) step:7 - actor/entropy:np.float64(1.25) - actor/pg_loss:-0.0125 - actor/grad_norm:0.375 - perf/max_memory_allocated_gb:40.5 - perf/throughput:1500.5 - timing_s/step:60.5
    ```
    => step=7 actor/entropy=1.25 loss=-0.0125 grad_norm=0.375 mem_peak_gib=40.5 tokens_per_sec_per_device=1500.5 step_time_s=60.5

Example:
    ```log
    (TaskRunner pid=123) local_global_step_folder: checkpoints/p/e/global_step_20
    (TaskRunner pid=123) Setting global step to 20
    ```
    => saved step=20 path=checkpoints/p/e/global_step_20
    => resumed step=20

Not this:
    ```log
    step:7 - done
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, Name

DIALECT = Dialect(
    name="verl",
    title="verl",
    lines=(
        Line(
            "metrics",
            "step:",
            r"(?:^|\s)step:(?P<step>\d+) - (?P<tail>[A-Za-z_][\w./@%-]*:.+)$",
            tail="tight",
            names={
                "actor/pg_loss": Name("loss"),
                "timing_s/step": Name("step_time_s"),
                "perf/max_memory_allocated_gb": Name("mem_peak_gib"),
                "perf/max_memory_reserved_gb": Name("mem_reserved_peak_gib"),
                "perf/mfu/actor": Name("mfu"),
                "training/global_step": None,
            },
        ),
        Line(
            "saved",
            "local_global_step_folder: ",
            r"local_global_step_folder: (?P<path>\S*global_step_(?P<step>\d+))",
        ),
        Line("resumed", "Setting global step to ", r"Setting global step to (?P<step>\d+)"),
    ),
    metric_rank="any",
    doc=__doc__ or "",
)
