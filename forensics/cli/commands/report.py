"""Write one self-contained page: verdict, charts, evidence.

RUN is a run directory or one file of it; several runs go on one page, those that failed the same way together. The
page needs no network and no script, and can be sent to a colleague as it is.

Exit codes: as of forensics triage.
"""

from __future__ import annotations

from typing import Annotated

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer
from forensics.cli._shared import Shared, reads_runs

BaselineOption = Annotated[
    list[str] | None,
    typer.Option(
        "--baseline",
        metavar="GOOD",
        help="A run to compare with: settings, evaluations, throughput; may be repeated.",
    ),
]
InteractiveOption = Annotated[
    bool, typer.Option("--interactive", help="Let charts be zoomed: about 5 MB more, still nothing loaded.")
]


@reads_runs("html", without=("format_", "color", "verbose"))
def command(  # noqa: PLR0913 - each is an option of the command line
    runs: opt.RunsArgument,
    *,
    fail_on: opt.FailOnOption = None,
    ignore: opt.IgnoreOption = None,
    interactive: InteractiveOption = False,
    baseline: BaselineOption = None,
    shared: Shared,
) -> Answer:
    """Judge each run and lay out the page."""
    from forensics.cli._judge import Asked, judged  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.report.html.page import render_many  # noqa: PLC0415 - same

    ignored, baselines = tuple(ignore or ()), tuple(baseline or ())
    asked = Asked(tuple(runs), fail_on, ignored, shared.reading, figures=True, baselines=baselines)
    settings, reports = judged(asked)
    return shared.judged(render_many(reports, live=interactive), settings, reports)
