"""Text of an input is harmless in every place where it is shown."""

from __future__ import annotations

import pytest

from forensics.io.safe_text import (
    csv_cell,
    for_github,
    for_github_property,
    for_html,
    for_markdown,
    markdown_block,
    printable,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, größe 模型 😀", "plain text, größe 模型 😀"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("\x9b2J\x7f", "\\x9b2J\\x7f"),
        ("abc\u202etxt.exe", "abc\\u202etxt.exe"),
        ("\udce9", "\\xe9"),
        ("\ud83d", "\\ud83d"),
        ("a\u2028b\ufeff\U000e0041", "a\\u2028b\\ufeff\\U000e0041"),
        ("[/x] [red]", "[/x] [red]"),
    ],
)
def test_what_cannot_be_seen_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("##[error]x", "#\\x23[error]x"),
        ("a ##[group]b", "a #\\x23[group]b"),
        ("::error::x", "\\x3a:error::x"),
        ("said ::stop-commands::x", "said \\x3a:stop-commands::x"),
        ("a\n::error::x", "a\\n::error::x"),
        ("c10::Error at::native", "c10::Error at::native"),
        (":: x", ":: x"),
        ("##x[", "##x["),
    ],
)
def test_what_a_runner_takes_for_a_command_is_escaped_in_every_text(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_width_cuts_with_an_ellipsis() -> None:
    assert printable("abcdef", 6) == "abcdef"
    assert printable("abcdefg", 6) == "abcde…"
    assert printable("\x1b" * 10, 6) == "\\x1b\\…"
    assert printable("abc", 0) == ""


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("loss", "`loss`"),
        ("a`b", "``a`b``"),
        ("`a", "`` `a ``"),
        ("", "` `"),
        (" a ", "`  a  `"),
        ("@you #1 https://x.example", "`@you #1 https://x.example`"),
    ],
)
def test_markdown_is_a_code_span(text: str, span: str) -> None:
    assert for_markdown(text) == span


def test_a_cell_of_a_markdown_table_keeps_its_columns() -> None:
    assert for_markdown("a|b", cell=True) == "`a\\|b`"


def test_a_markdown_block_cannot_be_closed_from_inside() -> None:
    assert markdown_block("a\n````\nb") == "`````text\na\n````\nb\n`````\n"


def test_github_messages_and_properties_are_escaped() -> None:
    assert for_github("50%\nb\r") == "50%25%0Ab\\r"
    assert for_github_property("C:\\a,b") == "C%3A\\a%2Cb"
    assert "##[" not in for_github("x ##[error]y")


def test_html_is_escaped_in_content_and_attributes() -> None:
    assert for_html('<a href="x">\'&\x1b') == "&lt;a href=&quot;x&quot;&gt;&#x27;&amp;\\x1b"


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-cmd|x", "@sum", "\t=1", "\r=1", "\uff1d1+1", "-1+1"])
def test_a_cell_is_no_formula(text: str) -> None:
    assert csv_cell(text).startswith("'")


@pytest.mark.parametrize("text", ["-1.5", "+3", "-1e-4", "-inf", "loss", "1"])
def test_a_cell_that_reads_as_a_number_stays(text: str) -> None:
    assert csv_cell(text) == text
