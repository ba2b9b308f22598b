"""A stop by a person or a scheduler."""

from __future__ import annotations

from forensics.case.errors.failures import standing
from forensics.case.errors.kinds import Weight, sender_of
from forensics.case.errors.launchers import last_end
from forensics.case.errors.timeline import in_order
from forensics.case.last_steps import last_step
from forensics.knowledge.causes import is_kind
from forensics.knowledge.signals import is_asked
from forensics.rules._errors import evidence_of, onset_of, short, when, who
from forensics.rules.kit import Evidence, Findings, Locator, Onset, Run, proof, rule
from forensics.values import replace

_SIGNAL = "a signal from outside"
_TERMINATION = "external_termination"


@rule("STP001 external-stop", "events metrics", severity="error")
def external_stop(run: Run) -> Findings:
    """Find the first stop from outside that ended the run."""
    found = in_order(f for f in standing(run) if f.weight == Weight.STOP)
    if not found:
        yield from _first_asked(run)
        return
    first = found[0]
    # a scheduler's clock is the time of its word; the program goes on until it is ended
    onset = replace(onset_of(run, replace(first, t_ns=None)), t_ns=first.t_ns)
    # a step of a job is told in general words, too, when the whole job ends for a reason that another line gives
    telling = min((f for f in found if sender_of(f.code)), key=lambda f: is_kind(f.cause, "general"), default=first)
    words = sender_of(telling.code, telling.cause)
    cause, words = (telling.cause, words) if words else (_TERMINATION, _SIGNAL)
    asked = {f.rank for f in found}
    others = {f.rank for f in standing(run)} - asked - {None}
    alone = sorted(rank for rank in asked if rank is not None) if others and None not in asked else []
    yield external_stop.finding(
        f"the run was stopped by {words}{when(onset)}: {short(first.quote)}",
        "the program, its launcher or the scheduler says so, and no later step was logged",
        evidence_of(found),
        onset,
        confidence="high",
        culprits=tuple(alone),
        cause=cause,
        numbers={"messages": len(found)},
    )


def _first_asked(run: Run) -> Findings:
    """A worker that a signal asked to end before any other failed; its launcher sends it to those that are left."""
    end = last_end(run)
    if end is None or not is_asked(end.code) or any(f.weight > Weight.WRAPPER for f in standing(run)):
        return
    step = last_step(run, end.source, end.line, end.t_ns, end.rank)
    onset = Onset(step=step, t_ns=end.t_ns, rank=end.rank, step_lo=step)
    where = Locator(line=end.line)
    yield external_stop.finding(
        f"{who(end.rank)} was stopped by {_SIGNAL}{when(onset)}: {short(end.quote)}",
        "the launcher saw it end by that signal before any other, and nothing else failed",
        proof(Evidence(end.source, where, end.quote.strip(), rank=end.rank, t_ns=end.t_ns, name=end.name)),
        onset,
        confidence="medium",
        culprits=() if end.rank is None else (end.rank,),
        cause=_TERMINATION,
        numbers={"exit_code": end.code},
    )
