"""Properties of safe text and tolerant JSON that hold for every input."""

from __future__ import annotations

import html
import json
import math
import unicodedata
from html.parser import HTMLParser
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from forensics.errors import InputError
from forensics.io.safe_text import csv_cell, for_github, for_html, for_markdown, markdown_block, printable
from forensics.io.tolerant_json import dumps, loads

ANY = st.text(st.characters(), max_size=60) | st.text("\x1b\n\r\t`|<>&'\"%:#[]=+-@\u202e\ud800\u200b x", max_size=60)
BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


@given(ANY, st.none() | st.integers(0, 40))
def test_printable_text_has_nothing_that_controls(text: str, width: int | None) -> None:
    shown = printable(text, width)
    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}]
    assert not [c for c in shown if unicodedata.bidirectional(c) in BIDI]
    assert shown.encode().decode() == shown
    assert width is None or len(shown) <= width


@given(ANY)
def test_printable_text_is_its_own_printable_text(text: str) -> None:
    assert printable(printable(text)) == printable(text)


@given(ANY)
def test_html_parses_back_to_the_shown_text_and_no_element(text: str) -> None:
    seen: list[str] = []

    class Parser(HTMLParser):
        def handle_data(self, data: str) -> None:
            seen.append(data)

        def handle_starttag(self, tag: str, attrs: object) -> None:
            raise AssertionError((tag, attrs))

    parser = Parser(convert_charrefs=True)
    parser.feed(for_html(text))
    parser.close()
    assert "".join(seen) == printable(text) == html.unescape(for_html(text))


@given(ANY)
def test_a_code_span_ends_where_it_should(text: str) -> None:
    span = for_markdown(text)
    fence = span[: len(span) - len(span.lstrip("`"))]
    inside = span[len(fence) : -len(fence)]
    assert span.endswith(fence)
    assert fence not in [run for run in inside.replace("`", " ` ").split() if len(run) == len(fence)] or len(fence) > 1
    assert not inside.startswith("`")
    assert not inside.endswith("`")
    assert "\n" not in span


@given(ANY)
def test_a_block_holds_all_lines_between_its_fences(text: str) -> None:
    fence, *lines, last, end = markdown_block(text).split("\n")
    assert (last, end) == (fence.removesuffix("text"), "")
    assert len(lines) == text.count("\n") + 1
    assert not [line for line in lines if line.strip() == last]


@given(ANY)
def test_a_workflow_finds_no_command_in_a_message(text: str) -> None:
    assert "##[" not in for_github(text)
    assert "\n" not in for_github(text)
    assert "\r" not in for_github(text)


@given(ANY)
def test_a_cell_never_begins_a_formula(text: str) -> None:
    cell = csv_cell(text)
    try:
        float(cell)
    except ValueError:
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


def spelled(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, list):
        return [spelled(v) for v in value]
    return {k: spelled(v) for k, v in value.items()} if isinstance(value, dict) else value


@given(JSON)
def test_what_is_written_reads_back_with_non_finite_numbers_spelled(value: Any) -> None:
    assert loads(dumps(value)) == spelled(value)
    assert json.loads(dumps(value, compact=True)) == spelled(value)


@given(JSON)
def test_what_python_writes_reads_back_as_python_reads_it(value: Any) -> None:
    assert spelled(loads(json.dumps(value).encode())) == spelled(value)


@given(st.binary(max_size=80) | st.text('[]{}",:\\u0 NaIfntye-+.1d8', max_size=60).map(str.encode))
def test_any_bytes_are_a_value_or_an_input_error(data: bytes) -> None:
    try:
        loads(data)
    except InputError:
        return
