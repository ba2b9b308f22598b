"""Records of several ranks in one file: a column, a key or a word of each line says whose each is."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from forensics.model import Outcome, Shape, Verdict
from tests.unit.truth._runs import judged, shape


def points(ranks: Iterable[int] = range(3)) -> Iterator[tuple[int, int, float]]:
    """Step, rank and loss of a job in which rank 1 has no finite loss from step 60 on."""
    noise = random.Random(4)
    for step in range(1, 101):
        yield from (
            (step, r, float("nan") if r == 1 and step >= 60 else 3 - step / 90 + noise.random() / 20) for r in ranks
        )


def table(rows: Iterable[tuple[int, int, float]], name: str = "rank") -> str:
    return "".join([f"step,{name},loss\n", *(f"{step},{rank},{loss:.4f}\n" for step, rank, loss in rows)])


def records(name: str) -> str:
    return "".join(json.dumps({"step": step, name: rank, "loss": loss}) + "\n" for step, rank, loss in points())


def lines(words: str) -> str:
    return "".join(words.format(step=step, rank=rank, loss=loss) + "\n" for step, rank, loss in points())


def of_rank(place: Path, name: str, text: str) -> Verdict:
    return judged(place, {name: text}).verdict


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.csv", table(points())),
        ("m.csv", table(sorted(points(), key=lambda point: point[1]))),  # one rank after the other
        ("m.csv", table(points(), "process_index")),
        ("m.jsonl", records("global_rank")),
        ("m.jsonl", records("process_index")),
        ("m.log", lines("(Worker pid=9) [train] rank={rank} step={step} loss={loss:.4f}")),
        ("m.log", lines("step={step} loss={loss:.4f} global_rank={rank}")),
    ],
)
def test_the_loss_of_one_rank_is_told_from_that_of_the_others(name: str, text: str, tmp_path: Path) -> None:
    verdict = of_rank(tmp_path, name, text)
    assert (*shape(verdict), verdict.onset.step, verdict.culprits) == (Outcome.FAILED, Shape.NAN, 60, (1,))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.csv", table((step, 16, loss) for step, _, loss in points([1]))),
        ("m.log", "".join(f"step {step} loss {loss:.4f} rank=16 alpha=32\n" for step, _, loss in points([1]))),
    ],
)
def test_the_rank_of_a_matrix_is_no_process(name: str, text: str, tmp_path: Path) -> None:
    verdict = of_rank(tmp_path, name, text)
    assert (verdict.shape, verdict.onset.step, verdict.culprits) == (Shape.NAN, 60, ())


def test_a_rank_that_is_behind_in_a_common_file_did_not_start_again(tmp_path: Path) -> None:
    late = sorted(points([0, 2]), key=lambda point: point[0] + 3 * point[1])
    text = "".join(json.dumps({"step": step, "rank": rank, "loss": loss}) + "\n" for step, rank, loss in late)
    report = judged(tmp_path, {"m.jsonl": text})
    assert not [finding.rule for finding in report.findings if finding.rule.startswith("RSM")]


def test_who_grew_is_who_ran_out_where_the_message_names_nobody(tmp_path: Path) -> None:
    words = "(Worker pid=9) [mem] rank={} step={} host_rss={:.2f} GiB"
    grows = [words.format(rank, at, 9 + (0.5 * at if rank == 2 else 0)) for at in range(1, 81) for rank in range(3)]
    killed = "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."
    verdict = judged(tmp_path, {"driver.log": [*grows, "Traceback (most recent call last):", killed]}).verdict
    assert (verdict.shape, verdict.cause, verdict.culprits) == (Shape.OOM, "host_leak", (2,))
