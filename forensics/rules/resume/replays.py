"""Steps that were done twice, what they gave the second time, and the work that was lost."""

from __future__ import annotations

from collections import Counter

import polars as pl

from forensics.analyses.resume.around import Around, around, paired
from forensics.case.checkpoints import known
from forensics.case.end_markers import marks_of
from forensics.case.errors.coded import events_telling
from forensics.case.folds import restarts
from forensics.case.joined.stores import kind_of
from forensics.case.processes.lives import QUANTITIES, Boundary, Life, boundaries, lives, rows_of
from forensics.case.rank_spans import FEWEST_THAT_VOTE, ranks_text
from forensics.case.series import metric_rows
from forensics.rules.kit import (
    Evidence,
    Finding,
    Findings,
    Onset,
    Run,
    Struct,
    checkpoint_evidence,
    event_evidence,
    onset_at,
    proof,
    remark,
    rule,
)
from forensics.rules.resume._compare import evidence_of, loaded, onset
from forensics.stats.spread import median


@remark("RSM006 resume-replayed-steps", "metrics checkpoints", confidence="high", cause="replayed_steps")
def replayed_steps(run: Run) -> Findings:
    """Say how often the run was restarted and how many steps were done again, at the first such restart."""
    every = restarts(run)
    replays = [b for b in every if b.kind == "replays"]
    if not replays:
        return
    first = replays[0]
    seen = next((s for name in QUANTITIES if (s := around(run, first, name)) is not None), None)
    if seen is None:
        return
    steps = sum(b.replayed for b in replays)
    forks = sum(b.fork for b in every)
    yield replayed_steps.finding(
        f"{steps} steps were done twice in {len(replays)} restart{'s' if len(replays) > 1 else ''}",
        f"the run reached step {first.before.last} and then goes on from step {first.after.first}"
        + (f"; {forks} of the restarts go on from the same earlier attempt" if forks else ""),
        evidence_of(run, seen, first),
        onset(first),
        numbers={"restarts": len(every), "replayed_steps": steps, "forks": forks},
    )


class Nondeterministic(Struct, frozen=True):
    """Thresholds of RSM007: pairs, relative difference, and the share of the noise that tells data from kernels."""

    pairs: int = 5
    relative: float = 1e-6
    noise: float = 0.3


@remark("RSM007 resume-nondeterministic", "metrics checkpoints", confidence="medium")
def nondeterministic(run: Run, cfg: Nondeterministic) -> Findings:
    """Compare the losses of the steps that were done twice, at the first restart where they differ."""
    for boundary in restarts(run):
        seen = around(run, boundary, "loss") if boundary.kind == "replays" else None
        pairs = paired(seen) if seen is not None else pl.DataFrame()
        if seen is None or pairs.height < cfg.pairs:
            continue
        size = pl.max_horizontal(pl.col("old").abs(), pl.col("new").abs())
        quantum = _quantum(pl.concat([pairs["old"], pairs["new"]]))
        differ = pairs.filter((pl.col("delta").abs() > cfg.relative * size) & (pl.col("delta").abs() > quantum / 2))
        if differ.height >= cfg.pairs:
            yield _told_twice(seen, pairs, differ, cfg)
            return


def _quantum(values: pl.Series) -> float:
    """The unit in which values are printed, at most: their smallest difference."""
    least = values.unique().sort().diff().drop_nulls().min()
    return float(least) if isinstance(least, float) else 0.0


def _told_twice(seen: Around, pairs: pl.DataFrame, differ: pl.DataFrame, cfg: Nondeterministic) -> Finding:
    step, typical = int(differ["at"][0]), median(differ["delta"].abs())
    noise = median(pairs["old"].diff().drop_nulls().abs())
    data = typical > cfg.noise * noise
    rows = [frame.filter(pl.col("at") == step).row(0, named=True) for frame in (seen.after, seen.replaced)]
    return nondeterministic.finding(
        f"steps done twice differ: step {step} gave {differ['old'][0]:.6g}, and {differ['new'][0]:.6g} when done again",
        f"{differ.height} of {pairs.height} steps done twice differ, by {typical:.3g} in the middle, "
        + (f"as much as neighbouring steps do ({noise:.3g})" if data else f"far less than neighbours do ({noise:.3g})"),
        proof(rows[0], rows[1]),
        Onset(step=step),
        cause="other_data" if data else "nondeterministic_kernels",
        numbers={"pairs": pairs.height, "differ": differ.height, "median_difference": typical, "noise": noise},
    )


