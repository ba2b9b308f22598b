"""The rules that read errors: what they say, who they name, and when they keep silent."""

from __future__ import annotations

import json

import polars as pl
import pytest

from forensics.case.errors.failures import failures, standing
from forensics.model import Causal, Confidence, Finding
from forensics.pipeline import ingest_bytes, report_of
from forensics.registry import load
from forensics.store.run import Run, run_of

ROOT_OOM = {"role": "root", "shape": "oom", "cause": "gpu_out_of_memory"}
SECOND = 1_000_000_000


def run_with(*events: tuple[str, int, str, str, dict[str, str]], t_ns: dict[int, int] | None = None) -> Run:
    """Events as (source, line, code, text, attrs)."""
    frame = pl.DataFrame(
        {
            "source": [e[0] for e in events],
            "seq": list(range(len(events))),
            "line": [e[1] for e in events],
            "code": [e[2] for e in events],
            "text": [e[3] for e in events],
            "attrs": [json.dumps(e[4]) for e in events],
            "rank": [int(e[4]["rank"]) if "rank" in e[4] else None for e in events],
            "t_ns": [(t_ns or {}).get(e[1]) for e in events],
        },
        schema_overrides={"rank": pl.Int32, "t_ns": pl.Int64},
    )
    return run_of("made", {"events": frame})


def found(run: Run, rule_id: str) -> list[Finding]:
    rule = next(r for r in load("rules").rules if r.id == rule_id)
    return list(rule(run))


def test_an_oom_says_how_much_was_asked_for() -> None:
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.50 GiB. GPU 1 has"
    (hit,) = found(run_with(("a.log", 7, "cuda-oom", text, {**ROOT_OOM, "rank": "1"})), "OOM001")
    assert "3.50 GiB" in hit.title
    assert hit.culprits == (1,)


def test_the_scheduler_s_memory_kill_is_host_memory() -> None:
    text = "slurmstepd: error: Detected 2 oom_kill events in StepId=7.0"
    (hit,) = found(run_with(("a.log", 7, "slurm-oom-kill", text, ROOT_OOM)), "OOM001")
    assert hit.cause == "host_out_of_memory"


@pytest.mark.parametrize(
    ("exception", "message", "shape"),
    [
        ("torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 1 GiB", "oom"),
        ("MemoryError", "", "oom"),
        ("KeyboardInterrupt", "", "stopped"),
        ("x.SignalException", "Process 12 got signal: 15", "stopped"),
        ("RuntimeError", "Timed out waiting 9000ms for recv operation to complete", "hang"),
        ("torch.distributed.DistBackendError", "NCCL communicator was aborted on rank 1", "crash"),
        ("FloatingPointError", "Loss became infinite or NaN", "nan"),
        ("RuntimeError", "probability tensor contains either `inf`, `nan` or element < 0", "nan"),
        ("ValueError", "bad width", "crash"),
        ("torch.distributed.DistNetworkError", "failed to bind, name: EADDRINUSE", "crash"),
    ],
)
def test_an_exception_is_known_by_its_class_and_words(exception: str, message: str, shape: str) -> None:
    attrs = {"role": "root", "shape": "crash", "exc": exception, "message": message}
    (failure,) = failures(run_with(("a.log", 9, "traceback", exception, attrs)))
    assert failure.shape == shape


def test_a_chain_is_known_by_its_first_exception_when_the_last_says_nothing() -> None:
    attrs = {"role": "root", "exc": "RuntimeError", "message": "step failed", "root_exc": "MemoryError"}
    (failure,) = failures(run_with(("a.log", 9, "traceback", "RuntimeError", attrs)))
    assert failure.shape == "oom"


def test_lines_below_a_message_decide_only_where_its_first_says_little() -> None:
    def cause(message: str) -> str:
        attrs = {"role": "root", "exc": "RuntimeError", "message": message, "more": "No space left on device"}
        return failures(run_with(("a.log", 9, "traceback", "RuntimeError", attrs)))[0].cause

    assert cause("the mill stopped") == "disk_full"
    assert cause("Loss became infinite or NaN") != "disk_full"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (137, ["silent_death_sigkill"]),
        (-9, ["silent_death_sigkill"]),
        (139, ["silent_death_segv"]),
        (134, []),
        (1, []),
        (143, []),
    ],
)
def test_the_code_of_a_kill_in_a_file_is_a_death(code: int, told: list[str]) -> None:
    attrs = {"role": "context", "shape": "", "exit_code": str(code)}
    run = run_with(("exit_code", 1, "process.exit", f"the job's script recorded exit code {code}", attrs))
    assert [f.cause for f in found(run, "CRH002")] == told


