"""LRN015 ranks-disagree: ranks that logged one and the same loss stopped doing so.

What it detects: a loss, a gradient norm or a learning rate that was equal on all ranks, as an averaged one is, and
differs between them from some step on; or one rank whose own loss stays away from those of the others.

Why it matters: ranks that hold one model and average their gradients log one averaged loss. When they part, so
have their weights, or a rank sees other data.

How it decides: steps are compared that all ranks logged. If the values were equal (`same`) and `parted` of
those after the onset differ by more than `tolerance`, the ranks parted. Losses that never agreed are local ones and
differ by their data: there the distance of a rank from the others must grow at a step by `clear` deviations, and stay
apart by `leaves` and as many deviations of a level. That is a warning, and an error where the odd rank's loss is
`ruined` times that of the others. A rank that was apart from the first step on, by `sigmas` times their spread and
`apart`, is noted. A learning rate that one rank alone has apart from the first step on is a warning.

What else looks like this: pipeline stages that print a placeholder; ranks that print an average over other steps.

What to do next: compare a checksum of the weights over ranks; check that the model is wrapped for data parallelism, and
that nothing updates parameters outside the reduction.

References: PyTorch documentation, DistributedDataParallel, on what it keeps equal.

Example:
    ```metrics
    step: (10..160/10)*2
    rank: 0*16 1*16
    loss: 4.991 4.765 4.564 4.313 4.145 3.952 3.775 3.752 3.528 3.414 3.221 3.153 3.095 3.028 2.963 2.839 4.991 4.765
        4.564 4.313 4.145 3.952 3.775 3.752 3.528 3.414 3.221 3.153 3.219 3.21 3.2 3.123
    ```
    => LRN015 warning confidence=medium step=130 rank=1 cause=ranks_parted ranks=2 steps=16
Not this: local losses, which differ by their data
    ```metrics
    step: (10..160/10)*2
    rank: 0*16 1*16
    loss: 5.219 4.924 4.289 4.148 4.288 3.995 3.694 3.777 3.561 3.506 3.154 3.068 2.988 3.166 2.902 2.761 5.067 4.462
        4.712 4.167 4.499 3.923 3.761 3.736 3.616 3.672 3.182 3.367 2.838 3.368 2.724 2.946
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np

from forensics.analyses.learning.ranks import Disagree, Parted, parted, shared_parted
from forensics.case.curves.loss import Curve
from forensics.rules.kit import Finding, Findings, Onset, Run, Severity, at_step, proof, rule


@rule("learning", needs=("metrics",), config=Disagree, confidence="medium")
def ranks_disagree(run: Run, cfg: Disagree) -> Findings:
    """Name the rank whose loss left those of the others."""
    found = parted(run, cfg)
    if found is None:
        yield from (_finding(one, Severity.WARNING, "ranks_parted") for one in islice(shared_parted(run, cfg), 1))
    elif found.how == "always":
        yield _finding(found, Severity.INFO, "rank_apart")
    else:
        ruined = found.how == "own" and found.times >= cfg.ruined
        yield _finding(found, Severity.ERROR if ruined else Severity.WARNING, "ranks_parted")


def _title(found: Parted) -> tuple[str, str]:
    ranks, steps = found.together.ranks, found.together.steps
    rank, step = ranks[found.odd], int(steps[found.onset])
    if found.how == "always":
        return (
            f"{_named(found)} of rank {rank} differs by {found.times - 1:+.0%} from that of the others",
            f"over {len(steps)} common steps of {len(ranks)} ranks",
        )
    if found.how == "own":
        spread = (
            f"its loss is {found.times:.3g} times theirs at the end" if _higher(found) else "its loss is below theirs"
        )
        return (
            f"the loss of rank {rank} left those of the others at {at_step(step)}",
            f"{spread}, over {len(ranks)} ranks",
        )
    before, what = int(steps[found.onset - 1]), found.together.curves[found.odd].raw_name
    return (
        f"{what} was equal on all ranks up to {at_step(before)} and differs from {at_step(step)} on",
        f"the median difference since then is {found.times - 1:.2%}, over {len(ranks)} ranks",
    )


def _named(found: Parted) -> str:
    curve = found.together.curves[found.odd]
    return "the loss" if "loss" in curve.raw_name.lower() else f"{curve.raw_name}, one value for all ranks,"


def _higher(found: Parted) -> bool:
    last = found.together.values[-max(1, len(found.together.steps) // 5) :]
    return float(np.median(last[:, found.odd])) >= float(np.median(last))


def _finding(found: Parted, severity: Severity, cause: str) -> Finding:
    together, odd = found.together, found.odd
    step, rank = int(together.steps[found.onset]), together.ranks[odd]
    pair = [_row(together.curves[i], step) for i in (odd, 0 if odd else 1)]
    title, because = _title(found)
    return ranks_disagree.finding(
        title,
        because,
        proof(pair[0], pair[1]),
        Onset(step=step, t_ns=pair[0]["t_ns"], rank=rank),
        severity=severity,
        culprits=(rank,),
        cause=cause,
        numbers={"ranks": len(together.ranks), "steps": len(together.steps)},
    )


def _row(curve: Curve, step: int) -> Mapping[str, Any]:
    return curve.row(int((curve.at == step).arg_max() or 0))
