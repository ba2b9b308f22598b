"""How clues add up to a culprit: what share of the best score is named, and what is too little to name anybody."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from forensics.model import Confidence, Evidence, Locator, Shape
from forensics.rules.hang import decide
from forensics.rules.hang.clue import Clue
from forensics.rules.hang.decide import Decision
from forensics.store.run import run_of

Decided = Callable[..., Decision | None]
RANKS = 8


def clue(*ranks: int, weight: float = 4, cause: str = "never_entered", kind: str = "recorder", **more: object) -> Clue:
    """A clue of a kind that proves a stall by itself from weight 4 on."""
    proof = (Evidence("fr/0", Locator(path="seq 9"), "seq 9"),)
    return Clue(ranks, cause, weight, kind, "", proof, **more)  # type: ignore[arg-type]


@pytest.fixture
def decided(monkeypatch: pytest.MonkeyPatch) -> Decided:
    def of(*clues: Clue) -> Decision | None:
        monkeypatch.setattr(decide, "sources", lambda: (lambda _: clues,))
        rows = [
            {"source": f"r{n}.log", "rank": n, "seq": 1, "step": 1, "name": "loss", "value": 2.0} for n in range(RANKS)
        ]
        return decide.decision(run_of("run", {"metrics": pl.DataFrame(rows)}))

    return of


def ranks(found: Decision | None) -> tuple[int, ...] | None:
    return None if found is None else found.ranks


def test_a_rank_with_three_quarters_of_the_best_score_is_named_too_and_one_with_less_is_not(decided: Decided) -> None:
    assert ranks(decided(clue(1, weight=8), clue(2, weight=6), clue(3, weight=5.9))) == (1, 2)


def test_weights_of_several_clues_add_up_for_a_rank(decided: Decided) -> None:
    assert ranks(decided(clue(1, weight=4), clue(1, weight=4, kind="log"), clue(2, weight=5))) == (1,)


def test_less_than_a_weight_of_three_is_a_hint_and_names_nobody(decided: Decided) -> None:
    stall = clue(cause="rendezvous_timeout", weight=4)
    assert decided(stall, clue(1, weight=2.9)) is None
    assert ranks(decided(stall, clue(1, weight=3))) == (1,)


def test_a_cause_that_names_no_rank_decides_from_five_on_where_no_rank_has_more(decided: Decided) -> None:
    common = decided(clue(cause="rendezvous_timeout", weight=5), clue(1, weight=5))
    assert common is not None
    assert (common.ranks, common.cause, common.confidence) == ((), "rendezvous_timeout", Confidence.MEDIUM)
    assert ranks(decided(clue(cause="rendezvous_timeout", weight=5), clue(1, weight=5.1))) == (1,)
    assert ranks(decided(clue(cause="rendezvous_timeout", weight=4.9), clue(1, weight=4))) == (1,)


def test_nothing_is_decided_where_nothing_failed_and_no_clue_proves_a_stall_alone(decided: Decided) -> None:
    assert decided(clue(1, weight=3.9)) is None
    assert decided(clue(1, weight=5.9, kind="exit")) is None
    assert decided(clue(1, weight=9, kind="log")) is None
    assert ranks(decided(clue(1, weight=6, kind="exit"))) == (1,)


def test_a_majority_is_named_with_low_confidence_and_a_half_is_not_a_majority(decided: Decided) -> None:
    half, most = decided(*map(clue, range(4))), decided(*map(clue, range(5)))
    assert half is not None
    assert most is not None
    assert (half.ranks, half.confidence) == ((0, 1, 2, 3), Confidence.LOW)
    assert (half.tied, most.ranks, most.tied) == ((), (), (0, 1, 2, 3, 4))


def test_two_strong_kinds_agree_with_high_confidence_and_one_needs_a_weight_of_five(decided: Decided) -> None:
    def sure(*clues: Clue) -> Confidence | None:
        found = decided(*clues)
        return found and found.confidence

    assert sure(clue(1, weight=4), clue(1, weight=3, kind="stack")) is Confidence.HIGH
    assert sure(clue(1, weight=4), clue(1, weight=2.9, kind="stack")) is Confidence.LOW
    assert sure(clue(1, weight=5)) is Confidence.MEDIUM
    assert sure(clue(1, weight=4.9)) is Confidence.LOW


def test_a_tie_is_broken_only_by_what_does_not_follow_from_absence(decided: Decided) -> None:
    tie = clue(cause="different_collective", weight=5, tied=(2, 3))
    for cause in ("never_entered", "no_dump", "silent_death", "host_stall", "early_exit"):
        found = decided(tie, clue(1, weight=6, cause=cause))
        assert (found and found.ranks, found and found.tied) == ((), (2, 3)), cause
    assert ranks(decided(tie, clue(1, weight=5, cause="device_error"))) == (1,)
    assert ranks(decided(tie, clue(1, weight=4.9, cause="device_error"))) == ()


def test_of_several_causes_the_most_telling_is_given_and_a_missing_dump_stands_for_an_absence(decided: Decided) -> None:
    found = decided(clue(1, cause="no_dump", weight=9), clue(1, cause="slow_storage_read"))
    assert found is not None
    assert found.cause == "slow_storage_read"
    alone = decided(clue(1, cause="no_dump", weight=9))
    assert alone is not None
    assert (alone.cause, alone.shape) == ("never_entered", Shape.HANG)


def test_a_rank_that_left_in_silence_was_killed_where_no_exit_code_says_more_and_that_is_a_crash(
    decided: Decided,
) -> None:
    found = decided(clue(1, cause="silent_death"))
    assert found is not None
    assert (found.cause, found.shape) == ("silent_death_sigkill", Shape.CRASH)
