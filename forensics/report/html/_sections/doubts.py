"""What else it may be, what speaks against it, what was seen and what was not, and what to ask next."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.model import Report
from forensics.report import phrases as say
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._section import Section, Shown


def doubts(shown: Shown) -> Markup:
    """Give the doubts as facts, and the next steps."""
    report = shown.report
    listed = [join(tag("dt", label), tag("dd", value)) for label, value in _facts(report)]
    steps = [tag("li", tag("code", s) if say.is_command(s) else s) for s in say.next_steps(report)]
    after = join(tag("h2", "More"), tag("ul", steps)) if steps else join()
    return join(tag("h2", "Doubts and gaps"), tag("dl", listed), after)


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    found = report.verdict
    if found.runner_up:
        yield "or else", found.runner_up
    if found.against:
        first = found.against[0]
        yield "against", f"{first.place} {first.quote.strip()}"
    yield "seen", say.seen(report.coverage)
    if unseen := say.unseen(report):
        yield "not seen", "; ".join(unseen)


SECTION = Section(60, doubts, brief=True, column="doubts")
