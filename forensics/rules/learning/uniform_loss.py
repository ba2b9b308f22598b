"""LRN007 loss-at-uniform: the training loss stays at ln(vocabulary), the cost of answering at random.

What it detects: a language model whose loss begins and ends at the logarithm of its vocabulary size.

Why it matters: this is the loss of a model that has learned nothing at all, not even how frequent its tokens are.

How it decides: in the longest training loss, the level of the last fifth is within `near` of ln(V), and the loss did
not fall. V is the vocabulary of the configuration; where none is known, one of the usual sizes, and then it is only a
warning. With a known vocabulary and `records` records from the start it is an error. Data that is random by design (a
configuration with mock or synthetic data) makes it a note.

What else looks like this: a benchmark on random tokens; the first steps of a run.

What to do next: overfit a single batch. Check that the labels belong to the inputs, that the learning rate is not
zero, and that the parameters are trainable.

References: Shannon 1948; Karpathy 2019, "A Recipe for Training Neural Networks" (verify the loss at the start).

Example:
    ```metrics
    step: 10..200/10
    loss: 10.4*2 10.41 10.39 10.4 10.39 10.38 10.44 10.39 10.4 10.35..10.41/0.02 10.42 10.39 10.38 10.41*2 10.38
    ```
    ```facts key,value,family
    vocab_size,32768,config
    ```
    => LRN007 warning confidence=low step=10 cause=uniform_loss level=10.39 ln_vocab=10.40
Not this: a model that begins there and learns
    ```metrics
    step: 10..200/10
    loss: 10.4 10.3 10.21 10.09 9.998 9.887 9.777 9.741 9.593 9.499 9.352 9.273 9.195 9.108 9.017 8.887 8.782 8.707
        8.607 8.486
    ```
    ```facts key,value,family
    vocab_size,32768,config
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from forensics.analyses.learning.losses import losses
from forensics.analyses.learning.lr_config import Said, configured
from forensics.analyses.learning.objective import improved, reinforced
from forensics.analyses.learning.trend import Trend, from_the_start
from forensics.case.curves.loss import Curve
from forensics.rules.kit import Finding, Findings, Run, fact_evidence, number, onset_at, proof, rule
from forensics.rules.learning.no_decrease import FLAT, is_flat

#: Vocabulary sizes of widely used tokenizers, as their model cards give them.
_USUAL = (30522, 32000, 32064, 49152, 50257, 50304, 65536, 100352, 128256, 151936, 152064, 256000, 262144)


@dataclass(frozen=True, slots=True)
class Uniform:
    """Thresholds of LRN007: how near to ln(V) a level must be, relatively, and from how many records it is an error."""

    near: float = 0.02
    near_guess: float = 0.01
    records: int = 100


@rule("learning", needs=("metrics", "facts"), config=Uniform, cause="uniform_loss")
def uniform_loss(run: Run, cfg: Uniform) -> Findings:
    """Find whether the longest training loss never left ln(vocabulary)."""
    if reinforced(run):
        return
    said = configured(run, "vocabulary")
    size = int(said.number) if said is not None and said.number is not None and said.number > 1 else None
    one = max(losses(run), key=lambda loss: len(loss.curve), default=None)
    if one is None or one.trend is None or one.curve.ends_nonfinite or not is_flat(one.trend, FLAT):
        return
    curve, trend = one.curve, one.trend
    vocab = _nearest(trend.last, size, cfg)
    if vocab is not None and not improved(run, curve, 1):
        yield _finding(curve, trend, vocab, (said if size else None, configured(run, "mock_data")), cfg)


def _nearest(level: float, size: int | None, cfg: Uniform) -> int | None:
    near = cfg.near if size else cfg.near_guess
    best = min((size,) if size else _USUAL, key=lambda v: abs(log(v) - level))
    return best if abs(log(best) / level - 1) <= near else None


def _finding(curve: Curve, trend: Trend, vocab: int, said: tuple[Said | None, Said | None], cfg: Uniform) -> Finding:
    known, mock = said
    certain = known is not None and trend.records >= cfg.records and from_the_start(curve)
    mocked = mock is not None and mock.text.lower() not in {"false", "0", "no"}
    return uniform_loss.finding(
        f"{curve.raw_name} stays at {number(trend.last)}: ln({vocab}) = {number(log(vocab))} is the cost of chance",
        f"first level {number(trend.first)}, last level {number(trend.last)}, over {trend.records} records",
        proof(curve.row(-1), curve.row(0), *(fact_evidence(s.row) for s in said if s is not None)),
        onset_at(curve.row(0)),
        severity="info" if mocked else "error" if certain else "warning",
        confidence="high" if certain else "low",
        numbers={"level": trend.last, "ln_vocab": log(vocab), "vocab": vocab},
    )
