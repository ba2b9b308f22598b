"""RLX006 rl-length-growth: answers grow longer step by step until they are cut at the maximum.

What it detects: a mean length of answers that only grows and ends at the maximum length.

Why it matters: a reward that pays for length, or answers that never end, fill the budget with text and are cut, so that
the last steps learn from torsos.

How it decides: over 20 equal parts of the run Kendall's tau of the length is above 0.8, and the last level is at least
0.9 of the maximum. The maximum is that of the configuration, else the longest answer where many records reach exactly
it. A correlation of reward and length above 0.7 says that length is what is paid for.

What else looks like this: reasoning that grows with the difficulty of the task and stays clear of the maximum.

What to do next: add a penalty on length, check that answers can end, or raise the maximum if longer answers are meant.

References: axolotl, GRPO training reference; Singhal et al. 2023, "A Long Way to Go: length correlations in RLHF".

Example:
    ```metrics seq,step,name,value
    0,1,completions/mean_length,100
    0,1,completions/max_length,256
    1,2,completions/mean_length,104
    1,2,completions/max_length,256
    2,3,completions/mean_length,108
    2,3,completions/max_length,256
    3,4,completions/mean_length,112
    3,4,completions/max_length,256
    4,5,completions/mean_length,116
    4,5,completions/max_length,256
    5,6,completions/mean_length,120
    5,6,completions/max_length,256
    6,7,completions/mean_length,124
    6,7,completions/max_length,256
    7,8,completions/mean_length,128
    7,8,completions/max_length,256
    8,9,completions/mean_length,132
    8,9,completions/max_length,256
    9,10,completions/mean_length,136
    9,10,completions/max_length,256
    10,11,completions/mean_length,140
    10,11,completions/max_length,256
    11,12,completions/mean_length,144
    11,12,completions/max_length,256
    12,13,completions/mean_length,148
    12,13,completions/max_length,256
    13,14,completions/mean_length,152
    13,14,completions/max_length,256
    14,15,completions/mean_length,156
    14,15,completions/max_length,256
    15,16,completions/mean_length,160
    15,16,completions/max_length,256
    16,17,completions/mean_length,164
    16,17,completions/max_length,256
    17,18,completions/mean_length,168
    17,18,completions/max_length,256
    18,19,completions/mean_length,172
    18,19,completions/max_length,256
    19,20,completions/mean_length,176
    19,20,completions/max_length,256
    20,21,completions/mean_length,180
    20,21,completions/max_length,256
    21,22,completions/mean_length,184
    21,22,completions/max_length,256
    22,23,completions/mean_length,188
    22,23,completions/max_length,256
    23,24,completions/mean_length,192
    23,24,completions/max_length,256
    24,25,completions/mean_length,196
    24,25,completions/max_length,256
    25,26,completions/mean_length,200
    25,26,completions/max_length,256
    26,27,completions/mean_length,204
    26,27,completions/max_length,256
    27,28,completions/mean_length,208
    27,28,completions/max_length,256
    28,29,completions/mean_length,212
    28,29,completions/max_length,256
    29,30,completions/mean_length,216
    29,30,completions/max_length,256
    30,31,completions/mean_length,220
    30,31,completions/max_length,256
    31,32,completions/mean_length,224
    31,32,completions/max_length,256
    32,33,completions/mean_length,228
    32,33,completions/max_length,256
    33,34,completions/mean_length,232
    33,34,completions/max_length,256
    34,35,completions/mean_length,236
    34,35,completions/max_length,256
    35,36,completions/mean_length,240
    35,36,completions/max_length,256
    36,37,completions/mean_length,244
    36,37,completions/max_length,256
    37,38,completions/mean_length,248
    37,38,completions/max_length,256
    38,39,completions/mean_length,248
    38,39,completions/max_length,256
    39,40,completions/mean_length,248
    39,40,completions/max_length,256
    ```
    => RLX006 warning confidence=medium step=1 cause=length_growth first=114.0 last=238.0
Not this:
    ```metrics seq,step,name,value
    0,1,completions/mean_length,100
    0,1,completions/max_length,480
    1,2,completions/mean_length,102
    1,2,completions/max_length,511
    2,3,completions/mean_length,104
    2,3,completions/max_length,512
    3,4,completions/mean_length,106
    3,4,completions/max_length,500
    4,5,completions/mean_length,108
    4,5,completions/max_length,480
    5,6,completions/mean_length,110
    5,6,completions/max_length,511
    6,7,completions/mean_length,112
    6,7,completions/max_length,512
    7,8,completions/mean_length,114
    7,8,completions/max_length,500
    8,9,completions/mean_length,116
    8,9,completions/max_length,480
    9,10,completions/mean_length,118
    9,10,completions/max_length,511
    10,11,completions/mean_length,120
    10,11,completions/max_length,512
    11,12,completions/mean_length,122
    11,12,completions/max_length,500
    12,13,completions/mean_length,124
    12,13,completions/max_length,480
    13,14,completions/mean_length,126
    13,14,completions/max_length,511
    14,15,completions/mean_length,128
    14,15,completions/max_length,512
    15,16,completions/mean_length,130
    15,16,completions/max_length,500
    16,17,completions/mean_length,132
    16,17,completions/max_length,480
    17,18,completions/mean_length,134
    17,18,completions/max_length,511
    18,19,completions/mean_length,136
    18,19,completions/max_length,512
    19,20,completions/mean_length,138
    19,20,completions/max_length,500
    20,21,completions/mean_length,140
    20,21,completions/max_length,480
    21,22,completions/mean_length,142
    21,22,completions/max_length,511
    22,23,completions/mean_length,144
    22,23,completions/max_length,512
    23,24,completions/mean_length,146
    23,24,completions/max_length,500
    24,25,completions/mean_length,148
    24,25,completions/max_length,480
    25,26,completions/mean_length,150
    25,26,completions/max_length,511
    26,27,completions/mean_length,152
    26,27,completions/max_length,512
    27,28,completions/mean_length,154
    27,28,completions/max_length,500
    28,29,completions/mean_length,156
    28,29,completions/max_length,480
    29,30,completions/mean_length,158
    29,30,completions/max_length,511
    30,31,completions/mean_length,160
    30,31,completions/max_length,512
    31,32,completions/mean_length,162
    31,32,completions/max_length,500
    32,33,completions/mean_length,164
    32,33,completions/max_length,480
    33,34,completions/mean_length,166
    33,34,completions/max_length,511
    34,35,completions/mean_length,168
    34,35,completions/max_length,512
    35,36,completions/mean_length,170
    35,36,completions/max_length,500
    36,37,completions/mean_length,172
    36,37,completions/max_length,480
    37,38,completions/mean_length,174
    37,38,completions/max_length,511
    38,39,completions/mean_length,176
    38,39,completions/max_length,512
    39,40,completions/mean_length,178
    39,40,completions/max_length,500
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from forensics.analyses.rl.levels import median, together, trend_of
from forensics.analyses.rl.series import RlSeries, rl_series
from forensics.case.evidence import fact_evidence
from forensics.model import EvidenceRole, Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules.rl._ranges import Hit, Persistence, range_of
from forensics.rules.rl._words import finding_of
from forensics.store.run import Run

_LIMIT_KEY = r"(?i)(?:^|[._/-])(?:max_completion_length|max_response_length|generate_max_len|response_length)$"
#: Kendall's tau, share of the maximum, and correlation from which a growth counts (axolotl, GRPO training reference).
_TAU, _SHARE, _PAID = 0.8, 0.9, 0.7
#: Share of records whose longest answer is exactly the longest of all, from which that is the maximum.
_AT_LIMIT = 0.2


@rule("RLX006", shape=Shape.LEARNING, needs=("metrics", "facts"), config=Persistence)
def length_growth(run: Run, cfg: Persistence | None = None) -> Iterator[Finding]:
    """Find answers that grow to the maximum length."""
    cfg = cfg or Persistence()
    every = rl_series(run, "length", "length_max", "reward", "reward_fn")
    series = next((s for s in every if s.quantity == "length"), None)
    if series is None or series.finite.height < 2 * cfg.last:
        return
    limits = _configured(run)
    limit = float(limits["limit"][0]) if limits.height else _reached(every)
    values = series.finite["value"]
    trend, last = trend_of(values), median(values.tail(cfg.window))
    if trend is None or limit is None or trend.tau <= _TAU or last < _SHARE * limit:
        return
    rewards = [s for s in every if s.quantity == "reward"] or [s for s in every if s.quantity == "reward_fn"]
    paid = max((together(s.finite, series.finite) for s in rewards), default=0.0)
    hacked = paid > _PAID
    note = f"the maximum is {limit:g}" + (f"; reward and length correlate by {paid:.2f}" if rewards else "")
    hit = Hit(range_of("length_growth"), series, series.finite, True, 0, trend.first, last, trend.tau)  # noqa: FBT003 - the field is named red
    facts = [fact_evidence(row, EvidenceRole.RELATED) for row in limits.head(1).iter_rows(named=True)]
    cause = "length_hacking" if hacked else "length_growth"
    yield finding_of(hit, Severity.WARNING, cause=cause, note=note, others=facts)


def _configured(run: Run) -> pl.DataFrame:
    facts = run.scan("facts").filter(pl.col("key").str.contains(_LIMIT_KEY))
    return (
        facts.with_columns(limit=pl.col("value").str.strip_chars('"').cast(pl.Float64, strict=False))
        .filter(pl.col("limit") > 1)
        .sort("source", "line", maintain_order=True)
        .collect()
    )


def _reached(every: tuple[RlSeries, ...]) -> float | None:
    """The longest answer of all, when many records reach exactly it."""
    longest = next((s.finite["value"] for s in every if s.quantity == "length_max" and s.finite.height), None)
    if longest is None:
        return None
    most = float(longest.max())  # type: ignore[arg-type] - a column of floats
    return most if float((longest == most).sum()) >= _AT_LIMIT * longest.len() else None
