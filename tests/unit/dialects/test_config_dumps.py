"""Settings in logs: what a hostile log may cost."""

from __future__ import annotations

import time

import pytest

from forensics.dialects.settings import dumps


@pytest.mark.parametrize(
    "log",
    [
        b"Config(" * 200_000,
        b"-" * 1_000_000 + b" rguments --" * 50_000,
        b"a" * 1_000_000 + b"Namespace(" * 1_000,
        b"args = " * 200_000,
        b"python x.py --a '\"" * 80_000,
        b"torchrun " * 150_000,
        b"config: {a\n" * 100_000,
        b"train config run model data " * 50_000 + b"config: " * 1_000,
    ],
    ids=["calls", "dashes", "word", "heads", "quotes", "commands", "braces", "prose"],
)
def test_a_log_made_of_beginnings_costs_no_time(log: bytes) -> None:
    before = time.process_time()
    found = dumps.settings(log)
    assert time.process_time() - before < 2
    assert len(found) <= 2


def test_a_command_at_the_begin_of_a_long_line_is_read() -> None:
    log = b"torchrun --nproc_per_node 8 train.py --lr 0.25 --steps 40 " + b"tail " * 50_000
    assert {(row.key, row.value) for row in dumps.settings(log)} >= {("lr", 0.25)}
