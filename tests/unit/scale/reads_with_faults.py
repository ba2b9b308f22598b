"""The unit of work with faults that its files ask for by their names; worker processes import it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from forensics.store import unit
from forensics.store.unit import Item, Record


def note(item: Item, log: str) -> None:
    """Write down every item that is tried, and every one that is read."""
    with (Path(item.place).parent / log).open("a") as file:
        file.write(" ".join(one.source.path for one in item.asked) + "\n")


def read(item: Item) -> Record:
    """Read an item, slowly; die of `poison`, and of `weak` once, when another source is read beside it."""
    note(item, "tries")
    time.sleep(0.05)
    for one in item.asked:
        if "poison" in one.source.path or ("weak" in one.source.path and len(item.asked) > 1):
            os.kill(os.getpid(), signal.SIGKILL)
    record = unit.read(item)
    if record.pack:
        note(item, "read")
    return record


def ends(item: Item) -> Record:
    """End at every item."""
    os._exit(3 if item.asked else 0)
