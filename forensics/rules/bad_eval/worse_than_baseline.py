"""EVL020 worse-than-baseline: the run scores worse than the baseline that was named, and it is no chance.

What it detects: with `--baseline GOOD`, a task that GOOD did better, beyond chance over all tasks.

Why it matters: it is the answer to "the loss looks fine and the benchmark is worse": the difference is real.

How it decides: evaluations with equal settings; the test by document where both have samples, else by standard errors;
p adjusted for all metrics (Holm) below 5 %. The cause is the first of the audit of both runs' settings that can act on
the task: the tokenizer, the evaluation, or what the training did otherwise; where nothing differs it is not recorded.

What else looks like this: runs that differ from seed to seed by more than their evaluations' errors: train the
baseline twice before a small difference is believed.

What to do next: undo the change named first and evaluate the same step again; or evaluate the baseline's checkpoint of
the same step with this run's command.

References: Holm 1979; McNemar 1947; Miller 2024, "Adding Error Bars to Evals".

Example:
    ```comparisons line,task,metric,value,base_source,base_line,base_value,p,worse,family,cause,cause_source,cause_line
    7,arc_easy,acc,0.52,good/a.json,7,0.61,0.0001,true,tokenizer and vocabulary,vocab_size 320 → 384,config.json,4
    11,piqa,acc,0.60,good/a.json,11,0.605,0.8,true,,,,
    ```
    => EVL020 error confidence=high cause=tokenizer_mismatch value=0.5200 p=0.0001000
Example: nothing differs on disk
    ```comparisons line,task,metric,value,base_source,base_line,base_value,p,worse
    7,arc_easy,acc,0.52,good/a.json,7,0.61,0.0001,true
    ```
    => EVL020 error confidence=high cause=cause_not_recorded value=0.5200 p=0.0001000
Not this:
    ```comparisons line,task,metric,value,base_source,base_line,base_value,p,worse
    7,arc_easy,acc,0.60,good/a.json,7,0.61,0.45,true
    11,piqa,acc,0.66,good/a.json,11,0.605,0.001,false
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.evals.results import Row
from forensics.rules.bad_eval._results import name_of
from forensics.rules.kit import Evidence, EvidenceRole, Finding, Findings, Locator, Onset, Run, rule

#: What a family of settings that differs is the cause of; every other family is of the training.
_CAUSES = {
    "tokenizer and vocabulary": "tokenizer_mismatch",
    "decoding": "eval_settings_change",
    "evaluation settings": "eval_settings_change",
}


@dataclass(frozen=True, slots=True)
class Config:
    """Threshold of EVL020: two-sided p, adjusted for many metrics."""

    alpha: float = 0.05


@rule("bad_eval", needs=("comparisons",), config=Config, severity="error")
def worse_than_baseline(run: Run, cfg: Config) -> Findings:
    """Report the metric that fell with the smallest p, and how many did."""
    tested = run.scan("comparisons").filter(pl.col("p").is_not_null()).collect()
    worse = tested.filter((pl.col("p") < cfg.alpha) & pl.col("worse")).sort("p", maintain_order=True).to_dicts()
    if worse:
        yield _finding(worse[0], len(worse), tested.height)


def _finding(row: Row, count: int, tested: int) -> Finding:
    likely = (
        (f"{row['family']}: {row['cause']}",)
        if row["cause"]
        else ("nothing recorded on disk differs that could cause it",)
    )
    undo = (
        f"undo {row['cause']} ({row['family']}) and evaluate again"
        if row["cause"]
        else "evaluate the baseline once more with this run's command; record configuration, data hashes and pip freeze"
    )
    return worse_than_baseline.finding(
        f"{name_of(row)} is {row['value']:.4g}, in the baseline {row['base_value']:.4g}; {count}/{tested} fell",
        f"with equal settings of both evaluations, chance gives such a difference with p {row['p']:.2g} (Holm)",
        _evidence(row),
        Onset(step=row["step"]),
        confidence="high" if row["p"] < 0.001 else "medium",
        cause=_CAUSES.get(row["family"], "training_differs") if row["cause"] else "cause_not_recorded",
        numbers={"value": row["value"], "baseline": row["base_value"], "p": row["p"], "worse": count},
        likely=likely,
        next=(undo, "see every difference: forensics diff GOOD BAD --section config --section evals"),
    )


def _evidence(row: Row) -> tuple[Evidence, ...]:
    name = f"{row['task']} {row['metric']}"
    found = [
        _at(row["source"], row["line"], f"{name} = {row['value']:.6g}", EvidenceRole.PRIMARY),
        _at(row["base_source"], row["base_line"], f"{name} = {row['base_value']:.6g}", EvidenceRole.RELATED),
    ]
    if row["cause_source"]:
        found.append(_at(row["cause_source"], row["cause_line"], row["cause"], EvidenceRole.RELATED))
    return tuple(found)


def _at(source: str, line: int | None, quote: str, role: EvidenceRole) -> Evidence:
    return Evidence(source=source, locator=Locator(line=line), quote=quote, role=role)
