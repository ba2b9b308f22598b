"""Several runs on one page: how many of each shape, then one row a run, those that failed the same way together."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.figure import Chart
from forensics.model import Report
from forensics.report import _many
from forensics.report import phrases as say
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Shown
from forensics.report.html._spark import spark
from forensics.report.html._words import outcome

#: Runs that are shown whole on a page of several; of the others there is the verdict and what proves it.
MOST_WHOLE = 12
_SOME = (
    f"{MOST_WHOLE} runs are shown whole, at least one of each failure where there is room; of the others the verdict "
    "and its evidence are below, and forensics report RUN draws them."
)


def overview(reports: Sequence[Report], pages: Sequence[Markup]) -> Markup:
    """Give how many there are of each shape, then one row a run, which opens to its page of `pages`."""
    shapes = [row.cells for row in _many.by_shape(reports)]
    return join(
        _table(_many.SHAPE_HEAD, shapes, "Runs by shape"),
        *(_group(g, pages) for g in _many.groups(reports)),
        *([tag("p", _SOME, class_="note")] if len(reports) > MOST_WHOLE else []),
    )


def with_room(reports: Sequence[Report]) -> frozenset[int]:
    """Choose the numbers, from 1, of runs that are shown whole: one of each failure first, as the others look alike."""
    groups = _many.groups(reports)
    turns = max((len(g.places) for g in groups), default=0)
    order = [g.places[turn] for turn in range(turns) for g in groups if turn < len(g.places)]
    return frozenset(place + 1 for place in order[:MOST_WHOLE])


def _group(group: _many.Group, pages: Sequence[Markup]) -> Markup:
    rows = [_row(report, place, pages[place]) for report, place in zip(group.reports, group.places, strict=True)]
    same = len(group.reports) > 1 and group.key != _many.NOTHING
    said = f"{len(group.reports)} runs of the same failure, {group.seen.words}" if same else ""
    head = [tag("p", said, " ", tag("code", group.key), class_="soft")] if same else []
    return tag("section", *head, *rows, class_="group")


def _row(report: Report, place: int, page: Markup) -> Markup:
    found = report.verdict
    where = say.onset(found.onset)
    said = [tag("span", where, class_="soft")] if where else []
    folder, slash, name = report.run.rpartition("/")
    run = tag("span", tag("span", folder + slash, class_="soft"), tag("b", name))
    row = tag("summary", outcome(found), run, tag("span", _picture(report)), tag("span", found.headline, *said))
    return tag("details", row, tag("div", page), class_="one", id=f"run{place + 1}")


def _picture(report: Report) -> Markup:
    """The chart that decides, without words."""
    first = next(iter(Shown(report).deciding), None)
    return spark(first) if isinstance(first, Chart) else join()


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]], name: str) -> Markup:
    top = tag("thead", tag("tr", [tag("th", h, scope="col") for h in head]))
    body = tag("tbody", [tag("tr", [tag("td", cell) for cell in row]) for row in rows])
    return tag("div", tag("table", top, body), class_="scroll", tabindex="0", role="region", aria_label=name)
