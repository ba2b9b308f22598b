"""Two runs of other code: how the commit between them is found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from forensics.compare.sections.config import compare
from forensics.pipeline import ingest_run
from tests.unit.symptoms.kit import written

if TYPE_CHECKING:
    from pathlib import Path

GOOD, BAD = "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678", "ffeeddccbbaa99887766554433221100ffeeddcc"


def notes(folder: Path, base: str, cand: str) -> str:
    lines = "".join(f"step={n} loss={3 - n / 100:.4f}\n" for n in range(1, 41))
    runs = [
        ingest_run(
            written(
                folder / name,
                {"train.log": lines, "wandb-metadata.json": json.dumps({"git": {"commit": commit}, "program": "t.py"})},
            )
        )
        for name, commit in (("good", base), ("bad", cand))
    ]
    section = compare(runs[:1], runs[1], None)  # pyright: ignore[reportArgumentType] - options are not read here
    return " ".join(section.notes) if section is not None else ""


def test_two_commits_are_bisected_from_the_bad_one_to_the_good_one(tmp_path: Path) -> None:
    assert f"git bisect start {BAD} {GOOD}" in notes(tmp_path, GOOD, BAD)


def test_one_commit_is_not_bisected(tmp_path: Path) -> None:
    assert "git bisect" not in notes(tmp_path, GOOD, GOOD)
