"""Show past diagnoses by failure: how often, when, in which runs.

DIR is the folder that `forensics triage --history DIR` adds to.

Exit codes: 0 whatever the history holds; 2 when it cannot be read.
"""

from __future__ import annotations

from typing import Annotated

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer, lines
from forensics.errors import ExitCode, UsageError

FolderArgument = Annotated[
    str,
    typer.Argument(metavar="DIR", help="The folder of a history, or its address in a bucket.", parser=opt.written_to),
]
_FORMATS = ("text", "json", "markdown")


def command(  # noqa: PLR0913 - each is an option of the command line
    where: FolderArgument,
    *,
    format_: opt.FormatOption = "text",
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
    color: opt.ColorOption = "auto",
    verbose: opt.VerboseOption = False,
) -> Answer:
    """Read a history and lay out its failures."""
    from forensics.history.shelf import history  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.io.places.named import place_of  # noqa: PLC0415 - same
    from forensics.report.pages import history as pages  # noqa: PLC0415 - same

    output = opt.Output(format_, out, force, color, verbose).checked(_FORMATS)
    found, folder = history(where), place_of(where).folder
    if not found.past and not found.unusable and (folder is None or not folder.is_dir()):
        message = f"{where!r} holds no history"
        raise UsageError(message, help="forensics triage RUN --history DIR starts one")
    page = pages.Page(where, found)
    return Answer(lines(pages.render(page, output.format, output.style)), ExitCode.OK, out, force)
