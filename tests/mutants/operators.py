"""The changes that make a mutant: one number, comparison or operator of a module's source at a time.

Left out is what cannot change an answer: numbers in words and format strings, digits that words are rounded to, sizes
of caches, guards against a division by zero, and on values that are no counts the edge of a comparison.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_EDGES: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
_OTHERS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_SIGNS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
    ast.BitAnd: "&", ast.BitOr: "|", ast.And: "and", ast.Or: "or",
}  # fmt: skip
_TWINS = {"min": "max", "max": "min", "any": "all", "all": "any"}
#: A count up to this is also made one more.
_SMALL = 64
#: A number below is a guard against a division by zero, or a tolerance of equality.
_GUARD = 1e-5
_COUNTS = frozenset(("height", "size"))
#: Keywords and calls whose numbers size a cache, round words, or only ask whether there is anything.
_IDLE_KEYWORDS = frozenset(("maxsize", "ddof", "axis"))
_IDLE_CALLS = frozenset(("round", "head", "TypeVar", "Path"))


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a module: its number, line, the lines of its statement, what becomes what, and which name it sets.

    `sets` is the constant or the field of a class whose value it changes, empty inside a function.
    """

    number: int
    line: int
    first: int
    last: int
    words: str
    sets: str = ""


class _Walk(ast.NodeTransformer):
    """Meets every place that can be changed in one order; makes the change of the number that is wanted."""

    def __init__(self, tree: ast.Module, wanted: int | None) -> None:
        self.wanted = wanted
        self.found: list[Change] = []
        self.counts = _count_names(tree)
        self.ranked = _ranked_names(tree)
        self.keys = _key_functions(tree)
        self.statement: ast.stmt | None = None
        self.inside = 0

    def visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, ast.stmt):
            return super().visit(node)
        before, self.statement = self.statement, node
        changed = super().visit(node)
        self.statement = before
        return changed

    def _here(self, node: ast.expr, words: str) -> bool:
        first, last = _lines(self.statement or node)
        sets = "" if self.inside else _name_set(self.statement)
        self.found.append(Change(len(self.found), node.lineno, first, last, words, sets))
        return len(self.found) - 1 == self.wanted

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.args.defaults = [self.visit(one) for one in node.args.defaults]
        node.args.kw_defaults = [one and self.visit(one) for one in node.args.kw_defaults]
        self.inside += 1
        node.body = [self.visit(one) for one in node.body]
        self.inside -= 1
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool) and not self.inside:
            other = not node.value.value
            if self._here(node.value, f"{not other} -> {other}"):
                node.value = ast.Constant(other)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        names = {one.id for one in node.targets if isinstance(one, ast.Name)}
        if names & self.ranked and isinstance(node.value, ast.Tuple):
            node.value = self._swapped(node.value)
        return self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        if isinstance(node.value, ast.Tuple) and self.statement in self.keys:
            node.value = self._swapped(node.value)
        return self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float) or 0 < abs(value) <= _GUARD:
            return node
        others = [value * 2] if value else []
        if isinstance(value, int) and value <= _SMALL and value + 1 not in others:
            others.append(value + 1)
        for other in others or [1.0]:
            if self._here(node, f"{value} -> {other}"):
                return ast.copy_location(ast.Constant(other), node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        for at, op in enumerate(node.ops):
            turned = [_NEGATED[type(op)]]
            if type(op) in _EDGES and any(self._is_count(side) for side in sides[at : at + 2]):
                turned.append(_EDGES[type(op)])
            for other in turned:
                if self._here(node, f"{_SIGNS[type(op)]} -> {_SIGNS[other]}"):
                    node.ops[at] = other()
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        other: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        if self._here(node, f"{_SIGNS[type(node.op)]} -> {_SIGNS[type(other)]}"):
            node.op = other
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        other = _OTHERS.get(type(node.op))
        if other and not _is_text(node) and self._here(node, f"{_SIGNS[type(node.op)]} -> {_SIGNS[other]}"):
            node.op = other()
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        dropped = isinstance(node.op, ast.Not | ast.Invert)
        return node.operand if dropped and self._here(node, "not dropped") else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        node.func = self.visit(node.func)
        if name not in _IDLE_CALLS:
            node.args = [self.visit(one) for one in node.args]
        for keyword in node.keywords:
            match keyword:
                case ast.keyword(arg="key", value=ast.Lambda(body=ast.Tuple() as order) as by):
                    by.body = self._swapped(order)
                case _:
                    pass
            if keyword.arg not in _IDLE_KEYWORDS:
                keyword.value = self.visit(keyword.value)
        twin = _TWINS.get(name)
        if twin and self._here(node, f"{name} -> {twin}"):
            if isinstance(node.func, ast.Name):
                node.func = ast.copy_location(ast.Name(twin, ast.Load()), node.func)
            elif isinstance(node.func, ast.Attribute):
                node.func.attr = twin
        return node

    def _swapped(self, node: ast.Tuple) -> ast.Tuple:
        for at in range(len(node.elts) - 1):
            if self._here(node, f"places {at + 1} and {at + 2} swapped"):
                node.elts[at], node.elts[at + 1] = node.elts[at + 1], node.elts[at]
                break
        return node

    def _is_count(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant(value=bool()):
                return False
            case ast.Constant(value=int()) | ast.Call(func=ast.Name(id="len")):
                return True
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name in self.counts
            case _:
                return False


def changes(source: str) -> tuple[Change, ...]:
    """Every change that can be made in a module's source, in a stable order."""
    tree = ast.parse(source)
    walk = _Walk(tree, None)
    walk.visit(tree)
    return tuple(walk.found)


def mutated(source: str, number: int) -> ast.Module:
    """The module with one change made."""
    tree = ast.parse(source)
    walk = _Walk(tree, number)
    walk.visit(tree)
    return ast.fix_missing_locations(tree)


def mentions(source: str, name: str) -> Iterator[int]:
    """The lines that hold a name, other than the ones that set it."""
    pattern = re.compile(rf"\b{re.escape(name)}\b(?!\s*(?::[^=]*)?=[^=])")
    yield from (at for at, line in enumerate(source.splitlines(), start=1) if pattern.search(line))


def _lines(node: ast.stmt | ast.expr) -> tuple[int, int]:
    """First and last line of a statement; of one that holds others, those of its head."""
    body = getattr(node, "body", None)
    last = node.end_lineno or node.lineno
    return node.lineno, max(node.lineno, body[0].lineno - 1) if isinstance(body, list) else last


def _name_set(node: ast.stmt | None) -> str:
    match node:
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case ast.Assign(targets=[ast.Tuple(elts=names)]):
            return "|".join(one.id for one in names if isinstance(one, ast.Name))
        case ast.FunctionDef(name=name):
            return name
        case _:
            return ""


def _count_names(tree: ast.Module) -> frozenset[str]:
    """Constants and fields of classes whose value is a whole number."""
    body = [one for part in tree.body for one in ([part] if not isinstance(part, ast.ClassDef) else part.body)]
    pairs: list[tuple[ast.expr, ast.expr]] = []
    for one in body:
        if isinstance(one, ast.AnnAssign) and one.value is not None:
            pairs.append((one.target, one.value))
        elif isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Tuple) and isinstance(one.value, ast.Tuple):
            pairs += zip(one.targets[0].elts, one.value.elts, strict=False)
        elif isinstance(one, ast.Assign):
            pairs.append((one.targets[0], one.value))
    whole = {
        target.id
        for target, value in pairs
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and type(value.value) is int
    }
    return _COUNTS | whole


def _ranked_names(tree: ast.Module) -> frozenset[str]:
    """Names whose `index` is asked: their order is a preference."""
    asked = (one.value for one in ast.walk(tree) if isinstance(one, ast.Attribute) and one.attr == "index")
    return frozenset(one.id for one in asked if isinstance(one, ast.Name))


def _key_functions(tree: ast.Module) -> frozenset[ast.stmt]:
    """Return statements of the functions that sort by a tuple."""
    keys = (one.value for one in ast.walk(tree) if isinstance(one, ast.keyword) and one.arg == "key")
    names = {one.id for one in keys if isinstance(one, ast.Name)} | {"_key"}
    functions = (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name in names)
    return frozenset(one for function in functions for one in function.body if isinstance(one, ast.Return))


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(one, ast.JoinedStr) or (isinstance(one, ast.Constant) and isinstance(one.value, str))
        for one in (node.left, node.right)
    )
