"""diffusers and accelerate example scripts: a `Steps:` bar with `lr=…, step_loss=…` behind it.

The step counts optimizer updates; `step_loss` is of one micro-batch, so it is very noisy for diffusion models and a
factor of two up or down is healthy. NaN is printed as `nan`. `Saved state to` is printed once a checkpoint is
written.

Example:
    ```log
    Steps:  10%|#         | 75/750 [01:40<15:00,  1.33s/it, lr=2.5e-05, step_loss=0.125]
    03/04/2026 05:06:07 - INFO - __main__ - Saved state to out/checkpoint-75
    ```
    => step=75 lr=0.000025 loss=0.125
    => committed step=75 path=out/checkpoint-75

Example:
    ```log
    Resuming from checkpoint checkpoint-75
    ```
    => resumed step=75

Not this:
    ```log
    Steps:  10%|#         | 75/750 [01:40<15:00,  1.33s/it]
    ```
"""

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line

DIALECT = Dialect(
    name="accelerate",
    title="diffusers / accelerate scripts",
    lines=(
        Line(
            "metrics",
            "Steps: ",
            r"Steps:\s+\d+%\|[^|]*\|\s*(?P<step>\d+)/(?P<max_steps>\d+) \[[^\]=]*?, (?P<tail>[A-Za-z_]\w*=[^\]]+)",
            tail="eq",
        ),
        Line("committed", "Saved state to ", r"Saved state to (?P<path>\S*checkpoint-(?P<step>\d+))"),
        Line("resumed", "Resuming from checkpoint ", r"Resuming from checkpoint \S*checkpoint-(?P<step>\d+)"),
    ),
    doc=__doc__ or "",
)
