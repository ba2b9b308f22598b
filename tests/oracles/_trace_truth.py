"""What a trace says, read from the whole file by `json` and by plain Python: rows, counts, nothing shared with ours."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import orjson
import polars as pl

from forensics.dialects.names import canonical

Row = tuple[Any, ...]
SPAN = (
    *("seq", "rank", "step", "device", "stream", "thread", "category", "name"),
    *("start_ns", "dur_ns", "correlation", "bytes"),
)
METRIC = ("seq", "rank", "t_ns", "name", "raw_name", "value")
OLD = {"operator": "cpu_op", "runtime": "cuda_runtime", "memcpy": "gpu_memcpy", "memset": "gpu_memset"}
ON_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync", "cuda_event"}
KEPT = {
    *("External id", "external id", "Collective name", "Process Group Name", "Process Group Ranks", "Group size"),
    *("Seq", "dtype", "In msg nelems", "Out msg nelems", "Total Allocated", "Total Reserved", "Bytes"),
    *("Device Type", "Device Id", "Ev Idx", "Python id", "Python parent id", "queued", "grid", "block"),
    "est. achieved occupancy %",
}
ELEMENT_BYTES = {"Float": 4, "BFloat16": 2, "Long": 8}
GIB = 1 << 30
UNIX_NS = 10**18


@dataclass
class Truth:
    """Rows in the order of the file; `left` counts events that are no rows, by phase and category."""

    spans: list[Row] = field(default_factory=list)
    attrs: list[dict[str, Any] | None] = field(default_factory=list)
    metrics: list[Row] = field(default_factory=list)
    left: Counter[tuple[str, str]] = field(default_factory=Counter)
    events: int = 0
    of_rows: int = 0
    of_metrics: int = 0
    bare: int = 0


def truth(data: bytes, rank: int | None = None) -> Truth:
    """Every row of the trace, its numbers read as decimals."""
    root = json.loads(data, parse_float=Decimal)
    events = root if isinstance(root, list) else root["traceEvents"]
    about = {} if isinstance(root, list) else root
    rank = about.get("distributedInfo", {}).get("rank", rank)
    first = next((Decimal(e["ts"]) for e in events if e.get("ts")), Decimal(0))
    scale = 1 if first >= 10**17 else 1000
    base = 0 if first * scale >= UNIX_NS else int(about.get("baseTimeNanoseconds", 0))
    found = Truth(events=len(events))
    open_at: dict[Any, list[tuple[dict[str, Any], int]]] = defaultdict(list)
    for seq, e in enumerate(events):
        ph, start = e.get("ph", ""), whole_ns(e.get("ts"), scale, base)
        place = (e.get("pid", ""), e.get("tid", ""))
        if ph == "X" and start is not None and not clipped(e):
            span(found, e, (seq, rank), start, whole_ns(e.get("dur"), scale, 0))
        elif ph == "B" and start is not None:
            open_at[place].append((e, start))
        elif ph == "E" and start is not None and open_at[place]:
            begin, begun = open_at[place].pop()
            both = {"name": begin.get("name") or e.get("name", ""), "cat": begin.get("cat") or e.get("cat", "")}
            both |= {"pid": place[0], "tid": place[1], "args": begin.get("args") or e.get("args")}
            span(found, both, (seq, rank), begun, max(start - begun, 0))
            found.of_rows += 1
        elif ph == "C":
            counter(found, e, seq, rank, start)
        elif ph in ("i", "I", "R") and isinstance(args := e.get("args"), dict) and has_memory(args):
            memory(found, args, seq, rank, start)
        else:
            found.left[ph, e.get("cat", "")] += 1
    for waiting in open_at.values():
        found.left.update(("B", e.get("cat", "")) for e, _ in waiting)
    return found


def whole_ns(value: Any, scale: int, base: int) -> int | None:
    number = Decimal(value) if value is not None else Decimal(1 << 62)
    return int((number * scale).to_integral_value()) + base if abs(number * scale) < 1 << 62 else None


def label(e: dict[str, Any], key: str) -> str:
    return "" if e.get(key) is None else str(e[key])


def clipped(e: dict[str, Any]) -> bool:
    return not e.get("ts") and e.get("dur") == 0 and e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")


def span(found: Truth, e: dict[str, Any], where: Row, start: int, dur: int | None) -> None:
    args = e.get("args") or {}
    category = OLD.get(e.get("cat", "").lower(), e.get("cat", "").lower())
    on_device = category in ON_DEVICE
    step = re.match(r"ProfilerStep#(\d+)", e.get("name", ""))
    stream = args.get("stream", e.get("tid")) if on_device else None
    sent = args.get("bytes")
    if sent is None and "Collective name" in args and args.get("dtype") in ELEMENT_BYTES:
        count = args.get("In msg nelems")
        sent = None if count is None else count * ELEMENT_BYTES[args["dtype"]]
    found.spans.append(
        (
            *(*where, int(step[1]) if step else None, args.get("device", e.get("pid")) if on_device else None),
            None if stream is None else "-1" if stream == 0xFFFFFFFF else str(stream),
            None if on_device else f"{label(e, 'pid')}/{label(e, 'tid')}",
            *(category, e.get("name", ""), start, None if dur is None else max(dur, 0), args.get("correlation"), sent),
        )
    )
    kept = {"External id" if k == "external id" else k: v for k, v in args.items() if k in KEPT and v is not None}
    found.attrs.append(json.loads(json.dumps(kept, default=float)) if kept else None)
    found.of_rows += 1


def has_memory(args: dict[str, Any]) -> bool:
    return any(args.get(key) is not None for key in ("Total Allocated", "Total Reserved", "Bytes"))


def memory(found: Truth, args: dict[str, Any], seq: int, rank: int | None, start: int | None) -> None:
    cpu = args.get("Device Type") == 0
    place = "cpu" if cpu else f"gpu.{args.get('Device Id')}"
    t_ns = start if start is not None and start >= UNIX_NS else None
    for key, name in (("Total Allocated", "allocated"), ("Total Reserved", "reserved"), ("Bytes", "moved")):
        if args.get(key) is None or (key == "Bytes" and args.get("Total Allocated") is not None):
            continue
        kind = "cpu" if cpu else "gpu"
        found.metrics.append((seq, rank, t_ns, f"{kind}_mem_{name}_gib", f"{place}.{key}", args[key] / GIB))
    found.of_metrics += 1


def counter(found: Truth, e: dict[str, Any], seq: int, rank: int | None, start: int | None) -> None:
    t_ns = start if start is not None and start >= UNIX_NS else None
    for key, value in (e.get("args") or {}).items():
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            raw = f"{e['name']}.{key}"
            name = canonical(raw)
            found.metrics.append((seq, rank, t_ns, name.canonical, raw, float(value) * name.scale))
    found.of_metrics += 1


def written(frame: pl.DataFrame, columns: Sequence[str]) -> list[Row]:
    """The rows of a table in the order of their events."""
    return frame.sort("seq", maintain_order=True).select(columns).rows() if frame.height else []


def written_attrs(frame: pl.DataFrame) -> list[dict[str, Any] | None]:
    """The `attrs` of spans as values."""
    return [None if one is None else json.loads(one) for one in frame.sort("seq")["attrs"]] if frame.height else []


def valid(data: bytes) -> Truth | None:
    """What the bytes say where they are JSON of a trace, whatever became of them; None where they are not."""
    try:
        return truth(data)
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return None


def values(rows: Sequence[Row]) -> Counter[Row]:
    """Rows as values alone, without their numbers, which damage before them changes; and without rank and step."""
    return Counter(row[3:] for row in rows)


def columns(data: bytes) -> tuple[pl.DataFrame, int]:
    """The durations of a large trace as `orjson` reads them, and the number of all events.

    Its stamps count from a near begin, so that floats hold every nanosecond of them.
    """
    root = orjson.loads(data)
    base, rank = int(root.get("baseTimeNanoseconds", 0)), root.get("distributedInfo", {}).get("rank")
    rows = [(seq, e) for seq, e in enumerate(root["traceEvents"]) if e.get("ph") == "X"]
    host = [e["cat"] not in ON_DEVICE for _, e in rows]
    steps = [e["name"].removeprefix("ProfilerStep#") for _, e in rows]
    args = [e["args"] for _, e in rows]
    frame = pl.DataFrame(
        {
            "seq": [seq for seq, _ in rows],
            "rank": pl.Series([rank] * len(rows), dtype=pl.Int32),
            "step": [int(step) if step.isdigit() else None for step in steps],
            "device": pl.Series([a.get("device") for a in args], dtype=pl.Int32),
            "stream": [str(a["stream"]) if "stream" in a else None for a in args],
            "thread": [f"{e['pid']}/{e['tid']}" if on else None for on, (_, e) in zip(host, rows, strict=True)],
            "category": [e["cat"] for _, e in rows],
            "name": [e["name"] for _, e in rows],
            "start_ns": [round(e["ts"] * 1000) + base for _, e in rows],
            "dur_ns": [round(e["dur"] * 1000) for _, e in rows],
            "correlation": [a.get("correlation") for a in args],
        }
    )
    return frame, len(root["traceEvents"])


def tiled(one: bytes, copies: int) -> tuple[pl.DataFrame, int]:
    """The same of a trace that says a step so many times, each time under its own number."""
    step, events = columns(one)
    mark = pl.col("step").is_not_null()
    parts = (
        step.with_columns(
            pl.col("seq") + at * events,
            step=pl.when(mark).then(pl.lit(at, dtype=pl.Int64)),
            name=pl.when(mark).then(pl.lit(f"ProfilerStep#{at}")).otherwise("name"),
        )
        for at in range(copies)
    )
    return pl.concat(parts), events * copies
