"""Scores that say little or cannot be right by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import polars as pl

from forensics.analyses.evals.results import Row, age, courses, error_of, members_of, settings_of
from forensics.knowledge.scores import is_share
from forensics.rules.bad_eval._results import name_of, result_evidence
from forensics.rules.kit import Findings, Onset, Run, Struct, proof, remark, rule


@rule(
    "EVL010 eval-not-a-number",
    "evals",
    severity="warning",
    confidence="high",
    cause="score_not_a_number",
    causal="context",
)
def not_a_number(run: Run) -> Findings:
    """Report all scores that are no number, once."""
    value = pl.col("value")
    rows = run.scan("evals").filter(value.is_null() | ~value.is_finite()).collect().to_dicts()
    bad = [row for row in rows if not (row["value"] is None and members_of(row))]
    if not bad:
        return
    first = bad[0]
    yield not_a_number.finding(
        f"{name_of(first)} is {first['value']}" + (f", and {len(bad) - 1} more scores" if len(bad) > 1 else ""),
        "a score that is not a number means that nothing finite was scored",
        proof(*map(result_evidence, bad[:5])),
        numbers={"scores": len(bad)},
    )


@rule(
    "EVL011 eval-limited", "evals", severity="warning", confidence="high", cause="evaluation_limited", causal="context"
)
def limited(run: Run) -> Findings:
    """Report results of a limited evaluation, once."""
    tasks: dict[tuple[str, str], Row] = {}
    for row in run.collect("evals").iter_rows(named=True):
        if (row["source"], row["task"]) not in tasks and not members_of(row) and _is_limited(row):
            tasks[row["source"], row["task"]] = row
    if not tasks:
        return
    rows = list(tasks.values())
    settings = settings_of(rows[0])
    limit, whole = settings.get("limit", "not stated"), settings.get("n_original", "?")
    yield limited.finding(
        f"{rows[0]['task']} was evaluated on {rows[0]['n'] or '?'} of {whole} documents (limit {limit})",
        "the first documents of a task are not a random sample of it",
        proof(*map(result_evidence, rows[:3])),
        numbers={"tasks": len(rows), "documents": rows[0]["n"] or 0},
    )


def _is_limited(row: Row) -> bool:
    settings = settings_of(row)
    limit, whole, n = settings.get("limit", "none"), settings.get("n_original"), row["n"]
    if isinstance(whole, (int, float)) and n is not None and n >= whole:
        return False
    return limit != "none"


class TooSmall(Struct, frozen=True):
    """Threshold of EVL016: half the width of the 95 % interval, in shares; five points hide most real changes."""

    half_width: float = 0.05


@remark("EVL016 eval-too-small", "evals", confidence="high", cause="too_few_documents")
def too_small(run: Run, cfg: TooSmall) -> Findings:
    """Report the tasks with the largest errors, once."""
    last = [rows[-1] for key, rows in courses(run).items() if is_share(key[1])]
    inside = {task for row in last for task in members_of(row)}
    wide = [row for row in last if row["task"] not in inside and 2 * _error(row) > cfg.half_width]
    if not wide:
        return
    wide.sort(key=lambda row: -_error(row))
    first = wide[0]
    yield too_small.finding(
        f"{name_of(first)} is {first['value']:.3g} ± {2 * _error(first):.2g} (95 %): too few documents",
        f"{len(wide)} scores are that uncertain" if len(wide) > 1 else "one score is that uncertain",
        proof(*map(result_evidence, wide[:3])),
        numbers={"scores": len(wide), "stderr": _error(first)},
    )


def _error(row: Row) -> float:
    if row["stderr"] is not None:
        return float(row["stderr"])
    return error_of(row) or 0.0 if row["n"] else 0.0


#: Metrics in common that are enough whatever their size, and tasks that are where each has so many documents: two
#: models that differ in 1 % of 1000 answers come to one and the same accuracy by chance in 1 of 8, in three such tasks
#: in 1 of 500.
_FEWEST, _TASKS, _DOCUMENTS = 10, 3, 1000
_KEY = ("task", "metric", "filter")


@rule("EVL017 eval-identical", "evals", severity="warning", cause="identical_results")
def identical(run: Run) -> Findings:
    """Report the first two checkpoints that follow each other in step and time and are equal in every metric."""
    rows = run.collect("evals").filter(pl.col("value").is_finite())
    of_one = pl.coalesce(pl.format("{} {}", pl.col("model").fill_null(""), "step"), "source")
    each = {str(key): part.to_dicts() for (key,), part in rows.group_by(of_one, maintain_order=True)}
    ordered = sorted(each.values(), key=lambda part: age(part[0]))
    alike: list[Sequence[Row]] = []
    for before, after in pairwise(ordered):
        other = (before[0]["model"], before[0]["step"]) != (after[0]["model"], after[0]["step"])
        count = _equal(before, after) if other else 0
        alike = [*(alike or [before]), after] if count else []
        if count < _FEWEST and sum(len(_large(part)) for part in alike[1:]) < _TASKS:
            continue
        many = "two" if len(alike) == 2 else str(len(alike))
        yield identical.finding(
            f"{many} results of different checkpoints are equal in all {count} metrics, to the last digit",
            "one of them was copied or came from a cache, or all evaluated the same weights",
            proof(result_evidence(after[0]), result_evidence(alike[0][0])),
            Onset(step=after[0]["step"], step_lo=before[0]["step"]),
            confidence="high" if count >= _FEWEST else "medium",
            numbers={"metrics": count},
        )
        return


def _equal(before: Sequence[Row], after: Sequence[Row]) -> int:
    """Metrics in common, if all are equal and some are neither 0 nor 1; else 0."""
    known = {tuple(row[c] for c in _KEY): row["value"] for row in before}
    common = [(known[key], row["value"]) for row in after if (key := tuple(row[c] for c in _KEY)) in known]
    telling = any(a not in (0, 1) for a, _ in common)
    return len(common) if telling and all(a == b for a, b in common) else 0


def _large(rows: Sequence[Row]) -> set[str]:
    """Tasks whose scores are over so many documents, as stated or computed from an error, that models rarely agree."""
    return {row["task"] for row in rows if row["value"] not in (0, 1) and _documents(row) >= _DOCUMENTS}


def _documents(row: Row) -> float:
    share, error = row["value"], row["stderr"]
    counted = error and 0 < share < 1 and is_share(row["metric"])
    return row["n"] or (share * (1 - share) / error**2 if counted else 0)


class AnswersNotFound(Struct, frozen=True):
    """Thresholds of EVL019, as shares: found by the strict filter at most, by another at least."""

    strict: float = 0.01
    other: float = 0.1


@rule("EVL019 answers-not-found", "evals", severity="warning", confidence="high", cause="answers_not_found")
def answers_not_found(run: Run, cfg: AnswersNotFound) -> Findings:
    """Report each task of which one filter finds no answer and another does."""
    rows = run.collect("evals").filter((pl.col("metric") == "exact_match") & pl.col("filter").is_not_null())
    for _, part in rows.group_by("source", "task", maintain_order=True):
        low, high = part.sort("value").row(0, named=True), part.sort("value").row(-1, named=True)
        if low["value"] is None or low["value"] > cfg.strict or not high["value"] >= cfg.other:
            continue
        yield answers_not_found.finding(
            f"{name_of(low)} is {low['value']:.3g} while {high['filter']} finds {high['value']:.3g}",
            "the same answers are right under one filter and not found under the other",
            proof(result_evidence(low), result_evidence(high)),
            numbers={"strict": low["value"], "other": high["value"]},
        )
