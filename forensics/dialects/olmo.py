"""OLMo and OLMo-core: a head `[step=N/M,epoch=E]`, then one indented `name=value` line for each metric.

Steps count updates from 1; token rates are per device; memory in MB or GiB as the name says; whole numbers have
thousands separators, and large ones B or T. OLMo cannot print an infinite metric as a whole number: its logger raises
OverflowError instead. OLMo-core stops on a non-finite loss, a NaN gradient norm passes. An asynchronous save counts
from `saved successfully`.

Example:
    ```log
    2025-08-09T10:11:12.131Z	node-a:0	olmo.train:967	INFO	[step=60/9000,epoch=0]
        optim/total_grad_norm=0.8812
        train/CrossEntropyLoss=5.250
        train/Perplexity=190.6
        optim/learning_rate_group0=0.0001
        throughput/device/tokens_per_second=9,876
        System/Peak GPU Memory (MB)=40,960
    ```
    => grad_norm=0.8812 step=60
    => loss=5.25 step=60
    => perplexity=190.6 step=60
    => lr=0.0001 step=60
    => tokens_per_sec_per_device=9876 step=60
    => mem_peak_gib=40 step=60

Example:
    ```log
    2025-08-09 10:11:12.131	node-a:0	olmo_core.train.callbacks.console_logger:84	INFO	[step=20/500,epoch=1,eta=1:02:03]
        train/CE loss=nan
        optim/total grad norm=1.500
        optim/LR (group 0)=0.0003
        optim/step skipped=0.0
        throughput/device/TPS=12,500
        throughput/device/MFU=38.50
        gpu_memory/GPU active mem (GiB)=22.75
    ```
    => loss=nan step=20
    => grad_norm=1.5 step=20
    => lr=0.0003 step=20
    => skipped_steps=0 step=20
    => tokens_per_sec_per_device=12500 step=20
    => mfu=0.385 step=20
    => mem_active_peak_gib=22.75 step=20

Example:
    ```log
    Saving checkpoint for step 400 to 'runs/demo/step400'...
    Checkpoint for step 400 saved successfully
    Will resume training from step 400, epoch 0
    ```
    => saved step=400 path=runs/demo/step400
    => committed step=400
    => resumed step=400

Not this:
    ```log
        train/data_dir=/data/c4
    [step=all]
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, N, Name

_MIB = 1 / 1024
_GROUP = "value"
#: printed name, canonical name, factor to its unit
_METRICS = (
    ("train/CrossEntropyLoss", "loss", 1.0),
    ("train/CE loss", "loss", 1.0),
    ("train/Perplexity", "perplexity", 1.0),
    ("train/PPL", "perplexity", 1.0),
    ("train/ZLoss", "z_loss", 1.0),
    ("train/Z loss", "z_loss", 1.0),
    ("optim/total_grad_norm", "grad_norm", 1.0),
    ("optim/total grad norm", "grad_norm", 1.0),
    ("optim/learning_rate_group0", "lr", 1.0),
    ("optim/LR (group 0)", "lr", 1.0),
    ("optim/clipping_rate", "clip_rate", 1.0),
    ("optim/step skipped", "skipped_steps", 1.0),
    ("throughput/total_tokens", "num_tokens", 1.0),
    ("throughput/total tokens", "num_tokens", 1.0),
    ("throughput/device/tokens_per_second", "tokens_per_sec_per_device", 1.0),
    ("throughput/device/TPS", "tokens_per_sec_per_device", 1.0),
    ("throughput/device/BPS", "steps_per_sec", 1.0),
    ("throughput/device/batches_per_second", "steps_per_sec", 1.0),
    ("throughput/device/MFU", "mfu", 0.01),
    ("System/Peak GPU Memory (MB)", "mem_peak_gib", _MIB),
    ("gpu_memory/GPU active mem (GiB)", "mem_active_peak_gib", 1.0),
    ("gpu_memory/GPU reserved mem (GiB)", "mem_reserved_peak_gib", 1.0),
    ("eval/lm/CrossEntropyLoss", "eval_loss", 1.0),
)


def _value(printed: str, canonical: str, scale: float) -> Line:
    escaped = printed.replace("(", r"\(").replace(")", r"\)")
    pattern = rf"^\s+{escaped}=(?P<{_GROUP}>{N}[BT]?)$"
    return Line("metrics", f" {printed}=", pattern, names={_GROUP: Name(canonical, scale)}, carry=True)


_HEAD = r"\[step=(?P<step>\d+)/(?:(?P<max_steps>\d+)|\?\?\?),epoch=(?P<epoch>\d+)(?:,eta=[^\]]*)?\]"

DIALECT = Dialect(
    name="olmo",
    title="OLMo, OLMo-core",
    lines=(
        Line("progress", "[step=", _HEAD),
        *(_value(*row) for row in _METRICS),
        Line("saved", "Saving checkpoint for step ", r"Saving checkpoint for step (?P<step>\d+) to '(?P<path>[^']+)'"),
        Line("committed", " saved successfully", r"Checkpoint for step (?P<step>\d+) saved successfully"),
        Line("resumed", "Will resume training from step ", r"Will resume training from step (?P<step>\d+)"),
        Line("ended", "Training complete", r"\tTraining complete|^Training complete$"),
    ),
    sniff=(_HEAD,),
    metric_rank="first",
    doc=__doc__ or "",
)
