from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest

import forensics
from forensics.knowledge.vocabulary import every_key, keys_of

MEANINGS = sorted({row.means for row in every_key()})
ASKED = re.compile(r"""\bkeys_of\(\s*f?["']([\w{}]+)["']""")


@pytest.mark.parametrize("means", MEANINGS)
def test_a_key_is_named_once_for_a_meaning_and_every_row_has_a_source(means: str) -> None:
    assert [key for key, count in Counter(keys_of(means)).items() if count > 1] == []
    assert all(row.keys and row.source for row in every_key() if row.means == means)


def test_the_rows_of_a_meaning_follow_one_another_since_their_order_decides() -> None:
    assert len([*groupby(every_key(), key=lambda row: row.means)]) == len(MEANINGS)


def test_the_step_of_a_row_is_the_plainest_key_that_it_has() -> None:
    steps = keys_of("step_of_row")
    assert steps[0] == "step"
    assert steps.index("global_step") < steps.index("_step") < steps.index("episode")


def test_every_meaning_is_asked_for() -> None:
    code = [path.read_text(encoding="utf-8") for path in Path(forensics.__file__).parent.rglob("*.py")]
    asked = {means.replace("{part}", r"\w+") for text in code for means in ASKED.findall(text)}
    assert [means for means in MEANINGS if not any(re.fullmatch(one, means) for one in asked)] == []


def test_a_meaning_without_a_row_is_a_mistake_of_the_program() -> None:
    with pytest.raises(KeyError):
        keys_of("nothing_of_the_kind")
