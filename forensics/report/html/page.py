"""One self-contained page for people: no script, nothing loaded, every text of an input escaped.

The policy in its head allows only the one style sheet, by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence

from forensics.figure import Chart
from forensics.figures import shrunk
from forensics.model import Report
from forensics.registry import renderer
from forensics.report import _many
from forensics.report import phrases as say
from forensics.report.html._axes import around
from forensics.report.html._css import CSS
from forensics.report.html._elements import Markup, join, script, some, style_sheet, tag
from forensics.report.html._figures import data_table
from forensics.report.html._section import Shown, laid_out
from forensics.report.html._words import outcome
from forensics.report.payload import tool

#: Runs shown whole on a page of several; the others have only their verdict and its evidence.
MOST_WHOLE = 12
_SOME = (
    f"{MOST_WHOLE} runs are shown whole, at least one of each failure where there is room; of the others the verdict "
    "and its evidence are below, and forensics report RUN draws them."
)
_WIDE, _HIGH, _EDGE = 160.0, 44.0, 3.0
_MOST_CURVES, _MOST_POINTS = 3, 60


def render_many(reports: Sequence[Report], *, live: bool = False) -> Iterator[str]:
    """Write one page over several runs: those that failed the same way together, then each run.

    `live` adds scripts that make charts zoomable; nothing is loaded from anywhere then, either.
    """
    if len(reports) == 1:
        yield from _page(reports[0].run, _one(reports[0], "", "h1"), _scripts([("", reports[0])]) if live else ())
        return
    every = [(f"run{n}-", n, report) for n, report in enumerate(reports, 1)]
    whole = with_room(reports)
    scripts = _scripts([(prefix, report) for prefix, n, report in every if n in whole]) if live else ()
    pages = [_one(report, prefix, "h2", brief=n not in whole) for prefix, n, report in every]
    title = f"{len(reports)} runs"
    yield from _page(title, join(tag("h1", _many.tally(reports)), overview(reports, pages)), scripts)


@renderer("html", many=render_many, drawn=True)
def render(report: Report) -> Iterator[str]:
    """Write the page of one run."""
    yield from _page(report.run, _one(report, "", "h1"))


def _scripts(every: Sequence[tuple[str, Report]]) -> tuple[str, ...]:
    from forensics.report.html._live import scripts  # noqa: PLC0415 - it loads plotly

    return scripts([(f"{prefix}{figure.key}", figure) for prefix, report in every for figure in report.figures])


def _one(report: Report, prefix: str, level: str, *, brief: bool = False) -> Markup:
    return laid_out(Shown(report, prefix, level), brief=brief)


def _page(title: str, body: Markup, scripts: tuple[str, ...] = ()) -> Iterator[str]:
    yield from ("<!doctype html>", '<html lang="en">')
    yield tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(scripts)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", f"forensics: {title}"),
        style_sheet(CSS),
    )
    said = f"Written by forensics {tool()['version']}. Nothing on this page is loaded from elsewhere."
    skip = tag("a", "Skip to the verdict", class_="skip", href="#main")
    foot = tag("footer", tag("p", said, class_="soft"))
    yield from (tag("body", skip, tag("main", body, id="main"), foot, *map(script, scripts)), "</html>")


def _policy(scripts: tuple[str, ...]) -> str:
    """Forbid all but our own sheet and scripts, by their hashes; Plotly writes style sheets of its own."""
    sheet = "'unsafe-inline'" if scripts else _hash(CSS)
    live = f"; script-src {' '.join(map(_hash, scripts))}; img-src data: blob:" if scripts else ""
    return f"default-src 'none'; style-src {sheet}{live}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# Several runs on one page: how many of each shape, then one row a run, those that failed the same way together.


def overview(reports: Sequence[Report], pages: Sequence[Markup]) -> Markup:
    """Give the count of each shape, then one row per run, which opens its page of `pages`."""
    shapes = data_table(_many.SHAPE_HEAD, [row.cells for row in _many.by_shape(reports)], "Runs by shape", sized=False)
    note = tag("p", _SOME, class_="note") if len(reports) > MOST_WHOLE else ""
    return join(shapes, [_group(g, pages) for g in _many.groups(reports)], note)


def with_room(reports: Sequence[Report]) -> frozenset[int]:
    """Choose the numbers, from 1, of runs that are shown whole: one of each failure first, as the others look alike."""
    groups = _many.groups(reports)
    turns = max((len(g.places) for g in groups), default=0)
    order = [g.places[turn] for turn in range(turns) for g in groups if turn < len(g.places)]
    return frozenset(place + 1 for place in order[:MOST_WHOLE])


def _group(group: _many.Group, pages: Sequence[Markup]) -> Markup:
    rows = [_row(report, place, pages[place]) for report, place in zip(group.reports, group.places, strict=True)]
    same = len(group.reports) > 1 and group.key != _many.NOTHING
    said = f"{len(group.reports)} runs of the same failure, {group.seen.words}"
    head = tag("p", said, " ", tag("code", group.key), class_="soft") if same else ""
    return tag("section", head, rows, class_="group")


def _row(report: Report, place: int, page: Markup) -> Markup:
    found = report.verdict
    said = some("span", say.onset(found.onset), class_="soft")
    folder, slash, name = report.run.rpartition("/")
    run = tag("span", tag("span", folder + slash, class_="soft"), tag("b", name))
    drawn = [spark(first) for first in Shown(report).deciding[:1] if isinstance(first, Chart)]
    row = tag("summary", outcome(found), run, tag("span", drawn), tag("span", found.headline, said))
    return tag("details", row, tag("div", page), class_="one", id=f"run{place + 1}")


# A chart as a picture the height of two lines, for a row of a table: curves and onset, no words.


def spark(figure: Chart) -> Markup:
    """Draw the first curves of a chart, the culprits' on top; nothing of a chart without a point."""
    curves = sorted(figure.curves[:_MOST_CURVES], key=lambda c: c.culprit)
    thin = [(shrunk(c, _MOST_POINTS), c.culprit) for c in curves if c.x]
    if not thin:
        return join()
    onsets = [m.at for m in figure.marks if m.role == "onset"]
    log = figure.log and all(v > 0 for c, _ in thin for v in c.y)
    x = around([*onsets, *(v for c, _ in thin for v in c.x)], _EDGE, _WIDE - _EDGE, room=0.0)
    y = around((v for c, _ in thin for v in c.y), _HIGH - _EDGE, _EDGE, log=log)
    points = [" ".join(f"{x.at(a):.0f},{y.at(b):.1f}" for a, b in zip(c.x, c.y, strict=True)) for c, _ in thin]
    kinds = ["curve bad" if bad else "curve c0" for _, bad in thin]
    lines = [tag("polyline", class_=kind, points=at) for kind, at in zip(kinds, points, strict=True)]
    marks = [tag("line", class_="mark onset", x1=x.at(v), x2=x.at(v), y1=0, y2=_HIGH) for v in onsets]
    size = f"0 0 {_WIDE:.0f} {_HIGH:.0f}"
    return tag("svg", lines, marks, class_="spark", viewBox=size, aria_hidden="true")
