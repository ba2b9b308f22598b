r"""Stable-Baselines and Stable-Baselines3: boxed tables of `| key | value |`, one table for each log interval.

The step is `total_timesteps`, steps of the environment over all copies. It stands in the middle of a table: rows above
it carry the step of the table before. A section's name stands alone in a row; keys are cut where they are too long.

Example:
    ```log
    | rollout/           |          |
    |    ep_rew_mean     | 18.5     |
    | time/              |          |
    |    total_timesteps | 4096     |
    | train/             |          |
    |    loss            | 6.25     |
    |    value_loss      | nan      |
    ```
    => ep_rew_mean=18.5 step=none
    => total_timesteps=4096 step=4096
    => loss=6.25 step=4096
    => value_loss=nan step=4096

Not this:
    ```log
    | model | rows  |
    |:------|:------|
    | small | 12 of |
    ```
"""

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, N

_STEP = r"^\|\s+total[_ ]timesteps\s+\|\s+(?P<step>\d+)\s+\|"

DIALECT = Dialect(
    name="stable_baselines3",
    title="Stable-Baselines3",
    lines=(
        Line("progress", "| ", _STEP),
        Line(
            "metrics",
            "| ",
            rf"^(?P<tail>\|\s+[A-Za-z_][\w/.]*\s+\|\s+{N}\s+\|)\s*$",
            tail="box",
            carry=True,
        ),
    ),
    sniff=(_STEP,),
    metric_rank="any",
    doc=__doc__ or "",
)
