"""Write one self-contained page: verdict, charts, evidence.

RUN is a run directory or one file of it; several runs go on one page, those that failed the same way together. The
page needs no network and no script, and can be sent to a colleague as it is.

Exit codes: as of forensics triage.
"""

from __future__ import annotations

from typing import Annotated

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer, Gate, lines
from forensics.cli._reading import Reading

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


def command(  # noqa: PLR0913 - each is an option of the command line
    runs: opt.RunsArgument,
    *,
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
    fail_on: opt.FailOnOption = None,
    ignore: opt.IgnoreOption = None,
    exit_zero: opt.ExitZeroOption = False,
    strict: opt.StrictOption = False,
    store: opt.StoreOption = None,
    interactive: InteractiveOption = False,
    baseline: BaselineOption = None,
    redact: opt.RedactOption = False,
    quiet: opt.QuietOption = False,
    jobs: opt.JobsOption = None,
    engine: opt.EngineOption = "local",
) -> Answer:
    """Judge each run and lay out the page."""
    from forensics.cli._judge import Asked, judged  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.report.html.page import render_many  # noqa: PLC0415 - same

    opt.Output("html", out, force).checked(("html",))
    ignored = tuple(ignore or ())
    reading = Reading(store, redact, quiet, jobs, opt.one_of("--engine", engine, opt.ENGINES))
    asked = Asked(tuple(runs), fail_on, ignored, reading, figures=True, baselines=tuple(baseline or ()))
    settings, reports = judged(asked)
    gate = Gate(settings.fail_on, exit_zero, strict)
    return Answer(lines(render_many(reports, live=interactive)), gate.of_reports(reports), out, force, settings.notes)
