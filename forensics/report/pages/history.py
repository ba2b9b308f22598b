"""Past diagnoses by failure, laid out: `forensics.history/1`, text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from forensics.history.past import Group, groups, newest, outcomes
from forensics.history.shelf import History
from forensics.io.safe_text import for_markdown, printable
from forensics.report import phrases as say
from forensics.report.json_v1 import encoded
from forensics.report.payload import Payload, headed
from forensics.report.style import PLAIN, Style, markdown_table

_NAMED = 5


class Page(Struct, frozen=True):
    """A history, and the name of its folder."""

    place: str
    history: History


def render(page: Page, form: str, style: Style = PLAIN) -> Iterator[str]:
    """Write the page as text, JSON or Markdown; a form of another name is a KeyError."""
    yield from {"text": _text, "json": _json, "markdown": _markdown}[form](page, style)


def _json(page: Page, _style: Style) -> Iterator[str]:
    past = page.history.past
    fields = {
        "place": page.place,
        "diagnoses": len(past),
        "runs": len(newest(past)),
        "unusable": page.history.unusable,
        "outcomes": dict(outcomes(past)),
        "failures": [_payload(group) for group in groups(past)],
    }
    yield encoded(headed("forensics.history/1", fields))


def _payload(group: Group) -> Payload:
    last = group.last
    return {
        "root": last.root,
        "count": len(group.runs),
        "first": say.utc(group.first.ended_ns),
        "last": say.utc(last.ended_ns),
        "outcome": last.outcome,
        "shape": last.shape or None,
        "cause": last.cause or None,
        "headline": last.headline,
        "runs": [
            {"run": one.run, "ended": say.utc(one.ended_ns), "step": one.step, "entity": one.entity or None}
            for one in group.runs
        ],
    }


def _text(page: Page, style: Style) -> Iterator[str]:
    yield style.paint(_counts(page), "bold")
    for group in groups(page.history.past):
        yield ""
        shape = style.paint(group.last.shape or group.last.outcome, "bold", "red")
        yield f"{shape}  {say.plural(len(group.runs), 'run')}, {_when(group)}  {group.last.cause}"
        yield from style.field("", printable(group.last.headline), most=2)
        shown = group.runs if style.verbose else group.runs[-_NAMED:]
        for one in reversed(shown):
            step = f"  step {one.step}" if one.step is not None else ""
            yield f"  {printable(one.run)}{step}"
        if rest := len(group.runs) - len(shown):
            yield f"  and {say.plural(rest, 'earlier run')}: -v shows them"


def _markdown(page: Page, _style: Style) -> Iterator[str]:
    yield from ("## Past failures", "", for_markdown(_counts(page)), "")
    every = ((group, group.last) for group in groups(page.history.past))
    words = ((one.cause or one.shape, str(len(g.runs)), _when(g), one.run, one.headline) for g, one in every)
    rows = ([for_markdown(word, cell=True) for word in row] for row in words)
    yield from markdown_table(("failure", "runs", "when", "newest run", "what happened"), rows)


def _counts(page: Page) -> str:
    past = page.history.past
    each = ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in outcomes(past).items())
    damaged = f"; {page.history.unusable} damaged" if page.history.unusable else ""
    runs = say.plural(len(newest(past)), "run")
    return f"{runs} in {printable(page.place)}: {each or 'none was diagnosed yet'}{damaged}"


def _when(group: Group) -> str:
    first, last = ((say.utc(one.ended_ns) or "")[:10] for one in (group.first, group.last))
    return first if first == last else f"{first} to {last}"
