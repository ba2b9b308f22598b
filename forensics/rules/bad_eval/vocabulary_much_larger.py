"""EVL002 vocabulary-much-larger: the model has far more embeddings than its tokenizer has tokens.

What it detects: a vocabulary size that no padding of the tokenizer's size explains.

Why it matters: the weights were most likely trained with another tokenizer; the loss looks sensible and texts do not.

How it decides: all settings agree on one vocabulary size, all tokenizer files on the number of tokens, and the size is
more than `factor` times that number and more than `padding` above it.

What else looks like this: rows reserved for tokens to come; a model of several kinds of input, whose pictures or sounds
have ids of their own.

What to do next: take the tokenizer with which the model was trained; decode a line of the training data with it.

References: Megatron-LM pads to a multiple of 128 times the tensor-parallel size, which is at most a few thousand rows.

Example:
    ```facts source,line,key,value,family
    config.json,9,vocab_size,96000,config
    tokenizer.json,,tokenizer.n_tokens,32002,tokenizer
    ```
    => EVL002 warning confidence=low cause=tokenizer_mismatch embeddings=96000 tokens=32002
Not this:
    ```facts source,line,key,value,family
    config.json,9,vocab_size,34816,config
    tokenizer.json,,tokenizer.n_tokens,32002,tokenizer
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.evals.vocabulary import embedding_rows, token_ids
from forensics.rules.kit import Findings, Run, fact_evidence, proof, rule


@dataclass(frozen=True, slots=True)
class MuchLarger:
    """Thresholds of EVL002: no padding or reserve of a known model reaches both."""

    factor: float = 1.5
    padding: int = 8192


@rule("bad_eval", needs=("facts",), config=MuchLarger, severity="warning", confidence="low", cause="tokenizer_mismatch")
def vocabulary_much_larger(run: Run, cfg: MuchLarger) -> Findings:
    """Compare the number of tokens of the tokenizer with the vocabulary size of the model."""
    rows, tokens = embedding_rows(run), token_ids(run, "n_tokens")
    if rows is None or tokens is None:
        return
    if rows.value <= cfg.factor * tokens.value or rows.value - tokens.value <= cfg.padding:
        return
    yield vocabulary_much_larger.finding(
        f"the embedding table has {rows.value} rows but the tokenizer only {tokens.value} tokens",
        "no padding explains so many rows",
        proof(fact_evidence(rows.row), fact_evidence(tokens.row)),
        numbers={"embeddings": rows.value, "tokens": tokens.value},
        next=("take the tokenizer with which the model was trained",),
    )
