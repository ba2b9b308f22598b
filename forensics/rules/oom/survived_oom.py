"""OOM019 survived-oom: memory ran out, and the run went on.

What it detects: an out-of-memory error that the trainer caught, as one does that looks for the largest batch.

Why it matters: a batch was skipped or shrunk without a word in the metrics; each time the cache is emptied, which is
slow. It also says that the run is one longer batch from its end.

How it decides: device errors after which the same rank logged further steps, when no such error was fatal.

What else looks like this: another program that prints into the same log.

What to do next: set the batch that the finder found from the start; count how many batches were skipped.

References: PyTorch FAQ, "My out of memory exception handler can't allocate memory"; fairseq and Lightning, whose
trainers catch the error.

Example:
    ```metrics
    step: 10..50/10
    source: train.log
    line: 1 5..8
    loss: 2.5..2.1/-0.1
    ```
    ```events source,line,code,text,attrs
    train.log,3,cuda-oom,CUDA out of memory. Tried to allocate 512.00 MiB,"{""role"":""root"",""shape"":""oom""}"
    ```
    => OOM019 info confidence=high step=10 cause=oom_survived causal=context times=1
Not this: an error that ended the run
    ```metrics step,name,value,source,seq,line
    10,loss,2.5,train.log,1,1
    ```
    ```events source,line,code,text,attrs
    train.log,3,cuda-oom,CUDA out of memory. Tried to allocate 512.00 MiB,"{""role"":""root"",""shape"":""oom""}"
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.memory.oom_messages import oom_messages
from forensics.rules.kit import Findings, Run, rule
from forensics.rules.oom._memory import fatal, message_evidence, message_onset, ranks


@rule("oom", needs=("events", "metrics"), severity="info", confidence="high", cause="oom_survived", causal="context")
def survived_oom(run: Run) -> Findings:
    """Count the device errors that were survived, in a run that no such error ended."""
    found = [m for m in oom_messages(run) if m.survived == "progress" and m.where == "device"]
    if not found or fatal(run):
        return
    first = found[0]
    times = f"{len(found)} times" if len(found) > 1 else "once"
    yield survived_oom.finding(
        f"device memory ran out {times}, and the run went on",
        "the same rank logged further steps after it",
        tuple(message_evidence(m) for m in found[:3]),
        message_onset(first),
        culprits=ranks(*found),
        numbers={"times": len(found)},
    )
