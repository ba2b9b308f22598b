"""Real and made logs point by point: what we read is what wandb's own message classes decode, bit for bit.

Where real runs lie beside the project they are compared too; without them only the fixtures are.
"""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from forensics.errors import NotMine
from forensics.formats.wandb import run as wandb_run
from forensics.io.limits import DEFAULT
from forensics.io.reading import opened_bytes
from forensics.io.records import leveldb_log
from forensics.store.sink import SourceSink

REAL = Path(__file__).parents[4] / "shared" / "corpus" / "metrics"
FILES = sorted(REAL.rglob("*.wandb")) if REAL.is_dir() else []
FIXTURES = sorted((Path(__file__).parents[3] / "fixtures" / "wandb_run").rglob("*.wandb"))
NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*(e[-+]?\d+)?|nan|inf(inity)?)\s*", re.IGNORECASE)
Point = tuple[int, str, bytes | None]


def bits(value: float | None) -> bytes | None:
    return None if value is None else struct.pack("<d", value)


def leaves(name: str, value: Any) -> list[tuple[str, float | None]]:
    """Numbers and nulls of a decoded value, as a run keeps them."""
    if isinstance(value, dict):
        if "_type" in value:
            return []
        return [leaf for key, cell in value.items() for leaf in leaves(f"{name}.{key}", cell)]
    if value is None:
        return [(name, None)]
    if isinstance(value, str) and NUMBER.fullmatch(value):
        return [(name, float(value))]
    return [(name, float(value))] if isinstance(value, int | float) and not isinstance(value, bool) else []


def decoded(data: bytes) -> tuple[Counter[Point], set[int]]:
    """Every point of the history, by the message classes and `json`."""
    pb = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    found: Counter[Point] = Counter()
    places: set[int] = set()
    for record in leveldb_log.records(data):
        if isinstance(record, leveldb_log.Damage):
            continue
        message = pb.Record.FromString(record.payload)
        if message.WhichOneof("record_type") == "history":
            places.add(record.byte)
        for item in message.history.item:
            name = ".".join(item.nested_key) or item.key
            if not name.startswith("_"):
                found.update(
                    (record.byte, key, bits(value)) for key, value in leaves(name, json.loads(item.value_json))
                )
    return found, places


def ours(data: bytes, places: set[int]) -> tuple[Counter[Point], SourceSink]:
    opened = opened_bytes("run-a.wandb", data)
    sink = SourceSink(opened.source)
    wandb_run.read(opened, sink, DEFAULT)
    rows = sink.frames().get("metrics")
    if rows is None:
        return Counter(), sink
    return Counter(
        (byte, name, bits(value))
        for byte, name, value in rows.select("byte", "raw_name", "value").iter_rows()
        if byte in places
    ), sink


@pytest.mark.parametrize("many", [False, True], ids=["one-by-one", "together"])
@pytest.mark.parametrize("path", FIXTURES + FILES, ids=lambda path: path.parent.parent.name + "/" + path.name)
def test_our_points_are_those_of_the_message_classes(path: Path, many: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    data = path.read_bytes()
    monkeypatch.setattr(wandb_run, "_MANY_BYTES", 0 if many else 1 << 60)
    want, places = decoded(data)
    try:
        found, sink = ours(data, places)
    except NotMine:
        assert not data.startswith(b":W&B")
        return
    assert found == want
    coverage = sink.coverage("tested")
    assert coverage.read_bytes + coverage.skipped_bytes == len(data)


@pytest.mark.skipif(not FILES, reason="no real runs lie beside the project: only fixtures were compared")
def test_real_runs_were_compared() -> None:
    assert len(FILES) > 100
