"""List the rules: id, name, shape and what each detects."""

from __future__ import annotations

from typing import Annotated

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer
from forensics.cli._shared import A_LIST, Shared, reads_runs

ShapeOption = Annotated[str | None, typer.Option("--shape", metavar="SHAPE", help="Only the rules of one shape.")]


@reads_runs("text", "json", "markdown", without=A_LIST)
def command(*, shape: ShapeOption = None, shared: Shared) -> Answer:
    """List the rules."""
    from forensics import registry  # noqa: PLC0415 - rules load polars
    from forensics.model import Shape  # noqa: PLC0415 - same
    from forensics.report.pages import catalogue  # noqa: PLC0415 - same

    if shape is not None:
        opt.one_of("--shape", shape, tuple(Shape))
    rules = [r for r in registry.load("rules").rules if shape is None or r.shape.value == shape]
    return shared.printed(catalogue.rules(rules, shared.format_, shared.output.style))
