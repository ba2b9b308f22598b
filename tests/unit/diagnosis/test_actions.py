"""The first action names what is to be changed for the cause; what the run has already is not advised."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from forensics.action import Action, Setting
from forensics.diagnosis.actions import MOST, actions, advised
from forensics.knowledge.causes import causes
from forensics.model import Checkpoint, Confidence, Evidence, Finding, Locator, Onset, Outcome, Severity, Shape, Verdict
from forensics.store.run import Run, run_of


def finding(shape: Shape, cause: str, *, name: str | None = None, quote: str = "x", **more: Any) -> Finding:
    proof = Evidence("a.log", Locator(line=7), quote, name=name, value=more.pop("value", None))
    return Finding("XXX001", shape, Severity.ERROR, Confidence.HIGH, "t", "b", (proof,), cause=cause, **more)


def verdict_of(lead: Finding, **more: Any) -> Verdict:
    return Verdict(Outcome.FAILED, "h", lead.shape, cause=lead.cause, identity=lead.identity, **more)


def run_with(**facts: str) -> Run:
    rows = [
        {"source": "c.toml", "line": n, "key": k, "value": v, "family": "config"}
        for n, (k, v) in enumerate(facts.items(), 3)
    ]
    return run_of("a", {"facts": pl.DataFrame(rows)} if rows else {})


def told(lead: Finding, run: Run | None = None, *others: Finding, **more: Any) -> tuple[Action, ...]:
    return actions(run or run_with(), verdict_of(lead, **more), (lead, *others))


def texts(found: tuple[Action, ...]) -> str:
    return "\n".join(action.text for action in found)


BLOWUP = finding(Shape.NAN, "optimization_blowup")
UNEXPLAINED = finding(Shape.NAN, "data_or_numerics")
HOST = finding(Shape.OOM, "host_out_of_memory", name="slurm-oom-kill")
DEVICE = finding(Shape.OOM, "gpu_out_of_memory", name="cuda-oom")


def test_of_a_blow_up_with_clipping_off_the_clip_comes_first_with_its_present_value() -> None:
    first = told(BLOWUP, run_with(max_grad_norm="0.0", lr="0.003"))[0]
    assert "clip" in first.text
    assert first.setting == Setting("max_grad_norm", "0.0", "c.toml:3")


def test_of_a_blow_up_with_clipping_at_one_the_learning_rate_comes_first_and_no_clip_is_advised() -> None:
    found = told(BLOWUP, run_with(max_grad_norm="1.0", lr="0.003"))
    assert found[0].setting == Setting("lr", "0.003", "c.toml:4")
    assert "clip" not in texts(found).lower()


@pytest.mark.parametrize(
    ("decay", "first"), [("0.4", "Lower the weight decay"), ("0.39", "Compare three learning rates")]
)
def test_a_plateau_is_laid_to_a_weight_decay_that_nobody_trains_with(decay: str, first: str) -> None:
    found = told(finding(Shape.LEARNING, "plateau"), run_with(weight_decay=decay, lr="0.003"))
    assert found[0].text.startswith(first)


def test_bf16_is_advised_only_where_the_run_is_not_in_bf16() -> None:
    collapse = finding(Shape.NAN, "loss_scale_collapse")
    assert "bf16" in told(collapse)[0].text
    assert "bf16" in told(collapse, run_with(precision="16-mixed"))[0].text
    assert "bf16" not in texts(told(collapse, run_with(precision="bf16-mixed")))


def test_fp8_is_named_first_where_it_is_on_and_never_where_it_is_not() -> None:
    assert "fp8" in told(UNEXPLAINED, run_with(fp8="true"))[0].text
    assert "fp8" not in texts(told(UNEXPLAINED)) + texts(told(UNEXPLAINED, run_with(fp8="false")))


def test_a_bad_sample_is_looked_for_at_the_step_and_the_rank_of_the_onset() -> None:
    first = told(UNEXPLAINED, onset=Onset(step=97, rank=3))[0]
    assert "the batch of step 97 on rank 3" in first.text


def test_an_action_names_the_checkpoint_that_it_starts_from() -> None:
    assert "step 80" in texts(told(UNEXPLAINED, checkpoint=Checkpoint(80, "ckpt/80")))


def test_memory_of_the_host_is_never_answered_with_advice_for_the_device() -> None:
    words = texts(told(HOST)).lower()
    assert "host memory" in words
    assert not any(word in words for word in ("micro-batch", "activation", "gpu", "sequence"))


def test_memory_of_the_device_is_never_answered_with_advice_for_the_host() -> None:
    words = texts(told(DEVICE)).lower()
    assert "micro-batch" in words
    assert not any(word in words for word in ("resident", "loader worker", "--mem"))


@pytest.mark.parametrize(("metric", "word"), [("process_rss_gib", "host memory"), ("mem_allocated_gib", "loss.item()")])
def test_a_leak_is_answered_by_whose_memory_grows(metric: str, word: str) -> None:
    leak = finding(Shape.OOM, "leak_per_step", name=metric, value=4.0)
    first = told(leak)[0].text
    assert word in first
    assert ("host memory" in first) == (metric == "process_rss_gib")


def test_growth_beside_an_out_of_memory_error_is_what_is_looked_at_first() -> None:
    grew = finding(Shape.OOM, "host_leak", quote="rss")
    assert "holds on to" in told(HOST, None, grew)[0].text
    assert "holds on to" not in texts(told(HOST))


def test_the_advice_of_the_error_line_is_that_of_the_line_that_the_verdict_rests_on() -> None:
    full = finding(Shape.OOM, "gpu_out_of_memory", name="nccl-oom")
    assert "NCCL_BUFFSIZE" in told(full)[0].text
    assert "NCCL_BUFFSIZE" not in texts(told(DEVICE))


def test_advice_for_one_kind_of_device_is_told_where_the_run_shows_that_kind() -> None:
    hang = finding(Shape.HANG, "collective_timeout", name="nccl-watchdog")
    lines = {"events": pl.DataFrame({"source": ["a.log"], "code": ["nccl-watchdog"]})}
    ascend = {"events": pl.DataFrame({"source": ["a.log"], "code": ["hccl-notify"]})}
    assert any("TORCH_NCCL" in (a.command or "") for a in told(hang, run_of("a", lines)))
    assert not any("TORCH_NCCL" in (a.command or "") for a in (*told(hang, run_of("a", ascend)), *told(hang)))


def test_a_step_that_the_finding_names_itself_leads_where_the_row_asks_for_it() -> None:
    wrong = finding(
        Shape.BAD_EVAL, "wrong_checkpoint", next=("forensics diff A B", "evaluate the checkpoint of step 40")
    )
    assert told(wrong)[0].text == "Evaluate the checkpoint of step 40"
    assert "was meant" in told(finding(Shape.BAD_EVAL, "wrong_checkpoint"))[0].text


def test_pauses_are_laid_to_saves_only_where_the_run_saves() -> None:
    saved = pl.DataFrame({"source": ["a.log"], "line": [3], "step": [20], "path": ["out/step_20"], "kind": ["saved"]})
    pauses = finding(Shape.SLOWDOWN, "periodic_pauses")
    assert told(pauses, run_of("a", {"checkpoints": saved}))[0].text.startswith("Save less often")
    assert "checkpoint" not in texts(told(pauses)).lower()
    assert told(pauses)[0].text.startswith("Time apart what runs at these steps")


def test_a_cause_that_nobody_described_has_no_action() -> None:
    assert told(finding(Shape.CRASH, "tide_was_out")) == ()
    assert actions(run_with(), Verdict(Outcome.HEALTHY, "h"), ()) == ()


def test_a_list_of_actions_is_short_and_says_nothing_twice() -> None:
    found = told(DEVICE, run_with(micro_batch_size="8", attn_implementation="eager"))
    assert len(found) == MOST
    assert len({action.text for action in found}) == MOST


def test_what_may_have_brought_a_cause_about_is_that_of_its_row_unless_the_finding_says_it() -> None:
    (usual,) = advised(run_with(), verdict_of(BLOWUP), (BLOWUP,))
    own = finding(Shape.NAN, "optimization_blowup", likely=("a solar flare",))
    (said,) = advised(run_with(), verdict_of(own), (own,))
    assert usual.likely == causes()["optimization_blowup"].likely != ()
    assert said.likely == ("a solar flare",)


def test_of_the_next_steps_of_a_rule_the_commands_stay_behind_the_actions_of_the_cause() -> None:
    lead = finding(Shape.NAN, "optimization_blowup", next=("pray", "forensics nan-origin RUN"))
    (found,) = advised(run_with(), verdict_of(lead), (lead,))
    assert found.next[-1] == "forensics nan-origin RUN"
    assert len(found.next) > 1
    assert "pray" not in found.next


def test_a_cause_that_nobody_described_keeps_the_words_of_its_rule() -> None:
    lead = finding(Shape.NAN, "no_such_cause", next=("read the log",))
    assert advised(run_with(), verdict_of(lead), (lead,)) == (lead,)


@pytest.mark.parametrize(("losses", "first"), [(1, "Look whether the batch"), (2, "Start again with a tenth")])
def test_numbers_that_were_lost_behind_two_good_losses_were_lost_on_the_course(losses: int, first: str) -> None:
    lost = finding(Shape.NAN, "filtered_by_writer", numbers={"finite_losses_before": losses})
    assert told(lost, onset=Onset(step=20))[0].text.startswith(first)


@pytest.mark.parametrize(("step", "first"), [(20, "Log each of the first steps"), (1, "Run the first batch")])
def test_what_the_first_record_does_not_show_may_have_lost_the_numbers(step: int, first: str) -> None:
    lost = finding(Shape.NAN, "from_start", numbers={"finite_losses_before": 0})
    assert told(lost, onset=Onset(step=step))[0].text.startswith(first)
