"""Markdown in which a hostile input stays text."""

from __future__ import annotations

import re

from forensics.model import Report
from forensics.report import markdown


def outside_code(lines: list[str]) -> str:
    """What a Markdown reader would treat as markup: the page without fenced blocks and code spans."""
    kept: list[str] = []
    fence = ""
    for line in "\n".join(lines).split("\n"):
        ticks = re.match("`{3,}", line)
        if ticks and not fence:
            fence = ticks[0]
        elif fence:
            fence = "" if line == fence else fence
        else:
            kept.append(re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", line))
    return "\n".join(kept)


def test_nothing_of_a_hostile_input_stands_outside_code(hostile: Report) -> None:
    for page in (list(markdown.render(hostile)), list(markdown.render_many([hostile, hostile]))):
        bare = outside_code(page)
        assert not any(mark in bare for mark in ("<script", "![i]", "##[", "::error", "http://", "\x1b", "\u202e"))


def test_a_table_keeps_its_columns_when_the_input_has_bars(hostile: Report) -> None:
    rows = [line for line in markdown.render(hostile) if line.startswith("| NAN001")]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [6]
