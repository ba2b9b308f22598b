"""What is known of an error line is in its row: no module of the package names a row by its id."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from forensics.knowledge.errors import by_id
from tests.meta._modules import MODULES, PACKAGE, nodes

#: Mentions that are left, by module and id; this list only shrinks.
LEFT: dict[tuple[str, str], int] = {
    # a family of facts that is called so too
    ("case/settings.py", "success"): 1,
}


def words_of(path: Path) -> Iterator[str]:
    """Give the strings of a module, docstrings left out."""
    bodies = (node.body for node in nodes(path) if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef))
    docs = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def test_no_module_names_an_error_line_by_its_id() -> None:
    found = Counter(
        (path.relative_to(PACKAGE).as_posix(), word) for path in MODULES for word in words_of(path) if word in by_id()
    )
    assert dict(found) == LEFT
