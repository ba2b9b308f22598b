"""The table of error signatures, and the scanner that applies it."""

from __future__ import annotations

import json

import pytest

from forensics.dialects import _lines, prefixes
from forensics.dialects.events import signatures
from forensics.knowledge import errors

WATCHDOG = (
    "[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, "
    "Timeout(ms)=600000) ran for 600123 milliseconds before timing out."
)


def scan(text: str) -> list[dict[str, object]]:
    scanner = signatures.Scanner()
    kept = scanner.feed(prefixes.strip(_lines.Cut(text.encode()).select(signatures.pattern())))
    return kept + scanner.close()[0]


def test_few_rows_that_are_searched_one_by_one_give_the_events_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [line for row in errors.lines()[::24] for line in (row.like, row.unlike, f'print("{row.like}")')]
    texts = ["".join(f"{line}\n" for line in some[at : at + 24]) for at in range(0, len(some), 24)]
    few = [scan(text) for text in texts]
    monkeypatch.setattr(signatures, "_FEW", -1)
    monkeypatch.setattr(signatures, "_FEW_CHARS", -1)
    assert [scan(text) for text in texts] == few
    assert sum(map(len, few)) > len(errors.lines()[::24])


def codes(text: str) -> list[object]:
    return [event["code"] for event in scan(text)]


def test_stems_are_short_enough_for_one_pass_and_none_contains_another() -> None:
    stems = signatures.stems()
    assert len(set(stems)) == len(stems) < 240
    assert all(2 <= len(stem) <= 28 for stem in stems)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB. GPU 2 has", "cuda-oom"),
        ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.25 GiB", "gpu-oom-other"),
        ("Failed to CUDA calloc 4096 bytes", "nccl-oom"),
        ("[12.5] Out of memory: Killed process 4321 (python) total-vm:9kB", "kernel-oom-kill"),
        ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=9.0", "slurm-oom-kill"),
        ("RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried", "cpu-alloc"),
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12 bytes.", "xla-oom-alloc"),
        (WATCHDOG, "nccl-watchdog"),
        ("RuntimeError: [Rank 0]: Ranks 1 failed to pass monitoredBarrier in 30000 ms", "monitored-barrier"),
        ("RuntimeError: [gloo/pair.cc:1] Timed out waiting 5000ms for recv operation to complete", "gloo-timeout"),
        ("what(): op.preamble.length <= op.nbytes. Received data size doesn't match expected", "gloo-mismatch"),
        ("Timed out after 301 seconds waiting for clients. 3/4 clients joined.", "store-timeout"),
        ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", "childfailed"),
        ("failed (exitcode: -11) local_rank: 3 (pid: 12) of binary: python", "elastic-exitcode"),
        ("  exitcode  : -9 (pid: 77)", "exitcode-9"),
        ("slurmstepd: error: *** JOB 9 ON n CANCELLED AT 2031-05-06 DUE TO TIME LIMIT ***", "slurm-timelimit"),
        ("slurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2031-05-06T07:08:09 ***", "slurm-cancel"),
        ("TERM_OWNER: job killed by owner.", "lsf-owner"),
        ("[rank 0] WARNING  Received SIGTERM - stopping after this step", "sigterm15"),
        ("Fatal Python error: Illegal instruction", "fatal-python"),
        ("Fatal Python error: Segmentation fault", "exit139"),
        ("Fatal Python error: Aborted", "fatal-abort"),
        ("OSError: [Errno 28] No space left on device", "enospc"),
        ("gradient is nan at layer 3", "gradient-nonfinite-message"),
        ("loss is nan at step 3", "loss-nonfinite-message"),
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.", "xid79"),
        ("EngineCore hit an exception: RuntimeError: x", "vllm-engine-dead"),
        ("Training finished successfully.", "success"),
        ("{'train_runtime': 12.5, 'train_loss': 2.0}", "success"),
        ("EOFError: Ran out of input", "py-exception-terminal"),
    ],
)  # fmt: skip
def test_a_known_failure_is_named(line: str, code: str) -> None:
    assert code in codes(f"before\n{line}\nafter\n")


@pytest.mark.parametrize(
    "line",
    [
        '    raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")',
        'logger.error("NCCL communicator was aborted")',
        '        if "CUDA out of memory. Tried to allocate" in str(error):',
        "# KeyboardInterrupt: handled below",
        'print(f"CUDA out of memory. Tried to allocate {n}")',
    ],
)
def test_program_text_is_no_failure(line: str) -> None:
    assert codes(line + "\n") == []


def test_a_handler_that_is_registered_is_no_stop() -> None:
    assert codes("[rank 0] INFO     signal handlers installed for SIGTERM and SIGINT\n") == []


