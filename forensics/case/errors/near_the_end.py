"""What the place of an error says: an exception's line at a log's end."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from forensics.store.run import Run

#: A log's last exception may be followed by the rest of its message, and by a launcher's closing words.
_CLOSING_LINES = 6
#: Files in which a tracker's own service logs its own troubles, none of which ends a run.
_OWN_LOGS = r"(?:^|/)logs/debug(?:-internal|-core)?\.log$|(?:^|/)debug-(?:internal|core)\.log$"


def of_trackers_own() -> pl.Expr:
    """Rows of a tracker's own log that carry an exception."""
    return pl.col("source").str.contains(_OWN_LOGS) & pl.col("code").is_in(["traceback", "py-exception-terminal"])


def last_lines(run: Run) -> dict[str, int]:
    """Give the number of each text log's last line."""
    rows = run.scan("events").filter((pl.col("code") == "last_line") & pl.col("line").is_not_null())
    found = rows.group_by("source").agg(pl.col("line").max()).collect()
    return {str(source): int(line) for source, line in found.iter_rows()}


def ends_the_log(source: str, line: int | None, last: Mapping[str, int]) -> bool:
    """Whether a line is among the last of its log."""
    return line is not None and source in last and last[source] - line <= _CLOSING_LINES
