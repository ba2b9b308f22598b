"""Some folders of a place, with the files beside them, as a place."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from msgspec import Struct

from forensics.io.disk import Disk
from forensics.io.limits import Limits
from forensics.io.places.place import Found, Place, Seen


class Part(Struct, frozen=True):
    """The place `whole` as if of its folders there were only `folders`."""

    whole: Place
    folders: frozenset[str]

    @property
    def name(self) -> str:
        """Called as the whole is."""
        return self.whole.name

    @property
    def identity(self) -> bytes:
        """What tells it from the whole, and from other parts."""
        return b"\0".join((self.whole.identity, *(name.encode("utf-8", "replace") for name in sorted(self.folders))))

    @property
    def folder(self) -> Path | None:
        """Where the whole is."""
        return self.whole.folder

    def looked_through(self, limits: Limits) -> Found:
        """List the whole, and keep what belongs to the part."""
        found = self.whole.looked_through(limits)
        files = [seen for seen in found.files if self._has(seen.path)]
        skipped = [row for row in found.skipped if self._has(row.source)]
        return Found(files, skipped, found.issues, found.is_file)

    def refused(self, path: str) -> str:
        """As the whole says."""
        return self.whole.refused(path)

    def opened(self, path: str) -> AbstractContextManager[Disk]:
        """As the whole opens it."""
        return self.whole.opened(path)

    def seen(self, path: str) -> Seen | None:
        """As the whole sees it."""
        return self.whole.seen(path)

    def tag(self, path: str) -> str:
        """As the whole says."""
        return self.whole.tag(path)

    def holding(self, path: str) -> tuple[Place, str]:
        """As the whole holds it."""
        return self.whole.holding(path)

    def below(self, folder: str) -> Place:
        """A folder of the whole."""
        return self.whole.below(folder)

    def _has(self, path: str) -> bool:
        first, slash, _ = path.partition("/")
        return not slash or first in self.folders
