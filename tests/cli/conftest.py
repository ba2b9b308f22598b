"""Runs made on the spot, and a way to call the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from forensics import pipeline, registry
from forensics.cli.main import run
from forensics.io.places.named import place_of
from forensics.store.run import Run


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        return json.loads(self.out)


Call = Callable[..., Done]


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration, no colour, no cache but the test's own."""
    for name in ("FORENSICS_IGNORE", "FORENSICS_FAIL_ON", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)


@pytest.fixture(scope="module")
def read_once() -> Iterator[None]:
    """For modules that ask many commands of runs that do not change: one that was read is read again by no command.

    What goes into a store or tells its progress is read as ever, and so is all by readers that a test put in place.
    """
    read, kept = pipeline.ingest_run, dict[object, Run]()

    def once(where: Any, **how: Any) -> Run:
        if how.get("store") or how.get("progress"):
            return read(where, **how)
        asked = registry.load, f"{place_of(where).identity!r} {sorted(how.items(), key=str)}"
        if asked not in kept:
            kept[asked] = read(where, **how)
        return kept[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "ingest_run", once)
        yield


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    def forensics(*args: object) -> Done:
        code = run([str(arg) for arg in args])
        seen = capsys.readouterr()
        return Done(code, seen.out, seen.err)

    return forensics


def rows(bad_from: int | None) -> str:
    records = (
        {
            "step": step,
            "loss": float("nan") if bad_from and step >= bad_from else 4.0 - step / 50,
            "grad_norm": float("nan") if bad_from and step >= bad_from else 0.8 + step % 3 / 10,
        }
        for step in range(1, 81)
    )
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def nan_run(tmp_path: Path) -> Path:
    folder = tmp_path / "nan"
    folder.mkdir()
    (folder / "metrics.jsonl").write_text(rows(51), encoding="utf-8")
    return folder


@pytest.fixture
def good_run(tmp_path: Path) -> Path:
    folder = tmp_path / "good"
    folder.mkdir()
    (folder / "metrics.jsonl").write_text(rows(None), encoding="utf-8")
    (folder / "config.json").write_text('{"max_steps": 80}', encoding="utf-8")
    return folder


@pytest.fixture
def odd_run(tmp_path: Path) -> Path:
    folder = tmp_path / "odd"
    folder.mkdir()
    (folder / "notes.txt").write_text("buy milk\n", encoding="utf-8")
    return folder
