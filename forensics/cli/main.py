"""The entry point, and the one boundary that owns exit codes: every way to leave the program is decided in `run`."""

from __future__ import annotations

import gc
import os
import sys
import warnings

from forensics.cli import _overview, commands
from forensics.cli._streams import let_go_of_output, made_whole, refused_output, tell
from forensics.errors import ExitCode, ForensicsError, InputError, PlaceError, UsageError, errno_of

TYPE_CHECKING = False  # typing itself would cost a fifth of what --help may
if TYPE_CHECKING:
    from collections.abc import Sequence

    import typer

    from forensics.cli._answer import Answer

_GC_THRESHOLD = 200_000  # modules and frames are no garbage: Python's 700 looks at them again and again at start
_LESS_MEMORY = "forensics COMMAND RUN --store DIR holds less in memory; ulimit -v shows what is allowed"
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
        if argv is None:
            _end_in_order()
        made_whole()
        code = _answered(args)
        sys.stdout.flush()
    except BrokenPipeError:
        let_go_of_output()
        code = ExitCode.CLOSED_PIPE
    except ForensicsError as error:
        code = _refused(error)
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except _TerminatedError:
        tell("error: ended by SIGTERM; no verdict was reached\n  help: run the same command again\n")
        code = ExitCode.TERMINATED
    except BaseException as error:  # noqa: BLE001 - the boundary: polars panics are no Exception
        refusal = _refusal(error)
        code = _refused(refusal) if refusal is not None else _bug(error, args)
    if argv is None:
        gc.freeze()  # the process ends: Python would look twice through all that is alive for cycles
    return int(code)


class _TerminatedError(BaseException):
    """The system asked the program to end: what it holds is cleaned up on the way out."""


def _end_in_order() -> None:
    import signal  # noqa: PLC0415 - only a process of our own listens

    def end(_number: int, _frame: object) -> None:
        raise _TerminatedError

    signal.signal(signal.SIGTERM, end)


def _refusal(error: BaseException) -> ForensicsError | None:
    """What the machine refused, in words: a place, a stream or memory; None for a bug of ours."""
    if isinstance(error, MemoryError):
        return UsageError("the memory of this machine, or what is allowed of it, is used up", help=_LESS_MEMORY)
    known = isinstance(error, OSError) or type(error).__module__.startswith("polars")
    if not known or errno_of(error) is None:
        return None
    name: object = getattr(error, "filename", None)
    if isinstance(name, str | bytes) and name:
        return PlaceError(os.fsdecode(name), error)
    if (refused := refused_output()) is not None:
        return PlaceError("standard output", refused)
    if not _has_folder():
        return UsageError("the working folder has been removed", help="cd to a folder that exists, then run it again")
    return PlaceError(str(error) or "a file", error)


def _has_folder() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - pathlib costs more than --help may
    except OSError:
        return False
    return True


def _answered(args: list[str]) -> int:
    if args[:1] in (["--help"], ["-h"]):
        sys.stdout.write(_overview.page(list(commands.__path__)))
        return ExitCode.OK
    if _COMPLETE in os.environ:  # the shell asks through the environment, without arguments
        answer = _parsed(["--help"])
        return answer if isinstance(answer, int) else ExitCode.OK
    if not args:
        sys.stderr.write(_overview.page(list(commands.__path__)))
        return ExitCode.USAGE
    _check(args)
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
        if hasattr(error, "format_message"):  # a usage error of Typer or of click below it
            raise UsageError(error.format_message(), help=_help_for(args)) from error  # type: ignore[attr-defined]
        if type(error).__name__ == "Abort":
            raise KeyboardInterrupt from error
        raise


def app(named: str = "") -> typer.Typer:
    """Build the Typer application with the command `named`, or with every command when there is none of that name."""
    from importlib import import_module  # noqa: PLC0415 - not on the path of --help

    import typer  # noqa: PLC0415 - not on the path of --help

    from forensics.cli._options import root  # noqa: PLC0415 - it needs typer

    built = typer.Typer(name="forensics", rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=True)
    built.callback()(root)
    every = _overview.names(list(commands.__path__))
    for name in (named,) if named in every else every:
        module = import_module(_overview.module_of(name))
        built.command(name, help=module.__doc__)(module.command)
    return built


def _check(args: list[str]) -> None:
    """Refuse what no path, name or number can be: an unset variable must not mean the working folder."""
    for before, arg in zip(["", *args], args, strict=False):
        option, equals, value = arg.partition("=")
        if not arg or (equals and not value and option.startswith("--")):
            what = option or (before if before.startswith("-") else "an argument")
            raise UsageError(f"{what} is empty: is a variable not set?", help=_help_for(args))
        if "\0" in arg:
            raise UsageError(f"{arg!r}: no name holds a zero byte", help=_help_for(args))


def _help_for(args: list[str]) -> str:
    name = args[0] if args and args[0] in _overview.names(list(commands.__path__)) else ""
    return f"forensics {name} --help" if name else "forensics --help"


def _delivered(answer: Answer) -> int:
    for note in answer.notes:
        tell(f"note: {note}\n")
    for path, text in answer.also:
        _written(path, text, force=answer.force)
    if answer.out is None:
        _print(answer.text)
    else:
        _written(answer.out, answer.text, force=answer.force)
    return answer.code


def _print(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        let_go_of_output()
        raise PlaceError("standard output", error) from error


def _written(path: str, text: str, *, force: bool) -> None:
    from forensics.io.places.written import write  # noqa: PLC0415 - only with a file to write

    write(path, text.encode("utf-8", "backslashreplace"), force=force)
    tell(f"Wrote {path}\n")


def _refused(error: ForensicsError) -> ExitCode:
    from forensics.io.safe_text import printable  # noqa: PLC0415 - not on the path of --help

    tell(f"error: {printable(error.message)}\n  help: {printable(error.help)}\n")
    return ExitCode.CANNOT_SAY if isinstance(error, InputError) else ExitCode.USAGE


def _bug(error: BaseException, args: list[str]) -> ExitCode:
    from forensics.cli._crash import write_crash_file  # noqa: PLC0415 - a bug is rare

    where = write_crash_file(error, args)
    tell(f"error: a bug of forensics ({type(error).__name__}); no verdict was reached\n")
    tell(f"  file: {where}\n  help: report it with that file; forensics doctor shows the set-up\n")
    return ExitCode.BUG


if __name__ == "__main__":
    sys.exit(run())
