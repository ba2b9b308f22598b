from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from msgspec import ValidationError

from forensics.knowledge import _rows


class Named(_rows.Row, frozen=True):
    """A row with a name, its words and a weight that may be left out."""

    name: str
    words: tuple[str, ...]
    weight: float = 0.5


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(importlib.import_module("forensics.knowledge._rows"), "files", lambda _: tmp_path)
    return tmp_path


def test_the_files_of_a_folder_are_read_in_the_order_of_their_names(tables: Path) -> None:
    (tables / "many").mkdir()
    (tables / "many/b.jsonl").write_text('{"name": "second", "words": ["w"], "weight": 2}\n', encoding="utf-8")
    (tables / "many/a.jsonl").write_text('{"name": "first", "words": []}\n', encoding="utf-8")
    (tables / "many/notes.txt").write_text("no row", encoding="utf-8")
    assert _rows.rows_of("many", Named) == (Named("first", ()), Named("second", ("w",), 2.0))


@pytest.mark.parametrize(
    "row", ['{"name": "n"}', '{"name": 1, "words": []}', '{"name": "n", "words": [], "wieght": 1}']
)
def test_a_row_that_lacks_a_field_or_has_a_wrong_or_an_unknown_one_is_refused(tables: Path, row: str) -> None:
    (tables / "one.jsonl").write_text(row, encoding="utf-8")
    with pytest.raises(ValidationError):
        _rows.rows_of("one.jsonl", Named)


def test_a_bare_row_is_what_its_line_holds(tables: Path) -> None:
    (tables / "one.jsonl").write_text('{"name": "n", "more": 1}', encoding="utf-8")
    assert _rows.bare_rows("one.jsonl") == ({"name": "n", "more": 1},)
