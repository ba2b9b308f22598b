"""No reader and no trainer's dialect is without a golden run: what is read of each is pinned by the answers kept."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from forensics import registry

sys.path.insert(0, str(Path(__file__).parent))
import runs

READ = {name: set(one["read"]) for name, one in runs.kept(runs.ANSWERS)["runs"].items()}
LABELS = runs.kept(runs.LABELS)["runs"]
DIALECTS = sorted(one.name for one in registry.load("dialects").dialects)


def read_by(what: str) -> set[str]:
    return {name for name, read in READ.items() if what in read}


@pytest.mark.parametrize("ingester", sorted(one.name for one in registry.load("ingesters").ingesters))
def test_every_reader_reads_a_file_of_a_golden_run(ingester: str) -> None:
    assert any(one.split(" ")[0] == ingester for read in READ.values() for one in read)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_is_spoken_by_a_healthy_golden_run_and_by_others(dialect: str) -> None:
    outcomes = {LABELS[name]["outcome"] for name in read_by(f"text_log {dialect}")}
    own = LABELS.get(f"dialect-{dialect.replace('_', '-')}-healthy")
    assert {own["outcome"] if own is not None else "healthy"} < outcomes  # a log without a loss proves nothing alone
