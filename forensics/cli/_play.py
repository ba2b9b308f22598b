"""The ```console blocks of a page, played: each command is run in this process, and what it prints is put under it.

A line `$ forensics …` is run, a line `$ echo $?` gives the exit code of the one before; other `$` lines stay as they
are, without output. A line that ends in a backslash goes on in the next one.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from functools import lru_cache

from forensics.cli.main import run
from forensics.errors import ExitCode
from forensics.patterns import lazily

#: Output may hold fences, but only indented ones.
_CONSOLE = lazily(r"^```console\n(?P<commands>.*?)^```$", re.DOTALL | re.MULTILINE)
_CODE = "$ echo $?"


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