def test_a_kill_without_a_sender_is_no_oom() -> None:
    run = run_with(
        (
            "a.log",
            9,
            "exitcode-9",
            "failed (exitcode: -9) local_rank: 5 (pid: 8)",
            {"role": "symptom", "shape": "crash"},
        )
    )
    (hit,) = found(run, "CRH002")
    assert (hit.culprits, hit.causal, hit.cause) == ((5,), Causal.SYMPTOM, "silent_death_sigkill")
    assert found(run, "OOM001") == []


def test_a_syntax_error_needs_no_traceback_and_no_other_exception_line_is_believed() -> None:
    attrs = {"role": "context", "shape": "crash", "cause": "exception_line"}
    (failure,) = failures(run_with(("a.log", 3, "py-exception-terminal", "x", {**attrs, "exc": "SyntaxError"})))
    assert failure.shape == "crash"
    assert failures(run_with(("a.log", 3, "py-exception-terminal", "x", {**attrs, "exc": "TypeError"}))) == ()


def test_clocks_order_errors_of_different_files() -> None:
    error = {"role": "root", "exc": "ValueError", "message": "made up"}
    run = run_with(
        ("a/rank0.log", 5, "traceback", "late", {**error, "rank": "0"}),
        ("b/rank1.log", 6, "traceback", "early", {**error, "rank": "1"}),
        t_ns={5: 20 * SECOND, 6: 10 * SECOND},
    )
    (hit,) = found(run, "CRH001")
    assert hit.culprits == (1,)


def test_a_stop_names_who_stopped_it() -> None:
    stop = {"role": "root", "shape": "stopped", "cause": "external_termination"}
    run = run_with(
        ("job.out", 5, "sigterm15", "got signal: 15", stop),
        ("job.out", 9, "lsf-owner", "TERM_OWNER: job killed by owner.", {**stop, "cause": "killed_by_owner"}),
    )
    (hit,) = found(run, "STP001")
    assert hit.cause == "killed_by_owner"


@pytest.mark.parametrize(
    ("tail", "stuck"),
    [
        ("srun: error: n1: task 0: Terminated", (0,)),
        ("srun: error: n1: tasks 0-7: Terminated", None),
    ],
)
def test_a_finished_run_whose_last_task_must_be_killed_hung_at_shutdown(
    tail: str, stuck: tuple[int, ...] | None
) -> None:
    run = run_with(
        ("job.out", 5, "success", "finished", {"role": "benign"}),
        ("job.out", 9, "srun-exit", tail, {"role": "symptom", "shape": "crash", "cause": "task_failed"}),
    )
    assert [hit.culprits for hit in found(run, "HNG002")] == ([stuck] if stuck else [])


def test_a_kill_long_after_success_is_a_shutdown_hang_and_one_soon_after_is_not() -> None:
    stop = {"role": "root", "shape": "stopped", "cause": "time_limit"}
    for gap_s, hits in ((5, 0), (400, 1), (3600 + 5, 0)):
        run = run_with(
            ("job.out", 5, "success", "finished", {"role": "benign"}),
            ("job.out", 9, "slurm-timelimit", "DUE TO TIME LIMIT", stop),
            t_ns={5: 1000 * SECOND, 9: (1000 + gap_s) * SECOND},
        )
        assert len(found(run, "HNG002")) == hits


def test_a_lost_peer_is_said_with_low_confidence() -> None:
    gone = {"role": "symptom", "shape": "hang", "cause": "peer_gone", "rank": "0"}
    (hit,) = found(run_with(("a.log", 9, "gloo-closed", "Connection closed by peer", gone)), "CRH003")
    assert (hit.confidence, hit.causal) == (Confidence.LOW, Causal.SYMPTOM)


def test_a_shell_that_found_no_command_is_named_unless_others_speak_of_the_end() -> None:
    shell = {"role": "symptom", "shape": "crash", "cause": "command_not_found"}
    missing = ("a.log", 3, "shell-not-found", "script: line 16: conda: command not found", shell)
    failed = ("a.log", 9, "srun-exit", "task 0: Exited with exit code 1", shell | {"cause": "task_failed"})
    assert [f.cause for f in found(run_with(missing), "CRH003")] == ["command_not_found"]
    assert [f.cause for f in found(run_with(missing, failed), "CRH003")] == ["peer_gone"]


def test_a_traceback_cut_short_after_an_echoed_interrupt_is_a_stop() -> None:
    (hit,) = found(run_with(("a.log", 9, "traceback", "^CTraceback (most recent call last):", {})), "STP001")
    assert (hit.cause, "keyboard" in hit.title) == ("interrupted_by_user", True)


