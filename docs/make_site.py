"""`python docs/make_site.py DOCS INTO`: what the site is built from (`make site`).

The pages of DOCS are copied; one page for each rule and their index, formats, dialects, names of metrics and figures
are written beside them, and a rule that a page names becomes a link to its page. Nothing of this is kept in the
repository: what they are written from is, so a new file needs no page edited.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from reference_tables import dialects, figures, formats, marked, metric_names, table

from forensics import registry
from forensics.model import Shape
from forensics.patterns import lazily
from forensics.registry import Rule
from forensics.report.pages import catalogue

REFERENCE = "reference"
RULES = f"{REFERENCE}/rules"
_FENCE = lazily(r"^(?P<fence>`{3,})[^\n]*\n.*?^(?P=fence)$", re.MULTILINE | re.DOTALL)
_SECTION = lazily(r"^(?P<title>[A-Z][a-z]+(?: [a-z]+)*):(?: |\n|$)")
_BLOCK = lazily(r"^ *```(?P<head>\w+(?: [\w,]+)?)\n(?P<body>.*?)^ *```$|^ *=> (?P<claim>.+)$", re.MULTILINE | re.DOTALL)


def stage(docs: Path, into: Path) -> None:
    """Write the pages that the site is built from."""
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(docs, into, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    rules = registry.load("rules").rules
    (into / RULES).mkdir(parents=True, exist_ok=True)
    for name, lines in pages(rules).items():
        (into / name).write_text("\n".join(lines), encoding="utf-8")
    every = frozenset(rule.id for rule in rules)
    for path in sorted(into.rglob("*.md")):
        name = path.relative_to(into)
        path.write_text(linked(path.read_text(encoding="utf-8"), name, every), encoding="utf-8")


def pages(rules: tuple[Rule, ...]) -> Mapping[str, Iterable[str]]:
    """Give the lines of every page that is written when the site is built, by its place."""
    return {
        f"{REFERENCE}/formats.md": formats(),
        f"{REFERENCE}/dialects.md": dialects(),
        f"{REFERENCE}/metric-names.md": metric_names(),
        f"{REFERENCE}/figures.md": figures(),
        f"{RULES}/index.md": index(rules),
        **{f"{RULES}/{rule.id}.md": page(rule) for rule in rules},
    }


def index(rules: tuple[Rule, ...]) -> Iterator[str]:
    """Write the page that lists all rules, by shape."""
    yield from ("# Rules", "")
    yield f"{len(rules)} rules. Each has a page, which is what `forensics explain RULE` prints."
    for shape in Shape:
        yield from ("", f"## {shape.value}", "")
        rows = ((f"[{r.id}]({r.id}.md)", r.slug, marked(catalogue.sentence(r.doc))) for r in rules if r.shape is shape)
        yield from table(("rule", "name", "what it detects"), rows)
    yield ""


def page(rule: Rule) -> Iterator[str]:
    """Write one rule's page, with its examples as tables, and its thresholds."""
    title, _, body = rule.doc.partition("\n\n")
    yield from (f"# {rule.id} {rule.slug}", "", f"{marked(_capital(catalogue.sentence(title)))}", "")
    reads = ", ".join(f"[`{name}`](../tables.md#{name})" for name in rule.needs)
    yield from (f"Shape `{rule.shape.value}`; reads {reads}.", "")
    for paragraph in re.split(r"\n\n+(?=\S)|\n(?=Example|Not this)", body):
        yield from _paragraph(paragraph)
    yield from _thresholds(rule)


def _thresholds(rule: Rule) -> Iterator[str]:
    yield from ("## Thresholds", "")
    rows = catalogue.thresholds(rule)
    if not rows:
        yield from ("None.", "")
        return
    yield from (f"Set in `[tool.forensics.rules.{rule.id}]`: see [Configuration](../configuration.md).", "")
    yield from table(("name", "type", "default"), ((f"`{n}`", f"`{t}`", f"`{d!r}`") for n, t, d in rows))
    yield ""


def _paragraph(text: str) -> Iterator[str]:
    found = _SECTION.match(text)
    if found is None:
        yield from (marked(text), "")
        return
    yield from (f"## {found['title']}", "")
    rest = text[found.end() :]
    if found["title"] not in {"Example", "Not this"}:
        yield from (marked(_capital(rest)), "")
        return
    first = _BLOCK.search(rest)
    if first is not None and (said := rest[: first.start()].strip()):
        yield from (marked(_capital(said)) + ":", "")
    for block in _BLOCK.finditer(rest):
        yield from _example(block)


def _example(block: re.Match[str]) -> Iterator[str]:
    if block["claim"]:
        yield from (f"Result: `{block['claim']}`", "")
        return
    name, _, columns = block["head"].partition(" ")
    lines = (line.strip() for line in (columns, *block["body"].splitlines()))
    form = "Rows" if columns else "Columns"
    yield from (f"{form} of [`{name}`](../tables.md#{name}):", "", "```text", *filter(None, lines), "```", "")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def linked(text: str, name: Path, rules: frozenset[str]) -> str:
    """Give a page whose rule ids, outside of code blocks, headings and links, lead to their pages."""
    here = re.compile(r"(?<![\w\[/.`-])(?P<tick>`?)(?P<id>[A-Z]{3}\d{3})(?P=tick)(?![\w\].`-])")
    up = "../" * (len(name.parts) - 1)

    def link(found: re.Match[str]) -> str:
        if found["id"] not in rules or found["id"] == name.stem:
            return found[0]
        return f"[{found[0]}]({up}{RULES}/{found['id']}.md)"

    def prose(part: str) -> str:
        return "\n".join(line if line.startswith("#") else here.sub(link, line) for line in part.split("\n"))

    return _outside_fences(text, prose)


def _outside_fences(text: str, change: Callable[[str], str]) -> str:
    out, at = list[str](), 0
    for fence in _FENCE.finditer(text):
        out += [change(text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*out, change(text[at:])])


if __name__ == "__main__":
    stage(Path(sys.argv[1]), Path(sys.argv[2]))
