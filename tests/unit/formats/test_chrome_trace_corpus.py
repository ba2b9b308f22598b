"""Real traces beside the project, where they are: every event accounted for, every time exact."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from forensics.errors import NotMine
from forensics.formats.trace.chrome import read
from forensics.io.limits import DEFAULT
from forensics.io.reading import open_source
from forensics.model import Source
from forensics.store.sink import SourceSink

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "traces"
MOST_BYTES = 1_500_000
TRACES = sorted(p for p in CORPUS.rglob("*.json*") if p.stat().st_size < MOST_BYTES) if CORPUS.is_dir() else []


def nanoseconds(stamp: int | str) -> int:
    return stamp * 1000 if isinstance(stamp, int) else int((Decimal(stamp) * 1000).to_integral_value())


@pytest.mark.skipif(not TRACES, reason="no real traces beside the project")
@pytest.mark.parametrize("path", TRACES, ids=lambda path: str(path.relative_to(CORPUS)))
def test_every_event_is_accounted_for_and_exact(path: Path) -> None:
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    root: Any = json.loads(text, parse_float=str)
    events = root if isinstance(root, list) else root.get("traceEvents")
    source = Source(path.name, len(data))
    sink = SourceSink(source)
    with open_source(path, source) as opened:
        if events is None:
            with pytest.raises(NotMine):
                read(opened, sink, DEFAULT)
            return
        read(opened, sink, DEFAULT)
    frames = sink.frames()
    facts = dict(frames["facts"].select("key", "value").rows())
    counts = [int(value) for key, value in facts.items() if key.startswith("trace.events.")]
    assert sum(counts) == int(facts["trace.events"]) == len(events)
    base = int(root.get("baseTimeNanoseconds", 0)) if isinstance(root, dict) else 0
    lasting = [(at, one) for at, one in enumerate(events) if one["ph"] == "X"]
    rows = frames["spans"].select("seq", "start_ns", "dur_ns", "correlation").rows()
    assert rows == [
        (at, base + nanoseconds(e["ts"]), nanoseconds(e["dur"]), e.get("args", {}).get("correlation"))
        for at, e in lasting
    ]
    assert sink.issues == []
