"""The operation, layer or parameter that a debug aid of the run's own names as the first that was not finite."""

from __future__ import annotations

import polars as pl
from msgspec import Struct

from forensics.case.errors.attributes import attributes
from forensics.case.evidence import Row
from forensics.store.run import Run, derived

_OP = r'"op":\s*"([^"]+)"'
_BACKWARD = r"Function '(\w+Backward\d*)' returned nan values"
_NAMED = r"(?i)(?:nan|inf|nan/inf|non-?finite)(?: values?| gradients?)? (?:in|at|for) ([A-Za-z_][\w]*(?:\.[\w]+)+)"
_NAN_SHAPE, _CONTEXT = r'"shape":\s*"nan"', r'"role":\s*"context"'


class Named(Struct, frozen=True):
    """What a line names: the event row, the name, and `frame`, the forward call that anomaly detection prints.

    `says_nan` is whether a line says that a value was not finite: anomaly detection names the forward call of every
    exception of the backward pass, whatever it was.
    """

    row: Row
    name: str
    frame: str
    says_nan: bool


@derived
def named_operation(run: Run) -> Named | None:
    """Give the first operation or module that a line names, by source and line; None where none does."""
    text, attrs = pl.col("text").fill_null(""), pl.col("attrs").fill_null("")
    nan = attrs.str.contains(_NAN_SHAPE) | pl.col("code").str.ends_with(".nan") | (pl.col("code") == "traceback")
    named = pl.coalesce(attrs.str.extract(_OP), *(text.str.extract(p) for p in (_BACKWARD, _NAMED)))
    rows = run.scan("events").filter(nan).with_columns(named=named).sort("source", "line", "seq").collect()
    first = rows.filter(pl.col("named").is_not_null()).head(1)
    if first.is_empty():
        return None
    row = first.row(0, named=True)
    calls = rows.filter((pl.col("code") == "forward_call") & (pl.col("source") == row["source"]))
    near = calls.sort((pl.col("line") - (row["line"] or 0)).abs()).head(1).rows(named=True)
    own = nan & ~attrs.str.contains(_CONTEXT) & (pl.col("code") != "traceback")
    says_nan = rows.filter(own | text.str.contains(_BACKWARD) | text.str.contains(_NAMED)).height > 0
    return Named(row, str(row["named"]), attributes(near[0]["attrs"]).get("frame", "") if near else "", says_nan)
