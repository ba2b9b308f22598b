"""Mutants of what decides: one number, comparison or operator of a module is changed; does any answer notice?

    python tests/mutants/killed.py [--n 240] [--seed 1] [--jobs 2] [--area pace] [--only PATH] [--most 150] [--tests]

A mutant is tried on the golden runs and pairs that run its line: past killers and those of its area first. It is killed
by the first answer that differs, by an exception, or by taking too long. With `--tests` it is tried on the unit tests
that run its line before (`touching`), and what survives these on golden runs. What survives is listed with the reason
that `survivors.tsv` gives (module, line, change, reason), or as not looked at.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import re
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from multiprocessing.pool import Pool
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE), str(HERE.parent / "golden")]

import make  # noqa: E402 - of a neighbouring folder
import runs  # noqa: E402 - same
from cases import BESIDE, Case, Lines, Shelf, keep  # noqa: E402 - beside this script
from loading import Program, importers  # noqa: E402 - beside this script
from operators import Change, changes, mentions, mutated  # noqa: E402 - beside this script
from touching import Touching, collected, failing  # noqa: E402 - beside this script

#: What decides, by area: patterns of files below `forensics/`.
AREAS: Mapping[str, tuple[str, ...]] = {
    "verdict": (
        "diagnosis/verdict.py", "diagnosis/precedence.py",
        "case/errors/timeline.py", "case/processes/attempts.py", "case/processes/starts.py", "case/processes/lives.py",
        "case/runs.py",
    ),
    "health": ("analyses/health.py", "case/endings.py", "case/progress.py", "case/end_markers.py"),
    "stats": ("stats/*.py",),
    "nan": ("analyses/nan/*.py", "case/nonfinite.py"),
    "memory": ("analyses/memory/shape.py", "analyses/memory/_*.py"),
    "hang": ("rules/hang/clue.py", "rules/hang/decide.py", "analyses/hang/*.py", "case/errors/*.py"),
    "pace": ("rules/slowdown/changes.py", "analyses/pace/*.py"),
    "diff": (
        "compare/decide.py", "compare/_spread.py", "compare/_pair.py",
        "compare/_series.py", "compare/_comparable.py", "compare/sections/throughput.py",
    ),
    "evals": (
        "compare/evals/_tests.py", "compare/evals/_logged.py",
        "analyses/evals/*.py",
        "compare/evals/comparison.py", "compare/sections/evals.py", "rules/bad_eval/_results.py",
        "analyses/evals/curves.py",
    ),
}  # fmt: skip
SURVIVORS = HERE / "survivors.tsv"
#: A mutant may take so many times what a case usually takes, and so many seconds more.
_PATIENCE, _LEAST_S = 20, 60


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of a module, and the area that it belongs to."""

    area: str
    path: str
    change: Change

    @property
    def module(self) -> str:
        """The module's name."""
        return self.path.removesuffix(".py").replace("/", ".")

    @property
    def text(self) -> str:
        """The line that is changed, without its indentation."""
        return _source(self.path).splitlines()[self.change.line - 1].strip()

    def __str__(self) -> str:
        """Place, change and line."""
        return f"{self.path}:{self.change.line} {self.change.words}   {self.text}"


@dataclass(frozen=True, slots=True)
class Tried:
    """A mutant, what killed it (nothing: it survived), and how many cases run its line."""

    mutant: Mutant
    killer: str
    near: int


