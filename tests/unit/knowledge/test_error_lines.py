"""The table of error lines: every row is whole, reads its example, and leaves its near miss alone."""

from __future__ import annotations

import re
from itertools import takewhile

import polars as pl
import pytest

from forensics.case.errors.kinds import Weight, of_exception, of_line, of_lone_line, row_of_exception
from forensics.dialects.events.last_words import last_words
from forensics.dialects.reader import Begins, Bounds, Reader
from forensics.knowledge import errors
from forensics.knowledge.errors import ErrorLine

ROWS = errors.table()
SHAPES = {"nan", "oom", "hang", "slowdown", "bad_eval", "learning", "crash", "stopped", ""}


def is_read(row: ErrorLine, line: str) -> bool:
    """Whether the engine reads a line as this row; of a row for exceptions, whether it decides."""
    if row in errors.closing():
        return last_words(line, b"") == row
    if not row.needles:
        said, *below = line.split("\n")
        words = [*takewhile(lambda one: one[:1].isspace(), below)]  # a message goes on in indented lines
        exception, _, message = said.partition(": ")
        message, frames = "\n".join([message, *words]), below[len(words) :]
        return row_of_exception(exception, message, frames, alone=row.alone) == row
    reader = Reader((), Bounds(), Begins(tasks=False))
    data = f"step 1 begins\n{line}\nstep 2 begins\n".encode()
    tables = [*reader.feed(data, offset=0, first_line=1), *reader.close()[0]]
    return any(row.id in table["events"]["code"] for table in tables if "events" in table)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_line_like_it_is_read_as_the_row(row: ErrorLine) -> None:
    assert is_read(row, row.like)


def test_a_line_that_is_nearly_like_it_is_not_read_as_the_row() -> None:
    assert [row.id for row in ROWS if not row.unlike.strip() or is_read(row, row.unlike)] == []


def test_a_row_is_whole() -> None:
    kinds = {*(weight.name.lower() for weight in Weight), "context", "benign"}
    others = {"", *errors.by_id()}

    def is_whole(row: ErrorLine) -> bool:
        named = {row.taken_back_by, *((row.after.line, row.after.means) if row.after else ())}
        return (
            row.kind in kinds
            and row.shape in SHAPES
            and row.cause.isidentifier()
            and bool(row.source)
            and row.speaks_of in {"", "named", "another", "host"}
            and named <= others
            and (not row.needles or (row.why.endswith(".") and row.fix.endswith(".")))
            and (bool(row.needles) or row in errors.closing() or not (row.tells or row.final or row.after))
        )

    assert [row.id for row in ROWS if not is_whole(row)] == []


def test_a_pattern_is_one_of_python_and_of_polars() -> None:
    refused: list[tuple[str, str]] = []
    for row in ROWS:
        try:
            re.compile(row.pattern)
            if row.needles and "(?!" not in row.pattern:
                pl.Series(["x"]).str.contains(row.pattern)
        except (re.error, pl.exceptions.PolarsError) as error:
            refused.append((row.id, str(error)))
    assert refused == []


def test_an_advice_asks_only_for_what_its_line_says() -> None:
    places = {"frame", "package", "statement", "own", "look", "look_there"}
    asked = [(row, set(re.findall(r"\{(\w+)\}", row.fix))) for row in ROWS]
    assert [row.id for row, names in asked if not names <= {*row.compiled.groupindex} | places] == []
    assert [row.id for row, names in asked if row.needles and names] == [], "a rule tells it as it is"


def test_ids_are_never_used_twice() -> None:
    assert len(errors.by_id()) == len(ROWS)


def test_a_fact_that_no_row_tells_is_refused() -> None:
    with pytest.raises(KeyError, match="no_such_fact"):
        errors.telling("no_such_fact")


def test_a_row_for_exceptions_decides_before_one_for_lines() -> None:
    assert of_exception("torch.OutOfMemoryError", "CUDA out of memory.")[2] == "gpu_out_of_memory"
    assert of_exception("OSError", "[Errno 28] No space left on device")[2] == "disk_full"
    assert of_exception("ValueError", "shard 17 is empty") == (Weight.OWN, "crash", "uncaught_exception")


def test_a_line_that_speaks_of_another_process_alone_tells_of_a_crash() -> None:
    assert of_line("nccl-aborted", {}) == (Weight.CLOSED, "crash", "communicator_aborted")
    assert of_line("nccl-watchdog", {}) == (Weight.TIMEOUT, "hang", "collective_timeout")


def test_a_final_line_is_an_error_only_at_the_end_of_its_log() -> None:
    assert of_line("store-barrier-wait", {}) is None
    assert of_line("store-barrier-wait", {}, ends_log=True) == (Weight.TIMEOUT, "hang", "init_hang")


def test_a_row_decides_over_what_an_event_says_of_itself() -> None:
    assert of_line("nccl-flight", {"role": "root", "shape": "hang"}) is None
    assert of_line("tidewheel.nan", {"role": "symptom", "shape": "nan"}) == (Weight.ECHO, "nan", "tidewheel.nan")


def test_an_exception_line_without_a_traceback_counts_at_the_end_or_where_the_program_did_not_start() -> None:
    assert of_lone_line("ValueError", "shard 17 is empty", ends_log=False) is None
    assert of_lone_line("ValueError", "shard 17 is empty", ends_log=True) == (
        Weight.ECHO, "crash", "uncaught_exception",
    )  # fmt: skip
    assert of_lone_line("SyntaxError", "invalid syntax", ends_log=False) == (
        Weight.OWN, "crash", "program_did_not_start",
    )  # fmt: skip
    assert of_exception("SyntaxError", "invalid syntax")[2] == "uncaught_exception"


def test_an_error_is_known_by_its_code_or_its_words() -> None:
    by_code, by_words = (
        errors.row_of("enospc"),
        errors.row_of("traceback", "OSError: [Errno 28] No space left on device"),
    )
    assert by_code is not None
    assert by_code == by_words
    assert errors.row_of("traceback", "ValueError: shard 17 is empty") is None
