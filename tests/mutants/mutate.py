"""Mutants of what decides: one number, comparison or operator of a module is changed; do the golden runs notice?

    python tests/mutants/mutate.py [--n 200] [--seed 0] [--part 0/2] [--only PATH]

The golden runs are read once. A mutant lives in this process: the code of the functions that changed takes the place of
the old. It is killed by the first run whose diagnosis differs, or by an exception. What survives is listed.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "golden"))
import runs  # noqa: E402 - a script of the neighbouring folder

from forensics import pipeline  # noqa: E402
from forensics.store.run import Run  # noqa: E402

#: What decides: the verdict and health, and the modules that find an onset, a form, a culprit or a level.
DECIDES = (
    "verdict.py", "_verdict_*.py", "nan_origin.py", "rules/nan/_*.py", "rules/hang/_*.py", "rules/slowdown/_*.py",
    "rules/slowdown/level_shift.py", "rules/learning/*.py", "rules/oom/*.py", "rules/crash/*.py", "rules/stopped/*.py",
    "signals/memory_shape.py", "signals/_memory_*.py", "signals/pace_*.py", "signals/attempts.py", "signals/endings.py",
    "signals/loss_*.py", "signals/nonfinite.py", "signals/hang_*.py",
)  # fmt: skip
_FLIPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_MATHS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """The `number`-th change that can be made in a module, and what it is in words."""

    module: str
    path: Path
    number: int
    line: int
    words: str


class _Mutate(ast.NodeTransformer):
    """Counts the places that can be changed, and changes the one that is asked for."""

    def __init__(self, wanted: int | None) -> None:
        self.wanted, self.count = wanted, 0
        self.found: list[tuple[int, str]] = []

    def _here(self, node: ast.AST, words: str) -> bool:
        self.found.append((getattr(node, "lineno", 0), words))
        self.count += 1
        return self.count - 1 == self.wanted

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            return node
        other = node.value * 2 + (1 if node.value in {0, 1} else 0)
        return ast.copy_location(ast.Constant(other), node) if self._here(node, f"{node.value} -> {other}") else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        for at, op in enumerate(node.ops):
            flipped = _FLIPS[type(op)]
            if self._here(node, f"{type(op).__name__} -> {flipped.__name__}"):
                node.ops[at] = flipped()
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        other: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        if self._here(node, f"{type(node.op).__name__} -> {type(other).__name__}"):
            node.op = other
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        other = _MATHS.get(type(node.op))
        if other and self._here(node, f"{type(node.op).__name__} -> {other.__name__}"):
            node.op = other()
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return node.operand if isinstance(node.op, ast.Not) and self._here(node, "not dropped") else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        other = {"min": "max", "max": "min", "any": "all", "all": "any"}.get(getattr(node.func, "id", ""))
        if other and self._here(node, f"{node.func.id} -> {other}"):  # type: ignore[attr-defined] # a name, as it has an id
            node.func = ast.copy_location(ast.Name(other, ast.Load()), node.func)
        return node


def mutants() -> list[Mutant]:
    """Every mutant of every module that decides."""
    found: list[Mutant] = []
    for path in sorted({path for pattern in DECIDES for path in (ROOT / "forensics").glob(pattern)}):
        visitor = _Mutate(None)
        visitor.visit(ast.parse(path.read_text(encoding="utf-8")))
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found += [Mutant(module, path, n, line, words) for n, (line, words) in enumerate(visitor.found)]
    return found


def put_in(mutant: Mutant) -> list[tuple[Any, str, Any]]:
    """Change the module as it is loaded; gives what to put back."""
    tree = _Mutate(mutant.number).visit(ast.parse(mutant.path.read_text(encoding="utf-8")))
    module = importlib.import_module(mutant.module)
    changed = ModuleType(mutant.module)
    changed.__dict__.update({"__file__": str(mutant.path), "__package__": module.__package__})
    exec(compile(ast.fix_missing_locations(tree), str(mutant.path), "exec"), changed.__dict__)
    return list(_swapped(module, changed))


def _swapped(old: Any, new: Any) -> Iterator[tuple[Any, str, Any]]:
    for name, value in vars(new).items():
        held = vars(old).get(name)
        if isinstance(held, FunctionType) and isinstance(value, FunctionType):
            if held.__module__ == value.__module__:
                yield from _code(held, value)
        elif isinstance(held, type) and isinstance(value, type) and held.__module__ == getattr(old, "__name__", ""):
            for part, method in vars(value).items():
                mine = vars(held).get(part)
                if isinstance(mine, FunctionType) and isinstance(method, FunctionType):
                    yield from _code(mine, method)
        elif isinstance(value, int | float | str | tuple | frozenset) and held != value and not name.startswith("__"):
            yield old, name, held
            setattr(old, name, value)


def _code(held: FunctionType, value: FunctionType) -> Iterator[tuple[Any, str, Any]]:
    if len(held.__code__.co_freevars) != len(value.__code__.co_freevars):
        return
    for name in ("__code__", "__defaults__", "__kwdefaults__"):
        if getattr(held, name) != getattr(value, name):
            yield held, name, getattr(held, name)
            setattr(held, name, getattr(value, name))


def entered(read: dict[str, Run]) -> dict[str, set[str]]:
    """For each file of ours, the golden runs whose diagnosis enters a function of it."""
    seen: dict[str, set[str]] = {}
    for name, run in read.items():

        def call(frame: FrameType, event: str, _arg: object, name: str = name) -> None:
            if event == "call":
                seen.setdefault(frame.f_code.co_filename, set()).add(name)

        sys.setprofile(call)
        try:
            runs.diagnosis(pipeline.report_of(Run(run.name, run.frames)))
        finally:
            sys.setprofile(None)
    return seen


def killed_by(kept: dict[str, Any], read: dict[str, Run], near: set[str]) -> str:
    """The golden run that notices, or nothing; only those that enter the module can."""
    for name, run in read.items():
        if name not in near:
            continue
        try:
            now = runs.diagnosis(pipeline.report_of(Run(run.name, run.frames)))
        except Exception as error:  # noqa: BLE001 - a mutant may do anything
            return f"{name}: {type(error).__name__}"
        if now != kept[name]:
            return name
    return ""


def main() -> int:
    """Try the mutants; print the survivors and the share that was killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    chosen = [one for one in mutants() if given.only in str(one.path)]
    chosen = random.Random(given.seed).sample(chosen, min(given.n, len(chosen)))
    part, parts = map(int, given.part.split("/"))
    with tempfile.TemporaryDirectory() as folder:
        read = {place.name: pipeline.ingest_run(place) for place in runs.unpacked(Path(folder))}
        read = {
            name: Run(run.name, {t: f.collect().lazy() for t, f in run.frames.items()}) for name, run in read.items()
        }
        kept = {name: runs.diagnosis(pipeline.report_of(Run(run.name, run.frames))) for name, run in read.items()}
        ends: Counter[str] = Counter()
        near = entered(read)
        for mutant in chosen[part::parts]:
            undo = put_in(mutant)
            killer = killed_by(kept, read, near.get(str(importlib.import_module(mutant.module).__file__), set()))
            for place, name, value in reversed(undo):
                setattr(place, name, value)
            ends["killed" if killer else "survived"] += 1
            if killer:  # what killed one of this module probably kills the next
                read = {killer.split(":")[0]: read[killer.split(":")[0]], **read}
            end = f"killed by {killer}" if killer else "survived"
            print(f"{end}: {mutant.path.relative_to(ROOT)}:{mutant.line} {mutant.words}", flush=True)
    print(f"{ends['killed']} of {ends.total()} killed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
