"""Lines of a log's head that come again: of a process that begins anew, or above each step."""

from __future__ import annotations

import pytest

from forensics import pipeline
from forensics.case.processes.attempts import attempts


def block(step: int) -> str:
    return f"--- rollout of the policy\nresults of this step:\nstep {step} loss {3 - step / 100:.4f} time 4.1s\n"


def count(log: str) -> int:
    return len(attempts(pipeline.ingest_bytes("train.log", log.encode())).every)


def test_a_heading_above_each_step_begins_no_process() -> None:
    assert count("".join(block(step) for step in range(1, 61))) == 1


@pytest.mark.parametrize("lives", [2, 5])
def test_a_head_that_comes_again_while_steps_go_back_begins_a_process(lives: int) -> None:
    head = "loading the tokenizer of the model\nbuilding the data loader of the run\n"
    life = head + "".join(f"step {step} loss {3 - step / 100:.4f} time 4.1s\n" for step in range(1, 31))
    assert count(life * lives) == lives


def test_a_head_that_comes_again_unevenly_begins_a_process_though_steps_go_on() -> None:
    head = "loading the tokenizer of the model\nbuilding the data loader of the run\n"
    ends = [(1, 20), (21, 24), (25, 90), (91, 120), (121, 130)]
    log = "".join(
        head + "".join(f"step {step} loss {3 - step / 100:.4f} time 4.1s\n" for step in range(low, high + 1))
        for low, high in ends
    )
    assert count(log) == len(ends)


@pytest.mark.parametrize(("blocks", "processes"), [(3, 3), (4, 1)])
def test_three_places_in_even_distance_are_headings_and_two_are_not(blocks: int, processes: int) -> None:
    assert count("".join(block(step) for step in range(1, blocks + 1))) == processes
