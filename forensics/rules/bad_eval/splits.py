"""A test score far below the validation score of the same name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from forensics.analyses.evals.curves import EvalCurve, eval_curves
from forensics.analyses.learning.objective import reinforced
from forensics.case.joined.stores import counted
from forensics.case.series import metric_names
from forensics.case.steps import at
from forensics.knowledge.scores import counts_right, is_of_pairs
from forensics.knowledge.vocabulary import stands_for, words_for
from forensics.patterns import lazily
from forensics.rules.kit import Findings, Run, Struct, number, onset_at, proof, rule

_BETWEEN = lazily(r"[/_. -]+")


class Apart(Struct, frozen=True):
    """Thresholds of EVL029: what share of a validation score above a guess the test lacks, and how high that score is.

    Tests that were collected again cost 3 to 15 % of an accuracy (Recht et al. 2019), photographs of another kind 40 to
    45 % (Barbu et al. 2019).
    """

    lacks: float = 0.5
    above: float = 0.2


@rule(
    "EVL029 test-unlike-validation",
    "metrics",
    severity="warning",
    confidence="medium",
    cause="splits_disagree",
    causal="root",
)
def splits_disagree(run: Run, cfg: Apart) -> Findings:
    """Find the last test score that lacks half of what the validation of the same name showed."""
    named = (one for one in eval_curves(run) if _is_right(one.name) and stands_for("of_validation", one.name))
    watched = {_rest(one.name): one for one in named}
    if not watched or reinforced(run):
        return
    tests = {_rest(row["name"]): row for row in _tests(run)}
    for what in sorted(watched.keys() & tests.keys()):
        curve, row = watched[what], tests[what]
        guess = 0.5 if is_of_pairs(what) else 0.0
        last = curve.row(-1)
        shown, tested = (_share(value, curve, row) - guess for value in (last["value"], row["value"]))
        if shown < cfg.above or tested > (1 - cfg.lacks) * shown:
            continue
        yield splits_disagree.finding(
            f"{row['raw_name']} is {number(row['value'])}, and {last['raw_name']} {number(last['value'])}",
            "of what the validation showed above a guess, the test lacks "
            + (f"{1 - tested / shown:.0%}" if tested > 0 else "all"),
            proof(row, last, curve.row(0)),
            onset_at(row),
            numbers={"test": row["value"], "validation": last["value"]},
        )
        return


def _is_right(name: str) -> bool:
    return counts_right(name) or is_of_pairs(name)


def _rest(name: str) -> str:
    """The name without the word of its split."""
    return "_".join(filter(None, _BETWEEN.split(name.lower())[1:]))


def _tests(run: Run) -> Sequence[Mapping[str, Any]]:
    """The last finite value of each score of the test, the last attempt's."""
    names = metric_names(run)["name"].unique()
    wanted = [n for n in names.filter(names.str.contains(words_for("of_the_test"))).to_list() if _is_right(n)]
    if not wanted:
        return ()
    rows = counted(run, pl.col("name").is_in(wanted)).filter(pl.col("value_class") == "finite")
    return rows.with_columns(at=at()).collect().sort("attempt", "seq").unique("name", keep="last").to_dicts()


def _share(value: float, curve: EvalCurve, row: Mapping[str, Any]) -> float:
    """A score as a share: both are percentages where either is."""
    return value / (100.0 if max(float(curve.values.max()), row["value"]) > 1 else 1.0)
