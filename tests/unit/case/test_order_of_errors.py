"""Which of two places came first: by lines in one file, by clocks between files, and unknown where neither tells."""

from __future__ import annotations

from itertools import permutations

import pytest

from forensics.case.errors._failure import Failure
from forensics.case.errors.kinds import Weight
from forensics.case.errors.timeline import before, in_order, is_before
from forensics.model import Evidence, Locator


def error(source: str, line: int, t_ns: int | None = None, weight: Weight = Weight.OWN) -> Failure:
    return Failure(source, line, None, t_ns, None, None, "code", "crash", weight, "", "", "", "words")


def proof(source: str, t_ns: int | None = None, **place: int) -> Evidence:
    return Evidence(source, Locator(**place), "words", t_ns=t_ns)


@pytest.mark.parametrize(
    ("one", "other", "is_first"),
    [
        (proof("a", line=1), proof("a", line=2), True),
        (proof("a", line=2), proof("a", line=1), False),
        (proof("a", line=1), proof("a", line=1), None),
        (proof("a", 5, line=1), proof("a", 9, line=1), True),
        (proof("a", 9, line=1), proof("a", 5, line=2), True),  # lines tell more than clocks
        (proof("a", record=3), proof("a", record=4), True),
        (proof("a", byte=3), proof("a", byte=4), True),
        (proof("a"), proof("a", line=4), None),
        (proof("a", 5), proof("b", 6), True),
        (proof("a", 6), proof("b", 5), False),
        (proof("a", 5), proof("b", 5), None),
        (proof("a", 5), proof("b"), None),
        (proof("a", line=1), proof("b", line=2), None),
    ],
)
def test_of_two_places_the_first_is_told_where_lines_or_clocks_tell_it(
    one: Evidence, other: Evidence, is_first: bool | None
) -> None:
    assert before(one, other) is is_first


def test_an_error_is_before_another_one_where_that_is_known() -> None:
    assert is_before(error("a", 1), error("a", 2))
    assert not is_before(error("a", 2), error("a", 2))
    assert is_before(error("a", 9, 5), error("b", 1, 6))
    assert not is_before(error("a", 1, 6), error("b", 9, 6))
    assert not is_before(error("a", 1), error("b", 9, 6))
    assert not is_before(error("a", 1, 6), error("b", 9))


@pytest.mark.parametrize("t_ns", [7, None])
def test_errors_of_one_time_are_in_the_order_of_files_and_lines_and_at_one_place_the_strongest_is_first(
    t_ns: int | None,
) -> None:
    weak, strong = Weight.WRAPPER, Weight.OWN
    assert strong > weak
    wanted = (
        error("a", 1, t_ns, weak),
        error("a", 2, t_ns, strong),
        error("a", 2, t_ns, weak),
        error("b", 1, t_ns, strong),
    )
    for drawn in permutations(wanted):
        assert in_order(drawn) == wanted


def test_errors_are_in_the_order_of_time_where_all_have_one() -> None:
    late, soon = error("a", 1, 9), error("b", 5, 3)
    assert in_order((late, soon)) == (soon, late)
    assert in_order((late, soon, error("c", 1))) == (late, soon, error("c", 1))
