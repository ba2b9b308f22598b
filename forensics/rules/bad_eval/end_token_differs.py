"""EVL003 end-token-differs: generation stops at another token than the tokenizer ends texts with.

What it detects: an end-of-text id of the generation settings that is not the id of the tokenizer's `eos_token`.

Why it matters: generation does not stop where the model learnt to stop; answers run on until the limit, and scores of
generative tasks fall although the loss is fine.

How it decides: the tokenizer's files give the token and its id, the generation settings (or, without them, the model's)
give the ids at which generation stops, and the one is not among the others.

What else looks like this: a base model whose dialogues end with a token of their own, set by the caller.

What to do next: set `eos_token_id` of the generation settings to the tokenizer's, and evaluate again.

References: Hugging Face, `GenerationConfig.eos_token_id`.

Example:
    ```facts source,line,key,value,family
    generation_config.json,4,eos_token_id,2,generation
    tokenizer_config.json,7,tokenizer.eos_token,</end>,tokenizer
    tokenizer_config.json,,tokenizer.special.9,</end>,tokenizer
    ```
    => EVL003 warning confidence=low cause=end_token tokenizer=9 generation=2
Not this:
    ```facts source,line,key,value,family
    generation_config.json,4,eos_token_id.0,2,generation
    generation_config.json,5,eos_token_id.1,9,generation
    tokenizer_config.json,7,tokenizer.eos_token,</end>,tokenizer
    tokenizer_config.json,,tokenizer.special.9,</end>,tokenizer
    ```
    => nothing
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from forensics.analyses.evals.vocabulary import numbers_under, special_ids
from forensics.rules.kit import Findings, Run, fact_evidence, proof, rule


@rule("bad_eval", needs=("facts",), severity="warning", confidence="low", cause="end_token")
def end_token_differs(run: Run) -> Findings:
    """Look for the tokenizer's end of text among the ids at which generation stops."""
    stated = _end_token(run)
    stops = numbers_under(run, "eos_token_id", "generation") or numbers_under(run, "eos_token_id", "config")
    if stated is None or not stops:
        return
    token, row = stated
    ids = special_ids(run, token)
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
