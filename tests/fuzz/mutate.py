"""Seeds of each ingester, and the ways in which a disk, a crash or an attacker changes them."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from forensics.io.records import leveldb_frame, leveldb_log, tfrecord
from forensics.registry import Ingester

FIXTURES = Path(__file__).parents[2] / "fixtures"
MOST_BYTES = 1 << 20

TINY = (
    b"",
    b"\n",
    b"step 1 loss 2.5 lr 1e-3\nstep 2 loss nan\n",
    b"[rank0]: step: 7 | loss: 1.25 | grad_norm: inf\nTraceback (most recent call last):\nValueError: no\n",
    b'{"step": 1, "loss": 2.5}\n{"step": 2, "loss": NaN}\n',
    b'{"log_history": [{"step": 1, "loss": 0.5}], "global_step": 1}',
    b'{"message": {"message": "boom", "extraInfo": {"timestamp": "17"}}}',
    b"step,loss\n1,2.5\n2,nan\n",
    b"  3%|#         | 3/100 [00:01<00:30]\r  4%|#         | 4/100 [00:02<00:29]\r",
)
NUMBERS = (
    b"0", b"-1", b"9" * 18, b"9" * 19, b"-9223372036854775809", b"9" * 400, b"1e308", b"-1e400", b"1e-400", b"nan",
    b"-inf", b"NaN", b"1" + b"0" * 5000, b"0x10", b"1,000,000", b"2147483648", b"4294967296", b"0.1.2", b"1e", b"",
)  # fmt: skip
SNIPPETS = (
    b"\x1b[31m", b"\x1b]0;x\x07", b"\0" * 16, b"\r", b"\r\n", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\xff",
    "\u202e".encode(), b"\x08" * 9, b"[[[[", b"{{{{", b'"', b"\\u", b"\\ud800", b"::error::x", b"##[error]", b"=cmd()",
    b"[" * 3000, b'{"a":' * 1500, b"A" * 70_000, b"\n" * 5000, b", ," * 2000, b"%s%n",
    b"Traceback (most recent call last):\n",
)  # fmt: skip
_NUMBER = re.compile(rb"\d+")


class Case(NamedTuple):
    """One input: a file name, which decides who reads it, and its bytes."""

    name: str
    data: bytes


def fill(unit: bytes, size: int = 256 << 10) -> bytes:
    """A unit again and again, up to a size."""
    return (unit * (size // max(len(unit), 1) + 1))[:size]


def frames(data: bytes) -> tuple[list[bytes], Callable[[list[bytes]], bytes]] | None:
    """The payloads of a framed log, and what writes such a log with sound checksums; None for other content."""
    if data.startswith(b":W&B"):
        payloads = [found.payload for found in leveldb_log.records(data) if isinstance(found, leveldb_log.Record)]
        return (payloads, lambda parts: leveldb_frame.frame(parts, data[:7])) if payloads else None
    if data and tfrecord.has_header(data[:12]):
        payloads = [found.payload for found in tfrecord.read(data) if isinstance(found, tfrecord.Record)]
        return (payloads, lambda parts: b"".join(map(tfrecord.frame, parts))) if payloads else None
    return None


def seeds(one: Ingester, fixtures: Path = FIXTURES) -> tuple[Case, ...]:
    """Files of the ingester's fixtures, files of the bundled runs that it would be offered, and tiny ones."""
    own = [p for p in sorted((fixtures / one.name).rglob("*")) if p.is_file()]
    runs = [p for p in sorted((fixtures / "runs").rglob("*")) if p.is_file() and p.parent.name != "runs"]
    offered = [p for p in runs if any(fnmatch(p.name, glob) for glob in one.sniff.glob) or one.sniff.fallback]
    name = one.sniff.glob[0].replace("*", "x").replace("?", "x") if one.sniff.glob else "x.log"
    tiny = [Case(name, data) for data in (*TINY, *(head + b"\0" * 64 for head in one.sniff.magic))]
    return (*(Case(p.name, p.read_bytes()[:MOST_BYTES]) for p in (*own, *offered)), *tiny)


