"""What an ingester is given to write to: columns, issues, and the account of bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import polars as pl


class Out(Protocol):
    """The sink of one source; `source` is filled in, columns that are left out become null."""

    def rows(self, table: str, columns: Mapping[str, Sequence[Any]] | pl.DataFrame) -> None:
        """Add rows to a table of the store, given as columns of equal length.

        Raises `WorkExceeded` when the file asks for more rows than its size allows; the reader lets it pass.
        """
        ...

    def issue(self, code: str, message: str, *, byte: int = 0, line: int | None = None, count: int = 1) -> None:
        """State that something could not be read, and why."""
        ...

    def account(self, *, read_bytes: int = 0, skipped_bytes: int = 0, reason: str = "", records: int = 0) -> None:
        """Add to the account of bytes on disk; at the end read + skipped must equal the size of the file.

        What is never accounted for is counted as skipped with the reason `not accounted for`.
        """
        ...

    def format(self, name: str) -> None:
        """Name the variant that was recognised (for text logs: the dialects)."""
        ...


def write_row(out: Out, table: str, row: Mapping[str, object]) -> None:
    """Add one row to a table of the store."""
    out.rows(table, {name: [cell] for name, cell in row.items()})
