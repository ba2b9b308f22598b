"""Which rank and which folder a source speaks for."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

from forensics import pipeline
from forensics.case.errors.exits import Exit, Exits
from forensics.case.world import nodes, world
from forensics.store.run import run_of


def test_of_two_attempts_in_one_place_the_later_folder_is_a_ranks_own_whatever_the_order_of_rows() -> None:
    rows = [(f"logs/job_7/attempt_{attempt}/{rank}/stderr.log", rank) for attempt in (0, 1) for rank in range(8)]
    found = set[str]()
    for seed in range(6):
        random.Random(seed).shuffle(rows)
        sources = pl.DataFrame(rows, schema=["source", "rank"], orient="row")
        found |= set(nodes(run_of("run", {"sources": sources})).values())
    assert found == {"logs/job_7/attempt_1"}


def ended(rank: int, local_rank: int | None) -> Exit:
    return Exit(rank, 1, None, forced=False, source="train.log", line=9, quote="", local_rank=local_rank)


@pytest.mark.parametrize(
    ("ends", "gone"),
    [
        ([ended(1, 1)], {0}),
        ([ended(4, 0), ended(7, 3)], {5, 6}),
        ([ended(0, 0), ended(1, 1)], set[int]()),
        ([ended(9, 1), ended(2, 2)], {0, 1, 8}),
        ([ended(3, None)], set[int]()),
    ],
)
def test_ranks_below_a_listed_one_of_the_same_node_ended_with_code_0(ends: list[Exit], gone: set[int]) -> None:
    assert Exits({end.rank: end for end in ends}).left_out == gone


def test_the_rank_that_says_where_it_joined_is_one_of_so_many(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("Initializing distributed: GLOBAL_RANK: 1, MEMBER: 2/4\n")
    assert world(pipeline.ingest_run(tmp_path)) == {0, 1, 2, 3}


@pytest.mark.parametrize("tag", ["[rank 3] ", "| rank=3 | ", "(rank3) "])
def test_a_tag_behind_time_and_level_is_the_rank_of_the_file(tmp_path: Path, tag: str) -> None:
    lines = [f"2031-05-06 10:00:{n:02d} INFO {tag}step={n} loss={3 - n / 10:.2f}" for n in range(1, 20)]
    (tmp_path / "job_a.out").write_text("\n".join(lines) + "\n")
    ranks = pipeline.ingest_run(tmp_path).collect("metrics")["rank"].unique().to_list()
    assert ranks == [3]


def test_tags_of_several_ranks_are_whose_lines_they_are_and_one_of_a_matrix_is_nobodys(tmp_path: Path) -> None:
    for name, tag in (("mixed.out", "[rank {}] "), ("lora.out", "lora rank=1{} ")):
        lines = [f"2031-05-06 10:00:{n:02d} INFO {tag.format(n % 2)}step={n} loss=2.{n}" for n in range(1, 20)]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    losses = pipeline.ingest_run(tmp_path).collect("metrics").filter(pl.col("name") == "loss")
    ranks = {source: {*rows["rank"]} for (source,), rows in losses.group_by("source")}
    assert ranks == {"mixed.out": {0, 1}, "lora.out": {None}}
