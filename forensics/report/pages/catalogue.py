"""What forensics knows, as pages: the rules, one rule explained, the formats and dialects."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Iterator
from typing import Any

from forensics.dialects.spec import Dialect
from forensics.registry import Ingester, Registry, Rule
from forensics.report._payload import Payload, tool
from forensics.report._style import PLAIN, Style
from forensics.report.json_v1 import encoded

FORMATS = ("text", "json", "markdown")


def thresholds(rule: Rule) -> tuple[tuple[str, str, Any], ...]:
    """Name, type and default of each threshold of a rule, in the order of its dataclass."""
    if rule.config is None or not dataclasses.is_dataclass(rule.config):
        return ()
    default = rule.config()
    return tuple((f.name, str(f.type), getattr(default, f.name)) for f in dataclasses.fields(rule.config))


def page(rule: Rule) -> str:
    """Give the rule's docstring, indentation removed."""
    return inspect.cleandoc(rule.doc)


def sentence(doc: str) -> str:
    """Give the first paragraph of a docstring as one line, without the `ID name:` it may begin with."""
    first = " ".join(inspect.cleandoc(doc).split("\n\n", 1)[0].split())
    head, colon, rest = first.partition(": ")
    return rest if colon and len(head.split()) == 2 and head.split()[0].isupper() else first


def rules(every: Iterable[Rule], form: str, style: Style = PLAIN) -> Iterator[str]:
    """List rules as text, JSON or a Markdown table."""
    found = tuple(every)
    if form == "json":
        yield encoded({"schema": "forensics.rules/1", "tool": tool(), "rules": [_rule(r) for r in found]})
        return
    if form == "markdown":
        yield "| rule | name | shape | what it detects |"
        yield "|---|---|---|---|"
        yield from (f"| {r.id} | {r.slug} | {r.shape.value} | {_cell(sentence(r.doc))} |" for r in found)
        return
    for rule in found:
        yield f"{style.paint(rule.id, 'bold')}  {rule.slug}  [{rule.shape.value}]"
        yield from style.field("", sentence(rule.doc))


def explanation(rule: Rule, form: str) -> Iterator[str]:
    """Explain one rule as text, JSON or Markdown."""
    if form == "json":
        yield encoded({"schema": "forensics.rule/1", "tool": tool(), **_rule(rule), "doc": page(rule)})
        return
    title, _, body = page(rule).partition("\n")
    yield f"# {title}" if form == "markdown" else title
    yield from body.rstrip().split("\n")
    yield ""
    heading = f"Thresholds ([tool.forensics.rules.{rule.id}]):"
    rows = thresholds(rule)
    yield heading if rows else "Thresholds: none."
    if rows and form == "markdown":
        yield ""
    for name, kind, default in rows:
        yield f"- `{name}`: {kind} = `{default!r}`" if form == "markdown" else f"    {name}: {kind} = {default!r}"


def formats(found: Registry, form: str, style: Style = PLAIN) -> Iterator[str]:
    """List ingesters and dialects as text, JSON or Markdown tables."""
    ingesters = tuple(found.ingesters)
    dialects: tuple[Dialect, ...] = tuple(found.dialects)
    if form == "json":
        yield encoded(
            {
                "schema": "forensics.formats/1",
                "tool": tool(),
                "formats": [_ingester(i) for i in ingesters],
                "dialects": [{"name": d.name, "title": d.title} for d in dialects],
            }
        )
        return
    if form == "markdown":
        yield "| format | files | gives |"
        yield "|---|---|---|"
        yield from (f"| {i.name} | {_cell(_globs(i))} | {', '.join(i.emits)} |" for i in ingesters)
        yield ""
        yield "| dialect | trainer |"
        yield "|---|---|"
        yield from (f"| {d.name} | {_cell(d.title)} |" for d in dialects)
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
        "id": rule.id,
        "name": rule.slug,
        "shape": rule.shape.value,
        "title": sentence(rule.doc),
        "needs": list(rule.needs),
        "origin": rule.origin,
        "thresholds": [{"name": n, "type": t, "default": _plain(d)} for n, t, d in thresholds(rule)],
    }


def _ingester(ingester: Ingester) -> Payload:
    return {
        "name": ingester.name,
        "version": ingester.version,
        "title": sentence(ingester.doc),
        "files": list(ingester.sniff.glob),
        "emits": list(ingester.emits),
        "origin": ingester.origin,
    }


def _plain(value: object) -> object:
    return list(value) if isinstance(value, (tuple, frozenset)) else value  # type: ignore[arg-type]


def _globs(ingester: Ingester) -> str:
    if ingester.sniff.glob:
        return " ".join(ingester.sniff.glob)
    return "any other text" if ingester.sniff.fallback else "by content"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
