"""Attempts: a process is an attempt, the last one is judged, and a loop is said."""

from __future__ import annotations

import math
import os
import random
from pathlib import Path

import pytest

from forensics import triage
from forensics.model import Outcome, Shape
from tests.unit.truth._runs import DONE, TRACEBACK, falling, judged, said, shape, write

SHARD = "RuntimeError: corrupted shard 7"


@pytest.mark.parametrize(
    "resumed", ["Resuming from step 200", "loading weights of step 200", "Restored checkpoint 200"]
)
def test_attempts_that_die_at_one_step_are_a_loop_in_the_headline(resumed: str, tmp_path: Path) -> None:
    again = [line for _ in range(5) for line in (resumed, *falling(201, 220), *TRACEBACK, SHARD)]
    verdict = said(tmp_path, [*falling(1, 200), *again])
    assert (verdict.onset.step, "5 attempts died at step 220" in verdict.headline) == (220, True)


@pytest.mark.parametrize(("count", "further"), [(5, 7), (1, 0)])
def test_attempts_that_get_further_each_time_and_a_single_one_are_no_loop(
    count: int, further: int, tmp_path: Path
) -> None:
    again = [
        line
        for turn in range(count)
        for line in ("Resuming from step 200", *falling(201, 220 + further * turn), *TRACEBACK, SHARD)
    ]
    verdict = said(tmp_path, [*falling(1, 200), *again])
    assert (verdict.outcome, "attempts died" in verdict.headline) == (Outcome.FAILED, False)


def test_of_appended_logs_the_last_attempt_is_judged(tmp_path: Path) -> None:
    first, last = (*TRACEBACK, "ValueError: the first"), (*TRACEBACK, "KeyError: 'the last'")
    verdict = said(tmp_path, [*falling(1, 80), *first, *falling(1, 60), *last])
    assert (verdict.onset.step, "the last" in verdict.headline) == (60, True)
    healed = said(tmp_path / "healed", [*falling(1, 80), *first, *falling(1, 60), DONE])
    assert healed.outcome is Outcome.HEALTHY


ALONE = (
    "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to"
    " (10.1.2.3, 29400)."
)


@pytest.mark.parametrize(("first", "last", "found"), [(ALONE, SHARD, Shape.CRASH), (SHARD, ALONE, Shape.HANG)])
def test_a_rank_that_did_not_join_an_earlier_attempt_does_not_explain_the_last_one(
    first: str, last: str, found: Shape, tmp_path: Path
) -> None:
    ends = [[*falling(begin, 180), *TRACEBACK, words] for begin, words in ((1, first), (151, last))]
    verdict = said(tmp_path, [*ends[0], "Resuming from step 150", *ends[1]])
    assert verdict.shape is found


@pytest.mark.parametrize("again", [True, False])
def test_a_schedule_that_begins_again_after_a_clean_preemption_is_suspect(*, again: bool, tmp_path: Path) -> None:
    rng = random.Random(3)

    def line(at: int) -> str:
        into = at - 200 if again and at > 200 else at
        return f"step {at} | loss {3 - at / 200 + rng.gauss(0, 0.01):.4f} | lr {1e-3 * (1 - into / 500):.3e}"

    stop = ["Received SIGTERM, saving checkpoint step_200 and exiting", "Resuming from checkpoint step_200"]
    verdict = said(tmp_path, [*map(line, range(1, 201)), *stop, *map(line, range(201, 401)), DONE])
    expected = (Outcome.SUSPECT, Shape.LEARNING) if again else (Outcome.HEALTHY, None)
    assert shape(verdict) == expected


def test_the_chain_stays_within_the_judged_attempt_and_runs_forwards(tmp_path: Path) -> None:
    lines = [*falling(1, 80), *TRACEBACK, "ValueError: the first", *falling(81, 120), "step 121 | loss: nan"]
    lines += [*(f"step {at} | loss: nan" for at in range(122, 140)), *TRACEBACK, "ValueError: loss is nan, giving up"]
    found = judged(tmp_path, {"train.log": lines})
    told = [found.findings[at] for at in found.verdict.chain_findings]
    assert all("the first" not in one.title for one in told)
    places = [one.evidence[0].locator.line or 0 for one in told]
    assert places == sorted(places)
    assert found.verdict.onset.step == 121


def test_a_requeued_job_whose_metrics_go_to_another_file_is_judged_by_its_end(tmp_path: Path) -> None:
    head = ["loading the configuration of the run from disk", "building the model and its optimizer"]
    stop = "slurmstepd: error: *** JOB 48213 ON node07 CANCELLED AT 2026-01-02T03:04:05 DUE TO JOB REQUEUE ***"
    errors = "\n".join([*head, stop, *head]) + "\n"
    steps = [f"step {s} loss {3 - s / 100:.3f} lr 1e-4" for s in range(1, 101)]

    def outcome(*last: str) -> str:
        files = {"slurm-1.err": errors, "slurm-1.out": "\n".join([*steps, *last]) + "\n"}
        return judged(tmp_path / f"{len(last)}", files).verdict.outcome.value

    assert outcome("Training complete.") == "healthy"
    assert outcome() == "failed"


