"""Ranks and attempts as launchers write them into paths, and names that only look like them."""

from __future__ import annotations

import pytest

from forensics.io.discover import attempt_of, rank_of


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("rank_3/stdout.log", 3),
        ("rank3.log", 3),
        ("logs/RANK-12.txt", 12),
        ("trace_rank0.json", 0),
        ("nccl_trace_rank_7", 7),
        ("global_rank_9.log", 9),
        ("local_rank=1/err.log", 1),
        ("horovod_logs/rank.2/stdout", 2),
        ("rank0/part_rank2.json", 2),
        ("none_ab12/attempt_0/4/stderr.log", 4),
        ("attempt_0/4/5/stderr.log", 4),
        ("train.log", None),
        ("4/stdout.log", None),
        ("lora_rank16/train.log", None),
        ("lora-rank_64.log", None),
        ("node_rank_1.log", None),
        ("frank3.log", None),
        ("rank.log", None),
        ("rank_12345678.log", None),
    ],
)
def test_a_path_names_its_rank(path: str, rank: int | None) -> None:
    assert rank_of(path) == rank


@pytest.mark.parametrize(
    ("path", "attempt"),
    [
        ("attempt_2/0/stdout.log", 2),
        ("run/restart-1/rank0.log", 1),
        ("retry_3/train.log", 3),
        ("retries/3/train.log", None),
        ("attempt_2", None),
        ("my_attempt_2_notes/x.log", None),
    ],
)
def test_a_folder_names_the_attempt(path: str, attempt: int | None) -> None:
    assert attempt_of(path) == attempt
