"""From what a user typed to a place."""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

from forensics.io.places.local import Local
from forensics.io.places.place import Place

#: A place, or what a user calls it.
Where = Place | str | PathLike[str]


def place_of(where: Where) -> Place:
    """Give the place of this name; a path is always one of this machine."""
    return Local(Path(where)) if isinstance(where, str | os.PathLike) else where
