"""OOM014 killed-by-whom: a process got SIGKILL, and this is what is known of the sender.

What it detects: exit code -9, 137, or a shell's `Killed`.

Why it matters: the same code has three senders: the host's memory killer, a scheduler or launcher (a time limit, a
cancel, the tear-down after another rank's failure), or a person. Only the first is cured by more memory.

How it decides: words of the kernel, the cgroup or the scheduler about memory mean the memory killer. A stop that
somebody ordered, or an error of another rank, means the launcher. Without either the sender is unknown, and nothing is
laid to memory. It makes no verdict.

What else looks like this: a container that ends with 137 because its orchestrator stopped it.

What to do next: `dmesg -T | grep -i -E "killed process|out of memory"` on that host; the scheduler's record of the job
(`sacct -j JOB -o State,MaxRSS,ReqMem`); `kubectl describe pod` for OOMKilled.

References: Linux, oom_kill.c; Slurm, sacct(1); PyTorch, torch.distributed.elastic, error table.

Example:
    ```events source,line,code,text,attrs
    train.log,12,exitcode-9,failed (exitcode: -9) local_rank: 3 (pid: 811),"{""role"":""symptom"",""shape"":""crash"",""cause"":""killed_by_sigkill""}"
    train.log,12,elastic-exitcode,failed (exitcode: -9) local_rank: 3 (pid: 811) of binary: python,"{""role"":""context""}"
    ```
    => OOM014 info confidence=low rank=3 cause=sigkill_unknown causal=context
Not this: an error of its own
    ```events source,line,code,text,attrs
    train.log,12,cuda-oom,CUDA out of memory. Tried to allocate 96.00 MiB,"{""role"":""root"",""shape"":""oom"",""cause"":""gpu_out_of_memory""}"
    ```
    => nothing
"""  # noqa: E501 - a line of a log is one line

from __future__ import annotations

from forensics.analyses.memory.host_deaths import Meaning, death_of
from forensics.analyses.memory.oom_messages import OomMessage
from forensics.case.errors.failures import Failure
from forensics.rules._errors import evidence_of, onset_of, ranks_of
from forensics.rules.kit import Evidence, EvidenceRole, Findings, Run, proof, rule
from forensics.rules.oom._memory import message_evidence

_WORDS: dict[Meaning, str] = {
    "memory": "the host's memory killer sent it: the log of the kernel or the scheduler says so",
    "scheduler": "somebody or something ended the job: a stop is in the log",
    "tear-down": "the launcher sent it after another failure of this run",
    "unknown": "nothing that was read says who sent it: the host's memory killer, the scheduler, or a person",
}


@rule("oom", needs=("events", "metrics"), severity="info", causal="context")
def killed_by_whom(run: Run) -> Findings:
    """Judge the first SIGKILL."""
    death = death_of(run)
    if death is None:
        return
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
    (shown,) = evidence_of((proof,))
    return Evidence(
        shown.source, shown.locator, shown.quote, shown.step, shown.rank, shown.t_ns, shown.name,
        role=EvidenceRole.RELATED,
    )  # fmt: skip
