"""Headers of safetensors: the shape of the embedding is read, the tensors never, hostile lengths are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from forensics.errors import NotMine
from forensics.formats.checkpoints import safetensors as safetensors_header
from forensics.formats.checkpoints.safetensors import header_bytes

Run = Callable[..., Any]
READ = safetensors_header.read


def facts(wrote: Any) -> dict[str, str]:
    return dict(wrote.table("facts").select("key", "value").iter_rows())


def test_rows_and_precision_are_read_and_the_tensors_are_not(run_fixture: Run) -> None:
    wrote = run_fixture(READ, "safetensors_header/ok-model")
    found = facts(wrote)
    assert found["weights.model.embed_tokens.weight.rows"] == "96"
    assert found["weights.lm_head.weight.width"] == "4"
    assert found["weights.dtype"] == '"BF16"'
    assert "only the header" in wrote.coverage.reason
    assert wrote.issues == []


def test_a_step_in_the_path_is_a_checkpoint(run_fixture: Run) -> None:
    rows = run_fixture(READ, "safetensors_header/ok-step").table("checkpoints").select("step", "complete").rows()
    assert rows == [(40, None)]


def test_parts_of_rows_tell_nothing_of_the_vocabulary(run_fixture: Run) -> None:
    found = facts(run_fixture(READ, "safetensors_header/ok-split"))
    assert not any(key.endswith(".rows") for key in found)


def test_a_file_that_ends_before_its_tensors_is_no_whole_checkpoint(run: Run) -> None:
    from pathlib import Path  # noqa: PLC0415 - one test reads a fixture's bytes

    data = (Path(__file__).parents[3] / "fixtures/safetensors_header/broken-cut/model.safetensors").read_bytes()
    wrote = run(READ, "out/checkpoint-7/model.safetensors", data)
    assert wrote.table("checkpoints").select("step", "complete").rows() == [(7, False)]
    assert [i.code for i in wrote.issues] == ["damaged"]


def test_a_damaged_header_is_said_to_be_damaged(run_fixture: Run) -> None:
    wrote = run_fixture(READ, "safetensors_header/broken-header")
    assert [i.code for i in wrote.issues] == ["damaged"]
    assert wrote.coverage.read_bytes == 0


def test_shapes_that_are_none_are_left_out(run_fixture: Run) -> None:
    assert facts(run_fixture(READ, "safetensors_header/broken-lies")) == {}


@pytest.mark.parametrize("length", [0, 1, 1 << 24, (1 << 63) - 1, (1 << 64) - 1])
def test_a_hostile_length_is_refused(run: Run, length: int) -> None:
    data = length.to_bytes(8, "little") + b'{"a": 1}' + b" " * 4096
    assert header_bytes(data[:9], len(data)) is None
    with pytest.raises(NotMine):
        run(READ, "model.safetensors", data)
