"""JUnit XML: text of an input as characters that XML 1.0 may hold, and one test case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from forensics.io.safe_text import printable
from forensics.patterns import lazily

_NOT_XML = lazily("[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
HEAD = '<?xml version="1.0" encoding="UTF-8"?>'


def xml_text(text: str) -> str:
    """One line as the content of an element."""
    from html import escape  # noqa: PLC0415 - only a page or XML needs it

    return escape(_NOT_XML.sub("", printable(text)))


def xml_attribute(text: str) -> str:
    """A value of an attribute, quoted; `xml.sax.saxutils` would do the same, and load a network client."""
    return f'"{xml_text(text)}"'


def case(
    of: str, name: str, headline: str, details: Iterable[str], kind: Literal["failure", "skipped", ""]
) -> Iterator[str]:
    """Write one test case of `forensics.<of>`."""
    told = "\n".join(map(xml_text, details))
    yield f'  <testcase classname="forensics.{of}" name={xml_attribute(name)}>'
    if kind == "failure":
        yield f"    <failure message={xml_attribute(headline)}>{told}</failure>"
    elif kind == "skipped":
        yield f"    <skipped message={xml_attribute(headline)}/>"
        yield f"    <system-out>{told}</system-out>"
    else:
        yield f"    <system-out>{xml_text(headline)}\n{told}</system-out>"
    yield "  </testcase>"
