"""Rows of settings on their way to the table `facts`: bounded, without secrets, each with its line."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, field

from forensics.formats.rows.out import Out
from forensics.formats.rows.secrets import masked
from forensics.io.tolerant_json import dumps


def write_facts(out: Out, rows: Iterable[tuple[str, object, str]], line: int | None = None) -> None:
    """Hand facts (key, value, family) to the sink, with the line they come from where it is given."""
    if found := list(rows):
        keys, values, families = zip(*found, strict=True)
        texts = [dumps(value, compact=True).decode() for value in values]
        lines = {} if line is None else {"line": [line] * len(found)}
        out.rows("facts", {**lines, "key": keys, "value": texts, "family": families})


#: Facts of one tracked run, and characters of the JSON of one of them.
MOST_KEYED, KEYED_CHARS = 20_000, 10_000


class KeyedFacts(Struct):
    """What a tracker states, by family and key; a later value replaces an earlier one."""

    known: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def put(self, family: str, key: str, value: object) -> None:
        """Note one value, as JSON."""
        if len(self.known) < MOST_KEYED or (family, key) in self.known:
            self.known[family, key] = dumps(value, compact=True).decode()[:KEYED_CHARS]

    def write(self, out: Out) -> None:
        """Hand everything to the sink."""
        if self.known:
            families, keys = zip(*self.known, strict=True)
            out.rows("facts", {"key": keys, "value": [*self.known.values()], "family": families})


MOST, _KEY_CHARS, _VALUE_CHARS = 10_000, 300, 4_000


class ConfigFacts(Struct):
    """What was found, in the order of the file; beyond `MOST` rows only their number is kept."""

    rows: list[tuple[int | None, str, str, str]] = field(default_factory=list[tuple[int | None, str, str, str]])
    beyond: int = 0

    def __len__(self) -> int:
        """Rows that were kept."""
        return len(self.rows)

    def put(self, key: str, value: object, line: int | None = None, family: str = "config") -> None:
        """Note one value."""
        if len(self.rows) >= MOST:
            self.beyond += 1
            return
        shown = masked(key, value)
        text = dumps(shown[:_VALUE_CHARS] if isinstance(shown, str) else shown, compact=True).decode()
        self.rows.append((line, key[:_KEY_CHARS], text, family))

    def write(self, out: Out) -> None:
        """Hand everything to the sink."""
        if self.rows:
            out.rows("facts", dict(zip(("line", "key", "value", "family"), zip(*self.rows, strict=True), strict=True)))
        if self.beyond:
            out.issue("too-many", f"only the first {MOST} settings were kept", count=self.beyond)
