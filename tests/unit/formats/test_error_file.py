"""Error files of torchelastic: one exception with its rank, time and innermost frame."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from forensics.errors import NotMine
from forensics.formats.stacks.error_file import read

Run = Callable[..., Any]


def test_the_exception_comes_with_its_rank_its_time_and_its_innermost_frame(run_fixture: Run) -> None:
    row = run_fixture(read, "error_file/crash-one-rank").table("events").row(0, named=True)
    assert (row["code"], row["rank"], row["t_ns"]) == ("traceback", 2, 1_750_000_123_000_000_000)
    assert row["text"] == "KeyError: 'ids'"
    attrs = json.loads(row["attrs"])
    assert (attrs["exc"], attrs["message"], attrs["frame"]) == ("KeyError", "'ids'", "/opt/app/loop.py:31 in fit")


def test_the_old_form_is_a_message_alone(run_fixture: Run) -> None:
    row = run_fixture(read, "error_file/crash-old-form").table("events").row(0, named=True)
    assert (row["text"], row["rank"]) == ("ValueError: width 12 is odd", 0)


def test_a_cut_file_is_stated(run_fixture: Run) -> None:
    wrote = run_fixture(read, "error_file/broken-cut")
    assert [issue.code for issue in wrote.issues] == ["damaged"]
    assert wrote.coverage.skipped_bytes == wrote.coverage.size_bytes


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"message": 3}', b"oops"])
def test_other_files_are_left_to_others(data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "error.json", data)