def test_a_line_that_a_benign_row_knows_is_no_error_of_its_family() -> None:
    assert codes("TensorBoard caught SIGTERM; exiting...") == ["tensorboard-ended"]
    assert codes("trainer caught SIGTERM; exiting...") == ["exit-on-sigterm"]


def test_groups_of_a_signature_become_attributes_rank_and_step() -> None:
    text = "7: Unexpected result nan on rank 3 at iteration #120 invocation #1 (message='bucket 0')\n"
    event = next(e for e in scan(text) if e["code"] == "mcore-nan-gradnorm")
    assert (event["rank"], event["step"]) == (3, 120)
    assert json.loads(str(event["attrs"]))["msg"] == "bucket 0"


def test_the_quote_is_the_line_as_printed_less_colours() -> None:
    event = scan("\x1b[31m[rank2]: OSError: [Errno 28] No space left on device\x1b[0m\n")[0]
    assert event["text"] == "[rank2]: OSError: [Errno 28] No space left on device"
    assert event["rank"] == 2


def test_a_long_line_is_cut_around_the_words() -> None:
    text = scan("x" * 5000 + " Error: No space left on device " + "y" * 5000 + "\n")[0]["text"]
    assert isinstance(text, str)
    assert len(text) == 400
    assert "No space left on device" in text


def test_of_a_flood_the_first_and_the_last_hits_are_kept_and_the_rest_is_counted() -> None:
    scanner = signatures.Scanner()
    events: list[dict[str, object]] = []
    for block in range(10):
        text = "".join(f"OSError: [Errno 28] No space left on device {block * 100 + i}\n" for i in range(100))
        cut = _lines.Cut(text.encode(), first_line=1 + 100 * block, first_seq=100 * block)
        events += scanner.feed(prefixes.strip(cut.select(signatures.pattern())))
    last, left_out = scanner.close()
    lines = [e["line"] for e in events + last if e["code"] == "enospc"]
    assert lines == [*range(1, 201), *range(951, 1001)]
    assert dict(left_out)["enospc"] == 750


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("RuntimeError: CUDA error: misaligned address", "launch-failure"),
        ("RuntimeError:cuda error:unspecified launch failure", "launch-failure"),
        ("what():  CUDA error: the launch timed out and was terminated", "launch-timeout"),
    ],
)
def test_a_kernel_that_ended_in_an_error_of_the_device_is_a_launch_failure_or_ran_too_long(
    line: str, code: str
) -> None:
    assert code in codes(f"step 1 loss 2.5\n{line}\n")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("2026-11-27 14:14:45,649,INFO,Early stopping at epoch 15. Best epoch 11", "stopped-early"),
        ("INFO:cfg:early stopping at patience 5", None),
    ],
)
def test_a_stop_by_its_own_rule_may_stand_behind_stamps_levels_and_names_of_loggers(
    line: str, code: str | None
) -> None:
    assert [one for one in codes(line + "\n") if one == "stopped-early"] == ([code] if code else [])


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("Exit status: 0", ["exit-zero"]),
        ("+ exit 0", ["exit-zero"]),
        ("done rc=0", ["exit-zero"]),
        ('{"exit_code": 0}', ["exit-zero"]),
        ("EXIT_CODE=1", ["exit-nonzero"]),
        ("exit 2", ["exit-nonzero"]),
        ("exit 137", ["exit137"]),
        ("train.py rc=143", ["exit143"]),
        ("|| exit 1 # usage", []),
        ("EXIT_CODE=1370 ms", []),
        ("ibv_reg_mr rc=12 retry", []),
        ("src=0", []),
    ],
)
def test_a_record_of_nothing_but_the_exit_code_is_read(line: str, found: list[str]) -> None:
    assert codes(line + "\n") == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("12            COMPLETED      0:0   00:33:20", ["sacct-completed"]),
        ("12_7.batch|COMPLETED|0:0|00:33:20|3212K", ["sacct-completed"]),
        ("12|train|OUT_OF_MEMORY|0:125|00:33:20", ["slurm-state-oom"]),
        ("12  train  gpu  OUT_OF_ME+  0:125", ["slurm-state-oom"]),
        ("12|TIMEOUT|0:0|24:00:20|", ["sacct-timeout"]),
        ("12.batch|CANCELLED by 1007|0:15|24:00:20|", ["slurm-state-stopped"]),
        ("12.0  python  FAILED  1:0", ["slurm-state-failed"]),
        ("12 of 40 shards: COMPLETED", []),
        ("3 checks FAILED", []),
        ("12|RUNNING|0:0|24:00:20|", []),
        ("S    Exit_status=0 resources_used.cput=00:33:10", ["exit-zero"]),
        ("S    Exit_status=271 resources_used.cput=00:33:10", ["exit-nonzero"]),
    ],
)
def test_the_records_of_schedulers_are_read(line: str, found: list[str]) -> None:
    assert codes(line + "\n") == found
