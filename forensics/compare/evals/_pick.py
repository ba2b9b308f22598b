"""Which evaluation results of two runs stand against each other, and the scores by document that belong to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
import polars as pl

from forensics.analyses.evals.results import Key, Row, age, by_key
from forensics.formats.evals.checkpoint_names import stamp_ns
from forensics.stats.spread import Floats
from forensics.store.run import Run

_AGREES = 1e-6


@dataclass(frozen=True, slots=True)
class Match:
    """One metric of one task on both sides; `others` counts results of it that were passed over."""

    key: Key
    base: Row
    cand: Row
    others: int


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores by document: `docs` are their numbers, `prompts` the hashes of document and prompt."""

    source: str
    docs: tuple[str, ...]
    prompts: tuple[tuple[str | None, str | None], ...]
    values: Floats


def results(run: Run) -> pl.DataFrame:
    """Rows of the evals table with the filter named; tasks known by their samples alone are added."""
    found = run.scan("evals").filter(pl.col("value").is_not_null()).collect()
    told = found.with_columns(filter=pl.col("filter").fill_null("none"))
    only = _by_samples(run, set(told["task"].to_list()))
    return pl.concat([told, only], how="diagonal") if only.height else told


def _by_samples(run: Run, known: set[str]) -> pl.DataFrame:
    scores = run.scan("eval_samples").filter(~pl.col("task").is_in(list(known)))
    grouped = scores.with_columns(filter=pl.col("filter").fill_null("none")).group_by(
        "source", "task", "filter", "metric", maintain_order=True
    )
    return grouped.agg(
        value=pl.col("value").mean(),
        n=pl.len().cast(pl.Int64),
        t_ns=pl.col("t_ns").first(),
        line=pl.col("line").first(),
        byte=pl.col("byte").first(),
        seq=pl.col("seq").first(),
        settings=pl.lit("{}"),
    ).collect()


def matches(base: Run, cand: Run) -> list[Match]:
    """Every metric that both runs have, in the order of the base; of several the last common step, or the last."""
    left, right = by_key(results(base)), by_key(results(cand))
    return [_match(key, left[key], right[key]) for key in left if key in right]


def _match(key: Key, left: list[Row], right: list[Row]) -> Match:
    others = len(left) + len(right) - 2
    models = {r["model"] for r in left} & {r["model"] for r in right}
    if models - {None}:
        left, right = [r for r in left if r["model"] in models], [r for r in right if r["model"] in models]
    steps = ({r["step"] for r in left} & {r["step"] for r in right}) - {None}
    if steps:
        last = max(steps)
        left, right = [r for r in left if r["step"] == last], [r for r in right if r["step"] == last]
    return Match(key, max(left, key=age), max(right, key=age), others)


def has_samples(run: Run) -> bool:
    """Whether a run has scores by document at all."""
    return run.scan("eval_samples").head(1).collect().height > 0


def scores_of(run: Run, row: Row) -> Scores | None:
    """Scores by document of a result: their mean is the value that it states, their file the one nearest to it."""
    task = run.scan("eval_samples").filter((pl.col("task") == row["task"]) & (pl.col("metric") == row["metric"]))
    wanted = task.filter(pl.col("filter").fill_null("none") == (row["filter"] or "none")).collect()
    found: list[tuple[tuple[bool, bool, str], Scores]] = []
    stamp = stamp_ns(row["source"])
    for (source,), part in wanted.group_by("source", maintain_order=True):
        values = part["value"].to_numpy()
        if not isfinite(float(values.sum())) or abs(float(values.mean()) - row["value"]) > _AGREES * max(
            1, abs(row["value"])
        ):
            continue
        if row["n"] is not None and row["n"] != part["doc"].n_unique():
            continue
        name = str(source)
        near = name.rpartition("/")[0] == row["source"].rpartition("/")[0]
        found.append(((stamp is not None and stamp_ns(name) == stamp, near, name), _scores(name, part)))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _scores(source: str, part: pl.DataFrame) -> Scores:
    once = part.unique("doc", keep="first", maintain_order=True)
    hashes = zip(once["doc_hash"].to_list(), once["prompt_hash"].to_list(), strict=True)
    return Scores(source, tuple(once["doc"].to_list()), tuple(hashes), once["value"].to_numpy().astype(np.float64))


def aligned(base: Scores, cand: Scores) -> tuple[Sequence[int], Sequence[int], int]:
    """Places of the shared documents on both sides, and how many of them were asked in other words."""
    at = {doc: i for i, doc in enumerate(cand.docs)}
    left = [i for i, doc in enumerate(base.docs) if doc in at and base.prompts[i][0] == cand.prompts[at[doc]][0]]
    right = [at[base.docs[i]] for i in left]
    other = sum(base.prompts[i][1] != cand.prompts[j][1] for i, j in zip(left, right, strict=True))
    return left, right, other
