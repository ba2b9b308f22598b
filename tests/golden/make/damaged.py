"""Runs of which one file is torn, flipped, hostile or foreign: what the others show is still said."""

from __future__ import annotations

import json
from collections.abc import Iterator

from make import formats
from make._job import KEY_ERROR, Job, checkpoints, fixture, job, script, settings
from make.base import Label, Made

_DONE = "training complete\n"
_TB = "tb/events.out.tfevents.1750000000.node-a.4242.0"
_WANDB = "wandb/run-20250615_150640-q7w2e9rt"
Files = dict[str, str | bytes]


def runs() -> Iterator[Made]:
    """Every run of this module."""
    for name, label, files in (*_stores(), *_dumps(), *_documents()):
        yield Made(f"damaged-{name}", files, label)


def _flipped(data: bytes, *, at: float = 0.5) -> bytes:
    torn = bytearray(data)
    torn[int(at * len(data))] ^= 16
    return bytes(torn)


def _zeroed(data: bytes, first: int, count: int) -> bytes:
    return data[:first] + bytes(count) + data[first + count :]


def _stores() -> Iterator[tuple[str, Label, Files]]:
    good, bad = job(120, seed=401), job(120, seed=402).bad(90)
    yield "event-file-flipped", Label("healthy"), {_TB: _flipped(good.events()), "train.log": good.log() + _DONE}
    nan = Label("failed", "nan", onset=91)
    yield (
        "event-file-with-a-hole",
        nan,
        {_TB: _zeroed(bad.events(), 2048, 2048), "config.yaml": settings(max_steps=120)},
    )
    config = {"max_steps": 120}
    yield (
        "tracker-flipped",
        Label("healthy"),
        {f"{_WANDB}/run-q7w2e9rt.wandb": _flipped(good.wandb(config=config), at=0.4)},
    )
    yield (
        "tracker-flipped-nan",
        nan,
        {
            f"{_WANDB}/run-q7w2e9rt.wandb": _flipped(bad.wandb(config=config), at=0.3),
            f"{_WANDB}/files/output.log": bad.log(),
        },
    )
    rows = [json.dumps({"step": row["step"], "loss": row["loss"]}) for row in bad.rows()]
    torn = "\n".join([*rows[:40], rows[40][:9], '{"step": 41, "lo\0\0\0', *rows[43:], rows[-1][:7]])
    yield "lines-torn", nan, {"metrics.jsonl": torn}
    maker = script("mlflow")
    home = f"mlruns/0/{maker.RUN}"
    yield (
        "metric-lines-zeroed",
        Label("failed", "nan", onset=90),
        {f"{home}/meta.yaml": maker.meta(4), f"{home}/metrics/loss": _zeroed(maker.lines(bad.loss), 400, 96)},
    )
    cut = good.cut(64)
    table = "step,loss,lr\n" + cut.log("{step},{loss},{lr}")
    yield (
        "table-cut",
        Label("failed", "crash", onset=64),
        {"metrics.csv": table[:-9], "train.log": cut.log() + KEY_ERROR},
    )
    garbage = bytes(range(1, 256)) * 6
    text = good.log().encode()
    middle = text.index(b"\n", len(text) // 2) + 1
    yield (
        "log-with-garbage",
        Label("healthy"),
        {"train.log": text[:middle] + garbage + b"\n" + text[middle:] + _DONE.encode()},
    )


def _dumps() -> Iterator[tuple[str, Label, Files]]:
    made = {one.name: one for one in formats.runs()}
    whole = dict(made["format-recorder-hang"].files)
    label = made["format-recorder-hang"].label
    short = bytes(whole["fr/nccl_trace_rank_1"])  # type: ignore[arg-type]
    yield "recorder-dump-cut", label, {**whole, "fr/nccl_trace_rank_1": short[: len(short) * 2 // 3]}
    yield (
        "recorder-dump-hostile",
        label,
        {**whole, "fr/nccl_trace_rank_0": fixture("flight_recorder/broken-calls/trace_rank_0")},
    )
    stacks = dict(made["format-pyspy-hang"].files)
    stacks["stacks/pyspy_rank1.txt"] = str(stacks["stacks/pyspy_rank1.txt"]) + "permission denied, retrying\n"
    stacks["stacks/pyspy_rank3.txt"] = fixture("stack_dump/ok-gone/pyspy_rank6.json")
    yield "stacks-refused", made["format-pyspy-hang"].label, stacks
    memory = made["format-snapshot-oom"]
    yield (
        "snapshot-cut",
        memory.label,
        {**memory.files, "memory.pickle": fixture("memory_snapshot/broken-cut/memory.pickle")},
    )
    yield (
        "snapshot-hostile",
        memory.label,
        {**memory.files, "memory.pickle": fixture("memory_snapshot/broken-calls/memory.pickle")},
    )
    good = job(100, seed=403)
    yield (
        "trace-cut",
        Label("healthy|suspect", "none|slowdown"),
        {"train.log": good.log() + _DONE, "profiler/trace.json.gz": fixture("chrome_trace/broken-gzip/trace.json.gz")},
    )


def _documents() -> Iterator[tuple[str, Label, Files]]:
    good = job(60, seed=404, every=5, start=2.4, end=1.1, peak=2e-5)
    yield (
        "state-of-a-checkpoint-cut",
        Label("healthy"),
        {"trainer_state.json": good.state(), "checkpoint-150/trainer_state.json": good.state(upto=150)[:1900]},
    )
    log: Files = {"train.log": good.log() + _DONE, **checkpoints(100, 200, 300)}
    for name, path in {
        "results-cut": "eval_results/broken-cut/results_2031-02-03T04-05-06.789000.json",
        "samples-cut": "eval_samples/broken-cut/samples_reefs_easy_2031-02-03T04-05-06.789000.jsonl",
        "lighteval-cut": "lighteval/broken-cut/results_2031-02-03T04-05-06.789000.json",
        "settings-cut": "config_files/broken-yaml/config.yaml",
        "tokenizer-cut": "tokenizer_files/broken-cut/tokenizer.json",
        "gpu-log-cut": "nvidia_smi_csv/broken-cut/gpu.csv",
        "weights-header-broken": "safetensors_header/broken-lies/model.safetensors",
    }.items():
        outcome = "healthy|suspect" if name in {"tokenizer-cut", "weights-header-broken"} else "healthy"
        yield name, Label(outcome), {**log, path.split("/")[-1]: fixture(path)}
    crashed: Job = good.cut(40)
    error = "attempt_0/1/error.json"
    yield (
        "error-file-cut",
        Label("failed", "crash"),
        {
            "attempt_0/0/stdout.log": crashed.log(),
            "attempt_0/1/stderr.log": "[rank1]: " + KEY_ERROR,
            error: fixture(f"error_file/broken-cut/{error}"),
        },
    )
