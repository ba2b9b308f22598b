"""KempnerForge: `[step N] key=value | key=value` lines of one logger on rank 0.

Step counts optimizer updates from 1; a line is printed at step 1 and every `log_interval`. tok/s is of all ranks, mfu
a percentage, mem the running peak over the card's total in GiB (it says GB), step_time seconds of the last step. A
step whose loss is NaN or infinite prints no metric line: a warning names it by the number before the increment, so
the metric line that is missing is one later. The update, the evaluation and the checkpoint of that step are skipped,
yet the counter goes on; ten in a row end the run with the usual closing line and exit status 0. A NaN that is only in
the gradient passes this guard. A checkpoint counts from its `committed` line.

Example:
    ```log
    [rank 0] INFO     [step 50] loss=4.1250 | lr=2.50e-04 | grad_norm=0.870 | tok/s=61,500 | mfu=21.5% | mem=3.2/80GB | step_time=0.21s
    ```
    => loss=4.125 lr=0.00025 grad_norm=0.87 tokens_per_sec=61500 mfu=0.215 mem_peak_gib=3.2 mem_total_gib=80 step_time_s=0.21 step=50

Example:
    ```log
    [rank 0] INFO     [step 80] eval_loss=4.0100 | eval_ppl=55.15
    [rank 0] INFO     [step 80] GPU mem: 1.5GB allocated, 3.2GB peak, 3.9GB reserved / 79.1GB total (4%)
    ```
    => eval_loss=4.01 eval_ppl=55.15 step=80
    => mem_allocated_gib=1.5 mem_peak_gib=3.2 mem_reserved_gib=3.9 mem_total_gib=79.1 step=80

Example:
    ```log
    [rank 0] WARNING  NaN/Inf loss at step 90 (consecutive=1, total=1, last_good_loss=3.9000 at step 89)
    ```
    => event kempnerforge.nan step=91

Example:
    ```log
    [rank 0] INFO     Checkpoint committed: ckpt/run7/step_80 (step=80)
    [rank 0] INFO     Removed old checkpoint: ckpt/run7/step_40
    [rank 0] INFO     Resumed from step 80, 1,310,720 tokens seen
    ```
    => committed step=80 path=ckpt/run7/step_80
    => removed step=40 path=ckpt/run7/step_40
    => resumed step=80

Not this:
    ```log
    [rank 0] INFO     [step 50] starting evaluation
    ```
"""  # noqa: E501 - a log line is as long as it is printed

from __future__ import annotations

from forensics.dialects.spec import Dialect, Line, Name

_NAMES = {
    "mem": Name("mem_peak_gib"),
    "mfu": Name("mfu", 0.01),
    "eval_ppl": Name("eval_ppl"),
}

DIALECT = Dialect(
    name="kempnerforge",
    title="KempnerForge",
    lines=(
        Line(
            "metrics",
            "[step ",
            r"\[step (?P<step>\d+)\] (?P<tail>[A-Za-z_][\w./-]*="
            r"(?:.* mem=\d[\d.]*/(?P<mem_total_gib>\d[\d.]*)GB)?.*)$",
            tail="eq",
            names=_NAMES,
        ),
        Line(
            "metrics",
            "] GPU mem: ",
            r"\[step (?P<step>\d+)\] GPU mem: (?P<mem_allocated_gib>\d[\d.]*)GB allocated, "
            r"(?P<mem_peak_gib>\d[\d.]*)GB peak, (?P<mem_reserved_gib>\d[\d.]*)GB reserved"
            r"(?: / (?P<mem_total_gib>\d[\d.]*)GB total)?",
        ),
        Line("nan", "NaN/Inf loss at step ", r"NaN/Inf loss at step (?P<step>\d+) \(consecutive=", step_offset=1),
        Line("saved", "Sync checkpoint saved: ", r"Sync checkpoint saved: (?P<path>\S*step_(?P<step>\d+)|\S+)"),
        Line(
            "saved",
            "Async checkpoint completed: ",
            r"Async checkpoint completed: (?P<path>\S*step_(?P<step>\d+)|\S+)",
        ),
        Line("committed", "Checkpoint committed: ", r"Checkpoint committed: (?P<path>\S+) \(step=(?P<step>\d+)\)"),
        Line("removed", "Removed old checkpoint: ", r"Removed old checkpoint: (?P<path>\S*step_(?P<step>\d+)|\S+)"),
        Line("resumed", "Resumed from step ", r"Resumed from step (?P<step>\d+), [\d,]+ tokens seen"),
        Line(
            "started",
            "Starting training: step=",
            r"Starting training: step=(?P<step>\d+), max_steps=(?P<max_steps>\d+)",
        ),
        Line("ended", "Training complete: ", r"Training complete: (?P<step>\d+) steps, [\d,]+ tokens"),
    ),
    skips_update_on_nan=True,
    metric_rank="first",
    doc=__doc__ or "",
)
