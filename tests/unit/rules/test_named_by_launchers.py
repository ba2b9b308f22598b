"""Whose rank it is that a launcher, a heading, a stack or a detector speaks of."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.api import triage

_STEPS = "".join(f"step {n} | loss {2 + 3 / n:.4f} | lr 3.0e-04\n" for n in range(1, 30))
_RAISED = (
    'Traceback (most recent call last):\n  File "/job/mill.py", line 7, in grind\n    sack["grain"]\n'
    "KeyError: 'grain'\n"
)


def _culprits(folder: Path, **files: str) -> tuple[int, ...]:
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return tuple(triage(folder).verdict.culprits)


@pytest.mark.parametrize(
    ("line", "ranks"),
    [
        ("ERROR:composer.cli.launcher:Rank 2 crashed with exit code -6.\n", (2,)),
        ("[rank: 2] Child process with PID 3012 terminated with code -9. Forcefully terminating all others\n", (2,)),
        ("launcher: rank 2 (pid 411) exited with exit code -11\n", (2,)),
        ("Global rank 2 (PID 411) exited with code 0\n", ()),
        ("Global rank 2 (PID 411) exited with code -15\n", ()),
    ],
    ids=["Composer", "Lightning", "own", "done", "asked"],
)
def test_the_exit_code_of_a_rank_names_it(line: str, ranks: tuple[int, ...], tmp_path: Path) -> None:
    assert _culprits(tmp_path, train=_STEPS + line) == ranks


def test_a_block_of_output_is_that_of_the_rank_in_its_heading(tmp_path: Path) -> None:
    blocks = "".join(
        f"----------Begin global rank {r} STDERR----------\nstarted\nready\nset\n{_RAISED if r == 1 else ''}"
        f"----------End global rank {r} STDERR----------\n"
        for r in range(3)
    )
    assert _culprits(tmp_path, train=_STEPS + blocks) == (1,)


@pytest.mark.parametrize(("between", "ranks"), [("", (2,)), ("a\nb\n", ())], ids=["below", "further down"])
def test_a_heading_without_an_end_holds_for_what_is_right_below(
    between: str, ranks: tuple[int, ...], tmp_path: Path
) -> None:
    assert _culprits(tmp_path, train=f"world_size=3\n{_STEPS}[Rank 2]\n{between}{_RAISED}") == ranks


def test_a_heading_within_a_traceback_names_the_process_that_raised(tmp_path: Path) -> None:
    spawned = 'Traceback (most recent call last):\n  File "mill.py", line 9, in <module>\n    mp.spawn(grind)\n'
    spawned += "torch.multiprocessing.spawn.ProcessRaisedException: \n\n"
    spawned += "-- Process 3 terminated with the following error:\n"
    assert _culprits(tmp_path, train=f"world_size=4\n{_STEPS}{spawned}{_RAISED}") == (3,)


@pytest.mark.parametrize(("pod", "ranks"), [("mill-1", (1,)), ("mill-7", ())])
def test_a_pod_has_the_rank_of_its_log(pod: str, ranks: tuple[int, ...], tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"mill-{rank}.log").write_text(f"rank {rank} of 2\n{_STEPS}")
    state = f"Name:         {pod}\nContainers:\n  main:\n    State:    Terminated\n      Reason:       OOMKilled\n"
    assert _culprits(tmp_path, pods=state) == ranks


@pytest.mark.parametrize(("rank", "ranks"), [("rank=1", (1,)), ("peer=1", ())])
def test_a_worker_of_ray_says_its_rank_once(rank: str, ranks: tuple[int, ...], tmp_path: Path) -> None:
    by = "(RayTrainWorker pid={}, ip=10.0.0.4) {}\n"
    told = by.format(70, "[rank=0] world_size=2") + by.format(71, f"[{rank}] world_size=2")
    raised = "".join(by.format(71, line) for line in _RAISED.splitlines())
    assert _culprits(tmp_path, train=told + _STEPS + raised) == ranks


@pytest.mark.parametrize(("place", "ranks"), [("5e", (2,)), ("9a", ())])
def test_a_rank_says_the_place_of_its_device(place: str, ranks: tuple[int, ...], tmp_path: Path) -> None:
    said = "".join(f"[rank{r}] cuda:{r} bus id 0000:{bus}:00.0\n" for r, bus in enumerate(("1b", "3b", "5e")))
    xid = f"NVRM: Xid (PCI:0000:{place}:00): 79, pid=7, name=python3, GPU has fallen off the bus.\n"
    assert _culprits(tmp_path, train=said + _STEPS, kern=xid) == ranks


def _stack(*calls: str) -> str:
    return "".join(f'  File "/job/{call.partition(":")[0]}.py", line 3 in {call.partition(":")[2]}\n' for call in calls)


_WAITS = ("torch/distributed/distributed_c10d:barrier", "mill:main")


@pytest.mark.parametrize("joined", [False, True])
def test_faulthandlers_time_ran_out_on_the_rank_outside_of_the_collective(joined: bool, tmp_path: Path) -> None:
    files: dict[str, str] = {}
    for rank in range(3):
        late = ("sock:readinto", "sack:fetch", "mill:main") if rank == 1 else _WAITS
        head = "Timeout (0:10:00)!\nThread 0x7f2b (most recent call first):\n" + _stack("threading:wait")
        files[f"rank_{rank}"] = head + "\nThread 0x7f2c (most recent call first):\n" + _stack(*late)
    if joined:
        lines = (f"[rank{name[-1]}]: {line}\n" for name, text in files.items() for line in text.splitlines())
        files = {"train": "".join(lines)}
    assert _culprits(tmp_path, **{name: _STEPS + text for name, text in files.items()}) == (1,)


@pytest.mark.parametrize(("pids", "ranks"), [((70, 71, 72), (1,)), ((70, 70, 70), ())], ids=["of three", "of one"])
def test_numbered_dumps_of_several_processes_are_those_of_ranks(
    pids: tuple[int, ...], ranks: tuple[int, ...], tmp_path: Path
) -> None:
    inside = "    all_reduce (torch/distributed/distributed_c10d.py:28)\n"
    dumps = {
        f"pyspy_{n}": f'Process {pid}: python mill.py\nPython v3.11.9\n\nThread {pid} (idle): "MainThread"\n'
        + ("    acquire_lock (store/cache.py:41)\n" if n == 1 else inside)
        + "    <module> (mill.py:9)\n"
        for n, pid in enumerate(pids)
    }
    assert _culprits(tmp_path, **dumps) == ranks


@pytest.mark.parametrize(("rank", "ranks"), [(2, (2,)), (0, ())], ids=["alone", "who logs the loss"])
def test_a_detector_that_fires_on_one_rank_alone_names_it(rank: int, ranks: tuple[int, ...], tmp_path: Path) -> None:
    logged = "".join(f"[rank0]: {line}\n" for line in _STEPS.splitlines())
    raised = f"[rank{rank}]: RuntimeError: Rank {rank}: found NaN in local forward loss calculation\n"
    assert _culprits(tmp_path, train=f"[rank1]: up\n[rank2]: up\n{logged}{raised}") == ranks


@pytest.mark.parametrize(("code", "ranks"), [(139, (1,)), (1, ()), (0, ())])
def test_the_exit_code_of_a_pod_is_that_of_its_rank(code: int, ranks: tuple[int, ...], tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"mill-{rank}.log").write_text(f"rank {rank} of 2\n{_STEPS}")
    state = f"Name:         mill-1\n    State:          Terminated\n      Exit Code:    {code}\n"
    assert _culprits(tmp_path, pods=state) == ranks


@pytest.mark.parametrize(("last", "ranks"), [("gave up after 360 s", (2,)), ("gave up after 3 attempts", ())])
def test_who_gives_up_names_the_worker_that_it_waited_for(last: str, ranks: tuple[int, ...], tmp_path: Path) -> None:
    waits = "waiting for gradients from w2 (30 s)\n" * 3 + f"ERROR {last}\n"
    files = {f"w{rank}": _STEPS + ("" if rank == 2 else waits) for rank in range(4)}
    assert _culprits(tmp_path, **files) == ranks


EVENT = """- involvedObject:
    kind: Pod
    name: {pod}
  kind: Event
  message: 'Memory cgroup out of memory: Killed process 71 (python) total-vm:8888888kB'
  metadata:
    name: {pod}.17ab3f00c2d9e100
  reason: OOMKilling
