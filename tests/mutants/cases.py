"""The golden runs and pairs as cases: what the program answers of each, which lines it runs for that, and what is kept.

A rule that does not import the changed module gives what it gave, so its findings are kept, and so is what such modules
derived from a run: both are the same by construction, and a test compares them.
"""

from __future__ import annotations

import copyreg
import importlib
import json
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, MappingProxyType, ModuleType
from typing import Any

from forensics import registry
from forensics.store.run import Run
from forensics.values import field_names

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "golden"))
#: Modules of the golden runs that hold parts of the program: they are loaded anew with it.
BESIDE = ("answers",)
#: Folders of what decides; a line of another one is in no case.
TRACED = ("analyses", "case", "compare", "diagnosis", "rules", "stats")
_PACKAGE = str(HERE.parents[1] / "forensics")
_FOLDERS = tuple(f"{_PACKAGE}/{folder}/" for folder in TRACED)
Lines = dict[str, frozenset[int]]


def _proxy(values: dict[str, Any]) -> MappingProxyType[str, Any]:
    return MappingProxyType(values)


copyreg.pickle(MappingProxyType, lambda mapping: (_proxy, (dict(mapping),)))


@dataclass(frozen=True, slots=True)
class Case:
    """One run, or a pair of runs for `diff`: the folders of its runs, the last one the candidate."""

    name: str
    places: tuple[Path, ...]
    pair: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """What a case gave before any change: the answer, seconds, findings by rule, and the tables of each run."""

    answer: str
    seconds: float
    findings: dict[str, tuple[Any, ...]]
    tables: tuple[tuple[str, dict[str, Any]], ...]


def keep(case: Case, into: Path) -> tuple[str, float, Lines]:
    """Answer a case, and write down what it gave; gives its name, the seconds, and the lines that ran."""
    answers = importlib.import_module("answers")
    runs = [answers.read(place) for place in case.places]
    lines: dict[str, set[int]] = {}
    findings: dict[str, tuple[Any, ...]] = {}
    begin = time.perf_counter()
    with _shared(answers), _asked([_noted(rule, findings) for rule in _rules()]), _traced(lines):
        answer = asked(answers, case, runs)
    seconds = time.perf_counter() - begin
    tables = tuple((run.name, {name: frame.collect() for name, frame in run.frames.items()}) for run in runs)
    (into / f"{case.name}.pickle").write_bytes(pickle.dumps(Kept(answer, seconds, findings, tables)))
    return case.name, seconds, {name: frozenset(numbers) for name, numbers in lines.items()}


@dataclass
class Shelf:
    """What was kept of each case, read when it is first asked for, and what was derived from its runs since."""

    place: Path
    kept: dict[str, Kept] = field(default_factory=dict)
    derived: dict[str, dict[Any, Any]] = field(default_factory=dict)

    def of(self, case: Case) -> Kept:
        """What was kept of a case, from a file that `keep` wrote into a folder of this program's own."""
        if case.name not in self.kept:
            self.kept[case.name] = pickle.loads((self.place / f"{case.name}.pickle").read_bytes())
        return self.kept[case.name]

    def forget(self, anew: frozenset[str]) -> None:
        """Drop what modules that were loaded anew had derived."""
        for values in self.derived.values():
            for make in [make for make in values if make.__module__ in anew]:
                del values[make]

    def answer(self, case: Case, anew: frozenset[str]) -> str:
        """Answer a case by the program as it is loaded now, of which the modules `anew` may differ."""
        kept, answers = self.of(case), importlib.import_module("answers")
        runs = [Run(name, {table: frame.lazy() for table, frame in tables.items()}) for name, tables in kept.tables]
        for run in runs:
            run._derived.update(self.derived.get(f"{case.name} {run.name}", {}))
        with _shared(answers), _asked([_or_kept(rule, kept, anew) for rule in _rules()]):
            answer = asked(answers, case, runs)
        for run in runs:
            own = {make: value for make, value in run._derived.items() if make.__module__ not in anew}
            self.derived[f"{case.name} {run.name}"] = own
        return answer


def asked(answers: ModuleType, case: Case, runs: list[Run]) -> str:
    """What the program says of a case, as one text: the answers of all commands and the page, or a comparison."""
    found = answers.compared(runs[:-1], runs[-1]) if case.pair else [answers.answers(runs[0]), answers.text(runs[0])]
    return json.dumps(found, sort_keys=True)


def _rules() -> tuple[registry.Rule, ...]:
    return registry.load("rules").rules


def _noted(rule: registry.Rule, into: dict[str, tuple[Any, ...]]) -> registry.Rule:
    """The rule, which also notes what it found."""

    def check(run: Run, config: Any = None) -> tuple[Any, ...]:
        into[rule.id] = tuple(rule(run, config))
        return into[rule.id]

    return _finding(rule, check)


def _or_kept(rule: registry.Rule, kept: Kept, anew: frozenset[str]) -> registry.Rule:
    """The rule where it may differ, else one that gives what it gave."""
    if rule.origin in anew or rule.id not in kept.findings:
        return rule
    return _finding(rule, lambda _run, _config=None: kept.findings[rule.id])


def _finding(rule: registry.Rule, find: Callable[..., tuple[Any, ...]]) -> registry.Rule:
    """The rule with another search for its findings, and without what its own kind makes of a run or a find."""
    return registry.Rule(**({name: getattr(rule, name) for name in field_names(rule)} | {"find": find, "about": None}))


@contextmanager
def _shared(answers: ModuleType) -> Iterator[None]:
    """Every command gets the same report of a run."""
    report_of, reports = answers.pipeline.report_of, {}

    def once(run: Run, shapes: frozenset[Any] | None = None) -> Any:
        if (id(run), shapes) not in reports:
            reports[id(run), shapes] = report_of(run, shapes=shapes)
        return reports[id(run), shapes]

    answers.pipeline.report_of = once
    try:
        yield
    finally:
        answers.pipeline.report_of = report_of


@contextmanager
def _asked(rules: Sequence[registry.Rule]) -> Iterator[None]:
    """These rules are asked, in place of all that there are."""
    loaded = importlib.import_module("forensics.pipeline")
    own, shim = loaded.registry, ModuleType("registry")
    shim.__dict__.update(vars(own), load=lambda *_kinds: registry.Registry(rules=tuple(rules)))
    loaded.registry = shim
    try:
        yield
    finally:
        loaded.registry = own


@contextmanager
def _traced(lines: dict[str, set[int]]) -> Iterator[None]:
    """Collect the lines that run in the modules that decide, and in those beside them."""
    wanted: dict[str, bool] = {}

    def local(frame: FrameType, event: str, _arg: object) -> Any:
        if event == "line":
            lines[frame.f_code.co_filename].add(frame.f_lineno)
        return local

    def call(frame: FrameType, _event: str, _arg: object) -> Any:
        name = frame.f_code.co_filename
        if name not in wanted:
            wanted[name] = name.startswith(_FOLDERS) or str(Path(name).parent) == _PACKAGE
        if not wanted[name]:
            return None
        lines.setdefault(name, set()).add(frame.f_lineno)
        return local

    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(None)
