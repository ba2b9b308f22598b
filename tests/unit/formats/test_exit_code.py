"""The exit code of a job in a file of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from forensics.errors import NotMine
from forensics.formats.trackers.exit_code import read

Run = Callable[..., Any]


@pytest.mark.parametrize(
    ("data", "code", "value"),
    [(b"3\n", "process.exit", "3"), (b"0", "process.ended", "0"), (b"exit code: -9", "process.exit", "-9")],
)
def test_the_code_is_an_end_or_an_error(data: bytes, code: str, value: str, run: Run) -> None:
    wrote = run(read, "exitcode", data)
    assert wrote.table("events")["code"].to_list() == [code]
    assert wrote.table("facts").select("key", "value", "family").rows() == [("exit_code", value, "exit")]
    assert wrote.coverage.skipped_bytes == 0


@pytest.mark.parametrize("data", [b"", b"running", b"1 2", b"1234", b"0" * 65, b"3" + b"\n" * 64])
def test_other_files_are_left_to_others(data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "rc", data)
