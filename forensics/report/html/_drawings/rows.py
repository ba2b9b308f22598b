"""Differences of two runs: facts, then a table that scrolls, then its notes."""

from __future__ import annotations

from forensics.figure import Rows
from forensics.report.html._elements import Markup, definitions, join, tag
from forensics.report.html._figures import Drawing, data_table


def rows(figure: Rows, ident: str) -> Markup:
    del ident
    table = data_table(figure.head, list(figure.rows), figure.title) if figure.rows else ""
    return join(definitions(figure.facts), table)


def notes(figure: Rows) -> Markup:
    return join(tag("p", f"{note}.", class_="note") for note in figure.notes)


DRAWING = Drawing(Rows, rows, notes, place="differences")
