"""Whole commands beside other ways to the same answer: CPU, memory, growth, and the answer itself, compared by value.

    python bench/commands.py [--only WORD] [--scale 1.0] [--runs 3]

Every input is made here (seeded) with one fault at a known place. A command and each peer answer the same question of
it in a process of their own (imports included, as a user pays for them); an answer that differs ends the bench with
exit code 1, so a reader that is fast and wrong cannot pass. A peer that is not installed is left out, and said so.
How the cost of `triage` grows with its input is in `growth.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:] = [
    place for place in sys.path if Path(place or ".").resolve() != HERE
]  # scripts here are named as packages
MAKERS = HERE.parent / "fixtures" / "make"
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Work:
    """One question: `make` writes the input, `command` asks us, `peers` answer it another way, `answer` reads ours."""

    name: str
    make: Callable[[Path, float], None]
    command: tuple[str, ...]
    answer: Callable[[Any], Answer]
    peers: dict[str, Callable[[Path], Answer]]


def made(name: str, folder: Path = HERE) -> Any:  # noqa: ANN401 - a script beside this one
    """Load a script of `bench/` or of `fixtures/make/` under a name of its own: some have the name of a package."""
    spec = spec_from_file_location(f"made_{name}", folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.path.insert(0, str(folder))  # it may import its neighbours
    spec.loader.exec_module(module)
    sys.path.remove(str(folder))
    return module


# Inputs


def make_events(place: Path, scale: float) -> None:
    """An event file of about 119 MB: 20 tags a step, the loss NaN for the last tenth."""
    tf = made("generate_tfevents")
    tags, steps = [name.encode() for name in tf.names(20)], int(104_000 * scale)
    frame = import_module("forensics.io.records.tfrecord").frame
    with (place / "events.out.tfevents.1750000000.node-a.1.0").open("wb") as out:
        out.write(frame(b"\x09\x00\x00\x00\x00\x30\x13\xda\x41\x1a\x0dbrain.Event:2"))
        for first in range(0, steps, 4096):
            payloads = [
                tf.payload(tag, curve(step, k, steps), step, 1.75e9 + step * 0.3 + k * 1e-4)
                for step in range(first, min(first + 4096, steps))
                for k, tag in enumerate(tags)
            ]
            out.write(tf.framed(payloads))


def make_wandb(place: Path, scale: float) -> None:
    """A W&B log of 100 MB: 50 metrics a step, the loss NaN for the last tenth."""
    folder = place / "wandb" / "offline-run-20260101_000000-b3nchm4r"
    folder.mkdir(parents=True)
    made("wandb").write_log(folder / "run-b3nchm4r.wandb", int(100e6 * scale), 50)


def make_text(place: Path, scale: float) -> None:
    """A log of 100 MB: every line a step with five numbers, the loss NaN for the last tenth."""
    rng, steps = random.Random(5), int(870_000 * scale)
    with (place / "train.log").open("w") as out:
        for step in range(steps):
            at = f"2026-01-01 {step // 36000 % 24:02d}:{step // 600 % 60:02d}:{step // 10 % 60:02d}"
            out.write(
                f"[{at}] step: {step} | loss: {curve(step, 0, steps):.4f} | grad_norm: {1 + rng.random():.3f} | "
                f"lr: 3.00e-04 | tokens/s: {5000 + rng.random():.0f} | mem: 61.2GB\n"
            )


def make_csv(place: Path, scale: float) -> None:
    """A table of 10^6 points: ten columns beside the step, the loss NaN for the last tenth."""
    steps = int(100_000 * scale)
    names = ["loss", "lr", "grad_norm", *(f"layer{k}/norm" for k in range(7))]
    with (place / "metrics.csv").open("w") as out:
        out.write(",".join(["step", *names]) + "\n")
        for step in range(steps):
            out.write(",".join([str(step), *(f"{curve(step, k, steps):.6g}" for k in range(10))]) + "\n")


def make_trace(place: Path, scale: float) -> None:
    """A profiler trace of 66 MB."""
    made("trace").write_trace(place / "trace.json", int(66e6 * scale))


def make_large_trace(place: Path, scale: float) -> None:
    """A profiler trace of 305 MB."""
    made("trace").write_trace(place / "trace.json", int(305e6 * scale))


def make_snapshot(place: Path, scale: float) -> None:
    """A memory snapshot of 134 MB."""
    made("memory_snapshot").generate(place / "snapshot.pickle", max(1, int(134 * scale)))


def make_hang(place: Path, scale: float) -> None:
    """Recorder dumps, logs and stacks of 64 ranks; one rank stays in its loader."""
    ranks = max(4, int(64 * scale))
    made("hang_1024", MAKERS).write(place, ranks, ranks - 3)


def curve(step: int, column: int, steps: int) -> float:
    """A falling curve; column 0 is NaN in the last tenth."""
    return math.nan if column == 0 and step >= steps - steps // 10 else (column + 2) / (1 + step / 1e4)


# Answers: ours from the document, and the peers' from the file


def first_nan(document: Any) -> Answer:  # noqa: ANN401 - JSON
    """The onset of the verdict."""
    return {"first_nan": document["verdict"]["onset"]["step"], "shape": document["verdict"]["shape"]}


def kernels(document: Any) -> Answer:  # noqa: ANN401 - JSON
    """Steps, device work and its time, over all ranks."""
    ranks = document["ranks"]
    return {
        "steps": sum(len(rank["steps"]) for rank in ranks),
        "count": sum(part["count"] for rank in ranks for part in rank["categories"]),
        "time_ms": round(sum(part["time_s"] for rank in ranks for part in rank["categories"]) * 1e3),
    }


def memory(document: Any) -> Answer:  # noqa: ANN401 - JSON
    """What the allocator holds at the end."""
    (only,) = document["snapshots"]
    return {"reserved": only["reserved_bytes"], "allocated": only["allocated_bytes"]}


def culprits(document: Any) -> Answer:  # noqa: ANN401 - JSON
    """Who did not come, and what all had done before."""
    return {"culprits": document["culprits"], "last_common": document["last_common"]["seq"]}


def nan_of(steps: Any, values: Any) -> Answer:  # noqa: ANN401 - sequences of any kind
    """The first step whose value is not finite."""
    return {"first_nan": next(int(s) for s, v in zip(steps, values, strict=True) if v != v), "shape": "nan"}  # noqa: PLR0124 - NaN


def accumulator(place: Path) -> Answer:
    """Tensorboard's reader with every scalar kept."""
    module: Any = import_module("tensorboard.backend.event_processing.event_accumulator")
    found = module.EventAccumulator(str(place), size_guidance={"scalars": 0}).Reload().Scalars("train/loss")
    return nan_of((p.step for p in found), (p.value for p in found))


