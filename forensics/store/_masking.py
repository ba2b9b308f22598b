"""Secrets taken out of rows on their way into the store, whatever the ingester: no table ever holds one."""

from __future__ import annotations

import polars as pl

from forensics.ingest._secrets import HIDDEN, HINTS, masked, without_forms
from forensics.io.tolerant_json import dumps

#: Columns of free text; the values of `facts` are hidden by their keys, too.
_TEXTS = {"events": ("text", "attrs"), "facts": ("value",), "evals": ("settings", "model")}


def without_secrets(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Give the rows with secrets replaced; most rows hold none, which is seen without looking at them one by one."""
    for column in _TEXTS.get(table, ()):
        suspect = frame[column].str.contains_any(list(HINTS), ascii_case_insensitive=True).fill_null(value=False)
        if suspect.any():
            at = suspect.arg_true()
            hidden = pl.Series(column, [without_forms(text) for text in frame[column].gather(at)], dtype=pl.String())
            frame = frame.with_columns(frame[column].scatter(at, hidden))
    return _facts(frame) if table == "facts" else frame


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
