"""A folder of results is written whole or not at all, and never in place of another's."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.errors import UsageError
from forensics.io.atomic import write_folder

FILES = {"a/b/one.bin": b"\x00\xff", "mark.json": b"{}"}


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_every_file_is_there_and_nothing_beside(tmp_path: Path) -> None:
    write_folder(tmp_path / "out", FILES, "mark.json", force=False)
    assert tree(tmp_path / "out") == FILES
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    write_folder(tmp_path / "out", FILES, "mark.json", force=False)
    assert tree(tmp_path / "out") == FILES


def test_an_earlier_export_is_replaced_only_with_force(tmp_path: Path) -> None:
    write_folder(tmp_path / "out", {**FILES, "old": b"x"}, "mark.json", force=False)
    with pytest.raises(UsageError, match="exists already") as refused:
        write_folder(tmp_path / "out", FILES, "mark.json", force=False)
    assert "--force" in refused.value.help
    assert "old" in tree(tmp_path / "out")
    write_folder(tmp_path / "out", FILES, "mark.json", force=True)
    assert tree(tmp_path / "out") == FILES


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_of_another_is_never_replaced(tmp_path: Path, force: bool) -> None:
    place = tmp_path / "thesis"
    place.mkdir()
    (place / "chapter1.tex").write_text("years of work")
    with pytest.raises(UsageError, match="no export of forensics"):
        write_folder(place, FILES, "mark.json", force=force)
    assert tree(tmp_path) == {"thesis/chapter1.tex": b"years of work"}


@pytest.mark.parametrize("force", [False, True])
def test_neither_a_file_nor_a_link_is_replaced(tmp_path: Path, force: bool) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("file", "link", "dangling"):
        with pytest.raises(UsageError, match="is no folder"):
            write_folder(tmp_path / name, FILES, "mark.json", force=force)
    assert tree(tmp_path) == {"file": b"x"}


def test_a_failure_leaves_no_trace(tmp_path: Path) -> None:
    write_folder(tmp_path / "out", FILES, "mark.json", force=False)
    with pytest.raises(UsageError, match="cannot be written"):
        write_folder(tmp_path / "out", {"a": b"", "a/b": b"", "mark.json": b""}, "mark.json", force=True)
    assert tree(tmp_path) == {f"out/{name}": data for name, data in FILES.items()}
