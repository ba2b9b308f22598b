"""Text of an input made harmless for each place where it may be shown.

Control characters, bidirectional overrides, invisible characters and lone surrogates become visible escapes, and so
does what a CI runner would take for a command; then each sink adds its own rule. No text is passed on as markup.
"""

from __future__ import annotations

import re

from forensics.patterns import lazily

#: C0, DEL and C1; arabic letter mark; zero-width space, directional marks; line and paragraph separators; bidi
#: embeddings, overrides and isolates; word joiner and invisible operators; BOM; annotations; tags; lone surrogates.
UNSAFE = lazily(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER = lazily(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:inf|Infinity)")
_TICKS = lazily("`+")
#: What a CI runner takes for a command in whatever a step prints: `::` first in a line, `##[` anywhere in it.
_COMMAND = lazily(r"(?<!\S)::(?=\w)|##\[")


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if (short := _SHORT.get(char)) is not None:
        return short
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # how Python carries a byte that is not UTF-8 in a file name
        code -= 0xDC00
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def printable(text: str, width: int | None = None) -> str:
    """Text on one line with all that is invisible or directs escaped, cut to `width` characters with an ellipsis."""
    if width is not None:
        text = text[: width + 1]
    safe = text if text.isascii() and text.isprintable() else UNSAFE.sub(_escape, text)
    if "::" in safe or "##[" in safe:
        safe = _COMMAND.sub(lambda found: r"#\x23[" if found[0] == "##[" else r"\x3a:", safe)
    if width is not None and len(safe) > width:
        return safe[: max(width - 1, 0)] + "…"[:width]
    return safe


def for_html(text: str) -> str:
    """Text for the content or a quoted attribute of an HTML element."""
    import html  # noqa: PLC0415 - only a page needs it

    return html.escape(printable(text), quote=True)


def _ticks(text: str, least: int) -> str:
    return "`" * max(least, 1 + max((len(run) for run in _TICKS.findall(text)), default=0))


def for_markdown(text: str, *, cell: bool = False) -> str:
    """Text as an inline code span, in which no mark, link or mention works; `cell` also keeps a table's columns."""
    safe = printable(text) or " "
    fence = _ticks(safe, 1)
    if cell:
        safe = safe.replace("|", "\\|")
    padded = safe[0] == "`" or safe[-1] == "`" or (safe[0] == safe[-1] == " " and safe.strip())
    return f"{fence} {safe} {fence}" if padded else f"{fence}{safe}{fence}"


def markdown_block(text: str) -> str:
    """Lines of text as a fenced block whose fence is longer than any inside."""
    lines = "\n".join(printable(line) for line in text.split("\n"))
    fence = _ticks(lines, 3)
    return f"{fence}text\n{lines}\n{fence}\n"


def for_github(text: str) -> str:
    """Text as the message of a workflow command; lines stay apart as the runner's own escape of a newline."""
    return "%0A".join(printable(line).replace("%", "%25") for line in text.split("\n"))


def for_github_property(text: str) -> str:
    """Text as a property (`file=`, `title=`) of a workflow command."""
    return for_github(text).replace(":", "%3A").replace(",", "%2C")


def csv_cell(text: str) -> str:
    """Text as a cell that no spreadsheet runs as a formula; what reads as a number stays as it is."""
    safe = printable(text)
    if text.startswith((*_FORMULA, "\t", "\r", "\n")) and not _NUMBER.fullmatch(text):
        return "'" + safe
    return safe
