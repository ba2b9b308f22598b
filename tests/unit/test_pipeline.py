"""Where the tables of a run are kept: in memory, or on disk when they would be large."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import pipeline
from forensics.pipeline import ingest_run

LINES = {
    "run.log": "step 1 loss 2.5\n",
    "metrics.csv": "step,loss\n1,2.5\n2,2.25\n",
    "metrics.jsonl": '{"step": 1, "loss": 2.5}\n',
}


@pytest.mark.parametrize(("name", "spilled"), [("run.log", False), ("metrics.csv", True), ("metrics.jsonl", True)])
def test_tables_of_numbers_go_to_disk_before_text_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, spilled: bool
) -> None:
    run, cache = tmp_path / "run", tmp_path / "cache"
    run.mkdir()
    (run / name).write_text(LINES[name] * (80_000 // len(LINES[name])), encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(pipeline, "IN_MEMORY_BYTES", 100_000)

    found = ingest_run(run)

    assert cache.exists() is spilled
    assert found.collect("sources")["source"].to_list() == [name]
