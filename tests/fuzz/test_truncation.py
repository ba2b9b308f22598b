"""A file that stops early, as a dead run leaves it, gives all records that stand before the cut."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from forensics import registry
from forensics.errors import InputError, NotMine
from forensics.io.limits import DEFAULT
from forensics.io.reading import opened_bytes
from forensics.registry import Ingester
from forensics.store.sink import SourceSink

FIXTURES = Path(__file__).parents[2] / "fixtures"
#: Cuts of each file; the long run has `FUZZ_POINTS=256`.
POINTS = int(os.environ.get("FUZZ_POINTS", "12"))


def fixtures() -> list[object]:
    found: list[object] = []
    for one in registry.load("ingesters").ingesters:
        folders = sorted((FIXTURES / one.name).glob("ok-*")) + sorted((FIXTURES / one.name).glob("crash-*"))
        files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
        if one.sniff.fallback:
            files += sorted((FIXTURES / "runs").glob("*/*.log"))
        found += [pytest.param(one, p, id=f"{one.name}-{p.relative_to(FIXTURES)}") for p in files if p.stat().st_size]
    return found


def metric_rows(one: Ingester, name: str, data: bytes) -> Counter[tuple[object, ...]]:
    """Metric rows by step, name and value; values as text, because NaN equals nothing."""
    opened = opened_bytes(name, data)
    sink = SourceSink(opened.source)
    try:
        one.read(opened, sink, DEFAULT)
    except (NotMine, InputError):
        return Counter()
    frame = sink.frames().get("metrics")
    if frame is None:
        return Counter()
    rows = frame.select("raw_name", "step", "value").iter_rows()
    return Counter((name, step, str(value)) for name, step, value in rows)


@pytest.mark.parametrize(("one", "path"), fixtures())
def test_no_earlier_record_is_lost_by_a_cut(one: Ingester, path: Path) -> None:
    data = path.read_bytes()
    points = sorted({len(data) * n // POINTS for n in range(1, POINTS + 1)})
    kept, lost = Counter[tuple[object, ...]](), []
    for point in points:
        rows = metric_rows(one, path.name, data[:point])
        if rows.total() < kept.total():
            lost.append((point, kept.total(), rows.total()))
        kept = max(kept, rows, key=Counter.total)
    assert not lost, f"(bytes, records before, records now): {lost[:5]}"
