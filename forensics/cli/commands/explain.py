"""Explain a rule: what it detects, how it decides, its thresholds.

RULE is an id (NAN001) or a name (nan-first-nonfinite), as forensics rules lists them.
"""

from __future__ import annotations

from typing import Annotated

import typer

from forensics.cli import _complete
from forensics.cli import _options as opt
from forensics.cli._answer import Answer, lines
from forensics.errors import UsageError

RuleArgument = Annotated[
    str, typer.Argument(metavar="RULE", help="Id or name of the rule.", autocompletion=_complete.rules)
]


def command(
    rule: RuleArgument,
    *,
    format_: opt.FormatOption = "text",
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
) -> Answer:
    """Print the page of one rule."""
    from forensics import registry  # noqa: PLC0415 - rules load polars
    from forensics.config import suggestion  # noqa: PLC0415 - same
    from forensics.report.pages import catalogue  # noqa: PLC0415 - same

    output = opt.Output(format_, out, force).checked(catalogue.FORMATS)
    by_name = {name: r for r in registry.load("rules").rules for name in (r.id, r.slug)}
    found = by_name.get(rule) or by_name.get(rule.upper()) or by_name.get(rule.lower())
    if found is None:
        message = f"no such rule: {rule}{suggestion(rule, by_name)}"
        raise UsageError(message, help="forensics rules lists them all")
    return Answer(lines(catalogue.explanation(found, output.format)), out=out, force=force)
