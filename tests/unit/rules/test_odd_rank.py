"""The rank that is odd among those of a job: by what it prints, where it stops, and what its launcher says of it."""

from pathlib import Path

import pytest

from forensics import triage

_LATE = "RuntimeError: [unbound_buffer.cc:81] Timed out waiting 600000ms for recv operation to complete\n"


def _culprits(tmp_path: Path, **files: str) -> tuple[int, ...]:
    for name, text in files.items():
        (tmp_path / f"{name}.log").write_text(text)
    return triage(tmp_path).verdict.culprits


def _steps(until: int, form: str = "step {n} loss {loss:.3f}\n", **values: object) -> str:
    return "".join(form.format(n=n, loss=3 - n / 50, **values) for n in range(until))


def _in_turn(form: str, until: dict[int, int]) -> str:
    every = ((n, rank) for n in range(max(until.values())) for rank in until if n < until[rank])
    return "".join(form.format(n=n, r=rank, loss=3 - n / 50) for n, rank in every)


@pytest.mark.parametrize(("last", "culprits"), [(17, (3,)), (20, ())], ids=["behind", "with the others"])
def test_a_rank_that_stops_before_the_others_is_waited_for(
    last: int, culprits: tuple[int, ...], tmp_path: Path
) -> None:
    said = _in_turn("09:12:{n:02d} [{r}] it={n} loss={loss:.3f}\n", {0: 20, 1: 20, 2: 20, 3: last})
    late = "no progress for 600 s, watchdog fires\n"
    assert _culprits(tmp_path, train=said + late) == culprits


def test_the_first_rank_whose_own_loss_is_nan_is_named_by_its_tag(tmp_path: Path) -> None:
    def line(n: int, rank: int) -> str:
        loss = "nan" if n >= (15 if rank == 2 else 18) else f"{3 - n / 50:.3f}"
        return f"2025-03-04 09:12:{n:02d} r{rank:02d} it={n} loss={loss} gn=0.5\n"

    assert _culprits(tmp_path, all="".join(line(n, rank) for n in range(20) for rank in range(4))) == (2,)


def test_an_error_behind_a_time_and_a_level_is_of_the_rank_in_its_tag(tmp_path: Path) -> None:
    said = _in_turn("2025-03-04 09:12:{n:02d} INFO [rank{r}] step {n} loss {loss:.3f}\n", dict.fromkeys(range(4), 20))
    error = "2025-03-04 09:13:00 ERROR [rank2] OSError: [Errno 28] No space left on device: '/ckpt/a'\n"
    late = "".join(f"2025-03-04 09:23:00 ERROR [rank{r}] {_LATE}" for r in (0, 1, 3))
    assert _culprits(tmp_path, job=said + error + late) == (2,)


_RANKS = "[launch.py:163:main] global_rank_mapping=defaultdict(<class 'list'>, {'gpu-a': [0, 1], 'gpu-b': [2, 3]})\n"
_GONE = "['/usr/bin/python3', '-u', 'train.py', '--local_rank=1'] exits with return code = -11\n"


@pytest.mark.parametrize(("host", "rank"), [("gpu-a", 1), ("gpu-b", 3)])
def test_a_local_rank_of_deepspeed_counts_from_the_first_of_its_host(host: str, rank: int, tmp_path: Path) -> None:
    told = "".join(
        f"{one}: [launch.py:152:main] nnodes=2, num_local_procs=2\n{one}: {_RANKS}" for one in ("gpu-a", "gpu-b")
    )
    started = "".join(
        f"{one}: process {pid} spawned with command: ['p', '--local_rank=0']\n"
        for one, pid in (("gpu-a", 71), ("gpu-b", 72))
    )
    steps = _steps(20, "gpu-a: [logging.py:96:log_dist] [Rank 0] step={n}, loss={loss:.3f}\n")
    assert _culprits(tmp_path, job=told + started + steps + f"{host}: {_GONE}") == (rank,)


def test_the_error_that_ray_quotes_is_of_the_rank_in_its_heading(tmp_path: Path) -> None:
    started = "".join(
        f"(TrainController pid=9) - (ip=10.0.0.{r}, pid={70 + r}) world_rank={r}, local_rank=0\n" for r in range(4)
    )
    error = "[Rank 2 Error Snippet]:\nThe actor died because its node has died. Node Id: 9b1cc04f\n"
    assert _culprits(tmp_path, driver=started + _steps(20) + error) == (2,)


def test_a_rank_that_all_others_name_by_its_address_is_where_the_link_failed(tmp_path: Path) -> None:
    error = "NCCL WARN NET/IB: Got completion from peer 10.0.0.13<41022> with status=12 opcode=0 len=0 vendor err 129\n"
    files = {f"rank{r}": _steps(20) + (error if r != 2 else "") for r in range(4)}
    assert _culprits(tmp_path, **files) == (2,)


def test_the_stack_that_differs_from_most_is_of_the_rank_that_the_others_wait_for(tmp_path: Path) -> None:
    def stack(rank: int) -> str:
        frame = 'File "/app/comm.py", line 40 in sync_all' if rank != 1 else 'File "/usr/lib/ssl.py", line 1166 in read'
        lines = ("Timeout (0:10:00)!", "Thread 0x00007f11 (most recent call first):", f"  {frame}")
        return "".join(f"[rank{rank}]: {line}\n" for line in (*lines, '  File "/app/train.py", line 9 in <module>'))

    assert _culprits(tmp_path, job=_steps(20) + "".join(map(stack, range(4)))) == (1,)


def test_a_notice_of_mpirun_that_is_broken_over_two_lines_names_its_rank(tmp_path: Path) -> None:
    notice = "prterun noticed that process rank 3 with PID 5102 on node\ncn-118 exited on signal 9 (Killed).\n"
    assert _culprits(tmp_path, run=_steps(20) + notice) == (3,)


def test_a_nan_check_that_names_its_rank_in_the_middle_of_its_words_names_the_culprit(tmp_path: Path) -> None:
    error = (
        "RuntimeError: Rank 13, node gn014, device 5: Unexpected result nan (message='found NaN in local forward')\n"
    )
    assert _culprits(tmp_path, run=_steps(20) + f"[rank13]: {error}") == (13,)


def test_ranks_of_one_host_that_are_as_slow_are_named_together(tmp_path: Path) -> None:
    rows = (f"{n},{r},{700 if r in (2, 3) else 400 + r}\n" for n in range(40) for r in range(8))
    (tmp_path / "timing.csv").write_text("step,rank,fwd_ms\n" + "".join(rows))
    assert triage(tmp_path).verdict.culprits == (2, 3)
