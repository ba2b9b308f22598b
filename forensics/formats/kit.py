"""What a reader is written with: its declaration, the file it reads, what it writes to, and how it refuses."""

from __future__ import annotations

from forensics.errors import InputError, NotMine
from forensics.formats.rows.out import Out
from forensics.io.limits import Limits
from forensics.io.reading import Opened
from forensics.patterns import lazily
from forensics.registry import Sniff, ingester

__all__ = ["InputError", "Limits", "NotMine", "Opened", "Out", "Sniff", "ingester", "lazily"]
