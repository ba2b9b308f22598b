"""From series of numbers to candidates for the origin of a NaN: lost series, and series that only stumbled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct

from forensics.case.evidence import Row
from forensics.case.folds import has_folds
from forensics.case.joined.stores import counted
from forensics.case.nonfinite import Watched, vanished, watched, watched_of, watched_series
from forensics.case.series import keys_of
from forensics.case.steps import SERIES, by_record
from forensics.dialects.names import canonical
from forensics.knowledge.metrics import telling
from forensics.store.run import Run, derived
from forensics.values import replace


class Status(StrEnum):
    """The state of a series: lost to the end, bad now and then, bad once or twice, or lost in an earlier attempt."""

    FAILED = "failed"
    INTERMITTENT = "intermittent"
    TRANSIENT = "transient"
    EARLIER = "earlier"


class Shares(Struct, frozen=True):
    """Up to `transient_share` bad records are a stumble; from `fault_share` on a fault, though the series ends finite.

    A counter of NaN updates is a fault where more than `counted_share` of its records have some, the last one too.
    """

    transient_share: float = 0.05
    counted_share: float = 0.05
    fault_share: float = 0.2
    lost_records: int = 3


class Candidate(Struct, frozen=True):
    """One place where training may have gone non-finite.

    `row` is a row of the metrics table, or of the events table for the role `detector` or `echo`; `clean` is the last
    finite row of the same series before it. `n_after` finite records follow the last bad one; `own_step` is false where
    the step was taken from the record before.
    """

    status: Status
    role: str
    row: Row
    clean: Row | None
    step: int | None
    n: int
    n_bad: int
    n_after: int
    own_step: bool = True


def step_after(losses: Watched) -> int | None:
    """The step after the last of some records, in their own spacing."""
    steps = losses["at"].drop_nulls().unique().sort().tail(2).to_list()
    if not steps:
        return None
    return int(steps[-1] + (steps[-1] - steps[0] if len(steps) > 1 else 1))


def series_candidates(run: Run) -> list[Candidate]:
    """Judge every watched series; its rows are asked for only where one is not finite."""
    cfg, table = run.threshold(Shares), watched_series(run)
    found = [
        candidate
        for key in table.filter(pl.col("n_bad") > 0).iter_rows(named=True)
        for candidate in _judge(run, table, key, cfg)
    ]
    found += _zeros(run, table, cfg)
    found += _vanished(run, cfg)
    found += _counts(run, cfg)
    return [_dated(candidate, run, cfg) for candidate in found]


def _judge(run: Run, table: pl.DataFrame, key: dict[str, Any], cfg: Shares) -> Iterator[Candidate]:
    if _by_design(table, key):
        return
    own = watched_of(run, key["own"])
    status = _status(table, key, cfg)
    is_bad = own["bad"].to_numpy()
    every = lost = np.flatnonzero(is_bad)
    if status is Status.FAILED:  # from here to the end half of the records are bad
        lost = every[2 * np.arange(len(every), 0, -1) >= len(own) - every]
    if key["n_after"] and len(lost) < cfg.lost_records:  # it is as bad all along as in these last ones
        lost = every
    bad = own.row(int((lost if len(lost) else every)[0]))
    clean = own.filter(~pl.col("bad"), pl.col("seq") < bad["seq"])
    yield Candidate(
        status=status,
        role=key["role"],
        row=bad,
        clean=clean.row(-1) if len(clean) else None,
        step=bad["at"],
        n=key["n"],
        n_bad=key["n_bad"],
        n_after=key["n_after"],
    )


def losses_beside(row: Mapping[str, Any]) -> pl.Expr:
    """Choose the losses of a row's source in its attempt."""
    return (pl.col("source") == row["source"]) & (pl.col("attempt") == row["attempt"]) & (pl.col("role") == "loss")


def _beside(table: pl.DataFrame, key: dict[str, Any]) -> pl.DataFrame:
    """Loss series of the same attempt of the same source, other than the one itself."""
    return table.filter(losses_beside(key) & (pl.col("raw_name") != key["raw_name"]))


def _sound(losses: pl.DataFrame) -> bool:
    """Whether some loss series runs to a finite, non-zero end over three records or more."""
    ends = (pl.col("n") >= 3) & (pl.col("last") != 0.0) & ((pl.col("n_bad") == 0) | (pl.col("n_after") >= 3))
    return losses.filter(ends & pl.col("last").is_finite()).height > 0


def _by_design(table: pl.DataFrame, key: dict[str, Any]) -> bool:
    """Whether a series holds NaN in healthy runs too: the loss proper stays finite beside it."""
    always = key["n_bad"] == key["n"]
    if key["role"] == "part" and _lost_beside_a_part(table, key):
        return False
    if key["role"] == "part":
        return _sound(_beside(table, key)) or not (key["n_before"] or table.filter(pl.col("role") == "loss").is_empty())
    if key["role"] == "eval":
        return _sound(table.filter(pl.col("role") == "loss")) or (always and key["n"] < 2)
    return always and _sound(_beside(table, key))


