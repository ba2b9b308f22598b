"""One self-contained page for people: no script, nothing loaded, every text of an input escaped.

The policy in its head forbids everything but the one style sheet, which is named by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence

from forensics.model import Report
from forensics.registry import renderer
from forensics.report import _many
from forensics.report.html._css import CSS
from forensics.report.html._elements import Markup, join, script, style_sheet, tag
from forensics.report.html._fleet import overview, with_room
from forensics.report.html._section import Shown, laid_out
from forensics.report.payload import tool


def render_many(reports: Sequence[Report], *, live: bool = False) -> Iterator[str]:
    """Write one page over several runs: those that failed the same way together, then each run.

    `live` adds scripts that make charts zoomable; nothing is loaded from anywhere then, either.
    """
    if len(reports) == 1:
        yield from _page(reports[0].run, _one(reports[0], "", "h1"), _scripts([("", reports[0])]) if live else ())
        return
    every = [(_prefix(n), n, report) for n, report in enumerate(reports, 1)]
    whole = with_room(reports)
    scripts = _scripts([(prefix, report) for prefix, n, report in every if n in whole]) if live else ()
    pages = [_one(report, prefix, "h2", brief=n not in whole) for prefix, n, report in every]
    title = f"{len(reports)} runs"
    yield from _page(title, join(tag("h1", _many.tally(reports)), overview(reports, pages)), scripts)


@renderer("html", many=render_many, drawn=True)
def render(report: Report) -> Iterator[str]:
    """Write the page of one run."""
    yield from _page(report.run, _one(report, "", "h1"))


def _prefix(number: int) -> str:
    return f"run{number}-"


def _scripts(every: Sequence[tuple[str, Report]]) -> tuple[str, ...]:
    from forensics.report.html._live import scripts  # noqa: PLC0415 - it loads plotly

    return scripts([(f"{prefix}{figure.key}", figure) for prefix, report in every for figure in report.figures])


def _one(report: Report, prefix: str, level: str, *, brief: bool = False) -> Markup:
    return laid_out(Shown(report, prefix, level), brief=brief)


def _page(title: str, body: Markup, scripts: tuple[str, ...] = ()) -> Iterator[str]:
    yield "<!doctype html>"
    yield '<html lang="en">'
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
    yield tag("body", skip, tag("main", body, id="main"), foot, *map(script, scripts))
    yield "</html>"


def _policy(scripts: tuple[str, ...]) -> str:
    """Forbid all but our own sheet and scripts, by their hashes; Plotly writes style sheets of its own."""
    sheet = "'unsafe-inline'" if scripts else _hash(CSS)
    live = f"; script-src {' '.join(map(_hash, scripts))}; img-src data: blob:" if scripts else ""
    return f"default-src 'none'; style-src {sheet}{live}; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
