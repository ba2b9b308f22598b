"""`python docs/make_reference.py DIR`: contracts as pages, written from the code (`make docs`); a test compares.

It also runs every command of the ```console blocks in README.md and the pages beside DIR, from the working directory,
and puts what they print under them. Pages that grow with each new file (rules, formats, dialects, metric names,
figures) are written by `make_site.py`, when the site is built.
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
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from reference_tables import tables

from forensics.cli import _overview, commands
from forensics.cli.main import run
from forensics.errors import ExitCode
from forensics.patterns import lazily

#: Output may hold fences, but only indented ones.
_CONSOLE = lazily(r"^```console\n(?P<commands>.*?)^```$", re.DOTALL | re.MULTILINE)
_CODE = "$ echo $?"
_DOCUMENT = lazily(r'"(forensics\.[a-z-]+/\d+)"')
WRITTEN = "<!-- written by `make docs`: do not edit -->"


# The ```console blocks of a page, played: each command is run in this process, and what it prints is put under it.
#
# A line `$ forensics …` is run, a line `$ echo $?` gives the exit code of the one before; other `$` lines stay as they
# are, without output. A line that ends in a backslash goes on in the next one.


def played(page: str) -> str:
    """Give a page whose ```console blocks show what their commands print now; `$ make` lines stay as they are."""
    return _CONSOLE.sub(lambda block: f"```console\n{_play(block['commands'])}```", page)


def _play(block: str) -> str:
    shown = list[str]()
    code = 0
    for line in _commands(block):
        shown.append(line)
        if line == _CODE:
            shown.append(str(code))
        elif line.startswith("$ forensics "):
            code, printed = answer(line.removeprefix("$ forensics ").replace("\\\n", " "))
            shown += printed.splitlines()
    return "".join(f"{line}\n" for line in shown)


def _commands(block: str) -> Iterator[str]:
    """Give the command lines of a block, each with its continuation lines."""
    lines = iter(block.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line
            while command.endswith("\\"):
                command += "\n" + next(lines)
            yield command


@lru_cache(maxsize=256)
def answer(command: str) -> tuple[int, str]:
    """Exit code and standard output of `forensics COMMAND`; asked once for all pages, as it prints the same each time.

    A command that writes files writes them once.

    Raises:
        AssertionError: where the command met a bug; no page may show that.
    """
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
        code = run(shlex.split(command, comments=True))
    assert code != ExitCode.BUG, command
    return code, out.getvalue()


def pages() -> dict[str, str]:
    """File name and content of every page that is kept in the repository."""
    made = {
        "cli.md": _cli(),
        "documents.md": _documents(),
        "tables.md": tables(),
    }
    return {name: "\n".join((WRITTEN, *lines)) for name, lines in made.items()}


def _help(*args: str) -> str:
    os.environ["COLUMNS"] = "80"
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = run([*args, "--help"])
    assert code == ExitCode.OK, args
    return out.getvalue().rstrip()


def _cli() -> Iterator[str]:
    yield from ("# Commands", "", "```text", _help(), "```", "")
    for name in _overview.names(list(commands.__path__)):
        yield from (f"## forensics {name}", "", "```text", _help(name), "```", "")


def _documents() -> Iterator[str]:
    yield from ("# JSON documents", "")
    yield "Fields may be added, never renamed. Non-finite numbers are the strings `NaN`, `Infinity`, `-Infinity`."
    folder = files("forensics.report") / "_schema"
    titles = set[str]()
    for one in sorted((f for f in folder.iterdir() if f.name.endswith(".schema.json")), key=lambda f: f.name):
        schema = json.loads(one.read_text(encoding="utf-8"))
        titles.add(schema["title"])
        yield from ("", f"## {schema['title']}", "", f"Schema: `forensics/report/_schema/{one.name}`", "")
        defs: Mapping[str, Any] = schema["$defs"]
        top = {key: value for key, value in schema["properties"].items() if key not in {"schema", "tool"}}
        for title, properties in ((("document", top),) if top else ()) + tuple(
            (key, value["properties"]) for key, value in defs.items() if key != "tool"
        ):
            described = f": {defs[title]['description']}" if "description" in defs.get(title, {}) else ""
            yield f"- **{title}**{described}"
            yield from (f"    - `{field}`: {_kind(value)}" for field, value in properties.items())
    others = ", ".join(f"`{name}`" for name in sorted(_named() - titles))
    yield from ("", "## Smaller documents", "", f"These have no schema: {others}.")
    yield "Each is printed by a command with `--format json`: `rule` by `explain`; the others name their command."
    yield ""


def _named() -> set[str]:
    """Names of all documents that the code writes."""
    texts = (
        one.read_text(encoding="utf-8")
        for package in ("forensics.report", "forensics.report.pages", "forensics.cli", "forensics.cli.commands")
        for one in files(package).iterdir()
        if one.name.endswith(".py")
    )
    return {name for text in texts for name in _DOCUMENT.findall(text)}


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
