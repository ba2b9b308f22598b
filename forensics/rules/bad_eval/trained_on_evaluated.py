"""EVL026 trained-on-evaluated: a data set of the training mix is the one that the evaluation scores.

What it detects: a source of training data whose name is that of an evaluated task's data set.

Why it matters: a score on documents that were trained on says nothing of new ones; a run without them looks worse
although it is not.

How it decides: the settings of training name a data set that the results name as the data set of a task. With a split
for testing or validation it is a warning; without one, or with the split for training, which is allowed, a note.

What else looks like this: training on the training split of a benchmark, which is common and only makes the score that
of a trained skill.

What to do next: look for documents of the test split in the training data, and leave the data set out of comparisons.

References: Brown et al. 2020, appendix C (contamination); Sainz et al. 2023, on contamination per benchmark.

Example:
    ```evals source,line,task,metric,value,stderr,settings
    results.json,7,tide_quiz,acc,0.95,0.01,"{""task.dataset_path"":""shore/tide_quiz""}"
    ```
    ```facts source,line,key,value,family
    train.yaml,3,data.datasets.0.path,shore/tide_quiz,config
    train.yaml,4,data.datasets.0.split,test,config
    ```
    => EVL026 warning confidence=medium cause=leakage causal=context
Example: the split for training
    ```evals source,line,task,metric,value,stderr,settings
    results.json,7,tide_quiz,acc,0.95,0.01,"{""task.dataset_path"":""shore/tide_quiz""}"
    ```
    ```facts source,line,key,value,family
    train.yaml,3,dataset_name,shore/tide_quiz,config
    ```
    => EVL026 info confidence=low cause=leakage causal=context
Not this:
    ```evals source,line,task,metric,value,stderr,settings
    results.json,7,tide_quiz,acc,0.95,0.01,"{""task.dataset_path"":""shore/tide_quiz""}"
    ```
    ```facts source,line,key,value,family
    train.yaml,3,data.datasets.0.path,shore/letters,config
    ```
    => nothing
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from forensics.analyses.evals.results import Row, settings_of
from forensics.knowledge.vocabulary import stands_for, words_for
from forensics.rules.bad_eval._results import result_evidence
from forensics.rules.kit import Finding, Findings, Onset, Run, fact_evidence, proof, rule

_EVALUATED = ("task.dataset_path", "task.hf_repo")


@rule("bad_eval", needs=("evals", "facts"), cause="leakage", causal="context")
def trained_on_evaluated(run: Run) -> Findings:
    """Report the first data set that was trained on and is scored, a held-back split first."""
    tasks = _evaluated(run)
    if not tasks:
        return
    own = (pl.col("family") == "config") & ~pl.col("key").str.contains("(?i)eval|test")
    facts = run.scan("facts").filter(own).collect()
    named = facts.filter(pl.col("key").str.contains(words_for("data_set_setting"))).iter_rows(named=True)
    found = [(row, tasks[name]) for row in named if (name := _plain(row["value"])) in tasks]
    split = {str(r["key"]): str(r["value"]) for r in facts.iter_rows(named=True) if str(r["key"]).endswith("split")}
    ranked = sorted(found, key=lambda pair: not _is_held_back(pair[0], split))
    if ranked:
        row, result = ranked[0]
        yield _finding(row, result, held_back=_is_held_back(row, split))


def _evaluated(run: Run) -> dict[str, Row]:
    """The data sets of evaluated tasks, by name, each with its first result."""
    found: dict[str, Row] = {}
    for row in run.collect("evals").unique("task", keep="first", maintain_order=True).iter_rows(named=True):
        settings = settings_of(row)
        name = next((str(settings[key]) for key in _EVALUATED if settings.get(key)), "")
        if "/" in name:
            found.setdefault(_plain(name), row)
    return found


def _plain(value: str | None) -> str:
    return (value or "").strip('"').lower().rstrip("/")


def _is_held_back(row: Mapping[str, Any], split: Mapping[str, str]) -> bool:
    parent = re.split(r"[./][^./]*$", str(row["key"]))[0]
    own = next((value for key, value in split.items() if re.split(r"[./][^./]*$", key)[0] == parent), "")
    return stands_for("held_back_split", own)


def _finding(row: Mapping[str, Any], result: Row, *, held_back: bool) -> Finding:
    what = "a split that is held back" if held_back else "no split, or the one for training"
    return trained_on_evaluated.finding(
        f"task {result['task']} is evaluated on {_plain(row['value'])}, which is also in the training data",
        f"the settings of training name the data set of the task, with {what}",
        proof(fact_evidence(row), result_evidence(result)),
        Onset(step=result["step"]),
        severity="warning" if held_back else "info",
        confidence="medium" if held_back else "low",
    )
