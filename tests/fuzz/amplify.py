"""Small inputs that ask for much: legal units repeated, shared, nested, widened, or only claimed.

Most are made from the seeds of a reader by changes that know nothing of its format; the rest are written for a family
of formats (pickles, JSON, tables, settings, records, databases, Parquet). All have about `SIZE_BYTES`.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator, Sequence

from amplify_formats import (
    SIZE_BYTES,
    databases,
    framed,
    in_seed,
    jsons,
    parquets,
    record_lines,
    settings,
    tables,
    traces,
)
from amplify_pickles import bare_snapshots, pickles, recorders, snapshots
from mutate import Case, fill

from forensics.errors import InputError
from forensics.io.limits import DEFAULT
from forensics.io.reading import opened_bytes
from forensics.registry import Ingester
from forensics.store.sink import SourceSink

#: Seeds of one reader that are amplified by the general changes, the largest of each kind of content.
SEEDS = 2
_WORD = re.compile(rb"[A-Za-z_]{4,}")
_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_OPEN = (b"[", b"{", b'{"a":', b"(", b"<", b"- ", b"a.", b"[[", b'"', b"'''", b"/*", b"\x80\x04](", b"\n  ")


def _lines(data: bytes) -> list[bytes]:
    return data.split(b"\n")


def _last_line(data: bytes) -> bytes:
    return data + fill(_lines(data.rstrip(b"\n"))[-1] + b"\n")


def _middle_line(data: bytes) -> bytes:
    lines = _lines(data)
    at = len(lines) // 2
    return b"\n".join((*lines[:at], fill(lines[at] + b"\n"), *lines[at:]))


def _first_line(data: bytes) -> bytes:
    return fill(_lines(data)[0] + b"\n") + data


def _wide_line(data: bytes) -> bytes:
    lines = _lines(data)
    at = max(range(len(lines)), key=lambda i: len(lines[i]))
    mark = next((m for m in (b",", b"\t", b"|", b" ") if m in lines[at]), b" ")
    return b"\n".join((*lines[:at], fill(lines[at].rstrip() + mark), *lines[at + 1 :]))


def _wide_head(data: bytes) -> bytes:
    """A wide first line, and as many short lines as wide cells."""
    lines = _lines(data)
    mark = next((m for m in (b",", b"\t", b"|", b" ") if m in lines[0]), b" ")
    names = mark.join(b"c%d" % i for i in range(SIZE_BYTES // 16))
    return b"\n".join((lines[0] + mark + names, *lines[1:], *[mark.join(lines[-1:] * 2)] * 2000))


def _long_name(data: bytes) -> bytes:
    """One long name, then the rest of the file again and again."""
    found = _WORD.search(data)
    if found is None:
        return data
    longer = data[: found.end()] + fill(b"n", SIZE_BYTES // 2) + data[found.end() :]
    return longer + fill(data, SIZE_BYTES // 2)


def _every_name(data: bytes) -> bytes:
    head = data[:4096]
    return _WORD.sub(lambda m: m[0] + b"n" * (SIZE_BYTES // 64), head)[:SIZE_BYTES]


def _every_number(data: bytes) -> bytes:
    return _NUMBER.sub(b"9" * 18, fill(data))


def _long_numbers(data: bytes) -> bytes:
    return _NUMBER.sub(b"1" + b"0" * 5000, data[:2048])[:SIZE_BYTES]


def _short_numbers(data: bytes) -> bytes:
    return _NUMBER.sub(b"1", fill(data))


def _no_ends(data: bytes) -> bytes:
    return fill(data).replace(b"\n", b" ")


def _returns(data: bytes) -> bytes:
    return fill(data).replace(b"\n", b"\r")


def _only_ends(data: bytes) -> bytes:
    return fill(data, 4096).replace(b"\n", b"\n" * 2000)[:SIZE_BYTES]


def _no_closing(data: bytes) -> bytes:
    return fill(data).translate(None, b"]})")


def _no_quotes_end(data: bytes) -> bytes:
    return data.replace(b'"', b"", 1) + fill(data)


def _claims(data: bytes) -> bytes:
    """Every count among the first bytes as large as it goes."""
    changed = bytearray(data[:SIZE_BYTES])
    for at in range(8, min(len(changed) - 4, 96), 8):
        changed[at : at + 4] = b"\xff\xff\xff\x7f"
    return bytes(changed)


def _tail_claims(data: bytes) -> bytes:
    changed = bytearray(data[:SIZE_BYTES])
    for at in range(max(len(changed) - 96, 0), len(changed) - 4, 8):
        changed[at : at + 4] = b"\xff\xff\xff\x7f"
    return bytes(changed)


def _zeros(data: bytes) -> bytes:
    half = len(data) // 2
    return data[:half] + bytes(SIZE_BYTES) + data[half:]


def _packed(data: bytes) -> bytes:
    return gzip.compress(fill(data, 4 * SIZE_BYTES), 1)


def _opened(mark: bytes) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        at = data.find(b"\n") + 1
        return data[:at] + fill(mark) + data[at:]

    return change


GENERAL: dict[str, Callable[[bytes], bytes]] = {
    "repeat": fill, "last-line": _last_line, "middle-line": _middle_line, "first-line": _first_line,
    "wide-line": _wide_line, "wide-head": _wide_head, "long-name": _long_name, "every-name": _every_name,
    "every-number": _every_number, "long-numbers": _long_numbers, "short-numbers": _short_numbers,
    "no-ends": _no_ends, "returns": _returns, "only-ends": _only_ends, "no-closing": _no_closing,
    "no-quotes-end": _no_quotes_end, "claims": _claims, "tail-claims": _tail_claims, "zeros": _zeros,
    "packed": _packed, **{f"open-{mark.decode('latin-1').strip()}": _opened(mark) for mark in _OPEN},
}  # fmt: skip


def _by_name(one: Ingester) -> Iterator[tuple[str, Case]]:
    """What is written for one reader."""
    if one.name == "memory_snapshot":
        yield from pickles(snapshots(), "snapshot.pickle")
        yield from ((label, Case("snapshot.pickle", data)) for label, data in bare_snapshots())
    elif one.name == "flight_recorder":
        yield from pickles(recorders(), "nccl_trace_rank_0")
    elif one.name == "wandb_history_parquet":
        yield from ((label, Case("history.parquet", data)) for label, data in parquets())
    elif one.name.endswith("_sqlite"):
        yield from ((label, Case("mlflow.db", data)) for label, data in databases(one.name))
    elif one.name == "chrome_trace":
        yield from ((label, Case("trace.json", data)) for label, data in traces())


def _by_ending(known: Sequence[Case]) -> Iterator[tuple[str, Case]]:
    """What is written for the endings that the seeds have."""
    names = {case.name.rsplit(".", 1)[-1].lower(): case.name for case in known}
    made = {"toml": lambda: settings("toml"), "yaml": lambda: settings("yaml"), "json": jsons}
    for ending, make in made.items():
        if ending in names:
            yield from ((f"{ending}-{label}", Case(names[ending], data)) for label, data in make())


def _largest(one: Ingester, known: Sequence[Case]) -> list[Case]:
    """Seeds to amplify: of each ending the largest small one that the reader takes for its own."""
    best: dict[str, Case] = {}
    for case in known:
        ending = case.name.rsplit(".", 1)[-1]
        larger = len(best.get(ending, Case("", b"")).data) < len(case.data) <= SIZE_BYTES // 2
        if larger and _is_own(one, case):
            best[ending] = case
    return sorted(best.values(), key=lambda case: -len(case.data))[:SEEDS]


def _is_own(one: Ingester, found: Case) -> bool:
    opened = opened_bytes(found.name, found.data)
    sink = SourceSink(opened.source)
    try:
        one.read(opened, sink, DEFAULT)
    except InputError:
        return False
    return bool(sink.frames())


def amplified(one: Ingester, known: Sequence[Case]) -> Iterator[tuple[str, Case]]:
    """Every amplification of a reader, with its label; `known` are its seeds."""
    largest = _largest(one, known)
    yield from _by_name(one)
    yield from _by_ending(known)
    for at, seed in enumerate(largest):
        for make in (in_seed, record_lines, tables, framed):
            yield from ((f"{label}-{at}", Case(seed.name, data)) for label, data in make(seed.data))
        for label, change in GENERAL.items():
            yield f"{label}-{at}", Case(seed.name, change(seed.data))
