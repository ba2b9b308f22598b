"""LRN017 finetune-settings-out-of-range: learning rate, weight decay or loss level are unusual for a fine-tuning.

What it detects: for a run that says that it trains an adapter: a peak learning rate outside the usual range, a weight
decay that suppresses the adapter, a loss level outside what chat data gives.

Why it matters: too low a learning rate crawls, too high a one bounces; both look like a plateau.

How it decides: only where the configuration names an adapter (LoRA and its kind). The peak rate as logged, else as
configured, is outside `lr_low` to `lr_high`; or the weight decay is above `decay`; or the median of the last tenth of
the loss is outside `loss_low` to `loss_high`. These are habits and no laws: a note.

What else looks like this: optimizers with other scales (Lion, Prodigy, Muon); preference losses.

What to do next: compare with a short sweep of three learning rates a factor of three apart.

References: Hu et al. 2021, LoRA, appendix D; Biderman et al. 2024, "LoRA Learns Less and Forgets Less".

Example:
    ```facts key,value,family
    adapter,lora,config
    learning_rate,2e-06,config
    weight_decay,0.3,config
    ```
    => LRN017 info confidence=low cause=finetune_settings causal=context
Not this:
    ```facts key,value,family
    adapter,lora,config
    learning_rate,0.0002,config
    weight_decay,0.01,config
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics.analyses.learning.lr_config import Said, adapter_of, configured
from forensics.analyses.learning.lr_schedule import schedule_of
from forensics.analyses.learning.objective import reinforced
from forensics.case.curves.loss import curves
from forensics.knowledge.ranges import range_of
from forensics.rules.kit import Evidence, Finding, Findings, Run, fact_evidence, metric_evidence, number, proof, rule


@dataclass(frozen=True, slots=True)
class Usual:
    """Usual ranges of adapter training, from the practice of common recipes."""

    lr_low: float = range_of("adapter_lr").lo
    lr_high: float = range_of("adapter_lr").hi
    decay: float = range_of("adapter_weight_decay").hi
    loss_low: float = range_of("adapter_loss").lo
    loss_high: float = range_of("adapter_loss").hi
    records: int = 20


@rule(
    "learning",
    needs=("metrics", "facts"),
    config=Usual,
    severity="info",
    confidence="low",
    cause="finetune_settings",
    causal="context",
)
def finetune_settings(run: Run, cfg: Usual) -> Findings:
    """Collect what is unusual into one note."""
    adapter = adapter_of(run)
    if adapter is None or reinforced(run):
        return
    said = [*_rate(run, cfg), *_decay(run, cfg), *_level(run, cfg)]
    if said:
        yield _finding(adapter, said)


def _rate(run: Run, cfg: Usual) -> Iterator[tuple[str, Evidence]]:
    logged = [schedule_of(c) for c in curves(run, "lr") if len(c) >= cfg.records]
    if logged:
        best = max(logged, key=lambda s: s.peak)
        rate, evidence = best.peak, metric_evidence(best.curve.row(best.top))
    else:
        said = configured(run, "lr")
        if said is None or said.number is None:
            return
        rate, evidence = said.number, fact_evidence(said.row)
    if 0 < rate < cfg.lr_low:
        yield f"a peak learning rate of {number(rate)} is low", evidence
    if rate > cfg.lr_high:
        yield f"a peak learning rate of {number(rate)} is high", evidence


def _decay(run: Run, cfg: Usual) -> Iterator[tuple[str, Evidence]]:
    said = configured(run, "weight_decay")
    if said is not None and said.number is not None and said.number > cfg.decay:
        yield f"a weight decay of {said.text} can suppress an adapter", fact_evidence(said.row)


def _level(run: Run, cfg: Usual) -> Iterator[tuple[str, Evidence]]:
    long = max(curves(run, "loss"), key=len, default=None)
    if long is None or len(long) < cfg.records or float(long.values.min()) <= 0:
        return
    level = float(np.median(long.values[-max(5, len(long) // 10) :]))
    if level < cfg.loss_low:
        yield f"a last loss of {number(level)} means that the data is learned by heart", metric_evidence(long.row(-1))
    if level > cfg.loss_high:
        yield f"a last loss of {number(level)} is high for a pretrained model", metric_evidence(long.row(-1))


def _finding(adapter: Said, said: list[tuple[str, Evidence]]) -> Finding:
    return finetune_settings.finding(
        "; ".join(words for words, _ in said),
        f"the configuration says that an adapter is trained ({adapter.row['key']} = {adapter.text})",
        proof(*(evidence for _, evidence in said), fact_evidence(adapter.row)),
    )
