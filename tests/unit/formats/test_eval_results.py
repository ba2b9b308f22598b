"""Results of evaluations: every schema, the settings kept with them, and what a cut file still gives."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from forensics.errors import NotMine
from forensics.formats.evals import lighteval
from forensics.formats.evals import results as eval_results
from forensics.formats.evals import samples as eval_samples
from forensics.formats.evals._document import parsed

Run = Callable[..., Any]


def rows(wrote: Any) -> dict[tuple[str, str, str | None], dict[str, Any]]:
    return {(r["task"], r["metric"], r["filter"]): r for r in wrote.table("evals").iter_rows(named=True)}


def settings(row: dict[str, Any]) -> dict[str, object]:
    return json.loads(row["settings"])


def test_a_new_document_gives_values_errors_shots_versions_and_numbers_of_documents(run_fixture: Run) -> None:
    found = rows(run_fixture(eval_results.read, "eval_results/ok-04"))
    easy = found["reefs_easy", "acc", "none"]
    assert (easy["value"], easy["n"], easy["fewshot"], easy["task_version"]) == (0.6125, 1600, 0, "1")
    assert easy["stderr"] == pytest.approx(0.012183, rel=1e-4)
    assert easy["higher_is_better"] is True
    assert found["sums", "exact_match", "strict-match"]["stderr"] is None
    assert found["prose", "word_perplexity", "none"]["higher_is_better"] is False
    assert found["reefs", "acc", "none"]["n"] == 2400
    assert settings(found["reefs", "acc", "none"])["members"] == "reefs_easy,reefs_hard"


def test_settings_keep_decoding_limit_precision_and_no_secret_and_no_address(run_fixture: Run) -> None:
    wrote = run_fixture(eval_results.read, "eval_results/ok-04")
    found = rows(wrote)
    said = settings(found["sums", "exact_match", "strict-match"])
    assert said["task.generation_kwargs.temperature"] == 0
    assert (said["limit"], said["model_dtype"], said["chat_template"]) == ("none", "torch.bfloat16", "none")
    assert said["model_args.dtype"] == "bfloat16"
    assert "hunter2" not in str(wrote.table("evals").to_dicts())
    assert "0x7f00aa" not in str(wrote.table("evals").to_dicts())


def test_the_step_is_that_of_the_checkpoint_that_was_evaluated(run_fixture: Run) -> None:
    assert {r["step"] for r in rows(run_fixture(eval_results.read, "eval_results/ok-04")).values()} == {4000}
    assert {r["step"] for r in rows(run_fixture(eval_results.read, "eval_results/ok-03")).values()} == {3000}


def test_an_old_document_keeps_infinity_and_its_few_shot_examples(run_fixture: Run) -> None:
    found = rows(run_fixture(eval_results.read, "eval_results/ok-03"))
    assert found["prose", "ppl", None]["value"] == float("inf")
    assert math.isnan(found["prose", "ppl", None]["stderr"])
    assert found["reefs_easy", "acc", None]["fewshot"] == 2


@pytest.mark.parametrize(("case", "shots"), [("ok-script", 3), ("ok-bare", None)])
def test_documents_of_scripts_are_read_too(run_fixture: Run, case: str, shots: int | None) -> None:
    wrote = run_fixture(eval_results.read, f"eval_results/{case}")
    (row,) = rows(wrote).values()
    assert (row["value"], row["fewshot"]) == (0.5, shots)
    assert wrote.coverage.skipped_bytes == 0


def test_the_flat_object_of_a_trainer_is_one_task_without_its_costs(run_fixture: Run) -> None:
    found = rows(run_fixture(eval_results.read, "eval_results/ok-trainer"))
    assert {key[:2]: row["value"] for key, row in found.items()} == {("eval", "loss"): 1.25, ("eval", "accuracy"): 0.75}


def test_each_value_has_the_line_on_which_it_stands(run_fixture: Run) -> None:
    text = b'{"versions":\n{"a": {"acc": 9}},\n"results": {"a":\n {"acc": 0.5, "x": {"acc": 3},\n "f1": 0.25}}}'
    where = parsed(text, "results")
    assert (where.place("a", "acc"), where.place("a", "f1")[0], where.place("b", "acc")[0]) == (
        (4, text.index(b'"acc": 0.5')),
        5,
        None,
    )
    for row in rows(run_fixture(eval_results.read, "eval_results/ok-04")).values():
        assert row["line"] is not None


@pytest.mark.parametrize("colon", ['"b" {"acc": 0.9}', '{"acc": 0.9}', '7 "b" {"acc": 0.9}'])
def test_a_task_whose_colon_is_damaged_is_not_taken_for_the_one_before_it(colon: str) -> None:
    found = parsed(b'{"results": {"a": {"acc": 0.5}, ' + colon.encode() + b', "c": {"acc": 0.25}', "results")
    assert (found.tasks, found.place("c", "acc")[0]) == ({"a": {"acc": 0.5}, "c": {"acc": 0.25}}, 1)
    assert found.lost_bytes == 0


def test_a_cut_document_gives_its_whole_tasks_and_states_the_loss(run_fixture: Run) -> None:
    wrote = run_fixture(eval_results.read, "eval_results/broken-cut")
    whole = rows(run_fixture(eval_results.read, "eval_results/ok-04"))
    kept = rows(wrote)
    assert 0 < len(kept) < len(whole)
    assert all(row["value"] == whole[key]["value"] for key, row in kept.items())
    assert [issue.code for issue in wrote.issues] == ["damaged"]
    assert wrote.coverage.skipped_bytes > 0


@pytest.mark.parametrize(
    "text",
    [
        '{"results": []}',
        '{"results": {"a": 1}}',
        '{"results": {"a": {"time": 3}}, "build": 7}',
        '{"acc": 1.0, "step": 7}',
        '{"a": {"acc": 0.5}, "lr": 0.1}',
        '{"model": {"accumulate": 4}}',
        '[{"acc": 0.5}]',
        '{"acc": {"acc": 0.5',
    ],
)
def test_what_is_no_evaluation_is_left_to_others(run: Run, text: str) -> None:
    with pytest.raises(NotMine):
        run(eval_results.read, "config.json", text.encode())


def test_lighteval_names_suite_and_task_and_takes_the_shots_from_the_name(run_fixture: Run) -> None:
    found = rows(run_fixture(lighteval.read, "lighteval/ok-tasks"))
    easy = found["tides|reefs_easy", "acc_norm", None]
    assert (easy["value"], easy["stderr"], easy["fewshot"], easy["n"], easy["step"]) == (0.43, 0.0157, 5, 1000, 600)
    assert settings(easy)["task_hash"] == "77aa"
    assert found["tides|sums", "qem", None]["fewshot"] == 0
    assert settings(found["all", "acc", None])["members"] == "tides|reefs_easy,tides|sums"


def test_lighteval_cut_keeps_whole_tasks(run_fixture: Run) -> None:
    wrote = run_fixture(lighteval.read, "lighteval/broken-cut")
    assert ("tides|reefs_easy", "acc", None) in rows(wrote)
    assert [issue.code for issue in wrote.issues] == ["damaged"]


def test_samples_keep_hashes_and_scores_and_no_document(run_fixture: Run) -> None:
    frame = run_fixture(eval_samples.read, "eval_samples/ok-new").table("eval_samples")
    assert frame.height == 24
    assert set(frame["value"].to_list()) == {0.0, 1.0}
    assert frame["task"].unique().to_list() == ["reefs_easy"]
    assert frame["line"].to_list() == list(range(1, 25))
    assert "question" not in str(frame.to_dicts())


def test_samples_of_an_older_writer_have_no_filter_and_lists_are_stated(run_fixture: Run) -> None:
    wrote = run_fixture(eval_samples.read, "eval_samples/ok-old")
    assert wrote.table("eval_samples").select("metric", "value", "filter").rows() == [("acc", 1.0, None)]
    assert [issue.code for issue in wrote.issues] == ["score-no-number"]


def test_a_cut_line_of_samples_costs_one_document(run_fixture: Run) -> None:
    wrote = run_fixture(eval_samples.read, "eval_samples/broken-cut")
    assert wrote.table("eval_samples").height == 23
    assert [issue.code for issue in wrote.issues] == ["row-cut"]
    assert wrote.coverage.read_bytes + wrote.coverage.skipped_bytes == wrote.coverage.size_bytes
