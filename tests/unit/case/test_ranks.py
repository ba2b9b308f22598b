"""Which rank and which folder a source speaks for."""

from __future__ import annotations

import random

import polars as pl

from forensics.case.ranks import nodes
from forensics.store.run import run_of


def test_of_two_attempts_in_one_place_the_later_folder_is_a_ranks_own_whatever_the_order_of_rows() -> None:
    rows = [
        (f"logs/job_7/attempt_{attempt}/{rank}/stderr.log", f"[rank{rank}]: it starts")
        for attempt in (0, 1)
        for rank in range(8)
    ]
    found = set[str]()
    for seed in range(6):
        random.Random(seed).shuffle(rows)
        events = pl.DataFrame({"source": [source for source, _ in rows], "text": [text for _, text in rows]})
        found |= set(nodes(run_of("run", {"events": events})).values())
    assert found == {"logs/job_7/attempt_1"}
