"""What is written for a family of formats: JSON, tables, settings, Parquet, databases, records, traces."""

from __future__ import annotations

import io
import json
import sqlite3
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import polars as pl
from mutate import fill, frames

SIZE_BYTES = 256 << 10


def jsons() -> Iterator[tuple[str, bytes]]:
    many = SIZE_BYTES // 2
    name = "n" * many
    few = {f"k{n}": n for n in range(many // 10)}
    yield "path", json.dumps({name: few}).encode()
    yield "path-of-lists", json.dumps({name: [[1]] * (many // 6)}).encode()
    yield "path-of-empty", json.dumps({name: [[]] * (many // 4)}).encode()
    yield "path-of-objects", json.dumps({name: [{"a": 1}] * (many // 10)}).encode()
    yield "deep-path", ('{"' + name[: many // 4] + '":').encode() * 8 + b"1" + b"}" * 8
    yield "wide", json.dumps({f"k{n}": n for n in range(SIZE_BYTES // 14)}).encode()
    yield "lists", b"[" + fill(b"[],") + b"1]"
    yield "objects", b"[" + fill(b"{},") + b"1]"
    yield "numbers", b"[" + fill(b"1,") + b"1]"
    yield "digits", b'{"a":' + fill(b"9" * 4000 + b",") + b"1}"
    yield "escapes", b'{"a":"' + fill(b"\\ud800") + b'"}'
    yield "backslashes", b'{"a":"' + fill(b"\\\\") + b'"}'
    yield "deep", b"[" * 190 + fill(b"1,") + b"1" + b"]" * 190
    yield "same-key", b"{" + fill(b'"a":1,') + b'"a":1}'
    yield "nan", b"[" + fill(b"NaN,") + b"1]"


def in_seed(seed: bytes) -> Iterator[tuple[str, bytes]]:
    """What a JSON document of a reader holds, with each of its parts shared out again and again."""
    try:
        found = json.loads(seed)
    except ValueError:
        return
    if isinstance(found, list) and found:
        yield "seed-elements", json.dumps(found * (SIZE_BYTES // len(seed) + 1)).encode()
    if not isinstance(found, dict):
        return
    name, few = "n" * (SIZE_BYTES // 2), {f"k{n}": n for n in range(SIZE_BYTES // 24)}
    for key, value in list(found.items())[:12]:
        many = SIZE_BYTES // (len(json.dumps(value)) + 2) + 1
        wide = {f"k{n}": value for n in range(SIZE_BYTES // (len(json.dumps(value)) + 10) + 1)}
        yield (
            f"seed-{key}-list",
            json.dumps({**found, key: value * many if isinstance(value, list) else [value] * many}).encode(),
        )
        yield f"seed-{key}-object", json.dumps({**found, key: wide}).encode()
        yield f"seed-{key}-path", json.dumps({**found, key: {name: few}}).encode()
    yield "seed-wide", json.dumps({**found, **few}).encode()
    yield "seed-path", json.dumps({**found, name: few}).encode()


def record_lines(seed: bytes) -> Iterator[tuple[str, bytes]]:
    """JSON lines whose objects are wide, deep, or named at length."""
    first = seed.split(b"\n")[0]
    try:
        record = json.loads(first)
    except ValueError:
        return
    if not isinstance(record, dict):
        return
    wide = {**record, **{f"m{n}": 1 for n in range(2_000)}}
    yield "lines-wide", fill(json.dumps(wide).encode() + b"\n")
    yield "lines-differ", b"\n".join(json.dumps({**record, f"m{n}": n}).encode() for n in range(SIZE_BYTES // 90))
    path = {**record, "n" * (SIZE_BYTES // 2): {f"k{n}": n for n in range(SIZE_BYTES // 24)}}
    yield "lines-path", first + b"\n" + json.dumps(path).encode() + b"\n"
    yield "lines-list", first + b"\n" + json.dumps({**record, "x": list(range(SIZE_BYTES // 8))}).encode() + b"\n"
    yield "lines-name", (json.dumps({**record, "n" * 60_000: 1}).encode() + b"\n") * 4 + fill(first + b"\n")
    yield "lines-config", first + b"\n" + json.dumps({**record, "config": path}).encode() + b"\n"


def tables(seed: bytes) -> Iterator[tuple[str, bytes]]:
    head, _, rest = seed.partition(b"\n")
    mark = b"\t" if b"\t" in head else b","
    if mark not in head:
        return
    row = rest.split(b"\n")[0]
    yield "table-name", head + mark + b"n" * (SIZE_BYTES // 2) + b"\n" + fill(row + mark + b"1\n", SIZE_BYTES // 2)
    names = mark.join(b"%x" % n for n in range(20_000))
    yield "table-wide", head + mark + names + b"\n" + (row + (mark + b"1") * 20_000 + b"\n") * 4
    yield "table-ragged", head + mark + names + b"\n" + fill(row + b"\n", SIZE_BYTES // 2)
    yield "table-quote", head + b"\n" + row + b"\n" + fill(b'"' + row + b"\n")
    yield "table-quotes", head + b"\n" + fill(b'"",')
    yield "table-ones", b"step" + mark + b"a" + b"\n" + b"".join(b"%d%s1\n" % (n, mark) for n in range(SIZE_BYTES // 8))
    yield "table-empty", head + b"\n" + fill(mark * head.count(mark) + b"\n")


def settings(suffix: str) -> Iterator[tuple[str, bytes]]:
    if suffix == "toml":
        yield "dotted", b".".join([b"a"] * (SIZE_BYTES // 2)) + b" = 1\n"
        yield "dotted-lines", b"".join(b".".join([b"a"] * n) + b" = 1\n" for n in range(1, 600))
        yield "dotted-tables", b"".join(b"[" + b".".join([b"a%d" % n] * 40) + b"]\n" for n in range(1_500))
        yield "nested-arrays", b"a = " + b"[" * 5_000
        yield "inline", b"a = " + b"{a = " * 5_000
        yield "tables", fill(b"[[a]]\n")
        yield "path", b"[" + b"n" * (SIZE_BYTES // 2) + b"]\n" + b"".join(b"k%d = 1\n" % n for n in range(12_000))
        yield "broken", fill(b"a = 1\n")
        yield "quotes", b'a = """' + fill(b'"" ')
    else:
        yield "anchors", b"".join(b"a%d: &a%d [*a%d, *a%d]\n" % (n, n, n - 1, n - 1) for n in range(1, 4_000))
        yield "flow", b"a: " + fill(b"[")
        yield "flow-maps", b"a: " + fill(b"{a: ")
        yield "flow-list", b"a: [" + fill(b"1,") + b"]"
        yield "path", b"n" * 1_000 + b":\n" + b"".join(b"  k%d: 1\n" % n for n in range(12_000))
        yield "long-path", b"? " + b"n" * (SIZE_BYTES // 8) + b"\n: " + b"{" + fill(b"a: 1, ", SIZE_BYTES // 2) + b"}"
        yield "indent", b"".join(b" " * n + b"a:\n" for n in range(600))
        yield "dashes", fill(b"- ")
        yield "questions", fill(b"? ")
        yield "documents", fill(b"---\na: 1\n")
        yield "tags", fill(b"!!python/object:a.b ")
        yield "block", b"a: |\n" + fill(b"  x\n")
        yield "merge", b"a: &a {b: 1}\n" + fill(b"c: {<<: *a}\n")


def parquets() -> Iterator[tuple[str, bytes]]:
    def written(frame: pl.DataFrame) -> bytes:
        held = io.BytesIO()
        frame.write_parquet(held, compression="zstd")
        return held.getvalue()

    for rows in (100_000, 1_000_000, 10_000_000):
        steps = pl.select(_step=pl.int_range(rows, dtype=pl.Int64)).with_columns(loss=pl.lit(1.0))
        yield f"rows-{rows}", written(steps)
        yield f"same-step-{rows}", written(steps.with_columns(_step=pl.lit(7, dtype=pl.Int64)))
    wide = pl.select(_step=pl.int_range(20_000, dtype=pl.Int64))
    yield "columns", written(wide.with_columns(pl.lit(float(n)).alias(f"m{n}") for n in range(200)))
    yield "nulls", written(wide.with_columns(pl.lit(None, dtype=pl.Float64).alias(f"m{n}") for n in range(200)))
    yield "name", written(wide.with_columns(pl.lit(1.0).alias("n" * 100_000)))
    yield "texts", written(wide.with_columns(pl.lit("7" * 60).alias(f"t{n}") for n in range(60)))
    yield "long-texts", written(wide.with_columns(t=pl.lit("7" * 100_000)))


def databases(kind: str) -> Iterator[tuple[str, bytes]]:
    def made(statements: Callable[[sqlite3.Connection], None], page_bytes: int = 4096) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.db"
            with closing(sqlite3.connect(path)) as db:
                db.execute(f"pragma page_size = {page_bytes}")
                statements(db)
                db.commit()
            return path.read_bytes()

    tables = {
        "mlflow_sqlite": (
            "create table metrics (key, value, timestamp, run_uuid, step, is_nan)",
            "create table runs (run_uuid, name, status, start_time, end_time, experiment_id)",
        ),
        "trackio_sqlite": ("create table metrics (id integer primary key, timestamp, run_name, step, metrics)",),
    }[kind]
    width = tables[0].count(",") + 1

    def rows(values: list[object], count: int) -> Callable[[sqlite3.Connection], None]:
        def run(db: sqlite3.Connection) -> None:
            for table in tables:
                db.execute(table)
            db.executemany(f"insert into metrics values ({','.join('?' * width)})", [values] * count)

        return run

    blob = json.dumps({"n" * 50_000: {f"k{n}": n for n in range(3_000)}})
    wide = json.dumps({f"k{n}": n for n in range(8_000)})
    ones: list[object] = [None] * width
    if kind == "trackio_sqlite":
        yield "path", made(rows([None, "2026-01-01T00:00:00", "r", 1, blob], 3))
        yield "wide", made(rows([None, "2026-01-01T00:00:00", "r", 1, wide], 3))
        yield "short", made(rows([None, "2026-01-01T00:00:00", "r", 1, '{"a":1}'], 4_000))
    else:
        yield "long-name", made(rows(["n" * 100_000, 1.0, 1, "r", 1, 0], 3))
        yield "short", made(rows(["a", 1.0, 1, "r", 1, 0], 10_000))
    yield "nulls", made(rows(ones, 20_000))
    yield "small-pages", made(rows(ones, 5_000), 512)
    whole = made(rows(ones, 20_000))
    yield (
        "cells",
        whole[: 4096 * 2]
        + b"".join(b"\x0d\0\0\xff\xff\0\0\0" + whole[n + 8 : n + 4096] for n in range(8192, len(whole), 4096)),
    )
    yield (
        "cycle",
        whole[:8192] + b"".join(b"\x05\0\0\x07\xff\0\0\0\0\0\0\2" + struct.pack(">H", 3000) * 2_042 for _ in range(40)),
    )
    yield "overflow", whole[:4096] + bytes(range(4)) * (SIZE_BYTES // 4)


def framed(seed: bytes) -> Iterator[tuple[str, bytes]]:
    """Records with sound checksums: one payload again and again, and payloads whose fields repeat."""
    found = frames(seed)
    if found is None:
        return
    payloads, write = found

    def log(*more: bytes) -> bytes:
        return write([*payloads[:3], *more])

    for at, payload in enumerate(sorted(payloads, key=len)[:: max(len(payloads) // 4, 1)][:5]):
        many = fill(payload)[: SIZE_BYTES // max(len(payload), 1) * len(payload)]
        yield f"record-{at}-many", log(*[payload] * (SIZE_BYTES // (len(payload) + 16) + 1))
        yield f"record-{at}-fields", log(many)
        for cut in (2, 9, 11, 12):
            yield f"record-{at}-nested-{cut}", log(_nested(payload[cut:], cut))
    yield "empty-records", log(*[b""] * (SIZE_BYTES // 16))
    for field in (1, 2, 4, 5, 8):
        value = b"\n\x01t\x12" + b"\x04" + b"\0\0\x80?"
        for tag in (b"\n\x01t\x15\0\0\x80?", value, b"\n\x01tB" + _varint(5) + b"\x08\x01*\x01\0"):
            summary = _field(field, fill(_field(1, tag), SIZE_BYTES // 2))
            yield f"values-{field}-{len(tag)}", log(b"\x09" + bytes(8) + b"\x10\x07" + summary)
    tensor = b"\x08\x01\x12\0" + _field(5, bytes(SIZE_BYTES // 2))
    yield "tensor", log(b"\x10\x07" + _field(5, _field(1, b"\n\x01t" + _field(8, tensor))))
    claimed = b"\x08\x01\x12\x08\x12\x06\x08" + b"\xff\xff\xff\xff\x07" + _field(5, bytes(64))
    yield (
        "tensor-claims",
        log(b"\x10\x07" + _field(5, fill(_field(1, b"\n\x01t" + _field(8, claimed))))),
    )
    yield from ((f"history-{label}", log(payload)) for label, payload in _histories())
    name = _field(1, b"n" * (SIZE_BYTES // 2)) + b"\x15\0\0\x80?"
    yield "tag", log(b"\x10\x07" + _field(5, _field(1, name)))


def _histories() -> Iterator[tuple[str, bytes]]:
    """Payloads of W&B records whose values are objects with a long key before many."""
    few = json.dumps({f"k{n}": n for n in range(SIZE_BYTES // 24)}).encode()
    nulls = json.dumps({f"k{n}": None for n in range(SIZE_BYTES // 30)}).encode()
    for label, value in (("path", few), ("nulls", nulls)):
        item = _field(1, b"n" * (SIZE_BYTES // 2)) + b"\x82\x01" + _varint(len(value)) + value
        for record in (2, 3, 5):
            yield f"{label}-{record}", _field(record, _field(1, item))


def _varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def _field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _nested(payload: bytes, field: int) -> bytes:
    for _ in range(200):
        payload = _field(field, payload)
    return payload


def traces() -> Iterator[tuple[str, bytes]]:
    event = b'{"ph":"X","cat":"kernel","name":"k","pid":1,"tid":2,"ts":3,"dur":4,"args":{"stream":7,"device":0}}'
    head = b'{"traceEvents":['
    yield "events", head + fill(event + b",") + event + b"]}"
    yield "tiny", head + fill(b'{"ph":"X","ts":1},') + event + b"]}"
    yield "empty", head + fill(b"{},") + event + b"]}"
    yield (
        "args",
        head + event[:-2] + b"," + b",".join(b'"a%d":%d' % (n, n) for n in range(12_000)) + b"}}," + event + b"]}",
    )
    yield "name", head + fill(event.replace(b'"k"', b'"' + b"k" * 60_000 + b'"') + b",") + event + b"]}"
    yield "names", head + b",".join(event.replace(b'"k"', b'"k%d"' % n) for n in range(SIZE_BYTES // 120)) + b"]}"
    yield "deep", head + event[:-1] + b',"x":' + b"[" * 5_000 + b"]" * 5_000 + b"}," + event + b"]}"
    yield "damaged", head + (event + b",") * 900 + b'{"ph":"X",' * 9_000 + (event + b",") * 300 + b"]}"
    yield "half", head + (event + b"," + event[:40] + b",") * 1_500 + b"]}"
    yield "quotes", head + (event + b',"') * 2_000 + b"]}"
    yield "braces", head + (event + b",{") * 2_000 + b"]}"
    yield "closed", head + (event + b"}],") * 2_000 + b"]}"
    yield "flow", head + fill(b'{"ph":"s","id":1,"ts":1,"pid":1,"tid":1},') + event + b"]}"
    yield "begin", head + fill(b'{"ph":"B","name":"b","ts":1,"pid":1,"tid":1},') + event + b"]}"
    yield (
        "threads",
        head
        + b",".join(b'{"ph":"M","name":"thread_name","pid":%d,"args":{"name":"t"}}' % n for n in range(4_000))
        + b"]}",
    )
    yield (
        "top",
        b'{"a":{"'
        + b"n" * (SIZE_BYTES // 2)
        + b'":{'
        + b",".join(b'"k%d":1' % n for n in range(9_000))
        + b"}},"
        + head[1:]
        + event
        + b"]}",
    )
