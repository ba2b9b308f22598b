"""The page of `memory`: its words, its document, its width, and that nothing of a hostile log acts in it."""

from __future__ import annotations

import json
import re
from importlib.resources import files

import jsonschema
import numpy as np
import polars as pl
import pytest

from forensics.diagnosis.memory import Memory, memory_of
from forensics.model import Coverage, FileCoverage, FileStatus
from forensics.report.pages import memory as page
from forensics.store.run import Run, run_of

HOSTILE = "\x1b]0;x\x07 <b>|`##[error]` \u202e CUDA out of memory. Tried to allocate 8.00 GiB"
STEPS = np.arange(60)


def run_with(rise: float, *, error: str | None = None, name: str = "runs/a") -> Run:
    rows = [
        {"source": "train.log", "seq": i, "line": i, "step": i, "rank": rank, "name": metric, "raw_name": metric}
        | {"value": value}
        for rank in (0, 1)
        for i in STEPS.tolist()
        for metric, value in (("mem_allocated_gib", 20 + rise * i + rank), ("mem_reserved_gib", 24 + rise * i + rank))
    ]  # fmt: skip
    tables = {"metrics": pl.DataFrame(rows)}
    if error is not None:
        tables["events"] = pl.DataFrame(
            [
                {
                    "source": "train.log",
                    "seq": 99,
                    "line": 99,
                    "code": "cuda-oom",
                    "text": error,
                    "attrs": '{"role":"root","shape":"oom"}',
                }
            ]
        )
    return run_of(name, tables)


def said(memory: Memory, form: str = "text") -> str:
    covered = Coverage((FileCoverage("train.log", 90, 90, 0, FileStatus.READ, "text_log", format="nanogpt"),))
    return "\n".join(page.LAYOUT.render(page.Page(memory, coverage=covered), form))


@pytest.mark.parametrize(
    ("run", "word"),
    [
        (run_with(0.0), "LEVEL"),
        (run_with(0.05), "GROWS"),
        (run_with(0.05, error="CUDA out of memory. Tried to allocate 2.50 GiB"), "OUT OF MEMORY"),
        (run_of("runs/a", {}), "CANNOT SAY"),
    ],
)
def test_the_first_words_are_the_answer(run: Run, word: str) -> None:
    assert said(memory_of(run)).startswith(f"{word}  runs/a\n")


def test_the_document_keeps_to_its_schema() -> None:
    schema = json.loads((files("forensics.report") / "_schema/memory-1.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    for memory in (
        memory_of(run_with(0.0)),
        memory_of(run_with(0.05, error=HOSTILE)),
        memory_of(run_with(0.05), run_with(0.0, name="runs/b")),
        memory_of(run_of("none", {})),
    ):
        jsonschema.validate(json.loads(said(memory, "json")), schema)


def test_the_document_has_the_shape_the_onset_and_the_growth_of_each_series() -> None:
    document = json.loads(
        said(memory_of(run_with(0.05, error="CUDA out of memory. Tried to allocate 2.50 GiB")), "json")
    )
    assert {(s["metric"], s["rank"], s["shape"]) for s in document["series"]} == {
        (metric, rank, "slope") for metric in ("mem_allocated_gib", "mem_reserved_gib") for rank in (0, 1)
    }
    assert document["series"][0]["growth_per_step"] == pytest.approx(0.05)
    assert document["oom"][0]["tried_bytes"] == int(2.5 * 2**30)
    assert document["oom"][0]["free_bytes"] is None


def test_two_runs_are_compared_metric_by_metric() -> None:
    memory = memory_of(run_with(0.05), run_with(0.0, name="runs/b"))
    assert "against runs/b" in said(memory)
    changes = json.loads(said(memory, "json"))["diff"]["series"]
    assert {round(c["cand"] - c["base"], 2) for c in changes} == {2.95}


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_a_hostile_message_is_shown_and_does_not_act(form: str) -> None:
    text = said(memory_of(run_with(0.0, error=HOSTILE, name=HOSTILE)), form)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e\udcff]", text)


def test_text_keeps_to_80_columns_however_long_a_name_is() -> None:
    long = "stage/very/long/prefix/" * 6 + "mem"
    frame = run_with(0.05).collect("metrics").with_columns(raw_name=pl.lit(long))
    text = said(memory_of(run_of("runs/a", {"metrics": frame.filter(pl.col("name") == "mem_reserved_gib")})))
    assert max(len(line) for line in text.split("\n")) <= 80
