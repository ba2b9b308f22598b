"""What the golden runs reach: every rule fires in one, every rule that can lead an answer does, no label is rare."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from forensics import registry
from forensics.model import Outcome, Shape

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import runs  # noqa: E402 - the folder is no package

LABELS, ANSWERS = runs.kept(runs.LABELS), runs.kept(runs.ANSWERS)
RULES = {rule.id: rule for rule in registry.load().rules}
#: Rules that are out of reach, in what way, and why: as short as can be.
UNREACHED = [line.split("\t") for line in (HERE / "unreached.tsv").read_text(encoding="utf-8").splitlines()[1:]]
#: How many golden runs each shape and each outcome has at least.
FEWEST = 5


@cache
def _tree(module: str) -> ast.Module:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


def _dotted(node: ast.Attribute) -> str:
    """Give the name of a module's part as code writes it, `module.part`; empty for what is deeper."""
    return f"{node.value.id}.{node.attr}" if isinstance(node.value, ast.Name) else ""


def _names_error(node: ast.AST) -> bool:
    """Whether code names the severity of an error, by its enum or as the word of a declaration."""
    told = (one.value for one in ast.walk(node) if isinstance(one, ast.keyword) and one.arg == "severity")
    words = {inner.value for one in told for inner in ast.walk(one) if isinstance(inner, ast.Constant)}
    enums = (one for one in ast.walk(node) if isinstance(one, ast.Attribute))
    return "error" in words or any(_dotted(one) == "Severity.ERROR" for one in enums)


@cache
def _borrowed(module: str) -> dict[str, str]:
    """Names that a module takes from other modules of rules, each with its module; of a whole module, all it makes."""
    taken = (node for node in ast.walk(_tree(module)) if isinstance(node, ast.ImportFrom))
    names = [(name, str(one.module)) for one in taken for name in one.names if _is_of_rules(str(one.module))]
    own = {name.name: source for name, source in names}
    for name, source in names:
        package = importlib.util.find_spec(source)
        whole = f"{source}.{name.name}"
        if package and package.submodule_search_locations and importlib.util.find_spec(whole) is not None:
            made = (node.name for node in _tree(whole).body if isinstance(node, ast.FunctionDef))
            own |= {f"{name.asname or name.name}.{helper}": whole for helper in made}
    return own


def _is_of_rules(module: str) -> bool:
    return module.startswith("forensics.rules.")


def _named(module: str, name: str) -> list[ast.stmt]:
    """What a module makes of a name at its top: a function, a class or a value."""
    return [
        node
        for node in _tree(module).body
        if getattr(node, "name", "") == name
        or name
        in {one.id for told in getattr(node, "targets", ()) for one in ast.walk(told) if isinstance(one, ast.Name)}
        or (isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name)
    ]


def _parts(rule: registry.Rule) -> Iterator[ast.stmt]:
    """The function of a rule, all of its module that it reaches by name, and the helpers that these borrow."""
    names, seen = [rule.find.__name__], set[str]()
    while names:
        name = names.pop()
        if name in seen:
            continue
        seen.add(name)
        for node in _named(rule.origin, name):
            yield node
            names += [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]
            names += [_dotted(one) for one in ast.walk(node) if isinstance(one, ast.Attribute)]
        if (source := _borrowed(rule.origin).get(name)) is not None:
            helper = name.rpartition(".")[2]
            yield from (node for node in _named(source, helper) if isinstance(node, ast.FunctionDef))


def _can_be_an_error(rule: registry.Rule) -> bool:
    """Whether a rule names the severity of an error, or calls a helper that does."""
    return any(map(_names_error, _parts(rule)))


LEADERS = sorted(rule.id for rule in RULES.values() if _can_be_an_error(rule))


def _triages() -> Iterator[dict[str, Any]]:
    yield from (answer["triage"] for kind in ("runs", "pairs") for answer in ANSWERS[kind].values())


FOUND = [finding.split()[:2] for triage in _triages() for finding in triage["findings"]]
FIRED = {rule for rule, _ in FOUND}
ERRORS = Counter(rule for rule, severity in FOUND if severity == "error")


def _lead(triage: dict[str, Any]) -> set[str]:
    """Rules of the errors whose title and place are the headline."""
    title, _, place = triage["headline"].removesuffix(")").rpartition(" (")
    shown = f" {place}: {title}".casefold()
    return {one.split()[0] for one in triage["findings"] if one.split()[1] == "error" and shown in one.casefold()}


LED = {rule for triage in _triages() if triage["outcome"] == "failed" for rule in _lead(triage)}


def test_a_severity_is_named_and_never_made_of_text_so_that_leaders_can_be_listed() -> None:
    made = [
        rule.id
        for rule in RULES.values()
        for node in ast.walk(_tree(rule.origin))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"Severity", "getattr"}
    ]
    assert made == []
    assert set(ERRORS) <= set(LEADERS)
    assert len(LEADERS) < len(RULES)


@pytest.mark.parametrize("rule", LEADERS)
def test_every_rule_that_can_be_an_error_is_one_in_a_golden_run(rule: str) -> None:
    assert ERRORS[rule] > 0


@pytest.mark.parametrize(("reached", "way"), [(FIRED, "fires"), (LED | (set(RULES) - set(LEADERS)), "leads")])
def test_rules_out_of_reach_are_the_reviewed_ones(reached: set[str], way: str) -> None:
    assert set(RULES) - reached == {rule for rule, what, _ in UNREACHED if what == way}


def test_each_rule_out_of_reach_has_one_reason() -> None:
    assert all(reason.strip() for _, _, reason in UNREACHED)
    assert len(UNREACHED) == len({(rule, what) for rule, what, _ in UNREACHED})


@pytest.mark.parametrize("outcome", [one.value for one in Outcome])
def test_no_outcome_is_rare_among_labels(outcome: str) -> None:
    assert sum(label["outcome"] == outcome for label in LABELS["runs"].values()) >= FEWEST


@pytest.mark.parametrize("shape", [one.value for one in Shape])
def test_no_shape_is_rare_among_labels(shape: str) -> None:
    assert sum(label["shape"] == shape for label in LABELS["runs"].values()) >= FEWEST
