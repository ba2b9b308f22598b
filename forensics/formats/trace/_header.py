"""What a trace says about itself around its events: rank, base of its clock, devices, versions, settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from forensics.formats.rows.json_records import object_of
from forensics.io.reading import Opened
from forensics.io.tolerant_json import dumps
from forensics.patterns import lazily

_BASE = lazily(rb'"baseTimeNanoseconds"\s*:\s*"?(\d{1,19})')
_RANK = lazily(rb'"distributedInfo"\s*:\s*\{[^{}]{0,4000}?"rank"\s*:\s*"?(\d{1,7})')
#: The end of a trace has its name, its base and, on demand, the rank and messages of the profiler.
_TAIL_BYTES = 1 << 20
_BLANK = b"\xef\xbb\xbf \t\r\n,"
_MOST_FACTS, _KEY_CHARS, _VALUE_CHARS, _MOST_DEPTH = 2_000, 200, 2_000, 4
#: Names of persons, hosts and folders, and messages of the profiler, are no evidence.
_WITHHELD = lazily(
    r"(?i)(?:^|[._])(?:host_?name|user_?name|.*_user|tw_.*|traceName|log_?file.*|ERROR|WARNING|INFO|STAGE|STATUS|VERBOSE)(?:\.|$)"
)


class Clock(Struct, frozen=True):
    """`base_ns` is added to every stamp; None where the trace does not tell it, or was cut before it."""

    base_ns: int | None
    rank: int | None


def look_around(opened: Opened, head: bytes, chunks: Iterable[bytes]) -> Clock:
    """Base and rank from the text before the events, else behind them; `chunks` are read where they must be."""
    base, rank = _BASE.search(head), _RANK.search(head)
    if base is None or rank is None:
        tail = opened.tail(_TAIL_BYTES) if not opened.compression else _last(chunks)
        base, rank = base or _last_match(_BASE, tail), rank or _last_match(_RANK, tail)
    return Clock(int(base[1]) if base and int(base[1]) < 1 << 62 else None, int(rank[1]) if rank else None)


def _last(chunks: Iterable[bytes]) -> bytes:
    kept = b""
    for chunk in chunks:
        kept = (kept + chunk)[-_TAIL_BYTES:] if len(chunk) < _TAIL_BYTES else chunk[-_TAIL_BYTES:]
    return kept


def _last_match(pattern: re.Pattern[bytes], data: bytes) -> re.Match[bytes] | None:
    return max(pattern.finditer(data), key=lambda found: found.start(), default=None)


def described(around: Sequence[bytes], *, cut: bool) -> tuple[dict[str, object], int]:
    """The fields of the root around its arrays of events, and bytes that are none; when it was `cut`, it has no end."""
    found: dict[str, object] = {}
    lost_bytes = 0
    for place, part in enumerate(around):
        body = part.strip(_BLANK)
        inner = body.removeprefix(b"{") if place == 0 else body
        if place == len(around) - 1 and around[0].strip(_BLANK) and not cut:
            inner = inner.removesuffix(b"}") if inner.endswith(b"}") else inner + b"{"
        fields = object_of(b"{" + inner.strip(_BLANK) + b"}")
        if fields is None:
            lost_bytes += len(body)
        found |= fields or {}
    return found, lost_bytes


def facts(described: Mapping[str, object]) -> list[tuple[str, str]]:
    """Key path and JSON text of every leaf that is evidence."""
    rows: list[tuple[str, str]] = []
    for key, value in _leaves(described, "", 0):
        if len(rows) >= _MOST_FACTS:
            break
        if not _WITHHELD.search(key):
            rows.append((key[:_KEY_CHARS], dumps(value, compact=True).decode()[:_VALUE_CHARS]))
    return rows


def _leaves(value: Any, path: str, depth: int) -> Iterator[tuple[str, object]]:  # noqa: ANN401 - JSON
    if isinstance(value, dict) and value and depth < _MOST_DEPTH:
        for key, inner in cast("dict[str, Any]", value).items():
            yield from _leaves(inner, f"{path[:_KEY_CHARS]}.{key}" if path else key, depth + 1)
    elif isinstance(value, list) and value and depth < _MOST_DEPTH and any(isinstance(one, dict) for one in value):  # pyright: ignore[reportUnknownVariableType]
        for at, inner in enumerate(cast("list[Any]", value)):
            yield from _leaves(inner, f"{path[:_KEY_CHARS]}.{at}", depth + 1)
    else:
        yield path, value
