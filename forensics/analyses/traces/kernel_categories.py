"""The category of a device kernel, by its name: each kernel has exactly one.

The table is data (`kernel_categories.tsv`: category, kind of pattern, pattern, an example, where such names are made).
The row that fits the longest part of a name decides, so that `ncclDevComm` is no product of matrices because it has an
`mm` in it. Copies and sets are rows of their own in a trace; those that are kernels by name are `memory` here.
"""

from __future__ import annotations

import re
from functools import cache

import polars as pl
from msgspec import Struct

from forensics.io.tables import table_rows

OTHER = "other"
#: Rows of the summary that KempnerForge's profiler writes; a product of matrices is all that its first row means.
_KEMPNERFORGE = {"matmul": "MatMul/GEMM", "communication": "Communication (NCCL)", "memory": "Memory ops"}
KEMPNERFORGE = (*_KEMPNERFORGE.values(), "Other kernels")


class Row(Struct, frozen=True):
    """One row of the table; `literal` is in lower case and empty where there is a `regex`."""

    category: str
    literal: str
    regex: re.Pattern[str] | None
    example: str

    def length(self, name: str) -> int:
        """Characters of a name in lower case that the pattern fits, 0 for none."""
        if self.regex is None:
            return len(self.literal) if self.literal in name else 0
        return max((len(found[0]) for found in self.regex.finditer(name)), default=0)


@cache
def table() -> tuple[Row, ...]:
    """The rows: expressions first, then literals, the longest first."""
    rows = [
        Row(category, "", re.compile(pattern), example)
        if kind == "regex"
        else Row(category, pattern.lower(), None, example)
        for category, kind, pattern, example, *_ in table_rows("forensics.analyses.traces", "kernel_categories.tsv")
    ]
    return tuple(sorted(rows, key=lambda row: -len(row.literal) if row.regex is None else -(1 << 30)))


def category(name: str) -> str:
    """Category of one kernel name, one of the table or `other`."""
    lower = name.lower()
    longest, found = 0, OTHER
    for row in table():
        if row.regex is None and len(row.literal) <= longest:
            break
        if (length := row.length(lower)) > longest:
            longest, found = length, row.category
    return found


def categorise(names: pl.Series) -> pl.Series:
    """Category of each name; a name that occurs often is looked up once, and null is `other`."""
    known = names.cast(pl.String).unique(maintain_order=True).drop_nulls()
    of = pl.DataFrame({"name": known, "category": pl.Series([category(name) for name in known], dtype=pl.String)})
    given = pl.DataFrame({"name": names.cast(pl.String)})
    found = given.join(of, on="name", how="left", maintain_order="left")["category"]
    return found.fill_null(OTHER).alias(names.name)


def like_kempnerforge(category: str) -> str:
    """The row of KempnerForge's four to which a category belongs."""
    return _KEMPNERFORGE.get(category, KEMPNERFORGE[-1])
