"""EVL005 embedding-unlike-config: the weights have another number of embeddings than the settings beside them say.

What it detects: a `config.json` whose vocabulary size is not the number of rows of the embedding in the weights of the
same folder.

Why it matters: loading it fails, or fills the missing rows with noise; then every text that uses them is senseless
while the loss of the run was sensible.

How it decides: the header of the safetensors files gives the rows of each embedding, all alike, and the `config.json`
in the same folder gives another size. More rows than stated are a note, as padded rows are never used.

What else looks like this: an embedding that was resized or padded after the settings were written.

What to do next: write settings and weights with one call (`save_pretrained`) of one model, and load without ignoring
mismatched sizes.

References: safetensors, format of the header; Hugging Face, `ignore_mismatched_sizes`.

Example:
    ```facts source,line,key,value,family
    out/config.json,9,vocab_size,8064,config
    out/model.safetensors,,weights.model.embed_tokens.weight.rows,8000,weights
    ```
    => EVL005 warning confidence=high cause=embedding_mismatch embeddings=8000 stated=8064
Example: rows that are never used
    ```facts source,line,key,value,family
    out/config.json,9,vocab_size,8000,config
    out/model.safetensors,,weights.model.embed_tokens.weight.rows,8064,weights
    ```
    => EVL005 info confidence=high cause=embedding_padded causal=context embeddings=8064 stated=8000
Not this:
    ```facts source,line,key,value,family
    out/config.json,9,vocab_size,8064,config
    out/model.safetensors,,weights.model.embed_tokens.weight.rows,8064,weights
    ```
    => nothing
"""

from __future__ import annotations

from forensics.analyses.evals.vocabulary import configured_rows, weight_rows
from forensics.rules.kit import Findings, Run, fact_evidence, proof, rule


@rule("bad_eval", needs=("facts",), confidence="high")
def embedding_unlike_config(run: Run) -> Findings:
    """Compare the rows of the embedding with the size that the settings beside it state."""
    rows = weight_rows(run)
    if rows is None:
        return
    stated = configured_rows(run, str(rows.row["source"]).rpartition("/")[0])
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
