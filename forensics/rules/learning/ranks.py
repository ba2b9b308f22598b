"""Ranks that no longer agree: by their losses, by the program's own check, by a tensor's mean."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct

from forensics.analyses.learning.ranks import Disagree, Parted, parted, shared_parted
from forensics.case.errors.coded import events_telling
from forensics.case.errors.kinds import attributes
from forensics.case.last_steps import last_step
from forensics.case.rank_spans import listed, ranks_do
from forensics.knowledge.errors import telling
from forensics.patterns import lazily
from forensics.rules.kit import (
    Finding,
    Findings,
    Onset,
    Row,
    Run,
    Severity,
    at_step,
    event_evidence,
    number,
    proof,
    rule,
)
from forensics.stats.spread import Floats, scatter


@rule("LRN015 ranks-disagree", "metrics", confidence="medium", config=Disagree)
def ranks_disagree(run: Run) -> Findings:
    """Name the rank whose loss left the others'."""
    found = parted(run)
    if found is None:
        yield from (_finding(one, Severity.WARNING, "ranks_parted") for one in islice(shared_parted(run), 1))
    elif found.how == "always":
        yield _finding(found, Severity.INFO, "rank_apart")
    else:
        ruined = found.how == "own" and found.times >= run.threshold(Disagree).ruined
        yield _finding(found, Severity.ERROR if ruined else Severity.WARNING, "ranks_parted")


