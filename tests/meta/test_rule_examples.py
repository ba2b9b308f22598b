"""Every rule's page is its test: sections complete, examples true, `needs` honest.

An example claims the whole list of findings, one `=>` line for each, in the order in which the rule gives them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from forensics.model import Causal, Confidence, Finding, Number, Onset, Severity, Shape
from forensics.registry import Rule, load
from forensics.report.pages import catalogue
from forensics.store.run import Run, run_of
from forensics.store.schema import TABLES
from forensics.values import replace
from tests.meta._example_tables import frames_of

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
#: A page is read on a terminal.
SCREENS, ROWS, COLUMNS = 2, 40, 80
CLAIM = re.compile(r"^ *=> (?P<claim>.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    rule: Rule
    kind: str
    number: int
    run: Run
    tables: tuple[str, ...]
    claims: tuple[str, ...]

    @property
    def label(self) -> str:
        return f"{self.rule.id}-{self.kind.replace(' ', '-').lower()}-{self.number}"


def cases_of(rule: Rule) -> Iterator[Case]:
    marks = [*HEAD.finditer(rule.doc)]
    for i, mark in enumerate(marks):
        block = rule.doc[mark.end() : marks[i + 1].start() if i + 1 < len(marks) else len(rule.doc)]
        claims = tuple(claim.strip() for claim in CLAIM.findall(block))
        assert claims, f"{rule.id}: {mark[1]} without a `=>` line"
        tables = frames_of(block)
        yield Case(rule, mark[1], i, run_of("example", tables), tuple(tables), claims)


CASES = [case for rule in RULES for case in cases_of(rule)]


def found_by(rule: Rule, run: Run) -> list[Finding]:
    return list(rule(run))


def words_of(claim: str) -> dict[str, str]:
    """The words of a `=>` line: the rule's id, the severity, then `key=value`."""
    rule_id, severity, *rest = claim.split()
    pairs = [("rule", rule_id), ("severity", severity), *(word.split("=", 1) for word in rest)]
    words = dict(pairs)
    assert len(words) == len(pairs), f"a word is given twice: {claim}"
    return words


def answer_of(rule: Rule, finding: Finding) -> dict[str, str]:
    """All words that a finding's claim needs: what is absent, the usual, or said by another word is left out."""
    onset, culprits = finding.onset, finding.culprits
    usual_rank = culprits[0] if len(culprits) == 1 else None
    said = {
        "rule": finding.rule,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "shape": None if finding.shape is rule.shape else finding.shape,
        "step": onset.step,
        "step_lo": onset.step_lo,
        "t_ns": onset.t_ns,
        "onset_rank": None if onset.rank == usual_rank else "none" if onset.rank is None else onset.rank,
        "rank": ",".join(map(str, culprits)) or None,
        "cause": finding.cause or None,
        "causal": None if finding.causal is Causal.ROOT else finding.causal,
        "decides": "true" if finding.decides else None,
    }
    return {key: str(value) for key, value in said.items() if value is not None}


def rounded(value: Number, written: str) -> str:
    """A number of a finding, to as many places as a claim writes."""
    return value if isinstance(value, str) else str(Decimal(value).quantize(Decimal(written)))


