"""A test score far below the validation score of the same name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from forensics.analyses.evals.curves import eval_curves
from forensics.analyses.evals.results import courses
from forensics.analyses.learning.objective import reinforced
from forensics.case.joined.stores import counted
from forensics.case.series import metric_names
from forensics.case.steps import at
from forensics.knowledge.scores import counts_right, is_of_pairs
from forensics.knowledge.vocabulary import stands_for, words_for
from forensics.patterns import lazily
from forensics.rules.bad_eval._results import result_evidence
from forensics.rules.kit import Evidence, Findings, Onset, Run, Struct, number, onset_at, proof, rule

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
    "metrics evals",
    severity="warning",
    confidence="medium",
    cause="splits_disagree",
    causal="root",
)
def splits_disagree(run: Run, cfg: Apart) -> Findings:
    """Find the last test score that lacks half of what the validation of the same name showed."""
    tests = _tests(run)
    watched = _watched(run, tests) if tests else {}
    if not watched or reinforced(run):
        return
    for what in sorted(watched.keys() & tests.keys()):
        last, test = watched[what], tests[what]
        guess = 0.5 if is_of_pairs(what) else 0.0
        scale = 100.0 if max(last.most, test.most) > 1 else 1.0
        shown, tested = (one.value / scale - guess for one in (last, test))
        if shown < cfg.above or tested > (1 - cfg.lacks) * shown:
            continue
        yield splits_disagree.finding(
            f"{test.name} is {number(test.value)}, and {last.name} {number(last.value)}",
            "of what the validation showed above a guess, the test lacks "
            + (f"{1 - tested / shown:.0%}" if tested > 0 else "all"),
            (*test.proof, *last.proof),
            test.onset,
            numbers={"test": test.value, "validation": last.value},
        )
        return


class _Score(Struct, frozen=True):
    """The last value of a score, the highest it ever had, and where it is written."""

    name: str
    value: float
    most: float
    proof: tuple[Evidence, ...]
    onset: Onset = Onset()


def _is_right(name: str) -> bool:
    return counts_right(name) or is_of_pairs(name)


def _rest(name: str) -> str:
    """The name without the word of its split."""
    return "_".join(filter(None, _BETWEEN.split(name.lower())[1:]))


def _watched(run: Run, tests: Mapping[str, _Score]) -> dict[str, _Score]:
    """The score of the validation by the rest of its name, the logged one before that of a file of results.

    What a trainer evaluates is the validation where it predicts a test beside.
    """
    predicts = any(stands_for("predicted", one.name) for one in tests.values())
    found = {
        _rest(name): one
        for name, one in _results(run)
        if stands_for("of_validation", name) or (predicts and stands_for("evaluated", name))
    }
    for curve in eval_curves(run):
        if _is_right(curve.name) and stands_for("of_validation", curve.name):
            last, most = curve.row(-1), float(curve.values.max())
            found[_rest(curve.name)] = _Score(last["raw_name"], last["value"], most, proof(last, curve.row(0)))
    return found


def _tests(run: Run) -> dict[str, _Score]:
    """The last finite score of each test by the rest of its name, the last attempt's, or that of a file of results."""
    found = {_rest(name): one for name, one in _results(run) if stands_for("of_the_test", name)}
    names = metric_names(run)["name"].unique()
    wanted = [n for n in names.filter(names.str.contains(words_for("of_the_test"))).to_list() if _is_right(n)]
    if not wanted:
        return found
    rows = counted(run, pl.col("name").is_in(wanted)).filter(pl.col("value_class") == "finite")
    last = rows.with_columns(at=at()).collect().sort("attempt", "seq").unique("name", keep="last")
    logged = {
        _rest(row["name"]): _Score(row["raw_name"], row["value"], row["value"], proof(row), onset_at(row))
        for row in last.to_dicts()
    }
    return found | logged


def _results(run: Run) -> Iterator[tuple[str, _Score]]:
    """Scores of files of results by split and metric, where the split is all that the file says of the task."""
    for (task, metric, _), rows in courses(run).items():
        name = f"{task}/{metric}"
        if _is_right(name):
            value = float(rows[-1]["value"])
            yield name, _Score(name, value, value, (result_evidence(rows[-1]),), Onset(step=rows[-1]["step"]))
