"""Every rule's docstring is its page and its test: sections complete, examples true, `needs` honest."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
import pytest

from forensics.model import Finding
from forensics.registry import Rule, load
from forensics.store.run import Run, run_of
from forensics.store.schema import TABLES

RULES = load("rules").rules
SECTIONS = (
    "What it detects:",
    "Why it matters:",
    "How it decides:",
    "What else looks like this:",
    "What to do next:",
    "References:",
    "Example:",
    "Not this:",
)
HEAD = re.compile(r"^(Example|Not this):[^\n]*$", re.MULTILINE)
FENCE = re.compile(r"^ *```(?P<head>\w+ [\w,]+)\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL)
CLAIM = re.compile(r"^ *=> (?P<claim>.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    rule: Rule
    kind: str
    number: int
    run: Run
    tables: tuple[str, ...]
    claim: str

    @property
    def label(self) -> str:
        return f"{self.rule.id}-{self.kind.replace(' ', '-').lower()}-{self.number}"


def value_of(cell: str, dtype: pl.DataType) -> object:
    if cell == "":
        return None
    if dtype.is_integer():
        return int(cell)
    if dtype.is_float():
        return float(cell)
    return cell == "true" if dtype == pl.Boolean() else cell


def frame_of(head: str, body: str) -> tuple[str, pl.DataFrame]:
    table, names = head.split(" ")
    columns = names.split(",")
    types = TABLES[table]
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    cells = list(csv.reader(io.StringIO("\n".join(lines))))
    assert all(len(row) == len(columns) for row in cells), f"{table}: a row has not {len(columns)} cells"
    rows = [
        {c: value_of(v, types[c]) for c, v in zip(columns, row, strict=True)}
        | ({} if "source" in columns else {"source": "run.log"})
        | ({} if "seq" in columns or "seq" not in types else {"seq": i})
        | ({"raw_name": row[columns.index("name")]} if "raw_name" in types and "raw_name" not in columns else {})
        for i, row in enumerate(cells)
    ]
    return table, pl.DataFrame(rows, schema={c: types[c] for c in types if c in rows[0]})


def cases_of(rule: Rule) -> Iterator[Case]:
    marks = [*HEAD.finditer(rule.doc)]
    for i, mark in enumerate(marks):
        block = rule.doc[mark.end() : marks[i + 1].start() if i + 1 < len(marks) else len(rule.doc)]
        claim = CLAIM.search(block)
        assert claim is not None, f"{rule.id}: {mark[1]} without a `=>` line"
        frames = [frame_of(fence["head"], fence["body"]) for fence in FENCE.finditer(block)]
        tables = {t: pl.concat([f for name, f in frames if name == t], how="diagonal") for t, _ in frames}
        yield Case(rule, mark[1], i, run_of("example", tables), tuple(tables), claim["claim"].strip())


CASES = [case for rule in RULES for case in cases_of(rule)]


def found_by(rule: Rule, run: Run) -> list[Finding]:
    return list(rule.check(run, rule.config() if rule.config else None))


def described(finding: Finding) -> dict[str, str]:
    words = {"step": str(finding.onset.step), "rank": ",".join(map(str, finding.culprits)), "cause": finding.cause}
    return words | {"shape": finding.shape.value, "confidence": finding.confidence.value}


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_a_rule_page_has_every_section_an_example_and_a_counterexample(rule: Rule) -> None:
    first = rule.doc.splitlines()[0]
    assert re.fullmatch(rf"{rule.id} [a-z0-9]+(-[a-z0-9]+)*: .+\.", first), first
    missing = [s for s in SECTIONS if not re.search(rf"^{s}", rule.doc, re.MULTILINE)]
    assert not missing, f"{rule.id} ({rule.origin}) lacks {missing}"


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.label)
def test_a_rule_says_what_its_page_promises(case: Case) -> None:
    found = found_by(case.rule, case.run)
    if case.claim == "nothing":
        assert not found, [f.title for f in found]
        return
    rule_id, severity, *words = case.claim.split()
    assert rule_id == case.rule.id
    assert found, f"{case.rule.id} found nothing"
    assert found[0].severity.value == severity, found[0].title
    said = described(found[0])
    for word in words:
        key, _, value = word.partition("=")
        assert said[key] == value, found[0].title


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.label)
def test_a_rule_reads_no_table_that_it_does_not_declare(case: Case) -> None:
    whole = repr(found_by(case.rule, case.run))  # nan is not equal to itself
    declared = set(case.rule.needs)
    assert declared <= set(TABLES), case.rule.needs
    for table in set(TABLES) - declared:
        assert repr(found_by(case.rule, case.run.without(table))) == whole, f"{case.rule.id} reads {table}"


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.label)
def test_a_rule_asks_only_for_declared_tables(case: Case) -> None:
    class Watched(Run):
        def scan(self, table: str) -> pl.LazyFrame:
            assert table in case.rule.needs, f"{case.rule.id} asks for {table}, declared {case.rule.needs}"
            return super().scan(table)

    found_by(case.rule, Watched(case.run.name, case.run.frames))


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_a_rule_says_nothing_of_an_empty_run(rule: Rule) -> None:
    assert not found_by(rule, Run("empty"))


def test_a_counterexample_ends_in_nothing_and_an_example_in_a_finding() -> None:
    wrong = [c.label for c in CASES if (c.claim == "nothing") is not (c.kind == "Not this")]
    assert not wrong
