"""How logs end, and what each ending means: one line per kind of end, the words of the trainers and launchers.

The cases stand in `log_endings/*.txt`. Each begins with `== name => outcome shape`; `@steps N` stands for N training
lines in good order; `a|b` accepts either answer.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from forensics.pipeline import ingest_bytes, report_of

_HEAD = re.compile(r"^== (?P<name>.+) => (?P<outcome>\S+) (?P<shape>\S+)$")


@dataclass(frozen=True, slots=True)
class Ending:
    """A log and the answers that are right."""

    name: str
    outcome: frozenset[str]
    shape: frozenset[str]
    text: str


def _endings() -> Iterator[Ending]:
    for path in sorted((Path(__file__).parent / "log_endings").glob("*.txt")):
        for part in re.split(r"(?m)^(?=== )", path.read_text(encoding="utf-8"))[1:]:
            head, _, body = part.partition("\n")
            found = _HEAD.match(head)
            assert found is not None, head
            outcome, shape = (frozenset(found[key].split("|")) for key in ("outcome", "shape"))
            text = "\n".join(_printed(body.rstrip().splitlines())) + "\n"
            yield Ending(f"{path.stem}: {found['name']}", outcome, shape, text)


def _printed(lines: list[str]) -> Iterator[str]:
    steps = itertools.count(1)
    for line in lines:
        if not line.startswith("@steps "):
            yield line
            continue
        for step in itertools.islice(steps, int(line.split()[1])):
            yield f"step {step} | loss {2 + 3 / step:.4f} | grad_norm {0.8 + 0.01 * (step % 7):.3f} | lr 3.0e-04"


ENDINGS = tuple(_endings())


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda e: e.name)
def test_an_ending_is_known_for_what_it_is(ending: Ending) -> None:
    verdict = report_of(ingest_bytes("train.log", ending.text.encode())).verdict
    assert verdict.outcome.value in ending.outcome, verdict.headline
    assert (verdict.shape.value if verdict.shape else "none") in ending.shape, verdict.headline


def test_each_kind_of_ending_is_told_once() -> None:
    names = [ending.name for ending in ENDINGS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("waiting: a loop that waits for its next batch", "was still waiting where its log ends"),
        ("waiting: a process that waits for a lock", "was still waiting where its log ends"),
        ("waiting: the watchdog of NCCL", "timed out"),
    ],
)
def test_a_log_that_ends_in_a_wait_of_its_own_tells_of_no_others(name: str, words: str) -> None:
    (ending,) = (one for one in ENDINGS if one.name == name)
    assert words in report_of(ingest_bytes("train.log", ending.text.encode())).verdict.headline
