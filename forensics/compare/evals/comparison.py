"""Two runs' evaluation results: which differences are real, and whether the evaluations were the same test at all.

Each metric of a task that both have is tested by the best evidence that is there: scores of the same documents, else
the printed standard errors, else the number of documents. A group takes the place of its members in the correction for
many tasks (Holm), and is not comparable if any member is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

from forensics.analyses.evals.results import Key, Row, higher_is_better, members_of
from forensics.analyses.evals.settings import Compared, Unlike, compared, inherited
from forensics.compare.evals._logged import LOGGED, logged_pairs
from forensics.compare.evals._pick import Match, aligned, has_samples, matches, scores_of
from forensics.compare.evals._spread import against_spread
from forensics.compare.evals._tests import Tested, by_counts, by_errors, holm, paired
from forensics.formats.evals.scores import is_share
from forensics.store.run import Run

ALPHA = 0.05
#: Fewer shared documents than this share of the smaller side are no comparison of the two results.
_SHARED = 0.9
_FEWEST_DOCS = 2


@dataclass(frozen=True, slots=True)
class Pair:
    """One metric of one task on both sides.

    `tested` is None where it cannot be tested; `p_holm` is None for what is not in the correction: what is not
    comparable, and members of a group that stands for them. `baselines` counts
    those that it was tested against. `worse` tells whether the candidate's value is the worse
    one; None where the direction is not known or the values are equal.
    """

    match: Match
    settings: Compared
    tested: Tested | None = None
    p_holm: float | None = None
    member: bool = False
    documents: tuple[str, str] | None = None
    baselines: int = 1

    @property
    def base(self) -> Row:
        """Give the result of the base."""
        return self.match.base

    @property
    def cand(self) -> Row:
        """Give the result of the candidate."""
        return self.match.cand

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
        task, metric, by = self.match.key
        return f"{task} {metric}" if by == "none" else f"{task} {metric} ({by})"

    @property
    def unexplained(self) -> bool:
        """Give whether one and the same recorded evaluation of one model gave values far beyond their errors."""
        tested = self.tested
        far = tested is not None and tested.se > 0 and abs(tested.delta) > 5 * tested.se
        return self.settings.same_model and self.comparable and far


def compare_evals(base: Run, cand: Run) -> tuple[Pair, ...]:
    """Test every metric that both runs have, in the order of the base; those that training logged come last."""
    return _corrected(_pairs(base, cand))


def compare_all(bases: Sequence[Run], cand: Run) -> tuple[Pair, ...]:
    """Test every metric against all baselines that have it: how far these lie apart is measured, not assumed."""
    if len(bases) == 1:
        return compare_evals(bases[0], cand)
    by_key: dict[Key, list[Pair]] = {}
    for base in bases:
        for pair in _pairs(base, cand):
            by_key.setdefault(pair.match.key, []).append(pair)
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
    own = {m.key: compared(m.base, m.cand) for m in found}
    pairs = [_pair(m, _settings(m, found, own), base, cand) for m in found]
    inside = _members(pairs)
    pairs = [replace(p, member=p.match.key in inside) for p in pairs]
    logged = [
        Pair(Match((LOGGED, str(one.base["metric"]), "none"), one.base, one.cand, 0), Compared(), one.tested)
        for one in logged_pairs(base, cand)
    ]
    return [*pairs, *logged]


def _corrected(pairs: list[Pair]) -> tuple[Pair, ...]:
    family = [i for i, p in enumerate(pairs) if p.comparable and not p.member and p.tested is not None]
    adjusted = holm([p.p for i in family if (p := pairs[i].tested) is not None])
    for index, value in zip(family, adjusted, strict=True):
        pairs[index] = replace(pairs[index], p_holm=value)
    return tuple(pairs)


def _settings(match: Match, found: Sequence[Match], own: Mapping[Key, Compared]) -> Compared:
    settings = own[match.key]
    if not (members_of(match.base) or members_of(match.cand)):
        return settings
    by_task = {m.key[0]: own[m.key] for m in found}
    return replace(settings, blocks=(*settings.blocks, *inherited((match.base, match.cand), by_task)))


def _members(pairs: Sequence[Pair]) -> set[Key]:
    """Metrics of tasks that the same metric of a comparable group stands for; of nested groups the outermost."""
    tested = [p for p in pairs if p.comparable and p.tested is not None and members_of(p.base)]
    inside = {p.match.key: {(task, *p.match.key[1:]) for task in members_of(p.base)} for p in tested}
    nested = {a for a, own in inside.items() for b, other in inside.items() if a != b and own < other}
    return nested.union(*inside.values()) if inside else set()


def _pair(match: Match, settings: Compared, base: Run, cand: Run) -> Pair:
    if settings.blocks or not (isfinite(match.base["value"]) and isfinite(match.cand["value"])):
        return Pair(match, settings)
    left = scores_of(base, match.base) if base.derived(has_samples) else None
    right = scores_of(cand, match.cand) if left is not None and cand.derived(has_samples) else None
    if left is not None and right is not None:
        at, to, asked_else = aligned(left, right)
        if asked_else:
            words = f"in {asked_else} of {len(at)} documents"
            other = Unlike("prompts", "as asked", f"other words {words}", left.source, right.source)
            return Pair(match, replace(settings, blocks=(other,)))
        if len(at) >= max(_FEWEST_DOCS, _SHARED * min(len(left.docs), len(right.docs))):
            tested = paired(left.values[list(at)], right.values[list(to)])
            return Pair(match, settings, tested, documents=(left.source, right.source))
    return Pair(match, settings, _unpaired(match))


def _unpaired(match: Match) -> Tested | None:
    base, cand = match.base, match.cand
    delta, errors = cand["value"] - base["value"], (base["stderr"], cand["stderr"])
    if all(e is not None and isfinite(e) for e in errors):
        found = by_errors(delta, *errors)
        if found is not None:
            return found
    if is_share(match.key[1]) and base["n"] and cand["n"]:
        return by_counts((base["value"], base["n"]), (cand["value"], cand["n"]))
    return None


def identical(pairs: Sequence[Pair], fewest: int = 10) -> bool:
    """Whether at least `fewest` metrics are all equal to the last digit though two models are named."""
    named = any(p.settings.model for p in pairs)
    return named and len(pairs) >= fewest and all(p.delta == 0 for p in pairs)
