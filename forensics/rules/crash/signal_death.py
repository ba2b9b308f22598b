"""CRH002 signal-death: a process was ended by a signal that it did not ask for.

What it detects: segmentation fault, bus error, abort of a data-loader worker, and SIGKILL with no word of who sent it.

Why it matters: no Python traceback exists; the exit code is all there is, and a SIGKILL has many senders.

How it decides: an exit code or a line that names the signal, in a run that did not go on. SIGKILL is stated as "sender
unknown": the kernel's memory killer, a scheduler and a person all send it.

What else looks like this: a launcher that kills the remaining workers after one failed, and an operator who kills a run
whose loss was already lost.

What to do next: look at the kernel log and the scheduler's record of that minute; set `faulthandler` on.

References: signal(7); torch.distributed.elastic "Error Propagation".

Example:
    ```events source,line,rank,code,text,attrs
    train.log,9,3,exit139,rank 3 exited with code 139,"{""role"":""root"",""shape"":""crash""}"
    ```
    => CRH002 error
Not this:
    ```events source,line,code,text,attrs
    train.log,9,pg-not-destroyed,process group has NOT been destroyed,"{""role"":""benign"",""shape"":""crash""}"
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.model import Causal, Confidence, Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules._errors import evidence_of, onset_of, ranks_of, when, who
from forensics.signals.failures import standing
from forensics.signals.timeline import in_order
from forensics.store.run import Run

#: Signature ids that speak of a signal, the words for it, and the cause's slug.
SIGNALS = {
    "exitcode-9": ("was killed (SIGKILL, sender unknown)", "silent_death_sigkill"),
    "exitcode-7": ("died of a bus error (SIGBUS)", "silent_death_sigbus"),
    "exit139": ("died of a segmentation fault (SIGSEGV)", "silent_death_segv"),
    "dl-bus-error": ("lost a data-loader worker to a bus error", "shared_memory_too_small"),
    "dl-exited": ("lost a data-loader worker", "dataloader_worker_died"),
}


@rule("CRH002", shape=Shape.CRASH, needs=("events", "metrics"))
def signal_death(run: Run, _cfg: None = None) -> Iterator[Finding]:
    """Find the first process that died of a signal."""
    found = in_order(f for f in standing(run) if f.code in SIGNALS)
    if not found:
        return
    first = found[0]
    onset = onset_of(run, first)
    words, cause = SIGNALS[first.code]
    yield Finding(
        rule="CRH002",
        shape=Shape.CRASH,
        severity=Severity.ERROR,
        confidence=Confidence.MEDIUM,
        title=f"{who(first.rank)} {words}{when(onset)}",
        because="its exit code or the launcher says so, and no later step was logged",
        evidence=evidence_of(found),
        onset=onset,
        culprits=ranks_of(found[:1]),
        cause=cause,
        causal=Causal.SYMPTOM if first.code == "exitcode-9" else Causal.ROOT,
        likely=("the kernel's memory killer", "a scheduler or a person") if first.code == "exitcode-9" else (),
        next=("read the kernel log and the scheduler's record of that minute",),
    )
