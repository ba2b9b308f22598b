"""Everything that forensics raises on purpose, and the exit codes of the command line.

ForensicsError                 carries `help`, the next command to run
├── UsageError                 exit 2: the call or the configuration is wrong
└── InputError                 a file could not be read as what it claims to be
    ├── NotMine                the ingester looked and the content is another format
    └── LimitExceeded          a bound of `io.limits.Limits` was reached
"""

from __future__ import annotations

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


class ForensicsError(Exception):
    """A failure that the user can act on; `help` names the next command."""

    def __init__(self, message: str, *, help: str = "forensics doctor") -> None:  # noqa: A002 - the printed word
        """Keep the message and the help line apart, so that each sink can lay them out."""
        super().__init__(message)
        self.message = message
        self.help = help


class UsageError(ForensicsError):
    """The call or the configuration is wrong."""


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
