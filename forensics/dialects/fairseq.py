r"""fairseq: JSON objects with string values (`train_inner`, `train`, `valid`), or `epoch 001:  i / N loss=…`.

The loss of language models is in bits (base 2); wps is tokens per second of all ranks; `gb_free` is free memory, so
creep shows as a fall. The step is `num_updates`, optimizer updates from 1. `train` lines are means of the whole epoch
and are kept apart as `epoch_loss`. Gradient overflow halves the loss scale and leaves the weights alone: normal near
the start, fatal when the scale reaches its minimum. A NaN loss raises, after a dump that names the first layer with
NaN.

Example:
    ```log
    [2026-01-02 03:04:05,678][train_inner][INFO] - {"epoch": 2, "update": 1.5, "loss": "6.125", "wps": "7000", "num_updates": "300", "lr": "2.5e-05", "gnorm": "1.75", "loss_scale": "16", "gb_free": "7.5", "wall": "600"}
    [2026-01-02 03:05:05,678][fairseq.trainer][INFO] - NOTE: gradient overflow detected, ignoring gradient, setting loss scale to: 8.0
    ```
    => step=300 loss=6.125 tokens_per_sec=7000 lr=0.000025 grad_norm=1.75 loss_scale=16 gb_free=7.5
    => event fairseq.overflow step=300

Example:
    ```log
    [2026-01-02 03:04:05,678][valid][INFO] - {"epoch": 2, "valid_loss": "5.25", "valid_num_updates": "400"}
    [2026-01-02 03:04:06,678][fairseq.checkpoint_utils][INFO] - Saved checkpoint ck/checkpoint_2_400.pt (epoch 2 @ 400 updates, score 5.25) (writing took 2.5 seconds)
    [2026-01-02 03:04:07,678][train][INFO] - {"epoch": 2, "train_loss": "6.75", "train_num_updates": "400", "train_gnorm": "1.5"}
    ```
    => step=400 eval_loss=5.25
    => committed step=400 path=ck/checkpoint_2_400.pt
    => step=400 epoch_loss=6.75

Example:
    ```log
    2026-01-02 03:04:05 | INFO | train_inner | epoch 003:    100 / 480 loss=5.125, ppl=34.9, wps=9000, num_updates=1060, lr=0.0005, gnorm=1.25
    ```
    => step=1060 loss=5.125 ppl=34.9 tokens_per_sec=9000 lr=0.0005 grad_norm=1.25

Not this:
    ```log
    [2026-01-02 03:04:05,678][fairseq_cli.train][INFO] - {'_name': None, 'loss': 'cross_entropy', 'num_updates': 400}
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, N, Name

_INNER = {"num_updates": None, "update": None}
_EPOCH = {"train_loss": Name("epoch_loss"), "train_num_updates": None, "train_gnorm": Name("epoch_grad_norm")}

DIALECT = Dialect(
    name="fairseq",
    title="fairseq",
    lines=(
        Line(
            "metrics",
            '"num_updates": ',
            r"train_inner(?:\]\[INFO\] - | \| )\{"
            r'(?P<tail>"epoch": (?P<epoch>\d+).*?"num_updates": "?(?P<step>\d+).*)\}',
            tail="json",
            names=_INNER,
        ),
        Line(
            "metrics",
            '"valid_num_updates": ',
            r'\{(?P<tail>"epoch": (?P<epoch>\d+).*?"valid_num_updates": "?(?P<step>\d+).*)\}',
            tail="json",
            names={"valid_num_updates": None},
        ),
        Line(
            "metrics",
            '"train_num_updates": ',
            r'\{(?P<tail>"epoch": (?P<epoch>\d+).*?"train_num_updates": "?(?P<step>\d+).*)\}',
            tail="json",
            names=_EPOCH,
        ),
        Line(
            "metrics",
            "num_updates=",
            r"epoch (?P<epoch>\d+):.*?\d+\s*/\s*\d+ .*?(?P<tail>\bloss=.*?num_updates=(?P<step>\d+).*)$",
            tail="eq",
            names=_INNER,
        ),
        Line(
            "metrics",
            "' subset | ",
            rf"valid on '[^']*' subset \| loss (?P<eval_loss>{N}) .*?num_updates (?P<step>\d+)",
        ),
        Line("overflow", "overflow detected, ignoring", r"overflow detected, ignoring gradient", carry=True),
        Line("nan", "NaN detected in output of", r"NaN detected in output of ", carry=True),
        Line(
            "committed",
            "Saved checkpoint ",
            r"Saved checkpoint (?P<path>\S+) \(epoch (?P<epoch>\d+) @ (?P<step>\d+) updates",
        ),
        Line("resumed", "Loaded checkpoint ", r"Loaded checkpoint (?P<path>\S+) \(epoch \d+ @ (?P<step>\d+) updates\)"),
        Line("ended", "done training in ", r"done training in [\d.]+ seconds"),
    ),
    skips_update_on_nan=True,
    doc=__doc__ or "",
)
