"""W&B transaction logs made at random, and a second reader of them: struct, zlib, wandb's messages and `json`."""

from __future__ import annotations

import json
import math
import random
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hypothesis import strategies as st

from forensics.io.records.leveldb_frame import frame

HEADER = b":W&B\xe1\xbe\x00"
BLOCK = 32_768
_CHUNK = struct.Struct("<IHB")
#: What a dialect reads of a console line.
CONSOLE = re.compile(rb"iter (\d+): loss (\S+), time (\S+)ms, mfu (\S+)%")
#: What counts the steps of all metrics that begin with `train/`.
AXIS = "train/axis.n"
_UNITS = {"loss": 1.0, "step_time_ms": 1e-3, "mfu_pct": 1e-2}


class Point(NamedTuple):
    """One row of history, system metrics or console; `bits` are those of the value as a double, None for a null."""

    byte: int
    raw_name: str
    step: int | None
    t_ns: int | None
    attempt: int
    gstep: int | None
    bits: bytes | None


@dataclass
class Said:
    """All that a log says: points, settings, the last value of each key of the summary."""

    points: list[Point] = field(default_factory=list[Point])
    config: dict[str, Any] = field(default_factory=dict[str, Any])
    summary: dict[str, Any] = field(default_factory=dict[str, Any])
    records: int = 0


def chunks(data: bytes, base: int = 0) -> Iterator[list[tuple[int, int]]]:
    """Begin and end of the chunks of each record of a sound log."""
    at, found = len(HEADER), list[tuple[int, int]]()
    while at < len(data):
        left = BLOCK - (at - base) % BLOCK
        if left < _CHUNK.size:
            at += left
            continue
        crc, length, kind = _CHUNK.unpack_from(data, at)
        assert zlib.crc32(data[at + 6 : at + 7 + length]) == crc
        found.append((at, at + 7 + length))
        at += 7 + length
        if kind in {1, 4}:
            yield found
            found = []


def records(data: bytes) -> Iterator[tuple[list[tuple[int, int]], bytes]]:
    """Chunks and payload of each record."""
    for parts in chunks(data):
        yield parts, b"".join(data[begin + 7 : end] for begin, end in parts)


def bits(value: float | None) -> bytes | None:
    return None if value is None else struct.pack("<d", value)


def leaves(name: str, value: Any) -> Iterator[tuple[str, float | None]]:
    """Numbers and nulls of a decoded value: itself, a string that prints one, or those of an object."""
    if isinstance(value, dict) and "_type" not in value:
        for key, cell in value.items():
            yield from leaves(f"{name}.{key}", cell)
    elif isinstance(value, str) and re.fullmatch(r"(?i)[-+]?(\d+\.?\d*(e[-+]?\d+)?|nan|inf(inity)?)", value):
        yield name, float(value)
    elif value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        yield name, None if value is None else float(value)


def stamp(message: Any) -> int | None:
    return (message.seconds * 10**9 + message.nanos) or None


def said(pb: Any, data: bytes) -> Said:  # noqa: C901 - one branch for each kind of record
    """Read a sound log. `_step` falls back: the next attempt."""
    out, last, attempt, axis = Said(), None, 0, None
    texts: dict[str, bytearray] = {}
    places: dict[str, list[tuple[int, int, int | None]]] = {}
    for parts, payload in records(data):
        out.records += 1
        message, byte = pb.Record.FromString(payload), parts[0][0]
        kind = message.WhichOneof("record_type")
        if kind == "history":
            cells = {i.key or ".".join(i.nested_key): json.loads(i.value_json) for i in message.history.item}
            step, at = cells["_step"], cells.get("_timestamp")
            attempt += last is not None and step < last
            last = step
            t_ns = None if at is None else round(at * 1e9)
            found = [(name, *leaf) for name, cell in cells.items() for leaf in leaves(name, cell)]
            for number in (v for _, inner, v in found if inner == AXIS and v is not None and math.isfinite(v)):
                axis = int(number)
            for name, inner, number in found:
                if not name.startswith("_"):
                    gstep = step if axis is None or not name.startswith("train/") else axis
                    out.points.append(Point(byte, inner, step, t_ns, attempt, gstep, bits(number)))
        elif kind == "stats":
            for item in message.stats.item:
                number, t_ns = bits(float(item.value_json)), stamp(message.stats.timestamp)
                out.points.append(Point(byte, "system." + item.key, None, t_ns, attempt, None, number))
        elif kind == "config":
            out.config |= {i.key or ".".join(i.nested_key): json.loads(i.value_json) for i in message.config.update}
        elif kind == "summary":
            out.summary |= {i.key or ".".join(i.nested_key): json.loads(i.value_json) for i in message.summary.update}
            for item in message.summary.remove:
                out.summary.pop(item.key or ".".join(item.nested_key), None)
        elif kind == "output_raw":
            raw = message.output_raw
            line = raw.line.encode()
            stream = str(raw.output_type)
            text = texts.setdefault(stream, bytearray())
            places.setdefault(stream, []).append(
                (len(text), in_file(parts, payload.rindex(line)), stamp(raw.timestamp))
            )
            text += line
    for stream, text in texts.items():
        out.points += console(bytes(text), places[stream])
    return out


