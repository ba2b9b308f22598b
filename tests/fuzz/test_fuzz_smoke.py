"""A short run of the fuzz harness; `make fuzz` is the long one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from amplify import GENERAL, amplified
from harness import MIB, SECONDS, SECONDS_PER_MB, Score
from mutate import Case, frames, seeds
from worker import CheckedSink, ingesters, judged

from forensics import registry
from forensics.io.limits import DEFAULT
from forensics.model import Source
from forensics.registry import Ingester, Sniff

HARNESS = Path(__file__).with_name("harness.py")


def test_mutated_inputs_end_in_no_exception_no_death_and_no_hang() -> None:
    if not registry.load("ingesters").ingesters:
        pytest.skip("no ingester is registered")
    done = subprocess.run(
        [sys.executable, HARNESS, "--n", "16", "--tell", "16"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_harness_gives_the_same_case_for_the_same_number(tmp_path: Path) -> None:
    names = [one.name for one in registry.load("ingesters").ingesters]
    if not names:
        pytest.skip("no ingester is registered")
    for name in ("a", "b"):
        command = [sys.executable, HARNESS, "--ingester", names[0], "--case", "77", "--save", tmp_path / name]
        subprocess.run(command, capture_output=True, check=False)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_an_unknown_ingester_is_named() -> None:
    done = subprocess.run(
        [sys.executable, HARNESS, "--ingester", "nobody"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "nobody" in done.stderr


def test_amplified_inputs_end_with_their_budget() -> None:
    command = [sys.executable, HARNESS, "--n", "0", "--amplify", "--parts", "16", "--part", "3"]
    done = subprocess.run([*command, "--ingester", "flight_recorder"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def answer(**changed: object) -> dict[str, object]:
    return {"end": "read", "why": "", "bytes": 1_000_000, "seconds": 0.0, "kib": 0, **changed}


def test_a_case_over_its_time_or_its_memory_is_a_failure() -> None:
    allowed = SECONDS + SECONDS_PER_MB
    for changed, end in (
        ({"seconds": allowed - 0.1, "kib": MIB << 10}, "read"),
        ({"seconds": allowed + 0.1}, "slow"),
        ({"seconds": allowed - 0.1, "bytes": 900_000}, "slow"),
        ({"kib": (MIB << 10) + 1}, "swelled"),
        ({"end": "ended"}, "ended"),
        ({"end": "raised"}, "raised"),
    ):
        score = Score("x")
        score.add("again", answer(**changed))
        assert score.ends == {end: 1}
        assert bool(score.failures) == (end not in {"read", "ended"})


def made(read: object) -> Ingester:
    return Ingester("made", 1, Sniff(glob=("*",)), ("metrics",), read, "", "")  # type: ignore[arg-type]


def test_the_judge_sees_an_exception_a_wrong_account_and_a_budget_that_ends_unsaid() -> None:
    def raising(_opened: object, _out: object, _limits: object) -> None:
        raise ValueError("no")

    def short(_opened: object, out: CheckedSink, _limits: object) -> None:
        out.account(read_bytes=1)

    def greedy(_opened: object, out: CheckedSink, _limits: object) -> None:
        out.rows("metrics", {"value": [1.0] * (DEFAULT.work_units + 1000)})

    ends = [judged(made(read), Case("a", b"xx")) for read in (raising, short, greedy)]
    assert [one["end"] for one in ends] == ["raised", "raised", "ended"]
    assert "1 bytes are accounted for" in ends[1]["why"]
    sink = CheckedSink(Source("a", 2))
    assert sink.coverage("made").skipped_bytes == 2


def test_records_of_both_framed_formats_are_written_again_as_they_were() -> None:
    for name in ("tfevents", "wandb_run"):
        seed = next(one for one in seeds(ingesters()[name]) if len(one.data) > 500 and frames(one.data))
        payloads, write = frames(seed.data) or ([], bytes)
        again, _ = frames(write(payloads)) or ([], None)
        assert again == payloads


def test_every_reader_is_amplified_in_at_least_twenty_ways() -> None:
    assert len(GENERAL) >= 20
    one = ingesters()["metrics_csv"]
    labels = [label for label, _ in amplified(one, seeds(one))]
    assert len(labels) == len(set(labels)) >= 40
