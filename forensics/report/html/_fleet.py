"""Several runs on one page: how many of each shape, which failed the same way and when, and a link to each run."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.model import Report
from forensics.report import _many
from forensics.report import phrases as say
from forensics.report.html._elements import Markup, join, tag

#: Runs that are shown whole on a page of several; of the others there is the verdict and what proves it.
MOST_WHOLE = 12
_SOME = (
    f"{MOST_WHOLE} runs are shown whole, at least one of each failure where there is room; of the others the verdict "
    "and its evidence stand below, and forensics report RUN draws them."
)


def overview(reports: Sequence[Report]) -> Markup:
    """Give the tables; links lead to `#run1`, `#run2`, … in the order given."""
    groups = _many.groups(reports)
    failures = [g for g in groups if g.seen.runs]
    shapes = [row.cells for row in _many.by_shape(reports)]
    runs = [_run_row(g.key, r, place) for g in groups for r, place in zip(g.reports, g.places, strict=True)]
    return join(
        tag("h2", "By shape"),
        _table(_many.SHAPE_HEAD, shapes, "Runs by shape"),
        *(
            [
                tag("h2", "Failures"),
                _table(
                    ("fingerprint", "runs", "first seen", "last seen", "headline"),
                    [_failure_row(g) for g in failures],
                    "Failures",
                ),
            ]
            if failures
            else []
        ),
        tag("h2", "Runs"),
        _table(("fingerprint", "run", "outcome", "shape", "onset", "headline"), runs, "All runs"),
        *([tag("p", _SOME, class_="note")] if len(reports) > MOST_WHOLE else []),
    )


def with_room(reports: Sequence[Report]) -> frozenset[int]:
    """Choose the numbers, from 1, of runs that are shown whole: one of each failure first, as the others look alike."""
    groups = _many.groups(reports)
    turns = max((len(g.places) for g in groups), default=0)
    order = [g.places[turn] for turn in range(turns) for g in groups if turn < len(g.places)]
    return frozenset(place + 1 for place in order[:MOST_WHOLE])


def _failure_row(group: _many.Group) -> tuple[str, ...]:
    undated = f" ({group.seen.undated} without a time)" if 0 < group.seen.undated < group.seen.runs else ""
    verdict = group.lead.verdict
    return group.key, f"{len(group.reports)}{undated}", group.seen.first, group.seen.last, verdict.headline


def _run_row(key: str, report: Report, place: int) -> tuple[str, ...]:
    found = report.verdict
    shape = found.shape.value if found.shape else _many.NOTHING
    link = tag("a", report.run, href=f"#run{place + 1}")
    return key, link, found.outcome.value, shape, say.onset(found.onset) or _many.NOTHING, found.headline


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]], name: str) -> Markup:
    top = tag("thead", tag("tr", [tag("th", h, scope="col") for h in head]))
    body = tag("tbody", [tag("tr", [tag("td", cell) for cell in row]) for row in rows])
    return tag("div", tag("table", top, body), class_="scroll", tabindex="0", role="region", aria_label=name)
