"""nanochat: base and mid training, supervised and reinforcement stages, often all in one file.

Every stage starts its steps again at 0. The loss is a debiased running average, so a NaN stays for good; lrm
multiplies the learning rate and is no rate; mfu is in per cent without a sign; tok/sec is of all GPUs; dt is the
step's own time in ms.

Example:
    ```log
    step 00120/05000 (2.40%) | loss: 5.512300 | grad norm: 0.4100 | lrm: 1.00 | dt: 402.50ms | tok/sec: 1,302,578 | mfu: 41.30 | total time: 0.78m
    step 00004 (1.10%) | loss: 1.300000 | lrm: 0.95 | dt: 410.00ms | tok/sec: 1,278,750 | mfu: 40.60 | total time: 0.00m
    ```
    => loss=5.5123 grad_norm=0.41 lr_mult=1 step_time_s=0.4025 tokens_per_sec=1302578 mfu=0.413 step=120
    => loss=1.3 lr_mult=0.95 step_time_s=0.41 step=4

Example:
    ```log
    Step 00250 | Validation bpb: 1.2250
    Step 00100 | Validation loss: 1.0500
    Step 00012/00300 | Training loss: 0.910000| lrm: 0.960000| num_tokens: 9,876
    Step 00250 | CORE metric: 0.0450
    ```
    => eval_bpb=1.225 step=250
    => eval_loss=1.05 step=100
    => loss=0.91 lr_mult=0.96 num_tokens_step=9876 step=12
    => core_metric=0.045 step=250

Example:
    ```log
    nanochat.checkpoint_manager - INFO - Saved model file to: /tmp/nc/base_checkpoints/d4/model_000250.pt
    nanochat.checkpoint_manager - INFO - Loading model from /tmp/nc/base_checkpoints/d4 with step 250
    ```
    => saved step=250 path=/tmp/nc/base_checkpoints/d4/model_000250.pt
    => resumed step=250 path=/tmp/nc/base_checkpoints/d4

Not this:
    ```log
    step 00120 of the tokenizer | loss: none
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, N, Name

DIALECT = Dialect(
    name="nanochat",
    title="nanochat",
    lines=(
        # one line for all stages, so that a later stage, whose steps begin again, is seen as such
        Line(
            "metrics",
            "| lrm: ",
            rf"[Ss]tep (?P<step>\d+)(?:/(?P<max_steps>\d+))?(?: \([\d.]+%\))? \| (?:Training )?loss: (?P<loss>{N})"
            rf"(?: \| grad norm: (?P<grad_norm>{N}))? ?\| lrm: (?P<lr_mult>{N})"
            rf"(?:\| num_tokens: (?P<num_tokens_step>{N})| \| dt: (?P<dt_ms>{N})ms \| tok/sec: (?P<tokens_per_sec>{N})"
            rf"(?: \| (?:bf16_)?mfu: (?P<mfu_pct>{N}))?)",
            names={"dt_ms": Name("step_time_s", 0.001), "mfu_pct": Name("mfu", 0.01)},
        ),
        Line(
            "metrics",
            "| Validation ",
            rf"Step (?P<step>\d+) \| Validation (?:bpb: (?P<eval_bpb>{N})|loss: (?P<eval_loss>{N}))",
        ),
        Line("metrics", "| CORE metric: ", rf"Step (?P<step>\d+) \| CORE metric: (?P<core_metric>{N})"),
        Line("metrics", "_acc: ", rf"^Step (?P<step>\d+) \| (?P<tail>\w+_acc: {N}.*)$", tail="colon"),
        Line("saved", "Saved model file to: ", r"Saved model file to: (?P<path>\S*model_(?P<step>\d+)\.pt)"),
        Line("resumed", "Loading model from ", r"Loading model from (?P<path>\S+) with step (?P<step>\d+)"),
    ),
    metric_rank="first",
    doc=__doc__ or "",
)
