"""Options that several commands share and those of `forensics` itself, and what they mean together."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from forensics.cli import _complete
from forensics.config import FAIL_ON, suggestion
from forensics.errors import UsageError
from forensics.report.style import Style
from forensics.values import tool_version


def written_to(text: str) -> str:
    """Give the path or the address that is to be written to, after asking that it is one.

    Raises `UsageError` for an address that nothing can have.
    """
    from forensics.io.places.named import place_of  # noqa: PLC0415 - not on the path of --help

    place_of(text)
    return text


def on_this_machine(text: str) -> Path:
    """Give the path that is to be written to, in many files.

    Raises `UsageError` for an address of a bucket, of which a `Path` would make a folder of this machine.
    """
    from forensics.io.places.named import place_of  # noqa: PLC0415 - not on the path of --help

    folder = place_of(text).folder
    if folder is None:
        raise UsageError("tables are written to this machine, not to a bucket", help="give a path, and copy from there")
    return folder


InputArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run directory, a file, or - for stdin.")]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run directory, or one file.")]
RunsArgument = Annotated[list[str], typer.Argument(metavar="RUN...", help="Run directories, or files of one.")]
ReportFormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="text, json, markdown, github, junit or html.",
        autocompletion=_complete.formats,
    ),
]
OutOption = Annotated[
    str | None, typer.Option("-o", "--output", metavar="FILE", help="Write to FILE, not stdout.", parser=written_to)
]
ForceOption = Annotated[bool, typer.Option("--force", help="Let -o replace a file that exists.")]
ColorOption = Annotated[str, typer.Option("--color", metavar="WHEN", help="auto, always or never.")]
ChecklistOption = Annotated[bool, typer.Option("--checklist", help="Show every check: done, missing or next.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Show every finding, file and issue.")]
FailOnOption = Annotated[
    str | None,
    typer.Option(
        "--fail-on",
        metavar="LEVEL|SHAPE",
        help="Exit 1 at findings of this severity or above (default error), or of this shape: "
        + ", ".join(FAIL_ON)
        + ".",
        autocompletion=_complete.levels,
    ),
]
ExitZeroOption = Annotated[bool, typer.Option("--exit-zero", help="Exit 0 whatever was found.")]
StrictOption = Annotated[bool, typer.Option("--strict", help="Exit 4 when a part of the input was lost.")]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="RULE", help="Suppress a rule; may be repeated.", autocompletion=_complete.rules),
]
RedactOption = Annotated[
    bool, typer.Option("--redact", help="Hide users, home folders, hosts, addresses, e-mails and tokens.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
StoreOption = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="DIR",
        help="Keep the tables in DIR; unchanged files are not read again.",
        parser=on_this_machine,
    ),
]
HistoryOption = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="DIR",
        help="Add each diagnosis to the history in DIR, and say how often the same failure was there before.",
        parser=written_to,
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option("--jobs", "-j", metavar="N", min=1, help="Read with N processes; without it, as many as pay."),
]
EngineOption = Annotated[
    str, typer.Option("--engine", metavar="ENGINE", help="Read on this machine (local) or on a Ray cluster (ray).")
]
ENGINES = ("local", "ray")

_AUTO = ("auto", "always", "never")


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"forensics {tool_version()}")
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """What went wrong in a training run, where it started, what proves it and what to do now: offline."""


class Output(Struct, frozen=True):
    """In which format, where to, and how it looks."""

    format: str = "text"
    out: str | None = None
    force: bool = False
    color: str = "auto"
    verbose: bool = False
    checklist: bool = False

    def checked(self, formats: Iterable[str]) -> Output:
        """Give the same, after asking that the format is one of `formats` and that `out` may be written.

        Raises `UsageError` when one of them is not as it should be, before any work is done.
        """
        one_of("--format", self.format, tuple(formats))
        one_of("--color", self.color, _AUTO)
        if self.out is not None and not self.force:
            from forensics.io.places.written import is_taken  # noqa: PLC0415 - not on the path of --help

            if is_taken(self.out):
                raise UsageError(f"{self.out} exists", help="give --force to replace it, or another name to -o")
        return self

    @property
    def style(self) -> Style:
        """How text is to look: the terminal's width on a terminal, else 80 columns; no colour in a file."""
        to_terminal = self.out is None and sys.stdout.isatty()
        width = max(40, shutil.get_terminal_size().columns) if to_terminal else 80
        color = self.out is None and wants_color(self.color, os.environ, terminal=to_terminal)
        return Style(width=width, color=color, verbose=self.verbose, checklist=self.checklist)


def wants_color(when: str, env: Mapping[str, str], *, terminal: bool) -> bool:
    """Decide on colour: the option, then NO_COLOR, then FORCE_COLOR, then TERM=dumb, then whether it is a terminal."""
    if when != "auto":
        return when == "always"
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR"):
        return True
    return terminal and env.get("TERM") != "dumb"


def one_of(option: str, value: str, known: tuple[str, ...]) -> str:
    """Give `value` back if it is known; raises `UsageError` with the nearest known value, when it is not."""
    if value not in known:
        message = f"{option}: {value!r} is not one of {', '.join(known)}{suggestion(value, known)}"
        raise UsageError(message, help="forensics COMMAND --help")
    return value
