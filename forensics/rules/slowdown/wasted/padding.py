"""SLO033 padding-waste: a large part of the tokens of each step is padding.

What it detects: tokens that are no padding beside all tokens of a step, or a share of padding that the program prints.

Why it matters: padding costs what tokens cost and teaches nothing. A fifth of it makes a run a quarter longer.

How it decides: the median share of padding, without the first tenth of the records, is `much` or more.

What else looks like this: a count of tokens that bear a loss, where prompts are masked.

What to do next: pack several samples into one sequence, or group samples of like length.

References: Krell et al. 2021, "Efficient Sequence Packing without Cross-contamination".

Example:
    ```metrics
    step: 10..120/10
    tokens: 8192
    non_pad_tokens: 4100 4000 4200 4100 4050 4150 4100 4000 4200 4100 4050 4150
    ```
    => SLO033 warning confidence=medium step=20 cause=padding share=0.4995 records=11
Not this: sequences that are full
    ```metrics
    step: 10..120/10
    tokens: 8192
    non_pad_tokens: 8100 8000 8100 8050 8000 8100 8050 8100 8000 8100 8050 8000
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.pace.parts import paddings
from forensics.rules.kit import Findings, Run, onset_at, proof, rule


@dataclass(frozen=True, slots=True)
class Padding:
    """Thresholds of SLO033: a share of the tokens, and the fewest records."""

    much: float = 0.2
    records: int = 10


@rule("slowdown", needs=("metrics",), config=Padding, severity="warning", confidence="medium", cause="padding")
def padding(run: Run, cfg: Padding) -> Findings:
    """Find the source with most padding."""
    found = [one for one in paddings(run) if one.records >= cfg.records and 0 <= one.share < 1]
    one = max(found, key=lambda part: part.share, default=None)
    if one is None or one.share < cfg.much:
        return
    of = "" if one.whole is None else f" ({one.amount:.0f} of {one.whole:.0f} tokens are none)"
    yield padding.finding(
        f"{100 * one.share:.0f} % of the tokens of each step are padding{of}",
        f"the median of {one.records} records; padding costs what tokens cost",
        proof(one.first, one.last),
        onset_at(one.first),
        numbers={"share": one.share, "records": one.records},
    )
