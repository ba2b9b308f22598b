"""Real evaluation results, where they are at hand, against a reading by json: every value, error and sample equal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from forensics.formats.evals import results as eval_results
from forensics.formats.evals import samples as eval_samples

ROOT = Path(__file__).parents[4] / "shared" / "corpus" / "eval"
RESULTS = sorted(ROOT.rglob("*.json"))
SAMPLES = sorted(ROOT.rglob("*.jsonl"))
Run = Callable[..., Any]


def is_number(cell: object) -> bool:
    return isinstance(cell, (int, float)) and not isinstance(cell, bool)


def by_json(path: Path) -> Iterator[tuple[str, str, float, float | None, int, object, object]]:
    """Task, printed metric, value, error, the line on which the metric stands, shots, documents; by another road."""
    text = path.read_text(encoding="utf-8")
    document = json.loads(text)
    shots, counts = document.get("n-shot", {}), document.get("n-samples", {})
    common = (document.get("config") or document).get("num_fewshot")
    for task, metrics in document.get("results", document).items():
        for key, value in metrics.items():
            name, comma, by = key.partition(",")
            if name.endswith("_stderr") or key in ("name", "sample_len") or not is_number(value):
                continue
            error = metrics.get(f"{name}_stderr{comma}{by}")
            yield (
                task,
                key,
                float(value),
                float(error) if is_number(error) else None,
                shots.get(task, common),
                (counts.get(task) or {}).get("effective"),
            )  # type: ignore[misc] - one tuple


@pytest.mark.skipif(not RESULTS, reason="no results at hand")
@pytest.mark.parametrize("path", RESULTS, ids=lambda p: p.name[-60:])
def test_every_value_of_a_real_document_is_read(path: Path, run: Run) -> None:
    wrote = run(eval_results.read, path.name, path.read_bytes())
    read = [
        (r["task"], r["metric"] + (f",{r['filter']}" if r["filter"] else ""), r["value"], r["stderr"], r["fewshot"])
        for r in wrote.table("evals").iter_rows(named=True)
    ]
    truth = list(by_json(path))
    assert list(map(str, read)) == [str(found[:5]) for found in truth]
    counts = dict(zip([(r[0], r[1]) for r in read], wrote.table("evals")["n"].to_list(), strict=True))
    assert all(n is None or counts[task, key] == n for task, key, *_, n in truth)
    assert wrote.coverage.skipped_bytes == 0
    assert wrote.issues == []


@pytest.mark.skipif(not RESULTS, reason="no results at hand")
@pytest.mark.parametrize("path", RESULTS[::7], ids=lambda p: p.name[-60:])
def test_the_line_given_for_a_value_holds_it(path: Path, run: Run) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    for row in run(eval_results.read, path.name, path.read_bytes()).table("evals").iter_rows(named=True):
        key = row["metric"] + (f",{row['filter']}" if row["filter"] else "")
        assert f'"{key}": ' in lines[row["line"] - 1]
        said = lines[row["line"] - 1].split('": ')[1].rstrip(",")
        assert float(said) == row["value"]


@pytest.mark.skipif(not SAMPLES, reason="no samples at hand")
@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.name[-60:])
def test_every_score_of_real_samples_is_read(path: Path, run: Run) -> None:
    known = ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash")
    truth = []
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        names = record.get("metrics") or [k for k in record if k not in known and not k.endswith("_hash")]
        truth += [(str(record["doc_id"]), k, float(record[k])) for k in names if is_number(record.get(k))]
    frame = run(eval_samples.read, path.name, path.read_bytes()).table("eval_samples")
    assert list(frame.select("doc", "metric", "value").iter_rows()) == truth
