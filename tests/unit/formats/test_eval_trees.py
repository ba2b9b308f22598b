"""Results of evaluations in layouts of one's own: scores, tasks, settings, steps, and what is none of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from forensics.errors import NotMine
from forensics.formats.evals import results as eval_results
from forensics.formats.evals import tables as eval_tables

Run = Callable[..., Any]


def rows(run: Run, path: str, document: object) -> list[dict[str, Any]]:
    read = eval_results.read if path.endswith(".json") else eval_tables.read
    text = document if isinstance(document, str) else json.dumps(document, indent=1)
    return run(read, path, text.encode()).table("evals").to_dicts()


def said(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["task"], row["metric"], row["value"], row["step"]


def test_one_accuracy_beside_its_settings(run: Run) -> None:
    document = {"accuracy": 0.64, "step": 100, "n": 150, "temperature": 0.0, "chat_template": None}
    (row,) = rows(run, "eval/step_100.json", document)
    assert said(row) == ("eval", "accuracy", 0.64, 100)
    assert (row["n"], json.loads(row["settings"])["chat_template"]) == (150, "none")


@pytest.mark.parametrize(
    ("keys", "tasks"),
    [
        (("val_accuracy", "test_accuracy"), ["val", "test"]),
        (("eval_accuracy", "Predict_accuracy"), ["eval", "predict"]),
        (("accuracy", "test_accuracy"), ["eval", "[1]"]),
        (("val_accuracy", "test_f1"), ["eval", "eval"]),
    ],
)
def test_splits_are_the_tasks_where_nothing_else_tells_scores_apart(
    run: Run, keys: tuple[str, str], tasks: list[str]
) -> None:
    found = rows(run, "eval/results.json", {keys[0]: 0.9, keys[1]: 0.5, "n": 150})
    assert [row["task"] for row in found] == tasks


def test_a_list_of_tasks(run: Run) -> None:
    document = [{"task": "sums", "exact_match": 0.3, "shots": 5}, {"task": "tides", "acc": 0.7}]
    found = rows(run, "evals/iter_40.json", document)
    assert [said(row) for row in found] == [("sums", "exact_match", 0.3, 40), ("tides", "acc", 0.7, 40)]
    assert [row["fewshot"] for row in found] == [5, None]


def test_scores_below_their_tasks_with_errors_and_settings_beside_them(run: Run) -> None:
    document = {
        "model": "out/checkpoint-80",
        "settings": {"temperature": 0.7, "n": 9},
        "results": {"sums": {"exact_match": 0.3, "stderr": 0.02, "n": 400}, "tides": {"acc": 0.7, "n": 50}},
    }
    first, second = rows(run, "scores.json", document)
    assert said(first) == ("sums", "exact_match", 0.3, 80)
    assert (first["stderr"], first["n"], second["stderr"], second["n"]) == (0.02, 400, None, 50)
    assert json.loads(second["settings"])["settings.temperature"] == 0.7


def test_the_name_of_a_file_is_the_task_where_nothing_else_is(run: Run) -> None:
    (row,) = rows(run, "evals/step_200/gsm8k.json", {"exact_match": 0.4, "generation": {"top_p": 0.9}})
    assert said(row) == ("gsm8k", "exact_match", 0.4, 200)


@pytest.mark.parametrize(
    ("document", "tasks"),
    [
        ({"accuracy": {"sums": 0.5, "tides": 0.25}}, ["sums", "tides"]),
        ({"sums_acc": 0.5, "tides_acc": 0.25}, ["sums", "tides"]),
        ({"reefs": {"easy": {"acc": 0.5}, "hard": {"acc": 0.25}}}, ["reefs/easy", "reefs/hard"]),
        ({"task_name": "sums", "metrics": {"accuracy": {"value": 0.5}}, "f1": 0.25}, ["sums", "sums"]),
    ],
)
def test_where_a_task_may_stand(run: Run, document: object, tasks: list[str]) -> None:
    found = rows(run, "results.json", document)
    assert [row["task"] for row in found] == tasks
    assert {row["value"] for row in found} == {0.5, 0.25}


def test_a_series_in_one_file_keeps_its_steps(run: Run) -> None:
    document = [{"step": step, "scores": {"boolq": 0.6 + step / 1000}} for step in (100, 200)]
    assert [said(row) for row in rows(run, "evals/all.json", document)] == [
        ("boolq", "score", 0.7, 100),
        ("boolq", "score", 0.8, 200),
    ]


def test_weights_that_are_named_give_the_step_and_not_what_the_file_says(run: Run) -> None:
    (row,) = rows(run, "eval/step_80.json", {"accuracy": 0.1, "step": 80, "checkpoint": "out/step_0"})
    assert row["step"] == 0


def test_a_value_has_the_line_on_which_it_stands(run: Run) -> None:
    text = '{"step": 3,\n "results": {"a": {"note": ["acc", 1],\n  "acc": 0.5}}}'
    (row,) = rows(run, "eval.json", text)
    assert (row["line"], row["byte"]) == (3, text.index('"acc": 0.5'))


def test_a_table_of_values_and_one_of_metrics(run: Run) -> None:
    long = "task,metric,value,step,n,do_sample\nsums,exact_match,0.4,50,100,False\ntides,acc,0.7,50,100,False\n"
    found = rows(run, "eval/evals.csv", long)
    assert [said(row) for row in found] == [("sums", "exact_match", 0.4, 50), ("tides", "acc", 0.7, 50)]
    assert json.loads(found[0]["settings"])["do_sample"] is False
    wide = "checkpoint,sums_acc,tides_acc,temperature\nstep_100,0.5,0.4,0\nstep_200,0.1,0.4,1.5\n"
    assert [said(row) for row in rows(run, "bench.csv", wide)] == [
        ("sums", "acc", 0.5, 100), ("tides", "acc", 0.4, 100), ("sums", "acc", 0.1, 200), ("tides", "acc", 0.4, 200)
    ]  # fmt: skip


def test_a_row_that_ends_before_the_column_of_errors_has_none(run: Run) -> None:
    text = "task,metric,value,stderr\nsums,acc,0.5,0.01\nsums,f1,0.4\n"
    assert [(row["metric"], row["stderr"]) for row in rows(run, "evals.csv", text)] == [("acc", 0.01), ("f1", None)]


@pytest.mark.parametrize("names", [[f"c{n}" for n in range(8_000)], ["n" * 60_000]], ids=["many", "long"])
def test_the_names_of_columns_cost_once_and_not_for_each_row(run: Run, names: list[str]) -> None:
    header = ["task", "metric", "value", *names]
    text = "\n".join([",".join(header), *(f"sums,acc,0.{n},7" for n in range(1_000, 3_000)), ""])
    begin = time.process_time()
    assert len(rows(run, "evals.csv", text)) == 2_000
    assert time.process_time() - begin < 2.0  # 5 s and more where each row looks at each name


def test_a_summary_with_a_column_for_each_model(run: Run) -> None:
    text = "dataset,version,metric,mode,tidal-7b\nsums,1d7,accuracy,gen,45.2\n"
    (row,) = rows(run, "summary.csv", text)
    assert (row["task"], row["metric"], row["value"], row["model"]) == ("sums", "accuracy", 45.2, "tidal-7b")


def test_lines_of_results_cost_one_line_where_one_is_cut(run: Run) -> None:
    text = '{"task": "sums", "accuracy": 0.5, "step": 1}\n{"task": "sums", "accuracy": 0.4, "step": 2}\n{"task": "su'
    wrote = run(eval_tables.read, "eval_results.jsonl", text.encode())
    assert [said(row) for row in wrote.table("evals").to_dicts()] == [
        ("sums", "accuracy", 0.5, 1),
        ("sums", "accuracy", 0.4, 2),
    ]
    assert [issue.code for issue in wrote.issues] == ["row-cut"]
    assert wrote.coverage.read_bytes + wrote.coverage.skipped_bytes == wrote.coverage.size_bytes


@pytest.mark.parametrize(
    ("path", "document"),
    [
        ("package.json", {"name": "x", "score": 0.5}),
        ("eval/tokenizer.json", {"model": {"vocab": {"acc": 1, "f1": 2}}}),
        ("results/config.json", {"accuracy": 0.5}),
        ("results/trainer_state.json", {"log_history": [{"eval_accuracy": 0.5}], "best_metric": 0.5}),
        (
            "eval/run.json",
            {"metric_for_best_model": "accuracy", "min_accuracy": 0.9, "target_f1": 0.5, "precision": 16},
        ),
        ("out.json", {"accuracy": 0.5, "step": 7}),
        ("results.json", {"accuracy": 0.5, "train_loss": 2.0, "lr": 0.1}),
        ("results.json", {"results": {"a": 1, "b": 3}}),
        ("eval/outputs.json", [{"question": "1+1", "answer": "2", "score": 1.0, "task": "sums"}]),
        ("eval/metrics.jsonl", '{"step": 1, "eval_accuracy": 0.5}\n{"step": 2, "eval_accuracy": 0.6}\n'),
        ("eval/train.jsonl", '{"step": 1, "loss": 2.0, "lr": 0.1, "accuracy": 0.5, "task": "x"}\n'),
        ("metrics.csv", "step,loss,eval/accuracy\n1,2.0,0.5\n"),
    ],
)
def test_what_is_no_evaluation_is_left_to_others(run: Run, path: str, document: object) -> None:
    with pytest.raises(NotMine):
        rows(run, path, document)


@pytest.mark.parametrize(("case", "count"), [("ok-table", 3), ("ok-models", 2), ("ok-lines", 3), ("broken-cut", 2)])
def test_tables_of_ones_own_are_accounted_for_byte_by_byte(run_fixture: Run, case: str, count: int) -> None:
    wrote = run_fixture(eval_tables.read, f"eval_tables/{case}")
    assert wrote.table("evals").height == count
    assert wrote.coverage.read_bytes + wrote.coverage.skipped_bytes == wrote.coverage.size_bytes


@pytest.mark.parametrize(("said_beside", "kept"), [(90, 90), (5_000, 100)])
def test_of_what_an_object_says_a_hundred_settings_are_kept_however_they_nest(
    run: Run, said_beside: int, kept: int
) -> None:
    document = {"results": {"sums": {"accuracy": 0.3}}, "notes": {f"note_{n}": n for n in range(said_beside)}}
    (row,) = rows(run, "scores.json", document)
    assert len(json.loads(row["settings"])) == kept
