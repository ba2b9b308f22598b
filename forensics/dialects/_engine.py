"""Text in, tables out: one pass of literals over each block, everything else on the lines that hit."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from forensics.dialects import _lines, _prefix
from forensics.dialects._assemble import Memory, assemble
from forensics.dialects._match import matches
from forensics.dialects.spec import Dialect


def parse_text(dialects: Dialect | Sequence[Dialect], text: bytes | str) -> dict[str, pl.DataFrame]:
    """Read a text held in memory with the given dialects; tables metrics, checkpoints and events, without `source`."""
    many = [dialects] if isinstance(dialects, Dialect) else list(dialects)
    data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    found = _prefix.strip(_lines.segments(data, None)).with_columns(t_ns=pl.lit(None, dtype=pl.Int64))
    tables: dict[str, list[pl.DataFrame]] = {"metrics": [], "checkpoints": [], "events": []}
    for dialect in many:
        for table, frame in assemble(dialect, matches(dialect, found), Memory()).items():
            tables[table].append(frame)
    return {name: pl.concat(frames, how="diagonal") if frames else pl.DataFrame() for name, frames in tables.items()}
