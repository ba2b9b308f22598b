"""List what can be read: formats of files, and dialects of logs."""

from __future__ import annotations

from forensics.cli._answer import Answer
from forensics.cli._shared import A_LIST, Shared, reads_runs


@reads_runs("text", "json", "markdown", without=A_LIST)
def command(*, shared: Shared) -> Answer:
    """List ingesters and dialects."""
    from forensics import registry  # noqa: PLC0415 - ingesters load polars
    from forensics.report.pages import catalogue  # noqa: PLC0415 - same

    found = registry.load("ingesters", "dialects")
    return shared.printed(catalogue.formats(found, shared.format_, shared.output.style))
