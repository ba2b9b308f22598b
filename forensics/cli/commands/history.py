"""Show past diagnoses by failure: how often, when, in which runs.

DIR is the folder that `forensics triage --history DIR` adds to.

Exit codes: 0 whatever the history holds; 2 when it cannot be read.
"""

from __future__ import annotations

from typing import Annotated

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer
from forensics.cli._shared import NO_RUN, Shared, reads_runs
from forensics.errors import UsageError

FolderArgument = Annotated[
    str,
    typer.Argument(metavar="DIR", help="The folder of a history, or its address in a bucket.", parser=opt.written_to),
]


@reads_runs("text", "json", "markdown", without=NO_RUN)
def command(where: FolderArgument, *, shared: Shared) -> Answer:
    """Read a history and lay out its failures."""
    from forensics.history.shelf import history  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.io.places.named import place_of  # noqa: PLC0415 - same
    from forensics.report.pages import history as pages  # noqa: PLC0415 - same

    found, folder = history(where), place_of(where).folder
    if not found.past and not found.unusable and (folder is None or not folder.is_dir()):
        raise UsageError(f"{where!r} holds no history", help="forensics triage RUN --history DIR starts one")
    return shared.printed(pages.render(pages.Page(where, found), shared.format_, shared.output.style))
