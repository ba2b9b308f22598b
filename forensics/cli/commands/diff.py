"""Compare two runs for CI: slower, faster, the same, or cannot say.

BASE and CAND are run directories or files. --base may be given several times: then the noise between runs is measured.

Exit codes: 0 no regression; 1 a confirmed regression; 3 cannot say.
"""

from __future__ import annotations

from typing import Annotated

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer
from forensics.cli._shared import Shared, reads_runs
from forensics.errors import ExitCode, UsageError
from forensics.values import replace

RunsArgument = Annotated[list[str], typer.Argument(metavar="[BASE] CAND", help="Baseline and candidate runs.")]
BaseOption = Annotated[list[str] | None, typer.Option("--base", metavar="RUN", help="A baseline run; may be repeated.")]
MetricOption = Annotated[
    str | None, typer.Option("--metric", metavar="NAME", help="Compare this metric, as printed, not the best one.")
]
SlowdownOption = Annotated[
    str, typer.Option("--max-slowdown", metavar="PERCENT", help="Loss of throughput that is allowed, as 5%.")
]
NoiseOption = Annotated[
    str | None,
    typer.Option("--run-noise", metavar="PERCENT", help="How much identical runs differ (sd); default 0.5%."),
]
InconclusiveOption = Annotated[
    str, typer.Option("--inconclusive", metavar="WHAT", help="When it cannot say: report (exit 3), pass or fail.")
]
SectionOption = Annotated[
    list[str] | None,
    typer.Option("--section", metavar="NAME", help="Only these sections, as config,evals; may be repeated."),
]
AnywayOption = Annotated[
    bool, typer.Option("--anyway", help="Compare even if GPUs, batch, length or precision differ.")
]
_WHEN_OPEN = {"report": ExitCode.CANNOT_SAY, "pass": ExitCode.OK, "fail": ExitCode.FINDINGS}


@reads_runs("text", "markdown", "github", "junit", "json")
def command(  # noqa: PLR0913 - each is an option of the command line
    runs: RunsArgument,
    *,
    base: BaseOption = None,
    metric: MetricOption = None,
    max_slowdown: SlowdownOption = "1%",
    run_noise: NoiseOption = None,
    inconclusive: InconclusiveOption = "report",
    section: SectionOption = None,
    anyway: AnywayOption = False,
    shared: Shared,
) -> Answer:
    """Compare the throughput of a candidate run with that of one or more baselines."""
    from forensics.analyses.coverage import coverage_of  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.compare.decide import Policy  # noqa: PLC0415 - same
    from forensics.compare.diff import diff, kinds  # noqa: PLC0415 - same
    from forensics.compare.model import Options, joined  # noqa: PLC0415 - same
    from forensics.model import Coverage  # noqa: PLC0415 - same
    from forensics.report.pages import diff as pages  # noqa: PLC0415 - same
    from forensics.store.gather import issues_of  # noqa: PLC0415 - same

    opt.one_of("--inconclusive", inconclusive, tuple(_WHEN_OPEN))
    section = [name.strip() for given in section for name in given.split(",")] if section else None
    for name in section or ():
        opt.one_of("--section", name, tuple(kind.name for kind in kinds()))
    policy = Policy(max_slowdown=_share("--max-slowdown", max_slowdown))
    if run_noise is not None:
        policy = replace(policy, run_noise=_share("--run-noise", run_noise))
    options = Options(metric=metric, policy=policy, noise_given=run_noise is not None, anyway=anyway)
    bases, cand = _sides(runs, base or [])
    read = [shared.reading.one(path) for path in (*bases, cand)]
    found = diff(read[:-1], read[-1], options, section)
    files = tuple(replace(f, source=joined(r.name, f.source)) for r in read for f in coverage_of(r).files)
    issues = tuple(replace(i, source=joined(r.name, i.source)) for r in read for i in issues_of(r))
    code = _WHEN_OPEN[inconclusive] if found.answer.value == "inconclusive" else ExitCode.OK
    code = ExitCode.FINDINGS if found.answer.value == "regression" else code
    page = pages.Page(found, coverage=Coverage(files), issues=issues)
    return shared.answer(page, pages.LAYOUT.render, code, *read)


def _sides(runs: list[str], bases: list[str]) -> tuple[list[str], str]:
    if len(runs) > 2 or len(runs) + len(bases) < 2:
        message = "give a baseline and a candidate"
        raise UsageError(message, help="forensics diff BASE CAND, or forensics diff --base A --base B CAND")
    return [*runs[:-1], *bases], runs[-1]


def _share(option: str, text: str) -> float:
    """Read `5%`, `5 %` or `0.05`; the whole number `5` is refused, as it could mean either.

    Raises `UsageError` when it is none of them, or not between 0 and 90 %.
    """
    plain = text.strip()
    try:
        value = float(plain.removesuffix("%")) / (100 if plain.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 0.9:
        raise UsageError(f"{option}: {text!r} is not a percentage", help=f"write {option} 5% or {option} 0.05")
    return value