def in_file(parts: list[tuple[int, int]], at: int) -> int:
    """Where byte `at` of a payload stands."""
    for begin, end in parts:
        if at < end - begin - 7:
            return begin + 7 + at
        at -= end - begin - 7
    raise AssertionError


def console(text: bytes, places: list[tuple[int, int, int | None]]) -> Iterator[Point]:
    """Numbers of the lines of one stream; a line stands where its first byte does."""
    last, attempt, at = -1, 0, 0
    for line in text.split(b"\n"):
        if match := CONSOLE.search(line):
            begin, byte, t_ns = next(p for p in reversed(places) if p[0] <= at)
            step = int(match[1])
            attempt += step < last
            last = step
            for (name, unit), number in zip(_UNITS.items(), match.groups()[1:], strict=True):
                yield Point(byte + at - begin, name, step, t_ns, attempt, None, bits(float(number) * unit))
        at += len(line) + 1


@dataclass(frozen=True)
class Stretch:
    """`count` rows; `wide`: how many metrics; `odd`: share of values that are no plain numbers."""

    count: int
    wide: int
    first: int
    odd: float
    consoles: bool
    seldom: bool


STRETCHES = st.lists(
    st.builds(
        Stretch,
        st.sampled_from([1, 30, 70, 150]),
        st.sampled_from([1, 3, 12, 40]),
        st.sampled_from([0, 90, 10**6]),
        st.sampled_from([0.0, 0.0, 0.05, 0.5]),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)
_ODD = (
    "NaN",
    "Infinity",
    "-Infinity",
    "null",
    '"NaN"',
    '"1.5"',
    '"x"',
    "true",
    '{"a":1,"b":{"c":2.5}}',
    "[1,2]",
    "5e-324",
)
_NAMES = ("train/l", "gn", "x" * 130, "a.b", "é" * 3, "val/acc")


def payloads(  # noqa: C901 - one branch for each kind of record
    pb: Any, stretches: list[Stretch], seed: int
) -> Iterator[bytes]:
    """Records as newer writers leave them: a row, its summary, now and then system metrics, console, settings."""
    rng = random.Random(seed)
    number = 0
    held = b""

    def one(**fields: Any) -> bytes:
        nonlocal number
        number += 1
        return pb.Record(num=number, **fields).SerializeToString()

    def cell(odd: float) -> str:
        return rng.choice(_ODD) if rng.random() < odd else repr(rng.gauss(0, 10) * 10.0 ** rng.randint(-9, 9))

    yield one(header=pb.HeaderRecord(version_info=pb.VersionInfo(producer="0.24.2")))
    yield one(metric=pb.MetricRecord(glob_name="train/*", step_metric=AXIS))
    for stretch in stretches:
        item = pb.ConfigItem(nested_key=["seed", str(number)], value_json=cell(0.5))
        yield one(config=pb.ConfigRecord(update=[item, pb.ConfigItem(key="lr", value_json=cell(0))]))
        names = [f"{_NAMES[n % len(_NAMES)]}{n}" for n in range(stretch.wide)]
        for k in range(stretch.count):
            now, step = 1.75e9 + number / 7, stretch.first + k
            cells = {name: cell(stretch.odd) for name in names} | {"_step": str(step), "_timestamp": repr(now)}
            if rng.random() < 0.8:
                plain = repr(8.0 * step)
                cells[AXIS] = rng.choice([plain, plain, plain, "NaN", "null", f'"{step}"']) if stretch.odd else plain
            if rng.random() < stretch.odd / 9:
                cells["train/axis"] = json.dumps({"n": step + 7})
            if stretch.seldom and k % 50 == 3:
                cells["seldom"] = cell(0)
            items = [pb.HistoryItem(nested_key=[name], value_json=text) for name, text in cells.items()]
            rng.shuffle(items)
            yield one(history=pb.HistoryRecord(item=items, step=pb.HistoryStep(num=step)))
            update = [
                pb.SummaryItem(nested_key=list(i.nested_key), value_json=i.value_json)
                for i in items
                if i.nested_key[0] != "train/axis"  # its leaf has the name of another key
            ]
            remove = [pb.SummaryItem(key=rng.choice(names))] if rng.random() < 0.01 else []
            yield one(summary=pb.SummaryRecord(update=update, remove=remove))
            if rng.random() < 0.05:
                stats = pb.StatsRecord(item=[pb.StatsItem(key=f"gpu.{g}.temp", value_json=cell(0)) for g in range(8)])
                stats.timestamp.FromNanoseconds(int(now) * 10**9 + 5)
                yield one(stats=stats)
            if stretch.consoles:
                held += b"iter %d: loss %.4f, time %.2fms, mfu %.2f%%\n" % (step, *(rng.random() * 9 for _ in range(3)))
                while len(held) > 200:
                    cut = rng.randint(1, 150)
                    raw = pb.OutputRawRecord(output_type=1, line=held[:cut].decode())
                    raw.timestamp.FromNanoseconds(int(now) * 10**9 + 1)
                    held = held[cut:]
                    yield one(output_raw=raw)
    if held:
        yield one(output_raw=pb.OutputRawRecord(output_type=1, line=held.decode()))
    yield one(exit=pb.RunExitRecord(exit_code=0))


def log_of(pb: Any, stretches: list[Stretch], seed: int, *, base: int = 0) -> bytes:
    """One whole log."""
    return frame(list(payloads(pb, stretches, seed)), HEADER, base=base)
