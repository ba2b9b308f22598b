"""What a command gives back: text, an exit code, and where the text goes. Only `main.run` writes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from forensics.errors import ExitCode

if TYPE_CHECKING:
    from forensics.model import Coverage


class Answer(Struct, frozen=True):
    """The result of a command; `notes` go to stderr, `text` to stdout or to the file `out`, `also` to files."""

    text: str
    code: ExitCode = ExitCode.OK
    out: str | None = None
    force: bool = False
    notes: tuple[str, ...] = ()
    also: tuple[tuple[str, str], ...] = ()


def losses(coverage: Coverage) -> tuple[str, ...]:
    """Give a note for a command that shows no account of its input: nothing where nothing was lost."""
    if not coverage.lost:
        return ()
    size_bytes = sum(file.skipped_bytes for file in coverage.lost)
    return (f"{size_bytes} bytes of the run could not be read: forensics ingest -v shows where",)


def lines(parts: Iterable[str]) -> str:
    """Join lines, each ended by a newline."""
    return "".join(f"{part}\n" for part in parts)
