"""Parts of a step that do no work: the wait for its batch, and padding."""

from __future__ import annotations

from forensics.analyses.pace.parts import data_waits, paddings
from forensics.rules.kit import Findings, Run, Struct, proof, rule


class DataWait(Struct, frozen=True):
    """Thresholds of SLO032: shares of a step, and the fewest records.

    Where the median step waits for less, the sums of `records` steps without the longest wait decide, from `bursts` on.
    Where both are `most` of a step, `few` records are enough: one slow start cannot make them so.
    """

    some: float = 0.1
    much: float = 0.2
    bursts: float = 0.5
    most: float = 0.5
    records: int = 8
    few: int = 3


@rule("SLO032 waits-for-data", "metrics", confidence="high", cause="dataloader")
def data_wait(run: Run, cfg: DataWait) -> Findings:
    """Find the source whose steps wait longest for data."""
    told = ((p, cfg.few if min(p.share, p.of_sums) >= cfg.most else cfg.records) for p in data_waits(run))
    found = [part for part, needed in told if part.whole is not None and part.records >= needed]
    one = max(found, key=lambda part: max(part.share, part.of_sums), default=None)
    if one is None or one.whole is None:
        return
    bursts = one.share < cfg.much and one.of_sums >= cfg.bursts
    share = one.of_sums if bursts else one.share
    if share < cfg.some:
        return
    usual = f"(median {one.amount:.3g} s of {one.whole:.3g} s)"
    yield data_wait.finding(
        f"the wait for data is {100 * share:.0f} % of the time of all steps, in few long waits"
        if bursts
        else f"the wait for data is {100 * share:.0f} % of each step {usual}",
        f"{one.records} records hold both times; the device idles until the batch arrives",
        proof(one.first, one.last),
        severity="warning" if share >= cfg.much else "info",
        confidence="high" if one.records >= cfg.records else "medium",
        numbers={"share": share, "records": one.records},
    )


class Padding(Struct, frozen=True):
    """Thresholds of SLO033: a share of the tokens, and the fewest records."""

    much: float = 0.2
    records: int = 10


@rule("SLO033 padding-waste", "metrics", severity="warning", confidence="medium", cause="padding")
def padding(run: Run, cfg: Padding) -> Findings:
    """Find the source with most padding."""
    found = [one for one in paddings(run) if one.records >= cfg.records and 0 <= one.share < 1]
    one = max(found, key=lambda part: part.share, default=None)
    if one is None or one.share < cfg.much:
        return
    of = "" if one.whole is None else f" ({one.amount:.0f} of {one.whole:.0f} tokens are padding)"
    yield padding.finding(
        f"{100 * one.share:.0f} % of the tokens of each step are padding{of}",
        f"the median of {one.records} records; padding costs what tokens cost",
        proof(one.first, one.last),
        numbers={"share": one.share, "records": one.records},
    )
