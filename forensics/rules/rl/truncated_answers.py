"""RLX007 rl-truncated-answers: most answers are cut at the maximum length.

What it detects: a share of cut answers that stays above 0.8; or one above 0.3 while cut answers are much longer than
those that end by themselves.

Why it matters: a cut answer has no end to be judged; its reward punishes the limit, not the answer.

How it decides: the running median of 10 records is above 0.8 in 80 % of the last 20. Or the medians of the last 20
records: more than 0.3 cut, and a mean length of 1.5 times that of the answers that end, or more. A share between
0.3 and 0.8 alone is a warning of low confidence.

What else looks like this: a base model in its first steps, before it learned to end its answers.

What to do next: raise max_completion_length; check the end-of-sequence token and the chat template; leave cut answers
out of the loss.

References: axolotl, GRPO training reference; TRL documentation, GRPO trainer, logged metrics.

Example:
    ```metrics
    step: 1..20
    completions/clipped_ratio: (0.875 0.9375)*10
    ```
    => RLX007 warning confidence=medium step=1 cause=truncated_answers first=0.9062 last=0.9062
Example:
    ```metrics
    step: 1..20
    completions/clipped_ratio: 0.5
    completions/mean_length: 200
    completions/mean_terminated_length: 100
    ```
    => RLX007 warning confidence=medium step=1 cause=truncation_bias first=0.5000 last=0.5000
Not this:
    ```metrics
    step: 1..20
    completions/clipped_ratio: 0.125*7 0.9375 0.125*12
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import replace

from forensics.analyses.rl.ranges import Hit, Persistence, judge
from forensics.analyses.rl.series import RlSeries, rl_series
from forensics.knowledge.ranges import range_of
from forensics.rules.kit import EvidenceRole, Findings, Run, Severity, metric_evidence, rule
from forensics.rules.rl._words import finding_of, outside_of
from forensics.stats.spread import median


@rule("learning", needs=("metrics",), config=Persistence)
def truncated_answers(run: Run, cfg: Persistence) -> Findings:
    """Find a run whose answers are mostly cut."""
    every = rl_series(run, "clipped", "length", "length_terminated")
    for series in every:
        hit = judge(series, range_of("clipped_ratio"), cfg) if series.quantity == "clipped" else None
        if hit is None:
            continue
        biased = None if hit.red else _biased(hit, every, cfg)
        if biased is not None:
            ended = biased[1].finite.row(-1, named=True)
            others = [metric_evidence(ended, EvidenceRole.RELATED)]
            note = f"the mean length is {biased[0]:.2g} times the mean of answers that end"
            told = replace(hit, row=range_of("terminated_length"))
            yield finding_of(told, Severity.WARNING, cause="truncation_bias", note=note, others=others)
        else:
            cause = "truncated_answers"
            yield finding_of(hit, Severity.WARNING, cause=cause) if hit.red else outside_of(hit, cause=cause)
        return


def _biased(hit: Hit, every: tuple[RlSeries, ...], cfg: Persistence) -> tuple[float, RlSeries] | None:
    """How much longer all answers are than those that end, if that is a bias."""
    length = next((s for s in every if s.quantity == "length"), None)
    ended = next((s for s in every if s.quantity == "length_terminated"), None)
    if length is None or ended is None or hit.last <= hit.row.hi:
        return None
    whole, stopped = (median(s.finite.tail(cfg.last)["value"]) for s in (length, ended))
    ratio = whole / stopped if stopped > 0 else 0.0
    return (ratio, ended) if ratio >= (range_of("terminated_length").red or 0.0) else None
