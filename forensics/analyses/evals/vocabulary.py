"""The vocabulary as a model's settings and a tokenizer's files give it: rows of the embedding, ids of the tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
from msgspec import Struct

from forensics.case.settings import keyed
from forensics.store.run import Run, derived

#: No vocabulary is as large; what is larger, or infinite, is damage.
_MOST = 1 << 40
#: Keys of all that is asked for here.
_TOLD = r"(?i)vocab|^tokenizer\.|\.rows$"
_ROWS = r"(?i)(?:^|[./]){}(?:[./]value)?$"


class Stated(Struct, frozen=True):
    """A whole number that all files agree on, and a row of `facts` that states it."""

    value: int
    row: Mapping[str, Any]


def embedding_rows(run: Run) -> Stated | None:
    """Rows of the embedding: as the weights have them, else as stated, padded or plain; None where files disagree."""
    weights = weight_rows(run)
    if weights is not None:
        return weights
    for name in ("padded_vocab_size", "(?:vocab_size|n_vocab)"):
        found = _agreed(run, pl.col("key").str.contains(_ROWS.format(name)) & (pl.col("family") != "tokenizer"))
        if found != "nothing":
            return found if isinstance(found, Stated) else None
    return None


def weight_rows(run: Run) -> Stated | None:
    """Rows of the embeddings in the weights themselves; None where there are none, or they disagree."""
    found = _agreed(run, (pl.col("family") == "weights") & pl.col("key").str.contains(r"\.rows$"))
    return found if isinstance(found, Stated) else None


def configured_rows(run: Run, folder: str) -> Stated | None:
    """The vocabulary size that the model's `config.json` of a folder states."""
    path = f"{folder}/config.json" if folder else "config.json"
    found = _agreed(run, (pl.col("source") == path) & pl.col("key").str.contains(r"^(?:text_config\.)?vocab_size$"))
    return found if isinstance(found, Stated) else None


def token_ids(run: Run, which: str) -> Stated | None:
    """A number of a tokenizer's files: `max_id`, `max_base_id`, `n_tokens`; None where files disagree or lack it."""
    found = _agreed(run, pl.col("key") == f"tokenizer.{which}")
    return found if isinstance(found, Stated) else None


def special_ids(run: Run, token: str) -> frozenset[int]:
    """Ids under which a tokenizer's files list a special token."""
    rows = run.scan("facts").filter(pl.col("key").str.starts_with("tokenizer.special.")).collect()
    wanted = rows.filter(pl.col("value").str.strip_chars('"') == token)["key"].to_list()
    return frozenset(int(key.rsplit(".", 1)[-1]) for key in wanted if key.rsplit(".", 1)[-1].isdigit())


def numbers_under(run: Run, key: str, family: str | None = None) -> list[tuple[int, Mapping[str, Any]]]:
    """Whole numbers under a key, alone or in a list, each with its row."""
    rows = keyed(run, rf"^{key}(?:\.\d+)?$").collect()
    if family is not None:
        rows = rows.filter(pl.col("family") == family)
    if rows.is_empty():
        return []
    found = rows.with_columns(number=pl.col("value").cast(pl.Int64, strict=False)).drop_nulls("number")
    return [(row["number"], row) for row in found.iter_rows(named=True)]


@derived
def _counts(run: Run) -> pl.DataFrame:
    """Facts of a vocabulary, with the `number` that each states."""
    value = pl.col("value").fill_null("").str.strip_chars("\"' ").cast(pl.Float64, strict=False)
    rows = keyed(run, _TOLD).with_columns(number=value)
    return rows.filter((pl.col("number") > 0) & (pl.col("number") < _MOST)).collect()


def _agreed(run: Run, which: pl.Expr) -> Stated | str | None:
    """The number of all rows; `nothing` where there is no row, None where they differ."""
    rows = _counts(run)
    rows = rows.filter(which) if rows.height else rows
    if rows.height == 0:
        return "nothing"
    if rows["number"].n_unique() != 1:
        return None
    return Stated(int(rows["number"][0]), rows.row(0, named=True))
