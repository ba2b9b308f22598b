"""Which of two findings leads, and what a cause explains, for every pair of kinds and every order in time."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from forensics.diagnosis.precedence import Kind, explains, kind_of, names_who, preference, same_onset
from forensics.diagnosis.verdict import decide
from forensics.model import (
    Causal,
    Confidence,
    Coverage,
    Evidence,
    FileCoverage,
    FileStatus,
    Finding,
    Locator,
    Onset,
    Severity,
    Shape,
)
from forensics.store.run import run_of
from forensics.values import replace

#: What each kind overrules, in whatever order the two are printed; all other pairs are decided by the order in time.
OVERRULED = {
    "own": "echo learning slow gone",
    "stop": "slow gone",
    "limit": "gone",
    "stuck": "slow gone",
    "wait": "slow gone",
    "echo": "gone",
    "learning": "gone",
    "slow": "gone",
    "gone": "",
}
#: What each kind explains of what came later.
FOLLOWS = {
    "own": "own stop limit stuck wait echo learning slow gone",
    "stop": "stop limit stuck wait echo learning slow gone",
    "limit": "stop limit stuck wait echo learning slow gone",
    "stuck": "stop limit stuck wait echo learning slow gone",
    "wait": "stop limit stuck wait echo learning slow gone",
    "echo": "own stop limit stuck wait echo learning slow gone",
    "learning": "stop limit",
    "slow": "stop limit",
    "gone": "own stop limit stuck wait echo learning slow gone",
}
#: Where no order is known, a kind of an earlier line leads.
RANKED = ("own", "stop limit", "stuck wait", "echo", "learning slow", "gone")
KINDS = tuple(OVERRULED)
MADE = {
    "own": (Shape.CRASH, Causal.ROOT, "uncaught_exception"),
    "stop": (Shape.STOPPED, Causal.ROOT, "cancelled"),
    "limit": (Shape.STOPPED, Causal.ROOT, "time_limit"),
    "stuck": (Shape.HANG, Causal.ROOT, "never_entered"),
    "wait": (Shape.HANG, Causal.SYMPTOM, "collective_timeout"),
    "echo": (Shape.CRASH, Causal.SYMPTOM, "wrapped_error"),
    "learning": (Shape.LEARNING, Causal.ROOT, "diverged"),
    "slow": (Shape.SLOWDOWN, Causal.ROOT, "slow_steps"),
    "gone": (Shape.CRASH, Causal.SYMPTOM, "peer_gone"),
}


def finding(kind: str, line: int | None = None, shape: Shape | None = None, step: int | None = None) -> Finding:
    own, causal, cause = MADE[kind]
    return Finding(
        rule=f"{kind.upper()}001",
        shape=shape or own,
        severity=Severity.ERROR,
        confidence=Confidence.LOW if kind == "gone" else Confidence.MEDIUM,
        title=kind,
        because="made up",
        evidence=(Evidence("train.log" if line else f"{kind}.log", Locator(line=line or 1), quote=kind),),
        onset=Onset(step=step),
        cause=cause,
        causal=causal,
    )


def leading(*findings: Finding) -> str:
    causes = {MADE[kind][2]: kind for kind in KINDS}
    return causes[decide(findings, run_of("made", {}), Coverage()).cause]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_recognised(kind: str) -> None:
    assert kind_of(finding(kind)) is Kind(kind)


@pytest.mark.parametrize(("first", "second"), list(product(KINDS, KINDS)))
def test_the_earlier_of_two_findings_leads_but_where_a_kind_overrules(first: str, second: str) -> None:
    if first == second:
        return
    overruled = first in OVERRULED[second].split()
    found = (finding(first, line=10), finding(second, line=20))
    assert leading(*found) == leading(*reversed(found)) == (second if overruled else first)


def test_what_goes_on_all_the_time_does_not_lead_because_it_came_earlier() -> None:
    pauses, overfit = finding("slow", line=1), finding("learning", line=5)
    assert leading(pauses, overfit) == "slow"
    assert leading(replace(pauses, causal=Causal.CONTEXT, severity=Severity.WARNING), overfit) == "learning"
    both = [replace(one, severity=Severity.WARNING) for one in (replace(pauses, causal=Causal.CONTEXT), overfit)]
    assert leading(*both) == "learning"


@pytest.mark.parametrize(("one", "other"), list(combinations(KINDS, 2)))
def test_where_no_order_is_known_the_kind_decides(one: str, other: str) -> None:
    tiers = {kind: at for at, kinds in enumerate(RANKED) for kind in kinds.split()}
    if tiers[one] != tiers[other]:
        found = (finding(one), finding(other))
        assert leading(*found) == leading(*reversed(found)) == min(one, other, key=lambda kind: tiers[kind])


@pytest.mark.parametrize(("cause", "other"), list(product(KINDS, KINDS)))
def test_a_cause_explains_what_follows_from_it_and_came_later(cause: str, other: str) -> None:
    assert explains(finding(cause, line=10), finding(other, line=20)) is (other in FOLLOWS[cause].split())
    assert explains(finding(cause, line=20), finding(other, line=10)) is (
        other == "gone" and other in FOLLOWS[cause].split()
    )


def test_an_error_of_the_programs_own_explains_the_wait_of_another_rank_whenever_that_was_said() -> None:
    waited, failed = finding("wait", line=10), finding("own")
    assert leading(waited, failed) == leading(failed, waited) == "own"


def test_an_error_of_the_programs_own_explains_none_of_another_shape() -> None:
    for cause in ("own", "echo", "gone"):
        assert not explains(finding(cause, line=10), finding("own", line=20, shape=Shape.OOM))


def test_wrong_learning_explains_not_a_number_and_no_other_error() -> None:
    assert explains(finding("learning", line=10), finding("own", line=20, shape=Shape.NAN))
    assert not explains(finding("learning", line=10), finding("own", line=20, shape=Shape.OOM))


def test_memory_leads_not_a_number_leads_a_crash_where_no_order_is_known() -> None:
    crash, nan, oom = (finding("own", shape=shape) for shape in (Shape.CRASH, Shape.NAN, Shape.OOM))
    answers = [
        decide(found, run_of("made", {}), Coverage()).shape for found in ((crash, nan), (nan, oom), (crash, oom))
    ]
    assert answers == [Shape.NAN, Shape.OOM, Shape.OOM]


@pytest.mark.parametrize(
    ("kind", "sure"), [("own", Confidence.HIGH), ("slow", Confidence.MEDIUM), ("learning", Confidence.MEDIUM)]
)
def test_an_onset_that_is_fitted_over_records_is_medium_at_most(kind: str, sure: Confidence) -> None:
    found = replace(finding(kind, step=40), confidence=Confidence.HIGH)
    assert decide((found,), run_of("made", {}), Coverage()).onset_confidence is sure


def test_an_answer_without_a_step_or_a_time_has_no_confidence_of_its_onset() -> None:
    assert decide((finding("own"),), run_of("made", {}), Coverage()).onset_confidence is None


@pytest.mark.parametrize(
    ("cause", "sure"), [("unknown", Confidence.LOW), ("loss_scale_collapse", Confidence.HIGH), ("", None)]
)
def test_a_cause_that_says_that_none_is_known_is_never_sure(cause: str, sure: Confidence | None) -> None:
    found = replace(finding("own", shape=Shape.NAN), cause=cause, confidence=Confidence.HIGH)
    assert decide((found,), run_of("made", {}), Coverage()).cause_confidence is sure


def slow(step: int | None, *, culprits: tuple[int, ...] = (), step_lo: int | None = None, **numbers: float) -> Finding:
    found = finding("slow", line=10, step=step)
    return replace(found, culprits=culprits, numbers=numbers, onset=Onset(step=step, step_lo=step_lo))


@pytest.mark.parametrize(
    ("named", "told", "is_same"),
    [
        (100, 105, True),
        (100, 112, False),
        (100, 111, True),
        (30, 25, True),
        (30, 24, False),
        (None, 24, True),
        (30, None, True),
    ],
)
def test_a_slow_rank_is_named_where_the_two_onsets_are_five_steps_or_a_tenth_apart(
    named: int | None, told: int | None, is_same: bool
) -> None:
    assert names_who(slow(named, culprits=(3,)), slow(told)) is is_same
    assert same_onset(slow(named), slow(told)) is is_same


@pytest.mark.parametrize(
    ("since_s", "until_s", "is_same"),
    [(0, 120, True), (0, 121, False), (120, 0, True), (121, 0, False), (None, 900, True), (900, None, True)],
)
def test_onsets_without_a_step_are_one_where_their_times_are_two_minutes_apart(
    since_s: int | None, until_s: int | None, is_same: bool
) -> None:
    device, steps = (replace(slow(None), onset=Onset(t_ns=s and s * 10**9)) for s in (since_s, until_s))
    assert same_onset(device, replace(steps, onset=replace(steps.onset, step=300))) is is_same


def test_only_a_slowdown_that_names_ranks_says_who_makes_another_one() -> None:
    assert not names_who(slow(100), slow(100))
    assert not names_who(slow(100, culprits=(3,)), slow(100, culprits=(2,)))
    assert not names_who(replace(slow(100, culprits=(3,)), shape=Shape.HANG), slow(100))
    assert not names_who(slow(100, culprits=(3,)), replace(slow(100), shape=Shape.BAD_EVAL))


@pytest.mark.parametrize(
    ("excess", "ratio", "step_lo", "is_same"),
    [
        (0.26, 1.5, 99, True),
        (-0.26, 1.5, 99, True),
        (0.24, 1.5, 99, False),
        (0.25, 1.5, 99, True),
        (0.26, 1.5, None, False),
        (0.26, 1.0, 99, False),
        (0.26, 0.9, 99, False),
    ],
)
def test_a_rank_that_explains_half_of_the_loss_makes_it_wherever_either_is_seen(
    excess: float, ratio: float, step_lo: int | None, is_same: bool
) -> None:
    assert names_who(slow(100, culprits=(3,), step_lo=step_lo, excess=excess), slow(500, ratio=ratio)) is is_same


def test_a_loss_without_its_size_is_explained_by_no_rank_of_another_step() -> None:
    assert not names_who(slow(100, culprits=(3,), step_lo=99, excess=0.9), slow(500))
    assert not names_who(slow(100, culprits=(3,), step_lo=99), slow(500, ratio=1.5))


@pytest.mark.parametrize(
    ("named", "told", "is_named"),
    [
        (1, 100, True),
        (110, 100, True),
        (111, 100, False),
        (25, 20, True),
        (26, 20, False),
        (None, 1, True),
        (900, None, True),
    ],
)
def test_a_rank_that_learns_otherwise_is_named_unless_it_left_the_others_later(
    named: int | None, told: int | None, *, is_named: bool
) -> None:
    left = replace(slow(named, culprits=(3,)), shape=Shape.LEARNING)
    rose = replace(slow(told), shape=Shape.LEARNING, onset=Onset(step=told, rank=3))
    assert names_who(left, rose) is is_named
    assert not names_who(left, replace(rose, onset=Onset(step=told, rank=2)))
    assert not names_who(left, replace(rose, onset=Onset(step=told)))


def test_findings_of_unknown_order_are_ranked_by_kind_root_confidence_shape_and_rule() -> None:
    own, echo = finding("own"), finding("echo")
    assert preference(own) < preference(echo)
    assert preference(replace(own, rule="A")) < preference(replace(own, rule="B"))
    assert preference(replace(own, shape=Shape.NAN, rule="B")) < preference(replace(own, rule="A"))
    sure = replace(own, confidence=Confidence.HIGH)
    assert preference(sure) < preference(replace(own, shape=Shape.OOM))
    assert preference(own) < preference(replace(sure, causal=Causal.SYMPTOM))
    wait = finding("wait")
    assert preference(replace(wait, confidence=Confidence.MEDIUM)) < preference(
        replace(wait, confidence=Confidence.LOW)
    )
    assert preference(finding("learning"))[3] == 3


def test_a_chain_holds_six_links_and_one_for_each_place() -> None:
    cause = finding("own", line=10)
    waits = [replace(finding("wait", line=20 + n), rule=f"W{n}") for n in range(9)]
    same = replace(finding("stop", line=20), rule="S")
    told = decide((cause, *waits, same), run_of("made", {}), Coverage())
    assert len(told.chain) == 6
    assert len(decide((cause, waits[0], same), run_of("made", {}), Coverage()).chain) == 2


def test_a_rival_whose_order_is_unknown_makes_an_answer_less_sure() -> None:
    sure = replace(finding("own", shape=Shape.NAN), confidence=Confidence.HIGH)
    oom = replace(finding("own", shape=Shape.OOM), confidence=Confidence.HIGH, rule="OTHER")
    elsewhere = replace(oom, evidence=(Evidence("b.log", Locator(line=3), quote="x"),))
    assert decide((sure,), run_of("made", {}), Coverage()).confidence is Confidence.HIGH
    told = decide((sure, elsewhere), run_of("made", {}), Coverage())
    assert (told.shape, told.confidence, told.runner_up is not None) == (Shape.OOM, Confidence.MEDIUM, True)
    less = [replace(one, confidence=Confidence.MEDIUM) for one in (sure, elsewhere)]
    assert decide(less, run_of("made", {}), Coverage()).confidence is Confidence.LOW
    one_file = [replace(one, evidence=finding("own", line=at).evidence) for one, at in ((sure, 10), (oom, 20))]
    assert decide(one_file, run_of("made", {}), Coverage()).confidence is Confidence.HIGH


def test_empty_files_are_counted_where_nothing_can_be_said() -> None:
    def said(*sizes: int, reason: str = "") -> str:
        read = FileStatus("skipped" if reason else "read")
        files = tuple(FileCoverage(f"{n}.log", s, s, 0, read, reason=reason) for n, s in enumerate(sizes))
        return decide((), run_of("made", {}), Coverage(files=files)).headline

    assert "(1 of 2 files is empty)" in said(0, 5)
    assert "(2 of 3 files are empty)" in said(0, 0, 5)
    assert "(the only file is empty)" in said(0, reason="empty")
    assert "empty" not in said(5, 1)
    assert "empty" not in said(0, reason="fifo")
    assert said() == "Cannot say: there is no file to read"


@pytest.mark.parametrize(
    ("culprits", "ranks", "is_same"), [((3,), 8, True), ((3, 4), 8, True), ((2,), 8, False), ((3,), None, False)]
)
def test_a_slowdown_that_compares_the_ranks_leads_one_that_tells_of_a_slow_one_by_itself(
    culprits: tuple[int, ...], ranks: int | None, is_same: bool
) -> None:
    numbers = {} if ranks is None else {"ranks": ranks}
    compared, alone = replace(slow(100, culprits=culprits), numbers=numbers), slow(100, culprits=(3,))
    assert names_who(compared, alone) is is_same
    assert not names_who(alone, compared)
