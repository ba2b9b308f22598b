"""Clues to one decision: weights add up per rank, victims fall away, a tie is answered as a tie."""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections import Counter
from collections.abc import Sequence
from functools import cache

from msgspec import Struct

from forensics.case.end_markers import marks_of
from forensics.case.errors.exits import cause_of, exits
from forensics.case.errors.failures import standing
from forensics.case.errors.kinds import Weight
from forensics.case.errors.launchers import follows
from forensics.case.rank_spans import MOST_RANKS
from forensics.case.world import world
from forensics.knowledge.errors import table
from forensics.knowledge.reports import report
from forensics.knowledge.suspects import is_absence, is_death, is_start, suspect
from forensics.model import Confidence, Shape
from forensics.rules.hang.clue import Clue, ClueRule, ClueSource
from forensics.store.run import Run, derived
from forensics.values import replace

#: Ranks with this share of the best score are named together.
SHARE = 0.75
#: A cause that names no rank decides from this weight on.
ALONE = 5.0
#: Less than this is a hint and no decision.
ENOUGH = 3.0
#: These kinds of evidence stand by themselves, from a weight on: they prove a stall or a death without any complaint.
_STANDALONE = {"recorder": 4.0, "stack": 4.0, "exit": 6.0}

#: Kinds of lines by which a rank reports a failure of its own, and not of a peer.
_OF_ITS_OWN = ("own", "echo")


class Decision(Struct, frozen=True):
    """Who and why: `ranks` is empty where nobody can be named; `tied` are those it cannot choose between.

    `deed`: what they did, where nothing states the cause and it only stands for what is known.
    """

    ranks: tuple[int, ...]
    cause: str
    confidence: Confidence
    shape: Shape
    clues: tuple[Clue, ...]
    tied: tuple[int, ...] = ()
    deed: str = ""


@cache
def sources() -> tuple[ClueSource, ...]:
    """Every rule of this folder and below that gives clues: a new file is a new kind of evidence."""
    package = importlib.import_module(__package__ or "forensics.rules.hang")
    names = sorted(m.name for m in pkgutil.walk_packages(package.__path__, package.__name__ + "."))
    modules = [importlib.import_module(n) for n in names if not n.rsplit(".", 1)[-1].startswith("_")]
    return tuple(
        one.find
        for module in modules
        for one in vars(module).values()
        if isinstance(one, ClueRule) and one.origin == module.__name__
    )


@derived
def decision(run: Run) -> Decision | None:
    """Weigh the evidence of a run of several ranks; None where nothing failed or nothing can be said."""
    clues = (clue for source in sources() for clue in source(run))
    found = tuple(clue for clue in clues if not _consequence(run, clue) and not _was_stopped(run, clue))
    if not _failed(run, found):
        return None
    everyone = _everyone(run, found)
    score: Counter[int] = Counter()
    for clue in found:
        for rank in clue.ranks:
            score[rank] += clue.weight  # type: ignore[assignment]
    clues = tuple(sorted(_relevant(found, score), key=lambda c: -c.weight))
    of_nobody = (c for c in found if not c.ranks and not c.tied and c.weight >= ALONE)
    common = max(of_nobody, key=lambda c: c.weight, default=None)
    tie = max((c for c in found if c.tied), key=lambda c: c.weight, default=None)
    best = max(score.values(), default=0.0)
    if common is not None and common.weight >= best:
        return _of((), common.cause, Confidence.MEDIUM, clues)
    # absence and stalls follow from the tie itself
    if tie is not None and not any(c.ranks and c.weight >= tie.weight and not is_absence(c.cause) for c in found):
        return _of((), _cause(run, [c for c in found if c.tied]), Confidence.LOW, clues, tie.tied)
    if best < ENOUGH:
        return None
    top = tuple(sorted(r for r, s in score.items() if s >= SHARE * best))
    about = [c for c in found if set(c.ranks) & set(top)]
    if len(top) * 2 > len(everyone) and len(everyone) > 1:
        return _of((), _cause(run, about), Confidence.LOW, clues, top)
    cause = _cause(run, about)
    # an absence is what the others see; where one fault of a host is told, it is why
    faults = {c.cause for c in found if c.kind == "host" and not c.ranks}
    if is_absence(cause) and len(faults) == 1 and not is_death(cause):
        cause = faults.pop()
    stated = any(rank in exits(run).by_rank for rank in top) or any(f.cause == cause for f in standing(run))
    deeds = (suspect(c.cause).deed for c in about if suspect(c.cause).stands_for == cause)
    return replace(_of(top, cause, _confidence(about), clues), deed="" if stated else next(deeds, ""))


