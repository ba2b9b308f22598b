"""A fall of the scores is about the evaluation: what changed with it is the cause, and what is only noise is none."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest

from forensics.model import Confidence, Finding, Severity
from forensics.pipeline import ingest_bytes, report_of
from forensics.rules.bad_eval.between import settings_change
from forensics.rules.bad_eval.checkpoints import wrong_checkpoint
from forensics.rules.bad_eval.falls import falls
from forensics.store.run import Run, run_of

_PLAIN: Mapping[str, object] = {"temperature": 0.0, "chat_template": "none", "batch_size": 64}


def result(step: int, value: float, task: str = "sums", n: int | None = 150, **more: Any) -> dict[str, Any]:
    """One result, filed by its step; `settings` are those beside the plain ones."""
    settings = {**_PLAIN, "step": step, **more.pop("settings", {})}
    metric = more.pop("metric", "exact_match")
    source = more.pop("source", f"eval/step_{step}.json")
    return {"source": source, "seq": 0, "line": 3, "byte": 9, "task": task, "metric": metric, "value": value,
            "n": n, "step": more.pop("evaluated", step), "settings": json.dumps(settings), **more}  # fmt: skip


def losses(values: Sequence[tuple[int, float]]) -> pl.DataFrame:
    rows = [
        {"source": "train.log", "seq": at, "line": at + 1, "attempt": 0, "step": step, "name": "loss",
         "raw_name": "loss", "value": value, "value_class": "finite"}
        for at, (step, value) in enumerate(values)
    ]  # fmt: skip
    return pl.DataFrame(rows)


def run(*results: dict[str, Any], **tables: pl.DataFrame) -> Run:
    frame = pl.DataFrame(results, infer_schema_length=None).with_columns(seq=pl.int_range(len(results)))
    return run_of("run", {"evals": frame, **tables})


def only(found: Run) -> Finding:
    (finding,) = falls(found)
    return finding


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"temperature": 1.9}, "temperature 0.0, not 1.9"),
        ({"settings": {"chat_template": "{% for m in messages %}"}}, "chat template"),
        ({"chat_template": "chatml"}, "prompt and chat template of before"),
        ({"do_sample": True, "temperature": 1.9}, "decoding"),
    ],
)
def test_a_fall_with_a_setting_that_changed_names_the_setting_and_both_values(
    changed: dict[str, object], word: str
) -> None:
    changed = changed.get("settings", changed)  # type: ignore[assignment] - one case is nested
    found = only(run(result(40, 0.82), result(80, 0.83), result(120, 0.15, settings=changed)))
    assert (found.cause, found.onset.step, found.onset.step_lo) == ("eval_settings_change", 120, 80)
    assert (found.severity, found.confidence) == (Severity.ERROR, Confidence.HIGH)
    assert word in found.next[0]


def test_decoding_is_no_cause_of_a_score_of_likelihoods() -> None:
    found = only(run(result(40, 0.82, metric="acc"), result(80, 0.2, metric="acc", settings={"temperature": 2.0})))
    assert found.cause == "cause_not_recorded"


def test_a_setting_of_unknown_meaning_is_believed_where_it_was_the_same_twice_before() -> None:
    before = [result(step, 0.82, settings={"widget": 3}) for step in (40, 80)]
    after = result(120, 0.2, settings={"widget": 9})
    assert only(run(*before, after)).cause == "eval_settings_change"
    assert only(run(before[1], after)).cause == "cause_not_recorded"


def test_a_score_that_falls_at_once_with_nothing_recorded_is_to_be_compared() -> None:
    found = only(run(result(40, 0.82), result(80, 0.4)))
    assert found.cause == "cause_not_recorded"
    assert all(word in found.next[0] for word in ("labels", "dropout", "tokenizer"))
    assert found.confidence is Confidence.MEDIUM


def test_a_score_that_falls_slowly_is_forgetting() -> None:
    values = (0.80, 0.77, 0.74, 0.71, 0.68, 0.65)
    found = only(run(*(result(40 * at, value, n=600) for at, value in enumerate(values, 1))))
    assert (found.cause, found.severity) == ("eval_falls", Severity.WARNING)


def test_labels_in_another_order_are_told_by_the_hashes_of_the_samples() -> None:
    def samples(step: int, label: str) -> list[dict[str, Any]]:
        return [
            {"source": f"eval/step_{step}/samples_sums.jsonl", "seq": at, "task": "sums", "doc": str(at),
             "doc_hash": f"{label}{at}", "prompt_hash": f"p{at}", "metric": "exact_match", "value": 1.0}
            for at in range(40)
        ]  # fmt: skip

    results = [result(40, 0.82, source="eval/step_40/r.json"), result(80, 0.05, source="eval/step_80/r.json")]
    other = run(*results, eval_samples=pl.DataFrame(samples(40, "a") + samples(80, "b")))
    assert (only(other).cause, "labels" in only(other).next[0]) == ("labels_changed", True)
    same = run(*results, eval_samples=pl.DataFrame(samples(40, "a") + samples(80, "a")))
    assert only(same).cause == "cause_not_recorded"


@pytest.mark.parametrize(("beside", "cause"), [("b0b0", "tokenizer_mismatch"), ("a0a0", "cause_not_recorded")])
def test_the_tokenizer_beside_results_is_compared_with_that_of_the_weights(beside: str, cause: str) -> None:
    places = {"eval/tokenizer.json": beside, "out/step_40/tokenizer.json": "a0a0", "out/step_80/tokenizer.json": "a0a0"}
    facts = pl.DataFrame(
        [{"source": place, "key": "tokenizer.base_sha256", "value": value, "family": "tokenizer"}
         for place, value in places.items()]
    )  # fmt: skip
    results = [
        result(step, value, settings={"checkpoint": f"out/step_{step}"}) for step, value in ((40, 0.8), (80, 0.1))
    ]
    assert only(run(*results, facts=facts)).cause == cause


def test_results_of_other_weights_than_they_are_filed_under_are_a_wrong_checkpoint() -> None:
    right = result(40, 0.8, settings={"checkpoint": "out/step_40"})
    wrong = result(80, 0.02, settings={"checkpoint": "out/step_0"}, evaluated=0)
    found = run(right, wrong)
    assert list(falls(found)) == []
    (finding,) = wrong_checkpoint(found)
    assert (finding.cause, finding.onset.step, finding.severity) == ("wrong_checkpoint", 80, Severity.ERROR)


def test_results_that_name_no_weights_or_no_step_are_of_no_wrong_checkpoint() -> None:
    right = result(40, 0.8, settings={"checkpoint": "out/step_40"})
    no_weights, no_step = result(80, 0.02), result(0, 0.02, settings={"checkpoint": "out/step_9", "step": "last"})
    assert list(wrong_checkpoint(run(right, no_weights, no_step | {"source": "eval/last.json", "step": None}))) == []


def test_a_model_that_all_results_name_is_the_one_that_training_began_with() -> None:
    rows = [result(step, 0.5, settings={"model_path": "base-step9000"}, evaluated=9000) for step in (40, 80, 120)]
    assert list(wrong_checkpoint(run(*rows))) == []


def test_a_training_loss_that_rose_explains_the_fall() -> None:
    pair = result(40, 0.82), result(80, 0.1)
    sound = losses([(step, 3.0 - step / 100) for step in range(1, 81)])
    broken = losses([(step, 2.0 if step <= 40 else 7.0) for step in range(1, 81)])
    assert only(run(*pair, metrics=sound)).cause == "cause_not_recorded"
    assert list(falls(run(*pair, metrics=broken))) == []


@pytest.mark.parametrize(("swing", "is_told"), [(0.14, True), (0.12, False)])
def test_a_loss_that_moved_by_chance_explains_nothing(swing: float, is_told: bool) -> None:
    """Its median is 12 % higher at the second evaluation: 2.8 or 3.2 of its standard errors by the swing."""
    level = {step: 1.34 if step <= 40 else 1.5 for step in range(1, 81)}
    noisy = losses([(step, loss + swing * (step % 4 - 1.5) / 3) for step, loss in level.items()])
    found = list(falls(run(result(40, 0.82), result(80, 0.1), metrics=noisy)))
    assert len(found) == is_told


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (result(40, 0.70, n=30), result(80, 0.50, n=30)),
        (result(40, 0.700, n=100_000), result(80, 0.665, n=100_000)),
        (result(40, 0.8), result(80, 0.2, task="harder")),
        (result(40, 0.8, model="tiny-a"), result(80, 0.2, model="big-b")),
        (result(40, 0.80, n=150), result(80, 0.76, n=40)),
        (result(40, 0.8), result(80, 0.79, settings={"batch_size": 8})),
        (result(40, math.nan), result(80, 0.1)),
        (result(40, 2.0, metric="loss", task="eval", n=None), result(80, 3.0, metric="loss", task="eval", n=None)),
    ],
    ids=["few documents", "little of many", "a harder task", "another model", "fewer", "batch", "NaN", "a loss"],
)  # fmt: skip
def test_what_is_no_fall(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert list(falls(run(before, after))) == []


def test_a_share_without_documents_is_taken_to_be_of_thirty() -> None:
    assert only(run(result(40, 0.64, n=None), result(80, 0.15, n=None))).onset.step == 80
    assert list(falls(run(result(40, 0.64, n=None), result(80, 0.40, n=None)))) == []


def test_several_tasks_that_each_fall_a_little_fall_together() -> None:
    tasks = ("sums", "tides", "reefs", "dunes")
    before = [result(40, 0.75, task=task, n=60) for task in tasks]
    after = [result(80, 0.53, task=task, n=60) for task in tasks]
    assert list(falls(run(before[0], after[0]))) == []
    assert only(run(*before, *after)).onset.step == 80


def test_percentages_are_shares() -> None:
    assert only(run(result(40, 64.0), result(80, 15.0))).onset.step == 80
    assert list(falls(run(result(40, 64.0, n=30), result(80, 52.0, n=30)))) == []


def test_a_baseline_of_the_same_step_comes_first() -> None:
    base = result(50, 0.8, source="baseline/step_50.json")
    own = result(50, 0.2, source="eval/step_50.json")
    assert only(run(own, base)).evidence[0].source == "eval/step_50.json"


def test_a_baseline_without_a_step_is_compared_with_the_last_evaluation_only() -> None:
    base = result(0, 0.8, source="baseline/scores.json", evaluated=None)
    base["settings"] = json.dumps(_PLAIN)
    assert list(falls(run(base, result(40, 0.3), result(80, 0.6), result(120, 0.78)))) == []
    assert only(run(base, result(40, 0.3), result(80, 0.35))).onset.step == 80


def test_results_without_step_and_time_have_an_order_only_beside_a_baseline() -> None:
    first, second = (
        {**result(0, value, source=source, evaluated=None), "settings": json.dumps(_PLAIN)}
        for source, value in (("evals/a.json", 0.8), ("evals/b.json", 0.1))
    )
    assert list(falls(run(first, second))) == []
    assert only(run({**first, "source": "baseline/a.json"}, second)).onset.step is None


@pytest.mark.parametrize(
    ("changed", "severity"), [({"temperature": 0.7}, Severity.WARNING), ({"limit": 90}, Severity.INFO), ({}, None)]
)
def test_settings_that_change_without_a_fall_are_told_as_such(
    changed: dict[str, object], severity: Severity | None
) -> None:
    found = run(result(40, 0.8, settings={"limit": 100}), result(80, 0.81, settings={"limit": 100, **changed}))
    assert [one.severity for one in settings_change(found)] == ([severity] if severity else [])
    assert list(falls(found)) == []


@pytest.mark.parametrize(
    ("score", "name", "told"),
    [(0.2504, "hellaswag/acc", True), (0.25, "hellaswag/acc", False), (0.2504, "train/acc", False)],
)
def test_a_benchmark_that_gives_one_number_while_the_model_learns_is_of_other_weights(
    score: float, name: str, told: bool
) -> None:
    rows = [{"step": at, "loss": 2.6 + 6 * 0.995**at} for at in range(0, 2000, 20)]
    rows += [{"step": at, name: score} for at in range(100, 1100, 100)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    found = report_of(ingest_bytes("log.jsonl", text.encode())).findings
    assert ("stale_evaluation" in {f.cause for f in found}) is told
