"""RLX005 rl-sampler-divergence: the sampler does not run the weights that are trained.

What it detects: a mean difference of log-probabilities between sampler and trainer that stays above 1 nat, or a
smallest importance ratio that stays near zero.

Why it matters: answers come from another policy than the one that is updated; the correction by importance ratios then
throws most of them away or blows up.

How it decides: the running median of 10 records is beyond the bound in 80 % of the last 20. A difference above 1 is an
error unless the reward clearly rose; a smallest ratio below 0.01 alone is a warning, for it is one token of a batch.

What else looks like this: a sampler in lower precision than the trainer, with a difference of some hundredths.

What to do next: synchronise the sampler's weights more often; mask or truncate off-policy samples; compute importance
ratios per token.

References: axolotl, GRPO training reference; TRL documentation, GRPO with vLLM, importance sampling.

Example:
    ```metrics
    step: 1..28
    sampling/sampling_logp_difference/mean: 0.05*4 1.5*24
    ```
    => RLX005 error confidence=medium step=5 step_lo=4 cause=sampler_divergence first=0.05000 last=1.500
Example:
    ```metrics
    step: 1..28
    sampling/importance_sampling_ratio/min: 0.5*4 0.001*24
    ```
    => RLX005 warning confidence=medium step=5 step_lo=4 cause=sampler_divergence first=0.5000 last=0.001000
Not this:
    ```metrics
    step: 1..28
    sampling/sampling_logp_difference/mean: 0.05*11 3.0 0.05*16
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.rl.ranges import Persistence, judge, rewards_of, risen
from forensics.analyses.rl.series import rl_series
from forensics.knowledge.ranges import range_of
from forensics.rules.kit import EvidenceRole, Findings, Run, Severity, metric_evidence, rule
from forensics.rules.rl._words import finding_of, outside_of


@rule("learning", needs=("metrics",), config=Persistence)
def sampler_divergence(run: Run, cfg: Persistence) -> Findings:
    """Find a sampler that lags behind the trained policy."""
    every = rl_series(run, "logp_diff", "is_ratio_min", "reward", "reward_fn")
    rows = (range_of("logp_diff"), range_of("is_ratio_min"))
    hits = [h for row in rows for s in every if s.quantity == row.quantity and (h := judge(s, row, cfg)) is not None]
    red = [h for h in hits if h.red]
    if red:
        rose = risen(rewards_of(every))
        worst, others = red[0], red[1:]
        error = worst.row.row == "logp_diff" and not rose
        also = [metric_evidence(h.rows.row(h.onset, named=True), EvidenceRole.RELATED) for h in others]
        note = "the reward rose meanwhile" if rose else ""
        severity = Severity.ERROR if error else Severity.WARNING
        yield finding_of(worst, severity, cause="sampler_divergence", note=note, others=also)
    elif hits:
        yield outside_of(hits[0], cause="sampler_divergence")
