"""A process that did not exit after the run had finished."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.case.end_markers import Mark, marks_of
from forensics.case.errors.failures import Failure, failures
from forensics.case.errors.kinds import Weight
from forensics.case.errors.timeline import in_order
from forensics.case.rank_spans import listed, ranks_text
from forensics.case.world import world
from forensics.knowledge.errors import by_id, telling
from forensics.knowledge.signals import code_of, is_sent
from forensics.rules._errors import evidence_of
from forensics.rules.hang.clue import RANKS
from forensics.rules.kit import Evidence, Findings, Locator, Onset, Run, Struct, proof, rule

_HALF_HOUR_S = 1800


class Teardown(Struct, frozen=True):
    """Threshold of HNG002: seconds between success and kill that a tear-down may take."""

    teardown_s: int = 60


@rule("HNG002 shutdown-hang", RANKS, severity="error", confidence="medium", cause="shutdown_hang")
def shutdown_hang(run: Run, cfg: Teardown) -> Findings:
    """Find a process that stayed alive after the run had finished."""
    torn = in_order(f for f in failures(run) if f.cleared == "teardown")
    if not torn:
        return
    end = marks_of(run)
    marks = {f.source: m for f in torn if (m := end.success_for(f.source, f.at, f.t_ns)) is not None}
    for source, mark in marks.items():
        after = [f for f in torn if f.source == source and f.at > mark.at]
        stuck, why = _stuck(run, mark, after, cfg)
        if why and not stuck and (stuck := _silent(run, torn)):
            why = "the watchdogs of the others ended them after the success marker"
        if not why:
            continue
        named = ranks_text(stuck) if stuck else "a process"
        there = Evidence(mark.source, Locator(mark.line, mark.byte), mark.quote, t_ns=mark.t_ns)
        yield shutdown_hang.finding(
            f"training finished, then {named} did not exit: {why}",
            "the success marker precedes the kill, and nothing was trained between them",
            proof(*evidence_of(after), there),
            Onset(t_ns=mark.t_ns, rank=stuck[0] if stuck else None),
            culprits=stuck,
            numbers={"messages": len(after)},
        )
        return


def _stuck(run: Run, mark: Mark, after: Sequence[Failure], cfg: Teardown) -> tuple[tuple[int, ...], str]:
    """Give the tasks that were still alive, and why this is a hang; an empty reason when it is none."""
    killed, gone = _tasks(after)
    everybody = world(run) | killed | gone
    alone = len(killed) == 1 and not gone
    alive = tuple(sorted(killed)) if killed and (alone or len(killed) * 2 < len(everybody)) else ()
    if alive:
        return alive, f"only {len(alive)} of the tasks had to be ended, {len(gone)} had ended by themselves"
    if any(f.shape == "hang" for f in after):
        return alive, "a watchdog aborted it after the success marker"
    gaps = [_gap_s(mark, f) for f in after if f.weight == Weight.STOP]
    if any(gap > cfg.teardown_s for gap in gaps):
        return alive, f"the kill came {max(gaps)} s after the success marker"
    return alive, ""


def _silent(run: Run, torn: Sequence[Failure]) -> tuple[int, ...]:
    """Give the few ranks for which the others waited until their watchdogs ended them: those without such a line."""
    waited = {f.rank for f in torn if f.shape == "hang" and f.rank is not None}
    silent = world(run) - waited
    return tuple(sorted(silent)) if waited and len(silent) * 2 < len(waited | silent) else ()


def _gap_s(mark: Mark, failure: Failure) -> int:
    if mark.t_ns is None or failure.t_ns is None:
        return 0
    return int((failure.t_ns - mark.t_ns) / 1e9) % _HALF_HOUR_S if failure.t_ns > mark.t_ns else 0


def _tasks(after: Sequence[Failure]) -> tuple[frozenset[int], frozenset[int]]:
    """Tasks that were killed, and tasks that had ended in another way."""
    killed: set[int] = set()
    gone: set[int] = set()
    lines = [by_id()[line].compiled for line in telling("exit_of_tasks")]
    for hit in (hit for failure in after for line in lines if (hit := line.search(failure.quote)) is not None):
        code = int(hit["rc"]) if hit["rc"] else code_of(hit["what"])
        (killed if code is not None and is_sent(code) else gone).update(listed(hit["tasks"]))
    return frozenset(killed), frozenset(gone - killed)
