"""A clue: what one kind of evidence says of ranks and cause, with a weight.

Rules give clues; one decider adds them up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

from forensics.analyses.hang.collectives import Entry
from forensics.analyses.hang.last_seen import Seen
from forensics.analyses.hang.stacks import Stack
from forensics.model import Evidence, EvidenceRole, Locator, Onset
from forensics.registry import Rule, rule
from forensics.rules.kit import Findings, Struct
from forensics.store.run import Run
from forensics.values import field_names

#: Tables that tell of the ranks of a job, and of what they wait for.
RANKS = "collectives events facts metrics sources stack_frames"


class Clue(Struct, frozen=True):
    """One piece of evidence that names ranks (or none, when it only names a cause) and a cause.

    `kind` is where it comes from: log, recorder, stack, exit, host or words. `tied` are ranks between which it cannot
    choose. `stated` says that a library named the ranks, so that they exist though no line is theirs. Weights add up
    per rank; 5 is one kind of evidence that nearly always holds.
    """

    ranks: tuple[int, ...]
    cause: str
    weight: float
    kind: str
    why: str
    evidence: tuple[Evidence, ...]
    tied: tuple[int, ...] = ()
    stated: bool = False


ClueSource = Callable[[Run], Iterable[Clue]]


class ClueRule(Rule, frozen=True):
    """A rule that finds clues: each is shown as a finding that decides nothing by itself."""

    def __call__(self, run: object, config: object = None) -> Findings:  # noqa: ARG002 - clues ask the run for thresholds
        """Show what the rule finds in a run."""
        for clue in self.find(run):
            yield self.finding(
                clue.why,
                f"evidence of the kind {clue.kind!r}, weight {clue.weight:g}; the decision is HNG003's",
                clue.evidence,
                Onset(rank=clue.ranks[0] if clue.ranks else None),
                severity="info",
                confidence="medium" if clue.weight >= 5 else "low",
                culprits=clue.ranks,
                cause=clue.cause,
                causal="context",
                numbers={"weight": clue.weight},
            )


def gives_clues(name: str, needs: str = RANKS, *, config: type | None = None) -> Callable[[ClueSource], ClueRule]:
    """Make a rule of a function that gives clues; a new file with one is a new kind of evidence for the decider."""

    def declared(source: ClueSource) -> ClueRule:
        made = rule(name, needs, config=config)(cast("Any", source))
        return ClueRule(**{one: getattr(made, one) for one in field_names(made)})

    return declared


def of_entry(entry: Entry) -> Evidence:
    """Evidence of one recorded collective."""
    where = Locator(path=f"{entry.key[0]} seq {entry.seq}")
    site = f", called at {entry.site}" if entry.site else ""
    state = "completed" if entry.done else "not completed"
    return Evidence(entry.source, where, f"rank {entry.rank}: {entry.words}, {state}{site}", rank=entry.rank)


def of_stack(stack: Stack) -> Evidence:
    """Evidence of one stack: its innermost frames."""
    inner = " < ".join(f.text for f in stack.frames[:3])
    words = f"rank {stack.rank} ({stack.state or 'state unknown'}): {inner}"
    return Evidence(stack.source, Locator(line=stack.line), words, rank=stack.rank)


def of_seen(seen: Seen) -> Evidence:
    """Evidence of a rank's last words."""
    role = EvidenceRole.RELATED
    return Evidence(seen.source, Locator(line=seen.line), seen.words, seen.step, seen.rank, seen.t_ns, role=role)
