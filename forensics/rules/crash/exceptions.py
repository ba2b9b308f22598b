"""Exceptions of the program: the one that ended the run, and those that it survived."""

from __future__ import annotations

from collections import Counter

from forensics.analyses.hang.complaints import complaints
from forensics.case.errors.failures import Failure, failures, standing
from forensics.case.errors.kinds import Weight, death_of
from forensics.case.errors.named import ranks_on
from forensics.case.errors.odd_rank import odd_rank
from forensics.case.errors.raised import raised_in
from forensics.case.errors.timeline import in_order
from forensics.case.rank_spans import all_ranks, ranks_text
from forensics.case.world import world
from forensics.knowledge.errors import ErrorLine, row_of, telling
from forensics.knowledge.suspects import is_absence, suspect
from forensics.patterns import lazily
from forensics.rules._errors import evidence_of, onset_of, ranks_of, said, short, when, who
from forensics.rules.hang.decide import decision
from forensics.rules.kit import Findings, Run, remark, rule, times

#: Ranks of one program reach the same line within this time.
_TOGETHER_NS = 5_000_000_000
_DIGITS = lazily(r"\d+")
_OF_PROGRAM = "the error is the program's own, and neither later steps nor a success marker follow it"
_OF_LIBRARY = "it was raised inside {library}, and neither later steps nor a success marker follow it"
_OF_HOST = "the driver or the kernel reported it, and neither later steps nor a success marker follow it"


@rule("CRH001 uncaught-exception", "collectives events facts metrics sources stack_frames", severity="error")
def uncaught_exception(run: Run) -> Findings:
    """Find the first exception of the program's own that the run did not survive."""
    crashes = (f for f in standing(run) if f.shape == "crash" and f.weight >= Weight.ECHO)
    found = in_order(f for f in crashes if not death_of(f.code, f.cause))
    own = tuple(f for f in found if f.weight == Weight.OWN) or found
    if not own:
        return
    first = own[0]
    onset = onset_of(run, first)
    everyone = world(run)
    all_alike = len(everyone) > 1 and frozenset(ranks_of([f for f in own if _alike(f, first)])) == everyone
    alone = len(everyone) > 1 and not all_alike and first.rank is not None
    of_one_rank = suspect(first.cause).of_one_rank if alone else ""
    whoever = all_ranks(len(everyone)) if all_alike else who(first.rank)
    known = row_of(first.code, said(first))
    fault, named = _fault(run, own, known)
    said_so = f" {'raised' if first.exception else 'failed with'} {short(said(first))}"
    library, odd = raised_in(first), odd_rank(f"{first.message}\n{first.more}")
    why = _OF_HOST if fault else _OF_LIBRARY.format(library=library) if library else _OF_PROGRAM
    why = why if odd is None else f"{why}; its words set {ranks_text((odd,))} apart from the others"
    yield uncaught_exception.finding(
        f"{fault or whoever + said_so}{when(onset)}",
        why,
        evidence_of(own),
        onset,
        confidence="high" if first.weight == Weight.OWN else "medium",
        culprits=(odd,)
        if odd is not None
        else ()
        if all_alike
        else ranks_of(own[:1]) or named or _on_lost_node(run, known, first) or _missed(run, first),
        cause=of_one_rank or first.cause,
        causal="root" if first.weight == Weight.OWN else "symptom",
        numbers={"errors": len(own)},
        likely=(known.why,) if known and known.why else (),
        next=(*((known.fix,) if known else ()), "open the last frame of your own code, which the evidence names"),
    )


def _fault(run: Run, own: tuple[Failure, ...], known: ErrorLine | None) -> tuple[str, tuple[int, ...]]:
    """Give the fault of a device or a link that a line of the host proves, and the rank that it names.

    Where the line names no process or device that is known, it is that of the one rank that failed by itself, or that
    alone complains of no peer.
    """
    clue, hit = (known.clue, known.compiled.search(own[0].quote)) if known is not None else (None, None)
    if clue is None or hit is None or clue.by != "host" or not clue.holds(hit):
        return "", ()
    named = hit.groupdict()
    place = f" ({named['pci']})" if named.get("pci") else ""
    victims = complaints(run).victims
    alone = ranks_of(own) or (tuple(world(run) - victims) if victims else ())
    return f"{clue.words}{place}, by the log of its host", alone if len(alone) == 1 else ()


def _on_lost_node(run: Run, known: ErrorLine | None, first: Failure) -> tuple[int, ...]:
    """Give the ranks of the node that a line tells as lost."""
    hit = known.compiled.search(first.quote) if known is not None and known.id in telling("lost_node") else None
    return ranks_on(run, hit.groupdict().get("node") or "") if hit is not None else ()


def _missed(run: Run, first: Failure) -> tuple[int, ...]:
    """Give the one rank that the others miss, where this error is of no rank, and its log complains of no peer."""
    found = decision(run)
    if found is None or len(found.ranks) != 1 or not is_absence(found.cause):
        return ()
    peers = {f.source for f in standing(run) if f.weight in {Weight.CLOSED, Weight.TIMEOUT}}
    return found.ranks if peers and first.source not in peers else ()


def _alike(one: Failure, other: Failure) -> bool:
    """Whether two ranks failed together by the same words, numbers aside: the program is at fault, not a rank."""
    if one.t_ns is not None and other.t_ns is not None and abs(one.t_ns - other.t_ns) > _TOGETHER_NS:
        return False
    return one.exception == other.exception and _DIGITS.sub("", one.message) == _DIGITS.sub("", other.message)


_KINDS = 4


@remark("CRH005 caught-exception", "events metrics", cause="caught_exception")
def caught_exception(run: Run) -> Findings:
    """Count the exceptions that were survived."""
    found = [f for f in failures(run) if f.cleared in {"progress", "finished", "recurring"} and f.exception]
    found = [f for f in found if f.shape == "crash" and f.weight == Weight.OWN]
    if not found:
        return
    kinds = Counter(short(said(f)) for f in found)
    first = found[0]
    onset = onset_of(run, first)
    named = "; ".join(f"{words} ({times(count)})" for words, count in kinds.most_common(_KINDS))
    yield caught_exception.finding(
        f"an exception was raised {times(len(found))}{when(onset)}, and the run went on: {short(said(first))}",
        f"training steps or a success marker follow it: {named}",
        evidence_of(found),
        onset,
        confidence="high" if first.cleared == "progress" else "medium",
        culprits=ranks_of(found),
        numbers={"exceptions": len(found), "kinds": len(kinds)},
        next=("if there are many, look for what they have in common: one worker, one file, one host",),
    )
