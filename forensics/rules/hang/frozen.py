"""HNG015 frozen-process: the kernel's own record shows a process that is stopped or cannot be interrupted.

What it detects: process states from `/proc`: T (stopped) and D (uninterruptible), with the place the kernel waits in.

Why it matters: a stopped process answers nothing, writes no dump and needs a forced kill; a D state is storage or a
driver.

How it decides: state T names the process as frozen; state D points at storage when the wait channel says so.

What else looks like this: a debugger or a stack dump that stops the process for a moment.

What to do next: look at who stopped it (job control, a cgroup freezer), or at the file system that it waits for.

References: proc(5).

Example:
    ```events source,line,rank,code,text,attrs
    p3.txt,1,3,proc-state,"process 812: T (stopped), in do_signal_stop","{""role"":""context"",""state"":""T"",""pid"":""812""}"
    ```
    => HNG015 info confidence=medium rank=3 cause=frozen_process causal=context weight=6
Not this:
    ```events source,line,rank,code,text,attrs
    p3.txt,1,3,proc-state,process 812: S (sleeping),"{""role"":""context"",""state"":""S"",""pid"":""812""}"
    ```
    => nothing
"""  # noqa: E501 - a printed line is one cell

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from forensics.case.evidence import attributes
from forensics.knowledge.vocabulary import stands_for
from forensics.rules.hang.clue import Clue, gives_clues
from forensics.rules.kit import Run, event_evidence


@gives_clues(needs=("events",))
def frozen(run: Run) -> Iterator[Clue]:
    """Stopped and uninterruptible processes."""
    rows = (
        run.scan("events")
        .filter((pl.col("code") == "proc-state") & pl.col("rank").is_not_null())
        .sort("source", "line")
    )
    for row in rows.collect().iter_rows(named=True):
        said = attributes(row)
        rank, state, where = row["rank"], said.get("state", ""), said.get("wchan", "")
        if state in ("T", "t"):
            yield Clue(
                (rank,), "frozen_process", 6, "host", f"rank {rank} is stopped (state T)", (event_evidence(row),)
            )
        elif state == "D":
            cause = "slow_storage_read" if stands_for("storage_wait", where) else "host_stall"
            why = f"rank {rank} waits in the kernel and cannot be interrupted ({where or 'state D'})"
            yield Clue((rank,), cause, 3, "host", why, (event_evidence(row),))
