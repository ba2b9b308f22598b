"""LRN016 bad-start: the very first loss or gradient norm is out of range for a fresh model.

What it detects: a first loss far above ln(vocabulary), or a first gradient norm that is huge or tiny.

Why it matters: a fresh language model answers at random and pays ln(vocabulary). More means that the logits are
too large from the start; a tiny gradient means that nothing will be learned.

How it decides: within the first `steps` steps the loss is above `above` times ln(V), with V from the configuration; or
the gradient norm is outside `norm_low` to `norm_high`. These depend on the model, so it is a note. A loss that later
falls below ln(V) is no sum over tokens: it is a warning.

What else looks like this: a loss that is summed over tokens; a gradient norm before unscaling.

What to do next: check initialisation, normalisation layers and the reduction of the loss.

References: Karpathy 2019, "A Recipe for Training Neural Networks" (verify the loss at the start); Glorot and Bengio
2010.

Example:
    ```metrics
    step: 1 2 3
    loss: 412.5 97.25 31.5
    ```
    ```facts key,value,family
    vocab_size,32768,config
    ```
    => LRN016 info confidence=low step=1 cause=bad_initialisation causal=context value=412.5
Not this:
    ```metrics
    step: 1 2 3
    loss: 10.5 10.1 9.7
    ```
    ```facts key,value,family
    vocab_size,32768,config
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from forensics.analyses.learning.lr_config import configured
from forensics.analyses.learning.objective import reinforced
from forensics.case.curves.loss import Curve, curves
from forensics.knowledge.ranges import range_of
from forensics.rules.kit import Evidence, Finding, Findings, Run, at_step, fact_evidence, number, onset_at, proof, rule


@dataclass(frozen=True, slots=True)
class Start:
    """Thresholds of LRN016."""

    steps: int = 10
    above: float = 1.5
    norm_low: float = range_of("first_grad_norm").lo
    norm_high: float = range_of("first_grad_norm").hi


@rule(
    "learning",
    needs=("metrics", "facts"),
    config=Start,
    severity="info",
    confidence="low",
    cause="bad_initialisation",
    causal="context",
)
def bad_start(run: Run, cfg: Start) -> Findings:
    """Look at the first record of the loss and of the gradient norm."""
    if reinforced(run):
        return
    vocab = configured(run, "vocabulary")
    if vocab is not None and vocab.number is not None and vocab.number > 1:
        usual = log(vocab.number)
        for curve in _fresh(run, "loss", cfg)[:1]:
            if float(curve.values[0]) > cfg.above * usual:
                because = f"a fresh model pays ln({vocab.number:.0f}) = {number(usual)}"
                mean = float(curve.values[len(curve) // 2 :].min()) < usual
                yield _finding(curve, because, (fact_evidence(vocab.row),), sure=mean)
    for curve in _fresh(run, "grad_norm", cfg)[:1]:
        if curve.values[0] > 0 and not cfg.norm_low <= float(curve.values[0]) <= cfg.norm_high:
            yield _finding(curve, f"most models start between {cfg.norm_low:g} and {cfg.norm_high:g}", (), sure=False)


def _fresh(run: Run, name: str, cfg: Start) -> list[Curve]:
    """Give the curves that begin with the run."""
    return [c for c in curves(run, name) if (at := c.step(0)) is not None and at <= cfg.steps and c.attempt == 0]


def _finding(curve: Curve, because: str, more: tuple[Evidence, ...], *, sure: bool) -> Finding:
    row = curve.row(0)
    return bad_start.finding(
        f"{curve.raw_name} starts at {number(row['value'])} at {at_step(row['at'])}",
        because,
        proof(row, *more),
        onset_at(row),
        severity="warning" if sure else "info",
        confidence="medium" if sure else "low",
        causal="root" if sure else "context",
        numbers={"value": row["value"]},
    )
