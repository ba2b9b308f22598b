"""The entry point, and the one boundary that owns exit codes: every way to leave the program is decided in `run`."""

from __future__ import annotations

import gc
import os
import sys
import warnings

from forensics import cli
from forensics.cli import _overview
from forensics.errors import ExitCode, ForensicsError, InputError, UsageError

TYPE_CHECKING = False  # typing itself would cost a fifth of what --help may
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import typer

    from forensics.cli._answer import Answer

_GC_THRESHOLD = 200_000  # modules and frames are no garbage: Python's 700 looks at them again and again at start
_COMPLETE = "_FORENSICS_COMPLETE"
_PIPE_MARK = "PacifyFlushWrapper"  # what Typer puts in place of stdout once its reader has gone


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command line and give its exit code; nothing that happens inside leaves by another way."""
    args = list(sys.argv[1:] if argv is None else argv)
    if argv is None and not sys.warnoptions:  # what a library warns of is for developers, who ask for it with -W
        warnings.simplefilter("ignore")
    gc.set_threshold(_GC_THRESHOLD)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's threads for matrices wake up, spin and find no work
    try:
        _tolerant_streams()
        code = _answered(args)
        sys.stdout.flush()
    except BrokenPipeError:
        code = _pipe_closed()
    except ForensicsError as error:
        code = _refused(error)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except BaseException as error:  # noqa: BLE001 - the boundary: polars panics are no Exception
        code = _bug(error, args)
    return int(code)


def _tolerant_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr] # a test may replace the stream


def _answered(args: list[str]) -> int:
    if args[:1] in (["--help"], ["-h"]):
        sys.stdout.write(_overview.page(list(cli.__path__)))
        return ExitCode.OK
    if _COMPLETE in os.environ:  # the shell asks through the environment, without arguments
        answer = _parsed(["--help"])
        return answer if isinstance(answer, int) else ExitCode.OK
    if not args:
        sys.stderr.write(_overview.page(list(cli.__path__)))
        return ExitCode.USAGE
    answer = _parsed(args)
    if answer is None or isinstance(answer, int):  # an exit of Typer's own: --help of a command, completion
        return answer or ExitCode.OK
    return _delivered(answer)


def _parsed(args: list[str]) -> Answer | int | None:
    """Let Typer parse the line and call the command; only the command that is named is imported."""
    import typer.main  # noqa: PLC0415 - not on the path of --help

    command = typer.main.get_command(app(args[0]))
    try:
        return command.main(args=args, prog_name="forensics", standalone_mode=False)
    except SystemExit as stop:
        if type(sys.stdout).__name__ == _PIPE_MARK:
            raise BrokenPipeError from stop
        return stop.code if isinstance(stop.code, int) else 1
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error of Typer or of the click it stands on
            raise UsageError(error.format_message(), help=_help_for(args)) from error  # type: ignore[attr-defined]
        if type(error).__name__ == "Abort":
            raise KeyboardInterrupt from error
        raise


def app(named: str = "") -> typer.Typer:
    """Build the Typer application with the command `named`, or with every command when there is none of that name."""
    from importlib import import_module  # noqa: PLC0415 - not on the path of --help

    import typer  # noqa: PLC0415 - not on the path of --help

    from forensics.cli._root import root  # noqa: PLC0415 - it needs typer

    built = typer.Typer(name="forensics", rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=True)
    built.callback()(root)
    every = _overview.names(list(cli.__path__))
    for name in (named,) if named in every else every:
        module = import_module(_overview.module_of(name))
        built.command(name, help=module.__doc__)(module.command)
    return built


def _help_for(args: list[str]) -> str:
    name = args[0] if args and args[0] in _overview.names(list(cli.__path__)) else ""
    return f"forensics {name} --help" if name else "forensics --help"


def _delivered(answer: Answer) -> int:
    for note in answer.notes:
        sys.stderr.write(f"note: {note}\n")
    for path, text in answer.also:
        _written(path, text, force=answer.force)
    if answer.out is None:
        sys.stdout.write(answer.text)
    else:
        _written(answer.out, answer.text, force=answer.force)
    return answer.code


def _written(path: Path, text: str, *, force: bool) -> None:
    from forensics.io.atomic import write_atomic  # noqa: PLC0415 - only with a file to write

    write_atomic(path, text.encode("utf-8", "backslashreplace"), force=force)
    sys.stderr.write(f"Wrote {path}\n")


def _refused(error: ForensicsError) -> ExitCode:
    from forensics.io.safe_text import printable  # noqa: PLC0415 - not on the path of --help

    sys.stderr.write(f"error: {printable(error.message)}\n  help: {printable(error.help)}\n")
    return ExitCode.CANNOT_SAY if isinstance(error, InputError) else ExitCode.USAGE


def _pipe_closed() -> ExitCode:
    # what is still buffered has no reader; without this the interpreter would complain at exit
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return ExitCode.CLOSED_PIPE


def _bug(error: BaseException, args: list[str]) -> ExitCode:
    from forensics.cli._crash import write_crash_file  # noqa: PLC0415 - a bug is rare

    where = write_crash_file(error, args)
    sys.stderr.write(f"error: a bug of forensics ({type(error).__name__}); no verdict was reached\n")
    sys.stderr.write(f"  file: {where}\n  help: report it with that file; forensics doctor shows the set-up\n")
    return ExitCode.BUG


if __name__ == "__main__":
    sys.exit(run())
