"""Choose the finding that explains the others, or decline to judge.

Only findings of severity error make a failure; without one, warnings make a run suspect. An error that is marked as
context (noise around a run) makes neither, and what concerns the evidence only is no warning. Among them `precedence`
chooses: what is nearer to the cause by its kind, else by the common time line of all ranks and sources.

An error of an earlier attempt is reported, and decides nothing where a later attempt trained or has an end of its own.
`healthy` is said only of a run whose training rows are finite and that nothing ended early.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from forensics.analyses.health import Health, health_of
from forensics.case.endings import ending, loop_words
from forensics.case.errors.timeline import before
from forensics.case.folds import has_folds
from forensics.case.processes.attempts import attempts
from forensics.diagnosis.precedence import Kind, explains, kind_of, leads, names_who, preference
from forensics.knowledge.causes import causes, is_kind
from forensics.model import (
    EMPTY,
    Causal,
    Confidence,
    Coverage,
    Evidence,
    EvidenceRole,
    Finding,
    Onset,
    Outcome,
    Severity,
    Shape,
    Verdict,
)
from forensics.store.run import Run
from forensics.values import firsts, replace

_CHAIN = 6
#: A run may finish and have learned nothing, or slowly.
_WORKS = frozenset((Kind.LEARNING, Kind.SLOW))


def decide(findings: Iterable[Finding], run: Run, coverage: Coverage) -> Verdict:
    """Choose the finding that explains the others, or say that the run is healthy or cannot be judged."""
    findings = tuple(findings)
    told = [f for f in findings if not f.is_noise]
    past = _of_earlier_runs([f for f in told if f.severity is Severity.ERROR], run)
    errors = [f for f in told if f.severity is Severity.ERROR and f not in past]
    warnings = [f for f in told if f.severity is Severity.WARNING]
    if errors:
        who = [f for f in warnings if any(names_who(f, error) for error in errors)]
        return _verdict(Outcome.FAILED, [*errors, *who], findings, run)
    if warnings:
        return _verdict(Outcome.SUSPECT, warnings, findings, run)
    return _no_failure(_with_past(health_of(run), past), coverage)


def _verdict(outcome: Outcome, judged: Sequence[Finding], findings: Sequence[Finding], run: Run) -> Verdict:
    """The answer that the finding nearest to the cause gives, with what it explains and what it does not."""
    place = {id(finding): at for at, finding in enumerate(findings)}
    ranked = sorted(judged, key=preference)
    cause = reduce(
        lambda a, b: b if leads(b, a) else a, [f for f in ranked if not any(_weighed(f, decider) for decider in ranked)]
    )
    others = [f for f in ranked if f is not cause and not _repeats(f, cause)]
    explained = [f for f in others if explains(cause, f)]
    omens = [f for f in others if _foretells(f, cause)]
    other = [f for f in others if f.shape is not cause.shape and f not in omens]
    rival = next((f for f in other if f not in explained), None) or next(iter(other), None)
    led = [f for f in omens if f.evidence[0].place != cause.evidence[0].place]
    told = [*led, cause, *(f for f in explained if f not in omens)]
    links = firsts(told, lambda f: f.evidence[0].place)[:_CHAIN]  # two that prove themselves by one line are one event
    onset = _onset(cause, others)
    loop = loop_words(run) if outcome is Outcome.FAILED else ""  # another restart as it is will end there, too
    return Verdict(
        outcome=outcome,
        headline=_sentence(cause) + (f"; {loop}" if loop else ""),
        shape=cause.shape,
        onset=onset,
        culprits=cause.culprits or _whose_memory(cause, findings),
        cause=cause.cause,
        confidence=_confidence(cause, rival, certain=rival is None or rival in explained),
        chain=tuple(f"{f.title} ({f.evidence[0].place})" for f in links),
        runner_up=f"{rival.shape.value}: {rival.title}" if rival is not None and rival not in explained else None,
        against=_against(cause, run),
        identity=cause.identity,
        lead=place[id(cause)],
        chain_findings=tuple(place[id(f)] for f in links),
        onset_confidence=_onset_confidence(cause, onset),
        cause_confidence=_cause_confidence(cause),
    )


def _onset(cause: Finding, others: Iterable[Finding]) -> Onset:
    """Give the onset of the cause.

    Where it knows no step, it is that of what has the same cause, or of which it says who did it, and of no other rank.
    """
    if cause.onset.step is not None or not cause.cause:
        return cause.onset
    same = (f for f in others if (f.cause == cause.cause and explains(cause, f)) or names_who(cause, f))
    alike = (f.onset for f in same if f.onset.step is not None)
    step = next((o for o in alike if None in (o.rank, cause.onset.rank) or o.rank == cause.onset.rank), None)
    return cause.onset if step is None else replace(cause.onset, step=step.step, step_lo=step.step_lo)


def _whose_memory(cause: Finding, findings: Iterable[Finding]) -> tuple[int, ...]:
    """The ranks whose memory grew, where memory ran out and its message names nobody."""
    grown = (f.culprits for f in findings if f.shape is Shape.OOM and f.severity is not Severity.INFO and f.culprits)
    return next(grown, ()) if cause.shape is Shape.OOM else ()


def _onset_confidence(cause: Finding, onset: Onset) -> Confidence | None:
    """How sure the onset is: a fit over records places it less surely than the last step before an error does.

    Of the lab's failures 145 of 157 of an error, a stop or a hang had the right onset, 17 of 21 of a change of level.
    """
    if onset.step is None and onset.t_ns is None:
        return None
    fitted = kind_of(cause) in {Kind.LEARNING, Kind.SLOW}
    return Confidence.MEDIUM if fitted and cause.confidence is Confidence.HIGH else cause.confidence


def _cause_confidence(cause: Finding) -> Confidence | None:
    if not cause.cause:
        return None
    row = causes().get(cause.cause)
    return cause.confidence if row is None or row.is_known else Confidence.LOW


def _of_earlier_runs(errors: Sequence[Finding], run: Run) -> list[Finding]:
    """Errors of an attempt that a later one, which is judged instead, went on from; a fold goes on from none."""
    if not errors or has_folds(run):
        return []
    tried = attempts(run)
    proofs = ((f, f.evidence[0], f.evidence[0].locator) for f in errors if not f.decides)
    return [f for f, e, at in proofs if tried.is_over(e.source, line=at.line, byte=at.byte, t_ns=e.t_ns)]


def _with_past(health: Health, past: Sequence[Finding]) -> Health:
    """Say of what an earlier attempt died, and that the verdict is not about it."""
    if not past:
        return health
    return replace(health, why=f"{health.why} (of the last attempt; an earlier one: {_sentence(past[0])})")


def _repeats(finding: Finding, cause: Finding) -> bool:
    """Whether the decider of failures of several ranks only names the event that the cause is."""
    return finding.decides and finding.evidence[0].place == cause.evidence[0].place


def _weighed(finding: Finding, decider: Finding) -> bool:
    """Whether `finding` is among what the decider of failures of several ranks has weighed."""
    if not decider.decides or finding.decides:
        return False
    as_sure = finding.confidence.rank >= decider.confidence.rank
    elsewhere = finding.evidence[0].source != decider.evidence[0].source
    if as_sure and elsewhere and finding.culprits and finding.culprits == decider.culprits:
        return False  # of the same ranks it knows more: the log of their host, for one
    if finding.shape is Shape.HANG:
        return not is_kind(finding.cause, "after_end")
    return finding.shape is Shape.CRASH and (decider.shape is Shape.CRASH or finding.causal is Causal.SYMPTOM)


def _sentence(finding: Finding) -> str:
    """The title as a sentence: a word gets its capital, the name of a metric or a file stays as it is printed."""
    first, _, rest = finding.title.partition(" ")
    begin = first[:1].upper() + first[1:] if first.isalpha() and first.islower() else first
    return f"{begin} {rest} ({finding.evidence[0].place})" if rest else f"{begin} ({finding.evidence[0].place})"


def _confidence(cause: Finding, rival: Finding | None, *, certain: bool) -> Confidence:
    """The cause's own confidence, one less when a rival cannot be explained and its order is unknown."""
    if certain or rival is None or before(cause.evidence[0], rival.evidence[0]):
        return cause.confidence
    return Confidence.MEDIUM if cause.confidence is Confidence.HIGH else Confidence.LOW


