"""Whom logs of a launcher, of watchdogs and of stacks name, and when they name nobody."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from forensics import triage
from forensics.model import Verdict

STEPS = "".join(f"2026-03-11 09:14:{i:02d} step {i} loss {3 - i / 99:.3f}\n" for i in range(40))
SPAWN = "[INFO] [launch.py:256:main] process {pid} spawned with command: ['py', '--local_rank={n}']\n"
KILLED = "[ERROR] [launch.py:325:sigkill_handler] ['py', '--local_rank=2'] exits with return code = -9\n"


def judged(folder: Path, files: Mapping[str, str]) -> Verdict:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return triage(folder).verdict


def late(rank: int, op: str, numel: int) -> str:
    return (
        f"[E311 09:25:00.441 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum=12, OpType={op}, NumelIn={numel}, NumelOut=64, Timeout(ms)=600000) ran for 600001 "
        "milliseconds before timing out.\n"
    )


@pytest.mark.parametrize(("op", "culprits"), [("ALLREDUCE", (2,)), ("ALLTOALL_BASE", ())])
def test_the_rank_whose_watchdog_tells_another_size_is_odd(op: str, culprits: tuple[int, ...], tmp_path: Path) -> None:
    files = {f"ranklog.000{n}": f"rank={n} world_size=4\n{late(n, op, 32 if n == 2 else 64)}" for n in range(4)}
    assert judged(tmp_path, files).culprits == culprits


@pytest.mark.parametrize(("nodes", "culprits"), [(1, (2,)), (2, ())])
def test_the_command_that_a_launcher_of_one_host_saw_killed_names_its_rank(
    nodes: int, culprits: tuple[int, ...], tmp_path: Path
) -> None:
    started = "".join(SPAWN.format(pid=1700 + 10 * node + n, n=n) for node in range(nodes) for n in range(4))
    assert judged(tmp_path, {"train.log": started + STEPS + KILLED}).culprits == culprits


@pytest.mark.parametrize(("codes", "culprits"), [((1, -15, -15), (0,)), ((1, 1, -15), ())])
def test_the_one_rank_that_ended_by_itself_is_named(
    codes: tuple[int, ...], culprits: tuple[int, ...], tmp_path: Path
) -> None:
    ends = "".join(f"launcher: rank {rank} exited with code {code}\n" for rank, code in enumerate(codes))
    text = f"{STEPS}{ends}launcher: terminating the remaining workers\n"
    assert judged(tmp_path, {"train.log": text}).culprits == culprits


@pytest.mark.parametrize(("option", "culprits"), [("--rank {}", (1,)), ("--process-id={}", (1,)), ("--seed {}", ())])
def test_a_dump_is_of_the_rank_that_its_command_says(option: str, culprits: tuple[int, ...], tmp_path: Path) -> None:
    waits = "    all_reduce (torch/distributed/distributed_c10d.py:2501)\n    step (train.py:44)\n"
    reads = "    read (fsspec/local.py:400)\n    fetch (torch/utils/data/_utils/fetch.py:52)\n"
    files = {"train.log": STEPS}
    for n, host in enumerate(("ant", "bee", "cat")):
        head = f"Process {900 - 7 * n}: python train.py {option.format(n)}\nPython v3.10.12 (/usr/bin/python3)\n\n"
        stack = reads if n == 1 else waits
        files[f"{host}.txt"] = f'{head}Thread 0x7F{n} (idle): "MainThread"\n{stack}    <module> (train.py:9)\n'
    assert judged(tmp_path, files).culprits == culprits


SPAWNED = "-- Process 1 terminated with the following error:\nTraceback (most recent call last):\n"
RAISED = '  File "train.py", line 9, in worker\n    y = t[k]\nKeyError: 17\n'
GONE = '  File "train.py", line 8, in worker\n    dist.barrier()\nRuntimeError: Connection closed by peer [10.0.0.2]\n'


@pytest.mark.parametrize(
    ("says", "nodes", "culprits"),
    [("node_rank={} nproc_per_node=4", 2, (5,)), ("node {} is up", 2, ()), ("node {} is up", 1, (1,))],
)
def test_a_spawned_process_is_counted_on_its_node(
    says: str, nodes: int, culprits: tuple[int, ...], tmp_path: Path
) -> None:
    files = {f"m{n}.log": f"{says.format(n)}\n{SPAWNED}{GONE if n < nodes - 1 else RAISED}" for n in range(nodes)}
    assert judged(tmp_path, files).culprits == culprits


def test_of_ranks_that_wait_for_one_adapter_its_own_rank_is_named(tmp_path: Path) -> None:
    start = "n{0}:31:31 [0] NCCL INFO Bootstrap : Using ib0:10.8.0.{0}<0>\nrank={0} world_size=4\n"
    lost = (
        "n{0}:31:40 [0] transport/net_ib.cc:1295 NCCL WARN NET/IB: Got completion from peer 10.8.0.2<41> with status=12"
    )
    failed = "\ntorch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error\n"
    files = {f"n{n}.log": start.format(n) + STEPS + (lost.format(n) if n % 2 else "") + failed for n in range(4)}
    assert judged(tmp_path, files).culprits == (2,)


@pytest.mark.parametrize(("lost", "culprits"), [("gpu-b2", (2, 3)), ("gpu-b22", ())])
def test_the_ranks_of_a_lost_node_are_those_that_started_on_it(
    lost: str, culprits: tuple[int, ...], tmp_path: Path
) -> None:
    starts = "".join(f"init: rank {n} of 4 on gpu-b{1 + n // 2} device cuda:{n % 2}\n" for n in range(4))
    text = f"{starts}{STEPS}srun: error: Node failure on {lost}\n"
    assert judged(tmp_path, {"slurm-9.out": text}).culprits == culprits
