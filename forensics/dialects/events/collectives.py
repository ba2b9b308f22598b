"""Collectives that a log names: their names in one spelling, and the rows of the table `collectives` from events.

Lines of a watchdog, a fingerprint or a desync report name a collective. `nccl:_all_gather_base`, `ALLGATHER` and
`_ALLGATHER_BASE` are all_gather; other spellings are rows of `collectives.tsv`.

The rank is global: from the line's own tag. `[Rank 3]` in the message is a place in its group and stays in `attrs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import orjson
import polars as pl

from forensics.io.tables import table_rows
from forensics.knowledge.errors import telling
from forensics.patterns import lazily

SCHEMA = {
    "rank": pl.Int64(), "speaker": pl.Int64(), "group": pl.String(), "seq": pl.Int64(), "op": pl.String(),
    "in_sizes": pl.String(),
    "out_sizes": pl.String(), "dtype": pl.String(), "state": pl.String(), "timeout_ms": pl.Int64(),
    "line": pl.Int64(), "byte": pl.Int64(), "attrs": pl.String(),
}  # fmt: skip
_FIELDS = lazily(r"(SequenceNumber|OpType|TensorDtypes)=(\w+?)(?=,|\)|$|OpType)")
_SHAPES = lazily(r"TensorShape=((?:\[[\d, ]*\],? ?)+)")
_MOST_RANKS = 4_096
_PRINTED = lazily(r"^(?:[\w.]+:)?(?P<op>\w+?)(?: (?P<a>\d{1,7})(?P<way><-|->)(?P<b>\d{1,7}))?$")
_SPELLINGS = {printed: name for printed, name, _ in table_rows("forensics.dialects.events", "collectives.tsv")}
_OP_CHARS = 60


def parsed(printed: str) -> tuple[str, tuple[int, int] | None]:
    """One printed name as `op` and, for send and recv, the ranks in the group `(source, destination)`."""
    found = _PRINTED.match(printed.strip())
    if found is None:
        return printed.strip().lower()[:_OP_CHARS], None
    pair = None
    if found["way"]:
        left, right = int(found["a"]), int(found["b"])
        pair = (left, right) if found["way"] == "->" else (right, left)
    return canonical(found["op"]), pair


def canonical(op: str) -> str:
    """The one spelling of an operation; an unknown name in lower case."""
    name = op.lower().lstrip("_")[:_OP_CHARS]
    coalesced = name.endswith("_coalesced")
    name = name.removesuffix("_coalesced").removesuffix("_base")
    name = _SPELLINGS.get(name, name)
    return f"{name}_coalesced" if coalesced else name


def rows_of(events: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """One row for each collective that the events name: `rank` where the message names it, else `speaker` prints it."""
    readers = _readers()
    found = [row for event in events if event["code"] in readers for row in readers[event["code"]](event)]
    return pl.DataFrame(found, schema=SCHEMA) if found else _none()


def _row(event: dict[str, Any], **cells: Any) -> dict[str, Any]:  # noqa: ANN401 - cells of a table
    row: dict[str, Any] = dict.fromkeys(SCHEMA)
    row |= {"speaker": event["rank"], "line": event["line"], "byte": event["byte"], "attrs": event["attrs"]}
    return row | cells


def _whole(text: str | None) -> int | None:
    found = int(text) if text and len(text) < 20 and text.lstrip("-").isdigit() else None
    return found if found is not None and -(1 << 63) <= found < 1 << 63 else None


def _group(attrs: dict[str, str]) -> str | None:
    name, desc = attrs.get("pg"), attrs.get("desc", "")
    if name is None:
        return None
    return f"{name}({desc})" if desc and desc != "undefined" else name


def _watchdog(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    attrs: dict[str, str] = orjson.loads(event["attrs"])
    if "op" not in attrs:
        return
    sizes = {f"{way}_sizes": f"[[{attrs[f'numel_{way}']}]]" for way in ("in", "out") if f"numel_{way}" in attrs}
    op, timeout_ms = canonical(attrs["op"]), _whole(attrs.get("timeout_ms"))
    yield _row(event, seq=_whole(attrs.get("seq")), op=op, state="timed_out", timeout_ms=timeout_ms, **sizes)


def _status(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    attrs: dict[str, str] = orjson.loads(event["attrs"])
    if "seq" in attrs:
        yield _row(event, seq=_whole(attrs["seq"]), group=_group(attrs), state="timed_out")


def _fingerprint(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The statement of the rank that speaks; of the other rank's it is known that it may be misread."""
    attrs: dict[str, str] = orjson.loads(event["attrs"])
    said = dict(_FIELDS.findall(attrs.get("self", "")))
    shapes = _SHAPES.search(attrs.get("self", ""))
    yield _row(
        event,
        rank=_whole(attrs.get("self_rank")),
        seq=_whole(said.get("SequenceNumber")),
        op=canonical(said["OpType"]) if "OpType" in said else None,
        in_sizes=f"[{shapes[1].replace(' ', '').rstrip(',')}]" if shapes else None,
        dtype=said.get("TensorDtypes"),
        state="mismatch",
    )


def _desync(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    attrs: dict[str, str] = orjson.loads(event["attrs"])
    seq = _whole(attrs.get("joined") or attrs.get("finished"))
    state = "started" if "joined" in attrs else "completed"
    for text in attrs.get("ranks", "").split(",")[:_MOST_RANKS]:
        rank = _whole(text.strip())
        if rank is not None and 0 <= rank < 1 << 31:
            yield _row(event, rank=rank, seq=seq, state=state)


#: What reads each fact of a collective that an error line may tell.
_READERS = {
    "late_collective": _watchdog,
    "collective_state": _status,
    "collective_mismatch": _fingerprint,
    "lagging_ranks": _desync,
}


@cache
def _readers() -> dict[str, Callable[[dict[str, Any]], Iterator[dict[str, Any]]]]:
    """What reads the events of each code."""
    return {code: read for fact, read in _READERS.items() for code in telling(fact)}


@cache
def _none() -> pl.DataFrame:
    return pl.DataFrame(schema=SCHEMA)
