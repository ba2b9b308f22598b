"""Unit tests as judges of a mutant: which of them run the changed lines, and whether one of these fails.

What each test runs is collected once, by the contexts of coverage.py, and kept below the system's folder for temporary
files under the hash of the program and its tests. A mutant is tried in a process that keeps the libraries loaded and
imports the program and the tests anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import coverage
import pytest
from loading import ROOT, Instead, code_of
from operators import mutated

#: Rooms of tests that say what is decided, the ones that are soonest done first.
ROOMS = (
    *("stats", "recorded", "analyses", "case", "compare", "diagnosis", "rules", "symptoms", "truth"),
    "../meta/test_rule_examples.py",
)
_OPTIONS = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov")
_PATIENCE_S = 300
#: Files and lines of each.
Places = Mapping[str, frozenset[int]]


def rooms() -> list[str]:
    """Paths of the rooms, below the root."""
    return [os.path.normpath(f"tests/unit/{room}") for room in ROOMS]


class Touching:
    """Which tests run a place of the program."""

    def __init__(self, data: Path) -> None:
        self._data = coverage.CoverageData(str(data))
        self._data.read()
        self._lines: dict[str, Mapping[int, Sequence[str]]] = {}

    def tests(self, places: Places) -> list[str]:
        """Tests that run one of some lines, those that run fewest of the program's lines first."""
        found: set[str] = set()
        for path, lines in places.items():
            if path not in self._lines:
                self._lines[path] = self._data.contexts_by_lineno(path)
            found |= {_test(context) for at in lines for context in self._lines[path].get(at, ()) if context}
        whole = {test for test in found if "::" not in test}  # what a fixture ran, every test of the file may judge
        own = [test for test in found if test in whole or test.partition("::")[0] not in whole]
        order = {path: at for at, path in enumerate(rooms())}
        return sorted(
            own, key=lambda test: (min((at for path, at in order.items() if test.startswith(path)), default=99), test)
        )


def _test(context: str) -> str:
    """The test of a context; its file where a fixture ran, as that of a module runs for its first test only."""
    test, _, phase = context.rpartition("|")
    return test.partition("::")[0] if phase == "setup" else test


def collected() -> Path:
    """Give the file of what each test runs; collects it where program or tests have changed."""
    place = Path(tempfile.gettempdir()) / f"forensics-mutants-{_hash()}"
    found = place / "contexts"
    if not found.exists():
        place.mkdir(exist_ok=True)
        part = place / "part"
        command = [sys.executable, "-m", "pytest", *_OPTIONS[:1], "-p", "no:cacheprovider", "--cov=forensics"]
        told = os.environ | {"COVERAGE_FILE": str(part), "PYTHONPATH": str(ROOT)}
        subprocess.run([*command, "--cov-context=test", "--cov-report=", *rooms()], cwd=ROOT, env=told, check=False)
        part.rename(found)
    return found


def _hash() -> str:
    sums = hashlib.sha256()
    for folder in ("forensics", "tests/unit", "tests/meta"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                sums.update(f"{path.relative_to(ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return sums.hexdigest()[:16]


def failing(path: str, number: int, tests: Sequence[str]) -> str:
    """Name the first of some tests that fails with a change of a module; empty where none does.

    To be called in a process of its own, whose modules of the program are dropped.
    """
    module = path.removesuffix(".py").replace("/", ".")
    instead = Instead()
    instead.module, instead.code = module, code_of(mutated((ROOT / path).read_text(encoding="utf-8"), number), module)
    sys.meta_path.insert(0, instead)
    first = _First()
    try:
        _dropped()
        signal.signal(signal.SIGALRM, _too_long)
        signal.alarm(_PATIENCE_S)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            ended = pytest.main([*_OPTIONS, *_FRESH, *tests], plugins=[first])
        return first.failed or ("" if ended in {0, 5} else f"pytest ended with {int(ended)}")
    except TimeoutError:
        return "tests that take too long"
    except Exception as error:  # noqa: BLE001 - a mutant may do anything
        return f"{type(error).__name__} at the loading of the tests"
    finally:
        signal.alarm(0)
        sys.meta_path.remove(instead)
        importlib.invalidate_caches()


#: Plugins are loaded once, so that pytest cannot rewrite their assertions a second time; examples are the same ones.
_FRESH = ("-W", "ignore::pytest.PytestAssertRewriteWarning", "--hypothesis-seed=0")


class _First:
    """Notes the first test that fails."""

    failed = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed = self.failed or str(report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed = self.failed or f"{report.nodeid}, at its loading"


def _dropped() -> None:
    """Drop the program and the tests: they are imported anew."""
    homes = tuple(f"{ROOT / folder}{os.sep}" for folder in ("forensics", "tests/unit", "tests/meta", "fixtures"))
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(homes) or name.partition(".")[0] == "forensics":
            del sys.modules[name]


def _too_long(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise TimeoutError
