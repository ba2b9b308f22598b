"""Markdown of any run: outside of code spans and fences stands nothing of an input."""

from __future__ import annotations

import re

from hypothesis import given

from forensics.report import markdown

from .test_github_and_junit import ANY, report_of

FENCE = re.compile(r"^(`{3,})text\n.*?^\1$", re.DOTALL | re.MULTILINE)
BAR = re.compile(r"(?<!\\)\|")
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)")


def outside_of_code(page: str) -> str:
    return SPAN.sub("", FENCE.sub("", page))


@given(ANY)
def test_nothing_of_an_input_stands_outside_of_code(word: str) -> None:
    plain = outside_of_code("\n".join(markdown.render(report_of("x"))))
    hostile = outside_of_code("\n".join(markdown.render(report_of(word))))
    # a quote that is blank has no block, and a step that is no command is said as one all the same
    assert re.sub(r"\n+", "\n", hostile) == re.sub(r"\n+", "\n", plain)


@given(ANY)
def test_a_table_of_runs_keeps_its_columns(word: str) -> None:
    plain = list(markdown.render_many([report_of("x"), report_of("x")]))
    rows = list(markdown.render_many([report_of(word), report_of(word)]))
    assert [len(BAR.findall(row)) for row in rows] == [len(BAR.findall(row)) for row in plain]
