"""What went into a run that went non-finite: its data, its learning rate, its clipping, its precision."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from msgspec import Struct

from forensics.analyses.epoch_places import same_place
from forensics.analyses.nan.onset import NanOnset, lost, nan_onset
from forensics.analyses.nan.series import Status
from forensics.analyses.nan.tokens import Outside, tokens_outside
from forensics.case.series import index_of, placed_rows
from forensics.case.settings import NOTHING, OFF, stated
from forensics.case.steps import ordered
from forensics.knowledge.vocabulary import words_for
from forensics.rules.kit import (
    Evidence,
    Findings,
    Row,
    Run,
    at_step,
    fact_evidence,
    number,
    onset_at,
    proof,
    remark,
    rule,
)
from forensics.store.packed import PLACE

_SHOWN = 4
_WENT_ON = (Status.INTERMITTENT, Status.TRANSIENT)


@rule("NAN015 same-place-in-epoch", "metrics events", about=nan_onset, confidence="medium", cause="bad_sample")
def same_place_in_epoch(_run: Run, found: NanOnset) -> Findings:
    """Find bad values that come back at one place of the data."""
    row = found.first.row
    losses = found.rows.filter(
        (pl.col("role") == "loss") & (pl.col("source") == row["source"]) & pl.col("epoch").is_finite()
    )
    begins = (losses["bad"] & ~losses["bad"].shift(1, fill_value=True)).arg_true().to_numpy()
    again = [losses.row(i) for i in same_place(losses["epoch"].to_numpy(), begins).tolist()]
    if not again:
        return
    first = again[0]
    # the run went on finite, and most bad stretches begin at that place
    leads = found.status in _WENT_ON and 2 * len(again) > len(begins)
    yield same_place_in_epoch.finding(
        f"values stop being finite at the same place of {len(again)} epochs, first at {at_step(first['at'])}",
        "finite ones are between them, so the data come back",
        proof(*again[:_SHOWN]),
        onset_at(first, found.clean_step if leads else None),
        severity="warning" if leads else "info",
        causal="root" if leads else "context",
        numbers={"epochs": len(again), "place_in_epoch": round(first["epoch"] % 1, 4)},
    )


@rule(
    "NAN017 token-outside-vocabulary",
    "metrics facts events checkpoints",
    about=tokens_outside,
    confidence="high",
    cause="token_outside_vocabulary",
)
def token_outside_vocabulary(run: Run, found: Outside) -> Findings:
    """Find the first batch whose token ids leave the vocabulary."""
    rows, size = found.rows, found.size
    first = rows.row(0, named=True)
    yield token_outside_vocabulary.finding(
        f"the batch of {at_step(first['at'])} holds token id {first['value']:.0f}, and the vocabulary has {size.value}",
        f"{rows.height} batch{'es' * (rows.height > 1)} with such ids; the embedding has rows 0 to {size.value - 1}",
        proof(first, fact_evidence(size.row)),
        severity="warning" if lost(run) is None else "error",
        numbers={"id": first["value"], "vocabulary": size.value},
    )


@rule("NAN008 nan-fp8-on", "metrics events facts", about=lost, severity="warning", cause="fp8", causal="context")
def fp8_on(run: Run, found: NanOnset) -> Findings:
    """Find the configuration key that turns fp8 on in a run that went non-finite."""
    value = pl.col("value").fill_null("").str.strip_chars('"').str.to_lowercase()
    named = pl.any_horizontal(of.str.contains(words_for("fp8")) for of in (pl.col("key"), value))
    is_set = (pl.col("family") == "config") & ~value.is_in([*OFF, *NOTHING, "[]", "{}"])
    keys = run.scan("facts").filter(is_set & named).head(3).collect()
    if keys.is_empty():
        return
    yield fp8_on.finding(
        "fp8 was on when training went non-finite",
        "fp8 scaling breaks on blocks of zeros and on outliers; nothing proves that it did here",
        proof(*(fact_evidence(row) for row in keys.iter_rows(named=True)), found.evidence()[0]),
        found.onset,
        confidence="medium" if found.n_before <= 1 else "low",
    )


#: A rate that is held goes on by rounding.
_AT_PEAK = 0.999


class Warmup(Struct, frozen=True):
    """How soon after the peak of the learning rate an onset still counts as warm-up, as a share of the steps so far."""

    after_peak: float = 0.1


@remark("NAN012 nan-in-warmup-or-unclipped", "metrics events facts", about=lost, confidence="low")
def warmup_or_no_clip(run: Run, found: NanOnset, cfg: Warmup) -> Findings:
    """Say what the learning rate and the clip were at the onset."""
    if found.n_before <= 1:
        return
    warming = [*_warming(run, cfg, found)]
    said = [*warming, *_switched_off(run)]
    if not said:
        return
    yield warmup_or_no_clip.finding(
        "; ".join(words for words, _ in said),
        "these make a blow-up more likely; they do not prove one",
        proof(*(evidence for _, evidence in said), found.evidence()[0]),
        found.onset,
        cause="warmup_too_short" if warming else "learning_rate_or_clip",
    )


def _warming(run: Run, cfg: Warmup, found: NanOnset) -> Iterator[tuple[str, Row]]:
    step, row = found.step, found.first.row
    own = placed_rows(run, (pl.col("name") == "lr") & (pl.col("source") == row["source"]))
    rates = ordered(own.filter(pl.col("value").is_finite())).select("value", "at", PLACE)
    rates = rates.filter(pl.col("at") <= (step or 0)).collect()
    if step is None or rates.height < 3 or rates["value"].max() == rates["value"].min():
        return
    peak = rates.filter(pl.col("value") >= _AT_PEAK * pl.col("value").max()).row(0, named=True)
    if step - peak["at"] <= cfg.after_peak * max(1, step) and rates["value"][0] < peak["value"]:
        yield (
            f"the learning rate was at its peak so far, {number(peak['value'])}, after a rise",
            index_of(run).table.row(peak[PLACE]),
        )


def _switched_off(run: Run) -> Iterator[tuple[str, Evidence]]:
    for name, words in (("clip", "gradient clipping is off"), ("warmup", "there is no warm-up")):
        rows = stated(run, name).filter((pl.col("family") == "config") & pl.col("said").is_in(OFF)).head(1)
        yield from ((words, fact_evidence(row)) for row in rows.iter_rows(named=True))
