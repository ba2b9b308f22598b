"""One self-contained page for people: no script, nothing loaded, every text of an input escaped.

The policy in its head forbids everything but the one style sheet, which is named by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from forensics.figure import Lanes
from forensics.model import Report
from forensics.registry import renderer
from forensics.report import _many
from forensics.report._payload import tool
from forensics.report._phrases import onset
from forensics.report.html import _sections
from forensics.report.html._css import CSS
from forensics.report.html._elements import Markup, join, script, style_sheet, tag
from forensics.report.html._figures import figure


def render_many(reports: Sequence[Report], *, live: bool = False) -> Iterator[str]:
    """Write one page over several runs: those that failed the same way together, then each run.

    `live` adds scripts that make charts zoomable; nothing is loaded from anywhere then, either.
    """
    scripts = _scripts(reports) if live else ()
    if len(reports) == 1:
        yield from _page(reports[0].run, _one(reports[0], "", "h1"), scripts)
        return
    every = [(n, replace(r)) for n, r in enumerate(reports, 1)]  # one report given twice is two runs
    body = [tag("h1", f"{len(reports)} runs"), _overview(every)]
    body += [tag("article", _one(r, _prefix(n), "h2"), id=f"run{n}") for n, r in every]
    yield from _page(f"{len(reports)} runs", join(*body), scripts)


@renderer("html", many=render_many, drawn=True)
def render(report: Report) -> Iterator[str]:
    """Write the page of one run."""
    yield from _page(report.run, _one(report, "", "h1"))


def _prefix(number: int) -> str:
    return f"run{number}-"


def _scripts(reports: Sequence[Report]) -> tuple[str, ...]:
    from forensics.report.html._live import scripts  # noqa: PLC0415 - it loads plotly

    several = len(reports) > 1
    every = [(f"{_prefix(n) if several else ''}{f.key}", f) for n, r in enumerate(reports, 1) for f in r.figures]
    return scripts(every)


def _one(report: Report, prefix: str, level: str) -> Markup:
    lines = [f for f in report.figures if isinstance(f, Lanes)]
    charts = [f for f in report.figures if not isinstance(f, Lanes)]
    drawn = [tag("h2", "Charts"), *(figure(f, f"{prefix}{f.key}") for f in charts)] if charts else []
    return join(
        _sections.verdict(report, level),
        _sections.proof(report),
        *(join(tag("h2", "What happened when"), figure(f, f"{prefix}{f.key}")) for f in lines),
        *drawn,
        _sections.findings(report, prefix),
        _sections.coverage(report),
    )


def _overview(every: list[tuple[int, Report]]) -> Markup:
    number = {id(r): n for n, r in every}
    head = ("fingerprint", "run", "outcome", "shape", "onset", "headline")
    rows = [
        tag("tr", *(tag("td", c) for c in _row(key, r, number[id(r)])))
        for key, same in _many.grouped([r for _, r in every])
        for r in same
    ]
    top = tag("thead", tag("tr", [tag("th", h, scope="col") for h in head]))
    table = tag("table", top, tag("tbody", rows))
    return tag("div", table, class_="scroll", tabindex="0", role="region", aria_label="All runs")


def _row(key: str, report: Report, number: int) -> tuple[str, ...]:
    found = report.verdict
    shape = found.shape.value if found.shape else "-"
    link = tag("a", report.run, href=f"#run{number}")
    return key, link, found.outcome.value, shape, onset(found.onset) or "-", found.headline


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
