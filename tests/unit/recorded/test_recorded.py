"""What is said of each made series and run is what was said when somebody last looked at it (`kept.py`)."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from kept import MAKERS, alike, kept


@pytest.mark.parametrize("maker", MAKERS)
def test_made_series_and_runs_are_answered_as_before(maker: str) -> None:
    before, names = kept(maker), set[str]()
    for name, said in importlib.import_module(maker).answers():
        assert name not in names, name
        names.add(name)
        assert alike(said, before.get(name, "nothing was kept")), f"{name}:\n{said}\nwas\n{before.get(name)}"
    assert names == before.keys()


def test_an_answer_may_differ_in_its_last_digit_and_in_no_word() -> None:
    assert alike("slope of 120, rise 2.0001e-05", "slope of 120, rise 2e-05")
    assert not alike("slope of 120, rise 2.02", "slope of 120, rise 2.00")
    assert not alike("slope of 120, rise 2.0", "stairs of 120, rise 2.0")
    assert not alike("rise 2.0, onset none", "rise 2.0, onset 3")
    assert not alike("12 of 13", "12 of 13 and 14")
