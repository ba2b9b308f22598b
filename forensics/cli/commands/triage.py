"""Say what went wrong in a run, where it started and what proves it.

RUN is a run directory or one file of it. Several runs give one table, in which runs that failed the same way stand
together.

Exit codes: 0 nothing at or above --fail-on; 1 findings; 3 cannot say; 4 input was lost and --strict was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer, lines
from forensics.cli._shared import Shared, reads_runs
from forensics.values import replace

if TYPE_CHECKING:
    from forensics.model import Report
    from forensics.registry import Renderer

HtmlOption = Annotated[
    str | None,
    typer.Option("--html", metavar="FILE", help="Also write the HTML report to FILE.", parser=opt.written_to),
]

BaselineOption = Annotated[
    list[str] | None,
    typer.Option(
        "--baseline",
        metavar="GOOD",
        help="A run to compare evaluations with, and settings as their cause; may be repeated.",
    ),
]


@reads_runs()
def command(  # noqa: PLR0913 - each is an option of the command line
    runs: opt.RunsArgument,
    *,
    html: HtmlOption = None,
    baseline: BaselineOption = None,
    fail_on: opt.FailOnOption = None,
    ignore: opt.IgnoreOption = None,
    history: opt.HistoryOption = None,
    checklist: opt.ChecklistOption = False,
    shared: Shared,
) -> Answer:
    """Judge each run and lay out the verdicts."""
    from forensics import registry  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.cli._judge import Asked, judged  # noqa: PLC0415 - same

    form = registry.renderer_named(shared.format_)
    known = [form.name] if form is not None else [r.name for r in registry.load("renderers").renderers]
    output = replace(shared.output, checklist=checklist).checked(known)
    assert form is not None
    opt.Output("html", html, shared.force).checked(("html",))
    drawn = html is not None or form.drawn
    ignored, baselines = tuple(ignore or ()), tuple(baseline or ())
    settings, reports = judged(Asked(tuple(runs), fail_on, ignored, shared.reading, drawn, baselines, history))
    also = () if html is None else ((html, _page(reports)),)
    return shared.judged(rendered(reports, form, output), settings, reports, also)


def _page(reports: Sequence[Report]) -> str:
    from forensics.report.html.page import render_many  # noqa: PLC0415 - not on the path of --help

    return lines(render_many(reports))


def rendered(reports: Sequence[Report], form: Renderer, output: opt.Output) -> Iterator[str]:
    """Lay out one report, or several as the one document that they are in some formats."""
    style = (output.style,) if form.styled else ()
    if len(reports) != 1 and form.many is not None:
        return form.many(reports, *style)
    return (line for report in reports for line in form.render(report, *style))
