"""Runs in which nothing is wrong though they look so, and runs of which nothing can be said."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from datetime import timedelta

from forensics.values import replace
from make._job import KEY_ERROR, Job, checkpoints, job, noise, settings
from make.base import Label, Made, Noise, Series, decay, line

_DONE = "training complete\n"
_BARE = "step {step}/{total} loss {loss:.4f} lr {lr:.3e}"
Files = dict[str, str | bytes]


def runs() -> Iterator[Made]:
    """Every run of this module."""
    for part in (_losses, _updates, _words, _pace, _restarts, _other_kinds, _whole_folders):
        for name, files in part():
            yield Made(f"control-{name}", files, Label("healthy"))
    for name, files in _cannot_say():
        yield Made(f"open-{name}", files, Label("cannot_say"))
    begun = 'Traceback (most recent call last):\n  File "/srv/job/train.py", li'
    text = job(70, seed=273, total=200).log() + begun
    yield Made("open-cut-inside-a-traceback", {"train.log": text}, Label("failed|cannot_say", "crash|none"))


def _log(one: Job, end: str = _DONE) -> Files:
    return {"train.log": one.log() + end}


def _with(one: Job, **series: Series) -> Job:
    return replace(one, **series)


def _put(one: Job, lines: dict[int, str], end: str = _DONE) -> Files:
    """The log of a job with lines of other kinds before some records."""
    rows = one.log().splitlines(keepends=True)
    return {"train.log": "".join(lines.get(at, "") + row for at, row in enumerate(rows)) + end}


def _losses() -> Iterator[tuple[str, Files]]:
    """Series of a loss that a threshold might take for a failure."""
    one = job(160, seed=201)
    spikes = [
        value * (2.2 if at in {52, 97, 131} else 1.3 if at in {53, 98} else 1) for at, value in enumerate(one.loss)
    ]
    grads = [value * (14 if at in {52, 97, 131} else 1) for at, value in enumerate(one.grad)]
    yield "spikes-that-recover", _log(_with(one, loss=spikes, grad=grads))
    burst = [value * (1.9 - 0.1 * (at - 70) if 70 <= at < 79 else 1) for at, value in enumerate(one.loss)]
    yield "hump-of-nine-steps", _log(_with(one, loss=burst))
    yield "noisy-small-batches", _log(job(200, seed=202, start=0.9, end=0.55, noise=Noise(0.22)))
    curriculum = [value + 0.55 * (at // 50) for at, value in enumerate(decay(4.2, 1.6, 200, 18))]
    staged = [value + 0.35 * math.exp(-(at % 50) / 8) * (at >= 50) for at, value in enumerate(curriculum)]
    marks = {50 * n: f"curriculum: stage {n + 1} of 4, sequences of {256 << n} tokens\n" for n in range(4)}
    yield "curriculum-stages", _put(_with(job(200, seed=203), loss=Noise(0.01, 203).on(staged)), marks)
    cycles = job(180, seed=204)
    rate = [3e-4 * 0.5 * (1 + math.cos(math.pi * (at % 60) / 60)) + 1e-6 for at in range(180)]
    warm = [value + 0.25 * math.exp(-(at % 60) / 9) * (at >= 60) for at, value in enumerate(cycles.loss)]
    yield (
        "warm-restarts-of-the-rate",
        {
            **_log(_with(cycles, lr=rate, loss=warm)),
            "config.yaml": settings(lr_scheduler="cosine_with_restarts", num_cycles=3, max_steps=180),
        },
    )
    queue = [7.1 + 1.5 * (1 - math.exp(-at / 15)) - 0.9 * (at / 150) for at in range(150)]
    yield (
        "contrastive-queue-fills",
        {
            **_log(_with(job(150, seed=205), loss=Noise(0.006, 205).on(queue))),
            "config.yaml": settings(loss="info_nce", queue_size=16384, max_steps=150),
        },
    )
    yield "negative-loss", _log(_with(job(150, seed=206), loss=Noise(0.02, 206).on(line(-0.4, -0.021, 150))))
    plateau = [value if at < 60 else one.loss[59] * (1 + 0.004 * math.sin(at)) for at, value in enumerate(one.loss)]
    yield "long-plateau-of-a-converged-run", _log(_with(one, loss=plateau))
    tiny = job(150, seed=207, start=0.7, end=0.0004)
    yield "loss-near-zero", _log(tiny)
    weighted = [value + (2.0 if at >= 90 else 0.0) for at, value in enumerate(one.loss)]
    yield (
        "loss-term-added-by-design",
        _put(
            _with(one, loss=weighted),
            {90: "step 91: auxiliary loss switched on as configured (aux_loss_start=91, weight 1.0)\n"},
        ),
    )


def _updates() -> Iterator[tuple[str, Files]]:
    """Updates that a scaler or a guard leaves out."""
    one = job(150, seed=211)
    form = "OVERFLOW! Skipping step. Attempted loss scale: {}, reducing to {}\n"
    first = {at: form.format(65536 >> at, 32768 >> at) for at in range(5)}
    yield "fp16-scale-found-at-the-start", _put(one, first)
    rare = {at: form.format(32768, 16384) for at in (41, 83, 120)}
    yield "fp16-rare-skipped-updates", _put(one, rare)
    kempner = (
        "[rank 0] INFO     [step {step}] loss={loss:.4f} | lr={lr:.2e} | grad_norm={grad:.3f} | step_time={sec:.2f}s"
    )
    rows = job(140, seed=212).log(kempner).splitlines(keepends=True)
    rows[80] = "[rank 0] WARNING  NaN/Inf loss at step 80 (consecutive=1, total=1, last_good_loss=3.1402 at step 79)\n"
    yield (
        "one-update-left-out-by-a-guard",
        {"train.log": "".join(rows) + "[rank 0] INFO     Training complete: 140 steps, 9,175,040 tokens\n"},
    )
    grads = [value * (6 if at % 40 == 17 else 1) for at, value in enumerate(one.grad)]
    yield (
        "clipped-gradients",
        {**_log(_with(one, grad=grads)), "config.yaml": settings(max_grad_norm=1.0, max_steps=150)},
    )


def _words() -> Iterator[tuple[str, Files]]:
    """Words of failures in the log of a run that goes on."""
    one = job(140, seed=221)
    caught = (
        "WARNING shard 00131 is unreadable, the next one is taken\nTraceback (most recent call last):\n"
        "  File \"/srv/job/data.py\", line 33, in read\n    return decode(path)\nOSError: [Errno 5] Input/output error: '/data/00131.tar'\n"
    )
    yield "tracebacks-that-are-caught", _put(one, {30: caught, 88: caught.replace("00131", "00207")})
    warned = {
        0: "UserWarning: The dataloader does not have many workers which may be a bottleneck.\nFutureWarning: torch.cuda.amp.autocast is deprecated\n",
        1: "[W615 15:06:41.123456789 reducer.cpp:1400] Warning: find_unused_parameters=True was specified, but did not find any unused parameters\n",
        70: "WARNING: retrying upload of metrics (attempt 1 of 5): HTTPError 503\nmetrics uploaded\n",
    }
    yield "warnings", _put(one, warned)
    tear = "[rank0]:[W615 15:08:00.1 ProcessGroupNCCL.cpp:1496] Warning: WARNING: process group has NOT been destroyed before we destruct ProcessGroupNCCL.\n"
    yield (
        "noise-behind-the-end",
        _log(
            one,
            _DONE
            + tear
            + "Exception ignored in: <function _MultiProcessingDataLoaderIter.__del__ at 0x7f>\nAssertionError: can only test a child process\n",
        ),
    )
    survived = {
        60: "batch of 4 sequences does not fit, split in two: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.10 GiB\nretried with 2 sequences\n"
    }
    yield "out-of-memory-that-was-caught", _put(one, survived)
    names = {
        20: "evaluating task nan_detection: 12 questions about out of memory errors and hangs\n",
        21: "sample: 'why does my loss become NaN?'\n",
    }
    yield "words-in-the-data", _put(one, names)
    mfu = dict.fromkeys(range(4), f"step_avg: nanms, mfu -100.00% (measured from step 5 on)\n")  # noqa: F541
    yield "nan-of-a-number-not-yet-measured", _put(one, mfu)
    lost = {
        75: "heartbeat of node-9 is late by 31 s\nheartbeat of node-9 is back\nNCCL INFO retrying connect to 10.0.0.9\n"
    }
    yield "late-heartbeat-that-came", _put(one, lost)


def _pace() -> Iterator[tuple[str, Files]]:
    """Steps that take longer for a reason, or only seem to."""
    one = job(160, seed=231)
    eval_ = [value + (9.0 if at % 40 == 39 else 0.0) for at, value in enumerate(one.sec)]
    marks = {at + 1: f"evaluation at step {at + 1}: eval_loss {one.loss[at] * 1.03:.4f}\n" for at in (39, 79, 119)}
    yield "evaluation-pauses", _put(_with(one, sec=eval_), marks)
    saving = [value + (6.0 if at % 50 == 49 else 0.0) for at, value in enumerate(one.sec)]
    saved = {at + 1: f"saving checkpoint to checkpoints/step_{at + 1}\nsaved checkpoint in 5.8 s\n" for at in (49, 99)}
    yield "checkpoint-pauses", {**_put(_with(one, sec=saving), saved), **checkpoints(50, 100, 150)}
    compiling = [value + (75.0 if at == 0 else 20.0 if at == 1 else 0.0) for at, value in enumerate(one.sec)]
    yield "compilation-at-the-start", _log(_with(one, sec=compiling))
    longer = [value * (2.0 if at >= 90 else 1) for at, value in enumerate(one.sec)]
    said = {90: "sequence length 2048 -> 4096 as configured (stage 2): 4096 tokens a sequence, batch 32 -> 32\n"}
    yield (
        "longer-sequences",
        {
            **_put(_with(one, sec=longer), said),
            "config.yaml": settings(max_steps=160, stage1_seq_len=2048, stage2_seq_len=4096, stage2_from=91),
        },
    )
    parts = one.log(_BARE + " time {sec:.3f}").splitlines(keepends=True)
    yield "log-interval-changed", {"train.log": "".join([*parts[:60], "log_interval 1 -> 5\n", *parts[64::5]]) + _DONE}
    jitter = _with(one, sec=noise(232, 0.18, 160, 0.5))
    yield "uneven-steps-of-shared-storage", _log(jitter)


def _restarts() -> Iterator[tuple[str, Files]]:
    """Runs that were stopped on purpose and went on."""
    whole = job(160, seed=241)
    before, after = whole.cut(92), whole.resumed(80)
    stop = "slurmstepd: error: *** JOB 5001 ON node-7 CANCELLED AT 2025-06-15T15:07:27 DUE TO PREEMPTION ***\n"
    again = "resumed from checkpoints/step_80 (step 80)\n"
    yield (
        "preempted-and-resumed",
        {
            "slurm-5001.out": before.log() + stop,
            "slurm-5002.out": again + after.log() + _DONE,
            **checkpoints(40, 80, 120, 160),
        },
    )
    yield (
        "restarts-in-one-file",
        {"train.log": before.log() + again + after.log() + _DONE, **checkpoints(40, 80, 120, 160)},
    )
    clean, rest = whole.cut(80), whole.resumed(80)
    yield (
        "time-limit-foreseen",
        {
            "train.log": clean.log()
            + "time is nearly up: checkpoint written at step 80, leaving with exit code 0\n"
            + again
            + rest.log()
            + _DONE,
            **checkpoints(80, 160),
        },
    )
    failed = job(3, seed=242, total=160)
    yield (
        "first-try-with-a-typo",
        {
            "train.log": failed.log()
            + KEY_ERROR
            + "restarting after a fix\n"
            + replace(whole, began=whole.began + timedelta(hours=1)).log()
            + _DONE
        },
    )


def _other_kinds() -> Iterator[tuple[str, Files]]:
    """Kinds of training whose healthy series differ: adversarial, reinforcement, diffusion, regression."""
    gan = "{t:%Y-%m-%d %H:%M:%S} step {step}/{total} loss_D: {d:.4f} loss_G: {g:.4f}"
    one = job(180, seed=251)
    wave = [(0.69 + 0.25 * math.sin(at / 7), 1.6 + 0.9 * math.sin(at / 11)) for at in range(180)]
    noisy = [
        (a, b)
        for a, b in zip(Noise(0.08, 251).on(a for a, _ in wave), Noise(0.08, 252).on(b for _, b in wave), strict=True)
    ]
    text = "".join(gan.format(**row, d=d, g=g) + "\n" for row, (d, g) in zip(one.rows(), noisy, strict=True))
    yield "adversarial-losses", {"gan.log": text + _DONE}
    reward = Noise(0.25, 253).on([0.2 + 0.5 * at / 160 + 0.12 * math.sin(at / 9) for at in range(160)])
    rl = "step {step}/{total} policy_loss {p:.4f} reward {r:.4f} kl {k:.4f} entropy {e:.3f}"
    loss = noise(254, 40.0, 160, 0.001)
    rows = job(160, seed=255).rows()
    yield (
        "reward-swings",
        {
            "rl.log": "".join(
                rl.format(**row, p=loss[at], r=reward[at], k=0.02 + 0.0001 * at, e=1.5 - 0.002 * at) + "\n"
                for at, row in enumerate(rows)
            )
            + _DONE
        },
    )
    yield "diffusion-without-a-trend", _log(_with(one, loss=noise(256, 0.3, 180, 0.11)))
    boxes = "step {step}/{total} loss {loss:.4f} loss_cls {a:.4f} loss_box {b:.4f} num_pos {n}"
    yield (
        "detection-with-empty-images",
        {
            "det.log": "".join(
                boxes.format(
                    **row,
                    a=row["loss"] * 0.6,
                    b=0.0 if row["step"] % 9 == 0 else row["loss"] * 0.4,
                    n=0 if row["step"] % 9 == 0 else 17,
                )
                + "\n"
                for row in one.rows()
            )
            + _DONE
        },
    )


def _whole_folders() -> Iterator[tuple[str, Files]]:
    """Folders of several runs that all went well."""
    sweep: Files = {}
    for number, peak in enumerate((1e-4, 3e-4, 1e-3)):
        part = job(100, seed=261 + number, peak=peak)
        sweep |= {
            f"lr_{number}/train.log": part.log() + _DONE,
            f"lr_{number}/config.yaml": settings(lr=peak, max_steps=100),
        }
    yield "sweep-of-three", sweep
    rows = job(120, seed=265).rows()
    table = "".join(json.dumps({"step": row["step"], "loss": row["loss"], "lr": row["lr"]}) + "\n" for row in rows)
    yield (
        "tail-of-a-finished-run",
        {"tail.log": "".join(job(160, seed=266).log().splitlines(keepends=True)[-40:]) + _DONE},
    )
    yield "metrics-to-the-plan", {"metrics.jsonl": table, "config.yaml": settings(max_steps=120, lr=3e-4)}
    yield "exit-code-of-the-job", {"run.log": job(90, seed=267).log() + "python3 train.py exited with code 0\n"}


def _cannot_say() -> Iterator[tuple[str, Files]]:
    """Logs that end too early to tell, and folders in which no training shows."""
    one = job(40, seed=271, total=3000)
    yield "forty-of-three-thousand", {"train.log": one.log()}
    yield "cut-inside-a-number", {"train.log": job(70, seed=272, total=200).log()[:-19]}
    yield (
        "middle-of-a-log",
        {"train.log": "".join(job(160, seed=274, total=400).log().splitlines(keepends=True)[60:120])},
    )
    yield "two-records", {"train.log": job(2, seed=275, total=500).log()}
    yield (
        "start-only",
        {"train.log": "loading the model\nworld size 8\nbuilding the index of 131072 documents\ncompiling\n"},
    )
    yield (
        "prose",
        {
            "README.md": "# Notes\n\nWe want to train it again with another seed.\n",
            "notes.txt": "Lunch with Ann on Friday.\nThe loss looked fine to me.\n",
        },
    )
    yield (
        "configs-only",
        {"config.yaml": settings(lr=3e-4, max_steps=900, seed=4), "conf/model.yaml": settings(layers=12, width=768)},
    )
    yield "checkpoints-only", dict(checkpoints(100, 200, 300))
    yield "empty-files", {"train.log": "", "stderr.log": ""}
    yield "metrics-without-plan", {"metrics.csv": "step,loss\n" + job(50, seed=276).log("{step},{loss:.4f}")}
    yield (
        "warnings-only",
        {
            "stderr.log": "UserWarning: lr_scheduler.step() was called before optimizer.step()\nFutureWarning: resume_download is deprecated\n"
        },
    )
    whole = job(90, seed=277, total=400)
    yield (
        "still-going",
        {"train.log": whole.log() + "saving checkpoint to checkpoints/step_90\n", **checkpoints(30, 60, 90)},
    )
    yield "rank-logs-cut", {f"logs/rank_{rank}.log": whole.log()[: -150 - 7 * rank] for rank in range(2)}