def test_a_stop_of_a_log_that_prints_on_is_over_where_the_next_attempt_reached_its_plan(tmp_path: Path) -> None:
    stop = "slurmstepd: error: *** JOB 48213 ON node07 CANCELLED AT 2026-01-02T03:04:05 DUE TO JOB REQUEUE ***"
    first = [f"step {s}/100 loss {3 - s / 100:.3f} lr 1e-4" for s in range(1, 41)]
    resumed = ["resuming from checkpoints/step_40"]

    def outcome(reached: int, *after: str) -> str:
        rest = [f"step {s}/100 loss {3 - s / 100:.3f} lr 1e-4" for s in range(41, reached + 1)]
        files = {
            "slurm-1.err": "\n".join([stop, *after]) + "\n",
            "slurm-1.out": "\n".join([*first, *resumed, *rest]) + "\n",
        }
        return judged(tmp_path / f"{reached}-{len(after)}", files).verdict.outcome.value

    assert outcome(100, "UserWarning: the data ran out") == "healthy"
    assert outcome(100) == "failed"
    assert outcome(80, "UserWarning: the data ran out") == "failed"


def test_a_job_whose_last_attempt_finished_was_put_back_into_the_queue_before(tmp_path: Path) -> None:
    """Rich prints a time where it changes only, so no line says when the program finished."""
    steps = [
        f"           INFO     Step {s}: loss={3 - s / 100:.3f}, grad_norm=1.0, step_time=0.051s" for s in range(1, 101)
    ]
    stop = "slurmstepd: error: *** JOB 48213 ON node07 CANCELLED AT 2026-01-02T03:04:21 DUE TO JOB REQUEUE ***"
    begun = "INFO     training for 100 steps"
    again = [f"[03:04:25] {begun}", "           INFO     resumed from checkpoints/step_40 at step 40"]
    end = "           INFO     training finished after 100 steps"

    def outcome(name: str, *lines: str) -> str:
        files = {"slurm-1.err": f"{stop}\n", "slurm-1.out": "\n".join([f"[03:04:00] {begun}", *lines]) + "\n"}
        return judged(tmp_path / name, files).verdict.outcome.value

    assert outcome("both", *steps[:40], *again, *steps[40:], end) == "healthy"
    assert outcome("no-end", *steps[:40], *again, *steps[40:]) == "failed"
    assert outcome("one", *steps, end) == "failed"


@pytest.mark.parametrize(("loaded", "cause"), [(48, "older_weights_loaded"), (200, "optimizer_lost")])
def test_weights_of_an_older_checkpoint_than_the_count_goes_on_from_are_told(
    loaded: int, cause: str, tmp_path: Path
) -> None:
    noise = random.Random(4)

    def record(step: int, learned: int) -> str:
        return f"INFO step {step:5d} train_loss {16 * math.exp(-learned / 60) + 0.4 + 0.02 * noise.random():.4f}"

    lines = [record(step, step) for step in range(0, 204, 4)]
    lines += ["WARN walltime nearly used, leaving", f"INFO loaded ckpt-{loaded}.pt; continuing at step 200"]
    lines += [record(step, step - 152) for step in range(200, 420, 4)]
    verdict = said(tmp_path, [*lines, DONE])
    assert (verdict.outcome, verdict.cause, verdict.onset.step) == (Outcome.SUSPECT, cause, 200)


@pytest.mark.parametrize(("later", "shape"), [(60, None), (-4000, Shape.STOPPED)])
def test_a_stop_before_the_last_records_of_a_table_of_unix_times_is_over(
    later: int, shape: Shape | None, tmp_path: Path
) -> None:
    begin = 1_795_803_000  # 2026-11-27 18:10 UTC
    rows = [f"{at},{3 - at / 100:.3f},{begin + at}.1" for at in range(1, 174)]
    rows += [f"{at},{3 - at / 100:.3f},{begin + 173 + later + at - 150}.1" for at in range(151, 260)]
    stop = "W1127 18:12:53.500000 6479 torch/distributed/elastic/agent/server/api.py:753] Received 15 death signal"
    files = {"curve.csv": ["batch,huber_loss,seconds", *rows], "out.a.txt": [f"{stop}, shutting down workers"]}
    os.utime(write(tmp_path / "run", files) / "out.a.txt", (begin, begin))
    assert triage(tmp_path / "run", figures=False).verdict.shape is shape


@pytest.mark.parametrize(
    ("stops", "closing", "is_over"),
    [((20, 40), 30, True), ((20, 40), 2, False), ((40,), 30, False), ((38, 40), 30, False)],
    ids=["each lines behind the other", "the last just before the end", "a single one", "two at once"],
)
def test_a_log_that_tells_of_several_stops_in_turn_is_of_several_processes(
    stops: tuple[int, ...], closing: int, is_over: bool, tmp_path: Path
) -> None:
    out = [f"part {at} saved" + "\nSIGUSR1 received, requeue" * (at in stops) for at in range(41 + closing)]
    csv = ["epoch,loss", *(f"{at},{2 / (at + 1):.4f}" for at in range(60))]
    files = {"out.txt": [*out, "training complete"], "log.csv": csv}
    verdict = judged(tmp_path, files).verdict
    assert shape(verdict) == ((Outcome.HEALTHY, None) if is_over else (Outcome.FAILED, Shape.STOPPED))
