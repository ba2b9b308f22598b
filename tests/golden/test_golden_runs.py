"""Nobody changes a diagnosis unseen: every golden run gets the one that is kept, word by word."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import runs  # noqa: E402 - the folder is no package

DIAGNOSES, LABELS = runs.kept(runs.DIAGNOSES), runs.kept(runs.LABELS)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {path.name: path for path in runs.unpacked(tmp_path_factory.mktemp("golden"))}


def test_every_packed_run_has_a_label_and_a_diagnosis(places: dict[str, Path]) -> None:
    assert set(places) == set(LABELS) == set(DIAGNOSES)


@pytest.mark.parametrize("name", sorted(DIAGNOSES))
def test_a_golden_run_gets_the_diagnosis_that_is_kept(name: str, places: dict[str, Path]) -> None:
    now = dict(runs.diagnosed([places[name]]))
    assert now == {name: DIAGNOSES[name]}, "\n".join(runs.difference({name: DIAGNOSES[name]}, now))
