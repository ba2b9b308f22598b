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
        b"git commit " * 100_000,
    ],
    ids=["calls", "dashes", "word", "heads", "quotes", "commands", "braces", "prose", "commits"],
)
def test_a_log_made_of_beginnings_costs_no_time(log: bytes) -> None:
    before = time.process_time()
    found = dumps.settings(log)
    assert time.process_time() - before < 2
    assert len(found) <= 2


def test_a_command_at_the_begin_of_a_long_line_is_read() -> None:
    log = b"torchrun --nproc_per_node 8 train.py --lr 0.25 --steps 40 " + b"tail " * 50_000
    assert {(row.key, row.value) for row in dumps.settings(log)} >= {("lr", 0.25)}


@pytest.mark.parametrize(
    ("line", "commit"),
    [
        (b"git commit: 3f2a9c1\n", "3f2a9c1"),
        (b"2026-03-09 08:00:00 INFO Git hash = 'a81cc02fe3a81cc02fe3a81cc02fe3a81cc02fe3'\n", "a81cc02fe3" * 4),
        (b"git_sha=77fe3e4 dirty\n", "77fe3e4"),
        (b"git commit: unknown\n", None),
        (b"digit commit: 3f2a9c1\n", None),
        (b"git commit 12 files changed\n", None),
    ],
)
def test_a_line_may_name_the_commit_of_the_program(line: bytes, commit: str | None) -> None:
    found = [(row.key, row.value) for row in dumps.settings(b"start\n" + line + b"step 1 loss 2.5\n")]
    assert found == ([("git_commit", commit)] if commit else [])
