"""SLO006 straggling-rank: one rank computes longer than the others, step after step, and all wait for it.

What it detects: one rank of several whose compute, forward, backward or loader time lies above that of the others, or
whose waiting time in collectives lies below theirs.

Why it matters: a synchronous job is as slow as its slowest rank, while the step times of all ranks look the same.

How it decides: medians per rank: one lies `excess` and `z` robust deviations above (for waiting: below) the median
of the others, and in `blocks` of the blocks of four steps too, from the step on at which it parted from them or from
the start. Of two ranks the deviations are those of their difference over the steps; two that always differed are a
warning, as stages of a pipeline do.
Where step times are printed, the difference must be `excess` of a step as well. Step times cannot tell who it is: all
ranks share them.

What else looks like this: uneven work by design, such as pipeline stages or a longer sequence on one rank.

What to do next: swap the device or host of that rank with another one.

References: Lin et al., "Understanding Stragglers in Large Model Training Using What-if Analysis" (2025).

Example:
    ```metrics
    step: 1..24
    rank: 0
    forward_time: 0.2007 0.2013 0.1986 0.2013 0.2016 0.1993 0.2026 0.1984 0.2022 0.2022 0.1972 0.1975 0.2025 0.2013
        0.1977 0.1969 0.2018 0.1973 0.199 0.201 0.2002 0.2002 0.1986 0.2019
    ```
    ```metrics
    step: 1..24
    rank: 1
    forward_time: 0.2051 0.2008 0.1983 0.2036 0.2002 0.2007 0.2011 0.2026 0.1985 0.1992 0.1985 0.2032 0.2018 0.198
        0.1996 0.1999 0.2001 0.2027 0.2007 0.2033 0.1982 0.2021 0.1991 0.2015
    ```
    ```metrics
    step: 1..24
    rank: 2
    forward_time: 0.2629 0.2618 0.2571 0.2616 0.2554 0.2596 0.2573 0.2563 0.2606 0.2622 0.2616 0.2629 0.2581 0.2605
        0.2651 0.2604 0.2597 0.2613 0.2564 0.2599 0.2613 0.2575 0.2609 0.257
    ```
    ```metrics
    step: 1..24
    rank: 3
    forward_time: 0.2022 0.2 0.2007 0.2008 0.2024 0.2063 0.2021 0.2 0.2006 0.2046 0.1989 0.2026 0.1954 0.2011 0.2019
        0.2015 0.2021 0.1992 0.1954 0.2003 0.2019 0.2007 0.2005 0.2028
    ```
    => SLO006 error confidence=high step=1 rank=2 cause=straggler excess=0.2977 z=99.24
Not this: all ranks alike
    ```metrics
    step: (1..8)*3
    rank: 0*8 1*8 2*8
    forward_time: 0.1969 0.2011 0.1999 0.2007 0.2033 0.2023 0.1982 0.2019 0.1999 0.2001 0.1981 0.1988 0.1993 0.2048
        0.1986 0.2018 0.2007 0.198 0.2001 0.2004 0.2026 0.1992 0.1989 0.199
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.pace.ranks import Straggler, stragglers
from forensics.rules.kit import Finding, Findings, Onset, Run, proof, rule

_PAIR = 2  # of two ranks that always differed, each may be the one whose work is as planned


@dataclass(frozen=True, slots=True)
class Straggling:
    """Thresholds of SLO006, relative and in robust deviations over the ranks; `error` is a relative excess.

    `blocks` is the share of blocks of four steps in which the rank must be slow.
    """

    excess: float = 0.05
    z: float = 6.0
    blocks: float = 0.8
    error: float = 0.2


@rule("slowdown", needs=("metrics",), config=Straggling, cause="straggler")
def straggling_rank(run: Run, cfg: Straggling) -> Findings:
    """Find the rank whose own work takes longest, by its own times or by how little it waits."""
    found = list(stragglers(run, effect=cfg.excess, z=cfg.z, persist=cfg.blocks))
    if found:
        yield _finding(max(found, key=lambda s: abs(s.excess)), cfg)


def _finding(one: Straggler, cfg: Straggling) -> Finding:
    first, last = one.rows.row(0, named=True), one.rows.row(-1, named=True)
    words = "waits" if one.waiting else "takes"
    share = f"{100 * abs(one.excess):.0f} % {'less' if one.waiting else 'longer'} than {_others(one)}"
    if 2 * one.others < one.own and not one.waiting:
        share = f"{one.own:.4g} where {_others(one)} take{'s' * (one.ranks == _PAIR)} {one.others:.4g}"
    return straggling_rank.finding(
        f"rank {one.rank} {words} {share} in {first['raw_name']}",
        f"{one.z:.0f} robust deviations over the ranks, in {100 * one.blocks:.0f} % of the blocks of steps; "
        + (
            "the rank that waits least is the one that the others wait for" if one.waiting else "all others wait for it"
        ),
        proof(first, last),
        Onset(step=first["at"], t_ns=first["t_ns"], rank=one.rank, step_lo=one.last_like),
        severity="error"
        if abs(one.excess) >= cfg.error and (one.ranks > _PAIR or one.last_like is not None)
        else "warning",
        confidence="high" if one.z >= 2 * cfg.z and one.blocks == 1 else "medium",
        culprits=(one.rank,),
        numbers={"excess": one.excess, "z": one.z, "ranks": one.ranks, "own": one.own, "others": one.others},
    )


def _others(one: Straggler) -> str:
    return "the other rank" if one.ranks == _PAIR else f"the other {one.ranks - 1} ranks"
