"""The same hostile texts in every renderer: whatever an input says, the structure is that of a plain word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forensics.model import Report
from forensics.report import github, json_v1, junit, markdown, text
from forensics.report.html import notebook
from forensics.report.html.page import render_many
from forensics.report.phrases import is_command

from .test_github_and_junit import COMMAND, COMMANDS, report_of
from .test_html_page import PAYLOADS, filled, long, parsed
from .test_markdown_escapes import outside_of_code

EVERY = (*PAYLOADS, *COMMANDS)
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def test_there_are_at_least_fifty_payloads_and_none_comes_twice() -> None:
    assert len(PAYLOADS) >= 50
    assert len(set(EVERY)) == len(EVERY)


def several(report: Report, word: str) -> Sequence[Report]:
    return [report, filled(report, word), filled(report, word)]


@pytest.mark.parametrize("payload", EVERY)
def test_a_page_of_several_runs_has_the_tree_of_plain_words(failed: Report, payload: str) -> None:
    plain = parsed("\n".join(render_many(several(failed, long("x")))))
    hostile = parsed("\n".join(render_many(several(failed, long(payload)))))
    assert (hostile.tags, hostile.ids, hostile.links) == (plain.tags, plain.ids, plain.links)


@given(st.text(max_size=60))
def test_any_text_at_all_leaves_the_tree_of_a_page_as_it_is(word: str) -> None:
    assume(not is_command(long(word)))  # a command to copy is shown as one
    plain, hostile = (parsed("\n".join(render_many([report_of(long(w))] * 2))) for w in ("x", word))
    assert (hostile.tags, hostile.ids, hostile.links) == (plain.tags, plain.ids, plain.links)


@pytest.mark.parametrize("payload", EVERY)
def test_a_notebook_has_the_tree_of_plain_words(failed: Report, payload: str) -> None:
    plain, hostile = (parsed(notebook.of_report(filled(failed, long(w)))) for w in ("x", payload))
    assert hostile.tags == plain.tags


@pytest.mark.parametrize("payload", EVERY)
def test_an_annotation_stays_one_line_and_one_command(failed: Report, payload: str) -> None:
    for line in (*github.render(report_of(payload, 2)), *github.render_many([report_of(payload), failed])):
        assert len(line.splitlines()) == 1
        assert COMMAND.fullmatch(line)
        assert "##[" not in line


@pytest.mark.parametrize("payload", EVERY)
def test_suites_have_the_elements_of_plain_words(failed: Report, payload: str) -> None:
    def tags(word: str) -> list[tuple[str, tuple[str, ...]]]:
        root = ET.fromstring("\n".join(junit.render_many([report_of(word, 2), failed])).encode())
        return [(e.tag, tuple(e.attrib)) for e in root.iter()]

    assert tags(payload) == tags("x")


@pytest.mark.parametrize("payload", EVERY)
def test_markdown_outside_of_code_is_that_of_a_plain_word(payload: str) -> None:
    for render in (markdown.render, lambda r: markdown.render_many([r, r])):
        plain, hostile = (outside_of_code("\n".join(render(report_of(w)))) for w in ("x", payload))
        # the fingerprint is of the quote, so it differs
        assert squeezed(hostile) == squeezed(plain)


@pytest.mark.parametrize("payload", EVERY)
def test_a_terminal_is_sent_no_control_character(failed: Report, payload: str) -> None:
    report = filled(failed, payload)
    for line in (*text.render(report), *text.render_many([report, report, failed])):
        assert not CONTROL.search(line)


@pytest.mark.parametrize("payload", EVERY)
def test_json_is_ascii_safe_to_embed_or_at_least_valid_utf8(failed: Report, payload: str) -> None:
    "".join(json_v1.render_many([filled(failed, payload), failed])).encode("utf-8")


def squeezed(page: str) -> str:
    return re.sub(r"\n+", "\n", re.sub(r"\b[0-9a-f]{12}\b", "FINGERPRINT", page))
