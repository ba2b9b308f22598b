"""Which of two findings is nearer to the cause, and what a cause explains: two tables, kind by kind.

A kind is what a finding is in the story of a run, whatever rule made it. `leads.tsv` and `explains.tsv` hold a cell for
each pair of kinds; where a cell says `earlier` the order on the common time line decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from forensics.analyses.traces.gpu_clocks import SAME_ONSET_NS
from forensics.case.errors.timeline import before
from forensics.io.tables import named_rows
from forensics.knowledge.causes import is_kind
from forensics.model import Causal, Confidence, Finding, Shape


class Kind(StrEnum):
    """What a finding is in the story of a run."""

    OWN = "own"
    STOP = "stop"
    LIMIT = "limit"
    STUCK = "stuck"
    WAIT = "wait"
    ECHO = "echo"
    LEARNING = "learning"
    SLOW = "slow"
    GONE = "gone"


#: Shapes of a program's own error, the one that explains most first.
_OWN = (Shape.OOM, Shape.NAN, Shape.CRASH)
_Cells = Mapping[tuple[Kind, Kind], str]


def kind_of(finding: Finding) -> Kind:
    """Say what a finding is in the story of a run."""
    symptom = finding.causal is Causal.SYMPTOM
    if symptom and finding.confidence is Confidence.LOW:
        return Kind.GONE
    match finding.shape:
        case Shape.STOPPED:
            return Kind.LIMIT if is_kind(finding.cause, Kind.LIMIT) else Kind.STOP
        case Shape.HANG:
            return Kind.WAIT if symptom else Kind.STUCK
        case Shape.LEARNING:
            return Kind.LEARNING
        case Shape.SLOWDOWN | Shape.BAD_EVAL:
            return Kind.SLOW
        case _:
            return Kind.ECHO if symptom else Kind.OWN


def preference(finding: Finding) -> tuple[int, int, int, int, str]:
    """Sort key for findings whose order in time is unknown; the smaller is nearer to the cause."""
    shape = _OWN.index(finding.shape) if finding.shape in _OWN else len(_OWN)
    root = 0 if finding.causal is Causal.ROOT else 1
    return (RANKS[kind_of(finding)], root, -finding.confidence.rank, shape, finding.rule)


def leads(one: Finding, other: Finding) -> bool:
    """Whether `one` is nearer to the cause than `other`, which is preferred where nothing decides."""
    if names_who(one, other) or names_who(other, one):
        return names_who(one, other)
    if (one.causal is Causal.CONTEXT) is not (
        other.causal is Causal.CONTEXT
    ):  # what goes on all the time explains none
        return other.causal is Causal.CONTEXT
    a, b = kind_of(one), kind_of(other)
    overruling = {"always"} if one.evidence[0].source == other.evidence[0].source else {"always", "elsewhere"}
    if overruling & {LEADS[a, b], LEADS[b, a]}:
        return LEADS[a, b] in overruling
    return before(one.evidence[0], other.evidence[0]) is True


def explains(cause: Finding, other: Finding) -> bool:
    """Whether `other` can be a consequence of `cause`: not earlier, and of a kind that follows from it."""
    a, b = kind_of(cause), kind_of(other)
    if b is not Kind.GONE and before(other.evidence[0], cause.evidence[0]):
        return False
    match EXPLAINS[a, b]:
        case "alike":
            return other.shape is cause.shape
        case "nan":
            return other.shape is Shape.NAN
        case said:
            return said == "yes"


#: Onsets of one slowdown are this many steps apart at most, or this share of the step: a change of pace is placed by a
#: fit over records, and by another one in the clocks of each rank.
_SAME_STEPS, _SAME_SHARE = 5, 0.1


def same_onset(one: Finding, other: Finding, *, or_earlier: bool = False) -> bool:
    """Whether two findings can speak of one event: their onsets are near each other, or one is unknown."""
    a, b = one.onset.step, other.onset.step
    if a is None or b is None:
        since, until = one.onset.t_ns, other.onset.t_ns
        return since is None or until is None or abs(since - until) <= SAME_ONSET_NS
    near = max(_SAME_STEPS, _SAME_SHARE * b)
    return a - b <= near and (or_earlier or b - a <= near)


def names_who(one: Finding, other: Finding) -> bool:
    """Whether one names the ranks that make the run slow, or that learn otherwise, where the other only says so."""
    if one.shape is not other.shape or not one.culprits or (other.culprits and not _sets_apart(one, other)):
        return False
    if one.shape is Shape.LEARNING:
        return other.onset.rank in one.culprits and same_onset(one, other, or_earlier=True)
    return one.shape is Shape.SLOWDOWN and (same_onset(one, other) or _same_loss(one, other))


def _sets_apart(one: Finding, other: Finding) -> bool:
    """Whether one compares the slow ranks with all others, where the other tells of the same ranks by themselves."""
    compares = "ranks" in one.numbers and "ranks" not in other.numbers
    return compares and one.shape is Shape.SLOWDOWN and {*other.culprits} <= {*one.culprits}


#: A rank that turned slow by this share of what each step takes longer is why it does, wherever either fit begins.
_SAME_LOSS = 0.5


def _same_loss(one: Finding, other: Finding) -> bool:
    """Whether the rank that one names, which was like the others before, explains the time that the other tells of."""
    excess, ratio = one.numbers.get("excess"), other.numbers.get("ratio")
    if one.onset.step_lo is None or not isinstance(excess, float) or not isinstance(ratio, float):
        return False
    return abs(excess) >= _SAME_LOSS * (ratio - 1) > 0


def _cells(rows: list[dict[str, str]]) -> _Cells:
    return {(Kind(row["kind"]), kind): row[kind.value] for row in rows for kind in Kind}


_LEADING = named_rows("forensics.diagnosis", "leads.tsv")
RANKS: Mapping[Kind, int] = {Kind(row["kind"]): int(row["rank"]) for row in _LEADING}
LEADS: _Cells = _cells(_LEADING)
EXPLAINS: _Cells = _cells(named_rows("forensics.diagnosis", "explains.tsv"))