_NS_PER_HOUR = 3_600_000_000_000


class RareCheckpoints(Struct, frozen=True):
    """Thresholds of RSM008: the share of all steps, or the hours, whose loss is told, and steps that are too few."""

    share: float = 0.05
    hours: float = 1.0
    steps: int = 20


class _Loss(Struct, frozen=True):
    life: Life
    checkpoint: int
    steps: int
    hours: float | None


@remark("RSM008 resume-rare-checkpoints", "metrics checkpoints events", confidence="medium", cause="rare_checkpoints")
def rare_checkpoints(run: Run, cfg: RareCheckpoints) -> Findings:
    """Find the life that lost most."""
    saved = known(run)
    if not saved.height:
        return
    every = lives(run)
    ended = [b.before for b in boundaries(run) if b.kind == "replays"]
    if every and not ended and marks_of(run).final is None and _errors(run):
        ended = [max(every, key=lambda life: life.last)]
    last = max((life.last for life in every), default=0)
    losses = [loss for life in ended if (loss := _loss(run, life, saved)) is not None]
    worst = max(losses, key=lambda loss: loss.steps, default=None)
    if worst is None or worst.steps < cfg.steps:
        return
    if worst.steps <= cfg.share * last and (worst.hours or 0.0) <= cfg.hours:
        return
    rows = rows_of(run, worst.life, *QUANTITIES).filter(pl.col("at") > worst.checkpoint)
    if rows.is_empty():  # steps are told past the checkpoint, and nothing that the model learned in them
        return
    first = rows.row(0, named=True)
    point = saved.filter(pl.col("step") == worst.checkpoint).row(0, named=True)
    time, hours = "", {}
    if worst.hours is not None:
        time, hours = f" ({worst.hours:.1f} hours)", {"hours_lost": worst.hours}
    yield rare_checkpoints.finding(
        f"{worst.steps} steps{time} after the checkpoint of step {worst.checkpoint} were lost",
        f"the records reach step {worst.life.last}, and no later checkpoint is known",
        proof(rows.row(-1, named=True), first, checkpoint_evidence(point)),
        onset_at(first, worst.checkpoint),
        numbers={"steps_lost": worst.steps, **hours},
    )


def _errors(run: Run) -> bool:
    """Whether the run prints any error or stop of its own."""
    bad = run.scan("events").select(pl.col("level").str.to_lowercase().is_in(["error", "fatal", "critical"]).any())
    return bool(bad.collect().item())


def _loss(run: Run, life: Life, saved: pl.DataFrame) -> _Loss | None:
    before = saved.filter((pl.col("step") <= life.last) & (pl.col("step") >= life.first))
    if not before.height:
        return None
    step = int(before["step"][-1])
    rows = rows_of(run, life, *QUANTITIES).filter(pl.col("t_ns").is_not_null())
    since = rows.filter(pl.col("at") >= step)["t_ns"]
    hours = (since[-1] - since[0]) / _NS_PER_HOUR if since.len() > 1 else None
    return _Loss(life, step, life.last - step, hours)


class OlderCheckpoint(Struct, frozen=True):
    """Thresholds of RSM009: newer checkpoints that were passed over, and a loss that had risen above its own median."""

    newer: int = 2
    risen: float = 1.1
    records: int = 10


