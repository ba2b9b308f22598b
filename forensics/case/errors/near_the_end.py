"""What the place of an error says: an exception's line at a log's end, a cancelled step after a failed task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from forensics.store.run import Run

#: A log's last exception may be followed by the rest of its message, and by a launcher's closing words.
_CLOSING_LINES = 6
#: `srun` ends the step within so many lines of its own words about the task that failed.
_STEP_LINES = 60
#: Ends of a task that the end of its step explains.
_SENT = ("Terminated", "Killed", "Hangup", "User defined signal")
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


def step_failed_before(quote: str, at: int, exits: Sequence[tuple[int, str]]) -> bool:
    """Whether a cancelled step only follows a task of its own that failed: `exits` are the places and words of srun."""
    if "*** STEP " not in quote:
        return False
    return any(0 < at - place <= _STEP_LINES and not any(word in said for word in _SENT) for place, said in exits)
