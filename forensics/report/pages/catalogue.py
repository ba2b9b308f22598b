"""The knowledge of forensics as pages: all rules, one rule explained, the formats and dialects."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Iterable, Iterator
from textwrap import wrap
from typing import Any

from forensics.dialects.spec import Dialect
from forensics.knowledge.ranges import Range, ranges
from forensics.patterns import lazily
from forensics.registry import Ingester, Registry, Rule
from forensics.report.json_v1 import encoded
from forensics.report.payload import Payload, headed
from forensics.report.phrases import plural
from forensics.report.style import PLAIN, Style, markdown_table
from forensics.values import field_names, named

#: Two screens of a terminal.
COLUMNS, MOST_LINES = 80, 80
_CONTINUED = lazily(r"\n {8}(?=\S)")
_EXAMPLES = lazily(r"^(?=(?:Example|Not this):)", re.MULTILINE)


def thresholds(rule: Rule) -> tuple[tuple[str, str, Any], ...]:
    """Name, type and default of each threshold of a rule, in the order of its class."""
    if rule.config is None:
        return ()
    default = rule.config()
    known = typing.get_type_hints(rule.config)
    return tuple((name, inspect.formatannotation(known[name]), getattr(default, name)) for name in field_names(default))


def sentence(doc: str) -> str:
    """Give the first paragraph of a docstring as one line, without the `ID name:` it may begin with."""
    first = " ".join(inspect.cleandoc(doc).split("\n\n", 1)[0].split())
    head, colon, rest = first.partition(": ")
    return rest if colon and len(head.split()) == 2 and head.split()[0].isupper() else first


def rules(every: Iterable[Rule], form: str, style: Style = PLAIN) -> Iterator[str]:
    """List rules as text, JSON or a Markdown table."""
    found = tuple(every)
    if form == "json":
        yield encoded(headed("forensics.rules/1", {"rules": [_rule(r) for r in found]}))
    elif form == "markdown":
        rows = ((r.id, r.slug, r.shape.value, _cell(sentence(r.doc))) for r in found)
        yield from markdown_table(("rule", "name", "shape", "what it detects"), rows)
    else:
        for rule in found:
            yield f"{style.paint(rule.id, 'bold')}  {rule.slug}  [{rule.shape.value}]"
            yield from style.field("", sentence(rule.doc))


def explanation(rule: Rule, form: str) -> Iterator[str]:
    """Explain one rule as text, JSON or Markdown; as text in two screens, with the examples that fit."""
    if form == "json":
        yield encoded(headed("forensics.rule/1", {**_rule(rule), "doc": rule.doc}))
    elif form == "markdown":
        yield from (f"# {rule.doc}", "", *_settings(rule, "- `{}`: {} = `{!r}`", above=("",)))
    else:
        yield from _screens(rule)


def _settings(rule: Rule, line: str, above: tuple[str, ...] = ()) -> Iterator[str]:
    """The thresholds of a rule, each as one line, and the rows of the table of ranges that it judges."""
    rows = thresholds(rule)
    yield f"Thresholds ([tool.forensics.rules.{rule.id}]):" if rows else "Thresholds: none."
    yield from (*(above if rows else ()), *(line.format(*row) for row in rows))
    if known := [row for row in ranges().values() if row.rule == rule.id]:
        yield from ("", "Ranges:", *above, *map(_range, known))


def _range(row: Range) -> str:
    """A row in words: the healthy range of a quantity, and the meaning of its red flag."""
    red = f"{row.op} {row.red:g}" if row.red is not None and row.op else row.test
    flag = f"{red}: {row.meaning}" if red else row.meaning
    return f"- {row.row}: " + (f"healthy {row.healthy}; {flag}" if row.healthy else flag)


def _screens(rule: Rule) -> Iterator[str]:
    """Give a page for a terminal: its prose, its thresholds, and as many examples as leave it two screens long."""
    prose, *examples = _EXAMPLES.split(rule.doc)
    head = [line for paragraph in prose.rstrip().split("\n\n") for line in (*wrap(paragraph, COLUMNS), "")]
    tail = ["", *_wrapped(_settings(rule, "    {}: {} = {!r}"), "  ")]
    blocks = [list(_wrapped(_CONTINUED.sub(" ", e).rstrip().split("\n"), " " * 8)) for e in examples]
    kinds = [example.partition(":")[0] for example in examples]
    told = set[int]()
    for i in sorted(range(len(blocks)), key=lambda i: (kinds.index(kinds[i]) != i, i)):
        used = len(head) + len(tail) + sum(len(blocks[k]) for k in told) + 2
        if not told or used + len(blocks[i]) <= MOST_LINES:
            told.add(i)
    yield from head
    for i in sorted(told):
        yield from blocks[i]
    if more := len(blocks) - len(told):
        yield from ("", f"{plural(more, 'more example')}: forensics explain {rule.id} --format markdown")
    yield from tail


def _wrapped(lines: Iterable[str], indent: str) -> Iterator[str]:
    for line in lines:
        yield from wrap(line, COLUMNS, subsequent_indent=indent, break_long_words=False) or ("",)


def formats(found: Registry, form: str, style: Style = PLAIN) -> Iterator[str]:
    """List ingesters and dialects as text, JSON or Markdown tables."""
    ingesters = tuple(found.ingesters)
    dialects: tuple[Dialect, ...] = tuple(found.dialects)
    if form == "json":
        told = [
            {**named(i, "name version"), "title": sentence(i.doc), **named(i, "files=sniff.glob emits origin")}
            for i in ingesters
        ]
        known = {"formats": told, "dialects": [named(d, "name title") for d in dialects]}
        yield encoded(headed("forensics.formats/1", known))
        return
    if form == "markdown":
        rows = ((i.name, _cell(_globs(i)), ", ".join(i.emits)) for i in ingesters)
        yield from (*markdown_table(("format", "files", "gives"), rows), "")
        yield from markdown_table(("dialect", "trainer"), ((d.name, _cell(d.title)) for d in dialects))
        return
    yield style.paint("Formats", "bold")
    for ingester in ingesters:
        yield f"  {ingester.name} -> {', '.join(ingester.emits)}"
        yield from style.field("", sentence(ingester.doc))
        yield from style.field("", _globs(ingester), "dim", most=2)
    yield style.paint("Dialects of text logs", "bold")
    width = max((len(d.name) for d in dialects), default=0)
    yield from (f"  {d.name:<{width}}  {d.title}" for d in dialects)


def _rule(rule: Rule) -> Payload:
    return {
        **named(rule, "id name=slug shape"),
        "title": sentence(rule.doc),
        **named(rule, "needs origin"),
        "thresholds": [{"name": n, "type": t, "default": _plain(d)} for n, t, d in thresholds(rule)],
    }


def _plain(value: object) -> object:
    return list(value) if isinstance(value, (tuple, frozenset)) else value  # type: ignore[arg-type]


def _globs(ingester: Ingester) -> str:
    if ingester.sniff.glob:
        return " ".join(ingester.sniff.glob)
    return "any other text" if ingester.sniff.fallback else "by content"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
