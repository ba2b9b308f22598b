"""A healthy run of each trainer as it prints, and runs whose fault its log shows: `trainers.toml` holds the lines.

`<name>` and `<name:spec>` in a line are values of a record: `t` is its time (the spec is strftime's), `step` and `total`
are the trainer's own steps, `epoch` and `it` count from 1, `epoch0` and `it0` from 0, `sec` is the time of one step.
"""

from __future__ import annotations

import math
import random
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from make.base import NAN, Label, Made, Series, decay

TRAINERS: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_name("trainers.toml").read_text(encoding="utf-8")
)
_FIELD = re.compile(r"<([a-z]\w*)(?::([^>]*))?>")
_BEGAN = datetime(2026, 3, 4, 5, 6, 7, 120_000, tzinfo=UTC)
#: The fault begins after this share of the records.
_ONSET = 0.6
#: How much longer a step takes once a run is slow.
_SLOWER = 1.9
Values = dict[str, Any]

_CODE = (
    ("uncaught_exception", "crash_all_ranks", "bad_config", "shape_mismatch"),
    ("code", "line", "frame", "key", "check"),
)
CRASHES: tuple[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]], ...] = (
    (
        *_CODE,
        (
            'File "/home/ann/train.py", line 214, in <module>\n    main()',
            'File "/home/ann/train.py", line 131, in main\n    labels = batch["labels"]',
            "KeyError: 'labels'",
        ),
    ),
    (
        *_CODE,
        (
            'File "/home/ann/train.py", line 88, in train_step\n    logits = model(ids)',
            'File "/home/ann/model.py", line 57, in forward\n    return self.head(x)',
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2048x768 and 1024x50304)",
        ),
    ),
    (
        ("disk_full",),
        ("disk", "space"),
        (
            'File "/home/ann/train.py", line 240, in main\n    torch.save(state, path)',
            'File "/opt/py/lib/python3.11/site-packages/torch/serialization.py", line 944, in save\n    _save(obj, zip_file)',
            "OSError: [Errno 28] No space left on device: 'out/state.pt'",
        ),
    ),
    (
        ("file_missing",),
        ("path", "file"),
        (
            'File "/home/ann/train.py", line 97, in main\n    for batch in loader:',
            'File "/home/ann/data.py", line 33, in __getitem__\n    return decode(self.paths[i])',
            "FileNotFoundError: [Errno 2] No such file or directory: '/data/shards/part-00131.tar'",
        ),
    ),
    (
        *_CODE,
        (
            'File "/home/ann/train.py", line 305, in <module>\n    run(cfg)',
            'File "/home/ann/train.py", line 290, in run\n    assert tokens.max() < cfg.vocab_size',
            "AssertionError",
        ),
    ),
    (
        *_CODE,
        (
            'File "/home/ann/train.py", line 142, in main\n    reward = score(prompt, answer)',
            'File "/home/ann/score.py", line 12, in score\n    raise Exception("verifier gave no answer for prompt 771")',
            "Exception: verifier gave no answer for prompt 771",
        ),
    ),
    (
        ("illegal_memory_access",),
        ("blocking", "sanitizer", "kernel"),
        (
            'File "/home/ann/train.py", line 166, in main\n    loss.backward()',
            'File "/opt/py/lib/python3.11/site-packages/torch/_tensor.py", line 626, in backward\n    torch.autograd.backward(self)',
            "RuntimeError: CUDA error: an illegal memory access was encountered",
        ),
    ),
)
_KILLED = "slurmstepd: error: *** JOB 73310{} ON node017 CANCELLED AT <t:%Y-%m-%dT%H:%M:%S>{} ***\n"
_RESUME = ("resume", "restart", "requeue", "time")
STOPS = (
    (("time_limit",), _KILLED.format(1, " DUE TO TIME LIMIT")),
    (("preempted",), _KILLED.format(2, " DUE TO PREEMPTION")),
    (("cancelled",), _KILLED.format(3, "")),
    (("external_termination",), "Received SIGTERM, leaving the loop\nTerminated\n"),
    (
        ("interrupted_by_user",),
        (
            'Traceback (most recent call last):\n  File "/home/ann/train.py", line 150, in main\n    batch = next(batches)\n'
            "KeyboardInterrupt\n"
        ),
    ),
)
_TORCH_OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.37 GiB. GPU 0 has a total capacity of 79.15 GiB of"
    " which 1.02 GiB is free. Including non-PyTorch memory, this process has 78.12 GiB memory in use. Of the allocated"
    " memory 75.90 GiB is allocated by PyTorch, and 1.31 GiB is reserved by PyTorch but unallocated."
)
OUT_OF_MEMORY = {
    "torch": _TORCH_OOM,
    "jax": "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.",
    "tf": "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:\n\nOOM when allocating tensor with"
    " shape[256,512,28,28] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
    "paddle": "ResourceExhaustedError: \n\nOut of memory error on GPU 0. Cannot allocate 3.200000GB memory on GPU 0, 78.901000GB memory"
    " has been allocated and available memory is only 276.000000MB.",
}


