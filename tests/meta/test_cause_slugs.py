"""What is known of a cause is in its rows: rules give causes by their slug, and no code decides by one."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import pytest

from forensics.knowledge.causes import causes
from forensics.knowledge.suspects import suspects
from tests.meta._modules import MODULES, PACKAGE, nodes


def slugs() -> frozenset[str]:
    return frozenset(causes()) | frozenset(suspects())


def words_in(node: ast.expr) -> Iterator[str]:
    """Give the strings of an expression that is one, or a display of them."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def is_of_cause(node: ast.expr) -> bool:
    """Whether an expression is a cause by its name: `cause`, `failure.cause`, `_CAUSES`."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return "cause" in name.lower()


def decided_by(code: Iterable[ast.AST]) -> Iterator[str]:
    """Give the slugs that a cause is compared with, looked up by, or asked to begin with."""
    for node in code:
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            if any(map(is_of_cause, sides)):
                yield from (word for side in sides for word in words_in(side))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asked = node.func.attr in {"startswith", "endswith"} and is_of_cause(node.func.value)
            yield from (word for one in node.args if asked for word in words_in(one))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"set", "frozenset"}:
            yield from (word for one in node.args for word in words_in(one))
        elif isinstance(node, ast.Match) and is_of_cause(node.subject):
            patterns = (
                one.value for case in node.cases for one in ast.walk(case.pattern) if isinstance(one, ast.MatchValue)
            )
            yield from (word for one in patterns for word in words_in(one))


def test_no_module_decides_by_the_slug_of_a_cause() -> None:
    decided = [(path, decided_by(nodes(path))) for path in MODULES]
    every = slugs() - NAMES
    assert [(str(path.relative_to(PACKAGE)), found) for path, words in decided if (found := every & {*words})] == []


#: Names of metrics, and of a form of a slowdown, that are slugs of causes, too.
NAMES = frozenset({"grad_norm", "entropy", "stalls"})


@pytest.mark.parametrize(
    ("code", "slug"),
    [
        ("found.cause == 'port_in_use'", "port_in_use"),
        ("'init_hang' != cause", "init_hang"),
        ("f.cause in {'early_exit', own}", "early_exit"),
        ("cause.startswith(('silent_death', 'x'))", "silent_death"),
        ("_LATE = frozenset({'no_dump'})", "no_dump"),
    ],
)
def test_a_comparison_with_a_slug_is_noticed(code: str, slug: str) -> None:
    assert slug in set(decided_by(ast.walk(ast.parse(code))))


@pytest.mark.parametrize(
    "code", ["rule.finding(cause='port_in_use')", "yield Clue((), 'init_hang', 5)", "kind == 'plateau'"]
)
def test_a_cause_that_is_given_decides_nothing(code: str) -> None:
    assert not slugs() & set(decided_by(ast.walk(ast.parse(code))))
