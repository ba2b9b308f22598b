"""How text is laid out and painted: width, colour, how much; meaning is never carried by colour alone."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeVar

from msgspec import Struct

from forensics.patterns import lazily

T = TypeVar("T")
Paint = Literal["bold", "dim", "red", "green", "yellow", "magenta", "cyan"]
_CODES: dict[Paint, int] = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "magenta": 35, "cyan": 36}
LABEL_CHARS = 12
_CLAUSE_END = lazily(r"[.;:](?= )")
#: A text is cut behind a clause where that keeps this share of its room.
_LEAST_KEPT = 0.5


class Style(Struct, frozen=True):
    """Width in columns, colour or none, and whether to show everything, or the checks of the playbook."""

    width: int = 80
    color: bool = False
    verbose: bool = False
    checklist: bool = False

    def paint(self, text: str, *paints: Paint) -> str:
        """Give `text` (already made printable) its colours, or as it is."""
        if not self.color or not text:
            return text
        return f"\x1b[{';'.join(str(_CODES[p]) for p in paints)}m{text}\x1b[0m"

    def first(self, rows: Sequence[T], most: int) -> Sequence[T]:
        """Give the first of some rows, or all where everything is shown."""
        return rows if self.verbose else rows[:most]

    def field(self, label: str, text: str, *paints: Paint, most: int | None = None) -> Iterator[str]:
        """Lay out `label  text`, wrapped under itself, over at most `most` lines; a long word stays whole."""
        rows = textwrap.wrap(
            text, max(20, self.width - LABEL_CHARS), break_long_words=False, break_on_hyphens=False
        ) or [""]
        if most is not None and len(rows) > most and not self.verbose:
            rows = _cut(rows[:most], self.width - LABEL_CHARS)
        for index, row in enumerate(rows):
            head = f"{label if not index else '':<{LABEL_CHARS}}"
            yield self.paint(head, "dim") + self.paint(row, *paints) if paints else self.paint(head, "dim") + row


def _cut(rows: Sequence[str], width: int) -> list[str]:
    """Cut the last row behind a clause where it has one that ends late enough, else between words."""
    *kept, last = rows
    least = _LEAST_KEPT * width * len(rows) - sum(map(len, kept))
    ends = [end.start() for end in _CLAUSE_END.finditer(last) if end.start() >= least]
    if ends:
        return [*kept, last[: ends[-1]] + " …"]
    words = last.split(" ")
    while len(words) > 1 and len(" ".join(words)) + 2 > width:
        words.pop()
    return [*kept, " ".join(words) + " …"]


PLAIN = Style()


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: int = 0) -> Iterator[str]:
    """Lay out a Markdown table of escaped cells; the first columns, of `numbers`, to the right."""
    yield f"| {' | '.join(head)} |"
    yield "|" + "---:|" * numbers + "---|" * (len(head) - numbers)
    yield from (f"| {' | '.join(row)} |" for row in rows)
