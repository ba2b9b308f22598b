"""A run beside the baseline that was named."""

from __future__ import annotations

import polars as pl
from msgspec import Struct

from forensics.analyses.evals.falls import fall_between
from forensics.analyses.evals.results import Row
from forensics.rules.bad_eval._results import name_of
from forensics.rules.bad_eval.falls import Fallen
from forensics.rules.kit import Evidence, EvidenceRole, Finding, Findings, Locator, Onset, Run, rule

#: What a family of settings that differs is the cause of; every other family is of the training.
_CAUSES = {
    "tokenizer and vocabulary": "tokenizer_mismatch",
    "decoding": "eval_settings_change",
    "evaluation settings": "eval_settings_change",
}


class Worse(Struct, frozen=True):
    """Threshold of EVL020: two-sided p, adjusted for many metrics."""

    alpha: float = 0.05


@rule("EVL020 worse-than-baseline", "comparisons", severity="error")
def worse_than_baseline(run: Run, cfg: Worse) -> Findings:
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


@rule("EVL021 unlike-baseline", "comparisons", confidence="high")
def unlike_baseline(run: Run, cfg: Fallen) -> Findings:
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


def _is_far(row: Row, cfg: Fallen) -> bool:
    """Whether the run's score lies far below that of the baseline, as EVL013 takes it."""
    base = {**row, "value": row["base_value"], "stderr": row["base_stderr"], "n": row["base_n"]}
    found = fall_between(base, row)
    return found is not None and found.errors >= cfg.errors and found.lost >= cfg.lost
