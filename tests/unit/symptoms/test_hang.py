"""A job that stood still: who was missing, why, and what shows it the next time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from forensics.model import Shape
from tests.unit.symptoms.kit import report, told, written
from tests.unit.symptoms.logs import falling, steps

if TYPE_CHECKING:
    from pathlib import Path

STEPS = "".join(
    f"[2025-11-20 08:{n // 60:02}:{n % 60:02}] INFO kempnerforge: [step {n}] loss={3 - n / 100:.4f} | tok/s=40000\n"
    for n in range(1, 120)
)


def timed_out(rank: int, number: int, *, names_group: bool = True) -> str:
    caught = (
        f"[rank{rank}]:[E1120 09:10:00.{rank}12345678 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught"
        f" collective operation timeout: WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, NumelIn=1048576,"
        " NumelOut=1048576, Timeout(ms)=1800000) ran for 1800001 milliseconds before timing out.\n"
    )
    state = (
        f"[rank{rank}]:[E1120 09:10:00.{rank}22345678 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank"
        f" {rank}] Exception (either an error or timeout) detected by watchdog at work: {number}, last enqueued NCCL"
        f" work: {number + 2}, last completed NCCL work: {number - 1}.\n"
    )
    return caught + state * names_group


@pytest.mark.parametrize("names_group", [True, False])
def test_of_ranks_that_all_time_out_the_one_in_the_earliest_collective_is_named(
    tmp_path: Path, *, names_group: bool
) -> None:
    cries = "".join(timed_out(rank, 902 if rank == 2 else 903, names_group=names_group) for rank in range(4))
    page = told(written(tmp_path, {"train.log": STEPS + cries}))
    assert "Rank 2 never entered the collective in which the others wait" in page
    assert "culprits rank 2" in page


@pytest.mark.parametrize("numbers", [(903, 903, 903, 903), (902, 902, 903, 903), (902, 903)])
def test_ranks_of_one_number_and_even_halves_name_nobody(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    cries = "".join(timed_out(rank, number) for rank, number in enumerate(numbers))
    assert report(written(tmp_path, {"train.log": STEPS + cries})).verdict.culprits == ()


@pytest.mark.parametrize(("config", "asked"), [("", True), ("nccl_health_check_interval = 50\n", False)])
def test_a_hang_without_the_periodic_probe_is_told_to_turn_it_on(tmp_path: Path, config: str, *, asked: bool) -> None:
    cries = "".join(timed_out(rank, 903) for rank in (0, 1, 3))
    files = {"train.log": STEPS + cries, "config.toml": f"[train]\nmax_steps = 3000\n{config}"}
    page = told(written(tmp_path, files))
    assert ("and export NCCL_TIMEOUT=1800" in page and "nccl_health_check_interval = 100" in page) is asked


@pytest.mark.parametrize(("prefetch", "restart"), [("true", "after the change"), ("false", "as it is")])
def test_a_time_out_that_a_setting_brings_about_is_not_tried_again_as_it_is(
    tmp_path: Path, prefetch: str, restart: str
) -> None:
    files = {"train.log": STEPS + timed_out(1, 903), "config.yaml": f"lr: 0.1\nasync_prefetch: {prefetch}\n"}
    assert f"restart {restart}" in told(written(tmp_path, files))


def start(ended: datetime, line: str = "INFO initializing process group (backend=nccl, rank=0, world_size=8)") -> str:
    began = datetime(2025, 11, 20, 8)  # noqa: DTZ001 - as a log prints it
    return (
        f"[{began:%Y-%m-%d %H:%M:%S}] {line}\n[{began + timedelta(seconds=44):%Y-%m-%d %H:%M:%S}] INFO Building model\n"
        f"slurmstepd: error: *** JOB 881 ON node01 CANCELLED AT {ended:%Y-%m-%dT%H:%M:%S} DUE TO TIME LIMIT ***\n"
    )


LATE, SOON = datetime(2025, 11, 20, 10, 1), datetime(2025, 11, 20, 8, 10)  # noqa: DTZ001 - as a log prints it


def test_a_job_that_never_came_to_a_step_hung_at_its_start(tmp_path: Path) -> None:
    page = told(written(tmp_path, {"slurm-881.out": start(LATE)}))
    assert "FAILED hang" in page
    assert "No step was logged in the 121 minutes after the ranks began to join each other" in page
    assert "export NCCL_DEBUG=INFO TORCH_DISTRIBUTED_DEBUG=DETAIL" in page
    assert "MASTER_ADDR, MASTER_PORT and the world size" in page


@pytest.mark.parametrize("log", [start(SOON), start(LATE, "INFO reading shards"), start(LATE) + "[step 1] loss=2.5\n"])
def test_a_short_job_one_of_no_ranks_and_one_that_trained_did_not_hang_at_their_start(tmp_path: Path, log: str) -> None:
    said = report(written(tmp_path, {"slurm-881.out": log}))
    assert said.verdict.shape != "hang"


def ranks(words: str, config: str = "") -> dict[str, str]:
    logs: dict[str, str] = {"config.yaml": "micro_batch_size: 4\n" + config}
    for rank in range(4):
        lines = (
            f"[2025-11-20 08:{n // 60:02}:{n % 60:02}] rank {rank} epoch 0 step {n}/200 loss {3 - n / 100:.4f}\n"
            for n in range(1, 201 - (rank == 3))
        )
        logs[f"rank_{rank}.log"] = "".join(lines) + (words if rank == 3 else timed_out(rank, 903))
    return logs


def test_a_rank_that_came_to_the_end_of_its_data_first_had_less_of_it(tmp_path: Path) -> None:
    page = told(written(tmp_path, ranks("[2025-11-20 08:03:20] rank 3 epoch 0 finished\n", "drop_last: false\n")))
    assert "Rank 3 had another number of steps than the others" in page
    assert (
        "drop_last=True with a DistributedSampler, or the Join context around the loop (now drop_last = false" in page
    )


def test_a_rank_that_went_silent_in_its_epoch_is_not_said_to_have_less_data(tmp_path: Path) -> None:
    page = told(written(tmp_path, ranks("[2025-11-20 08:03:20] rank 3 waits for a lock\n")))
    assert "Rank 3 never entered the collective in which the others wait" in page
    assert "drop_last" not in page


def mismatch(rank: int, op: str, other: int, other_op: str) -> str:
    options = "TensorDeviceTypes=TensorOptions(dtype=float (default), device=cuda, layout=Strided (default))"
    return (
        'Traceback (most recent call last):\n  File "/app/train.py", line 99, in step\n    dist.all_reduce(x)\n'
        f"RuntimeError: Detected mismatch between collectives on ranks. Rank {rank} is running collective:"
        f" CollectiveFingerPrint(SequenceNumber=17, OpType={op}, TensorShape=[10], TensorDtypes=Float, {options}), but"
        f" Rank {other} is running collective: CollectiveFingerPrint(SequenceNumber=17, OpType={other_op},"
        f" TensorShape=[10], TensorDtypes=Float, {options}).Collectives differ in the following aspects:"
        f" \t Op type: {op}vs {other_op}\n"
    )


def test_one_ranks_log_is_enough_to_name_the_two_that_differ(tmp_path: Path) -> None:
    log = STEPS + mismatch(0, "ALLREDUCE", 2, "BROADCAST")
    page = told(written(tmp_path, {"rank0.log": log}))
    assert "Undecided between ranks 0 and 2: issued another operation than the others" in page
    assert "rank 0 runs allreduce 10 Float and rank 2 runs broadcast 10 Float" in page


def test_the_words_of_all_ranks_name_the_odd_one(tmp_path: Path) -> None:
    logs = {f"rank{r}.log": STEPS + mismatch(r, "ALLREDUCE", 2, "BROADCAST") for r in (0, 1)}
    logs["rank2.log"] = STEPS + mismatch(2, "BROADCAST", 0, "ALLREDUCE")
    assert report(written(tmp_path, logs)).verdict.culprits == (2,)


@pytest.mark.parametrize("prefetch", ["true", "false"])
def test_silence_asks_for_the_debug_settings_and_for_the_prefetch_of_fsdp(tmp_path: Path, prefetch: str) -> None:
    log = "".join(
        f"2026-03-04 10:{n // 30:02}:{n % 30 * 2:02} INFO step {n} | loss {3 - n / 900:.4f}\n" for n in range(1, 400)
    )
    stopped = "slurmstepd: error: *** JOB 4711 ON node01 CANCELLED AT 2026-03-04T13:00:00 DUE TO TIME LIMIT ***\n"
    settings = f"fsdp:\n  - full_shard\nasync_prefetch: {prefetch}\nlearning_rate: 0.0003\n"
    run = written(tmp_path, {"slurm-4711.out": log + stopped, "config.yaml": settings})
    text = told(run)
    assert text.startswith("FAILED hang")
    assert any("NCCL_DEBUG=INFO and TORCH_DISTRIBUTED_DEBUG=DETAIL" in one.text for one in report(run).verdict.actions)
    assert ("Set async_prefetch: false: with FSDP" in text) == (prefetch == "true")


def of_day(minutes: int) -> str:
    times = [(17 * 3600 + 41 * 60 + 20 * n) for n in range(3 * minutes)]
    return "".join(
        f"{t // 3600:02}:{t // 60 % 60:02}:{t % 60:02} | r0 | it {n} | loss {3 - n / 900:.4f}\n"
        for n, t in enumerate(times, 1)
    )


@pytest.mark.parametrize(("minutes", "outcome"), [(90, "FAILED hang"), (258, "FAILED stopped")])
def test_times_of_day_tell_how_long_a_job_was_silent_before_its_limit(
    tmp_path: Path, minutes: int, outcome: str
) -> None:
    stopped = "slurmstepd: error: *** JOB 4711 ON node01 CANCELLED AT 2026-03-04T22:00:00 DUE TO TIME LIMIT ***\n"
    page = told(written(tmp_path, {"slurm-4711.out": of_day(minutes) + stopped}))
    assert page.startswith(outcome)
    assert ("Nothing was trained in the last 169 minutes" in page) == (minutes == 90)


@pytest.mark.parametrize(
    ("complaining", "size", "culprits"),
    [((0, 1, 2, 3, 4, 5, 7), 8, (6,)), ((0, 1, 2, 3), 8, ()), ((0, 1, 2, 3, 4, 5, 7), None, ())],
)
def test_ranks_of_a_group_are_those_of_the_job_where_it_can_be_no_part_of_it(
    tmp_path: Path, complaining: tuple[int, ...], size: int | None, culprits: tuple[int, ...]
) -> None:
    lines = [
        f"[E ProcessGroupNCCL.cpp:474] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL("
        "SeqNum=4410, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600031 milliseconds before timing out.\n"
        for rank in complaining
    ]
    begin = f"world_size: {size}\n" if size else ""
    log = begin + steps(60, loss=falling(3.0, 2.0)) + "".join(lines)
    verdict = report(written(tmp_path, {"job.out": log})).verdict
    assert (verdict.shape, verdict.culprits) == (Shape.HANG, culprits)


def test_a_watchdog_that_stood_still_is_tried_without_the_path_from_gpu_to_gpu(tmp_path: Path) -> None:
    line = (
        "[rank0]:[E608 14:09:10.200136079 ProcessGroupNCCL.cpp:1484] [PG ID 0 PG GUID 0(default_pg) Rank 0]"
        " ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring enqueued"
        " collectives.\n"
    )
    assert "export NCCL_P2P_DISABLE=1" in told(written(tmp_path, {"train.log": steps(9, loss=falling(3, 2)) + line}))
    hung = "".join(timed_out(rank, 9) for rank in (0, 1, 3))
    assert "NCCL_P2P_DISABLE" not in told(written(tmp_path, {"train.log": STEPS + hung}))


@pytest.mark.parametrize(("trained", "asked"), [("", True), (steps(8, loss=falling(2.3, 1.9)), False)])
def test_a_limit_before_any_step_asks_whether_the_ranks_waited_for_each_other(
    tmp_path: Path, trained: str, *, asked: bool
) -> None:
    stopped = "slurmstepd: error: *** JOB 4711 ON node01 CANCELLED AT 2026-03-04T13:00:00 DUE TO TIME LIMIT ***\n"
    text = told(written(tmp_path, {"job.out": f"world_size 16, waiting for all ranks\n{trained}{stopped}"}))
    assert ("TORCH_DISTRIBUTED_DEBUG=DETAIL" in text) is asked
    assert "with a longer time limit" in text


@pytest.mark.parametrize(("stamp", "asked"), [("", True), ("2026-03-04 12:{:02}:00,000 - INFO - ", False)])
def test_a_limit_behind_steps_without_a_time_asks_when_the_last_one_was(
    tmp_path: Path, stamp: str, *, asked: bool
) -> None:
    trained = "".join(f"{stamp.format(n)}step {n} loss {2.3 - n / 99:.4f}\n" for n in range(40, 60))
    stopped = "slurmstepd: error: *** JOB 4711 ON node01 CANCELLED AT 2026-03-04T13:00:00 DUE TO TIME LIMIT ***\n"
    text = told(written(tmp_path, {"job.out": trained + stopped}))
    assert ("long before the limit the run hung" in text) is asked
    assert "with a longer time limit" in text