def data_store(place: Path) -> Answer:
    """Wandb's message classes and `json`."""
    wandb: Any = made("wandb")
    classes, rows = wandb.message_classes(), list[tuple[int, float]]()
    for payload in wandb.framed(next(place.rglob("*.wandb")).read_bytes()):
        record = classes.Record()
        record.ParseFromString(payload)
        if record.WhichOneof("record_type") == "history":
            row = {".".join(i.nested_key) or i.key: json.loads(i.value_json) for i in record.history.item}
            rows.append((row["train/global_step"], row["train/loss"]))
    return nan_of(*zip(*rows, strict=True))


def expressions(place: Path) -> Answer:
    """A regular expression a line."""
    import re  # noqa: PLC0415 - a peer pays for what it uses

    line = re.compile(r"step: (\d+) \| loss: (\S+) \| grad_norm: (\S+) \| lr: (\S+) \| tokens/s: (\S+)")
    with (place / "train.log").open() as file:
        rows = [(int(m[1]), *map(float, m.groups()[1:])) for m in map(line.search, file) if m]
    return nan_of((r[0] for r in rows), (r[1] for r in rows))


def pandas_csv(place: Path) -> Answer:
    """Pandas."""
    import pandas as pd  # noqa: PLC0415 - same

    table = pd.read_csv(place / "metrics.csv")
    return nan_of(table["step"], table["loss"])


def polars_csv(place: Path) -> Answer:
    """Polars."""
    import polars as pl  # noqa: PLC0415 - same

    table = pl.read_csv(place / "metrics.csv", null_values=[])
    return nan_of(table["step"], table["loss"].cast(pl.Float64))


def orjson_trace(place: Path) -> Answer:
    """Orjson and a loop."""
    import orjson  # noqa: PLC0415 - same

    events = orjson.loads((place / "trace.json").read_bytes())["traceEvents"]
    device = [e for e in events if e["ph"] == "X" and e["cat"] in {"kernel", "gpu_memcpy", "gpu_memset"}]
    steps = sum(e["ph"] == "X" and e["name"].startswith("ProfilerStep#") for e in events)
    return {"steps": steps, "count": len(device), "time_ms": round(sum(e["dur"] for e in device) / 1e3)}


def unpickled(path: Path) -> Any:  # noqa: ANN401 - a document that this script has made
    """Load with the C unpickler; it refuses every name."""
    import pickle  # noqa: PLC0415 - same

    class Refusing(pickle.Unpickler):
        def find_class(self, module_name: str, global_name: str) -> Any:  # noqa: ANN401 - never returns
            raise pickle.UnpicklingError(module_name, global_name)

    with path.open("rb") as file:
        return Refusing(file).load()


