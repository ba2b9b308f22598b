"""Findings to one answer: which came first, which explains which, and when nothing may be said.

Only findings of severity error make a failure; where there is none, warnings make a run suspect. An error that is
marked as context (noise around a run) makes neither, and what speaks of the evidence only is no warning. Among them the
cause is chosen in this order:

1. What names a failure of its own beats what only says that a process is gone.
2. Between the rest, the one that came first on the common time line of all ranks and sources.
3. Where no order can be known: memory, not-a-number and own errors, then stops, then waits.

Finite but wrong learning explains a stop or a wait that follows it, never an error of the program's own; a slowdown
explains a time limit, and no other stop.
An error of an earlier attempt is told, and decides nothing where a later attempt trained or has an end of its own.
`healthy` is said only of a run whose training rows are finite and that nothing ended early.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce

from forensics.case.attempts import attempts
from forensics.case.endings import ending
from forensics.case.errors.timeline import before
from forensics.case.health import Health, health_of
from forensics.model import (
    Causal,
    Confidence,
    Coverage,
    Evidence,
    EvidenceRole,
    Finding,
    Outcome,
    Severity,
    Shape,
    Verdict,
)
from forensics.store.run import Run

#: Shapes that an error of the run's own can have: these explain what others only suffer.
_OWN = frozenset((Shape.OOM, Shape.NAN, Shape.CRASH))
#: Shapes that say how well a run worked, not why it ended.
_SOFT = frozenset((Shape.LEARNING, Shape.SLOWDOWN, Shape.BAD_EVAL))
_CHAIN = 6
#: Onsets of one slowdown lie this many steps apart at most, or this share of the step.
_SAME_STEPS, _SAME_SHARE = 5, 0.05


def decide(findings: Iterable[Finding], run: Run, coverage: Coverage) -> Verdict:
    """Choose the finding that explains the others, or say that the run is healthy or cannot be judged."""
    told = [f for f in findings if not f.is_noise]
    past = _of_earlier_runs([f for f in told if f.severity is Severity.ERROR], run)
    errors = [f for f in told if f.severity is Severity.ERROR and f not in past]
    if errors:
        return _verdict(Outcome.FAILED, errors, run)
    if warnings := [f for f in told if f.severity is Severity.WARNING]:
        return _verdict(Outcome.SUSPECT, warnings, run)
    return _no_failure(_with_past(health_of(run), past), coverage)


def _verdict(outcome: Outcome, findings: Sequence[Finding], run: Run) -> Verdict:
    """The answer that the finding nearest to the cause gives, with what it explains and what it does not."""
    cause = reduce(_earlier, sorted(findings, key=_preference))
    others = [f for f in sorted(findings, key=_preference) if f is not cause and not _repeats(f, cause)]
    explained = [f for f in others if _explains(cause, f)]
    omens = [f for f in others if _foretells(f, cause)]
    other = [f for f in others if f.shape is not cause.shape and f not in omens]
    rival = next((f for f in other if f not in explained), None) or next(iter(other), None)
    return Verdict(
        outcome=outcome,
        headline=_sentence(cause),
        shape=cause.shape,
        onset=cause.onset,
        culprits=cause.culprits,
        cause=cause.cause,
        confidence=_confidence(cause, rival, certain=rival is None or rival in explained),
        chain=_chain([*omens, cause, *(f for f in explained if f not in omens)]),
        runner_up=f"{rival.shape.value}: {rival.title}" if rival else None,
        against=_against(cause, run),
        identity=cause.identity,
    )


def _of_earlier_runs(errors: Sequence[Finding], run: Run) -> list[Finding]:
    """Errors of an attempt that a later one, which is judged instead, went on from."""
    if not errors:
        return []
    tried = attempts(run)
    proofs = [(f, f.evidence[0]) for f in errors if not f.decides]
    return [
        f
        for f, proof in proofs
        if tried.is_over(proof.source, line=proof.locator.line, byte=proof.locator.byte, t_ns=proof.t_ns)
    ]


def _with_past(health: Health, past: Sequence[Finding]) -> Health:
    """Say of what an earlier attempt died, and that the verdict is not about it."""
    if not past:
        return health
    return replace(health, why=f"{health.why} (of the last attempt; an earlier one: {_sentence(past[0])})")


def _preference(finding: Finding) -> tuple[int, int, int, str]:
    """Sort key for findings whose order in time is unknown; the smaller is nearer to the cause."""
    return (
        _tier(finding),
        0 if finding.causal is Causal.ROOT else 1,
        -finding.confidence.rank,
        finding.rule,
    )


def _tier(finding: Finding) -> int:
    if _weak(finding):
        return 9
    if finding.shape in _SOFT:
        return 4
    if finding.causal is Causal.ROOT:
        return 0 if finding.shape in _OWN else 1 if finding.shape is Shape.STOPPED else 2
    return 2 if finding.shape is Shape.HANG else 3


def _weak(finding: Finding) -> bool:
    """Whether a finding only says that a process is gone."""
    return finding.causal is Causal.SYMPTOM and finding.confidence is Confidence.LOW


def _earlier(a: Finding, b: Finding) -> Finding:
    """Give the one of two findings that is nearer to the cause; `a` is preferred where no order is known."""
    if _yields(a, b):
        return b
    if _yields(b, a):
        return a
    return b if before(b.evidence[0], a.evidence[0]) else a


def _yields(finding: Finding, other: Finding) -> bool:
    """Whether a finding gives way to another one whatever their order in time."""
    if _decided(other, finding):
        return True
    if _decided(finding, other):
        return False
    if _weak(finding) is not _weak(other):
        return _weak(finding)
    if _says_who(other, finding) or _says_who(finding, other):
        return _says_who(other, finding)
    if _ended_by_itself(other) and (finding.shape in _SOFT or _echo(finding)):
        return True
    return _only_slow(finding) and _stopped_for_another_reason(other)


def _says_who(one: Finding, other: Finding) -> bool:
    """Whether one names the ranks that make the run slow, where the other only says that it is slow since then."""
    if not (one.shape is other.shape is Shape.SLOWDOWN and one.culprits and not other.culprits):
        return False
    a, b = one.onset.step, other.onset.step
    return a is None or b is None or abs(a - b) <= max(_SAME_STEPS, _SAME_SHARE * b)


def _repeats(finding: Finding, cause: Finding) -> bool:
    """Whether the decider of failures of several ranks only names the event that the cause is."""
    return finding.decides and finding.evidence[0].place == cause.evidence[0].place


def _decided(decider: Finding, finding: Finding) -> bool:
    """Whether `finding` is among what the decider of failures of several ranks has weighed."""
    if not decider.decides or finding.decides:
        return False
    if finding.shape is Shape.HANG:
        return finding.cause != "shutdown_hang"
    return finding.shape is Shape.CRASH and (decider.shape is Shape.CRASH or finding.causal is Causal.SYMPTOM)


def _echo(finding: Finding) -> bool:
    """Whether a finding is an error that only follows from another one, which may be printed after it."""
    return finding.shape is Shape.CRASH and finding.causal is Causal.SYMPTOM


def _only_slow(finding: Finding) -> bool:
    return finding.shape in {Shape.SLOWDOWN, Shape.BAD_EVAL}


def _stopped_for_another_reason(finding: Finding) -> bool:
    """Whether somebody ended the run; a slow run may reach its time limit, so that one is left to the order."""
    return finding.shape is Shape.STOPPED and finding.cause != "time_limit"


def _ended_by_itself(finding: Finding) -> bool:
    return finding.shape in _OWN and finding.causal is Causal.ROOT


def _explains(cause: Finding, other: Finding) -> bool:
    """Whether `other` can be a consequence of `cause`: not earlier, and not a failure of another kind by itself."""
    if before(other.evidence[0], cause.evidence[0]) and not _weak(other):
        return False
    if cause.shape in _SOFT:
        return other.shape in {Shape.STOPPED, Shape.NAN}
    return other.causal is Causal.SYMPTOM or other.shape in {Shape.STOPPED, Shape.HANG, *_SOFT, cause.shape}


def _sentence(finding: Finding) -> str:
    title = finding.title[:1].upper() + finding.title[1:]
    return f"{title} ({finding.evidence[0].place})"


def _confidence(cause: Finding, rival: Finding | None, *, certain: bool) -> Confidence:
    """The cause's own confidence, one less when a rival cannot be explained and its order is unknown."""
    if certain or rival is None or before(cause.evidence[0], rival.evidence[0]):
        return cause.confidence
    return Confidence.MEDIUM if cause.confidence is Confidence.HIGH else Confidence.LOW


