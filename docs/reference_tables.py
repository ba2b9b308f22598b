"""Reference pages that are tables: the tables of the store, formats, dialects, names of metrics, figures."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import groupby

from forensics import registry
from forensics.dialects.spec import Dialect
from forensics.figures.kind import kinds
from forensics.io.tables import table_rows
from forensics.patterns import lazily
from forensics.registry import Ingester
from forensics.report.pages import catalogue
from forensics.report.style import markdown_table
from forensics.store.schema import TABLES, VERSION

Row = tuple[str, ...]
_MARKS = lazily(r"[\\<*_\[\]]")


def cell(text: str) -> str:
    """Give text that stands in one cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: Row, rows: Iterable[Row]) -> Iterator[str]:
    """Give a Markdown table of texts that may hold anything."""
    yield from markdown_table(head, (tuple(map(cell, row)) for row in rows))


def columns() -> dict[str, dict[str, str]]:
    """What each column of each table holds, from `store/columns.tsv`."""
    rows = table_rows("forensics.store", "columns.tsv")
    return {name: {row[1]: row[3] for row in group} for name, group in groupby(rows, key=lambda row: row[0])}


def tables() -> Iterator[str]:
    """Every table of the store with its columns, types and units."""
    yield from ("# Tables and columns", "")
    yield f"Version {VERSION} of the schema. `forensics query RUN` lists the tables of a run with their rows,"
    yield "`forensics ingest RUN --store DIR` keeps them as Parquet. A column that a file does not state is null."
    words = columns()
    for name, types in TABLES.items():
        yield from ("", f"## {name}", "")
        rows = ((f"`{column}`", str(dtype), words[name][column]) for column, dtype in types.items())
        yield from table(("column", "type", "holds"), rows)
    yield ""


def formats() -> Iterator[str]:
    """Every format that is read: its files and the tables it fills."""
    yield from ("# Formats", "")
    yield "Names only choose who is asked first: a reader looks at the content, and declines what is not its own. The"
    yield "table `sources` says what a file was read as, and how much of it."
    for one in registry.load("ingesters").ingesters:
        yield from ("", f"## {one.name}", "", marked(catalogue.sentence(one.doc)), "")
        yield f"- files: {_files(one)}"
        yield f"- gives: {', '.join(f'[`{name}`](tables.md#{name})' for name in one.emits) or 'nothing: it is named'}"
    yield ""


def _files(one: Ingester) -> str:
    names = [*one.sniff.path, *one.sniff.glob]
    if names:
        return " ".join(f"`{name}`" for name in names)
    return "any other text" if one.sniff.fallback else "by content"


def dialects() -> Iterator[str]:
    """Every dialect of text logs, with what is special about it."""
    found: tuple[Dialect, ...] = tuple(registry.load("dialects").dialects)
    yield from ("# Dialects", "")
    yield "Styles of text logs that are known by name. A log of no known style is read all the same where its lines"
    yield "hold `key=value`, `key: value` or JSON."
    yield ""
    yield from table(("dialect", "trainer", "special"), ((f"`{d.name}`", d.title, _special(d)) for d in found))
    for one in found:
        yield from ("", f"## {one.name}", "", marked(one.doc.strip()))
    yield ""


def _special(one: Dialect) -> str:
    known = (
        (one.nan.prints == "number", "prints a number where the loss was NaN"),
        (one.nan.prints == "gap", "leaves the loss out where it was NaN or the update was skipped"),
        (bool(one.nan.skips), f"skips the update where the {one.nan.skips} is NaN"),
        (bool(one.restart), f"starts from a checkpoint with `{one.restart}`"),
    )
    return "; ".join(words for holds, words in known if holds)


def figures() -> Iterator[str]:
    """Every kind of figure that a page draws, in the order in which they stand."""
    yield from ("# Figures", "")
    yield "What the page of `forensics report` draws of a run, in this order; where the run holds nothing of it, it is"
    yield "left out. Which points are drawn, and what marks mean: [Send somebody the whole story](../how-to/report.md)."
    yield ""
    made = [kind.make for kind in kinds()]
    docs = (catalogue.sentence(sys.modules[one.__module__].__doc__ or "") for one in made)
    rows = ((f"`{one.__module__.rsplit('.', 1)[-1]}`", marked(doc)) for one, doc in zip(made, docs, strict=True))
    yield from table(("figure", "shows"), rows)
    yield ""


def metric_names() -> Iterator[str]:
    """Printed names and the canonical name that the table `metrics` gives them."""
    rows = table_rows("forensics.dialects", "names/names.tsv")
    yield from ("# Metric names", "")
    yield "What trainers print, the name that `metrics.name` holds, and the factor that brings the number to the unit"
    yield "in that name. Case does not matter. A prefix as in `train/loss` is left out; one that names a split, as in"
    yield "`val/loss`, makes an `eval_loss`. Any other name is kept as printed, and its number as it is."
    yield ""
    yield from table(("printed", "name", "factor", "where"), ((f"`{a}`", f"`{b}`", c, d) for a, b, c, d in rows))
    yield from ("", "## Names that their numbers explain", "")
    yield "These mean something only where their numbers show it: `bytes`, each has a unit of bytes, behind it (`4MB`)"
    yield "or as the last word of its name (`mem_gb`); `powers`, each is a power of two; `falls`, they become smaller."
    yield ""
    told = table_rows("forensics.dialects", "names/roles.tsv")
    yield from table(("printed", "name", "holds", "where"), ((f"`{a}`", f"`{b}`", c, d) for a, b, c, d in told))
    yield from ("", "Metrics that were read under any other name are listed as `unrecognised` in the coverage.", "")


def marked(text: str) -> str:
    """Give text of a docstring as Markdown: what is not code keeps its `<`, `*`, `_` and brackets as they are."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick without a partner
        parts = [text.replace("`", "\\`")]
    return "`".join(part if index % 2 else _MARKS.sub(r"\\\g<0>", part) for index, part in enumerate(parts))
