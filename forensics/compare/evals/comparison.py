"""Two runs' evaluation results: the real differences, and whether the evaluations were the same test at all.

Each metric of a task that both have is tested by the best evidence that is there: scores of the same documents, else
the printed standard errors, else the number of documents. A group takes the place of its members in the correction for
many tasks (Holm), and is not comparable if any member is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, sqrt
from statistics import fmean, variance

import numpy as np
import polars as pl
from msgspec import Struct

from forensics.analyses.evals.results import Key, Row, age, by_key, higher_is_better, members_of
from forensics.analyses.evals.settings import Compared, Unlike, compared, inherited
from forensics.compare.evals._logged import LOGGED, logged_pairs
from forensics.compare.evals._tests import Tested, by_counts, by_errors, holm, paired
from forensics.formats.evals.checkpoint_names import stamp_ns
from forensics.knowledge.scores import is_share
from forensics.stats.spread import Floats
from forensics.stats.student import t_tail
from forensics.store.run import Run, derived
from forensics.values import replace

ALPHA = 0.05
#: Fewer shared documents than this share of the smaller side are no comparison of the two results.
_SHARED = 0.9
_FEWEST_DOCS = 2
#: Degrees of freedom of what is believed of the spread before it is measured (as in `_spread`).
_PRIOR_DF = 4.0


# Which evaluation results of two runs are compared, and the scores by document that belong to them.

_AGREES = 1e-6


class Scores(Struct, frozen=True):
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
        pl.col("t_ns", "line", "byte", "seq").first(),
        value=pl.col("value").mean(),
        n=pl.len().cast(pl.Int64),
        settings=pl.lit("{}"),
    ).collect()


def matches(base: Run, cand: Run) -> list[Pair]:
    """Every metric that both runs have, in the order of the base; of several the last common step, or the last."""
    left, right = by_key(results(base)), by_key(results(cand))
    return [_match(key, left[key], right[key]) for key in left if key in right]


def _match(key: Key, left: list[Row], right: list[Row]) -> Pair:
    others = len(left) + len(right) - 2
    models = {r["model"] for r in left} & {r["model"] for r in right}
    if models - {None}:
        left, right = [r for r in left if r["model"] in models], [r for r in right if r["model"] in models]
    steps = ({r["step"] for r in left} & {r["step"] for r in right}) - {None}
    if steps:
        last = max(steps)
        left, right = [r for r in left if r["step"] == last], [r for r in right if r["step"] == last]
    base, cand = max(left, key=age), max(right, key=age)
    return Pair(key, base, cand, compared(base, cand), others)


@derived
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


class Pair(Struct, frozen=True):
    """One metric of one task on both sides.

    `tested` is None where it cannot be tested; `p_holm` is None for what is not in the correction: what is not
    comparable, and members of a group that stands for them. `baselines` counts
    those that it was tested against. `worse` tells whether the candidate's value is the worse
    one; None where the direction is not known or the values are equal. `others` counts results that were passed over.
    """

    key: Key
    base: Row
    cand: Row
    settings: Compared
    others: int = 0
    tested: Tested | None = None
    p_holm: float | None = None
    member: bool = False
    documents: tuple[str, str] | None = None
    baselines: int = 1

    @property
    def comparable(self) -> bool:
        """Give whether the two evaluations were the same test."""
        return not self.settings.blocks

    @property
    def delta(self) -> float:
        """Give the difference, candidate minus base."""
        return float(self.cand["value"]) - float(self.base["value"])

    @property
    def significant(self) -> bool:
        """Give whether the difference is real at 5 % over all tasks."""
        return self.p_holm is not None and self.p_holm < ALPHA

    @property
    def worse(self) -> bool | None:
        """Give whether the candidate's value is the worse one."""
        better = higher_is_better(self.base, self.cand)
        return None if better is None or self.delta == 0 else (self.delta < 0) is better

    @property
    def name(self) -> str:
        """Give task, metric, and the filter where there is one."""
        task, metric, by = self.key
        return f"{task} {metric}" if by == "none" else f"{task} {metric} ({by})"

    @property
    def unexplained(self) -> bool:
        """Give whether one and the same recorded evaluation of one model gave values far beyond their errors."""
        tested = self.tested
        far = tested is not None and tested.se > 0 and abs(tested.delta) > 5 * tested.se
        return self.settings.same_model and self.comparable and far


def compare_all(bases: Sequence[Run], cand: Run) -> tuple[Pair, ...]:
    """Test every metric against all baselines that have it: how far these differ is measured, not assumed.

    They come in the order of the base, and those that training logged last.
    """
    if len(bases) == 1:
        return _corrected(_pairs(bases[0], cand))
    by_key: dict[Key, list[Pair]] = {}
    for base in bases:
        for pair in _pairs(base, cand):
            by_key.setdefault(pair.key, []).append(pair)
    return _corrected([_against_many(pairs) for pairs in by_key.values()])


