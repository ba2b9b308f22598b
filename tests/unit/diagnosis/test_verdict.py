"""Cause before consequence: what the verdict chooses when several findings speak."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest

from forensics.diagnosis.verdict import decide
from forensics.model import (
    Confidence,
    Coverage,
    Evidence,
    Finding,
    Locator,
    Onset,
    Outcome,
    Severity,
    Shape,
    Verdict,
)
from forensics.registry import load
from forensics.store.run import Run, run_of
from forensics.values import replace

Event = tuple[int, str, dict[str, str]]
OOM = {"role": "root", "shape": "oom"}
WATCHDOG = {"role": "symptom", "shape": "hang"}
STOP = {"role": "root", "shape": "stopped", "cause": "external_termination"}
GONE = {"role": "symptom", "shape": "hang", "cause": "peer_gone"}


def error(name: str, message: str = "made up") -> dict[str, str]:
    return {"role": "root", "exc": name, "message": message}


def a_run(events: Sequence[Event], steps: Sequence[int] = (), first_line: int = 1, **more: Sequence[Any]) -> Run:
    """Events as (line, code, attrs); one loss per step from `first_line` on; both in one file."""
    told = pl.DataFrame(
        {
            "source": more.get("sources", ["train.log"] * len(events)),
            "seq": list(range(len(events))),
            "line": [line for line, _, _ in events],
            "code": [code for _, code, _ in events],
            "text": [attrs.get("text", code) for _, code, attrs in events],
            "attrs": [json.dumps(attrs) for _, _, attrs in events],
            "rank": [int(attrs["rank"]) if "rank" in attrs else None for _, _, attrs in events],
        },
        schema_overrides={"rank": pl.Int32, "line": pl.Int64},
    )
    losses = pl.DataFrame(
        {
            "source": ["train.log"] * len(steps),
            "seq": list(range(len(steps))),
            "line": [first_line + i for i in range(len(steps))],
            "step": list(steps),
            "name": ["loss"] * len(steps),
            "value": [3.0 - 0.01 * i for i in range(len(steps))],
        },
        schema_overrides={"line": pl.Int64, "step": pl.Int64},
    )
    return run_of("made", {"events": told, "metrics": losses})


def judged(run: Run, *more: Finding) -> Verdict:
    found = [f for rule in load("rules").rules for f in rule(run)]
    return decide([*found, *more], run, Coverage())


def nan_at(line: int) -> Finding:
    return Finding(
        rule="NAN001",
        shape=Shape.NAN,
        severity=Severity.ERROR,
        confidence=Confidence.HIGH,
        title="loss is nan",
        because="made up",
        evidence=(Evidence("train.log", Locator(line=line)),),
    )


def test_an_empty_run_cannot_be_judged() -> None:
    verdict = judged(run_of("made", {}))
    assert (verdict.outcome, verdict.shape) == (Outcome.CANNOT_SAY, None)


def test_finite_losses_and_a_success_marker_are_healthy() -> None:
    verdict = judged(a_run([(50, "success", {"role": "context"})], range(40)))
    assert (verdict.outcome, verdict.confidence) == (Outcome.HEALTHY, Confidence.LOW)


def test_of_finite_losses_without_an_end_nothing_can_be_said() -> None:
    assert judged(a_run([], range(40))).outcome is Outcome.CANNOT_SAY


def test_an_oom_explains_the_time_outs_that_follow_it() -> None:
    events: list[Event] = [
        (41, "cuda-oom", {**OOM, "rank": "3"}),
        *[(60 + r, "nccl-watchdog", {**WATCHDOG, "rank": str(r)}) for r in range(3)],
    ]
    verdict = judged(a_run(events, range(40)))
    assert (verdict.shape, verdict.culprits, verdict.onset.step) == (Shape.OOM, (3,), 39)
    assert len(verdict.chain) == 2


def test_two_findings_of_one_line_are_one_link_of_the_chain() -> None:
    run = a_run([(41, "cuda-oom", OOM)], range(40))
    at_its_line, below = (replace(nan_at(line), shape=Shape.HANG, title="the run hangs") for line in (41, 42))
    assert len(judged(run, at_its_line).chain) == 1
    assert len(judged(run, below).chain) == 2


def test_a_time_out_names_the_rank_that_did_not_report() -> None:
    events: list[Event] = [(60 + r, "nccl-watchdog", {**WATCHDOG, "rank": str(r)}) for r in (0, 1, 3)]
    verdict = judged(a_run([(2, "last_line", {"role": "context", "rank": "2"}), *events], range(40)))
    assert (verdict.shape, verdict.culprits) == (Shape.HANG, (2,))


@pytest.mark.parametrize(
    ("shape", "leads"), [(Shape.NAN, True), (Shape.OOM, True), (Shape.HANG, False), (Shape.CRASH, False)]
)
def test_who_decides_over_the_crashes_of_several_ranks_weighed_their_hangs_and_crashes_alone(
    shape: Shape, *, leads: bool
) -> None:
    lost = replace(nan_at(5), shape=shape, cause="lost", onset=Onset(step=10))
    proof = (Evidence("b.log", Locator(line=9)),)
    decider = replace(
        lost, rule="HNG009", shape=Shape.CRASH, cause="fleet", evidence=proof, decides=True, culprits=(3,)
    )
    assert decide([lost, decider], a_run([]), Coverage()).cause == ("lost" if leads else "fleet")


def test_an_error_that_may_echo_another_is_the_consequence_of_a_time_out_before_it() -> None:
    events: list[Event] = [
        (60, "nccl-watchdog", {**WATCHDOG, "rank": "1"}),
        (70, "traceback", {**error("FileNotFoundError"), "rank": "6"}),
    ]
    assert judged(a_run(events, range(40))).shape is Shape.HANG


@pytest.mark.parametrize(
    ("name", "first", "cause"),
    [("ValueError", 60, "exception_one_rank"), ("FileNotFoundError", 90, "file_missing")],
)
def test_a_ranks_own_error_and_one_before_the_time_out_are_the_crash(name: str, first: int, cause: str) -> None:
    events: list[Event] = [
        (first, "nccl-watchdog", {**WATCHDOG, "rank": "1"}),
        (70, "traceback", {**error(name), "rank": "6"}),
    ]
    verdict = judged(a_run(sorted(events, key=lambda event: event[0]), range(40)))
    assert (verdict.shape, verdict.culprits, verdict.cause) == (Shape.CRASH, (6,), cause)


def test_an_exception_explains_closed_connections_even_before_it() -> None:
    events: list[Event] = [
        (60, "traceback", {**error("RuntimeError", "Connection reset by peer"), "rank": "0"}),
        (70, "traceback", {**error("ValueError"), "rank": "2"}),
    ]
    verdict = judged(a_run(events, range(40)))
    assert (verdict.shape, verdict.culprits) == (Shape.CRASH, (2,))


def test_only_closed_connections_make_a_crash_of_low_confidence() -> None:
    verdict = judged(a_run([(60, "nccl-remote-error", GONE)], range(40)))
    assert (verdict.shape, verdict.confidence) == (Shape.CRASH, Confidence.LOW)


def test_nan_explains_a_kill_that_follows_it() -> None:
    killed: list[Event] = [(80, "exitcode-9", {"role": "symptom", "shape": "oom"})]
    assert judged(a_run(killed, range(40)), nan_at(30)).shape is Shape.NAN


def test_a_time_limit_after_nan_is_no_stop() -> None:
    assert judged(a_run([(80, "slurm-timelimit", STOP)], range(40)), nan_at(30)).shape is Shape.NAN


def test_an_exception_before_a_stop_is_the_cause() -> None:
    events: list[Event] = [(60, "traceback", error("KeyError")), (61, "sigterm15", STOP)]
    assert judged(a_run(events, range(40))).shape is Shape.CRASH


def test_an_exception_after_a_stop_is_tear_down() -> None:
    events: list[Event] = [(60, "sigterm15", STOP), (61, "traceback", error("KeyError"))]
    assert judged(a_run(events, range(40))).shape is Shape.STOPPED


@pytest.mark.parametrize("code", ["slurm-timelimit", "childfailed", "nccl-aborted"])
def test_noise_after_success_is_tear_down(code: str) -> None:
    attrs = {"slurm-timelimit": STOP}.get(code, GONE)
    verdict = judged(a_run([(60, "success", {"role": "benign"}), (70, code, attrs)], range(40)))
    assert verdict.outcome is Outcome.HEALTHY


def test_an_oom_after_training_has_ended_is_still_an_oom() -> None:
    events: list[Event] = [(60, "success", {"role": "context"}), (90, "cuda-oom", OOM)]
    assert judged(a_run(events, range(40))).shape is Shape.OOM


def test_a_success_of_an_earlier_run_in_the_file_excuses_nothing() -> None:
    events: list[Event] = [(5, "success", {"role": "context"}), (90, "sigterm15", STOP)]
    assert judged(a_run(events, range(40), first_line=10)).shape is Shape.STOPPED


def test_a_graceful_stop_that_says_complete_is_a_stop() -> None:
    events: list[Event] = [(60, "sigterm15", STOP), (70, "success", {"role": "context"})]
    verdict = judged(a_run(events, range(40)))
    assert verdict.shape is Shape.STOPPED
    assert verdict.against


def test_an_error_that_the_run_outlived_is_no_failure() -> None:
    verdict = judged(a_run([(5, "cuda-oom", OOM), (60, "success", {"role": "benign"})], range(40), first_line=10))
    assert verdict.outcome is Outcome.HEALTHY


def test_another_rank_s_steps_do_not_excuse_a_dead_rank() -> None:
    run = a_run([(5, "cuda-oom", {**OOM, "rank": "3"})], range(40), first_line=10)
    metrics = run.collect("metrics").with_columns(rank=pl.lit(0, dtype=pl.Int32))
    assert judged(run_of("made", {"events": run.collect("events"), "metrics": metrics})).shape is Shape.OOM


def test_a_benign_traceback_is_no_failure() -> None:
    benign = {**error("ImportError"), "role": "benign"}
    verdict = judged(a_run([(60, "traceback", benign), (70, "success", {"role": "benign"})], range(40)))
    assert verdict.outcome is Outcome.HEALTHY


def test_the_signature_in_a_traceback_s_last_line_names_it() -> None:
    said = "No space left on device"
    events: list[Event] = [
        (60, "enospc", {"role": "root", "shape": "crash", "cause": "disk_full", "text": f"OSError: {said}"}),
        (60, "traceback", error("OSError", said)),
    ]
    verdict = judged(a_run(events, range(40)))
    assert (verdict.shape, verdict.cause, verdict.runner_up) == (Shape.CRASH, "disk_full", None)
    assert "train.log:60" in verdict.headline


def test_the_order_of_findings_does_not_change_the_answer() -> None:
    run = a_run([(60, "sigterm15", STOP), (61, "traceback", error("KeyError"))], range(40))
    found = [f for rule in load("rules").rules for f in rule(run)]
    told, back = decide(found, run, Coverage()), decide(found[::-1], run, Coverage())
    assert replace(told, lead=None, chain_findings=()) == replace(back, lead=None, chain_findings=())
    assert told.lead is not None
    assert back.lead is not None
    assert found[told.lead] is found[::-1][back.lead]
    assert [found[at] for at in told.chain_findings] == [found[::-1][at] for at in back.chain_findings]


def test_wrong_learning_at_the_line_of_the_cause_is_neither_a_link_nor_a_rival() -> None:
    run = a_run([], range(40))
    found = nan_at(30)
    at_its_line, before = (replace(nan_at(line), shape=Shape.LEARNING, title="the loss exploded") for line in (30, 20))
    assert judged(run, found, at_its_line).chain == judged(run, found).chain
    assert judged(run, found, at_its_line).runner_up is None
    assert len(judged(run, found, before).chain) == 2
    assert judged(run, found, before).runner_up is None


def test_a_finding_that_the_cause_explains_is_no_rival() -> None:
    events: list[Event] = [
        (41, "cuda-oom", {**OOM, "rank": "3"}),
        *[(60 + r, "nccl-watchdog", {**WATCHDOG, "rank": str(r)}) for r in range(3)],
    ]
    verdict = judged(a_run(events, range(40)))
    assert len(verdict.chain) == 2
    assert verdict.runner_up is None


def oom_of(rank: int | None, step: int | None, line: int, cause: str = "gpu_out_of_memory") -> Finding:
    """An out-of-memory error at a line of a snapshot or a log, each of which knows something else of it."""
    onset = Onset(step=step, step_lo=step, rank=rank)
    return replace(nan_at(line), rule=f"OOM0{line}", shape=Shape.OOM, cause=cause, onset=onset)


@pytest.mark.parametrize(
    ("rank", "cause", "step"),
    [
        (None, "gpu_out_of_memory", 6),
        (0, "gpu_out_of_memory", 6),
        (1, "gpu_out_of_memory", None),
        (0, "fragmentation", None),
    ],
)
def test_a_cause_without_a_step_has_that_of_a_finding_of_the_same_cause_and_rank(
    rank: int | None, cause: str, step: int | None
) -> None:
    snapshot, log = oom_of(0, None, 10), oom_of(rank, 6, 20, cause)
    verdict = decide([snapshot, log], run_of("made", {}), Coverage())
    assert verdict.lead == 0
    assert (verdict.onset.step, verdict.onset.step_lo, verdict.onset.rank) == (step, step, 0)
    assert verdict.onset_confidence == (None if step is None else Confidence.HIGH)


def test_a_cause_keeps_the_step_that_it_knows_itself() -> None:
    verdict = decide([oom_of(0, 5, 10), oom_of(0, 6, 20)], run_of("made", {}), Coverage())
    assert verdict.onset.step == 5


@pytest.mark.parametrize(
    ("title", "headline"),
    [
        ("the loss exploded", "The loss exploded (train.log:10)"),
        ("eval_loss rose from 1.3 to 1.5", "eval_loss rose from 1.3 to 1.5 (train.log:10)"),
        ("a.log shows loss = nan", "a.log shows loss = nan (train.log:10)"),
        ("stalled", "Stalled (train.log:10)"),
    ],
)
def test_a_headline_begins_with_a_capital_unless_it_begins_with_a_name(title: str, headline: str) -> None:
    assert decide([replace(nan_at(10), title=title)], run_of("made", {}), Coverage()).headline == headline
