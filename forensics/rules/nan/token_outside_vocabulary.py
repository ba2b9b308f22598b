"""NAN017 token-outside-vocabulary: a batch holds a token that the model has no embedding for.

What it detects: a logged highest or lowest token id of a batch that is not within the vocabulary.

Why it matters: such an id reads memory of nobody, fails on the device, or indexes another row: the loss becomes NaN or
the run learns from damage. The batch is wrong, and no setting of the optimizer mends it.

How it decides: exactly. The highest id is at or above the vocabulary size that the settings state, or the lowest is
below zero (an id of -100 marks labels that are masked, and is no token). An error where the run is not finite from
then on, else a warning.

What else looks like this: a vocabulary that was resized after the settings were written.

What to do next: print that batch; compare the length of the tokenizer with the rows of the embedding.

References: Hugging Face, `PreTrainedModel.resize_token_embeddings`.

Example:
    ```metrics step,name,value
    1,max_token_id,31990
    2,max_token_id,32007
    3,max_token_id,31995
    ```
    ```facts key,value,family
    vocab_size,32000,config
    ```
    => NAN017 warning confidence=high step=2 cause=token_outside_vocabulary id=32007 vocabulary=32000
Not this:
    ```metrics step,name,value
    1,max_token_id,31990
    2,max_token_id,31999
    1,min_token_id,0
    2,min_token_id,-100
    ```
    ```facts key,value,family
    vocab_size,32000,config
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.nan.onset import nan_onset
from forensics.analyses.nan.series import Status
from forensics.analyses.nan.tokens import tokens_outside
from forensics.rules.kit import Findings, Run, Severity, at_step, fact_evidence, metric_evidence, onset_at, proof, rule


@rule("nan", needs=("metrics", "facts", "events", "checkpoints"), confidence="high", cause="token_outside_vocabulary")
def token_outside_vocabulary(run: Run) -> Findings:
    """Find the first batch whose token ids leave the vocabulary."""
    found = tokens_outside(run)
    if found is None:
        return
    rows, size = found.rows, found.size
    first, lost = rows.row(0, named=True), nan_onset(run)
    failed = lost is not None and lost.status is Status.FAILED
    yield token_outside_vocabulary.finding(
        f"the batch of {at_step(first['at'])} holds token id {first['value']:.0f}, and the vocabulary has {size.value}",
        f"{rows.height} batch{'es' * (rows.height > 1)} with such ids; the embedding has rows 0 to {size.value - 1}",
        proof(metric_evidence(first), fact_evidence(size.row)),
        onset_at(first),
        severity=Severity.ERROR if failed else Severity.WARNING,
        numbers={"id": first["value"], "vocabulary": size.value},
    )
