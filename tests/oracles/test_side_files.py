"""Small files beside a run against json, struct, hashlib and packaging: counts, versions and commits as they stand."""

from __future__ import annotations

import json
import struct
from collections import Counter
from math import prod
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from forensics.formats.checkpoints import safetensors as safetensors_header
from forensics.formats.configs import git_record
from forensics.formats.configs import requirements as requirements_txt
from forensics.formats.configs import tokenizers as tokenizer_files
from forensics.formats.stacks import error_file

from .tables import read

WORD = st.text(st.sampled_from("abcxyz019"), min_size=1, max_size=6)
TENSOR = st.tuples(st.sampled_from(["F32", "BF16", "I64"]), st.lists(st.integers(0, 1 << 20), max_size=3))
TOKENS = st.dictionaries(st.text(min_size=1, max_size=4), st.integers(0, (1 << 31) - 1), min_size=1, max_size=30)


def facts(reader: Any, name: str, data: bytes) -> dict[str, Any]:
    frame = read(reader, name, data).frames()["facts"]
    return {key: json.loads(value) for key, value in frame.select("key", "value").rows()}


@given(st.dictionaries(WORD.map("layers.{}.weight".format), TENSOR, min_size=1, max_size=20), st.integers(0, 7))
def test_a_safetensors_header_is_what_its_json_says(tensors: dict[str, Any], spaces: int) -> None:
    header = {name: {"dtype": kind, "shape": shape, "data_offsets": [0, 0]} for name, (kind, shape) in tensors.items()}
    text = json.dumps(header).encode() + b" " * spaces
    found = facts(safetensors_header.read, "model.safetensors", struct.pack("<Q", len(text)) + text)
    by_kind = Counter[str]()
    for kind, shape in tensors.values():
        by_kind[kind] += prod(shape)
    assert found["weights.parameters"] == sum(by_kind.values())
    assert by_kind[found["weights.dtype"]] == max(by_kind.values())


@given(
    st.lists(
        st.tuples(WORD.map("p{}".format), st.sampled_from(["", "[extra]"]), st.integers(0, 99)), min_size=1, max_size=30
    )
)
def test_versions_of_packages_are_those_that_packaging_reads(lines: list[tuple[str, str, int]]) -> None:
    texts = [f"{name}{extra}==1.{version}" for name, extra, version in lines]
    frame = read(requirements_txt.read, "requirements.txt", "\n".join(texts).encode()).frames()["facts"]
    found = [(line, key, json.loads(value)) for line, key, value in frame.select("line", "key", "value").rows()]
    assert found == [
        (line, canonicalize_name(peer.name), str(peer.specifier).removeprefix("=="))
        for line, peer in enumerate(map(Requirement, texts), start=1)
    ]


@given(
    st.text(st.sampled_from("0123456789abcdef"), min_size=40, max_size=40), st.sampled_from(["{}\n", "commit {}\n\n x"])
)
def test_a_commit_is_the_one_that_stands_in_its_file(commit: str, form: str) -> None:
    assert facts(git_record.read, "git_commit.txt", form.format(commit).encode())["git_commit"] == commit


@given(TOKENS)
def test_a_vocabulary_is_counted_as_json_gives_it(tokens: dict[str, int]) -> None:
    found = facts(tokenizer_files.read, "vocab.json", json.dumps(tokens).encode())
    assert (found["tokenizer.n_base_tokens"], found["tokenizer.max_base_id"]) == (len(tokens), max(tokens.values()))


@given(st.text(st.sampled_from('ab:"\\ ü'), min_size=1, max_size=20), st.integers(10**9, 4 * 10**9))
def test_an_error_file_gives_its_message_and_its_time(message: str, seconds: int) -> None:
    document = {"message": {"message": f"RuntimeError: {message}", "extraInfo": {"timestamp": str(seconds)}}}
    data = json.dumps(document).encode()
    row = read(error_file.read, "error.json", data).frames()["events"].row(0, named=True)
    assert row["text"] == json.loads(data)["message"]["message"].strip()
    assert row["t_ns"] == seconds * 10**9
