"""OOM010 shared-memory-full: a loader worker or a communicator found no room in shared memory.

What it detects: bus errors of loader workers, and libraries that say that /dev/shm is too small.

Why it matters: containers get 64 MiB of shared memory unless told otherwise. It looks like a crash of the loader and
is a setting of the container.

How it decides: a signature of that kind that the run did not survive. It adds what to do to the crash that the error
itself is; it makes no verdict.

What else looks like this: a bus error from a file that became shorter while it was mapped.

What to do next: `docker run --shm-size=16g` or `--ipc=host`, an `emptyDir` of medium `Memory` in Kubernetes; or fewer
loader workers; or `torch.multiprocessing.set_sharing_strategy("file_system")`.

References: PyTorch, torch.multiprocessing, "Sharing strategies"; Docker, `docker run --shm-size`.

Example:
    ```events source,line,code,text,attrs
    train.log,12,dl-bus-error,RuntimeError: DataLoader worker (pid 71) is killed by signal: Bus error.,"{""role"":""root"",""shape"":""crash"",""family"":""shared_memory"",""cause"":""shared_memory_exhausted""}"
    ```
    => OOM010 warning confidence=medium cause=shared_memory_exhausted causal=context
Not this: a worker that was killed
    ```events source,line,code,text,attrs
    train.log,12,dl-killed,RuntimeError: DataLoader worker (pid 71) is killed by signal: Killed.,"{""role"":""symptom"",""shape"":""crash"",""family"":""host_memory"",""cause"":""loader_worker_died""}"
    ```
    => nothing
"""  # noqa: E501 - a line of a log is one line

from __future__ import annotations

from forensics.case.errors.failures import standing
from forensics.case.errors.timeline import in_order
from forensics.knowledge.causes import is_kind
from forensics.rules._errors import evidence_of, onset_of, ranks_of, when, who
from forensics.rules.kit import Findings, Run, rule


@rule("oom", needs=("events", "metrics"), severity="warning", confidence="medium", causal="context")
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
