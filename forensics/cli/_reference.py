"""`python -m forensics.cli._reference DIR`: the reference pages, written from the code (`make docs`); a test compares.

It also runs every command of the ```console blocks in README.md and the pages beside DIR, from the working directory,
and puts what they print under them.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from forensics import cli
from forensics.cli import _overview
from forensics.cli.main import run

_CONSOLE = re.compile(r"```console\n(?P<commands>.*?)```", re.DOTALL)
_WRITTEN = "<!-- written by `make docs`: do not edit -->"


def pages() -> dict[str, str]:
    """File name and content of every page."""
    return {"cli.md": "\n".join(_cli()), "documents.md": "\n".join(_documents())}


def _help(*args: str) -> str:
    os.environ["COLUMNS"] = "80"
    with contextlib.redirect_stdout(io.StringIO()) as out:
        run([*args, "--help"])
    return out.getvalue().rstrip()


def _cli() -> Iterator[str]:
    yield from (_WRITTEN, "# Commands", "", "```text", _help(), "```", "")
    for name in _overview.names(list(cli.__path__)):
        yield from (f"## forensics {name}", "", "```text", _help(name), "```", "")


def _documents() -> Iterator[str]:
    yield from (_WRITTEN, "# JSON documents", "")
    yield "Fields may be added, never renamed. Non-finite numbers are the strings `NaN`, `Infinity`, `-Infinity`."
    folder = files("forensics.report") / "_schema"
    for one in sorted((f for f in folder.iterdir() if f.name.endswith(".schema.json")), key=lambda f: f.name):
        schema = json.loads(one.read_text(encoding="utf-8"))
        yield from ("", f"## {schema['title']}", "", f"Schema: `forensics/report/_schema/{one.name}`", "")
        defs: Mapping[str, Any] = schema["$defs"]
        top = {key: value for key, value in schema["properties"].items() if key not in {"schema", "tool"}}
        for title, properties in ((("document", top),) if top else ()) + tuple(
            (key, value["properties"]) for key, value in defs.items() if key != "tool"
        ):
            described = f": {defs[title]['description']}" if "description" in defs.get(title, {}) else ""
            yield f"- **{title}**{described}"
            yield from (f"  - `{field}`: {_kind(value)}" for field, value in properties.items())
    yield ""


def _kind(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return schema["$ref"].rsplit("/", 1)[-1]
    if "enum" in schema:
        return " | ".join("null" if value is None else f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_kind(each) for each in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}"
    if schema.get("type") == "object" and "properties" in schema:
        return "{" + ", ".join(schema["properties"]) + "}"
    kinds: str | list[str] = schema.get("type", "any")
    return kinds if isinstance(kinds, str) else " | ".join(kinds)


def played(page: str) -> str:
    """Give a page whose ```console blocks show what their commands print now; `$ make` lines stay as they are."""
    return _CONSOLE.sub(lambda block: f"```console\n{_play(block['commands'])}```", page)


def _play(block: str) -> str:
    shown = list[str]()
    for line in block.splitlines():
        if line.startswith("$ forensics "):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                run(shlex.split(line.removeprefix("$ forensics ")))
            shown += [line, *out.getvalue().splitlines()]
        elif line.startswith("$ "):
            shown.append(line)
    return "".join(f"{line}\n" for line in shown)


def main(folder: Path) -> None:
    """Write every page into `folder`, and play the blocks of the pages around it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")
    for path in (Path("README.md"), *sorted(folder.parent.rglob("*.md"))):
        if path.is_file() and "```console" in (page := path.read_text(encoding="utf-8")):
            path.write_text(played(page), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
