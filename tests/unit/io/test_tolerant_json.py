"""JSON as tools write it is read; what is written never turns NaN into null."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from forensics.errors import InputError, LimitExceeded
from forensics.io.limits import Limits
from forensics.io.tolerant_json import dumps, loads


def test_literals_of_non_finite_numbers_are_floats() -> None:
    found: Any = loads(b'{"loss": NaN, "a": [Infinity, -Infinity], "b": 1e400}')
    assert math.isnan(found["loss"])
    assert found["a"] == [math.inf, -math.inf]
    assert found["b"] == math.inf


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\xef\xbb\xbf[1]", [1]),
        (b"18446744073709551615", 2**64 - 1),
        (b"18446744073709551616", 2**64),
        (b"-9223372036854775809", -(2**63) - 1),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\ud83d"', "\\ud83d"),
        (b'"a\\\\ud83d"', "a\\ud83d"),
        (b"[-9223372036854775808, 1763738112123456789]", [-(2**63), 1763738112123456789]),
        (b'"raw\nnewline \x01"', "raw\nnewline \x01"),
        (b'"latin \xe9"', "latin \ufffd"),
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b'["[[[", "}}"]', ["[[[", "}}"]),
    ],
)
def test_odd_documents_keep_their_values(data: bytes, value: object) -> None:
    assert loads(data) == value


@pytest.mark.parametrize("data", [b"", b"{", b"[1,]", b"nan", b"{} {}", b'{"a": "b', b"\xff\xfe", b"1" * 5000, b"]["])
def test_what_is_no_json_is_an_input_error(data: bytes) -> None:
    with pytest.raises(InputError):
        loads(data)


@pytest.mark.parametrize("unit", [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"[":', b"}]")])
@pytest.mark.parametrize("depth", [150, 1000, 100_000])
def test_depth_is_bounded(unit: tuple[bytes, bytes], depth: int) -> None:
    with pytest.raises(LimitExceeded):
        loads(unit[0] * depth + b"1" + unit[1] * depth, Limits(json_depth=100))


def test_depth_up_to_the_limit_is_read() -> None:
    assert loads(b"[" * 200 + b"]" * 200) is not None
    assert loads(b"[" + b'{"a":["}"]},' * 500 + b"1]") is not None


def test_unclosed_depth_is_refused_quickly() -> None:
    with pytest.raises(InputError):
        loads(b"[" * 1_000_000)


def test_size_is_bounded() -> None:
    with pytest.raises(LimitExceeded) as caught:
        loads(b"[1,2,3]", Limits(json_bytes=3))
    assert (caught.value.limit, caught.value.actual) == (3, 7)


@dataclass(frozen=True)
class Row:
    loss: float
    names: tuple[str, ...] = ()


def test_nothing_becomes_null_in_silence() -> None:
    document = {"a": [math.nan, math.inf, -math.inf], "row": Row(math.nan, ("x\ud83d",)), "n": 2**70, "none": None}
    assert json.loads(dumps(document)) == {
        "a": ["NaN", "Infinity", "-Infinity"],
        "row": {"loss": "NaN", "names": ["x\\ud83d"]},
        "n": str(2**70),
        "none": None,
    }


def test_keys_sets_and_paths_become_text() -> None:
    document = {1: {"b", "a"}, math.nan: Path("a/b"), None: (1,)}
    assert json.loads(dumps(document)) == {"1": ["a", "b"], "NaN": "a/b", "None": [1]}


def test_compact_is_one_line() -> None:
    assert dumps({"a": [1, 2]}, compact=True) == b'{"a":[1,2]}'
    assert b"\n" in dumps({"a": [1, 2]})


DIRECTING = (
    "".join(
        chr(code)
        for codes in ([0x7F], range(0x80, 0xA0), range(0x202A, 0x202F), range(0x2066, 0x206A), (0x200E, 0x200F, 0x61C))
        for code in codes
    )
    + "\u2028\u2029\ufeff\U000e0041"
)


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("char", DIRECTING, ids=lambda char: f"U+{ord(char):04X}")
def test_what_directs_a_terminal_is_escaped_and_the_same_value(char: str, compact: bool) -> None:
    document = {f"k{char}": [f"{char}a", {"b": f"größe 模型 😀{char}{char}"}]}
    written = dumps(document, compact=compact)
    assert char.encode() not in written
    assert json.loads(written) == loads(written) == document
    assert "größe 模型 😀".encode() in written


def test_an_indented_document_keeps_its_lines_and_text_without_such_characters_its_bytes() -> None:
    assert dumps({"a": "é", "b": "\x7f"}) == '{\n  "a": "é",\n  "b": "\\u007f"\n}'.encode()
    assert dumps(["é", "~"], compact=True) == '["é","~"]'.encode()


def test_a_lone_surrogate_becomes_a_visible_escape_that_every_parser_reads() -> None:
    assert loads(dumps("name\udce9")) == "name\\udce9"


@pytest.mark.parametrize("text", ["##[error]x", "\\##[x", "###[", "##[##["])
def test_no_document_holds_a_command_to_a_runner(text: str) -> None:
    written = dumps([text])
    assert b"##[" not in written
    assert json.loads(written) == [text]
