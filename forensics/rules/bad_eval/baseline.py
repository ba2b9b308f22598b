"""A run beside the baseline that was named."""

from __future__ import annotations

import polars as pl

from forensics.analyses.evals.falls import fall_between
from forensics.analyses.evals.results import Row
from forensics.patterns import lazily
from forensics.rules.bad_eval._results import name_of
from forensics.rules.bad_eval.falls import Fallen
from forensics.rules.kit import Evidence, Findings, Locator, Onset, Run, Struct, proof, rule

#: What a family of settings that differs is the cause of; every other family is of the training.
_CAUSES = {
    "tokenizer and vocabulary": "tokenizer_mismatch",
    "decoding": "eval_settings_change",
    "evaluation settings": "eval_settings_change",
}

#: Two states of the code, the one of the baseline first.
_COMMITS = lazily(r" (?P<good>[0-9a-f]{7,64}) → (?P<bad>[0-9a-f]{7,64})$")


class Worse(Struct, frozen=True):
    """Threshold of EVL020: two-sided p, adjusted for many metrics."""

    alpha: float = 0.05


@rule("EVL020 worse-than-baseline", "comparisons", severity="error")
def worse_than_baseline(run: Run, cfg: Worse) -> Findings:
    """Report the metric that fell with the smallest p, and how many did."""
    tested = run.scan("comparisons").filter(pl.col("p").is_not_null()).collect()
    worse = tested.filter((pl.col("p") < cfg.alpha) & pl.col("worse")).sort("p", maintain_order=True).to_dicts()
    if not worse:
        return
    row = worse[0]
    likely, cause = "nothing recorded on disk differs that could cause it", "cause_not_recorded"
    undo = "evaluate the baseline once more with this run's command; record configuration, data hashes and pip freeze"
    if row["cause"]:
        likely, cause = f"{row['family']}: {row['cause']}", _CAUSES.get(row["family"], "training_differs")
        undo = f"undo {row['cause']} ({row['family']}) and evaluate again"
        if commits := _COMMITS.search(row["cause"]):
            undo = f"find the commit that made it worse: git bisect start {commits['bad']} {commits['good']}"
    told = [_at(row["cause_source"], row["cause_line"], row["cause"])] if row["cause_source"] else []
    yield worse_than_baseline.finding(
        f"{name_of(row)} is {row['value']:.4g}, in the baseline {row['base_value']:.4g};"
        f" {len(worse)}/{tested.height} fell",
        f"with equal settings of both evaluations, chance gives such a difference with p {row['p']:.2g} (Holm)",
        _evidence(row, *told),
        Onset(step=row["step"]),
        confidence="high" if row["p"] < 0.001 else "medium",
        cause=cause,
        numbers={"value": row["value"], "baseline": row["base_value"], "p": row["p"], "worse": len(worse)},
        likely=(likely,),
        next=(undo, "see every difference: forensics diff GOOD BAD --section config --section evals"),
    )


def _evidence(row: Row, *more: Evidence) -> tuple[Evidence, ...]:
    """Both results of a comparison."""
    name = f"{row['task']} {row['metric']}"
    now = _at(row["source"], row["line"], f"{name} = {row['value']:.6g}")
    return proof(now, _at(row["base_source"], row["base_line"], f"{name} = {row['base_value']:.6g}"), *more)


def _at(source: str, line: int | None, quote: str) -> Evidence:
    return Evidence(source, Locator(line=line), quote)


@rule("EVL021 unlike-baseline", "comparisons", confidence="high")
def unlike_baseline(run: Run, cfg: Fallen) -> Findings:
    """Report the first metric that cannot be compared, and how many cannot."""
    rows = run.collect("comparisons").filter(pl.col("blocks").is_not_null()).to_dicts()
    if not rows:
        return
    far = [row for row in rows if _is_far(row, cfg)]
    first = min(far, key=lambda row: row["value"] - row["base_value"]) if far else rows[0]
    yield unlike_baseline.finding(
        f"{name_of(first)} is {first['value']:.4g}, in the baseline {first['base_value']:.4g}: {first['blocks']}"
        if far
        else f"{name_of(first)} cannot be compared with the baseline: {first['blocks']}",
        f"{'one metric was' if len(rows) == 1 else f'{len(rows)} metrics were'} evaluated with other settings"
        " than in the baseline",
        _evidence(first),
        Onset(step=first["step"]),
        severity="error" if far else "warning",
        cause="eval_settings_change" if far else "evaluations_unlike",
        causal="root" if far else "context",
        numbers={"metrics": len(rows)},
        next=(f"evaluate the run again with the settings and the version of the baseline: {first['blocks']}",),
    )


def _is_far(row: Row, cfg: Fallen) -> bool:
    """Whether the run's score is far below the baseline's, as EVL013 takes it."""
    base = {**row, "value": row["base_value"], "stderr": row["base_stderr"], "n": row["base_n"]}
    found = fall_between(base, row)
    return found is not None and found.errors >= cfg.errors and found.lost >= cfg.lost