"""


@pytest.mark.parametrize(("pod", "ranks"), [("mill-1", (1,)), ("mill-7", ()), ("mill", ())])
def test_an_event_of_kubernetes_names_the_pod_that_ran_out_of_memory(
    pod: str, ranks: tuple[int, ...], tmp_path: Path
) -> None:
    for rank in range(2):
        (tmp_path / f"mill-{rank}.log").write_text(f"rank {rank} of 2\n{_STEPS}")
    (tmp_path / "events.yaml").write_text(f"apiVersion: v1\nitems:\n{EVENT.format(pod=pod)}kind: List\n")
    verdict = triage(tmp_path).verdict
    assert (verdict.cause, verdict.culprits) == ("host_out_of_memory", ranks)


@pytest.mark.parametrize(
    "told",
    [
        "(raylet, ip=10.0.0.6) node_manager.cc:3069: 1 Workers (tasks / actors) killed due to memory pressure (OOM)",
        "(RayTrainWorker pid=71, ip=10.0.0.6) RuntimeError: CUDA error: unspecified launch failure",
    ],
)
def test_the_one_rank_that_logs_through_ray_is_not_whom_other_processes_speak_of(told: str, tmp_path: Path) -> None:
    steps = "".join(f"(RayTrainWorker pid=70, ip=10.0.0.4) [rank0] {line}\n" for line in _STEPS.splitlines())
    assert _culprits(tmp_path, train=f"{steps}{told}\n") == ()


@pytest.mark.parametrize(
    ("file", "said", "headline"),
    [
        ("note.txt", "", "Rank 3 ended without a word"),
        ("slurm-7.err", "srun: error: n1: task 3: Killed\n", "Rank 3 died of SIGKILL"),
        ("w3.log", "run.sh: line 3: 51771 Killed                  python mill.py\n", "Rank 3 died of SIGKILL"),
    ],
    ids=["nobody", "the scheduler", "its shell"],
)
def test_a_rank_that_only_its_peers_miss_ended_without_a_word(
    file: str, said: str, headline: str, tmp_path: Path
) -> None:
    closed = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.7]:40122\n"
    for rank in range(4):
        own = f"rank {rank} listens on 10.0.0.{4 + rank}:2950\n{_STEPS}"
        (tmp_path / f"w{rank}.log").write_text(own + ("" if rank == 3 else closed))
    with (tmp_path / file).open("a") as log:
        log.write(said)
    verdict = triage(tmp_path).verdict
    assert verdict.culprits == (3,)
    assert verdict.headline.startswith(headline)
