"""A history: what is added is found again, the same failure of other runs is counted, damage is left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics import pipeline
from forensics.history.past import Past, groups, key_of, line_of, newest, outcomes, past_in, past_of, seen_before
from forensics.history.shelf import history, kept
from forensics.model import SeenBefore
from forensics.values import replace

DAY_NS = 86_400 * 10**9
FAILED = Past("a", "k1", "1", 5, 10 * DAY_NS, "failed", "nan", "blowup", "The loss is NaN", root="r1", step=7)


def run_of(name: str, day: int, *, root: str = "r1", judged: int = 5) -> Past:
    return replace(FAILED, run=name, key=f"key of {name}", ended_ns=day * DAY_NS, root=root, judged_ns=judged)


def test_what_is_added_is_found_again_in_the_order_of_time(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "past"
    kept(place, [run_of("b", 3)])
    kept(place, [run_of("c", 1), run_of("d", 2)])
    found = history(place)
    assert [one.run for one in found.past] == ["c", "d", "b"]
    assert found.past[2] == run_of("b", 3)
    assert [one.run for one in found.alike("r1")] == ["c", "d", "b"]
    assert found.alike("r2") == ()
    assert found.unusable == 0


def test_the_same_added_twice_is_there_once_and_nothing_added_makes_no_file(tmp_path: Path) -> None:
    kept(tmp_path, [FAILED])
    kept(tmp_path, [FAILED])
    kept(tmp_path, [])
    assert history(tmp_path).past == (FAILED,)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert history(tmp_path / "none").past == ()


def test_a_file_that_is_not_what_its_name_says_is_left_out_and_counted(tmp_path: Path) -> None:
    kept(tmp_path, [FAILED])
    kept(tmp_path, [run_of("b", 3)])
    first = min(tmp_path.iterdir())
    first.write_bytes(first.read_bytes().replace(b"nan", b"oom"))
    (tmp_path / "notes.txt").write_text("not of a history")
    found = history(tmp_path)
    assert (len(found.past), found.unusable) == (1, 1)


def test_a_link_in_a_history_is_not_followed(tmp_path: Path) -> None:
    kept(tmp_path / "other", [FAILED])
    place = tmp_path / "past"
    place.mkdir()
    target = next((tmp_path / "other").iterdir())
    (place / target.name).symlink_to(target)
    assert history(place).past == ()


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"{", b"[]", b'{"schema": "x"}', line_of(FAILED).replace(b'"nan"', b"3"), line_of(FAILED)[:-9]),
        *(line_of(FAILED).replace(b'"schema":"forensics.diagnosis/1",', b""), b"[" * 5_000, b"\xff"),
        line_of(FAILED).replace(b'"judged_ns":', b'"judged_ns":9000000000000000000'),
    ],
)
def test_a_line_of_another_kind_is_no_diagnosis(line: bytes) -> None:
    assert past_in(line) is None


@given(st.builds(Past, *[st.text(max_size=40)] * 3, *[st.integers(0, 2**62)] * 2, st.text(max_size=9)))
def test_a_line_gives_the_diagnosis_back_with_words_that_are_fit_to_print(one: Past) -> None:
    try:
        line = line_of(one)
    except TypeError:  # a lone surrogate, which no printable word holds
        return
    found = past_in(line)
    assert found is not None
    assert (found.judged_ns, found.ended_ns) == (one.judged_ns, one.ended_ns)
    assert "\x1b" not in found.run


def test_other_runs_of_the_same_root_were_seen_before() -> None:
    past = [run_of("b", 3), run_of("c", 1), run_of("d", 2, root="r2")]
    assert seen_before(past, run_of("e", 9)) == SeenBefore(2, DAY_NS, 3 * DAY_NS)


@pytest.mark.parametrize(
    "one", [run_of("a", 3), replace(run_of("b", 3), key=FAILED.key), run_of("b", 3, root="r2")],
    ids=["the run itself as it was", "the run under another name", "another failure"],
)  # fmt: skip
def test_neither_the_run_itself_nor_another_failure_was_seen_before(one: Past) -> None:
    assert seen_before([one], FAILED) is None


def test_a_run_without_a_failure_was_not_seen_before() -> None:
    assert seen_before([run_of("b", 3, root="")], replace(FAILED, root="")) is None


def test_a_run_that_was_judged_again_counts_once_by_its_newest_diagnosis() -> None:
    again = replace(run_of("b", 4, root="r2", judged=9), outcome="suspect")
    past = [again, run_of("b", 3), run_of("c", 1)]
    assert newest(past) == (run_of("c", 1), again)
    assert outcomes(past) == {"failed": 1, "suspect": 1}


def test_failures_stand_in_groups_the_newest_first() -> None:
    found = groups([run_of("a", 1), run_of("b", 5), run_of("c", 3, root="r2"), run_of("d", 9, root="")])
    assert [[one.run for one in group.runs] for group in found] == [["a", "b"], ["c"]]


def test_the_key_of_a_run_changes_with_a_name_a_size_or_a_time_and_not_with_the_order() -> None:
    files = [("a.log", 3, 1), ("b.log", 4, 2)]
    assert key_of(files) == key_of(reversed(files))
    others = [("a.log", 3, 1), ("b.log", 5, 2)], [("a.log", 3, 1), ("b.log", 4, 3)], [("a.log", 3, 1), ("c.log", 4, 2)]
    assert len({key_of(files), *map(key_of, others)}) == 4


def test_a_report_is_kept_with_its_identity_its_onset_and_the_time_at_which_it_failed(tmp_path: Path) -> None:
    lines = [f"2026-05-06 10:00:{n:02d} step {n} loss: {'nan' if n > 40 else 3 - n / 100}" for n in range(1, 60)]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    run = pipeline.ingest_run(tmp_path)
    report = pipeline.report_of(run)
    past = past_of(run, report, 5)
    assert report.verdict.identity is not None
    assert (past.outcome, past.root, past.step) == ("failed", report.verdict.identity.root, 41)
    assert (past.judged_ns, past.ended_ns) == (5, report.verdict.onset.t_ns)
