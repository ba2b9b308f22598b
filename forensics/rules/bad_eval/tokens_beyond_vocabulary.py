"""EVL001 tokens-beyond-vocabulary: the tokenizer gives ids for which the model has no embedding.

What it detects: a tokenizer whose highest id is not below the vocabulary size of the model's settings.

Why it matters: such an id fails on the device, or reads another token's row; a wrong tokenizer beside the weights
makes a sensible loss and senseless text.

How it decides: all settings agree on one vocabulary size (the padded one, where it is stated) and all tokenizer files
on their highest id. Base tokens beyond the size are a warning; added tokens alone, which may never be used, are a
note.

What else looks like this: tokens that were added and never used; settings written before the embedding was resized.

What to do next: compare the rows of the embedding in the weights with the tokenizer; resize, or take the right one.

References: Hugging Face, `PreTrainedModel.resize_token_embeddings`.

Example:
    ```facts source,line,key,value,family
    config.json,9,vocab_size,8000,config
    tokenizer.json,,tokenizer.max_base_id,9599,tokenizer
    tokenizer.json,,tokenizer.max_id,9601,tokenizer
    ```
    => EVL001 warning confidence=medium cause=tokenizer_mismatch embeddings=8000 highest_id=9601
Example: only added tokens
    ```facts source,line,key,value,family
    config.json,9,vocab_size,8000,config
    tokenizer.json,,tokenizer.max_base_id,7999,tokenizer
    tokenizer.json,,tokenizer.max_id,8000,tokenizer
    ```
    => EVL001 info confidence=medium cause=added_tokens causal=context embeddings=8000 highest_id=8000
Not this:
    ```facts source,line,key,value,family
    config.json,9,vocab_size,8064,config
    tokenizer.json,,tokenizer.max_base_id,7999,tokenizer
    tokenizer.json,,tokenizer.max_id,8001,tokenizer
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.evals.vocabulary import embedding_rows, token_ids
from forensics.rules.kit import Findings, Run, fact_evidence, proof, rule


@rule("bad_eval", needs=("facts",), confidence="medium")
def tokens_beyond_vocabulary(run: Run) -> Findings:
    """Compare the highest id of the tokenizer with the vocabulary size of the model."""
    rows = embedding_rows(run)
    base, every = token_ids(run, "max_base_id"), token_ids(run, "max_id")
    highest = every or base
    if rows is None or highest is None or highest.value < rows.value:
        return
    is_base = base is not None and base.value >= rows.value
    yield tokens_beyond_vocabulary.finding(
        f"the tokenizer gives ids up to {highest.value}, the model has {rows.value} embeddings",
        "all settings agree on the size and all tokenizer files on the highest id"
        if is_base
        else "only added tokens are beyond the size",
        proof(fact_evidence(rows.row), fact_evidence(highest.row)),
        severity="warning" if is_base else "info",
        cause="tokenizer_mismatch" if is_base else "added_tokens",
        causal="root" if is_base else "context",
        numbers={"embeddings": rows.value, "highest_id": highest.value},
        next=("compare the rows of the embedding in the weights with the tokenizer",),
    )