def _source(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def mutants() -> list[Mutant]:
    """Every mutant of every module that decides."""
    found: list[Mutant] = []
    for area, patterns in AREAS.items():
        for path in sorted({path for pattern in patterns for path in (ROOT / "forensics").glob(pattern)}):
            name = path.relative_to(ROOT).as_posix()
            found += [Mutant(area, name, change) for change in changes(_source(name))]
    return found


def chosen(every: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """As many mutants of each area, drawn by a seed, the areas in turn."""
    by_area: dict[str, list[Mutant]] = defaultdict(list)
    for one in every:
        by_area[one.area].append(one)
    rng, share = random.Random(seed), -(-count // max(1, len(by_area)))
    drawn = [rng.sample(own, min(share, len(own))) for own in by_area.values()]
    return [one for of_each in zip_longest(*drawn) for one in of_each if one is not None]


def reasons() -> dict[tuple[str, str, str], str]:
    """Why a mutant may survive, by module, line and change."""
    rows = [line.split("\t") for line in SURVIVORS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return {(row[0], row[1], row[2]): row[3] for row in rows if len(row) == 4}


def places_of(mutant: Mutant) -> dict[str, frozenset[int]]:
    """Files and lines of a changed statement; of a constant, the lines that mention it, in the modules that may."""
    change = mutant.change
    if not change.sets:
        return {str(ROOT / mutant.path): frozenset(range(change.first, change.last + 1))}
    files = [ROOT / mutant.path, *(ROOT / f"{name.replace('.', '/')}.py" for name in importers(mutant.module))]
    texts = {str(path): path.read_text(encoding="utf-8") for path in files if path.exists()}
    names = change.sets.split("|")
    return {path: frozenset(at for name in names for at in mentions(text, name)) for path, text in texts.items()}


def near(mutant: Mutant, lines: Mapping[str, Lines], cost: Mapping[str, float]) -> list[str]:
    """The cases that run the changed statement; of a constant, a line that mentions it.

    First those that were made for the area; in turn those that run most of the module, and others.
    """
    places, change = places_of(mutant), mutant.change
    found = {name for name, ran in lines.items() if any(ran.get(path, frozenset()) & at for path, at in places.items())}
    if not found and change.sets:
        found = {name for name, ran in lines.items() if str(ROOT / mutant.path) in ran}
    own = {name: len(lines[name].get(str(ROOT / mutant.path), ())) for name in found}
    deepest = sorted(found, key=lambda name: (-own[name], cost[name], name))
    others = random.Random(f"{mutant.path} {mutant.change.number}").sample(sorted(found), len(found))
    mixed = dict.fromkeys(name for pair in zip(deepest, others, strict=True) for name in pair)
    return sorted(mixed, key=lambda name: f"-{mutant.area}-" not in name)


class _Worker:
    """One process: the program, what was kept, and which cases have killed before."""

    def __init__(self, place: Path) -> None:
        self.program, self.shelf = Program(BESIDE), Shelf(place)
        self.kills: dict[str, Counter[str]] = defaultdict(Counter)

    def tried(self, mutant: Mutant, cases: Sequence[Case]) -> Tried:
        """Try a mutant on the cases that run its line, in their order but for those that killed one of its module."""
        past = self.kills[mutant.path]
        order = sorted(cases, key=lambda one: -past[one.name])
        signal.signal(signal.SIGALRM, _too_long)
        killer = ""
        try:
            anew = self.program.change(mutant.module, mutated(_source(mutant.path), mutant.change.number))
            self.shelf.forget(anew)
        except Exception as error:  # noqa: BLE001 - a mutant may do anything
            anew, killer = frozenset[str](), f"{type(error).__name__} at its loading"
        for case in order if not killer else ():
            if killer := self._killed(case, anew):
                self.kills[mutant.path][case.name] += 1
                break
        signal.alarm(0)
        return Tried(mutant, killer, len(cases))

    def _killed(self, case: Case, anew: frozenset[str]) -> str:
        kept = self.shelf.of(case)
        signal.alarm(_LEAST_S + int(_PATIENCE * kept.seconds))
        try:
            return case.name if self.shelf.answer(case, anew) != kept.answer else ""
        except Exception as error:  # noqa: BLE001 - a mutant may do anything
            return f"{case.name} ({type(error).__name__})"


def _too_long(_signal: int, _frame: object) -> NoReturn:
    raise TimeoutError


_WORKERS: list[_Worker] = []


def _begin(place: Path) -> None:
    warnings.simplefilter("ignore")
    _WORKERS.append(_Worker(place))


def _try(task: tuple[Mutant, Sequence[Case]]) -> Tried:
    return _WORKERS[0].tried(*task)


def cases_of(place: Path) -> list[Case]:
    """The golden runs below a folder, those of makers as they are made now, and the pairs of them."""
    runs.unpacked(place)
    for one in make.made():
        for path, data in one.files.items():
            runs._put(place / one.name / path, data if isinstance(data, bytes) else data.encode(), runs._MADE_AT_S)
    single = [Case(path.name, (path,)) for path in sorted(place.iterdir())]
    return single + [
        Case(pair.name, (*(place / base for base in pair.base), place / pair.cand), pair=True) for pair in make.pairs()
    ]


def tried(pool: Pool, wanted: Sequence[Mutant], cases: Sequence[Case], place: Path, most: int) -> list[Tried]:
    """Try mutants on the cases that run their lines; each is printed as it ends."""
    begin, lines, cost = time.monotonic(), {}, {}
    for name, seconds, ran in pool.imap_unordered(partial(keep, into=place), cases):
        lines[name], cost[name] = ran, seconds
    print(f"{len(cases)} cases answered in {time.monotonic() - begin:.0f} s", flush=True)
    by_name = {case.name: case for case in cases}
    tasks = [(one, [by_name[name] for name in near(one, lines, cost)][:most]) for one in wanted]
    found: list[Tried] = []
    for one in pool.imap_unordered(_try, tasks):
        found.append(one)
        end = f"killed by {one.killer}" if one.killer else "survived"
        print(f"{end} [{one.near}]: {one.mutant}", flush=True)
    return found


def by_tests(task: tuple[Mutant, Sequence[str]]) -> Tried:
    """Try a mutant on some unit tests."""
    mutant, tests = task
    return Tried(mutant, failing(mutant.path, mutant.change.number, tests) if tests else "", len(tests))


def tested(wanted: Sequence[Mutant], jobs: int, contexts: Path, most: int) -> list[Tried]:
    """Try mutants on the unit tests that run their lines; each is printed as it ends."""
    touching, found = Touching(contexts), list[Tried]()
    tasks = [(one, touching.tests(places_of(one))[:most]) for one in wanted]
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=20) as pool:
        for one in pool.imap_unordered(by_tests, tasks):
            found.append(one)
            end = f"killed by {one.killer}" if one.killer else "survived the unit tests"
            print(f"{end} [{one.near}]: {one.mutant}", flush=True)
    return found


def report(found: Sequence[Tried], known: Mapping[tuple[str, str, str], str]) -> Iterable[str]:
    """Killed of tried by area, and every survivor with its reason."""
    survivors = sorted((one.mutant for one in found if not one.killer), key=str)
    unreached = {one.mutant for one in found if not one.near}
    yield ""
    for one in survivors:
        reason = known.get((one.path, one.text, one.change.words))
        missing = "no golden run comes here" if one in unreached else "NO REASON IS GIVEN"
        yield f"survived: {one}\n    {reason or missing}"
    yield ""
    for area in (*AREAS, ""):
        own = [one for one in found if area in {one.mutant.area, ""}]
        killed = sum(bool(one.killer) for one in own)
        if own:
            yield f"{area or 'all':8} {killed:4} of {len(own):4} killed, {100 * killed / len(own):5.1f} %"
    without = [one for one in survivors if (one.path, one.text, one.change.words) not in known]
    yield f"{len(without)} of {len(survivors)} survivors without a reason"


def _by_unit_tests(wanted: Sequence[Mutant], given: argparse.Namespace) -> list[Tried]:
    return tested(wanted, given.jobs, Path(given.contexts) if given.contexts else collected(), given.most)


def main() -> int:
    """Try the mutants; print the survivors and the share that was killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=240, help="how many, over all areas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--area", default="", help="one area only")
    parser.add_argument("--only", default="", help="modules whose path holds this")
    parser.add_argument("--most", type=int, default=150, help="cases, and unit tests, that a mutant is tried on")
    parser.add_argument("--runs", default="", help="golden runs whose name fits this pattern")
    parser.add_argument("--tests", action="store_true", help="try mutants on the unit tests first")
    parser.add_argument("--contexts", default="", help="what the unit tests run, as coverage.py keeps it")
    given = parser.parse_args()
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    os.environ["PYTHONPATH"] = str(ROOT)
    os.environ["PYTHONHASHSEED"] = "0"  # in every process the same order of sets
    every = [one for one in mutants() if given.only in one.path and given.area in {one.area, ""}]
    wanted = chosen(every, given.n, given.seed)
    print(f"{len(wanted)} of {len(every)} mutants", flush=True)
    begin = _by_unit_tests(wanted, given) if given.tests else []
    left = [one.mutant for one in begin if not one.killer] if given.tests else wanted
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "runs").mkdir()
        cases = [one for one in cases_of(place / "runs") if re.search(given.runs, one.name)]
        with multiprocessing.get_context("spawn").Pool(given.jobs, _begin, (place,)) as pool:
            found = [*(one for one in begin if one.killer), *tried(pool, left, cases, place, given.most)]
    print("\n".join(report(found, reasons())))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