def test_what_a_program_printed_is_not_called_raised() -> None:
    root = {"role": "root", "shape": "crash", "cause": "bad_config"}
    (hit,) = found(run_with(("a.log", 9, "hydra-config", "Could not override 'lr'.", root)), "CRH001")
    assert hit.title == "the run failed with Could not override 'lr'."


def test_damaged_attributes_are_no_error() -> None:
    frame = pl.DataFrame({"source": ["a"], "line": [1], "code": ["traceback"], "text": ["x"], "attrs": ['{"role":']})
    assert standing(run_of("made", {"events": frame}))[0].cause == "traceback_cut_short"


def test_the_rank_of_a_launcher_s_failure_block_is_that_of_its_exit_code() -> None:
    block = {"role": "context", "rank": "6"}
    code = {"role": "symptom", "shape": "crash", "cause": "killed_by_sigkill"}
    run = run_with(
        ("a.log", 4, "elastic-rank", "  rank      : 6 (local_rank: 2)", block),
        ("a.log", 5, "exitcode-9", "  exitcode  : -9 (pid: 71)", code),
    )
    (failure,) = failures(run)
    assert failure.rank == 6


def test_a_line_far_from_a_failure_block_gets_no_rank_of_it() -> None:
    block = {"role": "context", "rank": "6"}
    code = {"role": "symptom", "shape": "crash", "cause": "killed_by_sigkill"}
    run = run_with(
        ("a.log", 4, "elastic-rank", "  rank      : 6 (local_rank: 2)", block),
        ("a.log", 90, "exitcode-9", "  exitcode  : -9 (pid: 71)", code),
    )
    assert failures(run)[0].rank is None


@pytest.mark.parametrize(
    ("code", "shape"), [("255", "stopped"), ("130", "stopped"), ("1", "crash"), ("143", "stopped")]
)
def test_an_exit_record_that_is_not_zero_is_a_failure(code: str, shape: str) -> None:
    attrs = {"role": "context", "shape": "", "exit_code": code}
    (failure,) = standing(run_with(("run.wandb", 9, "wandb.exit", f"exit code {code}", attrs)))
    assert failure.shape == shape


def test_an_exit_record_beside_a_traceback_does_not_hide_it() -> None:
    attrs = {"role": "root", "shape": "crash", "exc": "ValueError", "message": "bad width"}
    run = run_with(
        ("run.wandb", 5, "traceback", "ValueError: bad width", attrs),
        ("run.wandb", 9, "wandb.exit", "exit code 1", {"role": "context", "exit_code": "1"}),
    )
    (hit,) = found(run, "CRH001")
    assert "bad width" in hit.title


def test_the_errors_of_a_run_are_judged_once() -> None:
    run = run_with(("a.log", 7, "cuda-oom", "CUDA out of memory. Tried to allocate 1 GiB", ROOT_OOM))
    assert failures(run) is failures(run)


def test_a_traceback_beside_the_program_is_noise_after_success() -> None:
    aside = {"role": "root", "shape": "crash", "exc": "RuntimeError", "message": "queue closed", "aside": "yes"}
    run = run_with(
        ("a.log", 5, "success", "training complete", {"role": "benign"}),
        ("a.log", 9, "traceback", "RuntimeError: queue closed", aside),
    )
    assert standing(run) == ()


def test_an_error_of_all_ranks_alike_is_the_programs_and_no_rank_is_blamed() -> None:
    error = {"role": "root", "exc": "ValueError", "message": "shape 3 does not fit"}
    run = run_with(
        ("a/rank0.log", 5, "traceback", "one", {**error, "rank": "0"}),
        ("b/rank1.log", 6, "traceback", "other", {**error, "rank": "1"}),
    )
    (hit,) = found(run, "CRH001")
    assert hit.culprits == ()
    assert hit.title.startswith("both ranks raised")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
            "the loss scale is at its",
        ),
        ("NaN/Inf loss at step 21 (consecutive=1, total=1)", "a NaN detector fired"),
    ],
)
def test_a_line_that_speaks_of_the_loss_scale_is_no_detector(line: str, said: str) -> None:
    steps = [f"step {step} loss {3 - step / 100:.4f}" for step in range(1, 21)]
    log = "\n".join([*steps, *(text for step in (21, 22, 23) for text in (line, f"step {step} loss 2.0"))])
    report = report_of(ingest_bytes("train.log", log.encode()))
    assert next(f.title for f in report.findings if f.rule == "NAN001").startswith(said)
