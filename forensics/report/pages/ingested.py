"""The contents of a store after `forensics ingest`: files, tables, rows, losses."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from forensics.analyses.coverage import coverage_of
from forensics.io.safe_text import for_markdown, printable
from forensics.model import FileStatus
from forensics.report import phrases as say
from forensics.report._layout import whole
from forensics.report._losses import field, words
from forensics.report.json_v1 import encoded
from forensics.report.payload import Accounted, headed, read_payload
from forensics.report.style import PLAIN, Style, markdown_table
from forensics.store.gather import issues_of
from forensics.store.run import Run
from forensics.store.schema import TABLES

_FILES_SHOWN = 20


class Summary(Accounted, frozen=True):
    """Rows per table, and whether anything in them says something about a run."""

    run: str
    place: str
    rows: dict[str, int]
    recognised: bool


def summary_of(run: Run, place: str) -> Summary:
    """Count the files, tables and rows of `run`."""
    rows = {table: int(run.scan(table).select(pl.len()).collect().item()) for table in TABLES}
    telling = pl.col("attrs").str.json_path_match("$.role").fill_null("") != "context"
    told = int(run.scan("events").select(telling.sum()).collect().item())
    known = told + sum(count for table, count in rows.items() if table not in {"sources", "issues", "events"})
    return Summary(run.name, place, rows, known > 0, coverage=coverage_of(run), issues=issues_of(run))


def render(summary: Summary, form: str, style: Style = PLAIN) -> Iterator[str]:
    """Write the summary as text, JSON or Markdown."""
    if form == "json":
        told = {"run": summary.run, "store": summary.place, "tables": summary.rows}
        yield encoded(headed("forensics.ingest/1", told | read_payload(summary.coverage, summary.issues)))
    elif form == "markdown":
        if said := words(summary.coverage):
            yield from (f"**Lost:** {for_markdown(said)}", "")
        yield from markdown_table(("table", "rows"), ((table, str(count)) for table, count in summary.rows.items()))
        yield from ("", f"store: {for_markdown(summary.place)}")
    else:
        yield from _text(summary, style)


def _text(summary: Summary, style: Style) -> Iterator[str]:
    yield from field(words(summary.coverage), style)
    files = summary.coverage.files
    for file in style.first(files, _FILES_SHOWN):
        what = file.format or file.ingester or file.reason or "not recognised"
        tail = f": {file.reason}" if file.status is FileStatus.PARTIAL and file.reason else ""
        counts = f"{file.read_bytes:,} of {file.size_bytes:,} bytes, {say.plural(file.records, 'record')}"
        yield f"{file.status.value:<8} {printable(file.source)}  {printable(what)} ({counts}){printable(tail)}"
    if len(files) > _FILES_SHOWN and not style.verbose:
        yield f"... and {say.plural(len(files) - _FILES_SHOWN, 'more file')}: -v shows them"
    filled = ", ".join(f"{table} {count:,}" for table, count in summary.rows.items() if count)
    yield from style.field("tables", filled or "none")
    if said := say.unrecognised(summary.coverage):
        yield from style.field("unknown", printable(said))
    if summary.issues:
        first = summary.issues[0]
        count = say.plural(sum(i.count for i in summary.issues), "issue")
        yield from style.field("issues", printable(f"{count}, first: {first.source}: {first.message}"))
    yield whole("store", summary.place, style)
