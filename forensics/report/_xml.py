"""Text of an input as characters that XML 1.0 may hold."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from forensics.io.safe_text import printable
from forensics.patterns import lazily

_NOT_XML = lazily("[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_line(text: str) -> str:
    """One line without what XML cannot hold; not yet escaped for markup."""
    return _NOT_XML.sub("", printable(text))


def xml_lines(lines: Iterable[str]) -> str:
    """Several lines in the same way."""
    return "\n".join(xml_line(line) for line in lines)


def xml_attribute(text: str) -> str:
    """A value of an attribute, quoted; `xml.sax.saxutils` would do the same, and load a network client."""
    return f'"{escape(xml_line(text))}"'
