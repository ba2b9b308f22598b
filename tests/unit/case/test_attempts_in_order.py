"""What attempts say of each other: which is judged, which died alike, which got no further; and where a place lies."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from forensics.case.processes.attempts import Attempt, Attempts, Cut
from forensics.case.processes.starts import Start
from forensics.values import replace

LAUNCHED = Start("a.log", 5, by_launcher=True)


def one(number: int, first: int | None, last: int | None, records: int = 20, *, failed: bool = True) -> Attempt:
    return Attempt(number, first=first, last=last, records=records, failed=failed)


@pytest.mark.parametrize(
    ("attempt", "speaks"),
    [
        (Attempt(1, records=3), True),
        (Attempt(1, records=2), False),
        (Attempt(1, ended=True), True),
        (Attempt(1, failed=True), True),
        (Attempt(1, failed=True, start=Start("a.log", 5)), True),
        (Attempt(1, failed=True, start=LAUNCHED), False),
        (Attempt(1, records=3, failed=True, start=LAUNCHED), True),
    ],
)
def test_an_attempt_is_judged_by_three_records_its_end_or_its_own_failure(attempt: Attempt, speaks: bool) -> None:
    assert attempt.speaks is speaks
    assert Attempts((Attempt(0, records=9), attempt)).judged.number == int(speaks)


def test_where_no_attempt_did_enough_the_last_is_judged() -> None:
    assert Attempts((Attempt(0), Attempt(1))).judged.number == 1


def numbers(*tried: Attempt) -> list[int]:
    return [found.number for found in Attempts(tried).loop]


def test_attempts_that_died_within_the_distance_of_two_records_are_a_loop() -> None:
    # 20 records from step 0 to 95: one each 5 steps
    assert numbers(one(0, 0, 90), one(1, 0, 95)) == [0, 1]
    assert numbers(one(0, 0, 89), one(1, 0, 95)) == []
    assert numbers(one(0, 0, 100), one(1, 0, 95)) == [0, 1]
    assert numbers(one(0, 0, 101), one(1, 0, 95)) == []
    assert numbers(one(0, 0, 94, 95), one(1, 0, 95, 96)) == [0, 1]
    assert numbers(one(0, 0, 93, 95), one(1, 0, 95, 96)) == []
    assert numbers(one(0, 95, 94, 1), one(1, 95, 95, 1)) == [0, 1]
    assert numbers(one(0, 50, 92), one(1, 57, 95)) == []
    assert numbers(one(0, 50, 93), one(1, 57, 95)) == [0, 1]


def test_a_loop_is_of_attempts_that_failed_up_to_the_one_that_is_judged() -> None:
    assert numbers(one(0, 0, 95, failed=False), one(1, 0, 95), one(2, 0, 95)) == [1, 2]
    assert numbers(one(0, 0, 95), one(1, 0, 95, failed=False)) == []
    assert numbers(one(0, 0, 95), replace(one(1, 0, 95), ended=True)) == []
    assert numbers(one(0, None, None), one(1, 0, 95)) == []
    assert numbers(one(0, 0, 95), one(1, None, None)) == []
    assert numbers(one(0, 0, 95)) == []
    later = replace(one(2, 0, 95, 2), start=LAUNCHED)
    assert numbers(one(0, 0, 95), one(1, 0, 95), later) == [0, 1]


def stuck(*lasts: int | None) -> int:
    """Each attempt begins a step after the one before."""
    return Attempts(tuple(one(n, n if last is not None else None, last) for n, last in enumerate(lasts))).stuck


def test_attempts_that_get_no_further_than_the_first_of_them_are_counted() -> None:
    assert stuck(95) == 1
    assert stuck(95, 95, 95) == 3
    assert stuck(95, 100) == 2  # within the distance of two records
    assert stuck(95, 99) == 2
    assert stuck(95, 101) == 1
    assert stuck(95, 90, 101, 101) == 2
    assert stuck(95, None, None) == 3
    assert stuck(None, None) == 2


@pytest.mark.parametrize(("failed", "count"), [((True, True, True), 3), ((True, False, False), 1)], ids=["all", "one"])
def test_workers_that_a_launcher_started_anew_got_no_further_where_they_fail_without_a_step(
    failed: Sequence[bool], count: int
) -> None:
    anew = [Start("train.log", n, by_launcher=True) if n else None for n in range(len(failed))]
    tried = [Attempt(n, start, failed=bad) for n, (start, bad) in enumerate(zip(anew, failed, strict=True))]
    assert Attempts(tuple(tried)).stuck == count
    assert stuck(None, 95, 95) == 2
    assert stuck(95, 99, 100, 100) == 4


def test_what_an_attempt_reached_is_lost_where_the_next_one_begins_no_later() -> None:
    def begun(*places: tuple[int | None, int]) -> int:
        return Attempts(tuple(one(n, first, last) for n, (first, last) in enumerate(places))).stuck

    assert begun((1, 90), (1, 120), (1, 90)) == 3
    assert begun((1, 90), (1, 120), (2, 90)) == 2  # the second one saved
    assert begun((1, 90), (1, 120)) == 1  # nothing tells yet what the judged one saved
    assert begun((1, 90), (1, 120), (1, 150)) == 1
    assert begun((1, 90), (None, 120), (1, 90)) == 2
    assert begun((1, 90), (1, 120), (None, 90)) == 2


def test_attempts_behind_the_one_that_is_judged_are_not_counted() -> None:
    tried = (one(0, 0, 95), one(1, 0, 95), Attempt(2, records=1, first=95, last=95))
    assert Attempts(tried).stuck == 2


CUTS = {"a.log": (Cut(0, -1), Cut(1, 50, line=40, byte=400), Cut(2, 90, line=80, byte=800))}
THREE = Attempts(tuple(Attempt(n, records=9, t_ns=100 * n or None) for n in range(3)), CUTS)


def test_a_place_lies_in_the_attempt_whose_cut_comes_last_before_it() -> None:
    assert [THREE.of("a.log", line=line) for line in (1, 39, 40, 79, 80, 99)] == [0, 0, 1, 1, 2, 2]
    assert [THREE.of("a.log", byte=byte) for byte in (399, 400, 800)] == [0, 1, 2]
    assert THREE.of("a.log", line=99, byte=400) == 1
    assert THREE.of("a.log") == 0
    late = Attempts(THREE.every, {"a.log": (Cut(1, -1), Cut(2, 50, line=40))})
    assert [late.of("a.log", line=line) for line in (1, 40)] == [1, 2]


def test_a_place_of_no_source_of_the_attempts_lies_by_its_time_else_in_the_last() -> None:
    assert [THREE.of("b.log", t_ns=t) for t in (99, 100, 199, 200, 900)] == [0, 1, 1, 2, 2]
    assert THREE.of("b.log") == 2
    untimed = Attempts((*THREE.every[:2], replace(THREE.every[2], t_ns=None)))
    assert untimed.of("b.log", t_ns=5) == 2


def test_an_attempt_ends_where_the_next_cut_lies() -> None:
    assert [THREE.end_of("a.log", line) for line in (1, 39, 40, 79, 80)] == [40, 40, 80, 80, None]
    assert THREE.end_of("b.log", 1) is None
    assert Attempts(THREE.every, {"a.log": (Cut(0, -1), Cut(1, 5, byte=70))}).end_of("a.log", 69) == 70


def test_what_an_earlier_attempt_did_is_over_and_what_nothing_places_is_where_the_judged_one_ended_well() -> None:
    assert [THREE.is_over("a.log", line=line) for line in (1, 79, 80)] == [True, True, False]
    assert not THREE.is_over("b.log")
    ended = Attempts((*THREE.every[:2], replace(THREE.every[2], ended=True)))
    assert ended.is_over("b.log")
    alone = Attempts((Attempt(0, ended=True),))
    assert not alone.is_over("b.log")
