"""The core of the page for a cell of a notebook: verdict, evidence, time line and the charts that decide.

It is in a box whose style sheet touches nothing outside of it; there is no script, and nothing is loaded. A notebook
that drops style sheets still shows all of it as text and plain drawings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from forensics.model import Report
from forensics.report import phrases as say
from forensics.report.html._css import scoped
from forensics.report.html._elements import Markup, join, style_sheet, tag
from forensics.report.html._figures import data_table
from forensics.report.html._section import Shown, laid_out
from forensics.report.html._sections.figures import deciding, timeline
from forensics.values import replace

_CLASS = "forensics-report"


def of_report(report: Report) -> str:
    """Give the report as one element."""
    shown = Shown(replace(report, figures=Shown(report).core), f"{_digest(report)}-", "h2")
    left = len(report.figures) - len(shown.report.figures)
    more = (
        f"{say.plural(len(report.findings), 'finding')} and {say.plural(left, 'more figure')} are in the whole page: "
    )
    foot = tag("p", more, tag("code", f"forensics report {report.run} -o report.html"), class_="soft")
    return _box(join(laid_out(shown, brief=True), deciding(shown), timeline(shown), foot))


def of_tables(name: str, counts: Mapping[str, int]) -> str:
    """Give the tables of a run with their rows."""
    rows = [(table, f"{count:,}") for table, count in counts.items()]
    return _box(join(tag("p", "Tables of ", tag("b", name)), data_table(("table", "rows"), rows, "Tables of the run")))


def _box(inside: Markup) -> str:
    return tag("div", style_sheet(scoped(_CLASS)), inside, class_=_CLASS)


def _digest(report: Report) -> str:
    """A name for ids: two reports in one notebook must not share them, and the same report is the same text."""
    said = f"{report.run}|{report.verdict.headline}".encode(errors="backslashreplace")
    return "f" + hashlib.sha256(said).hexdigest()[:8]
