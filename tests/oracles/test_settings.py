"""Files of settings against tomllib, PyYAML and json: every value with its dotted key and its line."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator
from time import process_time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from forensics.formats.configs import documents as config_files
from forensics.formats.configs import hparams as hparams_yaml
from forensics.formats.configs._parse import Parsed, toml_settings
from forensics.io.budget import Budget
from forensics.io.limits import DEFAULT

from .tables import read

KEY = st.text(st.sampled_from("abcxyz_-019"), min_size=1, max_size=6)
TEXT = st.text(st.sampled_from("ab \"'\\#:-{}[]\n\tü,&*!|>%@`"), max_size=10)
SCALAR = st.one_of(
    st.booleans(),
    st.integers(-(10**15), 10**15),
    st.floats(allow_nan=True),
    TEXT,
    st.sampled_from(["yes", "1e3", "null"]),
)


def tree(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    inner = st.recursive(
        leaf, lambda more: st.lists(more, max_size=3) | st.dictionaries(KEY, more, max_size=3), max_leaves=8
    )
    return st.dictionaries(KEY, inner, min_size=1, max_size=5)


def toml(data: bytes) -> Parsed:
    return toml_settings(data, Budget(len(data), DEFAULT))


def flat(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from flat(inner, f"{path}.{index}")
    else:
        yield path, value


def facts(reader: Any, name: str, data: bytes) -> list[tuple[str, str]]:
    frames = read(reader, name, data).frames()
    return [] if "facts" not in frames else sorted(frames["facts"].select("key", "value").rows())


def spelled(pairs: Iterator[tuple[str, object]]) -> list[tuple[str, str]]:
    """Values as the table of facts spells them: JSON, with words for what is not finite."""
    words = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}
    return sorted(
        (key, words.get(str(v)) or json.dumps(v) if isinstance(v, float) else json.dumps(v, ensure_ascii=False))
        for key, v in pairs
    )


def as_numbers(pairs: list[tuple[str, str]]) -> list[tuple[str, object]]:
    """The same with numbers as numbers, as `1e16` and `1e+16` are one."""
    return [(key, json.loads(value)) for key, value in pairs]


@given(tree(SCALAR), st.sampled_from([None, 2]))
def test_every_value_of_a_json_document_is_a_setting(content: dict[str, Any], indent: int | None) -> None:
    data = json.dumps(content, indent=indent).encode()
    found = facts(config_files.read, "config.json", data) if list(flat(content)) else []
    assert as_numbers(found) == as_numbers(spelled(flat(json.loads(data))))


#: PyYAML takes a number without a point (`1e3`) for a text; trainers mean a number, and it is read as one.
YAML_SCALAR = SCALAR.filter(lambda v: v != "1e3")


@given(tree(YAML_SCALAR), st.booleans(), st.sampled_from([config_files, hparams_yaml]))
def test_every_value_of_a_yaml_document_is_the_one_that_pyyaml_gives(
    content: dict[str, Any], flow: bool, reader: Any
) -> None:
    content = {"seed": 1, **content}
    data = yaml.safe_dump(content, default_flow_style=flow, allow_unicode=True, sort_keys=False).encode()
    name = "config.yaml" if reader is config_files else "hparams.yaml"
    found = facts(reader.read, name, data)
    assert as_numbers(found) == as_numbers(spelled(flat(yaml.safe_load(data))))


WORDS = "yes Yes YES no on On off OFF true False ~ null NULL .nan .NaN .NAN .inf -.Inf +.INF yEs nUll y .nAn"


@pytest.mark.parametrize("word", WORDS.split())
def test_a_plain_word_is_what_pyyaml_makes_of_it(word: str) -> None:
    found = facts(config_files.read, "config.yaml", f"a: {word}\nb: '{word}'\n".encode())
    assert found == spelled(flat(yaml.safe_load(f"a: {word}\nb: '{word}'")))


def toml_of(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {toml_of(inner)}' for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_of, value)) + "]"
    if isinstance(value, float):
        return "nan" if math.isnan(value) else repr(value).replace("e+", "e")
    return json.dumps(value, ensure_ascii=False)


@given(tree(SCALAR), st.dictionaries(KEY, tree(SCALAR), max_size=3))
def test_every_value_of_a_toml_document_is_the_one_that_tomllib_gives(
    content: dict[str, Any], tables: dict[str, Any]
) -> None:
    lines = [f'"{key}" = {toml_of(value)}' for key, value in content.items()]
    for name, table in tables.items():
        lines += [f'["{name}_t"."{name}"]', *(f'"{key}" = {toml_of(value)}' for key, value in table.items())]
    text = "\n".join(lines) + "\n"
    pairs = list(flat(tomllib.loads(text)))
    found = facts(config_files.read, "config.toml", text.encode()) if pairs else []
    assert as_numbers(found) == as_numbers(spelled(iter(pairs)))


@pytest.mark.parametrize(
    "deep",
    [
        ".".join(["a"] * 100_000) + " = 1",
        "[" + ".".join(["a"] * 100_000) + "]\nb = 1",
        " . ".join(['"a b"'] * 30_000) + " = 1",
        "b = {" + ".".join(["a"] * 100_000) + " = 1}",
    ],
)
def test_a_key_of_too_many_parts_ends_a_toml_document_at_once_and_is_stated(deep: str) -> None:
    begin = process_time()
    parsed = toml(f"x = 1\n{deep}\ny = 2\n".encode())
    assert process_time() - begin < 2  # 0.006 s; without the bound it does not end
    assert [(s.key, s.value, s.line) for s in parsed.settings] == [("x", 1, 1)]
    assert (parsed.good_bytes, parsed.problem) == (6, "a key has more than 50 parts")


@pytest.mark.parametrize(
    "text",
    [
        'x = "' + ".".join(["a"] * 200) + '"\ny = 2\n',
        'x = """\n' + ".".join(["a"] * 200) + ' = 1\n"""\ny = 2\n',
        "x = '''\n" + ".".join(["a"] * 200) + "'''\ny = 2\n",
        "# " + ".".join(["a"] * 200) + "\nx = 1\ny = 2\n",
        "x = 1\n" + ".".join(["a"] * 50) + " = 1\ny = 2\n",
    ],
)
def test_dots_in_texts_and_comments_are_no_parts_of_keys(text: str) -> None:
    parsed = toml(text.encode())
    assert (parsed.good_bytes, parsed.problem) == (len(text), "")
    assert [(s.key, s.value) for s in parsed.settings] == list(flat(tomllib.loads(text)))


@pytest.mark.parametrize("damage", ['"' + '\\"' * 60_000, '"""' * 60_000, "." * 200_000, "a " * 100_000, "'" * 200_000])
def test_looking_for_long_keys_takes_time_in_proportion_to_the_document(damage: str) -> None:
    begin = process_time()
    assert toml(f"x = 1\n{damage}".encode()).settings[0].key == "x"
    assert process_time() - begin < 2  # 0.05 s at most
