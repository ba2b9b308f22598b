"""Logs that only end get an advice for the place at which they do; those that say how the run ended get none."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.api import triage
from forensics.knowledge._rows import rows_of
from forensics.knowledge.doing import Part, any_end, open_end_of, open_ends, part_of
from forensics.model import Outcome

TRAINED = [f"step {step} loss {4 - step / 100:.3f}" for step in range(1, 30)]


def told(folder: Path, *lines: str) -> list[str]:
    (folder / "train.log").write_text("\n".join(lines) + "\n")
    verdict = triage(folder).verdict
    assert verdict.outcome is Outcome.CANNOT_SAY
    return [action.text for action in verdict.actions]


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("  0%|          | 0/843 [00:00<?, ?it/s]", "before_first_step"),
        ("INFO - Reducer buckets have been rebuilt in this iteration.", "first_exchange"),
        ("Loading checkpoint shards:  40%|####      | 2/5 [00:09<00:13,  4.50s/it]", "loads"),
        ("Map (num_proc=8):   3%|3         | 900/30000 [00:02<01:20, 362.10 examples/s]", "prepares_data"),
        ("Map (num_proc=2):   0%|          | 0/1000 [00:00<?, ? examples/s]", "prepares_data"),
        ("Loading checkpoint shards:   0%|          | 0/5 [00:00<?, ?it/s]", "loads"),
        ("Epoch 1/3:   0%|          | 0/843 [00:00<?, ?it/s]", "before_first_step"),
        ("Saving model checkpoint to out/checkpoint-40", "saves"),
        ("***** Running Evaluation *****", "evaluates"),
        ("AUTOTUNE mm(64x64, 64x64)", "compiles"),
        ("Downloading shards:  12%|#2        | 1/8 [00:40<04:40, 40.1s/it]", "downloads"),
        ("step 40 loss 3.600", None),
    ],
)
def test_a_last_line_says_where_the_run_was_seen_last(line: str, row: str | None) -> None:
    found = open_end_of(line)
    assert (found and found.row) == row


def test_a_log_that_ends_in_training_is_told_what_to_look_at(tmp_path: Path) -> None:
    assert told(tmp_path, *TRAINED) == [any_end().advice]


def test_a_log_that_ends_at_a_known_place_is_told_of_it_first(tmp_path: Path) -> None:
    first, second = told(tmp_path, *TRAINED, "***** Running Evaluation *****")
    assert (first, second) == (next(row.advice for row in open_ends() if row.row == "evaluates"), any_end().advice)


def test_a_text_in_which_nothing_was_recognised_is_told_nothing(tmp_path: Path) -> None:
    assert told(tmp_path, "Dear diary,", "today it rained.") == []


def test_a_run_that_says_that_it_finished_is_told_nothing(tmp_path: Path) -> None:
    assert told(tmp_path, "step 1 loss 4.0", "training finished") == []


def test_an_advice_on_an_open_end_begins_with_its_condition() -> None:
    assert [row.row for row in open_ends() if not row.advice.startswith("If ")] == []


@pytest.mark.parametrize("row", rows_of("failures/parts.jsonl", Part), ids=lambda row: row.part)
def test_the_part_of_a_program_is_told_by_the_frames_of_its_row_and_not_by_a_near_miss(row: Part) -> None:
    assert part_of(row.like) is row
    assert not row.unlike or part_of(row.unlike) is not row