def _lost_beside_a_part(table: pl.DataFrame, key: dict[str, Any]) -> bool:
    """Whether a part is lost for good where a trainer prints no loss of the whole: another part stands for it."""
    others = _beside(table, key)["raw_name"].drop_nulls().to_list()
    lost = key["n_after"] == 0 and min(key["n_before"], key["n_tail"]) >= _LOST
    return lost and bool(others) and all(canonical(name).canonical != "loss" for name in others)


def _status(table: pl.DataFrame, key: dict[str, Any], cfg: Shares) -> Status:
    share = key["n_bad"] / key["n"]
    gradient = key["role"] == "grad_norm"
    if key["n_after"] == 0:
        passed = share <= cfg.transient_share and key["last"] in _INFINITE
        alone = gradient and key["n_tail"] == 1 and (key["n_bad"] == 1 or passed) and _sound(_beside(table, key))
        return Status.FAILED if not alone else Status.TRANSIENT if key["last"] in _INFINITE else Status.INTERMITTENT
    if share <= cfg.transient_share or (key["n_bad"] == 1 and key["n_before"] == 0):
        return Status.TRANSIENT
    if key["n_before"] == 0 and key["n_after"] == key["n"] - key["n_bad"] > key["n_bad"]:
        return Status.INTERMITTENT  # bad at the beginning, and finite ever since for longer than it was bad
    return Status.INTERMITTENT if gradient or share <= cfg.fault_share else Status.FAILED


#: Records before and behind the place at which a part is lost.
_LOST = 3
_INFINITE = (float("inf"), float("-inf"))
#: A loss above this does not round to zero at its next record.
_PLUNGE = 0.05


def _zeros(run: Run, table: pl.DataFrame, cfg: Shares) -> Iterator[Candidate]:
    """A loss that drops to exactly zero for good, where no gradient norm is printed: a writer hid the NaN."""
    ends = table.filter((pl.col("role") == "loss") & (pl.col("last") == 0.0) & (pl.col("n_bad") == 0))
    for key in ends.iter_rows(named=True):
        source = pl.col("source") == key["source"]
        gradients = table.filter(source & (pl.col("role") == "grad_norm")).height
        rewards = keys_of(run).filter(source & pl.col("name").str.contains("(?i)reward")).height
        own = watched_of(run, key["own"])
        values = own["value"].to_numpy()
        before = int(np.flatnonzero(values).max(initial=-1)) + 1  # so many records, then zeros to the end
        plunge = before >= cfg.lost_records and values[before - 1] > _PLUNGE and not (values < 0).any()
        if not gradients and not rewards and len(own) - before >= cfg.lost_records and plunge:
            bad, clean = own.row(before), own.row(before - 1)
            yield Candidate(Status.FAILED, "zero", bad, clean, bad["at"], len(own), len(own) - before, 0)


def _vanished(run: Run, cfg: Shares) -> Iterator[Candidate]:
    """A loss column that disappears while iterations go on."""
    for row in vanished(run).filter(pl.col("n_lost") >= cfg.lost_records).iter_rows(named=True):
        losses = watched(run).filter(losses_beside(row) & (pl.col("seq") < row["seq"]) & ~pl.col("bad"))
        clean = losses.row(-1) if len(losses) else None
        yield Candidate(Status.FAILED, "vanished", row, clean, row["at"], len(losses) + row["n_lost"], row["n_lost"], 0)


def _counts(run: Run, cfg: Shares) -> Iterator[Candidate]:
    """A trainer's own count of updates that were not finite, which runs to the end."""
    wanted = pl.col("name").str.contains(telling("bad_updates"))
    rows = by_record(counted(run, wanted).filter(pl.col("value").is_finite())).collect()
    for _, own in rows.group_by(*SERIES, maintain_order=True):
        hits = own.filter(pl.col("value") > 0)
        if hits.height <= cfg.counted_share * own.height or own["value"][-1] == 0:
            continue
        first = hits.row(0, named=True)
        before = own.filter((pl.col("seq") < first["seq"]) & (pl.col("value") == 0))
        clean = before.row(-1, named=True) if before.height else None
        yield Candidate(Status.FAILED, "counter", first, clean, first["at"], own.height, hits.height, 0)


def _dated(candidate: Candidate, run: Run, cfg: Shares) -> Candidate:
    """Mark a loss of an attempt that a later one outlived, in the same source or in a later one; folds outlive none."""
    if candidate.status is not Status.FAILED or has_folds(run):
        return candidate
    row, here = candidate.row, pl.col("source") == candidate.row["source"]
    if watched_series(run).filter(~here | (pl.col("attempt") > row["attempt"])).is_empty():
        return candidate
    finite, later = _finite(run), here & (pl.col("attempt") > row["attempt"])
    if row["t_ns"] is not None:
        bad = watched(run).filter(here, pl.col("bad"))["t_ns"].max()
        after = pl.col("t_ns") > (bad if bad is not None else row["t_ns"])
        later |= ~here & after & (pl.col("role") == "loss")
    return replace(candidate, status=Status.EARLIER) if len(finite.filter(later)) >= cfg.lost_records else candidate


@derived
def _finite(run: Run) -> pl.DataFrame:
    """Where and when losses are numbers above zero."""
    of_loss = pl.col("role").is_in(["loss", "eval"])
    rows = watched(run).filter(of_loss, ~pl.col("bad"), pl.col("value") != 0.0)
    return rows.frame("source", "attempt", "t_ns", "role")