def runs() -> Iterator[Made]:
    """A healthy run of every trainer, and one for each of its faults."""
    turn = 0
    for name, about in TRAINERS.items():
        for fault in ("healthy", *about["faults"]):
            printed = Printed(Trainer(name, about, fault, turn))
            yield Made(f"dialect-{name.replace('_', '-')}-{fault}", printed.files(), printed.label())
            turn += 1


@dataclass(frozen=True, slots=True)
class Trainer:
    """One row of the table, with the fault of a run and its place in the row of all runs."""

    name: str
    about: Mapping[str, Any]
    fault: str
    turn: int

    @property
    def onset(self) -> int:
        """The record from which on the fault shows."""
        return round(_ONSET * self.about["records"]) + self.turn % 7

    def step(self, record: int) -> int:
        """The step of a record; where the trainer tells of each bad step, those behind the onset are counted so."""
        first, every = self.about["first"], self.about["every"]
        if self.fault == "nan" and "nan_every" in self.about and record >= self.onset:
            return first + (self.onset - 1) * every + (record - self.onset + 1) * self.about["nan_every"]
        return first + record * every

    @property
    def records(self) -> int:
        """How many records are printed."""
        if self.fault in {"crash", "oom", "stopped", "cut"}:
            return self.onset
        if self.fault == "nan":
            most = 1 if self.about.get("stops_at_nan") else self.about.get("nan_records", self.about["records"])
            return min(self.about["records"], self.onset + most)
        return self.about["records"]

    def loss(self, rng: random.Random) -> Series:
        """The loss of every record."""
        first, last, share = self.about["loss"]
        count = self.about["records"]
        level = decay(first, last, count, self.about.get("half", count / 6))
        if self.about.get("kind") == "rl":
            found = [rng.gauss(0, one) for one in level]
        else:
            found = [one * (1 + rng.gauss(0, share)) for one in level]
        # mathematical libraries differ in the last of sixteen digits
        found = [round(one, 6) for one in found]
        if self.fault == "nan":
            return [NAN if at >= self.onset else one for at, one in enumerate(found)]
        if self.fault == "diverge":
            return [one * (1 + min(1.6, 0.22 * max(0, at - self.onset + 1))) for at, one in enumerate(found)]
        return found

    def rate(self, record: int) -> float:
        """The learning rate: a warm-up over a twentieth of the run, then a cosine to a tenth."""
        if self.about.get("flat_lr"):
            return self.about["lr"]
        done, warm = (record + 1) / self.about["records"], 0.05
        share = done / warm if done < warm else 0.1 + 0.45 * (1 + math.cos(math.pi * (done - warm) / (1 - warm)))
        return self.about["lr"] * share


