"""Imports go only downwards, modules stay small, and every public thing is documented."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.meta._modules import MODULES, PACKAGE, nodes, tree

LAYERS = (
    ("forensics.cli", "forensics.__main__", "forensics.api"),
    ("forensics.report", "forensics.export"),
    ("forensics.fleet", "forensics.history", "forensics.pipeline", "forensics.config", "forensics.scale"),
    ("forensics.diagnosis", "forensics.compare", "forensics.figures"),
    ("forensics.rules",),
    ("forensics.analyses",),
    ("forensics.case",),
    ("forensics.store",),
    ("forensics.formats",),
    ("forensics.dialects",),
    ("forensics.knowledge",),
    ("forensics.io",),
    ("forensics.registry",),
    ("forensics.declared",),
    (
        "forensics.model",
        "forensics.errors",
        "forensics.figure",
        "forensics.identity",
        "forensics.stats",
        "forensics.action",
        "forensics.patterns",
        "forensics.values",
    ),
)
MEDIAN_MODULE_LINES = 140
MAX_FUNCTION_LINES = 80
MAX_FILES_A_FOLDER = 25


def level(module: str) -> int | None:
    for number, names in enumerate(LAYERS):
        if any(module == n or module.startswith((n + ".", n + "_")) for n in names):
            return number
    hidden = module.replace("forensics._", "forensics.")
    return level(hidden) if hidden != module else None


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_module(package: str, name: str) -> bool:
    place = PACKAGE.parent.joinpath(*package.split("."), name)
    return place.is_dir() or place.with_suffix(".py").is_file()


@cache
def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("forensics"):
            found |= {f"{node.module}.{a.name}" if is_module(node.module, a.name) else node.module for a in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.startswith("forensics.")}
    return found


def imported() -> list[tuple[str, str]]:
    """Each module with each that it imports."""
    return [(module_name(path), name) for path in MODULES for name in sorted(imports(path))]


def test_a_module_imports_only_from_its_own_layer_or_below() -> None:
    assert [name for path in MODULES if level(name := module_name(path)) is None] == ["forensics"]
    levels = [(one, level(one), other, level(other)) for one, other in imported()]
    assert [(one, other) for one, own, other, there in levels if own and there is not None and there < own] == []


def test_what_begins_with_an_underscore_is_imported_by_its_own_package_only() -> None:
    rooms = [(one, other, private_to(other)) for one, other in imported()]
    assert [(one, other) for one, other, room in rooms if room is not None and not f"{one}.".startswith(room)] == []


def private_to(module: str) -> str | None:
    """The package, with a dot behind it, that a private module belongs to; None for a public one."""
    room, underscore, _ = module.partition("._")
    return f"{room}." if underscore else None


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("forensics.rules.oom._memory", "forensics.rules.oom."),
        ("forensics.report.html._sections.proof", "forensics.report.html."),
        ("forensics.report.phrases", None),
    ],
)
def test_a_private_module_belongs_to_the_package_above_it(module: str, package: str | None) -> None:
    assert private_to(module) == package


def test_the_functions_of_a_module_are_small() -> None:
    functions = [
        (module_name(path), node.name, (node.end_lineno or 0) - node.lineno)
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert [one for one in functions if one[-1] >= MAX_FUNCTION_LINES] == []


def test_the_median_module_fits_on_two_screens() -> None:
    lengths = sorted(p.read_text(encoding="utf-8").count("\n") for p in MODULES if p.name != "__init__.py")
    assert lengths[len(lengths) // 2] <= MEDIAN_MODULE_LINES


def test_a_module_says_what_it_is() -> None:
    assert [module_name(path) for path in MODULES if not ast.get_docstring(tree(path))] == []


def test_a_folder_holds_few_files() -> None:
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    held = Counter(path.parent.relative_to(PACKAGE) for path in files)
    assert [folder for folder, count in held.items() if count > MAX_FILES_A_FOLDER] == []