def numbers_of(finding: Finding, words: dict[str, str]) -> dict[str, str]:
    """The numbers that a claim names."""
    return {key: rounded(value, words[key]) for key, value in finding.numbers.items() if key in words}


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_a_rule_page_has_every_section_an_example_and_a_counterexample(rule: Rule) -> None:
    first = rule.doc.splitlines()[0]
    assert re.fullmatch(rf"{rule.id} [a-z0-9]+(-[a-z0-9]+)*: .+\.", first), first
    missing = [s for s in SECTIONS if not re.search(rf"^{s}", rule.doc, re.MULTILINE)]
    assert not missing, f"{rule.id} ({rule.origin}) lacks {missing}"


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_a_rule_page_fits_two_screens_with_an_example(rule: Rule) -> None:
    lines = list(catalogue.explanation(rule, "text"))
    assert sum(max(1, -(-len(line) // COLUMNS)) for line in lines) <= SCREENS * ROWS
    assert any(line.startswith("Example") for line in lines)


def test_a_page_says_how_many_examples_it_leaves_out() -> None:
    rule = next(r for r in RULES if r.id == "LRN014")
    shown, whole = (list(catalogue.explanation(rule, form)) for form in ("text", "markdown"))
    left = len(HEAD.findall("\n".join(whole))) - len(HEAD.findall("\n".join(shown)))
    assert left > 1
    assert f"{left} more examples: forensics explain LRN014 --format markdown" in shown
    assert any(line.startswith("Not this:") for line in shown)


def test_a_page_lists_the_ranges_that_its_rule_judges() -> None:
    rule = next(r for r in RULES if r.id == "SLO008")
    text, markdown = ("\n".join(catalogue.explanation(rule, form)) for form in ("text", "markdown"))
    row = "- mfu: healthy at least 0.15; the devices do a small part of the arithmetic they could"
    assert "Ranges:\n- mfu: healthy at least 0.15" in text
    assert row in markdown


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.label)
def test_a_rule_says_all_that_its_page_promises_and_no_more(case: Case) -> None:
    found = found_by(case.rule, case.run)
    claimed = [words_of(claim) for claim in case.claims if claim != "nothing"]
    assert len(found) == len(claimed), [f.title for f in found]
    for finding, words in zip(found, claimed, strict=True):
        answer, numbers = answer_of(case.rule, finding), numbers_of(finding, words)
        assert finding.rule == case.rule.id
        assert not answer.keys() & finding.numbers.keys(), "a number has the name of another word"
        assert answer | numbers == words, finding.title
        assert bool(numbers) is bool(finding.numbers), "a claim names at least one number of its finding"


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.label)
def test_a_rule_reads_no_table_that_it_does_not_declare(case: Case) -> None:
    whole = repr(found_by(case.rule, case.run))  # nan is not equal to itself
    declared = set(case.rule.needs)
    assert declared <= set(TABLES), case.rule.needs
    for table in case.run.frames.keys() - declared:
        assert repr(found_by(case.rule, case.run.without(table))) == whole, f"{case.rule.id} reads {table}"


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.label)
def test_a_rule_asks_only_for_declared_tables(case: Case) -> None:
    class Watched(Run):
        def scan(self, table: str) -> pl.LazyFrame:
            assert table in case.rule.needs, f"{case.rule.id} asks for {table}, declared {case.rule.needs}"
            return super().scan(table)

        def derived(self, make: Callable[[Run], Any]) -> Any:
            """Parts of the case read what they need: a rule declares the tables that it looks at itself."""
            return case.run.derived(make) if make.__module__.startswith("forensics.case.") else super().derived(make)

    found_by(case.rule, Watched(case.run.name, case.run.frames))


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.id)
def test_a_rule_says_nothing_of_an_empty_run(rule: Rule) -> None:
    assert not found_by(rule, Run("empty"))


def test_a_counterexample_ends_in_nothing_and_an_example_in_findings_alone() -> None:
    lone = [c.label for c in CASES if ("nothing" in c.claims) and len(c.claims) != 1]
    wrong = [c.label for c in CASES if (c.claims == ("nothing",)) is not (c.kind == "Not this")]
    assert (lone, wrong) == ([], [])


@pytest.mark.parametrize(
    "other",
    [
        {"rule": "NAN999"},
        {"shape": Shape.OOM},
        {"severity": Severity.INFO},
        {"confidence": Confidence.LOW},
        {"onset": Onset(step=7, step_lo=6, rank=1)},
        {"onset": Onset(step=8, step_lo=7, rank=1)},
        {"onset": Onset(step=8, step_lo=6)},
        {"onset": Onset(step=8, step_lo=6, rank=1, t_ns=5)},
        {"culprits": (1, 2)},
        {"culprits": ()},
        {"cause": "from_start"},
        {"causal": Causal.SYMPTOM},
        {"decides": True},
        {"numbers": {"ratio": 2.46}},
    ],
    ids=lambda other: next(iter(other)),
)
def test_a_claim_notices_whatever_else_a_finding_says(other: dict[str, object]) -> None:
    rule = next(r for r in RULES if r.id == "NAN010")
    case = next(c for c in CASES if c.rule is rule and c.claims != ("nothing",))
    words = {"ratio": "2.4"}
    finding = replace(
        found_by(rule, case.run)[0],
        onset=Onset(step=8, step_lo=6, rank=1),
        culprits=(1,),
        cause="rank_first",
        numbers={"ratio": 2.41},
    )
    changed = replace(finding, **other)
    said = [answer_of(rule, f) | numbers_of(f, words) for f in (finding, changed)]
    assert said[0] != said[1]


def test_a_number_is_compared_to_the_places_that_a_claim_writes() -> None:
    assert rounded(2.44, "2.4") == "2.4"
    assert rounded(2.46, "2.4") == "2.5"
    assert rounded(2, "2.0") == "2.0"
    assert rounded(float("nan"), "2.4") == "NaN"
    assert rounded("cosine", "linear") == "cosine"
