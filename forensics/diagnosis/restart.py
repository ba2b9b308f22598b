"""Whether to start a run again, and how: the first row of knowledge that fits the failure and what came before it.

A run that finished gives no decision, and one that cannot be judged gives `unknown`; slow or bad training that went on
to its end is not started again either. Progress is what the attempts trained: one that died at or before the step at
which an earlier one did got no further, and neither did one whose steps nobody logged.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from forensics.action import Action, Restart
from forensics.analyses.checkpoints import why_none
from forensics.analyses.recorded import is_evaluation_only
from forensics.case.endings import ending
from forensics.case.errors.moving import moves
from forensics.case.processes.attempts import attempts, is_failure
from forensics.case.restart import options_of, restart_command
from forensics.case.trainers import trainers
from forensics.knowledge.causes import is_kind
from forensics.knowledge.hosts import host_of
from forensics.knowledge.restarts import RestartRow, nature_of, restarts, tries_left
from forensics.model import Finding, Outcome, Verdict
from forensics.store.run import Run

_UNKNOWN = "nothing says how the run ended"
#: After so many attempts of which nothing was learned another one is a guess.
_BLIND_TRIES = 1
_ANEW = "; no checkpoint {state}, so it may begin anew"


def restart_of(run: Run, verdict: Verdict, findings: Sequence[Finding]) -> Restart | None:
    """Decide whether the run is to be started again; None for a run that finished."""
    if verdict.outcome is Outcome.HEALTHY or is_kind(verdict.cause, "after_end"):
        return None
    if verdict.outcome is not Outcome.FAILED and (ending(run).success is not None or is_evaluation_only(run)):
        return None
    command = _command(run, verdict)
    if verdict.outcome is Outcome.CANNOT_SAY:
        return Restart("unknown", _UNKNOWN, _BLIND_TRIES, command)
    stuck = _stuck(run, verdict)
    nature = _nature(run, verdict, findings) if stuck == 1 else _known_nature(verdict)
    again = _failed_before(run, verdict)
    change = _set(verdict.actions) is not None
    row = next((one for one in restarts() if one.fits(nature, stuck, again=again, change=change)), None)
    if row is None:
        return Restart("unknown", _UNKNOWN, _BLIND_TRIES, command)
    unusable = why_none(run, verdict, findings) if verdict.checkpoint is None else ""
    return Restart(
        decision=row.decision,
        basis=_basis(row, run, verdict, (stuck, unusable)),
        tries=tries_left(nature, stuck),
        command=command,
        change=verdict.actions[0].text if verdict.actions and row.decision in {"after_change", "stop"} else None,
        avoid=_hosts(verdict, findings) if row.decision == "elsewhere" else (),
        no_checkpoint=unusable,
    )


def _failed_before(run: Run, verdict: Verdict) -> bool:
    """Whether an error of an attempt before the judged one names the very thing that the verdict is bound to."""
    bound = verdict.identity.entity if verdict.identity is not None else None
    if bound is None:
        return False
    tried = attempts(run)
    named = run.scan("events").filter(is_failure() & pl.col("text").str.contains(bound, literal=True))
    places = named.select("source", "line", "byte", "t_ns").collect().iter_rows()
    return any(tried.is_over(source, line=line, byte=byte, t_ns=t_ns) for source, line, byte, t_ns in places)


def _nature(run: Run, verdict: Verdict, findings: Sequence[Finding]) -> str:
    """Give the nature of the cause of a run that got further.

    An exception of which only its class is known is moving where it comes at another place, with other words each time.
    """
    known = _known_nature(verdict)
    proof = findings[verdict.lead].evidence[0] if verdict.lead is not None and known == "program" else None
    chance = proof is not None and moves(run, proof.source, proof.locator.line)
    return "moving" if chance else known


def _known_nature(verdict: Verdict) -> str:
    return nature_of(verdict.cause, verdict.shape.value if verdict.shape else "")


def _stuck(run: Run, verdict: Verdict) -> int:
    """How many attempts got no further: one that saved a checkpoint did, unless such a one was there and not loaded."""
    tried, saved = attempts(run), verdict.checkpoint
    first = tried.judged.first
    if saved is None or first is None or saved.step <= first:
        return tried.stuck
    kept = run.scan("checkpoints").filter((pl.col("kind") == "saved") & (pl.col("step") > first))
    places = kept.select("source", "line", "t_ns").collect().iter_rows()
    unused = any(tried.is_over(source, line=line, t_ns=t_ns) for source, line, t_ns in places)
    return tried.stuck if unused else 1


def _basis(row: RestartRow, run: Run, verdict: Verdict, known: tuple[int, str]) -> str:
    tried, (stuck, unusable) = attempts(run), known
    reached = max((one.last for one in tried.every if one.last is not None), default=None)
    bound = verdict.identity.entity if verdict.identity is not None else None
    words = row.says.replace("{stuck}", str(stuck)).replace("{entity}", bound or "it")
    words = words.replace("{reached}", "the start" if reached is None else f"step {reached}")
    anew = verdict.checkpoint is None and row.decision in {"as_is", "elsewhere"}
    return words + _ANEW.format(state="is usable" if unusable else "was found") if anew else words


def _hosts(verdict: Verdict, findings: Sequence[Finding]) -> tuple[str, ...]:
    """The hosts that the lines name on which the verdict rests."""
    proof = findings[verdict.lead].evidence if verdict.lead is not None else ()
    named = (host_of(evidence.quote) for evidence in proof)
    return tuple(dict.fromkeys(host for host in named if host is not None))


def _command(run: Run, verdict: Verdict) -> str | None:
    """The options that load the last good checkpoint, and those that make the first change where it is a setting."""
    if verdict.checkpoint is None:
        return None
    spoken = trainers(run)
    load = restart_command(spoken, verdict.checkpoint.step, verdict.checkpoint.path)
    change = _set(verdict.actions)
    return load if change is None else " ".join((load, *options_of(spoken, *change)))


def _set(told: Sequence[Action]) -> tuple[str, str] | None:
    """The setting that the first action changes, and its value then; None where that is another deed."""
    first = told[0] if told else None
    return (first.setting.key, first.value) if first is not None and first.setting is not None and first.value else None
