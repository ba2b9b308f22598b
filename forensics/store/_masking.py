"""Secrets taken out of rows on their way into the store, whatever the ingester: no table ever holds one.

Searches every column of text but those of `OURS`: they hold words of this program or the name of a file.
"""

from __future__ import annotations

from functools import cache

import polars as pl

from forensics.formats.rows.secrets import HIDDEN, masked, without_forms
from forensics.io.secrets import bare_patterns, needles
from forensics.io.tolerant_json import dumps
from forensics.store.schema import TABLES

#: Columns that hold no text of the run. A file's name is its identity: tables are joined and files opened by it, and
#: only what is shown of it is redacted.
OURS = frozenset({"source", "base_source", "cause_source", "code", "family", "kind", "level", "value_class"})
#: Below this a search for each literal costs less than building the automaton for all (0.5 ms for 260 of them).
_FEW_BYTES = 16_384
#: Of a column whose first values repeat, as names of metrics do, each value is looked at once.
_SAMPLE_ROWS = 256


def without_secrets(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Replace the secrets in rows; one look at all of them suffices where none holds any."""
    columns = texts_of(table)
    if hidden := _hidden([frame[name] for name in columns]):
        every = (frame[name] for name in columns)
        frame = frame.with_columns(column.cast(pl.String).replace(hidden).cast(column.dtype) for column in every)
    return _facts(frame) if table == "facts" else frame


@cache
def texts_of(table: str) -> tuple[str, ...]:
    """Name the columns of a table that may contain text of the run."""
    kinds = (pl.String, pl.Categorical)
    return tuple(name for name, dtype in TABLES[table].items() if isinstance(dtype, kinds) and name not in OURS)


def _hidden(columns: list[pl.Series]) -> dict[str, str]:
    """Texts that hold a secret, each with what replaces it."""
    filled = [column for column in columns if column.null_count() < len(column)]
    if not filled:
        return {}
    pool = pl.concat([_distinct(column).cast(pl.String).alias("") for column in filled])
    # one search through one text: of 120,000 short ones each its own costs three times as much
    if not _announced(pool.str.join("\n"))[0]:
        return {}
    suspects = pool.filter(_announced(pool)).unique()
    return {text: safe for text in suspects if (safe := without_forms(text)) != text}


def _distinct(column: pl.Series) -> pl.Series:
    sample = column.head(_SAMPLE_ROWS)
    return column.unique() if len(sample) == _SAMPLE_ROWS and 2 * sample.n_unique() < _SAMPLE_ROWS else column


def _announced(texts: pl.Series) -> pl.Series:
    """Flag texts with a literal that announces a secret, or with an unannounced secret; null for a null."""
    found = texts.alias("text").to_frame().select(_bare()).to_series()
    if len(texts) == 1 and texts.str.len_bytes().sum() < _FEW_BYTES:
        lowered = str(texts[0]).lower()
        return found | any(needle in lowered for needle in needles())
    return found | texts.str.contains_any(list(needles()), ascii_case_insensitive=True)


@cache
def _bare() -> pl.Expr:
    """Any of the patterns in one query: a query for each costs more than small texts do, one pattern of all thrice."""
    return pl.any_horizontal(pl.col("text").str.contains(pattern) for pattern in bare_patterns())


def _facts(frame: pl.DataFrame) -> pl.DataFrame:
    """Hide by key, where an ingester did not."""
    texts = frame["value"].fill_null("null").to_list()
    shown = [_value(key, text) for key, text in zip(frame["key"].to_list(), texts, strict=True)]
    return frame.with_columns(value=pl.Series(shown, dtype=pl.String())) if shown != texts else frame


def _value(key: str | None, text: str) -> str:
    if text[:1] != '"':
        # a number or a list: of these only the name tells
        return text if text in ("null", "true", "false") or masked(key or "", 0) == 0 else dumps(HIDDEN).decode()
    found = masked(key or "", text[1:-1])
    return dumps(HIDDEN).decode() if found == HIDDEN else text
