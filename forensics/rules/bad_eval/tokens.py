"""Embeddings, tokenizer and end of text that do not fit each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from forensics.analyses.evals import vocabulary
from forensics.rules.kit import Findings, Run, Struct, fact_evidence, proof, rule


@rule("EVL001 tokens-beyond-vocabulary", "facts", confidence="medium")
def tokens_beyond_vocabulary(run: Run) -> Findings:
    """Compare the highest id of the tokenizer with the vocabulary size of the model."""
    rows = vocabulary.embedding_rows(run)
    base, every = vocabulary.token_ids(run, "max_base_id"), vocabulary.token_ids(run, "max_id")
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


class MuchLarger(Struct, frozen=True):
    """Thresholds of EVL002: no padding or reserve of a known model reaches both."""

    factor: float = 1.5
    padding: int = 8192


@rule("EVL002 vocabulary-much-larger", "facts", severity="warning", confidence="low", cause="tokenizer_mismatch")
def vocabulary_much_larger(run: Run, cfg: MuchLarger) -> Findings:
    """Compare the number of tokens of the tokenizer with the vocabulary size of the model."""
    rows, tokens = vocabulary.embedding_rows(run), vocabulary.token_ids(run, "n_tokens")
    if rows is None or tokens is None or rows.value <= max(cfg.factor * tokens.value, tokens.value + cfg.padding):
        return
    yield vocabulary_much_larger.finding(
        f"the embedding table has {rows.value} rows but the tokenizer only {tokens.value} tokens",
        "no padding explains so many rows",
        proof(fact_evidence(rows.row), fact_evidence(tokens.row)),
        numbers={"embeddings": rows.value, "tokens": tokens.value},
        next=("take the tokenizer with which the model was trained",),
    )


@rule("EVL003 end-token-differs", "facts", severity="warning", confidence="low", cause="end_token")
def end_token_differs(run: Run) -> Findings:
    """Look for the tokenizer's end of text among the ids at which generation stops."""
    stated = _end_token(run)
    stops = vocabulary.stop_tokens(run, "generation") or vocabulary.stop_tokens(run, "config")
    if stated is None or not stops:
        return
    token, row = stated
    ids = vocabulary.special_ids(run, token)
    stop_ids = {number for number, _ in stops}
    if len(ids) != 1 or ids & stop_ids:
        return
    (own,) = ids
    shown = ", ".join(map(str, sorted(stop_ids)))
    yield end_token_differs.finding(
        f"generation stops at id {shown}, the tokenizer ends texts with {own} ({token})",
        "the tokenizer's end of text is not among the ids at which generation stops",
        proof(fact_evidence(stops[0][1]), fact_evidence(row)),
        numbers={"tokenizer": own, "generation": shown},
    )


def _end_token(run: Run) -> tuple[str, Mapping[str, Any]] | None:
    """Give the tokenizer's end of text where all its files agree."""
    rows = run.scan("facts").filter(pl.col("key") == "tokenizer.eos_token").drop_nulls("value").collect()
    rows = rows.with_columns(token=pl.col("value").str.strip_chars('"')).filter(pl.col("token") != "null")
    if rows["token"].n_unique() != 1:
        return None
    return str(rows["token"][0]), rows.row(0, named=True)


@rule("EVL005 embedding-unlike-config", "facts", confidence="high")
def embedding_unlike_config(run: Run) -> Findings:
    """Compare the rows of the embedding with the size that the settings beside it state."""
    rows = vocabulary.weight_rows(run)
    if rows is None:
        return
    stated = vocabulary.configured_rows(run, str(rows.row["source"]).rpartition("/")[0])
    if stated is None or stated.value == rows.value:
        return
    is_short = rows.value < stated.value
    yield embedding_unlike_config.finding(
        f"the weights have {rows.value} embeddings, their settings state {stated.value}",
        "the header of the weights gives the shape of the embedding",
        proof(fact_evidence(rows.row), fact_evidence(stated.row)),
        severity="warning" if is_short else "info",
        cause="embedding_mismatch" if is_short else "embedding_padded",
        causal="root" if is_short else "context",
        numbers={"embeddings": rows.value, "stated": stated.value},
    )
