"""Results of evaluations against the json module: every metric of every task, with its error, line and byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.errors import NotMine
from forensics.formats.evals import lighteval
from forensics.formats.evals import results as eval_results

from .tables import NUMBER, read, shown

pytestmark = pytest.mark.usefixtures("only_owned_columns")
TASK = st.text(st.sampled_from('abc_"ü'), min_size=1, max_size=6)
METRIC = st.sampled_from(["acc", "exact_match", "my metric", "f1"])
METRICS = st.dictionaries(METRIC, st.tuples(NUMBER | st.none(), st.floats(0) | st.just("N/A")), min_size=1, max_size=4)
TASKS = st.dictionaries(TASK, METRICS, min_size=1, max_size=5)
INDENT = st.sampled_from([None, 1, 2])
COLUMNS = ("seq", "task", "metric", "filter", "value", "stderr")


def evals(sink: Any, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(map(shown, row)) for row in sink.frames()["evals"].select(columns).rows()]


def harness(tasks: dict[str, Any], by: str) -> dict[str, dict[str, Any]]:
    """Results as lm-evaluation-harness writes them: `metric,filter`, and the error beside it."""
    return {
        task: {
            "alias": task,
            **{
                key: cell
                for metric, (value, error) in metrics.items()
                for key, cell in ((f"{metric}{by}", value), (f"{metric}_stderr{by}", error))
            },
        }
        for task, metrics in tasks.items()
    }


def expected(tasks: dict[str, Any], by: str | None) -> list[tuple[Any, ...]]:
    return [
        (seq, task, metric, by, shown(value), None if error == "N/A" else shown(error))
        for seq, (task, metrics) in enumerate(tasks.items())
        for metric, (value, error) in metrics.items()
    ]


def as_read(tasks: dict[str, Any]) -> dict[str, Any]:
    """The same through the json module."""
    return json.loads(json.dumps(tasks))


def has_score(tasks: dict[str, Any]) -> bool:
    return any(value is not None for metrics in tasks.values() for value, _ in metrics.values())


@given(TASKS.filter(has_score), st.sampled_from(["", ",none", ",strict-match"]), INDENT)
def test_every_metric_of_a_harness_is_read(tasks: dict[str, Any], by: str, indent: int | None) -> None:
    data = json.dumps({"results": harness(tasks, by), "versions": {}}, indent=indent).encode()
    sink = read(eval_results.read, "results.json", data)
    assert evals(sink, *COLUMNS) == expected(as_read(tasks), by[1:] or None)
    for line, byte, metric in evals(sink, "line", "byte", "metric"):
        assert data[byte:].startswith(json.dumps(metric + by).encode())
        assert line == data[:byte].count(b"\n") + 1
    assert sink.coverage("x").skipped_bytes == 0


@given(TASKS.filter(has_score), INDENT)
def test_every_metric_of_lighteval_is_read(tasks: dict[str, Any], indent: int | None) -> None:
    results = {f"suite|{task}|3": metrics for task, metrics in harness(tasks, "").items()}
    data = json.dumps({"config_general": {}, "results": results}, indent=indent).encode()
    sink = read(lighteval.read, "results_x.json", data)
    peer = {f"suite|{task}": metrics for task, metrics in as_read(tasks).items()}
    assert evals(sink, *COLUMNS) == expected(peer, None)
    assert {row[0] for row in evals(sink, "fewshot")} == {3}


@given(TASKS.filter(has_score), st.floats(0, 1))
def test_a_cut_document_gives_its_whole_tasks_and_no_other(tasks: dict[str, Any], share: float) -> None:
    scored = {task: {**metrics, "acc": (0.5, 0.25)} for task, metrics in tasks.items()}
    text = json.dumps({"results": harness(scored, ",none"), "versions": {}})
    end = int(share * len(text.rstrip("}")))
    try:
        sink = read(eval_results.read, "results.json", text[:end].encode())
    except NotMine:
        assert '"acc,none"' not in text[: text.rfind("}", 0, end) + 1]
        return
    found = evals(sink, *COLUMNS)
    assert found == expected(as_read(scored), "none")[: len(found)]
    assert [issue.code for issue in sink.issues] == ["damaged"]


@given(st.dictionaries(st.sampled_from(["loss", "accuracy", "f1"]), NUMBER, min_size=1, max_size=3), INDENT)
def test_every_metric_of_a_trainers_evaluation_is_read(metrics: dict[str, float], indent: int | None) -> None:
    cells = {f"eval_{name}": value for name, value in metrics.items()} | {"eval_runtime": 3.5, "epoch": 1.0}
    sink = read(eval_results.read, "eval_results.json", json.dumps(cells, indent=indent).encode())
    assert evals(sink, "task", "metric", "value") == [("eval", name, shown(value)) for name, value in metrics.items()]
