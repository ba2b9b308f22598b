"""modded-nanogpt and parameter-golf: `step:N/M name:value … train_time:…` in the forms of their many forks.

Steps count updates from 1, step 0 is the first validation. train_time is the clock since the start, in ms, in s, or
in minutes with one decimal (6 s), told by its suffix; early versions restart it at step 10. step_avg, avg and tok/s
are averages since the clock started: they hide a slowdown, difference train_time instead; `step:…ms` in some forks is
the last interval's own time. `step_avg:nanms` only says that nothing is measured yet. NaN is printed as such. Many
runs write no checkpoint at all, and many print their own source first.

Example:
    ```log
    step:250/2000 train_loss:4.5120 train_time:30250ms step_avg:121.00ms
    step:250/2000 val_loss:4.5005 val_bpb:1.7500 train_time:30310ms step_avg:121.24ms
    step:3/2000 train_time:390ms step_avg:nanms
    step:50/9000 train_loss:5.1000 grad_norm:0.4400 lr_mul:0.5000 train_time:7.25s step_avg:145.00ms tok/s:3600000
    ```
    => loss=4.512 train_time_s=30.25 step_time_avg_s=0.121 step=250
    => eval_loss=4.5005 eval_bpb=1.75 train_time_s=30.31 step=250
    => train_time_s=0.39 step=3
    => loss=5.1 grad_norm=0.44 lr_mult=0.5 train_time_s=7.25 tokens_per_sec_avg=3600000 step=50

Example:
    ```log
    700/16000 train_loss: 2.9100 train_time: 4.5m tok/s: 1987654
    700/16000 val_loss: 2.8800 val_bpb: 1.1400
    step  300/1500 | time: 9,150ms | step avg: 30.50ms | val loss: 4.7000
    step:60/800, tokens seen:3.75M, avg_train_loss:nan time:99/301s step_avg:301ms
    ```
    => loss=2.91 train_time_s=270 tokens_per_sec_avg=1987654 step=700
    => eval_loss=2.88 eval_bpb=1.14 step=700
    => train_time_s=9.15 step_time_avg_s=0.0305 eval_loss=4.7 step=300
    => loss=nan step_time_avg_s=0.301 num_tokens=3750000 step=60

Example:
    ```log
    [11:22:33] progress » step:75/40000 loss:6.2500 t:6100ms avg:81.3ms
    step:40/5000 loss:3.9000 t:33000ms step:812ms
    step    20 | loss 2.7500 | lr 6.00e-04 | grad_norm 0.310 | 0.4M tok/s | 45s elapsed
    s:400 trl:4.0100
    ```
    => loss=6.25 train_time_s=6.1 step_time_avg_s=0.0813 step=75
    => loss=3.9 train_time_s=33 step_time_s=0.812 step=40
    => loss=2.75 lr=0.0006 grad_norm=0.31 tokens_per_sec=400000 train_time_s=45 step=20
    => loss=4.01 step=400

Example:
    ```log
      >> Checkpoint saved: ./ckpt/ckpt_step1500.pt
    stopping_early: wallclock_cap train_time:600100ms step:1650/20000
    ```
    => saved step=1500 path=./ckpt/ckpt_step1500.pt
    => event modded_nanogpt.ended step=1650

Not this:
    ```log
    warmup_step:3/20
    print0(f"step:{step}/{args.num_iterations} val_loss:{val_loss:.4f} train_time:{training_time_ms:.0f}ms")
    ```
"""

from __future__ import annotations

from forensics.dialects.spec import NS, Dialect, Line, N, Name

_NAMES: dict[str, Name | None] = {
    "train_time_ms": Name("train_time_s", 0.001),
    "train_time_s": Name("train_time_s"),
    "train_time_min": Name("train_time_s", 60.0),
    "step_avg_ms": Name("step_time_avg_s", 0.001),
    "step_ms": Name("step_time_s", 0.001),
    "tok/s": Name("tokens_per_sec_avg"),
    "lr_mul": Name("lr_mult"),
    "tokens seen": Name("num_tokens"),
}
_HEAD = r"^(?:\[[\d:]+\] progress » )?(?:step:)?\s*(?P<step>\d+)/(?P<max_steps>\d+)"
_CLOCK = rf"(?:(?P<train_time_ms>{N})ms|(?P<train_time_s>{N})s|(?P<train_time_min>{N})m\b)"
_AVG = rf"(?:nan|(?P<step_avg_ms>{N}))ms"

DIALECT = Dialect(
    name="modded_nanogpt",
    title="modded-nanogpt, parameter-golf",
    lines=(
        Line(
            "metrics",
            "train_time:",
            rf"{_HEAD}(?P<tail>,? .*?:.*?|) train_time:\s*{_CLOCK}(?: step_avg:{_AVG})?"
            rf"(?: tok/s:\s*(?P<tokens_per_sec_avg>{N}))?",
            tail="colon",
            names=_NAMES,
        ),
        Line("metrics", "step_avg:", rf"{_HEAD}(?P<tail>,? .*) time:\S+ step_avg:{_AVG}", tail="colon", names=_NAMES),
        Line(
            "metrics",
            " t:",
            rf"{_HEAD} loss:(?P<loss>{N}) t:(?P<train_time_ms>{N})ms (?:avg:{_AVG}|step:(?P<step_ms>{N})ms)",
            names=_NAMES,
        ),
        Line(
            "metrics",
            "val_loss:",
            rf"{_HEAD} val_loss:\s*(?P<eval_loss>{N})(?:,? val_bpb:\s*(?P<eval_bpb>{N}))?\s*$",
        ),
        Line(
            "metrics",
            "| step avg:",
            rf"^step\s+(?P<step>\d+)/(?P<max_steps>\d+) \| time:\s*(?P<train_time_ms>{N})ms \| step avg:\s*{_AVG}"
            rf"(?: \| val loss:\s*(?P<eval_loss>{N}))?",
            names=_NAMES,
        ),
        Line(
            "metrics",
            "s elapsed",
            rf"^step\s+(?P<step>\d+) \| loss (?P<loss>{N}) \| lr (?P<lr>{N}) \| grad_norm (?P<grad_norm>{N})"
            rf" \| (?P<tokens_per_sec>{NS}) tok/s \| (?P<train_time_s>{N})s elapsed",
            names=_NAMES,
        ),
        Line("metrics", " trl:", rf"^s:(?P<step>\d+)(?:/(?P<max_steps>\d+))? trl:(?P<loss>{N})"),
        Line("metrics", " tel:", rf"^s:(?P<step>\d+)(?:/(?P<max_steps>\d+))? tel:(?P<eval_loss>{N})"),
        Line("saved", "Checkpoint saved: ", r">> Checkpoint saved: (?P<path>\S*step_?(?P<step>\d+)\S*)"),
        Line("resumed", "Resuming from checkpoint: ", r"Resuming from checkpoint: (?P<path>\S*step_?(?P<step>\d+)\S*)"),
        Line("ended", "stopping_early: ", r"^stopping_early: .* step:\s*(?P<step>\d+)/(?P<max_steps>\d+)"),
    ),
    metric_rank="first",
    doc=__doc__ or "",
)
