"""Runs one ingester on bytes or on a fixture and gives what it wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from forensics.io.discover import attempt_of, rank_of
from forensics.io.limits import DEFAULT
from forensics.io.reading import opened_bytes
from forensics.model import FileCoverage, Issue
from forensics.store.schema import TABLES
from forensics.store.sink import SourceSink
from forensics.values import replace

FIXTURES = Path(__file__).parents[3] / "fixtures"


@dataclass(frozen=True, slots=True)
class Wrote:
    frames: dict[str, pl.DataFrame]
    issues: list[Issue]
    coverage: FileCoverage

    def table(self, name: str) -> pl.DataFrame:
        return self.frames.get(name, pl.DataFrame(schema=dict(TABLES[name])))

    def points(self, name: str) -> list[tuple[int, float]]:
        return list(self.table("metrics").filter(pl.col("name") == name).select("step", "value").iter_rows())


def ingest(read: Callable[..., None], path: str, data: bytes) -> Wrote:
    opened = opened_bytes(path, data)
    opened.source = replace(opened.source, rank=rank_of(path), attempt=attempt_of(path))
    sink = SourceSink(opened.source)
    read(opened, sink, DEFAULT)
    return Wrote(sink.frames(), sink.issues, sink.coverage("tested"))


def of_fixture(read: Callable[..., None], relative: str) -> Wrote:
    found = next(path for path in (FIXTURES / relative, *sorted((FIXTURES / relative).rglob("*"))) if path.is_file())
    inside = found.relative_to(FIXTURES).parts[2:]
    return ingest(read, "/".join(inside), found.read_bytes())


@pytest.fixture
def run() -> Callable[..., Wrote]:
    """`run(read, path, data)`: what an ingester writes about these bytes."""
    return ingest


@pytest.fixture
def run_fixture() -> Callable[..., Wrote]:
    """`run_fixture(read, "format/case")`: what an ingester writes about a fixture."""
    return of_fixture
