"""Writes the page of one command: one value for each kind of page, and the parts that all pages share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from msgspec import Struct, field

from forensics.io.safe_text import for_markdown, markdown_block, printable
from forensics.model import Evidence
from forensics.report import phrases as say
from forensics.report._losses import told, words
from forensics.report.json_v1 import encoded
from forensics.report.payload import Accounted, Payload, headed, read_payload
from forensics.report.style import LABEL_CHARS, PLAIN, Style

#: Facts that are commands or paths.
_WHOLE = frozenset({"checkpoint", "command", "restart"})
P = TypeVar("P", bound=Accounted)


class Layout(Struct, Generic[P], frozen=True):
    """The forms of a page: the fields of its document, its text, its Markdown, and its further forms.

    `text` and `fields` leave the account of the input out: it is the same for every page, and added here.
    """

    schema: str
    fields: Callable[[P], Payload]
    text: Callable[[P, Style], Iterator[str]]
    markdown: Callable[[P], Iterator[str]]
    more: Mapping[str, Callable[[P], Iterator[str]]] = field(default_factory=dict[str, Callable[[P], Iterator[str]]])

    def render(self, page: P, form: str, style: Style = PLAIN) -> Iterator[str]:
        """Write the page as text, JSON, Markdown or one of `more`; a form of another name is a KeyError."""
        if form == "json":
            yield encoded(self.payload(page))
        else:
            yield from told(self._page(page, form, style), form, words(page.coverage), style)

    def _page(self, page: P, form: str, style: Style) -> Iterator[str]:
        if form == "text":
            yield from self.text(page, style)
            yield from account(page, style)
        elif form == "markdown":
            yield from self.markdown(page)
        else:
            yield from self.more[form](page)

    def payload(self, page: P) -> Payload:
        """Give the document: schema, tool, fields, coverage and issues."""
        return headed(self.schema, {**self.fields(page), **read_payload(page.coverage, page.issues)})


def account(page: Accounted, style: Style) -> Iterator[str]:
    """Say in text how much was read and how much was lost."""
    yield from style.field("seen", printable(say.seen(page.coverage)), most=1)
    if page.coverage.lost_bytes or page.issues:
        count = say.plural(sum(i.count for i in page.issues), "issue")
        yield from style.field("lost", f"{say.plural(page.coverage.lost_bytes, 'byte')}; {count}")


def proof(found: Evidence, style: Style, *, first: bool) -> Iterator[str]:
    """Lay out the place of one piece of evidence, and its quote below; the first is labelled."""
    yield style.paint(f"{'evidence' if first else '':<{LABEL_CHARS}}", "dim") + style.paint(
        printable(found.place), "cyan"
    )
    if found.quote.strip():
        yield " " * (LABEL_CHARS + 2) + printable(found.quote.strip(), max(20, style.width - LABEL_CHARS - 2))


def whole(label: str, text: str, style: Style) -> str:
    """Give one line that is never wrapped or cut, as it is to be copied: a command or a path."""
    return style.paint(f"{label:<{LABEL_CHARS}}", "dim") + printable(text)


def text_facts(facts: Iterable[tuple[str, str]], style: Style) -> Iterator[str]:
    """Write the known facts of a run as label and value; a command or a path is never cut."""
    for label, value in facts:
        yield from (whole(label, value, style),) if label in _WHOLE else style.field(label, printable(value))


def markdown_facts(facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Write the table of known facts, label and value."""
    yield from ("| | |", "|---|---|")
    yield from (f"| {label} | {for_markdown(value, cell=True)} |" for label, value in facts)


def markdown_proof(every: Iterable[Evidence]) -> Iterator[str]:
    """Write the place of each piece of evidence, and its quote below it."""
    for evidence in every:
        yield from ("", for_markdown(evidence.place))
        if evidence.quote.strip():
            yield from ("", markdown_block(evidence.quote).rstrip("\n"))
