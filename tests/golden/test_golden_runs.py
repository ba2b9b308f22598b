"""Nobody changes an answer unseen: golden runs get the answers that are kept, word by word.

The suite asks a fixed sixth of them, and a run of each kind of answer that none of these shows; `make golden` asks all,
and FORENSICS_GOLDEN=all makes these tests do it.
"""

from __future__ import annotations

import json
import os
import sys
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import make  # noqa: E402 - the folder is no package
import runs  # noqa: E402 - same

LABELS, ANSWERS = runs.kept(runs.LABELS), runs.kept(runs.ANSWERS)
TEXTS = dict(
    page.split(" <==\n", 1) for page in ("\n" + runs.TEXTS.read_text(encoding="utf-8")).split("\n==> ") if page
)
ALL = os.environ.get("FORENSICS_GOLDEN") == "all"


def sixth(names: Iterable[str]) -> set[str]:
    """Those that the suite asks in any case; a name stays in its sixth when others come or go."""
    return {name for name in names if ALL or zlib.crc32(name.encode()) % 6 == 0}


def kinds(told: Mapping[str, Any]) -> set[str]:
    """What answers show: rules with their severities, cause, outcome, readers, and commands that have an answer."""
    triage, nan = told["triage"], told.get("nan_origin", {})
    rules = {" ".join(finding.split(maxsplit=2)[:2]) for finding in triage["findings"]}
    said = {f"cause {triage['cause']}", f"{triage['outcome']} {triage['shape']}", f"nan {nan.get('kind')}"}
    return {*rules, *said, *told.get("read", ()), *told, f"diff {told.get('verdict')}"}


def asked(of: str) -> list[str]:
    """A sixth of the runs or pairs, and the first of each kind of answer that none of these shows."""
    answers, always = ANSWERS[of], sixth(ANSWERS[of])
    order = [*sorted(answers, reverse=True), *sorted(always)]  # the last that shows a kind is its run
    shown = {kind: name for name in order for kind in kinds(answers[name])}
    return sorted({*always, *shown.values()})


def test_the_runs_that_are_asked_show_every_kind_of_answer() -> None:
    for of in ("runs", "pairs"):
        names, answers = asked(of), ANSWERS[of]
        assert {kind for name in names for kind in kinds(answers[name])} == set().union(*map(kinds, answers.values()))


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {path.name: path for path in runs.unpacked(tmp_path_factory.mktemp("golden"))}


def test_every_packed_run_has_a_label_and_answers(places: dict[str, Path]) -> None:
    assert set(places) == set(LABELS["runs"]) == set(ANSWERS["runs"]) == set(TEXTS)


def test_the_pack_is_small_enough_for_every_clone() -> None:
    assert runs.PACK.stat().st_size <= runs.MOST_PACKED_BYTES


@pytest.mark.parametrize("name", asked("runs"))
def test_a_golden_run_gets_the_answers_that_are_kept(name: str, places: dict[str, Path]) -> None:
    now = runs.told(places[name])
    kept = {"answers": ANSWERS["runs"][name], "text": TEXTS[name].rstrip("\n")}
    found = {"answers": now.answers, "text": now.text.rstrip("\n")}
    both = (json.dumps(one["answers"], indent=1, sort_keys=True) + one["text"] for one in (kept, found))
    assert found == kept, "\n".join(runs.difference(*both, name))


@pytest.mark.parametrize("name", asked("pairs"))
def test_a_golden_pair_gets_the_comparison_that_is_kept(name: str, places: dict[str, Path]) -> None:
    pair = LABELS["pairs"][name]
    assert runs.compared([places[base] for base in pair["base"]], places[pair["cand"]]) == ANSWERS["pairs"][name]


def test_makers_give_the_runs_that_are_packed_byte_for_byte(places: dict[str, Path]) -> None:
    for one in make.made():
        packed = {
            str(p.relative_to(places[one.name])): p.read_bytes() for p in places[one.name].rglob("*") if p.is_file()
        }
        made = {path: data if isinstance(data, bytes) else data.encode() for path, data in one.files.items()}
        assert packed == made, one.name
