"""A program of which one module is another: the module and all that import it are loaded anew, in this process.

So a constant that others imported by name, a default of a dataclass and a decorator's argument change as truly as a
line of a function. What does not import the module stays as it is: its values can be kept.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType

from forensics import registry

ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = ROOT / "forensics"
#: Modules that import every module of a folder by a walk: a change there changes what they found.
_WALKS = {
    "forensics.rules.hang.decide": "forensics.rules.hang.",
    "forensics.compare.diff": "forensics.compare.sections.",
}


@cache
def _imports() -> dict[str, frozenset[str]]:
    """Which modules of the program each one imports, inside of functions too."""
    names = {_name(path): path for path in _PACKAGE.rglob("*.py")}
    found: dict[str, frozenset[str]] = {}
    for name, path in names.items():
        asked: set[str] = {other for other in names if name in _WALKS and other.startswith(_WALKS[name])}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                asked |= {one.name for one in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                asked |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
        found[name] = frozenset(asked & names.keys()) - {name}
    return found


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def dependents(module: str) -> frozenset[str]:
    """The module and every module that imports it, by whatever way round."""
    found, todo = {module}, [module]
    while todo:
        one = todo.pop()
        new = {name for name, asked in _imports().items() if one in asked} - found
        found |= new
        todo += new
    return frozenset(found - {"forensics", "forensics.__main__"})


def importers(module: str) -> frozenset[str]:
    """The modules that import it themselves."""
    return frozenset(name for name, asked in _imports().items() if module in asked)


class Instead(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module the code that was made for it."""

    def __init__(self) -> None:
        self.module, self.code = "", compile("", "", "exec")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        return importlib.util.spec_from_loader(fullname, self, origin=spec.origin)

    def exec_module(self, module: ModuleType) -> None:
        module.__file__ = str(module.__spec__ and module.__spec__.origin)
        exec(self.code, module.__dict__)


class Program:
    """The loaded program; `change` puts other code in the place of one module, `beside` are further modules to load."""

    def __init__(self, beside: Sequence[str] = ()) -> None:
        self._beside = tuple(beside)
        self._changed = ""
        self._own: dict[str, ModuleType | None] = {}
        self._instead = Instead()
        sys.meta_path.insert(0, self._instead)

    def change(self, module: str, tree: ast.Module | None) -> frozenset[str]:
        """Load a module from a tree (None: from its file), and all that import it; gives what was loaded anew."""
        anew = dependents(module) | (dependents(self._changed) if self._changed else frozenset())
        for name in (*anew, *self._beside):
            self._own.setdefault(name, sys.modules.get(name))
            _put(name, None)
        self._changed = module if tree is not None else ""
        self._instead.module = self._changed
        if tree is not None:
            self._instead.code = code_of(tree, module)
        _forget_plugins()
        for name in self._beside:
            importlib.import_module(name)
        return anew

    def close(self) -> None:
        """Put back the very modules that were there before."""
        if self._instead in sys.meta_path:
            sys.meta_path.remove(self._instead)
        for name, module in sorted(self._own.items()):
            _put(name, module)
        self._own.clear()
        _forget_plugins()


def _put(name: str, module: ModuleType | None) -> None:
    """Make a module the loaded one of its name, or none; its package holds it too."""
    parent, _, last = name.rpartition(".")
    holder = vars(sys.modules[parent]) if parent in sys.modules else {}
    if module is None:
        sys.modules.pop(name, None)
        holder.pop(last, None)
    else:
        sys.modules[name] = holder[last] = module


def _forget_plugins() -> None:
    registry.load.cache_clear()
    registry._of_kind.cache_clear()


def code_of(tree: ast.Module, module: str) -> CodeType:
    """Compile what stands in the place of a module."""
    spec = importlib.machinery.PathFinder.find_spec(module, [str(_PACKAGE.joinpath(*module.split(".")[1:-1]))])
    return compile(tree, str(spec and spec.origin), "exec")
