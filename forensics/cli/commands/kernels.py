"""Show what the GPUs did in profiler traces; two: what changed.

TRACE is a trace of torch.profiler or a folder of them, one a rank. One gives a table; two are compared, the first is
the base; three or more are taken for ranks of one job.

Exit codes: 0 there is a table; 3 cannot say, no trace or no device work was found.
"""

from __future__ import annotations

from typing import Annotated

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer
from forensics.cli._shared import Shared, reads_runs
from forensics.errors import ExitCode
from forensics.io.places.named import place_of

_PAIR = 2
_LIKE = ("forensics", "kempnerforge")
TracesArgument = Annotated[list[str], typer.Argument(metavar="TRACE...", help="Traces, or folders of traces.")]
PerStepOption = Annotated[bool, typer.Option("--per-step", help="Also one line a step.")]
PerRankOption = Annotated[bool, typer.Option("--per-rank", help="Every rank by itself, not their sum.")]
LikeOption = Annotated[str, typer.Option("--like", metavar="NAME", help="Categories of: forensics or kempnerforge.")]
TopOption = Annotated[int, typer.Option("--top", min=0, metavar="N", help="Kernels to list; 0 lists all.")]


@reads_runs("text", "json", "markdown")
def command(  # noqa: PLR0913 - each is an option of the command line
    traces: TracesArgument,
    *,
    per_step: PerStepOption = False,
    per_rank: PerRankOption = False,
    like: LikeOption = "forensics",
    top: TopOption = 10,
    shared: Shared,
) -> Answer:
    """Show where GPU time goes, or what changed between two traces."""
    from forensics.analyses.coverage import coverage_of  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.analyses.traces.kernel_categories import like_kempnerforge  # noqa: PLC0415 - same
    from forensics.compare.kernel_profile import profile  # noqa: PLC0415 - same
    from forensics.compare.kernels import diff  # noqa: PLC0415 - same
    from forensics.report.pages import kernels as page  # noqa: PLC0415 - same
    from forensics.store.gather import issues_of  # noqa: PLC0415 - same
    from forensics.store.run import joined  # noqa: PLC0415 - same

    opt.one_of("--like", like, _LIKE)
    naming = like_kempnerforge if like == "kempnerforge" else str
    runs = {place_of(name).name: shared.reading.run(name, device_only=True) for name in dict.fromkeys(traces)}
    run, *more = runs.values()
    whole = run if not more else joined(" ".join(runs), runs)
    found = diff(run, more[0], naming) if len(runs) == _PAIR else None
    shown = profile(whole, naming) if found is None else found.cand
    code = ExitCode.OK if page.has_work(shown) else ExitCode.CANNOT_SAY
    read = page.Page(shown, found, top, per_step, per_rank, coverage=coverage_of(whole), issues=issues_of(whole))
    return shared.answer(read, page.LAYOUT.render, code, *runs.values())
