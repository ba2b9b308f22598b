"""List the rules: id, name, shape and what each detects."""

from __future__ import annotations

from typing import Annotated

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer, lines

ShapeOption = Annotated[str | None, typer.Option("--shape", metavar="SHAPE", help="Only the rules of one shape.")]


def command(
    *,
    shape: ShapeOption = None,
    format_: opt.FormatOption = "text",
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
) -> Answer:
    """List the rules."""
    from forensics import registry  # noqa: PLC0415 - rules load polars
    from forensics.model import Shape  # noqa: PLC0415 - same
    from forensics.report.pages import catalogue  # noqa: PLC0415 - same

    output = opt.Output(format_, out, force).checked(catalogue.FORMATS)
    if shape is not None:
        opt.one_of("--shape", shape, tuple(Shape))
    rules = [r for r in registry.load("rules").rules if shape is None or r.shape.value == shape]
    return Answer(lines(catalogue.rules(rules, output.format, output.style)), out=out, force=force)
