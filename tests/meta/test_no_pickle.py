"""The package unpickles nothing: no module of it may even import an unpickler."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tests.meta._modules import MODULES, PACKAGE, nodes

FORBIDDEN = {
    "pickle", "_pickle", "pickletools", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "copyreg",
    "torch", "jsonpickle",
}  # fmt: skip
UNPICKLING = {"read_pickle", "load_pickle", "Unpickler", "to_pickle"}


def imported(code: Iterable[ast.AST]) -> Iterator[str]:
    for node in code:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").split(".")[0]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if name in {"import_module", "__import__"} and node.args and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value).split(".")[0]


def test_no_module_of_the_package_imports_an_unpickler() -> None:
    assert len(MODULES) > 100
    found = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in MODULES
        for name in imported(nodes(path))
        if name in FORBIDDEN
    ]
    assert not found


def test_no_module_of_the_package_calls_a_method_that_unpickles() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr in UNPICKLING
    ]
    assert not found


def test_the_check_sees_an_import_where_there_is_one() -> None:
    code = "def f():\n    import pickle\n    from pickletools import genops\n    importlib.import_module('dill')\n"
    assert set(imported(ast.walk(ast.parse(code)))) == {"pickle", "pickletools", "dill"}
