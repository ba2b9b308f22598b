"""Helpers that the rules of evaluation share: evidence of a result, its name, results file by file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from forensics.analyses.evals.falls import masked
from forensics.analyses.evals.results import Key, Row
from forensics.case.evidence import number
from forensics.model import Evidence, Locator

#: Tables that an evaluation is compared with the one before it by.
NEEDS = "evals eval_samples facts metrics"


def result_evidence(row: Row) -> Evidence:
    """Evidence of one row of the evals table: task, metric, value and error."""
    error = "" if row["stderr"] is None else f" ± {row['stderr']:.3g}"
    at = "" if row["step"] is None else f" at step {row['step']}"
    return Evidence(
        source=row["source"],
        locator=Locator(line=row["line"], byte=row["byte"], record=None if row["line"] is not None else row["seq"]),
        quote=f"{row['task']} {row['metric']} = {number(row['value'])}{error}{at}",
        step=row["step"],
        name=f"{row['task']} {row['metric']}",
        value=row["value"],
    )


def name_of(row: Row) -> str:
    """Give task and metric, and the filter where there is one."""
    by = "" if row["filter"] in (None, "none") else f" ({row['filter']})"
    return f"{row['task']} {row['metric']}{by}"


def following(courses: Mapping[Key, Sequence[Row]]) -> list[tuple[Row, Row]]:
    """Give results of one task and metric that follow each other, of one model or of checkpoints of one run."""
    found: list[tuple[Row, Row]] = []
    for rows in courses.values():
        found += [(a, b) for a, b in pairwise(rows) if masked(a["model"]) == masked(b["model"])]
    return found
