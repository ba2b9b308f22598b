"""Settings among the first bytes of a text log, as facts with their lines."""

from __future__ import annotations

from forensics.dialects.settings import dumps
from forensics.formats.rows.facts import ConfigFacts
from forensics.formats.rows.out import Out
from forensics.io.blocks import Block


def write_settings(out: Out, piece: Block, known: set[tuple[str, str]]) -> None:
    """Write what a piece of a log prints of its settings, less what is `known`; pieces far in are left alone."""
    if piece.offset >= dumps.SCANNED_BYTES:
        return
    found = dumps.settings(piece.data[: dumps.SCANNED_BYTES])
    if not found:
        return
    facts = ConfigFacts()
    line, at = piece.first_line, 0
    for row in found:
        line, at = line + piece.data.count(b"\n", at, row.at), row.at
        if (row.key, repr(row.value)) not in known:
            known.add((row.key, repr(row.value)))
            facts.put(row.key, row.value, line, row.family)
    facts.write(out)
