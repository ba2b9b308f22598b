"""Explain a rule: what it detects, how it decides, its thresholds.

RULE is an id (NAN001) or a name (nan-first-nonfinite), as forensics rules lists them.
"""

from __future__ import annotations

from typing import Annotated

import typer

from forensics.cli import _complete
from forensics.cli._answer import Answer
from forensics.cli._shared import A_LIST, Shared, reads_runs
from forensics.errors import UsageError

RuleArgument = Annotated[
    str, typer.Argument(metavar="RULE", help="Id or name of the rule.", autocompletion=_complete.rules)
]


@reads_runs("text", "json", "markdown", without=A_LIST)
def command(rule: RuleArgument, *, shared: Shared) -> Answer:
    """Print the page of one rule."""
    from forensics import registry  # noqa: PLC0415 - rules load polars
    from forensics.config import suggestion  # noqa: PLC0415 - same
    from forensics.report.pages import catalogue  # noqa: PLC0415 - same

    by_name = {name: r for r in registry.load("rules").rules for name in (r.id, r.slug)}
    found = by_name.get(rule) or by_name.get(rule.upper()) or by_name.get(rule.lower())
    if found is None:
        raise UsageError(f"no such rule: {rule}{suggestion(rule, by_name)}", help="forensics rules lists them all")
    return shared.printed(catalogue.explanation(found, shared.format_))
