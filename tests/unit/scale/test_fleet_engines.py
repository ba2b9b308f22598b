"""Runs of a fleet on several processes: each has the answer that it has in one, in the same order, whatever dies."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from forensics.config import Config
from forensics.errors import PlaceError
from forensics.fleet import judging
from forensics.fleet.judging import How, Judged, Named, Record, Task
from forensics.fleet.members import Member
from forensics.history.shelf import history
from forensics.io.places.named import place_of
from forensics.model import Evidence, Locator, Outcome, Report
from forensics.report.html.page import render_many
from forensics.report.json_v1 import render
from forensics.scale import wire, worker
from forensics.scale.choice import ALONE, Spread
from forensics.values import replace

HERE = Path(__file__).parent
FIXTURES = Path(__file__).parents[3] / "fixtures" / "runs"
TWO = Spread(jobs=2)
HOW = How(Config())


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(HERE)  # pyright: ignore[reportUnknownMemberType]
    import judges_with_faults  # noqa: PLC0415 # pyright: ignore[reportMissingImports] - found beside this file

    monkeypatch.setattr(judging, "judge", judges_with_faults.judge)
    return judges_with_faults


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for number in range(6):
        folder = tmp_path / f"exp-{number}"
        folder.mkdir()
        rows = ({"step": n, "loss": "NaN" if number % 2 and n > 20 else 3 - n / 100} for n in range(1, 40))
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def members(top: Path) -> list[Member]:
    return [Member(place_of(path), 1_000) for path in sorted(top.iterdir())]


def said(every: list[Member], how: How, spread: Spread) -> list[tuple[str, Judged]]:
    return [(member.place.name, judged) for member, judged in judging.answers(every, how, spread, (), lambda _: None)]


def reports(found: list[tuple[str, Judged]]) -> list[Report]:
    return [answer.whole for _, judged in found for answer in judged.answers]


def told(found: list[tuple[str, Judged]]) -> str:
    return "\n".join(line for report in reports(found) for line in render(report))


def test_two_processes_say_of_each_kind_of_failure_what_one_says() -> None:
    every = members(FIXTURES)[::9]
    how = replace(HOW, figures=True, redact=True, keeps=True)
    alone, two = said(every, how, ALONE), said(every, how, TWO)
    assert [name for name, _ in two] == [member.place.name for member in every]
    assert told(alone) == told(two)
    assert list(render_many(reports(alone))) == list(render_many(reports(two)))
    for one, other in zip(alone, two, strict=True):
        assert [answer.names for answer in one[1].answers] == [answer.names for answer in other[1].answers]
        for here, there in zip(one[1].answers, other[1].answers, strict=True):
            assert here.past is not None
            assert there.past is not None
            assert replace(here.past, judged_ns=0) == replace(there.past, judged_ns=0)


def test_thresholds_and_names_of_the_user_reach_every_process(runs: Path) -> None:
    settings = Config(ignore=("NAN001",), metrics={"loss": "eval_loss"})
    how = replace(HOW, settings=settings)
    alone = told(said(members(runs), how, ALONE))
    assert told(said(members(runs), how, TWO)) == alone
    assert told(said(members(runs), HOW, ALONE)) != alone


DRIVER = """
import sys
sys.path.insert(0, sys.argv[3])
import judges_with_faults
from forensics.cli._judge import Asked, judged
from forensics.cli._reading import Reading
from forensics.fleet import judging
from forensics.scale.choice import Spread
judging.judge = judges_with_faults.notes
judged(Asked((sys.argv[1],), reading=Reading(quiet=True, jobs=2), history=sys.argv[2]))
"""


def test_a_killed_fleet_repeats_one_run_of_each_process_though_all_answers_wait_for_the_first(tmp_path: Path) -> None:
    top, past, log = tmp_path / "runs", tmp_path / "past", tmp_path / "judged"
    log.touch()
    for number in range(3 * judging._TASK_RUNS):
        folder = top / f"exp-{number:02d}"
        folder.mkdir(parents=True)
        rows = ({"step": n, "loss": 3 - n / 100} for n in range(1, 81))
        (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = {str(path) for path in top.iterdir()}
    command = [sys.executable, "-c", DRIVER, top, past, HERE]
    killed = subprocess.Popen(command)
    while len(log.read_text().splitlines()) < len(names) - judging._TASK_RUNS:
        assert killed.poll() is None
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    subprocess.run(command, check=True)
    judged = Counter(log.read_text().splitlines())
    assert judged.keys() == names
    assert judged.total() <= len(names) + 2, "one run for each process"
    assert {one.run for one in history(past).past} == names


@pytest.mark.usefixtures("faults")
def test_a_run_that_ends_its_process_twice_is_named_and_costs_itself(runs: Path) -> None:
    (runs / "exp-3").rename(runs / "exp-3-poison")
    found = said(members(runs), HOW, TWO)
    why = "the process that reads it was ended by SIGKILL, twice"
    assert [(name, judged.failed) for name, judged in found if judged.failed] == [(f"{runs}/exp-3-poison", why)]
    [lost] = [one for one in reports(found) if one.run.endswith("poison")]
    assert (lost.verdict.outcome, lost.verdict.headline) == (Outcome.CANNOT_SAY, f"The run could not be judged: {why}")
    assert [(issue.code, issue.message) for issue in lost.issues] == [(judging.NOT_JUDGED, why)]
    assert [file.skipped_bytes for file in lost.coverage.lost] == [1_000]
    others = [entry for entry in found if "poison" not in entry[0]]
    assert told(others) == told([e for e in said(members(runs), HOW, ALONE) if "poison" not in e[0]])


@pytest.mark.usefixtures("faults")
def test_a_run_that_ends_its_process_beside_others_is_judged_by_itself(runs: Path) -> None:
    (runs / "exp-3").rename(runs / "exp-3-weak")
    [together] = judging.tasks(members(runs), HOW)
    outcomes = TWO.runs(judging.judge, [together], [1_000] * 6)
    done = [(name, judged) for outcome in outcomes for name, judged in judging._said(outcome)]
    assert sorted(told([one]) for one in done) == sorted(told([one]) for one in said(members(runs), HOW, ALONE))


def test_a_fault_of_our_own_costs_the_run_that_it_is_found_with(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = judging.pipeline.report_of

    def faulty(run: Any, *more: Any) -> Report:
        if run.name.endswith("exp-4"):
            error = TypeError("no such thing")
            error.add_note("in rule NAN001")
            raise error
        return judge(run, *more)

    monkeypatch.setattr(judging.pipeline, "report_of", faulty)
    found = said(members(runs), HOW, ALONE)
    [(name, failed)] = [(name, judged.failed) for name, judged in found if judged.failed]
    assert (name, failed) == (f"{runs}/exp-4", "a fault of forensics: TypeError: no such thing, in rule NAN001")
    assert len(reports(found)) == 6


def test_a_store_that_refuses_ends_the_command_with_its_words(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    how = replace(HOW, store=str(tmp_path / "file" / "store"))
    for spread in (ALONE, TWO):
        with pytest.raises(PlaceError, match=r"the store .*: a part of the path is a file, not a folder"):
            said([member for member in members(runs) if "exp" in member.place.name], how, spread)


def test_a_refusal_of_a_bucket_keeps_its_words_and_its_help_on_the_way(faults: Any) -> None:
    reply = worker.reply_to(worker.name_of(faults.refuses), wire.packed(Task((Named("s3://b", ""),), HOW)))
    with pytest.raises(PlaceError) as refused:
        wire.unpacked(wire.packed(reply), worker.Reply).record_as(Record)
    assert (refused.value.message, refused.value.help) == ("s3://b: the service is silent", "look at it")


@pytest.mark.parametrize("value", [67108864, 67108864.0, 0.5, None])
def test_a_number_on_the_evidence_stays_whole_between_processes(value: float | None) -> None:
    one = Evidence("train.log", Locator(line=1), value=value)
    assert repr(wire.unpacked(wire.packed(one), Evidence).value) == repr(value)


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="pip install ray")
def test_a_cluster_says_what_one_process_says(runs: Path) -> None:
    assert told(said(members(runs), HOW, Spread(jobs=1, engine="ray"))) == told(said(members(runs), HOW, ALONE))
