"""What ended the earlier attempts of a run."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.case.end_markers import marks_of
from forensics.case.endings import loop_words
from forensics.case.errors.failures import Failure, failures
from forensics.case.errors.kinds import Weight
from forensics.case.processes.attempts import attempts
from forensics.rules._errors import lines_of, onset_of, ranks_of, said, short, when
from forensics.rules.kit import Findings, Run, remark
from forensics.values import replace


@remark("CRH006 earlier-run-failed", "events metrics", confidence="high", cause="earlier_run_failed")
def earlier_run(run: Run) -> Findings:
    """State what ended the earlier runs of a file."""
    found = [f for f in failures(run) if f.cleared == "earlier"]
    ends = _ends(run, found)
    if not ends:
        return
    first = ends[0]
    onset, tried = onset_of(run, first), attempts(run)
    reached = tried.every[tried.of(first.source, line=first.line, byte=first.byte, t_ns=first.t_ns)].last
    if onset.step is not None and reached is not None:  # the store with the steps may be one of the later attempts
        onset = replace(onset, step=min(onset.step, reached))
    more = f", and {len(ends) - 1} more of them" if len(ends) > 1 else ""
    loop, again = tried.loop, loop_words(run)
    yield earlier_run.finding(
        f"an earlier attempt ended{when(onset)}{more}{again and f'; {again}'}: {short(said(first))}",
        "another process went on after it; the verdict is about the last attempt",
        lines_of(ends),
        onset,
        culprits=ranks_of(ends),
        numbers={"failures": len(ends)} | ({"loop": len(loop)} if loop else {}),
        next=("give each run a log of its own",) if not loop else ("do not restart it as it is: it dies there again",),
    )


def _ends(run: Run, found: Sequence[Failure]) -> list[Failure]:
    """The most telling failure of each earlier run: those between which no step was logged are of one run."""
    best: dict[tuple[str, int], Failure] = {}
    ending = marks_of(run)
    for failure in found:
        if failure.weight == Weight.WRAPPER:
            continue
        key = (failure.source, ending.steps_of(failure.source).count(before=failure.at))
        if key not in best or failure.weight > best[key].weight:
            best[key] = failure
    return list(best.values())
