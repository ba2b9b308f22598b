"""`python docs/words.py`: every sentence that users read, with its place, so that one editor reads them as one list.

Sentences are beside what they are about: in rows of `forensics/knowledge/`, and in what rules, analyses and pages say.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1] / "forensics"
#: Fields of rows that are shown as they are.
SHOWN = ("says", "deed", "why", "confirms", "fix", "words", "meaning", "text")
#: Folders whose strings with a blank in them are words for users, and the least number of words of one.
SPEAKING, LEAST_WORDS = ("rules", "analyses", "diagnosis", "compare", "report", "figures", "cli"), 3
#: Calls whose strings are no words: patterns, columns, options.
SILENT = frozenset(("compile", "col", "struct", "search", "match", "contains", "extract", "sub", "Option", "get_data"))


def rows() -> Iterator[tuple[str, str]]:
    """Sentences of the tables of knowledge, as place and text."""
    for path in sorted((ROOT / "knowledge").rglob("*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for text in shown(json.loads(line)):
                yield f"{path.relative_to(ROOT)}:{number}", text


def shown(value: object) -> Iterator[str]:
    """The texts of a row that are shown, those of its actions and its clue included."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if isinstance(inner, str) and name in SHOWN:
                yield inner
            elif not isinstance(inner, str):
                yield from shown(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from shown(inner)


def strings() -> Iterator[tuple[str, str]]:
    """Sentences of the code, as place and text; what is put in stands as `{…}`."""
    for folder in SPEAKING:
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in spoken(tree):
                text = written(node)
                if len(text.split()) >= LEAST_WORDS and any(letter.isalpha() for letter in text):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", text


def spoken(node: ast.AST) -> Iterator[ast.Constant | ast.JoinedStr]:
    """String nodes that are neither a docstring nor an argument of a silent call."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.Call) and getattr(child.func, "attr", getattr(child.func, "id", "")) in SILENT:
            continue
        if isinstance(child, ast.JoinedStr) or (isinstance(child, ast.Constant) and isinstance(child.value, str)):
            yield child
        else:
            yield from spoken(child)


def written(node: ast.Constant | ast.JoinedStr) -> str:
    """A string as it is read."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{…}" for part in node.values)


def main() -> None:
    """Print every sentence."""
    for place, text in (*rows(), *strings()):
        print(f"{place}\t{' '.join(text.split())}")


if __name__ == "__main__":
    main()
