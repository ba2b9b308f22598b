"""HNG023 waiting-stack: the last that is known of the processes is a stack inside a collective.

What it detects: stack dumps whose main threads all wait in a collective, beside a log that ends without a success
marker and without an error.

Why it matters: somebody took the dump because nothing moved, and it is the only trace that such a hang leaves.

How it decides: each dumped main thread has the call of a collective among its innermost frames; a backward pass or a
wait for the device does not count, for a healthy step is in them most of the time. Where ranks differ, HNG008 and
HNG003 say more.

What else looks like this: a dump of a run that was well and went on; its log then goes on as well.

What to do next: take the stacks of all ranks: the one outside the collective is the culprit.

References: py-spy; PyTorch, torch.distributed, "Debugging torch.distributed applications".

Example:
    ```metrics step,name,value,source,seq,line
    7,loss,2.5,job.out,1,1
    ```
    ```stack_frames source,rank,thread_name,seq,depth,function,file,line,kind,state
    dump.txt,0,MainThread,0,0,all_reduce,torch/distributed/distributed_c10d.py,2810,python,idle
    dump.txt,0,MainThread,0,1,step,train.py,88,python,idle
    ```
    => HNG023 warning confidence=low step=7 step_lo=7 onset_rank=0 cause=waits_in_collective dumps=1
Not this: stacks alone, of which nobody knows what came after
    ```stack_frames source,rank,thread_name,seq,depth,function,file,line,kind,state
    dump.txt,0,MainThread,0,0,all_reduce,torch/distributed/distributed_c10d.py,2810,python,idle
    ```
    => nothing
Not this: a rank that computes
    ```metrics step,name,value,source,seq,line
    7,loss,2.5,job.out,1,1
    ```
    ```stack_frames source,rank,thread_name,seq,depth,function,file,line,kind,state
    dump.txt,0,MainThread,0,0,_engine_run_backward,torch/autograd/graph.py,825,python,active
    dump.txt,0,MainThread,0,1,step,train.py,88,python,active
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.hang.stacks import Stack, main_threads
from forensics.case.end_markers import marks_of
from forensics.case.errors.failures import standing
from forensics.case.errors.kinds import Weight
from forensics.case.series import metric_records
from forensics.knowledge.libraries import is_library
from forensics.knowledge.vocabulary import stands_for
from forensics.rules.kit import Evidence, Findings, Locator, Onset, Run, proof, rule

_SHOWN = 3


@rule(
    "hang",
    needs=("events", "metrics", "stack_frames"),
    severity="warning",
    confidence="low",
    cause="waits_in_collective",
)
def waiting_stack(run: Run) -> Findings:
    """Find dumps of which each waits in a collective, where nothing else says how the run ended."""
    dumps = [stack for stack in main_threads(run) if not stack.ended]
    if not dumps or any(stands_for("call_of_every_step", stack.call) or stack.starting for stack in dumps):
        return
    if marks_of(run).final is not None or any(f.weight > Weight.STOP for f in standing(run)):
        return
    steps = metric_records(run).select("step").drop_nulls().collect()["step"]
    if steps.is_empty():
        return
    last = int(steps[-1])
    first = dumps[0]
    who = f"rank {first.rank}" if first.rank >= 0 else "the process"
    own = next((f", called in {f.text}," for f in first.frames if not is_library(f.file)), "")
    yield waiting_stack.finding(
        f"{who} waits in {_named(first)}{own} after step {last}",
        "a rank waits there until all ranks of its group come, and the log has neither an error nor an end",
        proof(*map(_evidence, dumps[:_SHOWN])),
        Onset(step=last, step_lo=last, rank=first.rank if first.rank >= 0 else None),
        numbers={"dumps": len(dumps)},
    )


def _named(stack: Stack) -> str:
    """The collective that the innermost frames are in; `wait` is the last part of each."""
    outer = iter(stack.frames)
    call = next((f.function for f in outer if f.function == stack.call), stack.call)
    after = next(outer, None)
    return after.function if call == "wait" and after is not None and is_library(after.file) else call


def _evidence(stack: Stack) -> Evidence:
    inner = " < ".join(frame.text for frame in stack.frames[:_SHOWN])
    rank = stack.rank if stack.rank >= 0 else None
    return Evidence(stack.source, Locator(line=stack.line), f"{stack.state or 'state unknown'}: {inner}", rank=rank)