def pickle_snapshot(place: Path) -> Answer:
    """The C unpickler and a sum."""
    segments = unpickled(place / "snapshot.pickle")["segments"]
    return {
        "reserved": sum(s["total_size"] for s in segments),
        "allocated": sum(s["allocated_size"] for s in segments),
    }


def pickle_dumps(place: Path) -> Answer:
    """The C unpickler and the smallest last number of a rank."""
    last: dict[int, int] = {}
    for path in place.rglob("*"):
        if path.is_file() and path.read_bytes()[:1] == b"\x80":
            done = [e["collective_seq_id"] for e in unpickled(path)["entries"]]
            last[int("".join(c for c in path.name if c.isdigit()))] = max(done)
    least = min(last.values())
    return {"culprits": [rank for rank, seq in last.items() if seq == least], "last_common": least}


_TRIAGE = ("triage", "--format", "json", "--exit-zero")
_KERNELS = ("kernels", "--format", "json")
WORKS = (
    Work("triage, event file 119 MB", make_events, _TRIAGE, first_nan, {"EventAccumulator": accumulator}),
    Work("triage, .wandb 100 MB", make_wandb, _TRIAGE, first_nan, {"message classes": data_store}),
    Work("triage, text 100 MB", make_text, _TRIAGE, first_nan, {"Python re": expressions}),
    Work("triage, CSV 10^6 points", make_csv, _TRIAGE, first_nan, {"pandas": pandas_csv, "polars": polars_csv}),
    Work("kernels, 66 MB", make_trace, _KERNELS, kernels, {"orjson": orjson_trace}),
    Work("kernels, 305 MB", make_large_trace, _KERNELS, kernels, {"orjson": orjson_trace}),
    Work("memory, 134 MB", make_snapshot, ("memory", "--format", "json"), memory, {"unpickler": pickle_snapshot}),
    Work("hang, 64 ranks", make_hang, ("hang", "--format", "json"), culprits, {"unpickler": pickle_dumps}),
)


def compiled() -> dict[str, str]:
    """Give an environment in which modules are compiled by the first that imports them, and kept.

    So are those of an installed package: without that a triage compiles 150 modules more than reading, half a second
    that no user pays.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def cost(command: list[str], out: Path) -> tuple[float, float, int]:
    """CPU seconds and peak MB of a command whose output goes to `out`, and its exit code."""
    watch = (
        "import resource,subprocess,sys\n"
        "code = subprocess.run(sys.argv[2:], stdout=open(sys.argv[1], 'wb')).returncode\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, code)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", watch, str(out), *command], capture_output=True, text=True, check=True, env=compiled()
    )
    cpu_s, peak_mb, code = printed.stdout.split()
    if int(code) not in {0, 1}:
        sys.stderr.write(printed.stderr)
    return float(cpu_s), float(peak_mb), int(code)


def best(command: list[str], out: Path, runs: int) -> tuple[float, float, int]:
    """The run of least CPU."""
    return min(cost(command, out) for _ in range(runs))


def compare(work: Work, place: Path, runs: int) -> bool:
    """Print our figures and each peer's; false where the answers differ."""
    out = place.with_suffix(".out")
    ours = [sys.executable, "-m", "forensics", work.command[0], str(place), *work.command[1:]]
    cpu_s, peak_mb, _ = best(ours, out, runs)
    answer = work.answer(json.loads(out.read_bytes()))
    print(f"{work.name:28} {cpu_s:7.2f} CPU s {peak_mb:6.0f} MB  {answer}", flush=True)
    alike = True
    for name in work.peers:
        theirs, their_mb, code = best([sys.executable, __file__, "--worker", work.name, name, str(place)], out, runs)
        if code:
            print(f"    {name}: not to be had here", flush=True)
            continue
        same = json.loads(out.read_bytes()) == answer
        alike &= same
        ratio = f"{cpu_s / theirs:5.2f} of its CPU, {peak_mb / their_mb:.2f} of its memory"
        print(f"    {name:24} {theirs:7.2f} CPU s {their_mb:6.0f} MB  {ratio}{'' if same else '  ANOTHER ANSWER'}")
    return alike


def main() -> int:
    """Make the inputs, ask, compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--worker", nargs=3)
    given = parser.parse_args()
    if given.worker:
        name, peer, place = given.worker
        print(json.dumps(next(work for work in WORKS if work.name == name).peers[peer](Path(place))))
        return 0
    alike = True
    for work in WORKS:
        if given.only in work.name:
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder) / "run"
                place.mkdir()
                work.make(place, given.scale)
                alike &= compare(work, place, given.runs)
    return 0 if alike else 1


if __name__ == "__main__":
    raise SystemExit(main())
