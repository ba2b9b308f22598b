"""Mutated fixtures: an ingester answers, declines, or refuses as an input error, and accounts for every byte."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from forensics.errors import InputError
from forensics.formats.checkpoints import folders as checkpoint_dirs
from forensics.formats.metrics import json_lines as metrics_jsonl
from forensics.formats.metrics import table as metrics_csv
from forensics.formats.metrics import trainer_state
from forensics.formats.stacks import error_file
from forensics.formats.tfevents import reader as tfevents
from forensics.io.limits import DEFAULT
from forensics.io.reading import opened_bytes
from forensics.store.sink import SourceSink

FIXTURES = Path(__file__).parents[2] / "fixtures"
READERS = {
    "checkpoint_dirs": checkpoint_dirs.read,
    "error_file": error_file.read,
    "metrics_csv": metrics_csv.read,
    "metrics_jsonl": metrics_jsonl.read,
    "tfevents": tfevents.read,
    "trainer_state": trainer_state.read,
}
SNIPPETS = (
    b"",
    b"\0" * 9,
    b"\xff\xff",
    b"NaN",
    b"1e999",
    b'"',
    b"{[",
    b"\n",
    b"\xed\xa0\x80",
    b"9" * 400,
    b"-" * 30,
    b"\r\n\r",
)


def mutated(data: bytes, rng: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(found) + 1)
        found[at : at + rng.choice((0, 1, 7, 60))] = rng.choice(SNIPPETS)
    return bytes(found[: rng.randrange(len(found) + 1)] if rng.random() < 0.2 else found)


def answer(read: Callable[..., None], path: str, data: bytes) -> SourceSink | None:
    opened = opened_bytes(path, data)
    sink = SourceSink(opened.source)
    try:
        read(opened, sink, DEFAULT)
    except InputError:
        return None
    return sink


@pytest.mark.parametrize("name", sorted(READERS))
def test_no_mutation_of_a_fixture_raises_anything_but_an_input_error(name: str) -> None:
    rng = random.Random(name)
    files = sorted(path for path in (FIXTURES / name).rglob("*") if path.is_file())
    for _ in range(150):
        path = rng.choice(files)
        data = mutated(path.read_bytes(), rng)
        sink = answer(READERS[name], path.name, data)
        if sink is not None:
            coverage = sink.coverage(name)
            assert coverage.read_bytes + coverage.skipped_bytes == len(data)
            assert "not accounted for" not in coverage.reason
            assert sink.frames() is not None
