"""What a store holds after `forensics ingest`: files, tables, rows, losses."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from msgspec import Struct

from forensics.analyses.coverage import coverage_of
from forensics.io.safe_text import for_markdown, printable
from forensics.model import Coverage, FileStatus, Issue
from forensics.report import phrases as say
from forensics.report._losses import field, words
from forensics.report.json_v1 import encoded
from forensics.report.payload import read_payload, tool
from forensics.report.style import LABEL_CHARS, PLAIN, Style
from forensics.store.gather import issues_of
from forensics.store.run import Run
from forensics.store.schema import TABLES

_FILES_SHOWN = 20


class Summary(Struct, frozen=True):
    """Rows per table, the account of the input, and whether anything in it says something about a run."""

    run: str
    place: str
    rows: dict[str, int]
    coverage: Coverage
    issues: tuple[Issue, ...]
    recognised: bool


def summary_of(run: Run, place: str) -> Summary:
    """Count what `run` holds."""
    rows = {table: int(run.scan(table).select(pl.len()).collect().item()) for table in TABLES}
    telling = pl.col("attrs").str.json_path_match("$.role").fill_null("") != "context"
    told = int(run.scan("events").select(telling.sum()).collect().item())
    known = told + sum(count for table, count in rows.items() if table not in {"sources", "issues", "events"})
    return Summary(run.name, place, rows, coverage_of(run), issues_of(run), known > 0)


def render(summary: Summary, form: str, style: Style = PLAIN) -> Iterator[str]:
    """Write the summary as text, JSON or Markdown."""
    if form == "json":
        head = {"schema": "forensics.ingest/1", "tool": tool(), "run": summary.run, "store": summary.place}
        yield encoded({**head, "tables": summary.rows, **read_payload(summary.coverage, summary.issues)})
    elif form == "markdown":
        if said := words(summary.coverage):
            yield f"**Lost:** {for_markdown(said)}"
            yield ""
        yield "| table | rows |"
        yield "|---|---|"
        yield from (f"| {table} | {count} |" for table, count in summary.rows.items())
        yield ""
        yield f"store: {for_markdown(summary.place)}"
    else:
        yield from _text(summary, style)


def _text(summary: Summary, style: Style) -> Iterator[str]:
    yield from field(words(summary.coverage), style)
    files = summary.coverage.files
    for file in files if style.verbose else files[:_FILES_SHOWN]:
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
    yield style.paint(f"{'store':<{LABEL_CHARS}}", "dim") + printable(summary.place)
