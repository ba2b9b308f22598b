"""Everything that forensics raises on purpose, and the exit codes of the command line.

ForensicsError                 carries `help`, the next command to run
├── UsageError                 exit 2: the call or the configuration is wrong
│   ├── MissingPackage         a package that only this needs is not installed
│   └── PlaceError             the machine refuses a place: a full disk, no permission, a file in the way
└── InputError                 a file could not be read as what it claims to be
    ├── NotMine                the ingester looked and the content is another format
    └── LimitExceeded          a bound of `io.limits.Limits` was reached
"""

from __future__ import annotations

import errno
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line; the output format never changes them."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    CANNOT_SAY = 3
    INPUT_LOST = 4
    BUG = 70
    INTERRUPTED = 130
    CLOSED_PIPE = 141
    TERMINATED = 143


class ForensicsError(Exception):
    """A failure that the user can act on; `help` names the next command."""

    def __init__(self, message: str, *, help: str = "forensics doctor") -> None:  # noqa: A002 - the printed word
        """Keep the message and the help line apart, so that each sink can lay them out."""
        super().__init__(message)
        self.message = message
        self.help = help


class UsageError(ForensicsError):
    """The call or the configuration is wrong."""


_ELSEWHERE = "give another place: --store DIR, -o FILE, or TMPDIR=DIR before the command"
_SHORTER = "give a shorter path: forensics COMMAND --help"
_OPEN_FILES = "ulimit -n 1024, then the same command"
#: What an error number of the system means for a place, and what to do about it.
_SAID: dict[int, tuple[str, str]] = {
    errno.ENOSPC: ("the disk is full", "df -h shows the space; or " + _ELSEWHERE),
    errno.EDQUOT: ("the quota of the disk is used up", "quota -s shows it; or " + _ELSEWHERE),
    errno.EFBIG: ("the system allows no file of this size", "ulimit -f unlimited, then the same command"),
    errno.EROFS: ("the file system is read-only", _ELSEWHERE),
    errno.EACCES: ("permission denied", _ELSEWHERE),
    errno.EPERM: ("the system does not permit it", _ELSEWHERE),
    errno.EEXIST: ("a file is in the way", _ELSEWHERE),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", _ELSEWHERE),
    errno.EISDIR: ("is a folder, not a file", _ELSEWHERE),
    errno.ENOENT: ("there is no such file or folder", "ls -ld shows the path; or " + _ELSEWHERE),
    errno.ENAMETOOLONG: ("the name is too long", _SHORTER),
    errno.ELOOP: ("its links lead in a circle", _SHORTER),
    errno.EMFILE: ("the system lets this program open no more files", _OPEN_FILES),
    errno.ENFILE: ("the system has no room for one more open file", _OPEN_FILES),
    errno.ENOMEM: ("the system has no memory left", "forensics COMMAND --store DIR needs less memory"),
    errno.EBADF: ("is closed", "run the command again with it open, or write to a file: -o FILE"),
    errno.EIO: ("the disk gives errors", "dmesg shows them; or " + _ELSEWHERE),
    errno.ESTALE: ("the network file system has lost it", "mount it again, then the same command"),
}
#: Faults of the machine that hit every file alike; of the file that was to be opened they say nothing.
EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE})
#: How a library in Rust writes an error of the system.
_OS_ERROR = r"\(os error (\d+)\)"


def errno_of(error: BaseException) -> int | None:
    """Give the system's error number: that of an OSError, or the one that a table engine prints in its message."""
    number: object = getattr(error, "errno", None)
    if isinstance(number, int):
        return number
    import re  # noqa: PLC0415 - only for an error; `--help` shall not pay for it

    found = re.search(_OS_ERROR, str(error))
    return int(found[1]) if found is not None else None


class PlaceError(UsageError):
    """The machine refuses a place that is ours to write or to read: store, result, spool, standard streams.

    `place` names it, `cause` is what the system said.
    """

    def __init__(self, place: str, cause: BaseException, *, help: str = "") -> None:  # noqa: A002 - the printed word
        """Say in words what the system refuses, and what to do, unless `help` knows better."""
        number = errno_of(cause)
        plain = str(getattr(cause, "strerror", None) or cause or type(cause).__name__)
        words, help_line = _SAID.get(number or 0, (plain, _ELSEWHERE))
        super().__init__(f"{place}: {words}", help=help or help_line)
        self.place = place
        self.errno = number


class MissingPackage(UsageError, ImportError):  # noqa: N818 - named for what is missing, as Python does
    """A package that only this needs is not installed: a slim installation leaves it out."""

    def __init__(self, package: str) -> None:
        """Name the package, and how to get it."""
        super().__init__(f"this needs {package}, which is not installed", help=f"pip install {package}")
        self.package = package


class InputError(ForensicsError):
    """A file could not be read as what it claims to be."""


class NotMine(InputError):  # noqa: N818 - a signal between ingesters, not a failure
    """The ingester looked at the content and it is another format."""


class LimitExceeded(InputError):  # noqa: N818 - named for the bound, as the data says
    """A bound was reached: `resource` reached `actual`, the limit is `limit`."""

    def __init__(self, resource: str, *, limit: int, actual: int) -> None:
        """Carry the bound as data."""
        super().__init__(f"{resource}: {actual} is over the limit of {limit}", help="forensics doctor")
        self.resource = resource
        self.limit = limit
        self.actual = actual
