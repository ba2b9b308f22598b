"""What is known of installed packages: whose a file is, what a module is installed by, and what versions changed.

`advice/libraries.jsonl` says which files of a stack a run does not own: `files` (a pattern that a path holds),
`package` where the name behind it is that of an installed package. `advice/modules.jsonl` gives the `package` that
brings the `modules`, where the two are not called alike. `advice/changes.jsonl` has the names that a package lost or
gained: `like`, a message that a row is about, `owner`, the module, class or function that is asked, and `name`
(patterns of the whole of each), the version `below` which it is there, or `since` which, what to use `instead`, or an
`advice` of its own, in which `{name}` and `{owner}` are those of the message. The first row that fits is told.
`advice/lacks.jsonl` has the `words` by which Python says that a name is not there, with the groups `owner` and `name`,
and texts that they are `like` and `unlike`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from forensics.knowledge._rows import Row, bare_rows, rows_of
from forensics.patterns import lazily

#: File and folder of a path that would take more than half of a line of 80 columns.
_NEAREST = lazily(r"^(?=.{41}).*[\\/](?P<near>[^\\/]+[\\/][^\\/]+)$")


class Lack(Row, frozen=True):
    """One row of `advice/lacks.jsonl`."""

    row: str
    words: str
    like: tuple[str, ...]
    unlike: tuple[str, ...]
    source: str


class Change(Row, frozen=True):
    """One row of `advice/changes.jsonl`."""

    package: str
    owner: str
    name: str
    like: str
    source: str
    below: str = ""
    since: str = ""
    instead: str = ""
    advice: str = ""

    def is_about(self, owner: str, name: str) -> bool:
        """Whether it is about this name of this module, class or function."""
        return re.fullmatch(self.name, name) is not None and re.fullmatch(self.owner, owner) is not None

    def words(self, owner: str, name: str) -> str:
        """What to do about a name that is not there."""
        other = f", or use {self.instead}" if self.instead else ""
        if self.below:
            text = f"Install {self.package} below {self.below}{other}: newer ones have no {{name}}"
        elif self.since:
            text = f"Install {self.package} {self.since} or newer{other}: older ones have no {{name}}"
        else:
            text = (
                self.advice or f"Use {self.instead} instead of {{name}}: the installed {self.package} does not have it"
            )
        return text.replace("{name}", name).replace("{owner}", owner)


def changes() -> tuple[Change, ...]:
    """Give every row of `advice/changes.jsonl`."""
    return rows_of("advice/changes.jsonl", Change)


def lacks() -> tuple[Lack, ...]:
    """Give every row of `advice/lacks.jsonl`."""
    return rows_of("advice/lacks.jsonl", Lack)


def changed(said: str) -> str:
    """What to do about the name that an exception does not find, where a version is known that took or brought it."""
    hit = next((hit for row in lacks() if (hit := re.search(row.words, said)) is not None), None)
    if hit is None:
        return ""
    owner, name = hit["owner"].removesuffix(".__init__"), hit["name"]
    return next((row.words(owner, name) for row in changes() if row.is_about(owner, name)), "")


def installed_by(module: str) -> str:
    """Give the package that brings a module, where it has another name than the module's first part."""
    named = _packages_of_modules()
    return named.get(module) or named.get(module.partition(".")[0], "")


@cache
def _packages_of_modules() -> Mapping[str, str]:
    return {module: str(row["package"]) for row in bare_rows("advice/modules.jsonl") for module in row["modules"]}


def is_library(file: str) -> bool:
    """Whether a file is the interpreter's or an installed package's; one without a name is taken for one."""
    return not file or _pattern().search(file) is not None


def is_library_frame(frame: str) -> bool:
    """Whether a frame as a traceback has it, `train.py:22 in main`, is in such a file."""
    return is_library(frame.partition(" in ")[0].rpartition(":")[0])


def package_of(frame: str) -> str:
    """The installed package that a frame is in; empty for the program's own files and the interpreter's."""
    found = _packages().search(frame)
    return found["package"] if found is not None else ""


def short_frame(frame: str) -> str:
    """Write a frame of an installed package from the package on, a long path by its file and the folder of that.

    The whole path stands in the evidence.
    """
    found = _packages().search(frame)
    place, of, function = (frame[found.start("package") :] if found is not None else frame).partition(" in ")
    kept = place if found is not None else _NEAREST.sub(r"\g<near>", place)
    return f"{kept.removesuffix(':')}{of}{function}"


@cache
def library_files() -> str:
    """The pattern that a path of such a file holds."""
    return "|".join(f"(?:{row['files']})" for row in bare_rows("advice/libraries.jsonl"))


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(library_files())


@cache
def _packages() -> re.Pattern[str]:
    named = "|".join(f"(?:{row['files']})" for row in bare_rows("advice/libraries.jsonl") if row.get("package"))
    return re.compile(rf"(?:{named})(?P<package>\w+)")
