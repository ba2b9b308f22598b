"""Ranks by the names of metrics that one process gathers of all."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from forensics import api
from forensics.case.names.ranks import told_by_names
from forensics.case.series import keys_of, metric_rows


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("step_time/rank{}", "step_time"),
        ("rank_{}/mem_gb", "mem_gb"),
        ("timing/rank{}/forward_s", "timing/forward_s"),
        ("t_rank_{}_fwd", "t_fwd"),
        ("perf.Rank {} loss", "perf loss"),
        ("lossRank{}", "loss"),
        ("rang{}/perte", "perte"),
    ],
)
def test_a_name_tells_the_rank_and_what_was_measured(printed: str, name: str) -> None:
    assert told_by_names(printed.format(rank) for rank in range(3)) == {
        printed.format(rank): (name, rank) for rank in range(3)
    }


@pytest.mark.parametrize(
    "printed", ["lora_rank_{}", "local_rank{}/loss", "node rank {} t", "rank{}", "frank{}/x", "r{}"]
)
def test_a_number_that_counts_no_ranks_stays_in_its_name(printed: str) -> None:
    assert told_by_names(printed.format(rank) for rank in range(3)) == {}


@pytest.mark.parametrize(("ranks", "are_told"), [((4, 5, 6), True), ((0,), False), ((0, 2), False), ((8, 16), False)])
def test_ranks_are_counted_without_a_gap(ranks: tuple[int, ...], are_told: bool) -> None:
    assert bool(told_by_names(f"loss/rank{rank}" for rank in ranks)) is are_told


def read(folder: Path, name: str, lines: list[str]) -> api.Run:
    (folder / name).write_text("\n".join([*lines, ""]))
    return api.open_run(folder).run


def test_the_numbers_of_all_ranks_are_series_of_each(tmp_path: Path) -> None:
    rows = [f"{step},2.5,{step}.5,{step}.25" for step in range(1, 6)]
    run = read(tmp_path, "metrics.csv", ["step,loss,rank0/grad_norm,rank1/grad_norm", *rows])
    assert sorted(keys_of(run).select("rank", "raw_name", "name").rows(), key=str) == [
        (0, "grad_norm", "grad_norm"),
        (1, "grad_norm", "grad_norm"),
        (None, "loss", "loss"),
    ]
    of_one = metric_rows(run, pl.col("rank") == 1).select("step", "value").collect()
    assert of_one.rows() == [(step, step + 0.25) for step in range(1, 6)]


def test_the_unit_of_a_name_without_its_rank_counts(tmp_path: Path) -> None:
    run = read(tmp_path, "metrics.csv", ["step,loss,step_ms/rank0,step_ms/rank1", "1,2.5,250,500", "2,2.5,250,500"])
    assert metric_rows(run, pl.col("rank") == 1).select("name", "value").collect().row(0) == ("step_time_s", 0.5)


def test_ranks_that_each_log_names_for_itself_are_left_alone(tmp_path: Path) -> None:
    rows = [
        json.dumps({"step": step, "rank": rank, "t/rank0": 0.5, "t/rank1": 0.5})
        for step in range(3)
        for rank in range(2)
    ]
    assert set(keys_of(read(tmp_path, "metrics.jsonl", rows))["raw_name"]) == {"t/rank0", "t/rank1"}


@pytest.mark.parametrize(
    "line",
    [
        "step {step} loss 2.5 iter_time_per_rank: [0.41, {slow}, 0.43]",
        "step {step} loss 2.5 | iter_time_per_rank=[0.41 {slow} 0.43] lr 0.1",
        "step {step} loss 2.5 | iter time by rank: rank0: 0.41 rank1: {slow} rank2: 0.43",
        "step {step} loss 2.5; iter_time: rank 0=0.41, rank 1={slow}, rank 2=0.43",
        "step {step} loss 2.5 | iter time per rank: r0=0.41 r1={slow} r2=0.43",
    ],
)
def test_a_line_with_a_number_of_each_rank_is_read(tmp_path: Path, line: str) -> None:
    run = read(tmp_path, "train.log", [line.format(step=step, slow=f"0.{600 + step}") for step in range(30)])
    rows = metric_rows(run, pl.col("raw_name") == "iter_time").filter(pl.col("step") == 7)
    assert rows.select("rank", "value").collect().sort("rank").rows() == [(0, 0.41), (1, 0.607), (2, 0.43)]


def test_a_list_of_json_with_a_number_of_each_rank_is_read(tmp_path: Path) -> None:
    rows = [
        json.dumps(
            {"step": step, "loss": 2.5, "grad_norms_by_rank": [0.5, 1.5], "ranks": [0, 1], "expert_ranks": [3, 5]}
        )
        for step in range(9)
    ]
    keys = keys_of(read(tmp_path, "metrics.jsonl", rows)).select("rank", "name").sort("rank", nulls_last=True).rows()
    assert keys == [(0, "grad_norm"), (1, "grad_norm"), (None, "loss")]


@pytest.mark.parametrize(
    "line",
    [
        "step {} loss 2.5 lora ranks [8, 16, 4]",
        "step {} loss 2.5 expert ranks [3, 5, 1]",
        "step {} loss 2.5 betas [0.9, 0.95]",
    ],
)
def test_another_list_is_of_no_ranks(tmp_path: Path, line: str) -> None:
    run = read(tmp_path, "train.log", [line.format(step) for step in range(30)])
    assert keys_of(run)["rank"].to_list() == [None] * keys_of(run).height