def _against_many(pairs: Sequence[Pair]) -> Pair:
    """One pair for several: of the baselines whose evaluation was the same test, at the middle of their values."""
    alike = [p for p in pairs if p.comparable and p.tested is not None]
    if len(alike) < 2:
        return alike[0] if alike else pairs[0]
    tested = against_spread(
        [(float(p.base["value"]), p.tested) for p in alike if p.tested is not None], float(alike[0].cand["value"])
    )
    return replace(alike[0], tested=tested, baselines=len(alike))


def _pairs(base: Run, cand: Run) -> list[Pair]:
    found = matches(base, cand)
    pairs = [_tested(replace(p, settings=_settings(p, found)), base, cand) for p in found]
    inside = _members(pairs)
    logged = logged_pairs(base, cand)
    return [
        *(replace(p, member=p.key in inside) for p in pairs),
        *(Pair((LOGGED, str(a["metric"]), "none"), a, b, Compared(), tested=tested) for a, b, tested in logged),
    ]


def _corrected(pairs: list[Pair]) -> tuple[Pair, ...]:
    family = [i for i, p in enumerate(pairs) if p.comparable and not p.member and p.tested is not None]
    adjusted = holm([p.p for i in family if (p := pairs[i].tested) is not None])
    for index, value in zip(family, adjusted, strict=True):
        pairs[index] = replace(pairs[index], p_holm=value)
    return tuple(pairs)


def _settings(pair: Pair, found: Sequence[Pair]) -> Compared:
    """How two evaluations differ, and how the members of a group do."""
    if not (members_of(pair.base) or members_of(pair.cand)):
        return pair.settings
    by_task = {p.key[0]: p.settings for p in found}
    return replace(pair.settings, blocks=(*pair.settings.blocks, *inherited((pair.base, pair.cand), by_task)))


def _members(pairs: Sequence[Pair]) -> set[Key]:
    """Metrics of tasks that the same metric of a comparable group covers; of nested groups the outermost."""
    tested = [p for p in pairs if p.comparable and p.tested is not None and members_of(p.base)]
    inside = {p.key: {(task, *p.key[1:]) for task in members_of(p.base)} for p in tested}
    nested = {a for a, own in inside.items() for b, other in inside.items() if a != b and own < other}
    return nested.union(*inside.values()) if inside else set()


def _tested(pair: Pair, base: Run, cand: Run) -> Pair:
    if pair.settings.blocks or not (isfinite(pair.base["value"]) and isfinite(pair.cand["value"])):
        return pair
    left = scores_of(base, pair.base) if has_samples(base) else None
    right = scores_of(cand, pair.cand) if left is not None and has_samples(cand) else None
    if left is not None and right is not None:
        at, to, asked_else = aligned(left, right)
        if asked_else:
            words = f"in {asked_else} of {len(at)} documents"
            other = Unlike("prompts", "as asked", f"other words {words}", left.source, right.source)
            return replace(pair, settings=replace(pair.settings, blocks=(other,)))
        if len(at) >= max(_FEWEST_DOCS, _SHARED * min(len(left.docs), len(right.docs))):
            tested = paired(left.values[list(at)], right.values[list(to)])
            return replace(pair, tested=tested, documents=(left.source, right.source))
    return replace(pair, tested=_unpaired(pair))


def _unpaired(pair: Pair) -> Tested | None:
    base, cand = pair.base, pair.cand
    errors = (base["stderr"], cand["stderr"])
    if all(e is not None and isfinite(e) for e in errors) and (found := by_errors(pair.delta, *errors)) is not None:
        return found
    if is_share(pair.key[1]) and base["n"] and cand["n"]:
        return by_counts((base["value"], base["n"]), (cand["value"], cand["n"]))
    return None


def identical(pairs: Sequence[Pair], fewest: int = 10) -> bool:
    """Whether at least `fewest` metrics are all equal to the last digit though two models are named."""
    named = any(p.settings.model for p in pairs)
    return named and len(pairs) >= fewest and all(p.delta == 0 for p in pairs)


# One result against several baselines: the spread between equal runs is part of the error.


def against_spread(found: Sequence[tuple[float, Tested]], value: float) -> Tested:
    """Judge a value against those of two baselines or more, by a moderated t (Smyth 2004).

    The variance between baselines is mixed with the one that their tests state; the candidate is one more draw.
    """
    k = len(found)
    values = [base for base, _ in found]
    stated = fmean(tested.se**2 for _, tested in found) / 2
    df = _PRIOR_DF + k - 1
    moderated = (_PRIOR_DF * stated + (k - 1) * variance(values)) / df
    se = sqrt(moderated * (1 + 1 / k))
    delta = value - fmean(values)
    p = 1.0 if delta == 0 else 0.0 if se == 0 else min(1.0, 2 * t_tail(abs(delta) / se, df))
    return Tested(f"against the spread of {k} baselines", delta, se, p, found[0][1].n)