def _foretells(finding: Finding, cause: Finding) -> bool:
    """Whether wrong learning led to NaN or infinity: unless it came after them it is no rival."""
    soft = finding.shape is Shape.LEARNING and cause.shape is Shape.NAN
    return soft and before(cause.evidence[0], finding.evidence[0]) is not True


def _against(cause: Finding, run: Run) -> tuple[Evidence, ...]:
    found = tuple(e for e in cause.evidence if e.role is EvidenceRole.CONTRADICTS)
    success = ending(run).success if kind_of(cause) not in _WORKS else None
    return (*found, success) if success is not None else found


def _no_failure(health: Health, coverage: Coverage) -> Verdict:
    if health.confidence is None:
        return Verdict(Outcome.CANNOT_SAY, f"Cannot say: {_why_not(health, coverage)}")
    return Verdict(Outcome.HEALTHY, f"No failure found: {health.why}", confidence=health.confidence)


def _why_not(health: Health, coverage: Coverage) -> str:
    if not coverage.files:
        return "there is no file to read"
    every = len(coverage.files)
    empty = sum(1 for f in coverage.files if f.size_bytes == 0 and f.reason in {"", EMPTY})
    files = "the only file" if every == 1 else f"{empty} of {every} files"
    note = f" ({files} {'is' if empty == 1 else 'are'} empty)" if empty else ""
    return health.why + note
