"""Write a run's metrics as CSV, Parquet, TensorBoard or W&B files.

--to csv, jsonl, pandas or parquet writes one file; --to tensorboard or wandb a folder with one sub-folder per source,
rank and attempt. Nothing is written into RUN, and nothing is sent anywhere.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer, Gate, lines, losses
from forensics.cli._reading import Reading
from forensics.errors import ExitCode, InputError, UsageError
from forensics.io.places.named import place_of

if TYPE_CHECKING:
    from forensics.export.target import Export, Target
    from forensics.store.run import Run

ToOption = Annotated[
    str, typer.Option("--to", metavar="TARGET", help="csv, jsonl, pandas, parquet, tensorboard or wandb.")
]
PlaceOption = Annotated[
    Path,
    typer.Option("-o", "--output", metavar="PLACE", help="The file or folder to write.", parser=opt.on_this_machine),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Let -o replace a file, or a folder of an earlier export.")]
MetricsOption = Annotated[
    list[str] | None,
    typer.Option("--metrics", metavar="GLOB", help="Only metrics of this name, as 'loss*'; may be repeated."),
]
WideOption = Annotated[bool, typer.Option("--wide", help="One row per record (csv, jsonl), not one per point.")]
_NAMED = 8


def command(  # noqa: PLR0913 - each is an option of the command line
    run: opt.RunArgument,
    *,
    to: ToOption,
    place: PlaceOption,
    metrics: MetricsOption = None,
    wide: WideOption = False,
    store: opt.StoreOption = None,
    force: ForceOption = False,
    exit_zero: opt.ExitZeroOption = False,
    strict: opt.StrictOption = False,
    quiet: opt.QuietOption = False,
) -> Answer:
    """Write the points of a run to a place outside of it; exit 3 when the run has none."""
    from forensics.analyses.coverage import coverage_of  # noqa: PLC0415 - same
    from forensics.export import publish  # noqa: PLC0415 - polars is not on the path of --help
    from forensics.export import target as targets  # noqa: PLC0415 - same
    from forensics.export.points import select  # noqa: PLC0415 - same
    from forensics.io.safe_text import printable  # noqa: PLC0415 - same

    target = _loaded(opt.one_of("--to", to, targets.names()))
    if wide and not target.wide:
        raise UsageError(f"--wide: {to} has one form only", help="forensics export --help")
    publish.check_place(place_of(run).folder, place, folder=target.folder)
    read = Reading(store, quiet=quiet).run(run)
    selection = select(read, metrics or (), wide=wide)
    if selection.points.is_empty():
        raise _nothing(read, metrics)
    try:
        written = target.write(selection)
    except ImportError as error:
        raise _missing(to, error) from error
    publish.publish(written, target, selection, place, force=force)
    coverage = coverage_of(read)
    notes = (*written.notes, *losses(coverage))
    code = Gate(exit_zero=exit_zero, strict=strict).code(ExitCode.OK, [coverage])
    return Answer(_told(target, written, selection.points.height, place), code, notes=tuple(map(printable, notes)))


def _told(target: Target, written: Export, points: int, place: Path) -> str:
    from forensics.io.safe_text import printable  # noqa: PLC0415 - not on the path of --help
    from forensics.report.phrases import plural  # noqa: PLC0415 - same

    opening = (o.replace("PLACE", shlex.quote(str(place))).replace("FILE", repr(str(place))) for o in target.opening)
    head = f"{target.name}: {plural(points, 'point')} in {plural(len(written.files), 'file')}: {place}"
    return lines(map(printable, (head, *(("open it with:", *opening) if target.opening else ()))))


def _loaded(name: str) -> Target:
    from forensics.export import target as targets  # noqa: PLC0415 - polars is not on the path of --help

    try:
        return targets.load(name)
    except ImportError as error:
        raise _missing(name, error) from error


def _missing(name: str, error: ImportError) -> UsageError:
    package = (error.name or name).split(".")[0]
    return UsageError(f"--to {name} writes with {package}, which is not installed", help=f"pip install {package}")


def _nothing(run: Run, globs: list[str] | None) -> InputError | UsageError:
    names = run.scan("metrics").select("name").unique().collect()["name"].drop_nulls().sort().to_list()
    if not names:
        return InputError(f"no metric in {run.name}", help=f"forensics ingest {run.name} shows what was read")
    shown = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
    return UsageError(f"--metrics: nothing fits {', '.join(globs or [])}", help=f"the run has {shown}")
