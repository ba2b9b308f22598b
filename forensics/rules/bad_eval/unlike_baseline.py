"""EVL021 unlike-baseline: the evaluations of the run and of its baseline were not the same test.

What it detects: with `--baseline GOOD`, tasks that both evaluated with different settings.

Why it matters: their scores say nothing about the two models; a lower score may be the settings alone.

How it decides: task version, few-shot examples, limit, documents, prompt, template or decoding are stated on both sides
and differ; a group is not comparable if any of its members is not. Where the score is far below that of the baseline
(EVL013 says what far is) the setting is the cause, and it is an error.

What else looks like this: a new version of a harness that prints a setting otherwise; then the values differ only in
their spelling.

What to do next: evaluate both with one command: the same decoding settings, the same harness.

References: lm-evaluation-harness, versions of tasks.

Example:
    ```comparisons line,task,metric,value,base_source,base_line,base_value,blocks
    7,arc_easy,acc,0.52,good/a.json,7,0.61,few-shot examples 5 → 0
    ```
    => EVL021 warning confidence=high cause=evaluations_unlike causal=context metrics=1
Example: sampling instead of greedy decoding
    ```comparisons line,task,metric,value,n,base_source,base_line,base_value,base_n,blocks
    7,sums,exact_match,0.15,400,good/a.json,7,0.64,400,temperature 0.0 → 1.5
    ```
    => EVL021 error confidence=high cause=eval_settings_change metrics=1
Not this:
    ```comparisons line,task,metric,value,base_source,base_line,base_value,p,worse
    7,arc_easy,acc,0.60,good/a.json,7,0.61,0.45,true
    ```
    => nothing
"""

from __future__ import annotations

import polars as pl

from forensics.analyses.evals.falls import fall_between
from forensics.analyses.evals.results import Row
from forensics.rules.bad_eval._results import name_of
from forensics.rules.bad_eval.falls import Config
from forensics.rules.kit import Evidence, EvidenceRole, Findings, Locator, Onset, Run, rule


@rule("bad_eval", needs=("comparisons",), config=Config, confidence="high")
def unlike_baseline(run: Run, cfg: Config) -> Findings:
    """Report the first metric that cannot be compared, and how many cannot."""
    rows = run.collect("comparisons").filter(pl.col("blocks").is_not_null()).to_dicts()
    if not rows:
        return
    far = [row for row in rows if _is_far(row, cfg)]
    first = min(far, key=lambda row: row["value"] - row["base_value"]) if far else rows[0]
    places = (
        (first["source"], first["line"], first["value"], EvidenceRole.PRIMARY),
        (first["base_source"], first["base_line"], first["base_value"], EvidenceRole.RELATED),
    )
    yield unlike_baseline.finding(
        f"{name_of(first)} is {first['value']:.4g}, in the baseline {first['base_value']:.4g}: {first['blocks']}"
        if far
        else f"{name_of(first)} cannot be compared with the baseline: {first['blocks']}",
        f"{len(rows)} metrics were evaluated with other settings than in the baseline",
        tuple(
            Evidence(
                source=source,
                locator=Locator(line=line),
                quote=f"{first['task']} {first['metric']} = {value:.6g}",
                role=role,
            )
            for source, line, value, role in places
        ),
        Onset(step=first["step"]),
        severity="error" if far else "warning",
        cause="eval_settings_change" if far else "evaluations_unlike",
        causal="root" if far else "context",
        numbers={"metrics": len(rows)},
        next=(f"evaluate the run again with the settings and the version of the baseline: {first['blocks']}",),
    )


def _is_far(row: Row, cfg: Config) -> bool:
    """Whether the run's score lies far below that of the baseline, as EVL013 takes it."""
    base = {**row, "value": row["base_value"], "stderr": row["base_stderr"], "n": row["base_n"]}
    found = fall_between(base, row)
    return found is not None and found.errors >= cfg.errors and found.lost >= cfg.lost
