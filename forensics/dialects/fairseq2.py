"""fairseq2: `Train Metrics (step N) - Key: value | Key: value`.

Numbers are formatted for people: thousands separators, %, GiB, s. Steps count optimizer updates from 1. NaN prints as
`nan`; an infinite value of a metric that is formatted as an integer raises inside the logger instead.

Example:
    ```log
    [2026-01-02 03:04:05,678] [Rank 0] INFO fairseq2.train - Train Metrics (step 40) - Data Epoch: 1 | Loss: 2.625 | Gradient Norm: 1.125 | Learning Rate: 2.5e-05 | Batch Size: 32 | Elements per Second: 12,800 | Elapsed Time: 120s
    ```
    => step=40 loss=2.625 grad_norm=1.125 lr=0.000025

Example:
    ```log
    [2026-01-02 03:04:05,678] [Rank 0] INFO fairseq2.train - Validation (dev) Metrics (step 40) - Loss: 2.25 | Elapsed Time: 20s
    Checkpoint at step 40 saved.
    ```
    => step=40 eval_loss=2.25
    => committed step=40

Not this:
    ```log
    Train Metrics (step 40) could not be written
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, Name

_NAMES = {"Data Epoch": None, "Batch Size": None, "Elements per Second": Name("elements_per_sec")}

DIALECT = Dialect(
    name="fairseq2",
    title="fairseq2",
    lines=(
        Line(
            "metrics",
            "Train Metrics (step ",
            r"Train Metrics \(step (?P<step>\d+)\) - (?P<tail>.+)$",
            tail="colon",
            names=_NAMES,
        ),
        Line(
            "metrics",
            " Metrics (step ",
            r"(?:Valid|Eval)\w*(?: \([^)]*\))? Metrics \(step (?P<step>\d+)\) - (?P<tail>.+)$",
            tail="colon",
            names={**_NAMES, "Loss": Name("eval_loss")},
        ),
        Line("committed", "Checkpoint at step ", r"Checkpoint at step (?P<step>\d+) saved"),
    ),
    doc=__doc__ or "",
)
