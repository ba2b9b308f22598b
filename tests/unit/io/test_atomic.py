"""A result is written whole, or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from forensics.errors import UsageError
from forensics.io.atomic import write_atomic


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_a_new_file_holds_the_bytes_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_atomic(tmp_path / "r.json", b"{}", force=False)
    assert (tmp_path / "r.json").read_bytes() == b"{}"
    assert names(tmp_path) == ["r.json"]


def test_an_existing_file_is_kept_unless_forced(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(b"old")
    with pytest.raises(UsageError) as caught:
        write_atomic(path, b"new", force=False)
    assert "--force" in caught.value.help
    assert path.read_bytes() == b"old"
    write_atomic(path, b"new", force=True)
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["r.json"]


def test_a_failure_leaves_the_old_file_and_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="cannot be written: the disk is full"):
        write_atomic(path, b"new", force=True)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["r.json"]


def test_a_place_that_cannot_be_written_to_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="folder"):
        write_atomic(tmp_path, b"", force=True)
    with pytest.raises(UsageError, match="cannot be written"):
        write_atomic(tmp_path / "no" / "r.json", b"", force=False)


def test_a_link_is_replaced_and_its_target_kept(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"kept")
    (tmp_path / "r.json").symlink_to(tmp_path / "target")
    with pytest.raises(UsageError):
        write_atomic(tmp_path / "r.json", b"new", force=False)
    write_atomic(tmp_path / "r.json", b"new", force=True)
    assert (tmp_path / "target").read_bytes() == b"kept"
    assert (tmp_path / "r.json").read_bytes() == b"new"


def test_a_pipe_is_written_to_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_atomic(pipe, b"data", force=False)
    reader.join(5)
    assert got == [b"data"]


def test_the_file_has_the_mode_that_the_user_asked_for_by_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomic(tmp_path / "r", b"", force=False)
    finally:
        os.umask(before)
    assert (tmp_path / "r").stat().st_mode & 0o777 == 0o640
