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
    names = (pl.col("key").str.contains(_ROWS.format(name)) for name in ("padded_vocab_size", "(?:vocab_size|n_vocab)"))
    stated = (_stating(run, name & (pl.col("family") != "tokenizer")) for name in names)
    return next((_agreed(rows) for rows in stated if rows.height), None)


def weight_rows(run: Run) -> Stated | None:
    """Rows of the embeddings in the weights themselves; None where there are none, or they disagree."""
    return _agreed(_stating(run, (pl.col("family") == "weights") & pl.col("key").str.contains(r"\.rows$")))


def configured_rows(run: Run, folder: str) -> Stated | None:
    """The vocabulary size that the model's `config.json` of a folder states."""
    path = f"{folder}/config.json" if folder else "config.json"
    size = pl.col("key").str.contains(r"^(?:text_config\.)?vocab_size$")
    return _agreed(_stating(run, (pl.col("source") == path) & size))


def token_ids(run: Run, which: str) -> Stated | None:
    """A number of a tokenizer's files: `max_id`, `max_base_id`, `n_tokens`; None where files disagree or lack it."""
    return _agreed(_stating(run, pl.col("key") == f"tokenizer.{which}"))


def special_ids(run: Run, token: str) -> frozenset[int]:
    """Ids under which a tokenizer's files list a special token."""
    rows = run.scan("facts").filter(pl.col("key").str.starts_with("tokenizer.special.")).collect()
    wanted = rows.filter(pl.col("value").str.strip_chars('"') == token)["key"].to_list()
    return frozenset(int(key.rsplit(".", 1)[-1]) for key in wanted if key.rsplit(".", 1)[-1].isdigit())


def stop_tokens(run: Run, family: str) -> list[tuple[int, Mapping[str, Any]]]:
    """The tokens at which generation stops by the settings of one family, alone or in a list, each with its row."""
    rows = keyed(run, r"^eos_token_id(?:\.\d+)?$").filter(pl.col("family") == family).collect()
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


def _stating(run: Run, which: pl.Expr) -> pl.DataFrame:
    rows = _counts(run)
    return rows.filter(which) if rows.height else rows


def _agreed(rows: pl.DataFrame) -> Stated | None:
    """The number of all rows; None where they differ, or there is none."""
    return Stated(int(rows["number"][0]), rows.row(0, named=True)) if rows["number"].n_unique() == 1 else None
