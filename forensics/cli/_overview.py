"""The commands there are, and the page of `forensics --help`: found by a walk over `commands`, without importing any.

A command is one file of that folder: its docstring is the help page, its function
`command` is the command. The first line of the docstring is read from the file, because `--help` must cost nothing.
"""

from __future__ import annotations

import pkgutil

_PACKAGE = "forensics.cli.commands"
_HEAD = """\
Usage: forensics COMMAND [OPTIONS] ...

  What went wrong in a training run, where it started, what proves it and what
  to do now: offline, from the files it left.

Commands:
"""
_TAIL = """
Options:
  --version             Print the version and exit.
  --install-completion  Install completion for the current shell.
  --show-completion     Print the completion script of the current shell.
  --help                Print this page; COMMAND --help for a command's own.

Exit codes:
  0 ran, nothing at or above --fail-on   1 ran, findings   2 usage error
  3 cannot say   4 input was lost (--strict)   70 a bug of forensics
  130 interrupted   141 closed pipe   143 ended by SIGTERM
"""


def names(path: list[str]) -> tuple[str, ...]:
    """Names of the commands in the folder `path`, as typed (`nan-origin`), sorted."""
    modules = (m.name for m in pkgutil.iter_modules(path))
    return tuple(sorted(m.replace("_", "-") for m in modules if not m.startswith("_")))


def module_of(name: str) -> str:
    return f"{_PACKAGE}.{name.replace('-', '_')}"


def summary(name: str) -> str:
    """First line of a command's docstring, without its full stop."""
    source = pkgutil.get_data(_PACKAGE, f"{name.replace('-', '_')}.py") or b""
    first = source.split(b"\n", 1)[0].decode()
    return first.strip('"').rstrip(".")


def page(path: list[str]) -> str:
    every = names(path)
    width = max(map(len, every))
    return _HEAD + "".join(f"  {name:<{width}}  {summary(name)}\n" for name in every) + _TAIL
