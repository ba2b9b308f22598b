"""The options of `forensics` itself, before any command."""

from __future__ import annotations

from typing import Annotated

import typer

from forensics.cli._crash import version


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"forensics {version()}")
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """What went wrong in a training run, where it started, what proves it and what to do now: offline."""
