"""The options of every command that reads runs, and the one step from what it found to its answer."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from forensics.cli import _options as opt
from forensics.cli._answer import Answer, Gate, lines
from forensics.cli._reading import Reading

if TYPE_CHECKING:
    from forensics.config import Config
    from forensics.errors import ExitCode
    from forensics.model import Report
    from forensics.report.payload import Accounted
    from forensics.report.style import Style
    from forensics.store.run import Run


A = TypeVar("A", bound="Accounted")
Render = Callable[[A, str, "Style"], Iterator[str]]
Command = Callable[..., Answer]
#: Further files of an answer, each with its text.
Pages = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Shared:
    """What such a command is asked beside its own options: a field here is an option of each of them."""

    format_: opt.ReportFormatOption = "text"
    store: opt.StoreOption = None
    out: opt.OutOption = None
    force: opt.ForceOption = False
    exit_zero: opt.ExitZeroOption = False
    strict: opt.StrictOption = False
    redact: opt.RedactOption = False
    quiet: opt.QuietOption = False
    jobs: opt.JobsOption = None
    engine: opt.EngineOption = "local"
    color: opt.ColorOption = "auto"
    verbose: opt.VerboseOption = False

    @property
    def reading(self) -> Reading:
        return Reading(self.store, self.redact, self.quiet, self.jobs, opt.one_of("--engine", self.engine, opt.ENGINES))

    @property
    def output(self) -> opt.Output:
        return opt.Output(self.format_, self.out, self.force, self.color, self.verbose)

    def printed(self, text: Iterable[str]) -> Answer:
        """Give the lines of a command that reads no run."""
        return Answer(lines(text), out=self.out, force=self.force)

    def judged(self, text: Iterable[str], settings: Config, reports: Sequence[Report], also: Pages = ()) -> Answer:
        """Give the lines that lay out judged runs, with the code that the findings stand for."""
        gate = Gate(settings.fail_on, self.exit_zero, self.strict)
        return Answer(lines(text), gate.of_reports(reports), self.out, self.force, settings.notes, also)

    def answer(self, page: A, render: Render[A], code: ExitCode, *runs: Run) -> Answer:
        """Lay out what was found in `runs`, redacted where that was asked; the format has no part in the code."""
        output = self.output
        text = lines(render(self.reading.shown(page, *runs), output.format, output.style))
        gate = Gate(exit_zero=self.exit_zero, strict=self.strict)
        return Answer(text, gate.code(code, [page.coverage]), self.out, self.force)


#: Options that mean nothing where no run is read; a list has no colour and no more to show, either.
NO_RUN = ("store", "exit_zero", "strict", "redact", "quiet", "jobs", "engine")
A_LIST = (*NO_RUN, "color", "verbose")


def reads_runs(*formats: str, without: tuple[str, ...] = ()) -> Callable[[Command], Command]:
    """Give a command the options of `Shared`, but those `without`, in place of its parameter `shared`.

    `formats` are what it can be written as; the first is the one that it is written as unasked. Without any it is
    written as renderers of reports say, and asks them itself.
    """

    def give(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters.values()
        options = [_option(field, formats) for field in dataclasses.fields(Shared) if field.name not in without]

        @functools.wraps(command)
        def called(**given: Any) -> Answer:  # noqa: ANN401 - each is an option of the command line
            told: dict[str, Any] = {option.name: given.pop(option.name) for option in options}
            shared = Shared(**dict[str, Any](format_="".join(formats[:1])) | told)
            if formats:
                shared.output.checked(formats)
            return command(**given, shared=shared)

        parameters = [*(p for p in own if p.name != "shared"), *options]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # of any function
        return called

    return give


def _option(field: dataclasses.Field[Any], formats: tuple[str, ...]) -> inspect.Parameter:
    kind = _hints()[field.name]
    if field.name == "format_" and formats:
        words = f"{', '.join(formats[:-1])} or {formats[-1]}."
        kind = Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help=words)]
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=kind)


@functools.cache
def _hints() -> dict[str, Any]:
    return inspect.get_annotations(Shared, eval_str=True)