def _span(rng: random.Random, data: bytes) -> tuple[int, int]:
    begin = rng.randrange(len(data) + 1)
    return begin, min(len(data), begin + int(2 ** rng.uniform(0, 14)))


def _flip(rng: random.Random, data: bytes, _: Sequence[Case]) -> bytes:
    changed = bytearray(data)
    for _n in range(min(len(data), rng.choice((1, 1, 2, 8, 64)))):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _cut(rng: random.Random, data: bytes, _: Sequence[Case]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[at:] if rng.random() < 0.2 else data[:at]


def _zero(rng: random.Random, data: bytes, _: Sequence[Case]) -> bytes:
    begin, end = _span(rng, data)
    return data[:begin] + b"\0" * (end - begin) + data[end:]


def _noise(rng: random.Random, data: bytes, _: Sequence[Case]) -> bytes:
    begin, end = _span(rng, data)
    return data[:begin] + rng.randbytes(end - begin) + data[end:]


def _delete(rng: random.Random, data: bytes, _: Sequence[Case]) -> bytes:
    begin, end = _span(rng, data)
    return data[:begin] + data[end:]


def _double(rng: random.Random, data: bytes, _: Sequence[Case]) -> bytes:
    begin, end = _span(rng, data)
    return data[:end] + data[begin:end] * rng.choice((1, 1, 3, 50)) + data[end:]


def _splice(rng: random.Random, data: bytes, others: Sequence[Case]) -> bytes:
    other = rng.choice(others).data
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def _insert(rng: random.Random, data: bytes, _: Sequence[Case]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(SNIPPETS) + data[at:]


def _number(rng: random.Random, data: bytes, _: Sequence[Case]) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + _NUMBER.sub(lambda _m: rng.choice(NUMBERS), data[at:], count=rng.choice((1, 1, 5, 100)))


def _shuffle(rng: random.Random, data: bytes, _: Sequence[Case]) -> bytes:
    lines = data.split(b"\n")
    begin = rng.randrange(len(lines))
    some = lines[begin : begin + 20]
    rng.shuffle(some)
    return b"\n".join((*lines[:begin], *some, *lines[begin + 20 :]))


CHANGES: tuple[Callable[[random.Random, bytes, Sequence[Case]], bytes], ...] = (
    _flip, _flip, _cut, _zero, _noise, _delete, _double, _splice, _insert, _insert, _number, _number, _shuffle,
)  # fmt: skip


def _change(rng: random.Random, data: bytes, others: Sequence[Case]) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        change = rng.choice(CHANGES)
        data = (change(rng, data, others) if data or change is _insert else rng.choice(others).data)[:MOST_BYTES]
    return data


def _reframe(rng: random.Random, data: bytes, others: Sequence[Case]) -> bytes:
    """Change one record and make its checksums hold again, so that what reads the payload is met."""
    found = frames(data)
    if found is None:
        return _change(rng, data, others)
    payloads, write = found
    at = rng.randrange(len(payloads))
    payloads[at] = _change(rng, payloads[at], [Case("", payload) for payload in payloads])
    return write(payloads)


def case(one: Ingester, known: Sequence[Case], seed: int, number: int) -> Case:
    """The input of one number: the seeds as they are come first; the same arguments give the same bytes."""
    if number < len(known):
        return known[number]
    rng = random.Random(f"{seed}/{one.name}/{number}")
    name, data = rng.choice(known)
    data = _reframe(rng, data, known) if rng.random() < 0.5 else _change(rng, data, known)
    kind = rng.random()
    if kind < 0.05:
        data = gzip.compress(data, 1)
        data = _flip(rng, data, known) if kind < 0.03 else data
    elif kind < 0.07:
        data = b"\xff\xfe" + data.decode("latin-1").encode("utf-16-le")
    return Case(name, data)
