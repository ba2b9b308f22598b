"""One run of four ranks, and loops of one's own, in each way in which a log comes to disk: prefixes, bytes, clocks, words."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator

from forensics.values import replace
from make._job import KEY_ERROR, Job, job
from make.base import Label, Made

_DONE = "training complete\n"
_RAISED, _CODE = (
    ("uncaught_exception", "exception_one_rank", "crash_all_ranks", "bad_config"),
    ("code", "line", "frame", "key"),
)
_NAN, _SLOW = 90, 80
_END = {"nan": "", "slow": _DONE, "crash": KEY_ERROR, "healthy": _DONE}
_LABELS = {
    "healthy": Label("healthy"),
    "nan": Label("failed", "nan", onset=_NAN + 1),
    "slow": Label(
        "suspect",
        "slowdown",
        ("slow_steps",),
        onset=_SLOW + 1,
        within=4,
        says=("host", "clock", "profile", "loader", "data"),
    ),
    "crash": Label("failed", "crash", _RAISED, onset=70, within=1, says=_CODE),
}

#: What a launcher puts before each line of a rank, whether that names the rank, and which fault the run has.
PREFIXES = {
    "srun": ("{rank}: ", True, "crash"),
    "mpirun": ("[1,{rank}]<stdout>:", True, "crash"),
    "torchrun-tee": ("[default{rank}]:", True, "nan"),
    "c10d": ("[rank{rank}]: ", True, "crash"),
    "kubernetes": ("[pod/train-{rank}/main] ", False, "slow"),
    "ray": ("(Worker pid=77{rank}, ip=10.0.0.9) ", False, "crash"),
    "task-and-rank": ("{rank}: [rank{rank}]: ", True, "nan"),
}
#: How a loop of one's own prints a record, and which fault its run has.
FORMS = {
    "logging": (
        "{t:%Y-%m-%d %H:%M:%S},{ms:03d} - train - INFO - step {step}/{total} - loss: {loss:.4f} - grad_norm: {grad:.3f} - {sec:.3f} s/step",
        "slow",
    ),
    "loguru": (
        "{t:%Y-%m-%d %H:%M:%S}.{ms:03d} | INFO     | __main__:train:88 - step={step} loss={loss:.4f} grad_norm={grad:.3f} lr={lr:.3e}",
        "nan",
    ),
    "absl": (
        "I{t:%m%d %H:%M:%S}.{ms:03d}000 4711 train.py:88] Step {step}, loss = {loss:.5f}, learning_rate = {lr:.6f}",
        "nan",
    ),
    "epoch-seconds": ("[{s:.3f}] step {step} loss {loss:.4f} lr {lr:.3e} step_time {sec:.3f}", "slow"),
    "iso-zone": (
        "{t:%Y-%m-%dT%H:%M:%S}.{ms:03d}Z INFO iteration {step} train_loss {loss:.4f} seconds_per_step {sec:.3f}",
        "slow",
    ),
    "json-messages": (
        '{{"ts": "{t:%Y-%m-%dT%H:%M:%S}Z", "level": "info", "msg": "train", "step": {step}, "loss": {loss:.5f}, "lr": {lr:.3e}}}',
        "crash",
    ),
    "key-value": ("level=info step={step} loss={loss:.4f} gnorm={grad:.3f} lr={lr:.2e}", "nan"),
    "pipe-table": ("| {step:5d} | {loss:8.4f} | {grad:7.3f} | {lr:.2e} |", "nan"),
    "columns": ("{step:8d} {loss:12.6f} {grad:12.6f} {lr:12.4e}", "nan"),
    "epoch-and-batch": ("Epoch {epoch}/4 Batch {batch}/40 Loss: {loss:.4f} Time: {sec:.3f}s", "slow"),
    "chinese": ("{t:%Y-%m-%d %H:%M:%S} 训练 步数: {step}/{total} 损失: {loss:.4f} 学习率: {lr:.3e}", "nan"),
    "german-words": ("Schritt {step} von {total}: loss {loss:.4f}, lr {lr:.3e}, {sec:.3f} s", "nan"),
    "bare-print": ("{step} {loss:.4f}", "crash"),
    "percent-bar": ("{pct:3d}%|{bar:10}| {step}/{total} [00:40<00:40,  {its:.2f}it/s, loss={loss:.4f}]", "nan"),
}


def runs() -> Iterator[Made]:
    """Every run of this module."""
    for name, (prefix, names_rank, fault) in PREFIXES.items():
        yield _prefixed(name, prefix, names_rank, fault)
    for number, (name, (form, fault)) in enumerate(FORMS.items()):
        for kind in ("healthy", fault):
            yield Made(
                f"text-{name}-{kind}",
                {"train.log": _printed(form, _job(kind, 320 + number)) + _END[kind]},
                _LABELS[kind],
            )
    for name, (write, fault) in BYTES.items():
        yield Made(
            f"text-{name}-{fault}",
            {f"train.log{'.1.gz' if name == 'gzip' else ''}": write(_job(fault, 350).log() + _END[fault])},
            _LABELS[fault],
        )


def _job(fault: str, seed: int) -> Job:
    one = job(160, seed=seed)
    return {"healthy": one, "nan": one.bad(_NAN), "slow": one.slower(_SLOW, 2.0), "crash": one.cut(70)}[fault]


def _printed(form: str, one: Job) -> str:
    head = (
        "| step  | loss     | norm    | lr       |\n|-------|----------|---------|----------|\n"
        if form.startswith("| {")
        else ""
    )
    head = head or ("    step         loss    grad_norm           lr\n" if form.startswith("{step:8d}") else "")
    rows = (
        row | {"s": row["t"].timestamp(), "epoch": 1 + (row["step"] - 1) // 40, "batch": 1 + (row["step"] - 1) % 40,
               "pct": 100 * row["step"] // row["total"], "bar": "#" * (10 * row["step"] // row["total"]), "its": 1 / row["sec"]}
        for row in one.rows()
    )  # fmt: skip
    return head + "".join(form.format(**row) + "\n" for row in rows)


def _prefixed(name: str, prefix: str, names_rank: bool, fault: str) -> Made:
    """All ranks in one file, a line of each after the other; rank 2 crashes, other faults are everyone's."""
    texts: dict[int, list[str]] = {}
    for rank in range(4) if fault == "crash" else (0, 2):
        one = _job("healthy" if fault == "crash" else fault, 300 + rank)
        words = (KEY_ERROR if rank == 2 else "") if fault == "crash" else _END[fault]
        count = (70 if rank == 2 else 72) if fault == "crash" else len(one.loss)
        texts[rank] = (one.cut(count).log() + words).splitlines()
    rows = (
        prefix.format(rank=rank) + text[at] + "\n"
        for at in range(max(map(len, texts.values())))
        for rank, text in texts.items()
        if at < len(text)
    )
    label = _LABELS[fault]
    if fault == "crash":
        label = replace(label, within=2, culprits=(2,) if names_rank else None)
    return Made(f"text-prefix-{name}-{fault}", {"job.out": "".join(rows)}, label)


