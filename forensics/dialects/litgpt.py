"""LitGPT and lit-llama: `Epoch E | iter I step S | loss train: …, val: … | iter time: … ms`.

step counts optimizer updates, iter micro-batches; the loss is of one micro-batch. The time is of one ITERATION, so it
is kept as iter_time_s: an update takes as many of them as gradients are accumulated. val is n/a until one ran. NaN is
printed and the run goes on.

Example:
    ```log
    Epoch 2 | iter 640 step 160 | loss train: 2.415, val: n/a | iter time: 118.50 ms (step) remaining time: 0:21:40
    Epoch 2 | iter 644 step 161 | loss train: nan, val: 2.500 | iter time: 95.00 ms
    iter 644: val loss 2.5000, val time: 2040.00 ms
    ```
    => loss=2.415 iter_time_s=0.1185 step=160
    => loss=nan eval_loss=2.5 iter_time_s=0.095 step=161
    => eval_loss=2.5 eval_time_s=2.04 step=161

Example:
    ```log
    iter 250: loss 1.9900, time: 88.00ms
    ```
    => loss=1.99 iter_time_s=0.088 step=250

Example:
    ```log
    Saving checkpoint to 'out/demo/step-00000160/lit_model.pth'
    ```
    => saved step=160 path=out/demo/step-00000160/lit_model.pth

Not this:
    ```log
    iter 250: loss 1.9900, time 88.00ms, mfu 10.00%
    Epoch 2 | iter times are averages
    ```
"""

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, N, Name

_NAMES = {"iter_ms": Name("iter_time_s", 0.001), "val_ms": Name("eval_time_s", 0.001)}

DIALECT = Dialect(
    name="litgpt",
    title="LitGPT, lit-llama",
    lines=(
        Line(
            "metrics",
            "| iter time: ",
            rf"Epoch (?P<epoch>\d+) \| iter (?P<iter>\d+) step (?P<step>\d+) \| loss train: (?P<loss>{N}),"
            rf" val: (?:n/a|(?P<eval_loss>{N})) \| iter time: (?P<iter_ms>{N}) ms",
            names=_NAMES,
        ),
        Line(
            "metrics",
            ": val loss ",
            rf"^iter (?P<iter>\d+): val loss (?P<eval_loss>{N}), val time: (?P<val_ms>{N}) ms",
            names=_NAMES,
            carry=True,
        ),
        Line(
            "metrics",
            ", time: ",
            rf"^iter (?P<step>\d+): loss (?P<loss>{N}), time: (?P<iter_ms>{N})ms",
            names=_NAMES,
        ),
        Line(
            "saved",
            "Saving checkpoint to '",
            r"Saving checkpoint to '(?P<path>[^']*step-(?P<step>\d+)[^']*|[^']+)'",
        ),
        Line("resumed", "Resuming training from ", r"Resuming training from (?P<path>\S*step-(?P<step>\d+)\S*)"),
    ),
    metric_rank="first",
    doc=__doc__ or "",
)