def _consequence(run: Run, clue: Clue) -> bool:
    """Whether all that a log proves it by was printed by a group that was started after the run had failed."""
    return clue.kind == "log" and all(follows(run, e.source, e.locator.line, e.t_ns) for e in clue.evidence)


def _was_stopped(run: Run, clue: Clue) -> bool:
    """Whether the ranks that a log misses were asked from outside to end before any other complained.

    Where their logs have no clock, those that are said to be gone and end with a stop were: it is no silent death.
    """
    if clue.kind != "log" or not clue.ranks or not is_absence(clue.cause):
        return False
    stops = [(f.rank, f.t_ns) for f in standing(run) if f.weight == Weight.STOP]
    unasked = set(clue.ranks) - {rank for rank, t_ns in stops if t_ns is None}
    if is_death(clue.cause) and not unasked:
        return True
    timed = [(f.t_ns, f.rank, f.weight == Weight.STOP) for f in standing(run) if f.t_ns is not None]
    missed = min((t_ns for t_ns, rank, is_stop in timed if not is_stop and rank not in clue.ranks), default=None)
    asked = {rank for t_ns, rank, is_stop in timed if is_stop and missed is not None and t_ns < missed}
    return asked.issuperset(clue.ranks)


def _everyone(run: Run, found: Sequence[Clue]) -> frozenset[int]:
    """Give the ranks of the job; those below a rank that a library names exist too."""
    named = max((rank for clue in found if clue.stated for rank in (*clue.ranks, *clue.tied)), default=-1)
    return world(run) | frozenset(range(named + 1)) if named < MOST_RANKS else world(run)


def _failed(run: Run, found: Sequence[Clue]) -> bool:
    """Whether there is a failure of several ranks to explain."""
    if not found or (len(_everyone(run, found)) < 2 and not any(is_start(c.cause) or c.stated for c in found)):
        return False
    if any(f.weight != Weight.STOP for f in standing(run)):
        return True
    stalled = any(c.weight >= _STANDALONE.get(c.kind, math.inf) for c in found)
    return stalled and marks_of(run).final is None


def _relevant(found: Sequence[Clue], score: Counter[int]) -> list[Clue]:
    best = max(score.values(), default=0.0)
    return [c for c in found if not c.ranks or any(score[r] >= SHARE * best for r in c.ranks)]


def _cause(run: Run, clues: Sequence[Clue]) -> str:
    """Give the most telling cause; a rank that left has that of its exit code, else of what it printed of its end."""
    best = max(clues, key=lambda c: (suspect(c.cause).telling, c.weight), default=None)
    if best is None:
        return ""
    known, told = suspect(best.cause), exits(run).by_rank
    codes = {told[rank].code for rank in best.ranks if rank in told}
    if known.by_exit and len(codes) == 1:
        return cause_of(codes.pop())
    printed = {f.cause for f in standing(run) if f.rank in best.ranks and report(f.cause).is_of_its_end}
    return printed.pop() if known.by_exit and len(printed) == 1 else known.stands_for or best.cause


def _confidence(clues: Sequence[Clue]) -> Confidence:
    strong = {c.kind for c in clues if c.weight >= 3}
    if len(strong) > 1:
        return Confidence.HIGH
    return Confidence.MEDIUM if any(c.weight >= 5 for c in clues) else Confidence.LOW


def _of(
    ranks: tuple[int, ...], cause: str, confidence: Confidence, clues: tuple[Clue, ...], tied: tuple[int, ...] = ()
) -> Decision:
    # a death by a signal has causes of its own; of other errors the catalogue says the shape
    told = any(row.cause == cause and row.shape == "crash" and row.kind in _OF_ITS_OWN for row in table())
    shape = Shape.CRASH if told or is_death(cause) else Shape.HANG
    return Decision(ranks, cause, confidence, shape, clues, tied)