def _stored(text: str) -> bytes:
    """A gzip file whose blocks are stored as they are, so that it is the same with every library."""
    data = text.encode()
    parts = [data[at : at + 0xFFFF] for at in range(0, len(data), 0xFFFF)]
    blocks = (struct.pack("<BHH", part is parts[-1], len(part), len(part) ^ 0xFFFF) + part for part in parts)
    return b"\x1f\x8b\x08" + bytes(6) + b"\xff" + b"".join(blocks) + struct.pack("<II", zlib.crc32(data), len(data))


def _bars(text: str) -> str:
    """Bars redrawn in place between records."""
    drawn = (f"\r  0%|          | 0/8\r 50%|#####     | 4/8\r100%|##########| 8/8\r{row}" for row in text.splitlines())
    return "\n".join(drawn) + "\n"


def _coloured(text: str) -> str:
    return "".join(f"\x1b[32m{row[:23]}\x1b[0m\x1b[1m{row[23:]}\x1b[0m\n" for row in text.splitlines())


def _torn(text: str) -> bytes:
    """Characters of a bar that two ranks cut, and a hole of zeroes as a lost page leaves it."""
    rows = text.encode().splitlines(keepends=True)
    rows[20] = rows[20][:-1] + b" \xe2\x96 \xff\n"
    return b"".join(rows[:40]) + b"\0" * 512 + b"\n" + b"".join(rows[40:])


def _journal(text: str) -> str:
    """Lines as a container runtime keeps them."""
    return "".join(
        json.dumps({"log": row + "\n", "stream": "stdout", "time": "2025-06-15T15:06:41.5Z"}) + "\n"
        for row in text.splitlines()
    )


BYTES: dict[str, tuple[Callable[[str], str | bytes], str]] = {
    "gzip": (_stored, "nan"),
    "windows-line-ends": (lambda text: text.replace("\n", "\r\n"), "crash"),
    "byte-order-mark": (lambda text: b"\xef\xbb\xbf" + text.encode(), "nan"),
    "utf-16": (lambda text: b"\xff\xfe" + text.encode("utf-16-le"), "crash"),
    "colours": (_coloured, "nan"),
    "bars-redrawn": (_bars, "slow"),
    "torn-characters": (_torn, "nan"),
    "container-journal": (_journal, "crash"),
    "no-last-line-end": (lambda text: text[:-1], "crash"),
    "blank-lines-between": (lambda text: text.replace("\n", "\n\n"), "slow"),
    "rows-twice": (lambda text: "".join(row * 2 for row in text.splitlines(keepends=True)), "nan"),
}
