"""HNG002 shutdown-hang: the run finished, and then a process did not exit until somebody ended it.

What it detects: a success marker, followed by a watchdog's abort, or by a kill that met only some of the tasks, or by a
kill that came more than a minute later.

Why it matters: the model is fine and its last checkpoint is good, but the job held its machines for nothing, and its
exit code says failed.

How it decides: the success marker stands before the kill in the same file, and nothing was trained between. Tasks are
those that the scheduler's own lines name. Clocks of two writers may differ by whole half hours (time zones), so only
the rest beyond half hours counts as a gap. Where watchdogs of most ranks end them, the few ranks without such a line
are those for which they waited.

What else looks like this: a time limit that happened to end all tasks in the seconds after success; one that ends the
only task of a small job.

What to do next: destroy the process group and join threads and data-loader workers before exit.

References: PyTorch, torch.distributed, "Shutdown"; srun(1) `--kill-on-bad-exit`.

Example:
    ```events source,line,code,text,attrs
    job.out,5,success,training finished,"{""role"":""benign""}"
    job.out,8,srun-exit,srun: error: n01: tasks 1-3: Aborted,"{""role"":""symptom"",""shape"":""crash""}"
    job.out,9,srun-exit,srun: error: n01: task 0: Terminated,"{""role"":""symptom"",""shape"":""crash""}"
    ```
    => HNG002 error confidence=medium rank=0 cause=shutdown_hang messages=2
Not this:
    ```events source,line,code,text,attrs
    job.out,5,success,training finished,"{""role"":""benign""}"
    job.out,9,srun-exit,srun: error: n01: tasks 0-3: Terminated,"{""role"":""symptom"",""shape"":""crash""}"
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forensics.case.end_markers import Mark, marks_of
from forensics.case.errors.failures import Failure, failures
from forensics.case.errors.kinds import Weight
from forensics.case.errors.timeline import in_order
from forensics.case.rank_spans import listed, ranks_text
from forensics.case.world import world
from forensics.knowledge.errors import by_id, telling
from forensics.knowledge.signals import code_of, is_sent
from forensics.rules._errors import evidence_of
from forensics.rules.kit import Evidence, Finding, Findings, Locator, Onset, Run, proof, rule

_HALF_HOUR_S = 1800


@dataclass(frozen=True, slots=True)
class Config:
    """Threshold of HNG002: seconds between success and kill that a tear-down may take."""

    teardown_s: int = 60


@rule(
    "hang",
    needs=("collectives", "events", "facts", "metrics", "sources", "stack_frames"),
    config=Config,
    severity="error",
    confidence="medium",
    cause="shutdown_hang",
)
def shutdown_hang(run: Run, cfg: Config) -> Findings:
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
        if why:
            yield _finding(mark, after, stuck, why)
            return


def _stuck(run: Run, mark: Mark, after: Sequence[Failure], cfg: Config) -> tuple[tuple[int, ...], str]:
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


def _finding(mark: Mark, after: Sequence[Failure], stuck: tuple[int, ...], why: str) -> Finding:
    named = ranks_text(stuck) if stuck else "a process"
    return shutdown_hang.finding(
        f"training finished, then {named} did not exit: {why}",
        "the success marker precedes the kill, and nothing was trained between them",
        proof(*evidence_of(after), Evidence(mark.source, Locator(mark.line, mark.byte), mark.quote, t_ns=mark.t_ns)),
        Onset(t_ns=mark.t_ns, rank=stuck[0] if stuck else None),
        culprits=stuck,
        numbers={"messages": len(after)},
    )
