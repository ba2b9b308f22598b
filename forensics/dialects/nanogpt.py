"""nanoGPT: `iter N: loss …, time …ms, mfu …%`, and `step N: train loss …, val loss …` at evaluations.

iter counts from 0; the loss is of one micro-batch, noisy; the time is of that iteration, with the evaluation and the
saving that happened in it, so a slow line at every evaluation is no slowdown. mfu is a running mean in per cent, -100
until it is measured. NaN is printed and the run goes on; the one checkpoint file is overwritten only when the
validation loss improves, which NaN never does.

Example:
    ```log
    iter 310: loss 4.0210, time 512.40ms, mfu 23.50%
    iter 2: loss nan, time 530.00ms, mfu -100.00%
    ```
    => loss=4.021 step_time_s=0.5124 mfu=0.235 step=310
    => loss=nan step_time_s=0.53 step=2

Example:
    ```log
    step 500: train loss 3.7001, val loss 3.8125
    saving checkpoint to out-demo
    ```
    => train_eval_loss=3.7001 eval_loss=3.8125 step=500
    => saved step=500 path=out-demo

Not this:
    ```log
    iter 100: loss 2.5000, time: 120.00ms
    print(f"iter {iter_num}: loss {lossf:.4f}, time {dt*1000:.2f}ms, mfu {running_mfu*100:.2f}%")
    ```
"""

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, N, Name

DIALECT = Dialect(
    name="nanogpt",
    title="nanoGPT",
    lines=(
        Line(
            "metrics",
            ": loss ",
            rf"^iter (?P<step>\d+): loss (?P<loss>{N}), time (?P<step_time_ms>{N})ms"
            rf"(?:, mfu (?:-100\.00|(?P<mfu_pct>{N}))%)?",
            names={"step_time_ms": Name("step_time_s", 0.001), "mfu_pct": Name("mfu", 0.01)},
        ),
        Line(
            "metrics",
            ": train loss ",
            rf"^step (?P<step>\d+): train loss (?P<train_eval_loss>{N}), val loss (?P<eval_loss>{N})",
        ),
        Line("saved", "saving checkpoint to ", r"^saving checkpoint to (?P<path>\S+)$", carry=True),
        Line("resumed", "Resuming training from ", r"^Resuming training from (?P<path>\S+)$"),
    ),
    metric_rank="first",
    doc=__doc__ or "",
)
