"""Memory of the host: a process that grows, a kill, and shared memory that is full."""

from __future__ import annotations

from forensics.analyses.memory.host_deaths import Death, Meaning, death_of, killed
from forensics.analyses.memory.oom_messages import OomMessage, oom_messages
from forensics.analyses.memory.series import Series, series_of
from forensics.case.errors.failures import standing
from forensics.case.errors.timeline import in_order
from forensics.knowledge.causes import is_kind
from forensics.rules._errors import evidence_of, onset_of, ranks_of, when, who
from forensics.rules.kit import Findings, Run, Struct, proof, remark, rule
from forensics.rules.oom import _memory as memory


class HostMemoryGrows(Struct, frozen=True):
    """Thresholds of OOM009: records, the least rise in GiB and of the level, that of a warning, and a nearly full host.

    A process grows by a tenth and more while caches fill; `kill` is the rise at which a kill is laid to memory where
    the size of the host is unknown. A small process may grow by less than `gib`: `small_gib` count where they are more
    than it held at first, which no cache of a loop takes.
    """

    samples: int = 20
    gib: float = 0.5
    small_gib: float = 0.1
    share: float = 0.1
    warn: float = 0.5
    kill: float = 0.5
    full: float = 0.85


@rule("OOM009 host-memory-grows", "metrics events facts", confidence="medium", cause="host_leak")
def host_memory_grows(run: Run, cfg: HostMemoryGrows) -> Findings:
    """Find the process whose resident memory rises most; that of its host counts where that was killed, or doubles."""
    of_host = {"rss", "host_used"}
    found = [one for one in series_of(run) if one.meaning.quantity in of_host and one.meaning.unit == "GiB"]
    found = [one for one in found if one.meaning.quantity == "rss" or killed(run) or _doubled(one)]
    found = [one for one in found if one.form.kind in {"slope", "staircase"}]
    found = [one for one in found if one.form.samples - one.form.warmup >= cfg.samples]
    one = memory.worst(one for one in found if _is_large(one, cfg))
    if one is None:
        return
    first = float(one.y[one.form.warmup])
    was, now = memory.amount(one, first), memory.amount(one, float(one.y[-1]))
    risen = one.form.rise / max(first, 0.1)
    full = one.share >= cfg.full if one.share is not None else risen >= cfg.kill
    deaths = killed(run) if full else ()
    told = [m for m in oom_messages(run) if m.where == "host" and not m.survived] if full else []
    killed_ranks = ranks_of(deaths) or tuple(sorted({m.rank for m in told if m.rank is not None}))
    whose = "the process's memory on the host" if one.meaning.quantity == "rss" else "the memory in use on the host"
    end = "the process was killed by a signal" if deaths else "the host had no more" if told else ""
    yield host_memory_grows.finding(
        f"{whose} rises all the time: {was} → {now}{memory.until(one)}",
        f"it rises to the end{', and ' * bool(end)}{end}",
        (
            *memory.series_evidence(one, one.form.onset or 0, -1),
            *evidence_of(deaths),
            *(memory.message_evidence(m) for m in told[:1] if not deaths),
        ),
        memory.onset_of(one),
        severity="error" if deaths or told else "warning" if risen >= cfg.warn else "info",
        culprits=memory.ranks(one) or (killed_ranks if len(killed_ranks) == 1 else ()),
        numbers={"rise_gib": one.form.rise, "gib_per_step": one.form.per_step, **memory.reach_numbers(one)},
    )


def _is_large(one: Series, cfg: HostMemoryGrows) -> bool:
    first, rise = float(one.y[one.form.warmup]), one.form.rise
    return rise >= max(cfg.gib, cfg.share * one.form.level) or rise >= max(cfg.small_gib, first)


def _doubled(one: Series) -> bool:
    return one.form.rise >= max(float(one.y[one.form.warmup]), 0.1)


_WORDS: dict[Meaning, str] = {
    "memory": "the host's memory killer sent it: the log of the kernel or the scheduler says so",
    "scheduler": "somebody or something ended the job: a stop is in the log",
    "tear-down": "the launcher sent it after another failure of this run",
    "unknown": "nothing that was read says who sent it: the host's memory killer, the scheduler, or a person",
}


@remark("OOM014 killed-by-whom", "events metrics", about=death_of)
def killed_by_whom(run: Run, death: Death) -> Findings:
    """Judge the first SIGKILL."""
    sender, sent = death.proof, None
    if sender is not None:
        sent = memory.message_evidence(sender) if isinstance(sender, OomMessage) else evidence_of((sender,))[0]
    yield killed_by_whom.finding(
        f"a process was killed (SIGKILL): {_WORDS[death.meaning]}",
        "exit code -9 alone says only that it did not end by itself",
        proof(*evidence_of((death.failure,)), sent),
        onset_of(run, death.failure),
        confidence="low" if death.meaning == "unknown" else "medium",
        culprits=ranks_of((death.failure,)),
        cause="sigkill_" + death.meaning.replace("-", "_"),
    )


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
