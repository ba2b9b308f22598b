"""Every cause that a rule or an error line can give has a row of knowledge, and every row is reachable and whole."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from forensics.knowledge.backends import backends
from forensics.knowledge.causes import FIX, Cause, Remedy, causes
from forensics.knowledge.errors import Clue, ErrorLine, by_id, table
from forensics.knowledge.settings import settings
from tests.meta._modules import nodes

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "forensics"
TABLES = sorted((PACKAGE / "knowledge").rglob("*.jsonl"))
#: Rules write these causes from two parts; the first is given here.
WRITTEN = ("collective_mismatch_", "oom_in_", "sigkill_", "too_big_")
#: Tables whose rows give causes.
GIVEN = ("ranges.jsonl", "errors.jsonl", "signals.jsonl", "suspects.jsonl", "doing.jsonl", "reports.jsonl")
#: A verdict is read on one screen: so many lines of 68 columns for one action.
MOST_LINES, COLUMNS = 3, 68
#: First words that name no change: a command of ours says nothing of what is wrong.
EMPTY_WORDS = ("forensics", "profile", "debug", "investigate")
#: Values that a text may ask for.
VALUES = {"run", "step", "rank", "ranks", "checkpoint", "saved", "next", "fix", "library", "show_nan", "vast_loss"}
#: And those of an error that was raised, which may not be known.
OF_ERRORS = {"said", "frame", "package", "statement", "own", "installs", "look", "look_there", "died_in", "died_below"}


def of_lines() -> set[str]:
    return {row.cause for row in table() if row.role != "benign" and row.shape}


def groups(cause: str) -> set[str]:
    """Give the names of what the lines of a cause say: values that its actions may ask for."""
    return {name for row in table() if row.cause == cause for name in row.compiled.groupindex}


def of_rules() -> set[str]:
    text = "\n".join(path.read_text(encoding="utf-8") for path in (PACKAGE / "rules").rglob("*.py"))
    return set(re.findall(r"""cause="([a-z0-9_]+)\"""", text)) | set(re.findall(r"=> .*?\bcause=([a-z0-9_]+)", text))


def of_golden_answers() -> Iterator[str]:
    todo: list[object] = [json.loads((ROOT / "tests/golden/answers.json").read_text(encoding="utf-8"))]
    while todo:
        match todo.pop():
            case {"outcome": _, "cause": str(cause), **rest}:
                yield cause
                todo += rest.values()
            case dict() as inside:
                todo += inside.values()
            case list() as inside:
                todo += inside


def test_every_cause_that_can_be_given_has_a_row() -> None:
    given = (of_lines() | of_rules() | set(of_golden_answers())) - {"", *WRITTEN}
    assert sorted(given - set(causes())) == []


def test_every_row_is_reachable() -> None:
    files = [p for p in PACKAGE.rglob("*") if p.suffix in {".py", ".tsv", ".jsonl"}]
    others = [p for p in files if "knowledge" not in p.parts or p.name in GIVEN]
    words = set(re.findall(r"[a-z0-9_]+", "\n".join(p.read_text(encoding="utf-8") for p in others)))
    assert [slug for slug in causes() if slug not in words and not slug.startswith(WRITTEN)] == []


@pytest.mark.parametrize(
    ("row", "clue"),
    [(row, row.clue) for row in table() if row.clue is not None],
    ids=lambda one: getattr(one, "id", ""),
)
def test_what_a_line_proves_of_a_rank_names_a_cause_and_asks_for_known_groups(row: ErrorLine, clue: Clue) -> None:
    assert clue.cause in causes()
    assert clue.words
    assert clue.weight > 0
    assert clue.where.keys() <= row.compiled.groupindex.keys()


def test_a_deed_follows_the_name_of_one_rank_or_of_several() -> None:
    deeds = [cause.deed for cause in causes().values() if cause.deed]
    assert len(deeds) > 20
    assert not [deed for deed in deeds if deed.endswith(".") or deed[0].isupper()]
    assert not [deed for deed in deeds if {"was", "were", "is", "are", "its", "their"} & {*deed.split()}]


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.name)
def test_rows_of_a_table_are_unique_and_in_order_where_the_order_means_nothing(table: Path) -> None:
    names = [next(iter(json.loads(line).values())) for line in table.read_text(encoding="utf-8").splitlines()]
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert table.parent.name != "causes" or names == sorted(names)