def _title(found: Parted) -> tuple[str, str]:
    ranks, steps = found.together.ranks, found.together.steps
    rank, step = ranks[found.odd], int(steps[found.onset])
    name, over = found.together.curves[found.odd].raw_name, f"over {len(ranks)} ranks"
    if found.how == "always":
        named = "the loss" if "loss" in name.lower() else f"{name}, one value for all ranks,"
        title = f"{named} of rank {rank} differs by {found.times - 1:+.0%} from that of the others"
        return title, f"over {len(steps)} common steps of {len(ranks)} ranks"
    if found.how == "never":
        return f"{name} differs between ranks from the first step on: they do not hold the same weights", over
    if found.how == "own":
        last = found.together.values[-max(1, len(steps) // 5) :]
        higher = float(np.median(last[:, found.odd])) >= float(np.median(last))
        spread = f"its loss is {found.times:.3g} times theirs at the end" if higher else "its loss is below theirs"
        return f"the loss of rank {rank} left those of the others at {at_step(step)}", f"{spread}, {over}"
    before = at_step(int(steps[found.onset - 1]))
    title = f"{name} was equal on all ranks up to {before} and differs from {at_step(step)} on"
    return title, f"the median difference since then is {found.times - 1:.2%}, {over}"


def _finding(found: Parted, severity: Severity, cause: str) -> Finding:
    together, odd = found.together, found.odd
    step, rank = int(together.steps[found.onset]), together.ranks[odd]
    pair = (together.curves[i] for i in (odd, 0 if odd else 1))
    own, other = (curve.row(int((curve.at == step).arg_max() or 0)) for curve in pair)
    return ranks_disagree.finding(
        *_title(found),
        proof(own, other),
        Onset(step=step, t_ns=own["t_ns"], rank=rank),
        severity=severity,
        culprits=(rank,),
        cause=cause,
        numbers={"ranks": len(together.ranks), "steps": len(together.steps)},
    )


_NUMBER = lazily(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)", re.IGNORECASE)


class Reported(Struct, frozen=True):
    """Threshold of LRN030: how many times as far as the next rank one must be to be named."""

    times: float = 3.0


@rule("LRN030 losses-reported-apart", "events metrics", severity="warning", confidence="medium", cause="ranks_parted")
def losses_reported_apart(run: Run, cfg: Reported) -> Findings:
    """Find the first line of the first log that says so."""
    rows = events_telling(run, "losses_differ", "weights_differ", order=("source", "line", "seq"))
    if rows.is_empty():
        return
    row = rows.row(0, named=True)
    step = _step_of(run, row, row["rank"])
    if row["code"] in telling("weights_differ"):
        what, odd = "weights", odd_by_words(row["text"] or "")
        who = f"; {ranks_do(odd, 'have others')}" if odd else ""
    else:
        values = [float(hit) for hit in _NUMBER.findall(attributes(row["attrs"]).get("values", ""))]
        what, odd = "losses", _odd(values, cfg.times)
        who = f"; rank {odd[0]} is farthest from the others ({number(values[odd[0]])})" if odd else ""
    yield losses_reported_apart.finding(
        f"the program reports that the {what} of its ranks differ, first after {at_step(step)}{who}",
        f"{rows.height} such line{'s' if rows.height > 1 else ''}, by a check of the program's own",
        proof(event_evidence(row)),
        Onset(step=step, t_ns=row["t_ns"], rank=odd[0] if odd else None),
        culprits=odd,
        numbers={"lines": rows.height},
    )


#: `ranks 0,1,2: 8f31aa02`, `rank 3 (hash 51c0ffee)`, `rank 4 = 12.5`.
_HELD = lazily(
    r"(?i)\branks?[ _]?(?P<ranks>\d[\d, -]*)\]?(?: ?[:=(]| has| had)+ ?(?:[a-z]+[ :=]+)?"
    r"(?P<value>[0-9a-fx.]*\d[0-9a-fx.]*)\b"
)
_ONE = lazily(r"(?i)\brank[ _:=]?(\d{1,6})\b")


def odd_by_words(text: str) -> tuple[int, ...]:
    """Give the ranks whose value is that of the fewest in a line, else the one that it names, of two the first."""
    held: dict[str, set[int]] = {}
    for hit in _HELD.finditer(text):
        held.setdefault(hit["value"], set()).update(listed(hit["ranks"].strip(" ,-")))
    if len(held) > 1:
        fewest, *others = sorted(held.values(), key=len)
        return tuple(sorted(fewest)) if len(fewest) < len(others[0]) else ()
    named = list(dict.fromkeys(int(rank) for rank in _ONE.findall(text)))
    return tuple(named[:1]) if 0 < len(named) <= 2 else ()


def _step_of(run: Run, row: Row, rank: int | None) -> int | None:
    """The step of an event, else the last one that its rank had reached before it."""
    place = row["line"] or row["byte"] or 0
    return row["step"] if row["step"] is not None else last_step(run, row["source"], place, row["t_ns"], rank)


def _odd(values: list[float], times: float) -> tuple[int, ...]:
    """Give the one value that is `times` as far from the median as any other; a value that is not finite is."""
    if len(values) <= 2:
        return ()
    median = sorted(values)[len(values) // 2]
    apart = sorted(((abs(value - median), rank) for rank, value in enumerate(values)), reverse=True)
    (most, rank), (next_most, _) = apart[:2]
    return (rank,) if most > times * next_most else ()


class Statistics(Struct, frozen=True):
    """Thresholds of LRN031: deviations, ranks and lines of each; less than `digits` of the mean is rounding."""

    sigmas: float = 6.0
    ranks: int = 4
    lines: int = 20
    digits: float = 1e-3


@rule("LRN031 rank-statistics-apart", "events metrics", severity="warning", confidence="medium", cause="ranks_parted")
def rank_statistics_apart(run: Run, cfg: Statistics) -> Findings:
    """Find the tensor and the rank that leave the others by most deviations."""
    rows = _rows(run)
    parted = [found for _, part in rows.group_by("name", maintain_order=True) if (found := _apart(part, cfg))]
    if not parted:
        return
    sigmas, rank, row = max(parted, key=lambda one: one[0])
    step = _step_of(run, row, rank)
    yield rank_statistics_apart.finding(
        f"the mean of {row['name']} on rank {rank} leaves the mean of the other ranks from {at_step(step)} on",
        f"it ends {number(sigmas)} deviations away from their median",
        proof(event_evidence(row)),
        Onset(step=step, t_ns=row["t_ns"], rank=rank),
        culprits=(rank,),
        numbers={"sigmas": sigmas, "ranks": rows.filter(pl.col("name") == row["name"])["who"].n_unique()},
    )


def _rows(run: Run) -> pl.DataFrame:
    said = pl.col("attrs").fill_null("{}")
    of_line = said.str.json_path_match("$.rank").cast(pl.Int64, strict=False)
    return (
        run.scan("events")
        .filter(pl.col("code").is_in(telling("rank_statistics")))
        .with_columns(
            who=pl.coalesce(of_line, pl.col("rank").cast(pl.Int64)),
            name=said.str.json_path_match("$.name"),
            mean=said.str.json_path_match("$.mean").cast(pl.Float64, strict=False),
        )
        .filter(pl.col("who").is_not_null() & pl.col("mean").is_finite())
        .sort("source", "line", "seq")
        .with_columns(turn=pl.int_range(pl.len()).over("name", "who"))
        .collect()
    )


def _apart(rows: pl.DataFrame, cfg: Statistics) -> tuple[float, int, dict[str, Any]] | None:
    wide = rows.sort("turn").pivot("who", index="turn", values="mean", aggregate_function="first").drop_nulls()
    ranks = sorted(int(name) for name in wide.columns if name != "turn")
    if len(ranks) < cfg.ranks or wide.height < cfg.lines:
        return None
    values = wide.select(map(str, ranks)).to_numpy()
    distance: Floats = values - np.median(values, axis=1, keepdims=True)
    early = distance[: len(distance) // 2]
    usual = max(scatter(early.ravel()), cfg.digits * float(np.median(np.abs(values))), 1e-12)
    last = np.median(distance[-max(1, len(distance) // 5) :], axis=0)
    odd = int(np.argmax(np.abs(last)))
    sigmas = abs(float(last[odd])) / usual
    if sigmas < cfg.sigmas:
        return None
    away = np.abs(distance[:, odd]) > cfg.sigmas * usual / 2
    first = int(np.flatnonzero(~away)[-1]) + 1 if not away.all() else 0
    turn = int(wide["turn"][min(first, wide.height - 1)])
    row = rows.filter((pl.col("who") == ranks[odd]) & (pl.col("turn") == turn)).row(0, named=True)
    return sigmas, ranks[odd], row
