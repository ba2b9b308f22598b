"""The rank of a process or a device that a line of the kernel or the driver names."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.api import triage
from forensics.case.errors.named import place_of

_STEPS = "".join(f"step {n} | loss {2 + 3 / n:.4f} | lr 3.0e-04\n" for n in range(1, 30))
_SPAWNED = "[INFO] [launch.py:256:main] process {pid} spawned with command: ['/py', 'tune.py', '--local_rank={r}']\n"
_KILLED = "[9000.1] Out of memory: Killed process {pid} (python) total-vm:412331204kB, anon-rss:128833120kB, UID:0\n"
_XID = (
    "[Tue May  6 07:09:00 2031] NVRM: Xid (PCI:0000:5d:00): 79, pid=77130, name=python3, GPU has fallen off the bus.\n"
)


def _culprits(folder: Path, **files: str) -> tuple[int, ...]:
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return tuple(triage(folder).verdict.culprits)


def _spawned(*pids: int, first: int = 0) -> str:
    return "".join(_SPAWNED.format(r=r, pid=pid) for r, pid in enumerate(pids, first))


@pytest.mark.parametrize(
    ("pids", "ranks"), [((9000, 9001, 9002), (1,)), ((9000, 9005, 9002), ())], ids=["its own", "another process"]
)
def test_a_process_that_the_kernel_killed_is_that_of_its_rank(
    pids: tuple[int, ...], ranks: tuple[int, ...], tmp_path: Path
) -> None:
    assert _culprits(tmp_path, train=_spawned(*pids) + _STEPS, kern=_KILLED.format(pid=9001)) == ranks


def test_local_ranks_of_two_nodes_name_no_rank(tmp_path: Path) -> None:
    both = _spawned(9000, 9001) + _spawned(8000, 8001)
    assert _culprits(tmp_path, train=both + _STEPS, kern=_KILLED.format(pid=9001)) == ()


def test_a_worker_of_ray_is_named_by_its_process(tmp_path: Path) -> None:
    told = "".join(
        f"(Trainable pid=5) - (node_id=a, ip=10.0.0.{r}, pid={70 + r}) world_rank={r}, local_rank=0\n" for r in range(3)
    )
    died = (
        "(raylet) node_manager.cc:3064: 1 Workers (tasks / actors) killed due to memory pressure (OOM)\n"
        "Traceback (most recent call last):\n"
        '  File "tune.py", line 9, in <module>\n'
        "    ray.get(future)\n"
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
        "Memory on the node (IP: 10.0.0.2, ID: b) where the task (actor ID: 7, name=W, pid=72, memory used=9GB)"
        " was running was 119.81GB / 124.00GB (0.966), which exceeds the memory usage threshold of 0.95.\n"
    )
    assert _culprits(tmp_path, train=told + _STEPS + died) == (2,)


_RANK = "comm 0x5 rank {r} nranks {of} cudaDev 0 nvmlDev 0 busId {bus}000 commId 0xab"
_INIT = "n1:{pid}:9 [0] NCCL INFO " + _RANK + " - Init COMPLETE\n"
_BUSES = ("19", "3b", "4c", "5d")


@pytest.mark.parametrize(("part", "ranks"), [(False, (3,)), (True, ())], ids=["the job's", "a part's"])
def test_a_device_is_that_of_the_rank_whose_communicator_names_it(
    part: bool, ranks: tuple[int, ...], tmp_path: Path
) -> None:
    told = "".join(_INIT.format(r=r, of=4, pid=500 + r, bus=bus) for r, bus in enumerate(_BUSES))
    if part:  # a communicator of a larger job's part counts its own ranks
        told += _INIT.format(r=9, of=16, pid=900, bus="77")
    assert _culprits(tmp_path, train=told + _STEPS, dmesg=_XID) == ranks


@pytest.mark.parametrize(("ranks", "named"), [(4, (3,)), (2, ())], ids=["one for each device", "fewer ranks"])
def test_a_device_is_that_of_the_rank_with_its_index_where_each_has_one(
    ranks: int, named: tuple[int, ...], tmp_path: Path
) -> None:
    table = "index, pci.bus_id, name\n" + "".join(
        f"{n}, 00000000:{bus.upper()}:00.0, H100\n" for n, bus in enumerate(_BUSES)
    )
    told = "".join(f"[rank{n % ranks}]: {line}\n" for n, line in enumerate(_STEPS.splitlines()))
    assert _culprits(tmp_path, train=told, gpus=table, dmesg=_XID) == named


@pytest.mark.parametrize(
    ("text", "place"),
    [("0000:5d:00", "5d:00"), ("00000000:5D:00.0", "5d:00"), ("5d000", "5d:00"), ("100000", "00:00"), ("python", "")],
)
def test_a_place_on_the_bus_is_read_in_every_spelling(text: str, place: str) -> None:
    assert place_of(text) == place


_WAITS = "    all_reduce (torch/distributed/distributed_c10d.py:2501)\n    <module> (tune.py:40)\n"
_ASKED = "W0506 07:09:00.200 33 api.py:753] Received 15 death signal, shutting down workers\n"
_READS = "    read_shard (tune.py:17)\n    <module> (tune.py:38)\n"


def _dump(*stacks: str) -> str:
    heads = (
        f'Process {pid}: python tune.py\nPython v3.11.7\n\nThread {pid} (idle): "MainThread"\n' for pid in (7, 8, 9)
    )
    return "\n".join(head + stack for head, stack in zip(heads, stacks, strict=False))


@pytest.mark.parametrize(
    ("stacks", "ranks"),
    [((_WAITS, _WAITS, _READS), (2,)), ((_WAITS, _READS), ()), ((_WAITS, _WAITS, _READS, _WAITS), ())],
    ids=["one for each rank", "not of all", "of another process"],
)
def test_stacks_of_processes_that_nobody_names_are_those_of_the_ranks_in_turn(
    stacks: tuple[str, ...], ranks: tuple[int, ...], tmp_path: Path
) -> None:
    steps = "".join(
        f"[rank{r}]: 2026-05-06 07:08:{n:02d} step {n} | loss {2 + 3 / n:.4f}\n" for n in range(1, 30) for r in range(3)
    )
    more = 'Process 3: python tune.py\nPython v3.11.7\n\nThread 3 (idle): "MainThread"\n' * (len(stacks) > 3)
    assert _culprits(tmp_path, train=steps + _ASKED, pyspy=more + _dump(*stacks[-3:])) == ranks


def test_processes_that_a_launcher_ended_are_its_workers_in_turn(tmp_path: Path) -> None:
    ended = "".join(f"W0506 api.py:1028] Sending process {pid} closing signal SIGTERM\n" for pid in (9000, 9001, 9002))
    steps = "".join(f"[rank{r}] step {n} | loss {2 + 3 / n:.4f}\n" for n in range(1, 30) for r in range(3))
    assert _culprits(tmp_path, train=steps + ended, kern=_KILLED.format(pid=9001)) == (1,)


def _checkpoint_of(rank: int, failed: str) -> str:
    """What distributed checkpointing prints on each rank where some could not write."""
    lines = (
        ("Traceback (most recent call last):", '  File "train.py", line 611, in <module>', "    save()"),
        ("torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([2])",),
        (f"Traceback (most recent call last):{failed}", '  File "utils.py", line 163, in reduce_scatter'),
        ("    local_data = map_fun()", "OSError: [Errno 28] No space left on device"),
    )
    return "".join(f"[rank{rank}]: {line}\n" for part in lines for line in part)


@pytest.mark.parametrize(("failed", "ranks"), [(" (RANK 2)", (2,)), ("", ())], ids=["of one rank", "of each"])
def test_a_traceback_that_every_rank_prints_is_that_of_the_rank_it_names(
    failed: str, ranks: tuple[int, ...], tmp_path: Path
) -> None:
    steps = "".join(f"[rank{r}]: step {n} | loss {2 + 3 / n:.4f}\n" for n in range(1, 30) for r in range(3))
    own = "[rank2]: Traceback (most recent call last):\n[rank2]: OSError: [Errno 28] No space left on device\n\n"
    own += "[rank2]: During handling of the above exception, another exception occurred:\n\n"
    for first in ("", own):
        said = [(first if r == 2 else "") + _checkpoint_of(r, failed) for r in range(3)]
        assert _culprits(tmp_path, train=steps + "".join(said)) == ranks


@pytest.mark.parametrize(
    ("line", "ranks"),
    [
        ("/job:jax_worker/replica:0/task:3 unresponsive, missed heartbeats for 100s.", (3,)),
        ("tasks are unhealthy (stopped sending heartbeats): /job:jax_worker/replica:0/task:2", (2,)),
        ("tasks are unhealthy (stopped sending heartbeats)", ()),
    ],
)
def test_a_task_that_jax_hears_nothing_of_any_more_is_named(line: str, ranks: tuple[int, ...], tmp_path: Path) -> None:
    fatal = "F0102 03:04:05.000000 91 client.h:80] Terminating process because the JAX distributed service detected"
    assert _culprits(tmp_path, train=f"{_STEPS}{line}\n{fatal} fatal errors.\n") == ranks


@pytest.mark.parametrize(("name", "ranks"), [("tpu-w-{}", (1,)), ("tpu-k-{}", ())])
def test_the_worker_whose_machine_is_taken_back_is_named(name: str, ranks: tuple[int, ...], tmp_path: Path) -> None:
    taken = "I0203 23:08:09 sync.cc:251] Instance tpu-w-1 will be preempted in 30 seconds.\n"
    gone = "E0203 23:09:49 209 client.h:80] Terminating process because the JAX distributed service detected fatal"
    logs = {name.format(r): _STEPS + (taken if r == 1 else f"{gone} errors.\n") for r in range(3)}
    assert _culprits(tmp_path, **logs) == ranks


@pytest.mark.parametrize(
    ("code", "outcome"), [("0", "healthy"), ("1", "failed")], ids=["the job ended well", "it did not"]
)
def test_a_run_that_ended_well_got_over_a_fault_in_the_log_of_its_host(code: str, outcome: str, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(_STEPS + ("training complete\n" if code == "0" else ""))
    (tmp_path / "exit_code").write_text(f"{code}\n")
    row = "[91.4] NVRM: Xid (PCI:0000:17:00): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row marked\n"
    (tmp_path / "dmesg.txt").write_text(row)
    assert triage(tmp_path).verdict.outcome.value == outcome


_OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU {gpu} has a total capacity of 79 GiB"
)
_OF_PROCESS = "".join(f"[proc {r}] step {n} loss {2 + 3 / n:.4f}\n" for n in range(1, 30) for r in range(3))


@pytest.mark.parametrize(
    ("steps", "gpu", "ranks"),
    [
        (_OF_PROCESS, 1, (1,)),
        (_OF_PROCESS, 0, ()),  # each process may see one device, which is its first
        (_OF_PROCESS, 3, ()),
        (_OF_PROCESS.replace("[proc 0]", "[proc 12]"), 1, ()),  # of more than a host
        (_STEPS, 1, ()),
    ],
)
def test_a_device_that_ran_out_of_memory_is_that_of_the_rank_of_its_index(
    steps: str, gpu: int, ranks: tuple[int, ...], tmp_path: Path
) -> None:
    raised = (
        f'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n{_OOM.format(gpu=gpu)} of which\n'
    )
    assert _culprits(tmp_path, train=steps + raised) == ranks
    ends = "srun: error: n1: tasks 0-1: Killed\nsrun: error: n2: task 2: Killed\n"
    assert _culprits(tmp_path, train=steps + raised, srun=ends) == ()  # hosts count their devices alike


@pytest.mark.parametrize(("name", "cause"), [("stack_703.txt", "slow_storage_read"), ("step703b.txt", "never_entered")])
def test_a_dump_named_by_its_process_is_that_of_the_rank_that_says_its_number(
    name: str, cause: str, tmp_path: Path
) -> None:
    said = "".join(f"12:00:0{r} INFO [Rank {r}] pid={701 + r} started\n" for r in range(3))
    steps = "".join(f"[Rank {r}] step={n} loss={2 + 3 / n:.4f}\n" for n in range(1, 30) for r in range(3))
    late = "".join(
        f"[rank{r}]:[E101 02:03:04.500000000 ProcessGroupNCCL.cpp:616] [Rank {r}] Watchdog caught collective operation"
        " timeout: WorkNCCL(SeqNum=71, OpType=ALLREDUCE, NumelIn=6, NumelOut=6, Timeout(ms)=90000) ran for 90012"
        " milliseconds before timing out.\n"
        for r in range(2)
    )
    (tmp_path / name).write_text(
        "Thread 0x00007f0b5a1c2740 (most recent call first):\n"
        '  File "/opt/py/zipfile.py", line 1011 in _read2\n'
        '  File "/job/train.py", line 121 in <module>\n'
    )
    (tmp_path / "train.log").write_text(said + steps + late)
    verdict = triage(tmp_path).verdict
    assert (verdict.culprits, verdict.cause) == ((2,), cause)


_PORT = "dgx-12:4122:4139 [1] NCCL INFO NET/IB : Got async event : port error (mlx5_6:1)\n"
_EXIT = (
    "E0101 02:03:04.0 140 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -6) local_rank: {r}"
)


@pytest.mark.parametrize(("pid", "ranks"), [(4122, (6,)), (4123, ())], ids=["its own", "another"])
def test_the_process_before_a_line_of_nccl_is_that_of_its_rank(
    pid: int, ranks: tuple[int, ...], tmp_path: Path
) -> None:
    told = _STEPS + _PORT + _EXIT.format(r=6) + f" (pid: {pid}) of binary: /usr/bin/python\n"
    verdict = triage(_written(tmp_path, told)).verdict
    assert (tuple(verdict.culprits) if verdict.cause == "fabric_fault" else ()) == ranks


def _written(folder: Path, text: str) -> Path:
    (folder / "train.log").write_text(text)
    return folder


@pytest.mark.parametrize(("node", "ranks"), [("n2", (2, 3)), ("n3", ())], ids=["of two tasks", "of none"])
def test_the_tasks_of_a_node_that_was_lost_are_named(node: str, ranks: tuple[int, ...], tmp_path: Path) -> None:
    steps = "".join(f"{r}: step {n} loss {2 + 3 / n:.4f}\n" for n in range(1, 30) for r in range(4))
    lost = f"srun: error: Node failure on {node}\n"
    ends = "srun: error: n1: tasks 0-1: Killed\nsrun: error: n2: tasks 2-3: Killed\n"
    verdict = triage(_written(tmp_path, steps + lost + ends)).verdict
    assert (verdict.cause, verdict.culprits) == ("node_failed", ranks)


@pytest.mark.parametrize(
    ("loaded", "ranks"),
    [
        ({0: 50, 1: 50, 2: 40}, (2,)),
        ({0: 50, 1: 50, 2: 50}, ()),
        ({0: 50, 1: 40}, ()),  # of two neither is odd
        ({0: 50, 1: 40, 2: 30}, ()),
        ({0: 50, 1: 50, 2: 40, 3: 40}, ()),
    ],
)
def test_a_rank_that_loaded_another_checkpoint_than_most_is_named(
    loaded: dict[int, int], ranks: tuple[int, ...], tmp_path: Path
) -> None:
    starts = "".join(f"[rank{r}]: resume: loaded ckpt/step{s}.pt, start_step={s}\n" for r, s in loaded.items())
    steps = "".join(f"[rank{r}]: step {s + n} loss {2 + 3 / n:.4f}\n" for n in range(1, 40) for r, s in loaded.items())
    assert tuple(triage(_written(tmp_path, starts + steps + "training finished\n")).verdict.culprits) == ranks
