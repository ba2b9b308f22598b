"""llm.c: `step N/M | loss … (z) | norm … (z) | lr … | … ms | … MFU | … tok/s`.

Steps count from 1; time in ms, tok/s of all GPUs, MFU in per cent. The z scores against the last 128 steps are nan
until there are 128: only the number after `loss` counts as a NaN. A run may be told to skip updates by z score. A
checkpoint is whole when its DONE file is there.

Example:
    ```log
    step   40/8000 | loss 7.215000 (+nanz)| norm 2.1400 (+nanz)| lr 2.40e-05 | 1520.10 ms | 38.2% bf16 MFU | 345678 tok/s
    step  900/8000 | loss nan (+0.10z)| norm nan (-0.20z)| lr 6.00e-04 | 1519.00 ms | 38.3% bf16 MFU | 345700 tok/s
    step  901/8000 | train loss 4.125000 | norm 1.0000 | lr 6.00e-04 | (1600.00 ms | 327680 tok/s)
    ```
    => loss=7.215 grad_norm=2.14 lr=2.4e-05 step_time_s=1.5201 mfu=0.382 tokens_per_sec=345678 step=40
    => loss=nan grad_norm=nan step=900
    => loss=4.125 grad_norm=1 step_time_s=1.6 step=901

Example:
    ```log
    val loss 3.910000
    ```
    => eval_loss=3.91 step=none

Not this:
    ```log
    step 40/8000 | loss pending
    val loss is computed every 250 steps
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, N, Name

_Z = r"(?: \([+-]?[\w.]+z\))?"

DIALECT = Dialect(
    name="llm_c",
    title="llm.c",
    lines=(
        Line(
            "metrics",
            "| norm ",
            rf"^step\s+(?P<step>\d+)/(?P<max_steps>\d+) \| (?:train )?loss (?P<loss>{N}){_Z}\s*"
            rf"\| norm (?P<grad_norm>{N}){_Z}\s*\| lr (?P<lr>{N}) \| \(?(?P<step_ms>{N}) ms\)?"
            rf"(?: \| (?:(?P<mfu_pct>{N})% \S+ MFU))?(?: \| (?P<tokens_per_sec>{N}) tok/s)?",
            names={"step_ms": Name("step_time_s", 0.001), "mfu_pct": Name("mfu", 0.01)},
        ),
        Line("metrics", "val loss ", rf"^val loss (?P<eval_loss>{N})\s*$", carry=True),
    ),
    sniff=(r"^step\s+\d+/\d+ \| (?:train )?loss \S+(?: \([^)]*z\))?\s*\| norm ",),
    metric_rank="first",
    doc=__doc__ or "",
)