@rule(
    "RSM009 resume-older-checkpoint",
    "metrics checkpoints events",
    severity="warning",
    confidence="medium",
    cause="resumed_older_checkpoint",
)
def older_checkpoint(run: Run, cfg: OlderCheckpoint) -> Findings:
    """Find ranks that loaded another step than most, else the first restart that passed newer checkpoints over."""
    if (apart := _loaded_apart(run)) is not None:
        yield older_checkpoint.finding(
            f"{ranks_text(apart.odd)} loaded the checkpoint of step {apart.step}, the others that of {apart.usual}",
            "they say so where they start, and ranks of one job go on from one checkpoint",
            proof(*apart.proof),
            Onset(step=apart.usual, rank=apart.odd[0]),
            culprits=apart.odd,
            numbers={"loaded": apart.step, "usual": apart.usual},
        )
        return
    saved = run.collect("checkpoints").filter(
        pl.col("kind").is_in(["saved", "committed"]) & pl.col("line").is_not_null()
    )
    gone = known(run).filter(pl.col("removed") | pl.col("ruined"))["step"]
    replays = [edge for edge in restarts(run) if edge.kind == "replays"] if saved.height else []
    for boundary, life in ((edge, life) for edge in replays for life in _earlier(run, edge)):
        begun = _begun(boundary, saved["step"])
        if begun is None or _turned_bad(run, life, cfg):
            continue
        here = (pl.col("source") == life.source) & pl.col("step").is_between(begun, life.last, closed="right")
        own = saved.filter(here & ~pl.col("step").is_in(gone.to_list()))
        until = [one.line_first for one in lives(run) if one.source == life.source and one.seq_first > life.seq_last]
        own = own.filter(pl.col("line") < min((line for line in until if line is not None), default=1 << 62))
        newer = sorted(set(own["step"]))
        if len(newer) < cfg.newer:
            continue
        last = own.filter(pl.col("step") == newer[-1]).row(0, named=True)
        yield older_checkpoint.finding(
            f"the restart loaded the checkpoint of step {begun}, though that of step {newer[-1]} had been saved",
            f"{len(newer)} newer checkpoints were passed over, and {max(0, life.last - begun)} steps were done again",
            proof(*loaded(run, boundary), checkpoint_evidence(last)),
            onset(boundary),
            numbers={"loaded": begun, "saved": newer[-1], "newer": len(newer)},
        )
        return


def _earlier(run: Run, edge: Boundary) -> tuple[Life, ...]:
    """Give the life that another goes on from, and one that went on from the same place and was over before it."""
    after, told = edge.after, edge.before
    kin = [one for one in lives(run) if (one.rank, one.raw_name) == (after.rank, after.raw_name)]
    twins = [one for one in kin if one.first == after.first and kind_of(one.source) == kind_of(after.source)]
    return told, *(one for one in twins if one.t_last and after.t_first and one.t_last < after.t_first)


def _begun(boundary: Boundary, saved: pl.Series) -> int | None:
    """The step of the checkpoint that a life goes on from: as it says, else the saved one just before its records."""
    after = boundary.after
    if after.resumed_step is not None:
        return after.resumed_step
    near = saved.filter((saved <= after.first) & (saved >= after.first - max(after.every, 1)))
    return int(near[0]) if near.n_unique() == 1 else None


def _turned_bad(run: Run, life: Life, cfg: OlderCheckpoint) -> bool:
    """Whether somebody may have gone back on purpose: the loss was no number in the end, or had risen."""
    rows = metric_rows(run, pl.col("name") == "loss").filter(pl.col("source") == life.source).sort("seq")
    seq = pl.col("seq").is_between(life.seq_first, life.seq_last)
    loss = (
        rows.filter(seq & pl.col("attempt").eq_missing(pl.lit(life.attempt, dtype=pl.Int32))).select("value").collect()
    )
    values = loss["value"]
    end = values.tail(cfg.records)
    if not values.len() or not end.is_finite().fill_null(value=False).all():
        return bool(values.len())
    return median(end) > cfg.risen * median(values.tail(4 * cfg.records))


class _Apart(Struct, frozen=True):
    """Ranks that loaded another step than most, that step, the one of most, and a line of either side."""

    odd: tuple[int, ...]
    step: int
    usual: int
    proof: tuple[Evidence, Evidence]


def _loaded_apart(run: Run) -> _Apart | None:
    """Give the few ranks whose last start loaded another step than that of the most, where all say it as often."""
    rows = events_telling(run, "resumed", order=("source", "line", "seq")).drop_nulls(["rank", "step"])
    rows = rows.unique(["source", "line", "rank"], keep="first", maintain_order=True)
    times = rows.group_by("rank").len()["len"].unique()
    last = {row["rank"]: row for row in rows.iter_rows(named=True)}
    if len(last) < FEWEST_THAT_VOTE or len(times) != 1:
        return None
    (usual, most), *others = Counter(row["step"] for row in last.values()).most_common()
    if len(others) != 1 or most * 2 <= len(last):
        return None
    odd = tuple(sorted(rank for rank, row in last.items() if row["step"] != usual))
    other = next(row for row in last.values() if row["step"] == usual)
    return _Apart(odd, others[0][0], usual, (event_evidence(last[odd[0]]), event_evidence(other)))
