"""SLO006 straggling-rank: one rank computes longer than the others, step after step, and all wait for it.

What it detects: one rank of several whose compute, forward, backward or loader time lies above that of the others, or
whose waiting time in collectives lies below theirs.

Why it matters: a synchronous job is as slow as its slowest rank, while the step times of all ranks look the same.

How it decides: medians per rank: one lies `excess` and `z` robust deviations above (for waiting: below) the median
of the others, and in `blocks` of the blocks of four steps too, from the step on at which it parted from them or from
the start. Of two ranks the deviations are those of their difference over the steps; two that always differed are a
warning, as stages of a pipeline do.
Where step times are printed, the difference must be `excess` of a step as well. Whole step times cannot tell who it
is: they are the same on all ranks, whoever is late.

What else looks like this: uneven work by design, such as pipeline stages or a longer sequence on one rank.

What to do next: swap the device or host of that rank with another one.

References: Lin et al., "Understanding Stragglers in Large Model Training Using What-if Analysis" (2025).

Example:
    ```metrics step,rank,name,value
    1,0,forward_time,0.2007
    1,1,forward_time,0.2051
    1,2,forward_time,0.2629
    1,3,forward_time,0.2022
    2,0,forward_time,0.2013
    2,1,forward_time,0.2008
    2,2,forward_time,0.2618
    2,3,forward_time,0.2
    3,0,forward_time,0.1986
    3,1,forward_time,0.1983
    3,2,forward_time,0.2571
    3,3,forward_time,0.2007
    4,0,forward_time,0.2013
    4,1,forward_time,0.2036
    4,2,forward_time,0.2616
    4,3,forward_time,0.2008
    5,0,forward_time,0.2016
    5,1,forward_time,0.2002
    5,2,forward_time,0.2554
    5,3,forward_time,0.2024
    6,0,forward_time,0.1993
    6,1,forward_time,0.2007
    6,2,forward_time,0.2596
    6,3,forward_time,0.2063
    7,0,forward_time,0.2026
    7,1,forward_time,0.2011
    7,2,forward_time,0.2573
    7,3,forward_time,0.2021
    8,0,forward_time,0.1984
    8,1,forward_time,0.2026
    8,2,forward_time,0.2563
    8,3,forward_time,0.2
    9,0,forward_time,0.2022
    9,1,forward_time,0.1985
    9,2,forward_time,0.2606
    9,3,forward_time,0.2006
    10,0,forward_time,0.2022
    10,1,forward_time,0.1992
    10,2,forward_time,0.2622
    10,3,forward_time,0.2046
    11,0,forward_time,0.1972
    11,1,forward_time,0.1985
    11,2,forward_time,0.2616
    11,3,forward_time,0.1989
    12,0,forward_time,0.1975
    12,1,forward_time,0.2032
    12,2,forward_time,0.2629
    12,3,forward_time,0.2026
    13,0,forward_time,0.2025
    13,1,forward_time,0.2018
    13,2,forward_time,0.2581
    13,3,forward_time,0.1954
    14,0,forward_time,0.2013
    14,1,forward_time,0.198
    14,2,forward_time,0.2605
    14,3,forward_time,0.2011
    15,0,forward_time,0.1977
    15,1,forward_time,0.1996
    15,2,forward_time,0.2651
    15,3,forward_time,0.2019
    16,0,forward_time,0.1969
    16,1,forward_time,0.1999
    16,2,forward_time,0.2604
    16,3,forward_time,0.2015
    17,0,forward_time,0.2018
    17,1,forward_time,0.2001
    17,2,forward_time,0.2597
    17,3,forward_time,0.2021
    18,0,forward_time,0.1973
    18,1,forward_time,0.2027
    18,2,forward_time,0.2613
    18,3,forward_time,0.1992
    19,0,forward_time,0.199
    19,1,forward_time,0.2007
    19,2,forward_time,0.2564
    19,3,forward_time,0.1954
    20,0,forward_time,0.201
    20,1,forward_time,0.2033
    20,2,forward_time,0.2599
    20,3,forward_time,0.2003
    21,0,forward_time,0.2002
    21,1,forward_time,0.1982
    21,2,forward_time,0.2613
    21,3,forward_time,0.2019
    22,0,forward_time,0.2002
    22,1,forward_time,0.2021
    22,2,forward_time,0.2575
    22,3,forward_time,0.2007
    23,0,forward_time,0.1986
    23,1,forward_time,0.1991
    23,2,forward_time,0.2609
    23,3,forward_time,0.2005
    24,0,forward_time,0.2019
    24,1,forward_time,0.2015
    24,2,forward_time,0.257
    24,3,forward_time,0.2028
    ```
    => SLO006 error confidence=high step=1 rank=2 cause=straggler excess=0.2977 z=99.24
Not this: all ranks alike
    ```metrics step,rank,name,value
    1,0,forward_time,0.1969
    1,1,forward_time,0.1999
    1,2,forward_time,0.2007
    1,3,forward_time,0.1999
    2,0,forward_time,0.2011
    2,1,forward_time,0.2001
    2,2,forward_time,0.198
    2,3,forward_time,0.2017
    3,0,forward_time,0.1999
    3,1,forward_time,0.1981
    3,2,forward_time,0.2001
    3,3,forward_time,0.2
    4,0,forward_time,0.2007
    4,1,forward_time,0.1988
    4,2,forward_time,0.2004
    4,3,forward_time,0.1996
    5,0,forward_time,0.2033
    5,1,forward_time,0.1993
    5,2,forward_time,0.2026
    5,3,forward_time,0.1998
    6,0,forward_time,0.2023
    6,1,forward_time,0.2048
    6,2,forward_time,0.1992
    6,3,forward_time,0.2003
    7,0,forward_time,0.1982
    7,1,forward_time,0.1986
    7,2,forward_time,0.1989
    7,3,forward_time,0.2002
    8,0,forward_time,0.2019
    8,1,forward_time,0.2018
    8,2,forward_time,0.199
    8,3,forward_time,0.2003
    9,0,forward_time,0.197
    9,1,forward_time,0.2012
    9,2,forward_time,0.1995
    9,3,forward_time,0.1978
    10,0,forward_time,0.1985
    10,1,forward_time,0.2012
    10,2,forward_time,0.2002
    10,3,forward_time,0.2013
    11,0,forward_time,0.1991
    11,1,forward_time,0.2003
    11,2,forward_time,0.1995
    11,3,forward_time,0.1969
    12,0,forward_time,0.1997
    12,1,forward_time,0.1997
    12,2,forward_time,0.1986
    12,3,forward_time,0.2016
    13,0,forward_time,0.2044
    13,1,forward_time,0.2029
    13,2,forward_time,0.2001
    13,3,forward_time,0.1977
    14,0,forward_time,0.1996
    14,1,forward_time,0.1987
    14,2,forward_time,0.2003
    14,3,forward_time,0.2024
    15,0,forward_time,0.1999
    15,1,forward_time,0.1971
    15,2,forward_time,0.2028
    15,3,forward_time,0.2001
    16,0,forward_time,0.2028
    16,1,forward_time,0.1982
    16,2,forward_time,0.2051
    16,3,forward_time,0.1975
    17,0,forward_time,0.2003
    17,1,forward_time,0.2017
    17,2,forward_time,0.1948
    17,3,forward_time,0.1984
    18,0,forward_time,0.1968
    18,1,forward_time,0.2035
    18,2,forward_time,0.2014
    18,3,forward_time,0.1981
    19,0,forward_time,0.1965
    19,1,forward_time,0.1965
    19,2,forward_time,0.2003
    19,3,forward_time,0.1984
    20,0,forward_time,0.2007
    20,1,forward_time,0.1989
    20,2,forward_time,0.1966
    20,3,forward_time,0.2037
    21,0,forward_time,0.201
    21,1,forward_time,0.1986
    21,2,forward_time,0.1993
    21,3,forward_time,0.2027
    22,0,forward_time,0.2017
    22,1,forward_time,0.1975
    22,2,forward_time,0.203
    22,3,forward_time,0.1987
    23,0,forward_time,0.2012
    23,1,forward_time,0.1976
    23,2,forward_time,0.1986
    23,3,forward_time,0.2016
    24,0,forward_time,0.1976
    24,1,forward_time,0.2002
    24,2,forward_time,0.2008
    24,3,forward_time,0.1987
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from forensics.analyses.pace.ranks import Straggler, stragglers
from forensics.case.evidence import metric_evidence
from forensics.model import Confidence, EvidenceRole, Finding, Onset, Severity, Shape
from forensics.registry import rule
from forensics.store.run import Run

_PAIR = 2  # of two ranks that always differed, each may be the one whose work is as planned
_NEXT = (
    "swap the rank's GPU or host with another and look whether the slowness moves along",
    "compare clocks, temperature and ECC errors of its GPU with those of the others",
)


@dataclass(frozen=True, slots=True)
class Straggling:
    """Thresholds of SLO006, relative and in robust deviations over the ranks; `error` is a relative excess.

    `blocks` is the share of blocks of four steps in which the rank must be slow.
    """

    excess: float = 0.05
    z: float = 6.0
    blocks: float = 0.8
    error: float = 0.2


@rule("SLO006", shape=Shape.SLOWDOWN, needs=("metrics",), config=Straggling)
def straggling_rank(run: Run, cfg: Straggling | None = None) -> Iterator[Finding]:
    """Find the rank whose own work takes longest, by its own times or by how little it waits."""
    cfg = cfg or Straggling()
    found = list(stragglers(run, effect=cfg.excess, z=cfg.z, persist=cfg.blocks))
    if found:
        yield _finding(max(found, key=lambda s: abs(s.excess)), cfg)


def _finding(one: Straggler, cfg: Straggling) -> Finding:
    first, last = one.rows.row(0, named=True), one.rows.row(-1, named=True)
    words = "waits" if one.waiting else "takes"
    share = f"{100 * abs(one.excess):.0f} % {'less' if one.waiting else 'longer'} than {_others(one)}"
    if 2 * one.others < one.own and not one.waiting:
        share = f"{one.own:.4g} where {_others(one)} take{'s' * (one.ranks == _PAIR)} {one.others:.4g}"
    return Finding(
        rule="SLO006",
        shape=Shape.SLOWDOWN,
        severity=Severity.ERROR
        if abs(one.excess) >= cfg.error and (one.ranks > _PAIR or one.begins)
        else Severity.WARNING,
        confidence=Confidence.HIGH if one.z >= 2 * cfg.z and one.blocks == 1 else Confidence.MEDIUM,
        title=f"rank {one.rank} {words} {share} in {first['raw_name']}",
        because=f"{one.z:.0f} robust deviations over the ranks, in {100 * one.blocks:.0f} % of the blocks of steps; "
        + (
            "the rank that waits least is the one that the others wait for" if one.waiting else "all others wait for it"
        ),
        evidence=(metric_evidence(first), metric_evidence(last, EvidenceRole.RELATED)),
        onset=Onset(step=first["at"], t_ns=first["t_ns"], rank=one.rank),
        culprits=(one.rank,),
        cause="straggler",
        numbers={"excess": one.excess, "z": one.z, "ranks": one.ranks, "own": one.own, "others": one.others},
        likely=(
            "a GPU with lower clocks or failing memory",
            "a host with another job",
            "more data or layers on that rank",
        ),
        next=_NEXT,
    )


def _others(one: Straggler) -> str:
    return "the other rank" if one.ranks == _PAIR else f"the other {one.ranks - 1} ranks"
