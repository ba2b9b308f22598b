"""Ranks of a job of several nodes: what each node counts for itself, and what all ranks count together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.truth._runs import TRACEBACK, falling, judged

AGENT = "torch/distributed/elastic/agent/server/api.py:525]"


def agent(node: int, each: int) -> list[str]:
    ranks = ", ".join(str(node * each + local) for local in range(each))
    local = ", ".join(map(str, range(each)))
    said = (f"local_ranks=[{local}]", f"role_ranks=[{ranks}]", f"global_ranks=[{ranks}]")
    return [f"I0611 02:00:01.{node}13000 711 {AGENT}   {words}" for words in said]


@pytest.mark.parametrize(("node", "rank"), [(0, 2), (1, 6)])
def test_a_local_rank_of_torchrun_is_counted_from_the_first_rank_of_its_node(
    node: int, rank: int, tmp_path: Path
) -> None:
    failed = (
        "E0611 02:19:22.7 711 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 2"
    )
    files = {f"host{n}.log": [*agent(n, 4), *(falling(1, 40) if n == 0 else [])] for n in range(2)}
    files[f"host{node}.log"] += [*TRACEBACK, "KeyError: 'sep'", f"{failed} (pid: 7136) of binary: python3"]
    assert judged(tmp_path, files).verdict.culprits == (rank,)


@pytest.mark.parametrize(
    ("words", "rank"), [("node 1: starting ranks 4..7 of 8", 5), ("node 1: starting workers 4..7 of 8", 1)]
)
def test_a_process_of_spawn_is_counted_from_the_first_rank_that_its_node_starts(
    words: str, rank: int, tmp_path: Path
) -> None:
    ended = ["-- Process 1 terminated with the following error:", *TRACEBACK, "IndexError: index 7 is out of bounds"]
    files = {"node0.log": [words.replace("1", "0").replace("4..7", "0..3"), *falling(1, 40)]}
    assert judged(tmp_path, files | {"node1.log": [words, *ended]}).verdict.culprits == (rank,)


@pytest.mark.parametrize(("host", "ranks"), [("c1", (3,)), ("c7", ())])
def test_nccl_names_a_process_by_its_host_where_hosts_number_theirs_alike(
    host: str, ranks: tuple[int, ...], tmp_path: Path
) -> None:
    def start(node: int, local: int) -> str:
        rank = 2 * node + local
        return (
            f"c{node}:{40 + local}:{90 + local} [{local}] NCCL INFO ncclCommInitRank comm 0x5 rank {rank} nranks 4 "
            f"cudaDev {local} busId {local}b000 commId 0x9 - Init COMPLETE"
        )

    late = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, Timeout(ms)=600000) ran"
    files = {f"log{n}.txt": [start(n, 0), start(n, 1), *(falling(1, 40) if n == 0 else [])] for n in range(2)}
    files["log1.txt"] += [f"{host}:41:77 [1] transport/net_ib.cc:101 NCCL WARN NET/IB : Got async event : port error"]
    for rank in range(4):
        files[f"log{rank // 2}.txt"] += [f"[rank{rank}]:[E611 1] [Rank {rank}] {late} for 600010 milliseconds"]
    assert judged(tmp_path, files).verdict.culprits == ranks


def test_the_files_into_which_a_launcher_puts_each_output_are_of_ranks(tmp_path: Path) -> None:
    files = {f"stdout.{rank}": falling(1, 40) for rank in range(3)}
    files |= {f"stderr.{rank}": ["RuntimeError: NCCL communicator was aborted on rank 0."] for rank in range(2)}
    assert judged(tmp_path, files | {"stderr.2": [*TRACEBACK, "KeyError: 'bias'"]}).verdict.culprits == (2,)


@pytest.mark.parametrize(("word", "ranks"), [("r", (1,)), ("rk", (1,)), ("v", ())])
def test_a_short_tag_in_brackets_names_the_rank(word: str, ranks: tuple[int, ...], tmp_path: Path) -> None:
    lines = [f"[{word}{rank}] {line}" for line in falling(1, 40) for rank in range(2)]
    lines += [f"[{word}1] {line}" for line in (*TRACEBACK, "KeyError: 'bias'")]
    assert judged(tmp_path, {"all.log": lines}).verdict.culprits == ranks


@pytest.mark.parametrize(
    ("name", "words", "ranks"),
    [
        ("job.88.{}.out", "remote process exited or there was a network error", (2,)),
        ("job.88.{}.out", "the run is slow", ()),
        ("node{}.out", "remote process exited or there was a network error", ()),
    ],
)
def test_numbered_files_that_lost_a_peer_at_once_are_those_of_one_job(
    name: str, words: str, ranks: tuple[int, ...], tmp_path: Path
) -> None:
    files = {
        name.format(n): [*falling(1, 40), f"RuntimeError: NCCL error in: ProcessGroup.cpp:9, {words}"] for n in (0, 1)
    }
    files[name.format(2)] = [*falling(1, 40), *TRACEBACK, "KeyError: 'bias'"]
    assert judged(tmp_path, files).verdict.culprits == ranks


@pytest.mark.parametrize(
    ("words", "ranks"),
    [("rank {0} local_rank {0} pid 5{0}", (3,)), ("pid 5{0} rank {0}", (3,)), ("rank {0} of pod 5{0}", ())],
)
def test_the_process_that_the_kernel_names_is_of_the_rank_that_said_its_number(
    words: str, ranks: tuple[int, ...], tmp_path: Path
) -> None:
    xid = "Mar 04 09:17:01 g7 kernel: NVRM: Xid (PCI:0000:9d:00): 79, pid=53, name=python3, GPU has fallen off the bus."
    files = {"train.log": [words.format(rank) for rank in range(4)] + falling(1, 40), "journal.txt": [xid]}
    files["train.log"].append("RuntimeError: NCCL error: unhandled cuda error")
    assert judged(tmp_path, files).verdict.culprits == ranks


@pytest.mark.parametrize(("option", "ranks"), [("--local_rank", (2,)), ("--lanes", ())])
def test_the_command_lines_in_one_dump_tell_whose_stack_is_odd(
    option: str, ranks: tuple[int, ...], tmp_path: Path
) -> None:
    lines: list[str] = []
    for rank in range(4):
        inner = (
            "save (torch/serialization.py:651)" if rank == 2 else "barrier (torch/distributed/distributed_c10d.py:9)"
        )
        lines += [f"Process {700 + rank}: python3 -u t.py {option}={rank}", "Python v3.10.12 (/usr/bin/python3)", ""]
        lines += [f'Thread {700 + rank} (idle): "MainThread"', f"    {inner}", "    <module> (t.py:99)", ""]
    assert judged(tmp_path, {"pyspy.txt": lines}).verdict.culprits == ranks


@pytest.mark.parametrize(("tag", "ranks"), [("[rank{}]", (3,)), ("[lane{}]", ())])
def test_a_rank_glued_to_its_word_behind_the_time_is_that_of_the_record(
    tag: str, ranks: tuple[int, ...], tmp_path: Path
) -> None:
    lines: list[str] = []
    for at in range(1, 40):
        for rank in range(8):
            own = (1.4 + at % 3 / 100 + rank % 2 / 100) * (1.8 if rank == 3 and at > 10 else 1)
            when = f"2031-05-06 07:{at:02d}:0{rank}"
            lines.append(f"{when} {tag.format(rank)} it={at} loss={3 - at / 50:.3f} compute={own:.3f}s")
    assert judged(tmp_path, {"all.log": lines}).verdict.culprits == ranks
