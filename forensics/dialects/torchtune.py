"""torchtune: `Step N | loss:… lr:… tokens_per_second_per_gpu:…` in its log file, `E|N|Loss: …` on its bar.

Tokens per second of one GPU; memory peaks in GiB since the last line. Steps count optimizer updates from 1. NaN is
printed as `nan` and the run goes on; some releases print the gradient norm as `tensor(…)`. There is one checkpoint
per epoch.

Example:
    ```log
    Step 12 | loss:1.6250 lr:2.5e-05 tokens_per_second_per_gpu:640.5 peak_memory_active:10.5 peak_memory_alloc:10.25 peak_memory_reserved:11.75 grad_norm:tensor(2.5000)
    ```
    => step=12 loss=1.625 lr=0.000025 tokens_per_sec_per_device=640.5 mem_active_peak_gib=10.5 mem_peak_gib=10.25 mem_reserved_peak_gib=11.75 grad_norm=2.5

Example:
    ```log
    1|12|Loss: nan:  12%|#         | 12/100 [00:20<02:25,  1.65s/it]
    Model checkpoint of size 4.97 GiB saved to /tmp/run/epoch_0/ft-model.safetensors
    ```
    => step=12 loss=nan
    => saved step=12 path=/tmp/run/epoch_0/ft-model.safetensors

Not this:
    ```log
    Step 12 | waiting for the other ranks
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, N, Name

DIALECT = Dialect(
    name="torchtune",
    title="torchtune",
    lines=(
        Line(
            "metrics",
            " | loss:",
            rf"^Step (?P<step>\d+) \| (?P<tail>loss:.*?)(?: grad_norm:(?:tensor\()?(?P<grad_norm>{N}).*)?$",
            tail="tight",
            names={
                "peak_memory_active": Name("mem_active_peak_gib"),
                "peak_memory_alloc": Name("mem_peak_gib"),
                "peak_memory_reserved": Name("mem_reserved_peak_gib"),
            },
        ),
        Line("metrics", "|Loss: ", rf"^\s*(?P<epoch>\d+)\|(?P<step>\d+)\|Loss: (?P<loss>{N})"),
        Line(
            "saved",
            "Model checkpoint of size ",
            r"Model checkpoint of size [\d.]+ \w+ saved to (?P<path>\S+)",
            carry=True,
        ),
    ),
    doc=__doc__ or "",
)