class Printed:
    """The files of one run."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer, self.about = trainer, trainer.about
        self.rows = _rows(trainer)

    def label(self) -> Label:
        """What is right to say of it."""
        every, turn = self.about["every"], self.trainer.turn
        onset, last = self.rows[min(self.trainer.onset, len(self.rows) - 1)]["step"], self.rows[-1]["step"]
        crash, stop = CRASHES[turn % len(CRASHES)], STOPS[turn % len(STOPS)]
        return {
            "healthy": Label(self.about.get("healthy", "healthy")),
            "nan": Label("failed", "nan", (), onset, every),
            "diverge": Label(
                "failed|suspect", "learning", ("diverged", "never_regained", "level_shift"), onset, 6 * every,
                says=("learning rate", "clip", "checkpoint", "data"),
            ),
            "slow": Label(
                "suspect", "slowdown", ("slow_steps",), onset, 3 * every, says=("host", "clock", "profile", "loader", "data")
            ),
            "crash": Label("failed", "crash", crash[0], last, every, says=crash[1]),
            "oom": Label("failed", "oom", ("gpu_out_of_memory",), last, every, says=("batch", "sequence", "memory", "shard")),
            "stopped": Label("failed", "stopped", stop[0], last, every, says=_RESUME),
            "cut": Label("cannot_say"),
        }[self.trainer.fault]  # fmt: skip

    def files(self) -> dict[str, str]:
        """The log, and a file beside it where the trainer's end is printed elsewhere."""
        path, end_path = self.about["path"], self.about.get("end_path", self.about["path"])
        found = {path: self._part("start", self.rows[0]) + "".join(self._record(row) for row in self.rows)}
        found[end_path] = found.get(end_path, "") + self._end()
        if self.trainer.fault == "cut":
            found = {path: found[path][: -(len(found[path].splitlines()[-1]) // 2)]}
        return found

    def _part(self, name: str, row: Values) -> str:
        return _filled(self.about.get(name, ""), row)

    def _record(self, row: Values) -> str:
        bad = math.isnan(row["loss"]) and "nan" in self.about
        text = self._part("epoch_begin", row) if row["begins_epoch"] else ""
        text += self._part("nan" if bad else "record", row)
        if bad and "nan_every" in self.about:
            return text
        text += self._part("epoch_end", row) if row["ends_epoch"] else ""
        for what in ("eval", "save"):
            every = self.about.get(f"{what}_every")
            text += self._part(what, row) if every and row["step"] and row["step"] % every == 0 else ""
        return text

    def _end(self) -> str:
        last, fault, turn = self.rows[-1], self.trainer.fault, self.trainer.turn
        if fault == "cut":
            return ""
        if fault == "stopped":
            return _filled(STOPS[turn % len(STOPS)][1], last)
        if fault == "crash":
            return _traceback(*CRASHES[turn % len(CRASHES)][2])
        if fault == "oom":
            where = 'File "/home/ann/train.py", line 166, in step\n    loss, grads = run(params, batch)'
            return _traceback(where, OUT_OF_MEMORY[self.about.get("family", "torch")])
        if fault == "nan" and (self.about.get("stops_at_nan") or "nan_after" in self.about):
            return self._part("nan_after", last)
        return self._part("end", last)


def _rows(trainer: Trainer) -> list[Values]:
    """The values of every record, of which most are noise around a level."""
    about, rng = trainer.about, random.Random(1000 + trainer.turn)
    total = trainer.about["first"] + (about["records"] - 1) * about["every"]
    iters = about.get("iters", total + 1)
    losses, now, mean = trainer.loss(rng), 0.0, 0.0
    found: list[Values] = []
    for record in range(trainer.records):
        step, loss, rate = trainer.step(record), losses[record], float(f"{trainer.rate(record):.8g}")
        slow = _SLOWER if trainer.fault == "slow" and record >= trainer.onset else 1.0
        sec = round(about["sec"] * slow * (1 + rng.gauss(0, 0.015)), 9)
        window = sec * about["every"]
        now += window
        mean = loss if not record else 0.9 * mean + 0.1 * loss
        share = (record + 1) / about["records"]
        wild = 6.0 if trainer.fault == "diverge" and record >= trainer.onset else 1.0
        good = found[trainer.onset - 1] if record >= trainer.onset and trainer.fault == "nan" else None
        row: Values = {
            "t": _BEGAN + timedelta(seconds=now), "number": record + 1, "step": step, "step0": step - 1, "total": total,
            "epoch": 1 + (step - 1) // iters, "it": 1 + (step - 1) % iters, "epoch0": step // iters, "it0": step % iters,
            "iters": iters, "epochs": max(1, math.ceil(total / iters)), "frac": step / iters, "micro": 4 * step,
            "loss": loss, "mean": mean, "loss_a": 0.6 * loss, "loss_b": 0.4 * loss, "lr": rate, "mult": rate / about["lr"],
            "grad": NAN if math.isnan(loss) else wild * about.get("grad", 0.8) * (1 + abs(rng.gauss(0, 0.12))),
            "val": mean * (1.02 + rng.gauss(0, 0.004)), "sec": sec, "window_s": window, "elapsed_s": now,
            "acc": 0.1 + 0.6 * share + rng.gauss(0, 0.01), "reward": 0.1 + 0.6 * share + rng.gauss(0, 0.03),
            "kl": 0.02 + abs(rng.gauss(0, 0.004)), "entropy": 1.4 - 0.5 * share + rng.gauss(0, 0.02),
            "len": 620 + 90 * share + rng.gauss(0, 15), "data_s": 0.011 + abs(rng.gauss(0, 0.001)),
            "bad": record - trainer.onset + 1, "good": good["loss"] if good else loss, "good_step": good["step"] if good else step,
        }  # fmt: skip
        found.append(row | _derived(row, about, rng))
    return found


def _derived(row: Values, about: Mapping[str, Any], rng: random.Random) -> Values:
    """Values that follow from others of a record."""
    step, sec, iters, total = row["step"], row["sec"], row["iters"], row["total"]
    pace = about["sec"] / sec
    z = f"{rng.gauss(0, 1):+.2f}z" if step > 128 else "+nanz"
    last_of_epoch = step % iters == 0 if about["first"] else row["it0"] + about["every"] >= iters
    left = timedelta(seconds=round((total - step) * sec))
    finite = not math.isnan(row["loss"])
    return {
        "ms": 1e3 * sec, "its": 1 / sec, "avg_s": row["elapsed_s"] / max(1, step), "avg_ms": 1e3 * row["elapsed_s"] / max(1, step),
        "elapsed_ms": 1e3 * row["elapsed_s"], "elapsed_min": row["elapsed_s"] / 60, "msec": row["t"].microsecond // 1000,
        "epoch_ms": round(1e3 * row["t"].timestamp()), "epoch_s": iters * sec, "sec_most": 0.62 * sec, "sec_s": f"00:{sec:02.0f}",
        "sps": 64 / sec, "sps_avg": 64 * max(1, step) / row["elapsed_s"], "tps": 65536 / sec, "tps_avg": 65536 * max(1, step) / row["elapsed_s"],
        "samples": 256 * step, "tokens": 65536 * step, "mfu_pct": 38.5 * pace, "tflops": 331.0 * pace,
        "ppl": math.exp(min(row["loss"], 20)) if finite else NAN, "bpb": 0.29 * row["mean"], "acc_pct": 100 * row["acc"],
        "reward100": 100 * row["reward"], "scale": max(1.0, 65536.0 / 2 ** max(0, 10 * row["bad"])), "z": z,
        "pct": 100 * step // total, "it_pct": 100 * row["it"] // iters, "it0_pct": 100 * row["it0"] // iters, "full": "#" * 10,
        "bar": f"{'#' * (10 * step // total):10}", "clock": _clock(row["elapsed_s"]), "clock_h": str(timedelta(seconds=round(row["elapsed_s"]))),
        "left": _clock(left.total_seconds()), "it_less": row["it"] - 1, "epoch_less": row["epoch"] - 1, "iters_less": iters - 1,
        "begins_epoch": row["it"] <= about["every"], "ends_epoch": last_of_epoch,
        "tok_h": _human(65536 * step), "ms_h": _human(1e3 * sec), "tps_h": _human(65536 / sec * 32),
    }  # fmt: skip


def _filled(text: str, row: Values) -> str:
    """Lines with the values of a record; a name that is no value stays as it is."""
    return _FIELD.sub(lambda found: format(row[found[1]], found[2] or "") if found[1] in row else found[0], text)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:02d}:{rest:02d}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _human(number: float) -> str:
    """Three digits and a suffix."""
    thousands = math.floor(math.log10(max(1, number))) // 3
    return f"{number / 1000**thousands:.3g}{' KMGT'[thousands].strip()}"


def _traceback(*parts: str) -> str:
    *frames, error = parts
    return "\n".join(["Traceback (most recent call last):", *(f"  {frame}" for frame in frames), error]) + "\n"
