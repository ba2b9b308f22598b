"""Key-value tails: `k=v | k=v`, `k: v`, `'k': v` … to (row, key, value)."""

from __future__ import annotations

import polars as pl

from forensics.dialects import _numbers
from forensics.dialects.spec import TAILS


def read(kind: str, tails: pl.Series) -> pl.DataFrame:
    """All pairs of all tails: columns row (index into `tails`), key, value (no number: left out); in printed order."""
    rows = tails.is_not_null().arg_true()
    whole = TAILS[kind]
    found = pl.DataFrame({"row": rows.cast(pl.Int64), "pair": tails.gather(rows).str.extract_all(whole)})
    found = found.explode("pair").drop_nulls()
    pairs = found["pair"].str.extract_groups(whole).struct.unnest()
    return pl.DataFrame(
        {"row": found["row"], "key": pairs["key"].str.strip_chars(), "value": _numbers.floats(pairs["value"])}
    )
