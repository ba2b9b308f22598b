"""RLX009 rl-reward-trend: the reward falls, or has not risen after a hundred steps.

What it detects: a mean reward with a proven downward trend over the last half of the run; as a remark, one that is no
higher at the end than at the start.

Why it matters: the reward is what is optimised: where it falls, the updates do harm.

How it decides: after 100 steps, Kendall's test over 20 equal parts of the last half, with z above 4 and a fall of more
than twice the noise of single records, that ends below the level of the first fifth. A reward need not rise
monotonically. Without a fall, a last fifth that is not above the first by three standard errors is a remark.

What else looks like this: a curriculum whose prompts get harder; a penalty that is switched on; a solved task.

What to do next: look at KL, entropy and lengths around the fall; restart before it with a lower learning rate.

References: axolotl, GRPO training reference, expected trends; Kendall 1938; Mann 1945.

Example:
    ```metrics seq,step,name,value
    0,2,completions/mean_length,200
    0,2,reward,0.604
    1,4,reward,0.591
    2,6,reward,0.594
    3,8,reward,0.581
    4,10,reward,0.584
    5,12,reward,0.571
    6,14,reward,0.574
    7,16,reward,0.561
    8,18,reward,0.564
    9,20,reward,0.551
    10,22,reward,0.554
    11,24,reward,0.541
    12,26,reward,0.544
    13,28,reward,0.531
    14,30,reward,0.534
    15,32,reward,0.521
    16,34,reward,0.524
    17,36,reward,0.511
    18,38,reward,0.514
    19,40,reward,0.501
    20,42,reward,0.504
    21,44,reward,0.491
    22,46,reward,0.494
    23,48,reward,0.481
    24,50,reward,0.484
    25,52,reward,0.471
    26,54,reward,0.474
    27,56,reward,0.461
    28,58,reward,0.464
    29,60,reward,0.451
    30,62,reward,0.454
    31,64,reward,0.441
    32,66,reward,0.444
    33,68,reward,0.431
    34,70,reward,0.434
    35,72,reward,0.421
    36,74,reward,0.424
    37,76,reward,0.411
    38,78,reward,0.414
    39,80,reward,0.401
    40,82,reward,0.404
    41,84,reward,0.391
    42,86,reward,0.394
    43,88,reward,0.381
    44,90,reward,0.384
    45,92,reward,0.371
    46,94,reward,0.374
    47,96,reward,0.361
    48,98,reward,0.364
    49,100,reward,0.351
    50,102,reward,0.354
    51,104,reward,0.341
    52,106,reward,0.344
    53,108,reward,0.331
    54,110,reward,0.334
    55,112,reward,0.321
    56,114,reward,0.324
    57,116,reward,0.311
    58,118,reward,0.314
    59,120,reward,0.301
    60,122,reward,0.304
    61,124,reward,0.291
    62,126,reward,0.294
    63,128,reward,0.281
    64,130,reward,0.284
    65,132,reward,0.271
    66,134,reward,0.274
    67,136,reward,0.261
    68,138,reward,0.264
    69,140,reward,0.251
    70,142,reward,0.254
    71,144,reward,0.241
    72,146,reward,0.244
    73,148,reward,0.231
    74,150,reward,0.234
    75,152,reward,0.221
    76,154,reward,0.224
    77,156,reward,0.211
    78,158,reward,0.214
    79,160,reward,0.201
    ```
    => RLX009 warning confidence=medium step=82 step_lo=80 cause=reward_falls first=0.5625 last=0.2425
Not this:
    ```metrics seq,step,name,value
    0,2,completions/mean_length,200
    0,2,reward,0.12
    1,4,reward,0.085
    2,6,reward,0.13
    3,8,reward,0.095
    4,10,reward,0.14
    5,12,reward,0.105
    6,14,reward,0.15
    7,16,reward,0.115
    8,18,reward,0.16
    9,20,reward,0.125
    10,22,reward,0.17
    11,24,reward,0.135
    12,26,reward,0.18
    13,28,reward,0.145
    14,30,reward,0.19
    15,32,reward,0.155
    16,34,reward,0.2
    17,36,reward,0.165
    18,38,reward,0.21
    19,40,reward,0.175
    20,42,reward,0.22
    21,44,reward,0.185
    22,46,reward,0.23
    23,48,reward,0.195
    24,50,reward,0.24
    25,52,reward,0.205
    26,54,reward,0.25
    27,56,reward,0.215
    28,58,reward,0.26
    29,60,reward,0.225
    30,62,reward,0.27
    31,64,reward,0.235
    32,66,reward,0.28
    33,68,reward,0.245
    34,70,reward,0.29
    35,72,reward,0.255
    36,74,reward,0.3
    37,76,reward,0.265
    38,78,reward,0.31
    39,80,reward,0.275
    40,82,reward,0.32
    41,84,reward,0.285
    42,86,reward,0.33
    43,88,reward,0.295
    44,90,reward,0.34
    45,92,reward,0.305
    46,94,reward,0.35
    47,96,reward,0.315
    48,98,reward,0.36
    49,100,reward,0.325
    50,102,reward,0.37
    51,104,reward,0.335
    52,106,reward,0.38
    53,108,reward,0.345
    54,110,reward,0.39
    55,112,reward,0.355
    56,114,reward,0.4
    57,116,reward,0.365
    58,118,reward,0.41
    59,120,reward,0.375
    60,122,reward,0.42
    61,124,reward,0.385
    62,126,reward,0.43
    63,128,reward,0.395
    64,130,reward,0.44
    65,132,reward,0.405
    66,134,reward,0.45
    67,136,reward,0.415
    68,138,reward,0.46
    69,140,reward,0.425
    70,142,reward,0.47
    71,144,reward,0.435
    72,146,reward,0.48
    73,148,reward,0.445
    74,150,reward,0.49
    75,152,reward,0.455
    76,154,reward,0.5
    77,156,reward,0.465
    78,158,reward,0.51
    79,160,reward,0.475
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.analyses.rl.levels import median
from forensics.analyses.rl.series import RlSeries, rl_series
from forensics.model import Finding, Severity, Shape
from forensics.registry import rule
from forensics.rules.rl._ranges import Hit, Persistence, judge, range_of
from forensics.rules.rl._words import finding_of, risen
from forensics.store.run import Run

#: A reward that starts here has no room to rise.
_FULL = 0.95


@rule("RLX009", shape=Shape.LEARNING, needs=("metrics",), config=Persistence)
def reward_trend(run: Run, cfg: Persistence | None = None) -> Iterator[Finding]:
    """Find a total reward that falls or never rose."""
    cfg = cfg or Persistence()
    row = range_of("reward_trend")
    for series in rl_series(run, "reward"):
        hit = judge(series, row, cfg)
        if hit is not None and hit.last < hit.first:
            yield finding_of(hit, Severity.WARNING, cause="reward_falls")
        elif hit is None and _flat(series, row.from_step, cfg):
            rows = series.finite
            fifth = max(1, rows.height // 5)
            first, last = median(rows["value"].head(fifth)), median(rows["value"].tail(fifth))
            flat = Hit(row, series, rows, red=False, onset=0, first=first, last=last, share=0.0)
            yield finding_of(flat, Severity.INFO, cause="reward_flat", note="the reward has not risen so far")


def _flat(series: RlSeries, from_step: int, cfg: Persistence) -> bool:
    """Whether a long series that could have risen has not; one of nothing but zeros is another rule's."""
    rows = series.finite
    last = rows["at"].max()
    if rows.height < 2 * cfg.last or not isinstance(last, int) or last <= from_step:
        return False
    values = rows["value"]
    return 0 < median(values.abs()) < _FULL and risen([series]) is False
