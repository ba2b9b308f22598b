"""Show the set-up: versions, plugins, configuration and its origins."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from forensics.cli._answer import Answer
from forensics.cli._shared import A_LIST, Shared, reads_runs
from forensics.errors import ExitCode, UsageError
from forensics.values import replace, tool_version

PACKAGES = ("typer", "polars", "pandas", "plotly", "tensorboard", "wandb", "orjson", "zstandard")

Sections = dict[str, dict[str, str]]


@reads_runs("text", "json", without=A_LIST)
def command(*, shared: Shared) -> Answer:
    """Show the set-up; exit 2 when something in it is broken."""
    sections, broken = _plugins()
    settings, wrong = _settings()
    every: Sections = {"versions": _versions(), **sections, "configuration": settings, "cache": _cache()}
    lines = _json(every) if shared.format_ == "json" else _table(every)
    return replace(shared.printed(lines), code=ExitCode.USAGE if broken or wrong else ExitCode.OK)


def _versions() -> dict[str, str]:
    found = {"forensics": tool_version(), "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "missing"
    return found


def _plugins() -> tuple[Sections, bool]:
    from forensics import registry  # noqa: PLC0415 - plugins load polars

    found = registry.load()
    counts = {kind: str(len(getattr(found, kind))) for kind in ("rules", "ingesters", "dialects", "renderers")}
    broken = {f"{b.kind}: {b.name}": b.why for b in found.broken}
    return ({"plugins": counts, "broken plugins": broken} if broken else {"plugins": counts}), bool(broken)


def _settings() -> tuple[dict[str, str], bool]:
    from forensics import config, registry  # noqa: PLC0415 - rules load polars

    try:
        settings = config.load(cwd=Path.cwd())
        settings.checked(registry.load("rules").rules)
    except UsageError as error:
        return {"error": f"{error.message}; {error.help}"}, True
    origins = settings.origins
    shown = {
        "ignore": f"{', '.join(settings.ignore) or 'none'} ({origins['ignore']})",
        "fail-on": f"{settings.fail_on} ({origins['fail-on']})",
    }
    for rule, table in sorted(settings.rule_tables.items()):
        values = ", ".join(f"{key} = {value}" for key, value in sorted(table.items()))
        shown[f"rules.{rule}"] = f"{values} ({origins[f'rules.{rule}']})"
    return shown, False


def _cache() -> dict[str, str]:
    from forensics.store.disk import default_place  # noqa: PLC0415 - it loads polars

    place = default_place()
    nearest = next((p for p in (place, *place.parents) if p.exists()), place)
    state = "writable" if os.access(nearest, os.W_OK) else "not writable"
    return {"place": str(place), "state": state if place.exists() else f"{state}, not made yet"}


def _json(sections: Sections) -> Iterator[str]:
    from forensics.report.json_v1 import encoded  # noqa: PLC0415 - not needed for text
    from forensics.report.payload import headed  # noqa: PLC0415 - same

    yield encoded(headed("forensics.doctor/1", {**sections}))


def _table(sections: Sections) -> Iterator[str]:
    from forensics.io.safe_text import printable  # noqa: PLC0415 - only for text

    for title, rows in sections.items():
        yield title
        for name, value in rows.items():
            yield f"  {name:<12}  {printable(value)}"
