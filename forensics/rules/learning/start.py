"""What the first records say, and what the program says of its own wiring."""

from __future__ import annotations

from math import log
from operator import itemgetter

import polars as pl
from msgspec import Struct

from forensics.analyses.learning.lr_config import configured
from forensics.analyses.learning.objective import reinforced
from forensics.case.curves.loss import Curve, curves
from forensics.case.errors.coded import events_telling
from forensics.case.settings import ON, stated
from forensics.knowledge.errors import by_id
from forensics.knowledge.ranges import range_of
from forensics.rules.kit import (
    Evidence,
    Finding,
    Findings,
    Run,
    at_step,
    event_evidence,
    fact_evidence,
    number,
    proof,
    remark,
    rule,
)
from forensics.stats.spread import median_of
from forensics.values import firsts


class Start(Struct, frozen=True):
    """Thresholds of LRN016."""

    steps: int = 10
    above: float = 1.5
    norm_low: float = range_of("first_grad_norm").lo
    norm_high: float = range_of("first_grad_norm").hi


@remark("LRN016 bad-start", "metrics facts", confidence="low", cause="bad_initialisation")
def bad_start(run: Run, cfg: Start) -> Findings:
    """Look at the first record of the loss and of the gradient norm."""
    if reinforced(run):
        return
    vocab = configured(run, "vocabulary")
    if vocab is not None and vocab.number is not None and vocab.number > 1:
        usual = log(vocab.number)
        for curve in _first(run, "loss", cfg)[:1]:
            if (first := float(curve.cell("value", 0))) > cfg.above * usual:
                because = f"a fresh model pays ln({vocab.number:.0f}) = {number(usual)}"
                low = float(curve.values[len(curve) // 2 :].min())
                mean = low < max(usual, first / usual)  # a sum over tokens would be below a nat for each
                yield _finding(curve, because, fact_evidence(vocab.row), sure=mean)
    for curve in _first(run, "grad_norm", cfg)[:1]:
        norm = float(curve.cell("value", 0))
        if (curve.step(0) or 0) <= cfg.steps and norm > 0 and not cfg.norm_low <= norm <= cfg.norm_high:
            yield _finding(curve, f"most models start between {cfg.norm_low:g} and {cfg.norm_high:g}", sure=False)


def _first(run: Run, name: str, cfg: Start) -> list[Curve]:
    """Give the curves that begin with the run: within its first steps, or at the end of its first interval."""
    steps = [(c, c.step(0), c.step(1) if len(c) > 1 else None) for c in curves(run, name) if c.attempt == 0]
    return [c for c, at, later in steps if at is not None and at <= max(cfg.steps, (later or at) - at)]


def _finding(curve: Curve, because: str, *more: Evidence, sure: bool) -> Finding:
    row = curve.row(0)
    return bad_start.finding(
        f"{curve.raw_name} starts at {number(row['value'])} at {at_step(row['at'])}",
        because,
        proof(row, *more),
        severity="warning" if sure else "info",
        confidence="medium" if sure else "low",
        causal="root" if sure else "context",
        numbers={"value": row["value"]},
    )


#: Values that turn the test of one batch on; a number is that of the batches.


class OneBatch(Struct, frozen=True):
    """When one batch is learned: its loss is at most `left`, as the sanity checks of the field have it."""

    records: int = 20
    left: float = 0.1


@rule("LRN018 wiring-reported", "events metrics facts", severity="warning", confidence="medium", cause="not_wired")
def wiring_reported(run: Run, cfg: OneBatch) -> Findings:
    """Find the first line of each kind, else a single batch that was not learned."""
    rows = events_telling(run, "not_wired", order=("source", "seq"))
    for row in firsts(rows.iter_rows(named=True), itemgetter("code")):
        yield wiring_reported.finding(
            by_id()[row["code"]].words, "the program printed so itself", proof(event_evidence(row))
        )
    if rows.is_empty():
        yield from _one_batch(run, cfg)


def _one_batch(run: Run, cfg: OneBatch) -> Findings:
    said = _says_one_batch(run)
    longest = max(curves(run, "loss"), key=len, default=None)
    if said is None or longest is None or len(longest) < cfg.records or longest.ends_nonfinite:
        return
    level = median_of(longest.values[-max(3, len(longest) // 10) :])
    if level > cfg.left:
        yield wiring_reported.finding(
            f"a single batch is not learned by heart: {longest.raw_name} is {number(level)} in the end",
            f"{number(float(longest.values[0]))} at first; one batch repeated should reach {cfg.left:g} or less",
            proof(longest.row(-1), longest.row(0), said),
            cause="one_batch_not_learned",
            numbers={"level": level},
        )


def _says_one_batch(run: Run) -> Evidence | None:
    """What says that the run repeats one batch: a setting that is on, else a line."""
    facts = stated(run, "one_batch").filter(pl.col("said").is_in(ON))
    if not facts.is_empty():
        return fact_evidence(facts.row(0, named=True))
    lines = events_telling(run, "one_batch")
    return event_evidence(lines.row(0, named=True)) if not lines.is_empty() else None
