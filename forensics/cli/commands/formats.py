"""List what can be read: formats of files, and dialects of logs."""

from __future__ import annotations

from forensics.cli import _options as opt
from forensics.cli._answer import Answer, lines


def command(
    *,
    format_: opt.FormatOption = "text",
    out: opt.OutOption = None,
    force: opt.ForceOption = False,
) -> Answer:
    """List ingesters and dialects."""
    from forensics import registry  # noqa: PLC0415 - ingesters load polars
    from forensics.report.pages import catalogue  # noqa: PLC0415 - same

    output = opt.Output(format_, out, force).checked(catalogue.FORMATS)
    found = registry.load("ingesters", "dialects")
    return Answer(lines(catalogue.formats(found, output.format, output.style)), out=out, force=force)
