"""Memory of the host: a process that grows, a kill, and shared memory that is full."""

from __future__ import annotations

from msgspec import Struct

from forensics.analyses.memory.host_deaths import Death, Meaning, death_of, killed
from forensics.analyses.memory.oom_messages import OomMessage
from forensics.analyses.memory.series import series_of
from forensics.case.errors.failures import Failure, standing
from forensics.case.errors.timeline import in_order
from forensics.knowledge.causes import is_kind
from forensics.rules._errors import evidence_of, onset_of, ranks_of, when, who
from forensics.rules.kit import Evidence, EvidenceRole, Findings, Run, proof, rule
from forensics.rules.oom._memory import (
    amount,
    message_evidence,
    ranks,
    reach_numbers,
    series_evidence,
    until,
    worst,
)
from forensics.rules.oom._memory import (
    onset_of as growth_onset,
)


class HostMemoryGrows(Struct, frozen=True):
    """Thresholds of OOM009: records, the least rise in GiB and of the level, that of a warning, and a nearly full host.

    A process grows by a tenth and more while caches fill; `kill` is the rise at which a kill is laid to memory where
    the size of the host is unknown.
    """

    samples: int = 20
    gib: float = 0.5
    share: float = 0.1
    warn: float = 0.5
    kill: float = 0.5
    full: float = 0.85


@rule("OOM009 host-memory-grows", "metrics events facts", confidence="medium", cause="host_leak")
def host_memory_grows(run: Run, cfg: HostMemoryGrows) -> Findings:
    """Find the process whose resident memory rises most."""
    found = [
        one
        for one in series_of(run)
        if one.meaning.quantity == "rss"
        and one.meaning.unit == "GiB"
        and one.form.kind in {"slope", "staircase"}
        and one.form.samples - one.form.warmup >= cfg.samples
        and one.form.rise >= max(cfg.gib, cfg.share * one.form.level)
    ]
    one = worst(found)
    if one is None:
        return
    first, last = float(one.y[one.form.warmup]), float(one.y[-1])
    risen = one.form.rise / max(first, 0.1)
    full = one.share >= cfg.full if one.share is not None else risen >= cfg.kill
    deaths = killed(run) if full else ()
    warn = risen >= cfg.warn
    yield host_memory_grows.finding(
        f"the process's memory on the host rises all the time: {amount(one, first)} → {amount(one, last)}{until(one)}",
        "it rises to the end, and the process was killed by a signal" if deaths else "it rises to the end",
        (
            *series_evidence(one, one.form.onset or 0, -1),
            *(e for e in evidence_of(deaths) if e.role is not EvidenceRole.CONTRADICTS),
        ),
        growth_onset(one),
        severity="error" if deaths else "warning" if warn else "info",
        culprits=ranks(one),
        numbers={"rise_gib": one.form.rise, "gib_per_step": one.form.per_step, **reach_numbers(one)},
    )


_WORDS: dict[Meaning, str] = {
    "memory": "the host's memory killer sent it: the log of the kernel or the scheduler says so",
    "scheduler": "somebody or something ended the job: a stop is in the log",
    "tear-down": "the launcher sent it after another failure of this run",
    "unknown": "nothing that was read says who sent it: the host's memory killer, the scheduler, or a person",
}


@rule("OOM014 killed-by-whom", "events metrics", about=death_of, severity="info", causal="context")
def killed_by_whom(run: Run, death: Death) -> Findings:
    """Judge the first SIGKILL."""
    sender = death.proof
    yield killed_by_whom.finding(
        f"a process was killed (SIGKILL): {_WORDS[death.meaning]}",
        "exit code -9 alone says only that it did not end by itself",
        proof(*evidence_of((death.failure,)), _proof(sender) if sender is not None else None),
        onset_of(run, death.failure),
        confidence="low" if death.meaning == "unknown" else "medium",
        culprits=ranks_of((death.failure,)),
        cause="sigkill_" + death.meaning.replace("-", "_"),
    )


def _proof(proof: Failure | OomMessage) -> Evidence:
    if isinstance(proof, OomMessage):
        return message_evidence(proof, EvidenceRole.RELATED)
    shown, *_ = evidence_of((proof,))
    return Evidence(
        shown.source, shown.locator, shown.quote, shown.step, shown.rank, shown.t_ns, shown.name,
        role=EvidenceRole.RELATED,
    )  # fmt: skip


@rule("OOM010 shared-memory-full", "events metrics", severity="warning", confidence="medium", causal="context")
def shared_memory_full(run: Run) -> Findings:
    """Find the first error that full shared memory explains."""
    found = in_order(f for f in standing(run) if is_kind(f.cause, "no_room"))
    if not found:
        return
    onset = onset_of(run, found[0])
    yield shared_memory_full.finding(
        f"{who(found[0].rank)} found shared memory full{when(onset)}",
        "the error is the one that a full /dev/shm gives",
        evidence_of(found),
        onset,
        culprits=ranks_of(found[:1]),
        cause="shared_memory_exhausted",
        likely=("a container with the usual 64 MiB of shared memory", "many loader workers with large batches"),
    )
