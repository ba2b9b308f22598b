"""Traces of any content: what is written is what `json` reads, whatever the layout and the size of the blocks."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.formats.trace import chrome as chrome_trace
from forensics.formats.trace._layout import Objects
from forensics.formats.trace._stream import Stream
from forensics.formats.trace._times import nanoseconds_exactly
from forensics.io.limits import DEFAULT
from forensics.io.reading import opened_bytes
from forensics.store.sink import SourceSink

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
STAMP = st.one_of(st.integers(1, 10**15), st.integers(1, 8 * 10**15).map(lambda ns: f"{ns // 1000}.{ns % 1000:03d}"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
EVENT = st.fixed_dictionaries(
    {"ph": st.sampled_from("XXXXMsfi"), "name": TEXT, "ts": STAMP, "dur": STAMP},
    optional={"cat": st.sampled_from(("kernel", "cpu_op", "Kernel")), "pid": st.integers(0, 9) | TEXT, "args": JSON},
)
LAYOUTS = st.sampled_from([{"indent": 2}, {"indent": 1}, {}, {"separators": (",", ":")}])


def printed(events: list[dict[str, Any]], layout: dict[str, Any], *, bare: bool) -> bytes:
    """Stamps given as text are printed as numbers with all their digits."""
    marked = [e | {k: f"@@{e[k]}@@" for k in ("ts", "dur") if isinstance(e[k], str)} for e in events]
    root: Any = marked if bare else {"schemaVersion": 1, "traceEvents": marked, "displayTimeUnit": "ms"}
    return json.dumps(root, **layout).replace('"@@', "").replace('@@"', "").encode()


def rows_of(data: bytes) -> pl.DataFrame:
    opened = opened_bytes("trace.json", data)
    sink = SourceSink(opened.source)
    chrome_trace.read(opened, sink, DEFAULT)
    return sink.frames().get("spans", pl.DataFrame(schema={"name": pl.String, "start_ns": pl.Int64, "seq": pl.Int64}))


@settings(max_examples=150, deadline=None)
@given(st.lists(EVENT, min_size=1, max_size=12), LAYOUTS)
def test_what_is_written_is_what_is_read(events: list[dict[str, Any]], layout: dict[str, Any]) -> None:
    rows = rows_of(printed(events, layout, bare=False))
    kept = [(at, e) for at, e in enumerate(events) if e["ph"] == "X"]
    assert rows["seq"].to_list() == [at for at, _ in kept]
    assert rows["name"].to_list() == [e["name"] for _, e in kept]
    expected = [e["ts"] * 1000 if isinstance(e["ts"], int) else int(Decimal(e["ts"]) * 1000) for _, e in kept]
    assert rows["start_ns"].to_list() == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(EVENT, min_size=1, max_size=8), LAYOUTS, st.integers(1, 300), st.booleans())
def test_blocks_of_any_size_give_the_same_events(
    events: list[dict[str, Any]], layout: dict[str, Any], size: int, bare: bool
) -> None:
    data = printed(events, layout, bare=bare)
    stream = Stream()
    chunks = (data[at : at + size] for at in range(0, len(data), size))
    names = [one.name for block in stream.events(chunks) for one in block]
    assert names == [e["name"] for e in events]
    assert (stream.cut, stream.lost_bytes, stream.arrays) == (False, 0, 1)


@settings(max_examples=100, deadline=None)
@given(st.lists(JSON.filter(lambda one: isinstance(one, dict)), max_size=6), LAYOUTS)
def test_outermost_objects_are_found_by_braces_alone(objects: list[Any], layout: dict[str, Any]) -> None:
    data = json.dumps(objects, **layout).encode()[1:]
    assert [json.loads(data[a:b]) for a, b in Objects(data)] == objects


@given(st.integers(0, 4 * 10**18))
def test_decimals_are_never_rounded(ns: int) -> None:
    found, known = nanoseconds_exactly([Decimal(ns).scaleb(-3)], 1000)
    assert (int(found[0]), bool(known[0])) == (ns, True)