def _foretells(finding: Finding, cause: Finding) -> bool:
    """Whether wrong learning led up to numbers that are none: it stands before them, and is no rival."""
    soft = finding.shape is Shape.LEARNING and cause.shape is Shape.NAN
    return soft and before(finding.evidence[0], cause.evidence[0]) is True


def _chain(steps: list[Finding]) -> tuple[str, ...]:
    return tuple(f"{f.title} ({f.evidence[0].place})" for f in steps[:_CHAIN])


def _against(cause: Finding, run: Run) -> tuple[Evidence, ...]:
    found = tuple(e for e in cause.evidence if e.role is EvidenceRole.CONTRADICTS)
    success = ending(run).success
    return (*found, success) if success is not None else found


def _no_failure(health: Health, coverage: Coverage) -> Verdict:
    if health.confidence is None:
        return Verdict(Outcome.CANNOT_SAY, f"Cannot say: {_why_not(health, coverage)}")
    return Verdict(
        Outcome.HEALTHY,
        f"No failure found: {health.why}",
        confidence=health.confidence,
    )


def _why_not(health: Health, coverage: Coverage) -> str:
    if not coverage.files:
        return "there is no file to read"
    empty = sum(1 for f in coverage.files if f.size_bytes == 0)
    note = f" ({empty} of {len(coverage.files)} files are empty)" if empty else ""
    return health.why + note
