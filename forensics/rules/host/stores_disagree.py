"""HST001 stores-disagree: two files that hold the same metric give different values at one step.

What it detects: a metric that a log, an event file, W&B or a trainer state hold alike, but for some steps: a number
here and NaN there, other numbers, or other numbers from some step on.

Why it matters: a store that shows a number where another shows NaN hides the failure; whoever looks at that store only
sees a healthy run. Other numbers mean that one of the files is not what it seems.

How it decides: files are linked as HST002 says. Of the aligned records of one metric nine of ten finite ones agree, and
the others differ by more than the digits printed and float32 explain; or all agree up to a step and none after
it. NaN against a number in a loss or a gradient norm is a warning, all else a note.

What else looks like this: a store that was written twice, by a run and by its restart; a metric that one store averages
over the last window.

What to do next: trust the store that shows NaN; look at the writer of the other one.

References: Hugging Face Transformers documentation, TrainingArguments `logging_nan_inf_filter`: NaN losses are
replaced before they are logged.

Example:
    ```metrics
    source: train.log*7 metrics.csv*7
    seq: (0..6)*2
    step: (10..70/10)*2
    loss: 4.9312 4.6125 4.4017 4.2544 4.1361 0.0*2 4.9312 4.6125 4.4017 4.2544 4.1361 nan*2
    ```
    => HST001 warning confidence=high shape=nan step=60 cause=hidden_in_one_store causal=context records=2 aligned=7
Not this: the same values, printed with fewer digits
    ```metrics
    source: train.log*6 metrics.csv*6
    seq: (0..5)*2
    step: (10..60/10)*2
    loss: 4.93 4.61 4.40 4.25 4.14 4.03 4.93118 4.612531 4.401688 4.254427 4.136094 4.028341
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from forensics.case.evidence import at_step, metric_evidence
from forensics.case.joined.stores import Link, Match, stores_of
from forensics.case.steps import step_of
from forensics.model import Causal, Confidence, EvidenceRole, Finding, Onset, Severity, Shape
from forensics.registry import rule
from forensics.rules.host._stores import relation, row_of
from forensics.store.run import Run

_TITLES = {
    "hidden_in_one_store": "shows {name} = {value} where another file of the same run shows {other}",
    "stores_part": "and another file hold the same {name} up to a step, and other values from {step} on",
    "stores_differ": "and another file of the same run give different {name}, first at {step}",
}
_WATCHED = ("loss", "grad_norm")


@rule(shape=Shape.LEARNING, needs=("metrics",))
def stores_disagree(run: Run) -> Iterator[Finding]:
    """Report each metric in which two stores differ, once for each way in which they do."""
    told: set[tuple[str, str]] = set()
    for link in stores_of(run).links:
        for match in link.same:
            for cause, clashes in _kinds(match):
                key = match.a.name, cause
                if key not in told and (finding := _finding(run, link, match, (cause, clashes))) is not None:
                    told.add(key)
                    yield finding


def _kinds(match: Match) -> Iterator[tuple[str, pl.DataFrame]]:
    hidden, other = match.clashes.filter(~pl.col("finite")), match.clashes.filter("finite")
    if hidden.height:
        yield "hidden_in_one_store", hidden
    if other.height:
        yield "stores_part" if match.parted else "stores_differ", other


def _finding(run: Run, link: Link, match: Match, found: tuple[str, pl.DataFrame]) -> Finding | None:
    cause, clashes = found
    first = clashes.row(0, named=True)
    a, b = row_of(run, match.a, first["seq_a"]), row_of(run, match.b, first["seq_b"])
    if a is None or b is None:
        return None
    if a["value_class"] == "finite" and b["value_class"] != "finite":
        a, b = b, a
    step = step_of(a)
    hidden = not first["finite"]
    words = {"name": match.a.raw_name, "value": a["value"], "other": b["value"], "step": at_step(step)}
    return stores_disagree.finding(
        shape=Shape.NAN if hidden else Shape.LEARNING,
        severity=Severity.WARNING if hidden and match.a.name in _WATCHED else Severity.INFO,
        confidence=Confidence.HIGH if hidden else Confidence.MEDIUM,
        title=f"{a['source']} {_TITLES[cause].format(**words)}",
        because=f"{clashes.height} of {match.aligned} aligned records differ; {relation(link)}",
        evidence=(metric_evidence(a), metric_evidence(b, EvidenceRole.CONTRADICTS)),
        onset=Onset(step=step, t_ns=a["t_ns"], rank=a["rank"]),
        cause=cause,
        causal=Causal.CONTEXT,
        numbers={"records": clashes.height, "aligned": match.aligned},
        likely=(
            "a writer that replaces or drops NaN",
            "two writers to one file, or a restart that wrote one of them anew",
            "a value that one store averages",
        ),
        next=("look both places up in their files, and mend the writer of the one that hides the value",),
    )
