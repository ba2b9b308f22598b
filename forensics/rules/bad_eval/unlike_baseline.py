"""EVL021 unlike-baseline: the evaluations of the run and of its baseline were not the same test.

What it detects: with `--baseline GOOD`, tasks that both evaluated with different settings.

Why it matters: their scores say nothing about the two models; a lower score may be the settings alone.

How it decides: task version, few-shot examples, limit, documents, prompt, template or decoding are stated on both sides
and differ; a group is not comparable if any of its members is not.

What else looks like this: a new version of a harness that prints a setting otherwise; then the values differ only in
their spelling.

What to do next: evaluate both with one command and one version of the harness.

References: lm-evaluation-harness, versions of tasks.

Example:
    ```comparisons line,task,metric,value,base_source,base_line,base_value,blocks
    7,arc_easy,acc,0.52,good/a.json,7,0.61,few-shot examples 5 → 0
    ```
    => EVL021 warning confidence=high cause=evaluations_unlike causal=context metrics=1
Not this:
    ```comparisons line,task,metric,value,base_source,base_line,base_value,p,worse
    7,arc_easy,acc,0.60,good/a.json,7,0.61,0.45,true
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from forensics.model import Causal, Confidence, Evidence, EvidenceRole, Finding, Locator, Onset, Severity, Shape
from forensics.registry import rule
from forensics.rules.bad_eval._results import name_of
from forensics.store.run import Run


@rule("EVL021", shape=Shape.BAD_EVAL, needs=("comparisons",))
def unlike_baseline(run: Run, _cfg: None = None) -> Iterator[Finding]:
    """Report the first metric that cannot be compared, and how many cannot."""
    rows = run.collect("comparisons").filter(pl.col("blocks").is_not_null()).to_dicts()
    if not rows:
        return
    first = rows[0]
    places = (
        (first["source"], first["line"], first["value"], EvidenceRole.PRIMARY),
        (first["base_source"], first["base_line"], first["base_value"], EvidenceRole.RELATED),
    )
    yield Finding(
        rule="EVL021",
        shape=Shape.BAD_EVAL,
        severity=Severity.WARNING,
        confidence=Confidence.HIGH,
        title=f"{name_of(first)} cannot be compared with the baseline: {first['blocks']}",
        because=f"{len(rows)} metrics were evaluated with other settings than in the baseline",
        evidence=tuple(
            Evidence(
                source=source,
                locator=Locator(line=line),
                quote=f"{first['task']} {first['metric']} = {value:.6g}",
                role=role,
            )
            for source, line, value, role in places
        ),
        onset=Onset(step=first["step"]),
        cause="evaluations_unlike",
        causal=Causal.CONTEXT,
        numbers={"metrics": len(rows)},
        likely=("the command of the evaluation, or the version of the harness, changed",),
        next=("evaluate both runs with one command and one version of the harness",),
    )
