"""What is known of a rank that clues name, of its last words, and of the signals that others send."""

from __future__ import annotations

import pytest

from forensics.knowledge.doing import by_frame, by_words
from forensics.knowledge.reports import report
from forensics.knowledge.signals import is_sent
from forensics.knowledge.suspects import is_absence, is_death, is_start, suspect


def test_a_cause_that_no_row_ranks_tells_more_than_any_that_only_follows_from_absence() -> None:
    assert suspect("gpu_fell_off_the_bus").telling > suspect("never_entered").telling > suspect("no_dump").telling


@pytest.mark.parametrize("cause", ["silent_death", "silent_death_segv", "exit_nonzero", "port_in_use"])
def test_a_process_is_gone_by_its_cause_or_by_the_signal_that_ended_it(cause: str) -> None:
    assert is_death(cause)


@pytest.mark.parametrize("cause", ["never_entered", "frozen_process", "external_termination", ""])
def test_a_stall_or_a_stop_is_no_death(cause: str) -> None:
    assert not is_death(cause)


def test_a_port_in_use_keeps_a_job_from_coming_together_and_a_lost_node_does_not() -> None:
    assert is_start("port_in_use")
    assert not is_start("node_loss")


def test_an_exit_is_what_absence_looks_like_and_a_device_error_is_not() -> None:
    assert is_absence("early_exit")
    assert not is_absence("device_error")


def test_an_exception_is_that_of_one_rank_only_where_nothing_else_is_known_of_it() -> None:
    assert suspect("uncaught_exception").of_one_rank == "exception_one_rank"
    assert not suspect("model_mismatch").of_one_rank


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("saving checkpoint to /data/out/step_90", "saves"),
        ("evaluating on the validation data", "evaluates"),
        ("loading data shard 7", "reads"),
        ("error while saving checkpoint to /data", None),
        ("step 90 loss 2.5", None),
    ],
)
def test_last_words_hint_at_work_unless_they_are_an_error(line: str, row: str | None) -> None:
    found = by_words(line)
    assert (found and found.row) == row


@pytest.mark.parametrize(
    ("frame", "row"),
    [
        ("save_pretrained utils.py", "saves"),
        ("write serialization.py", "saves"),
        ("evaluate_reader eval.py", "reads"),
        ("write socket.py", None),
        ("forward m.py", None),
    ],
)
def test_a_frame_that_reads_is_reading_wherever_it_is_called(frame: str, row: str | None) -> None:
    found = by_frame(frame)
    assert (found and found.row) == row


def test_reports_of_several_causes_mean_that_a_peer_is_gone() -> None:
    assert report("").means == report("task_failed").means == "peer_gone"
    assert report("traceback_cut_short").is_own
    assert not report("command_not_found").is_own


def test_a_signal_to_end_is_sent_and_a_fault_of_the_program_is_not() -> None:
    assert [code for code in (-15, 143, -9, 137, -11, -6, 1, 0) if is_sent(code)] == [-15, 143, -9, 137]
