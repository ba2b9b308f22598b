"""One rank that the others wait for, by their step times and by a trace."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from forensics.analyses.pace.ranks import Straggler, Straggling, stragglers
from forensics.analyses.traces.breakdown import by_rank
from forensics.analyses.traces.ranks import arrivals, waits
from forensics.case.rank_spans import ranks_do
from forensics.rules.kit import Findings, Onset, Run, Struct, proof, rule
from forensics.rules.slowdown._spans import ms, percent, quoted, span_evidence

#: A rank is as slow as the worst from this share of its excess on.
_AS_FAR = 0.75
_PAIR = 2  # of two ranks that always differed, each may be the one whose work is as planned


@rule("SLO006 straggling-rank", "metrics", cause="straggler")
def straggling_rank(run: Run, cfg: Straggling) -> Findings:
    """Find the rank whose own work takes longest, by its own times or by how little it waits."""
    found = tuple(stragglers(run, cfg))
    one = max(found, key=lambda s: abs(s.excess), default=None)
    if one is None:
        return
    ranks = _as_slow(one, found)
    first, last = one.rows.row(0, named=True), one.rows.row(-1, named=True)
    words = ranks_do(ranks, "wait" if one.waiting else "take")
    others = "the other rank" if one.ranks == _PAIR else f"the other {one.ranks - len(ranks)} ranks"
    share = f"{100 * abs(one.excess):.0f} % {'less' if one.waiting else 'longer'} than {others}"
    if 2 * one.others < one.own and not one.waiting:
        share = f"{one.own:.4g} where {others} take{'s' * (one.ranks == _PAIR)} {one.others:.4g}"
    whose = "the rank that waits least is the one that the others wait for" if one.waiting else "all others wait for it"
    grave = abs(one.excess) >= cfg.error and (one.ranks > _PAIR or one.last_like is not None)
    yield straggling_rank.finding(
        f"{words} {share} in {first['raw_name']}",
        f"{one.z:.0f} robust deviations over the ranks, in {100 * one.blocks:.0f} % of the blocks of steps; {whose}",
        proof(first, last),
        Onset(step=first["at"], t_ns=first["t_ns"], rank=one.rank, step_lo=one.last_like),
        severity="error" if grave else "warning",
        confidence="high" if one.z >= 2 * cfg.z and one.blocks == 1 else "medium",
        culprits=ranks,
        numbers={"excess": one.excess, "z": one.z, "ranks": one.ranks, "own": one.own, "others": one.others},
    )


def _as_slow(one: Straggler, found: Iterable[Straggler]) -> tuple[int, ...]:
    """The ranks that stand out as far in the same time, as those of one host do; the worst alone of half the job."""
    name = one.rows["raw_name"][0]
    same = (s for s in found if s.waiting is one.waiting and s.rows["raw_name"][0] == name)
    ranks = tuple(sorted({s.rank for s in same if abs(s.excess) >= _AS_FAR * abs(one.excess)}))
    return ranks if 2 * len(ranks) < one.ranks else (one.rank,)


class TracedStraggler(Struct, frozen=True):
    """Thresholds of SLO014: probability by chance, number of collectives, share of the time that others lose."""

    chance: float = 0.01
    collectives: int = 4
    lost_share: float = 0.05


@rule("SLO014 trace-straggler", "spans", severity="warning", cause="straggler")
def trace_straggler(run: Run, cfg: TracedStraggler) -> Findings:
    """Name the rank for which the others wait."""
    found = waits(run)
    if found.is_empty():
        return
    late, spans = found.row(0, named=True), by_rank(run).select("source", "span_ns")
    others = found.slice(1).join(spans, on="source").select(pl.col("wait_ns") / pl.col("span_ns")).to_series()
    lost = others.median()
    if late["collectives"] < cfg.collectives or late["chance"] >= cfg.chance or late["last"] < found["last"].max():
        return
    if not isinstance(lost, float) or lost < cfg.lost_share:
        return
    shared = arrivals(run)
    worst = shared.filter((pl.col("rank") == late["rank"]) & pl.col("last")).select("key")
    waited = shared.join(worst, on="key", how="semi").sort("wait_ns", "rank", descending=[True, False])
    victim, rank = waited.row(0, named=True), int(late["rank"])
    own = waited.filter((pl.col("rank") == rank) & (pl.col("key") == victim["key"])).row(0, named=True)
    total = int(found.filter(pl.col("rank") != rank)["wait_ns"].sum())
    yield trace_straggler.finding(
        f"rank {rank} comes last to {late['last']} of {late['collectives']} collectives; "
        f"the others wait {percent(lost)} of the traced time (median)",
        f"it waits {ms(late['wait_ns'])} itself, the other {found.height - 1} ranks {ms(total)} together; "
        f"by chance some rank would come last so often with a probability of {late['chance']:.2g}",
        proof(
            span_evidence(own, f"rank {rank} arrived last and was in {quoted(own['name'])} for {ms(own['dur_ns'])}"),
            span_evidence(victim, f"rank {victim['rank']} waited {ms(victim['wait_ns'])} for it"),
        ),
        Onset(t_ns=own["start_ns"], rank=rank),
        confidence="medium" if late["chance"] > 1e-4 else "high",
        culprits=(rank,),
        numbers={
            "last": late["last"],
            "collectives": late["collectives"],
            "lost_share": lost,
            "chance": late["chance"],
        },
    )
