"""What trainers and devices say in their own words, as users of other libraries print it."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.api import triage
from forensics.case.checkpoints import known
from forensics.model import Report
from forensics.pipeline import ingest_run
from forensics.rules.hang.lines import host_lines, named_rank

_NOTIFY = (
    "[rank{r}]: RuntimeError: npuSynchronizeDevice: NPU function error: AclrtSynchronizeDeviceWithTimeout, error code"
    " is 507048\n"
    "[rank{r}]: EI0002: The wait execution of the Notify register times out. Reason: The Notify register has not"
    " received the Notify record from remote rank: [{peer}]. base information: [streamID:[9]]\n"
)
_WATCHDOG = (
    "[rank{r}]:[E602 11:17:52.185053341 ProcessGroupNCCL.cpp:632] [Rank {r}] Watchdog caught collective operation"
    " timeout: WorkNCCL(SeqNum=196, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600031"
    " milliseconds before timing out.\n"
)


def steps(until: int, *, first: int = 1, head: str = "") -> str:
    return "".join(f"{head}step {n} loss {2 + 3 / n:.4f} lr 3.0e-04\n" for n in range(first, until + 1))


def judged(folder: Path, text: str = "", **files: str) -> Report:
    for name, told in ({"train": text} if text else files).items():
        (folder / f"{name}.log").write_text(told)
    return triage(folder)


def test_a_rank_that_its_peers_wait_for_on_an_ascend_device_is_named(tmp_path: Path) -> None:
    own = {f"rank_{r}": steps(40) + ("" if r == 2 else _NOTIFY.format(r=r, peer=2)) for r in range(4)}
    verdict = judged(tmp_path, **own).verdict
    assert (verdict.shape, verdict.cause, tuple(verdict.culprits)) == ("hang", "never_entered", (2,))


def test_a_rank_of_a_ring_that_waits_itself_is_not_at_fault(tmp_path: Path) -> None:
    peers = {0: 3, 1: 0, 3: 2}  # each waits for the one before it; rank 2 alone says nothing
    own = {f"rank_{r}": steps(40) + (_NOTIFY.format(r=r, peer=peers[r]) if r in peers else "") for r in range(4)}
    assert tuple(judged(tmp_path, **own).verdict.culprits) == (2,)
    assert [clue.ranks for clue in named_rank.find(ingest_run(tmp_path))] == [(2,)]


def test_an_exception_of_an_ascend_device_is_no_time_out(tmp_path: Path) -> None:
    died = "RuntimeError: ACL stream synchronize failed, error code is 507018\n"
    verdict = judged(tmp_path, steps(40) + 'Traceback (most recent call last):\n  File "t.py", line 9\n' + died).verdict
    assert (verdict.shape, verdict.cause) == ("crash", "device_exception")


@pytest.mark.parametrize(
    ("complaining", "named"),
    [((0, 1, 2, 4), (3,)), ((0, 1, 3), ()), ((0, 1, 2, 3), ()), ((0, 1, 2, 5), ()), ((0, 1, 2, 5, 6, 7), (3, 4))],
    ids=["one of five", "one of four", "none", "two of six", "two of eight"],
)
def test_a_rank_between_those_that_complain_is_named_where_four_do(
    complaining: tuple[int, ...], named: tuple[int, ...], tmp_path: Path
) -> None:
    told = steps(40) + "".join(_WATCHDOG.format(r=r) for r in complaining)
    assert tuple(judged(tmp_path, told).verdict.culprits) == named


def test_a_rank_without_a_file_of_its_own_proves_nothing(tmp_path: Path) -> None:
    own = {f"rank_{r}": steps(40) + _WATCHDOG.format(r=r) for r in (0, 1, 2, 4)}
    assert tuple(judged(tmp_path, **own).verdict.culprits) == ()


def test_a_monitor_that_saw_no_progress_says_so_itself(tmp_path: Path) -> None:
    verdict = judged(tmp_path, steps(40) + "coordinator: no progress for 16.5 minutes, killing\n").verdict
    assert (verdict.shape, verdict.cause) == ("hang", "silent_stall")
    assert verdict.headline.startswith("A watchdog saw no progress after step 40")


@pytest.mark.parametrize(
    ("path", "usable"),
    [
        ("exp/bad-model-30.pt", False),
        ("exp/model-30.nan.pt", False),
        ("exp/model-30.pt", True),
        ("bad/model-30.pt", True),
    ],
)
def test_a_state_that_is_bad_by_its_name_is_no_checkpoint(path: str, usable: bool, tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(steps(30) + f"Saving checkpoint to {path}\n" + steps(60, first=31))
    assert known(ingest_run(tmp_path)).height == usable


def test_a_scale_that_icefall_prints_is_a_loss_scale(tmp_path: Path) -> None:
    lines = [
        f"2031-05-06 11:{n // 60:02d}:{n % 60:02d},826 INFO [train.py:1056] Epoch 1, batch {50 * n},"
        f" loss[loss={1 + 1 / (n + 1):.4f}, over 19153.00 frames. ],"
        f" lr: 2.7e-02, grad_scale: {2.0 if n < 60 else 2.0 / 8 ** (n - 59)}\n"
        for n in range(75)
    ]
    end = f"RuntimeError: grad_scale is too small, exiting: {2.0 / 8**15}\n"
    verdict = judged(
        tmp_path, "".join(lines) + 'Traceback (most recent call last):\n  File "t.py", line 9\n' + end
    ).verdict
    assert (verdict.cause, verdict.onset.step) == ("loss_scale_collapse", 3000)


def test_a_gradient_that_is_not_finite_is_dated_by_the_first_line_that_says_so(tmp_path: Path) -> None:
    said = "(trainer:581) WARNING: The grad norm is nan. Skipping updating the model.\n"
    record = (
        "(trainer:636) INFO: 1epoch:train:{a}-{b}batch: loss={l:.3f}, loss_att={l:.3f}, loss_ctc={l:.3f}, acc=0.1\n"
    )
    blocks = [
        said * (3 if n >= 12 else 0) + record.format(a=100 * n + 1, b=100 * n + 100, l=60 + 40 / (n + 1))
        for n in range(20)
    ]
    end = "(trainer:404) WARNING: The gradients at all steps are invalid in this epoch. Something seems wrong.\n"
    verdict = judged(tmp_path, "".join(blocks) + end).verdict
    assert (verdict.cause, verdict.onset.step) == ("gradient_nonfinite", 1300)


def test_the_wait_that_megatron_times_is_the_wait_for_data(tmp_path: Path) -> None:
    lines = [
        f" iteration {n:8d}/   55000 | elapsed time per iteration (ms): {6500 + n % 7 * 20 + late:.1f} |"
        f" learning rate: 1.0E-05 | lm loss: {2 + 4 / n:.6E} | loss scale: 1.0 |\n"
        f"time (ms) | forward: 663.76 | backward: 4369.18 | batch generator: {84 + n % 5 + late:.2f}\n"
        for n in range(1, 241)
        for late in [8000 * (n > 120)]
    ]
    verdict = judged(tmp_path, "".join(lines)).verdict
    assert (verdict.shape, verdict.cause, verdict.onset.step) == ("slowdown", "dataloader", 121)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        ("MemoryError: std::bad_alloc: cudaErrorMemoryAllocation: out of memory", "gpu_out_of_memory"),
        ("MemoryError: std::bad_alloc", "host_out_of_memory"),
    ],
)
def test_which_memory_thrust_could_not_get_is_in_its_words(error: str, cause: str, tmp_path: Path) -> None:
    died = f'Traceback (most recent call last):\n  File "t.py", line 9, in <module>\n    loss.backward()\n{error}\n'
    assert judged(tmp_path, steps(40) + died).verdict.cause == cause


def test_times_since_the_start_that_grow_faster_are_a_slowdown(tmp_path: Path) -> None:
    text, at = "", 0.0
    for epoch in range(1, 41):
        at += 80 * (1 + 0.06 * epoch) + epoch % 3
        text += f"Epoch #{epoch} at {at:.1f}s, lr=1.00e-04\n  - generator total={9e4 / epoch + 4e4:.2e}\n"
    verdict = judged(tmp_path, text).verdict
    assert (verdict.shape, verdict.cause) == ("slowdown", "slow_ramp")


def test_a_rate_above_one_is_that_of_the_samples(tmp_path: Path) -> None:
    lines = [
        f"| Training Epoch=1 Step={20 * n} Loss={2 / (n + 9):.5f} Rate={(550 if n < 20 else 180) + n % 4:.2f}\n"
        for n in range(40)
    ]
    verdict = judged(tmp_path, "".join(lines)).verdict
    assert (verdict.shape, verdict.onset.step) == ("slowdown", 400)


def test_a_rate_of_at_most_one_is_none(tmp_path: Path) -> None:
    lines = [f"| Epoch=1 Step={20 * n} Loss={2 / (n + 9):.5f} Rate={0.9 if n < 20 else 0.1}\n" for n in range(40)]
    assert judged(tmp_path, "".join(lines)).verdict.shape != "slowdown"


def _scored(score: str) -> str:
    return "".join(f"epoch {n}: {{'accuracy': {score}, 'f1': {float(score) + 0.1}}}\n" for n in range(12))


def test_a_score_of_unnamed_data_that_never_moves_is_that_of_one_answer(tmp_path: Path) -> None:
    assert judged(tmp_path, _scored("0.6838235294117647")).verdict.cause == "one_answer"


def test_a_score_of_few_samples_may_well_stay(tmp_path: Path) -> None:
    assert not judged(tmp_path, _scored("0.75")).verdict.cause


def test_words_that_only_say_nan_are_those_of_a_detector(tmp_path: Path) -> None:
    said = steps(40) + "I20310506 train.py:244] NaN detected\n"
    died = 'Traceback (most recent call last):\n  File "t.py", line 9, in <module>\nAssertionError\n'
    assert judged(tmp_path, said + died).verdict.shape == "nan"


def test_memory_that_stylegan_prints_is_that_of_its_process(tmp_path: Path) -> None:
    ticks = "".join(
        f"tick {n:<5d} kimg {4 * n:<8.1f} sec/tick {120 + n % 3:<7.1f} cpumem {5.6 + 0.36 * n:<6.2f} gpumem 10.2\n"
        for n in range(160)
    )
    verdict = judged(tmp_path, ticks + "Killed\n").verdict
    assert (verdict.shape, verdict.cause) == ("oom", "host_leak")


def test_an_epoch_that_takes_longer_is_read_behind_a_sentence(tmp_path: Path) -> None:
    told = "".join(
        f"Engine INFO: Epoch[{n}] Complete. Time taken: 00:0{4 if n > 25 else 1}:2{n % 3}.{n:03d}\n"
        f"Epoch: {n} loss: {3 / n:.3f}\n"
        for n in range(1, 41)
    )
    verdict = judged(tmp_path, told).verdict
    assert (verdict.shape, verdict.onset.step) == ("slowdown", 26)


@pytest.mark.parametrize(("row", "cause"), [("0.0000,0.0000,nan", "score_zero"), ("0.0000,0.1250,nan", "")])
def test_an_average_precision_that_detectron_copies_is_a_score(row: str, cause: str, tmp_path: Path) -> None:
    told = "".join(steps(10 * n, first=10 * n - 9) + f"d2.evaluation.testing: copypaste: {row}\n" for n in range(1, 7))
    assert judged(tmp_path, told).verdict.cause == cause


_LOST = (
    "{r:2d}: node0{n}:30{r}:40{r} [{d}] transport/net_ib.cc:1297 NCCL WARN NET/IB: Got completion from peer"
    " {peer}<43211> with status=12 opcode=0 len=0 vendor err 129 (Send) hca mlx5_0\n"
)


@pytest.mark.parametrize(
    ("peer", "named"),
    [("10.1.0.13", (8, 9, 10, 11)), ("10.1.0.{r}", ())],
    ids=["one address", "each another"],
)
def test_ranks_that_lost_one_address_are_its_victims(peer: str, named: tuple[int, ...], tmp_path: Path) -> None:
    lost = "".join(
        _LOST.format(r=r, n=r // 4, d=r % 4, peer=peer.format(r=r))
        + f"{r:2d}: [rank{r}]: torch.distributed.DistBackendError: NCCL error: remote process exited\n"
        for r in range(16)
        if not 8 <= r < 12
    )
    assert tuple(judged(tmp_path, steps(40, head=" 0: ") + lost).verdict.culprits) == named


@pytest.mark.parametrize(("odd", "others", "named"), [("SEND", "RECV", ()), ("ALLGATHER", "ALLREDUCE", (0,))])
def test_a_send_and_a_receive_of_one_number_are_no_mismatch(
    odd: str, others: str, named: tuple[int, ...], tmp_path: Path
) -> None:
    own = {f"rank_{r}": steps(40) + _WATCHDOG.format(r=r).replace("ALLREDUCE", others if r else odd) for r in range(4)}
    assert tuple(judged(tmp_path, **own).verdict.culprits) == named


def test_a_rank_that_was_told_to_end_is_not_silent(tmp_path: Path) -> None:
    reset = (
        "[rank{r}]: torch.distributed.DistBackendError: [{r}] is setting up NCCL communicator and retrieving"
        " ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Connection reset"
        " by peer\n"
    )
    stopped = "WARNING Received SIGTERM, shutting down\n"
    own = {f"rank_{r}": steps(40) + (reset.format(r=r) if r else stopped) for r in range(4)}
    verdict = judged(tmp_path, **own).verdict
    assert (verdict.shape, verdict.cause, tuple(verdict.culprits)) == ("stopped", "external_termination", (0,))


def test_two_ranks_that_lost_one_address_are_its_victims(tmp_path: Path) -> None:
    own = {
        f"rank_{r}": steps(40) + ("" if r > 1 else _LOST.format(r=r, n=r, d=0, peer="10.1.0.13").partition(": ")[2])
        for r in range(4)
    }
    judged(tmp_path, **own)
    assert [clue.ranks for clue in host_lines.find(ingest_run(tmp_path))] == [()]


def test_ranks_that_saw_no_progress_are_named(tmp_path: Path) -> None:
    own = {f"rank_{r}": steps(40) + "watchdog: no progress for 900 s\n" for r in range(4)}
    assert judged(tmp_path, **own).verdict.headline.startswith("Ranks 0-3 timed out waiting for the others")