def test_no_cause_stands_in_two_tables() -> None:
    files = [table.read_text(encoding="utf-8") for table in TABLES if table.parent.name == "causes"]
    rows = [json.loads(line)["cause"] for text in files for line in text.splitlines()]
    assert [name for name, count in Counter(rows).items() if count > 1] == []


@pytest.mark.parametrize("cause", causes().values(), ids=lambda cause: cause.cause)
def test_a_row_is_whole(cause: Cause) -> None:
    assert cause.says.endswith(".")
    assert cause.confirms.endswith(".")
    assert cause.source
    assert cause.why.endswith(".") or cause.cause in of_lines()
    assert all(remedy.text and remedy.source for remedy in cause.actions)
    assert not cause.actions[-1].line, "the last action holds for every error line"
    assert cause.cause in of_lines() or any(remedy.text != FIX for remedy in cause.actions)


@pytest.mark.parametrize("cause", causes().values(), ids=lambda cause: cause.cause)
def test_an_action_is_short_and_asks_only_for_what_is_known(cause: Cause) -> None:
    known = {setting.name for setting in settings()}
    places = {backend.backend for backend in backends()} | {
        "unknown",
        "host",
        "device",
        "ranks",
        "saves",
        "no_saves",
        "no_snapshot",
        "untrained",
        "untimed",
        "own_code",
        "no_frames",
        "a_trainer",
        "no_trainer",
        "at_once",
        "later",
        "begun",
        "unbegun",
        "unseen",
        "waits",
        "waits_for_data",
        "no_words",
        "no_stack",
    }
    for remedy in cause.actions:
        for words in (remedy.text, remedy.otherwise):
            assert len(textwrap.wrap(words, COLUMNS, break_long_words=False, break_on_hyphens=False)) <= MOST_LINES
        told = set(re.findall(r"\{(\w+)\}", remedy.text + remedy.otherwise))
        assert told <= VALUES | OF_ERRORS | groups(cause.cause)
        assert set(re.findall(r"\{(\w+)\}", remedy.command)) <= VALUES, "words of a log are no part of a command"
        assert not remedy.text.lower().startswith(EMPTY_WORDS)
        assert remedy.setting in known | {""}
        assert set(remedy.on) <= places
        assert {*remedy.beside, *remedy.apart} <= set(causes())
        assert remedy.given.keys() <= known
        assert set(remedy.line) <= set(by_id())
        assert bool(remedy.setting) or not (remedy.unless or remedy.within or remedy.where)
        for pattern in (remedy.unless, remedy.where, *remedy.given.values()):
            re.compile(pattern)


def _conditions(remedy: Remedy) -> bool:
    return bool(remedy.on or remedy.trainer or remedy.line or remedy.beside or remedy.where or remedy.given)


@pytest.mark.parametrize("cause", causes().values(), ids=lambda cause: cause.cause)
def test_a_cause_has_an_action_that_holds_without_a_condition(cause: Cause) -> None:
    alone = {"fix": "what the error line says"} if cause.cause in of_lines() else {}
    free = [r for r in cause.actions if not _conditions(r) and r.words(alone)]
    memory = {place for r in cause.actions for place in r.on} >= {"host", "device"}
    assert free or memory


#: A pattern with more alternatives than this is a list of words of the world, and has rows of its own.
MOST_ALTERNATIVES = 8
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef
READS_A_RUN = ("rules", "analyses", "case", "compare", "diagnosis", "figures")


def patterns_of(path: Path) -> Iterator[str]:
    """Every text of a module but its docstrings that has an alternative of words in it."""
    told = {ast.get_docstring(node, clean=False) for node in nodes(path) if isinstance(node, DOCUMENTED)}
    texts = (node.value for node in nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    yield from (text for text in texts if text not in told and re.search(r"\w\|\w", text))


@pytest.mark.parametrize("package", READS_A_RUN)
def test_a_list_of_words_is_no_pattern_of_python(package: str) -> None:
    every = {path: patterns_of(path) for path in sorted((PACKAGE / package).rglob("*.py"))}
    assert [
        (path.name, text) for path, texts in every.items() for text in texts if text.count("|") > MOST_ALTERNATIVES
    ] == []
