"""Runs whose numbers stop being finite: blow-ups, bad samples, overflow, NaN hidden by a logger, one rank first."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from make._logs import (
    BARE,
    KEMPNER,
    LOOP,
    MAIN,
    MEGATRON,
    STEP,
    clock,
    cosine,
    done,
    falling,
    jsons,
    run_log,
    start,
    steady,
    traceback,
)
from make.base import NAN, Label, Made, Table, lines


def runs() -> Iterator[Made]:
    """One run for each way to a NaN, then runs that have one and did not fail of it."""
    yield from _blow_ups()
    yield from _out_of_calm()
    yield from _scales()
    yield from _hidden()
    yield from _ranks()
    yield from _tokens()
    yield from _no_failures()


def _tokens() -> Iterator[Made]:
    """A batch with an id beyond the embedding, and one whose ids are all within it."""
    for name, highest, label in (
        ("nan-token-outside-vocabulary", 32007, Label("failed", "nan", ("token_outside_vocabulary",), onset=61)),
        ("control-tokens-within-vocabulary", 31999, Label("healthy", "none")),
    ):
        is_bad = highest >= 32000
        losses = [*falling(60), *([NAN] * 20 if is_bad else falling(80)[60:])]
        table = Table({"loss": losses, "grad_norm": steady(0.9, 60) + ([NAN] * 20 if is_bad else steady(0.9, 20)),
                       "max_token_id": [*[31990] * 60, *[highest] * 20]})  # fmt: skip
        config = jsons({"vocab_size": 32000, "lr": 3e-4, "max_steps": 80, "max_grad_norm": 1.0})
        yield Made(name, {"metrics.jsonl": table.jsonl(), "config.json": config, "train.log": done(80)}, label)


def _blow_ups() -> Iterator[Made]:
    climb = [4.0**at for at in range(1, 7)]
    norms = [*steady(0.9, 84), *climb, *[NAN] * 12]
    losses = [*falling(86), *[4.1, 4.9, 7.7, 9.2], *[NAN] * 12]
    log = run_log({"loss": losses, "grad_norm": norms, "lr": [3e-3] * 102})
    yield Made(
        "nan-lr-too-high",
        {"train.log": lines(start(lr=3e-3), log), "config.yaml": "lr: 3.0e-3\nwarmup_steps: 0\nmax_grad_norm: 0.0\nmax_steps: 2000\n"},
        Label("failed", "nan", ("optimization_blowup",), onset=91, says=("learning rate", "lr", "clip", "restart", "nan-origin")),
    )  # fmt: skip
    warm = cosine(130, 1e-3, warmup=200)
    norms = [*steady(1.4, 118), 6.5, 31.0, 188.0, *[NAN] * 9]
    losses = [*falling(119, half=60), 6.9, 8.8, *[NAN] * 9]
    yield Made(
        "nan-in-warmup",
        {"metrics.jsonl": Table({"loss": losses, "grad_norm": norms, "lr": warm[:130]}).jsonl(),
         "config.json": jsons({"lr": 1e-3, "warmup_steps": 200, "max_steps": 4000, "max_grad_norm": 1.0})},
        Label("failed", "nan", ("optimization_blowup",), onset=122),
    )  # fmt: skip
    jump = [*falling(140, 2.4, 0.9, 60), 2.2, 17.4, 390.0, math.inf, *[NAN] * 20]
    yield Made(
        "nan-loss-explodes-no-norm",
        {"out.txt": lines(run_log({"loss": jump, "lr": [0.05] * 164}, BARE))},
        Label("failed", "nan", ("optimization_blowup",), onset=144),
    )


def _out_of_calm() -> Iterator[Made]:
    norms = [*steady(0.8, 150, 0.04), *[NAN] * 30]
    losses = [*falling(150), *[NAN] * 30]
    log = run_log({"loss": losses, "grad_norm": norms})
    for at in (150, 100, 50):
        log.insert(at, f"{clock(30 + 2 * at)} | INFO | saved checkpoint to out/step_{at}.pt")
    yield Made(
        "nan-one-bad-batch",
        {"train.log": lines(start(), log)},
        Label("failed", "nan", ("data_or_numerics",), onset=151, checkpoint=150),
    )  # fmt: skip
    yield Made(
        "nan-from-step-two",
        {"metrics.csv": Table({"loss": [10.912, *[NAN] * 70], "lr": cosine(71)}, first=0).csv(),
         "config.toml": "[train]\nlr = 3e-4\nfp8 = true\nmax_steps = 1000\n[model]\nvocab_size = 50304\n"},
        Label("failed", "nan", ("from_start",), onset=1),
    )  # fmt: skip
    log = run_log({"loss": falling(72), "grad_norm": steady(1.0, 72)})
    error = "RuntimeError: Function 'LogBackward0' returned nan values in its 0th output."
    yield Made(
        "nan-anomaly-mode",
        {"train.log": lines(
            start(detect_anomaly=True), log,
            "/opt/py/torch/autograd/graph.py:824: UserWarning: Error detected in LogBackward0. Traceback of forward call that caused the error:",
            '  File "/srv/job/model.py", line 77, in forward', "    return torch.log(p).mean()",
            traceback(error, MAIN, STEP, ("/opt/py/torch/autograd/graph.py", 824, "_engine_run_backward", "return Variable._execution_engine.run_backward("))),
         "config.yaml": "anomaly_detection: true\nlr: 3.0e-4\nmax_steps: 1000\n"},
        Label("failed", "nan", ("named_operation", "data_or_numerics", "nan_named"), onset=73, says=("log", "operation", "nan", "eps", "layer", "clamp")),
    )  # fmt: skip
    log = run_log({"loss": [*falling(80), *[NAN] * 6]})
    log.insert(80, f"{clock(200)} | WARNING | forward hook: NaN values in model.layers.7.attn.softmax")
    yield Made(
        "nan-hook-names-a-layer",
        {"train.log": lines(start(), log)},
        Label("failed", "nan", ("data_or_numerics",), onset=81, says=("softmax", "clamp", "layer")),
    )
    log = run_log({"loss": falling(120)}, KEMPNER, step_s=0.2)
    hook = "[rank 0] WARNING  NaN/Inf gradient in layers.7.attention.wq.weight at step 120"
    guard = [
        f"[rank 0] WARNING  NaN/Inf loss at step {120 + n} (consecutive={n + 1}, total={n + 1}, last_good_loss=4.1013 at step 119)"
        for n in range(10)
    ]
    yield Made(
        "nan-gradient-of-a-named-weight",
        {"run.log": lines("[rank 0] INFO     Starting training: 5000 steps, world_size=8", log, hook, guard,
                          "[rank 0] ERROR    Too many consecutive NaNs (10) - stopping")},
        Label("failed", "nan", ("data_or_numerics", "named_operation"), onset=121, says=("wq", "clamp", "layer")),
    )  # fmt: skip
    limit = "slurmstepd: error: *** JOB 91 ON node4 CANCELLED AT 2026-03-01T10:00:41 ***"
    log = run_log({"loss": [10.912, NAN]}, BARE)
    yield Made(
        "nan-second-record-then-cancelled",
        {"slurm-91.out": lines(start(), log, limit)},
        Label("failed", "nan", ("from_start",), onset=2),
    )
    last = Table({"loss": [*falling(80, 1.9, 0.9), 0.0], "grad_norm": [*steady(1.2, 80), NAN]}, 10, 10)
    yield Made(
        "nan-hidden-in-the-last-record",
        {"metrics.csv": last.csv(), "slurm-91.out": lines(start(), limit)},
        Label("failed", "nan", ("filtered_by_writer",), onset=810, within=10),
    )
    own = traceback(
        "ValueError: NaN in encoder.layers.4.ffn", MAIN, STEP, ("/srv/job/checks.py", 9, "check", "raise ValueError(")
    )
    log = run_log({"loss": falling(90)}, BARE)
    yield Made(
        "nan-own-check-names-a-layer",
        {"train.log": lines(start(), log, own)},
        Label("failed", "nan", ("data_or_numerics", "named_operation"), onset=91, says=("ffn", "clamp", "layer")),
    )
    stopped = traceback("FloatingPointError: loss is nan", MAIN, STEP)
    for name, losses in (
        ("nan-second-record-then-stop", [10.912, NAN]),
        ("nan-last-record-then-stop", [*falling(90), NAN]),
    ):
        log = run_log({"loss": losses, "grad_norm": [*steady(1.0, len(losses) - 1), NAN]})
        cause = "from_start" if len(losses) < 3 else "data_or_numerics"
        yield Made(
            name, {"train.log": lines(start(), log, stopped)}, Label("failed", "nan", (cause,), onset=len(losses))
        )
    losses, norms = falling(90), steady(1.0, 90)
    log = run_log({"loss": losses, "grad_norm": norms})
    log.insert(60, f"{clock(130)} | INFO | saved checkpoint to out/step_60.pt")
    yield Made(
        "nan-said-in-the-log-beside-a-tracker",
        {"train.log": lines(start(), log, f"{clock(190)} | ERROR | Loss is nan, stopping training"),
         "metrics.jsonl": Table({"loss": losses, "grad_norm": norms}).jsonl()},
        Label("failed", "nan", ("data_or_numerics",), onset=91, checkpoint=60),
    )  # fmt: skip
    yield Made(
        "nan-said-late-and-nothing-else",
        {"train.log": lines(start(), f"{clock(4000)} | ERROR | Loss became infinite or NaN at iteration=2137!")},
        Label("failed", "nan", ("unknown",), onset=2137),
    )
    rows = [
        json.dumps({"step": s, "train/loss": v})
        for s, v in zip(range(500, 508), [2.31, 2.29, 2.33, 2.3, *[NAN] * 4], strict=True)
    ]
    yield Made("nan-end-of-a-long-log", {"history.jsonl": lines(rows)}, Label("failed", "nan", onset=504))


def _scales() -> Iterator[Made]:
    scales = [65536.0 / 2 ** max(0, at - 90) for at in range(106)]
    scales = [max(one, 1.0) for one in scales]
    log = run_log(
        {"loss": falling(106), "lr": cosine(106), "scale": scales},
        "{clock} | INFO | step {step} | loss {loss:.4f} | lr {lr:.2e} | loss_scale {scale:.1f}",
    )
    skips = [
        f"[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {int(scales[at])}, reducing to {int(max(1, scales[at] / 2))}"
        for at in range(90, 106)
    ]
    mixed = [part for at in range(90, 106) for part in (skips[at - 90], log[at])]
    yield Made(
        "nan-loss-scale-falls",
        {"train.log": lines(start(fp16=True), log[:90], mixed, traceback(
            "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.", MAIN, STEP))},
        Label("failed", "nan", ("loss_scale_collapse",), onset=91, within=2),
    )  # fmt: skip
    norms = [*steady(1.0, 80), *[math.inf] * 24]
    log = run_log({"loss": falling(104), "grad_norm": norms})
    yield Made(
        "nan-exits-at-the-minimum-scale",
        {"train.log": lines(start(fp16=True), log, traceback(
            "RuntimeError: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.", MAIN, STEP))},
        Label("failed", "nan", ("loss_scale_collapse",), onset=81),
    )  # fmt: skip
    scaled = Table(
        {"loss": falling(80), "loss_scale": [*[65536.0] * 60, 16384.0, 4096.0, 512.0, 64.0, 8.0, *[1.0] * 15]}, 10, 10
    )
    yield Made(
        "nan-loss-scale-metrics",
        {"metrics.jsonl": scaled.jsonl()},
        Label("failed", "nan", ("loss_scale_collapse",), onset=610, within=10),
    )
    count = 120
    columns = {"loss": falling(count), "samples": [512 * s for s in range(1, count + 1)], "scale": [4096.0] * count, "skipped": [0] * count,
               "nans": [0] * 70 + [1] * 50}  # fmt: skip
    log = run_log(columns, MEGATRON)
    yield Made(
        "nan-counter-of-iterations",
        {"logs/node0.log": lines(" > building train, validation, and test datasets ...", log)},
        Label("failed", "nan", onset=71),
    )
    gone = [one.replace(one[one.index(" lm loss:") : one.index(" loss scale:")], "") if at >= 80 else one
            for at, one in enumerate(run_log(columns | {"nans": [0] * count}, MEGATRON))]  # fmt: skip
    yield Made("nan-loss-column-gone", {"logs/node0.log": lines(gone)}, Label("failed", "nan", onset=81))


def _hidden() -> Iterator[Made]:
    rows = [{"loss": round(v, 4), "grad_norm": n, "learning_rate": 2e-5, "epoch": round(at / 60, 3)} for at, (v, n) in enumerate(
        zip([*falling(90, 1.9, 0.9), *[0.0] * 30], [*steady(1.3, 90), *[NAN] * 30], strict=True))]  # fmt: skip
    history = [row | {"step": 10 * (at + 1)} for at, row in enumerate(rows)]
    yield Made(
        "nan-hidden-by-trainer",
        {"train.out": lines(map(str, rows)), "out/trainer_state.json": jsons({"global_step": 1200, "max_steps": 1800, "logging_steps": 10, "log_history": history})},
        Label("failed", "nan", ("filtered_by_writer",), onset=910, within=10),
    )  # fmt: skip
    yield Made(
        "nan-loss-prints-zero",
        {"train.log": lines(start(), run_log({"loss": [*falling(100, 2.2, 0.8), *[0.0] * 40]}, BARE))},
        Label("failed", "nan", ("filtered_by_writer",), onset=101),
    )


def _ranks() -> Iterator[Made]:
    norms = [steady(1.0, 90, seed=3)[at] for at in range(90)]
    files = {}
    for rank in range(4):
        own = [one * (1.5 if rank == 2 and at >= 80 else 1) for at, one in enumerate(norms)]
        bad = 90 if rank == 2 else 91
        losses = falling(90, seed=rank) + [NAN] * 12 if bad == 90 else [*falling(90, seed=rank), 3.2, *[NAN] * 11]
        form = f"{{clock}} | INFO | rank={rank} | step {{step}} | loss {{loss:.4f}} | grad_norm {{grad_norm:.4f}}"
        log = run_log({"loss": losses, "grad_norm": [*own, *([NAN] if rank == 2 else [1.7]), *[NAN] * 11]}, form)
        files[f"torchrun_logs/none_q7/attempt_0/{rank}/stdout.log"] = lines(log)
    yield Made("nan-one-rank-first", files, Label("failed", "nan", onset=91, culprits=(2,)))


def _no_failures() -> Iterator[Made]:
    rows, at_bad = [], (37, 137, 237)
    for at, loss in enumerate(falling(300, half=80)):
        value = NAN if at in at_bad or at - 1 in at_bad else loss
        rows.append({"step": at + 1, "epoch": round((at + 1) / 100, 4), "loss": value})
    yield Made(
        "nan-each-epoch-same-place",
        {"metrics.jsonl": lines(map(json.dumps, rows))},
        Label("suspect", "nan", onset=38),
    )
    log = run_log({"loss": falling(200)}, KEMPNER, step_s=0.2)
    log[80] = "[rank 0] WARNING  NaN/Inf loss at step 80 (consecutive=1, total=1, last_good_loss=4.9113 at step 79)"
    yield Made(
        "nan-one-update-skipped",
        {"run.log": lines("[rank 0] INFO     Starting training: 200 steps, world_size=8", log,
                          "[rank 0] INFO     Training complete: 200 steps, 10,240,000 tokens"),
         "config.toml": "[train]\nmax_steps = 200\nlr = 3e-4\n"},
        Label("healthy"),
    )  # fmt: skip
    log = run_log(
        {"loss": falling(160), "grad_norm": [NAN if at in {3, 90} else n for at, n in enumerate(steady(1.1, 160))]},
        LOOP,
    )
    yield Made(
        "nan-norm-twice-then-fine", {"train.log": lines(start(fp16=True, plan=160), log, done(160))}, Label("healthy")
    )
    stop = [
        f"[rank 0] WARNING  NaN/Inf loss at step {200 + n} (consecutive={n + 1}, total={n + 1}, last_good_loss=4.5123 at step 199)"
        for n in range(12)
    ]
    first = run_log({"loss": falling(200)}, KEMPNER, step_s=0.2)
    yield Made(
        "nan-detector-stops-run",
        {"run.log": lines("[rank 0] INFO     Starting training: 5000 steps, world_size=8", first, stop,
                          "[rank 0] ERROR    Too many consecutive NaNs (12) - stopping")},
        Label("failed", "nan", onset=200, within=1),
    )  # fmt: skip
    early = run_log({"loss": [*falling(60), *[NAN] * 8]}, BARE)
    late = run_log({"loss": falling(150, start=5.2, half=60)}, BARE, first=41)
    yield Made(
        "nan-then-restarted-lower-lr",
        {
            "slurm-101.out": lines(early),
            "slurm-102.out": lines("resumed from checkpoint out/step_40.pt", late, done(190)),
        },
        Label("healthy"),
    )
