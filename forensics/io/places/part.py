"""Some folders of a place, with the files beside them, as a place."""

from __future__ import annotations

from typing import Any, cast

from msgspec import Struct

from forensics.io.limits import Limits
from forensics.io.places.place import Found, Place


class _Part(Struct, frozen=True):
    whole: Place
    folders: frozenset[str]

    @property
    def identity(self) -> bytes:
        """Its name, apart from the whole and from other parts."""
        return b"\0".join((self.whole.identity, *(name.encode("utf-8", "replace") for name in sorted(self.folders))))

    def looked_through(self, limits: Limits) -> Found:
        """List the whole, and keep the files of the part."""
        found = self.whole.looked_through(limits)
        files = [seen for seen in found.files if self._has(seen.path)]
        skipped = [row for row in found.skipped if self._has(row.source)]
        return Found(files, skipped, found.issues, found.is_file)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a place has
        """All else is as the whole has it."""
        return getattr(self.whole, name)

    def _has(self, path: str) -> bool:
        first, slash, _ = path.partition("/")
        return not slash or first in self.folders


def part_of(whole: Place, folders: frozenset[str]) -> Place:
    """Give a place as if of its folders there were only these."""
    return cast("Place", _Part(whole, folders))
