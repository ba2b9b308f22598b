"""The budget of a file: what it charges, where it ends, and that no file whose budget ended passes as whole."""

from __future__ import annotations

import contextlib
import gzip
from pathlib import Path

import polars as pl
import pytest

from forensics import registry
from forensics.errors import InputError
from forensics.io.budget import TEXT_CHARS, Budget, WorkExceeded
from forensics.io.limits import DEFAULT, Limits
from forensics.io.reading import Opened, opened_bytes
from forensics.model import FileCoverage, FileStatus, Source
from forensics.registry import Ingester, Sniff
from forensics.store.fill import fill
from forensics.store.sink import WORK_ISSUE, WORK_REASON, SourceSink
from forensics.values import replace

FIXTURES = Path(__file__).parents[3] / "fixtures"
SMALL = replace(DEFAULT, work_units=100, work_units_per_byte=2)


def budget(size_bytes: int = 50) -> Budget:
    return Budget(size_bytes, SMALL)


def test_the_limit_is_a_base_and_a_factor_for_each_byte() -> None:
    assert budget(0).limit == 100
    assert budget(50).limit == 200
    assert (DEFAULT.work_units, DEFAULT.work_units_per_byte) == (1 << 20, 16)


def test_the_last_unit_is_allowed_and_the_next_one_ends_the_work_for_good() -> None:
    one = budget()
    one.charge(200)
    assert not one.ended
    with pytest.raises(WorkExceeded, match="201 is over the limit of 200"):
        one.charge(1)
    assert one.ended == 201
    with pytest.raises(WorkExceeded):
        one.charge(5)
    assert one.ended == 201


def test_a_compressed_file_may_cost_what_its_decoded_bytes_may() -> None:
    opened = opened_bytes("x.gz", gzip.compress(b"line\n" * 1_000), SMALL)
    assert opened.budget.limit == 100 + 2 * opened.size_bytes
    assert sum(len(block.data) for block in opened.blocks()) == 5_000
    assert opened.budget.limit == 100 + 2 * 5_000
    assert opened.budget.reached_bytes == opened.size_bytes


def test_chunks_of_a_stream_count_as_its_blocks_do() -> None:
    opened = opened_bytes("x.gz", gzip.compress(b"line\n" * 1_000), SMALL)
    assert sum(map(len, opened.chunks(64))) == 5_000
    assert opened.budget.limit == 100 + 2 * 5_000


def test_how_far_a_stream_was_read_stays_where_the_budget_ended() -> None:
    one = budget()
    one.grow(10, 10)
    with pytest.raises(WorkExceeded):
        one.charge(201)
    one.grow(50, 50)
    assert one.reached_bytes == 10


def test_as_many_rows_fit_as_the_cells_that_are_left() -> None:
    one = budget()
    assert one.fitting(10, lambda rows: rows * 10) == 10
    assert one.cells == 100
    assert one.fitting(30, lambda rows: rows * 10) == 10
    assert (one.cells, one.ended) == (200, 400)
    assert one.fitting(1, lambda rows: rows * 10) == 0


def test_rows_are_left_out_until_the_first_ones_fit_whatever_each_costs() -> None:
    one = budget()
    costs = [190, 150, 1, 1, 1, 1]
    assert one.fitting(6, lambda rows: sum(costs[:rows])) == 1
    assert one.cells == 190


def test_work_that_ended_leaves_room_for_the_rows_that_it_made() -> None:
    one = budget()
    with pytest.raises(WorkExceeded):
        one.charge(1_000)
    assert one.fitting(5, lambda rows: rows) == 5


def test_what_is_shared_costs_each_time_it_is_met() -> None:
    one, leaf = Budget(10_000, SMALL), ["x"]
    one.visit([leaf])
    once = one.work
    one.visit([leaf] * 100)
    assert one.work - once > 100
    text = "n" * (TEXT_CHARS * 50)
    before = one.work
    one.visit({text: text})
    assert one.work - before > 100


def test_a_value_that_holds_itself_or_doubles_without_end_ends_the_budget() -> None:
    itself: list[object] = []
    itself.append(itself)
    doubled: object = "x"
    for _ in range(60):
        doubled = {"a": doubled, "b": doubled}
    for value in (itself, doubled):
        with pytest.raises(WorkExceeded):
            Budget(10_000, SMALL).visit(value)


def test_items_are_charged_by_the_length_of_their_text_as_they_come() -> None:
    items = budget().each(["n" * TEXT_CHARS * 60] * 10, lambda text: text)
    given = [next(items) for _ in range(3)]  # 61 units each, of 200
    with pytest.raises(WorkExceeded):
        next(items)
    assert len(given) == 3


def sink_of(size_bytes: int, limits: Limits = SMALL) -> SourceSink:
    return SourceSink(Source("a", size_bytes), limits)


@pytest.mark.parametrize("as_frame", [False, True])
def test_the_sink_keeps_the_rows_that_fit_and_then_raises(as_frame: bool) -> None:
    sink = sink_of(50)
    columns = {"name": ["a"] * 150, "value": [1.0] * 150, "step": [1] * 150}
    with pytest.raises(WorkExceeded):
        sink.rows("metrics", pl.DataFrame(columns) if as_frame else columns)
    assert sink.frames()["metrics"].height == 64  # three cells each, and text
    assert sink.budget.cells == 64 * 3 + 64 // TEXT_CHARS == 200


@pytest.mark.parametrize("as_frame", [False, True])
def test_a_long_text_counts_in_every_row_that_repeats_it(as_frame: bool) -> None:
    sink = sink_of(50)
    columns = {"name": ["n" * 100 * TEXT_CHARS] * 10, "value": [1.0] * 10}
    with pytest.raises(WorkExceeded):
        sink.rows("metrics", pl.DataFrame(columns) if as_frame else columns)
    assert sink.frames()["metrics"].height == 1


def reader(read: object) -> Ingester:
    return Ingester("made", 1, Sniff(glob=("*",)), ("metrics",), read, "", "")  # type: ignore[arg-type]


def filled(read: object, data: bytes = b"x" * 50) -> tuple[SourceSink, FileCoverage]:
    opened = opened_bytes("a", data, SMALL)
    return fill(contextlib.nullcontext(opened), opened.source, [reader(read)], SMALL)


def stated(sink: SourceSink) -> list[str]:
    return [issue.message for issue in sink.issues if issue.code == WORK_ISSUE]


def test_a_reader_whose_rows_end_the_budget_is_partly_read_and_says_so() -> None:
    def read(opened: Opened, out: SourceSink, limits: Limits) -> None:
        assert limits == SMALL
        for _ in opened.blocks():
            out.rows("metrics", {"value": [1.0] * 500})
        out.account(read_bytes=50)

    sink, coverage = filled(read)
    assert sink.frames()["metrics"].height == 200
    assert stated(sink) == [
        "500 units of work are asked for by 50 bytes, 200 are allowed; what was read until then is kept"
    ]
    assert coverage.status is FileStatus.PARTIAL
    assert (coverage.read_bytes, coverage.skipped_bytes, coverage.reason) == (49, 1, WORK_REASON)


def test_a_reader_that_notices_nothing_never_passes_as_whole() -> None:
    def read(opened: Opened, out: SourceSink, limits: Limits) -> None:
        del limits
        with contextlib.suppress(InputError):
            opened.budget.charge(10_000)
        out.account(read_bytes=50)

    sink, coverage = filled(read)
    assert stated(sink)
    assert (coverage.status, coverage.read_bytes, coverage.skipped_bytes) == (FileStatus.PARTIAL, 49, 1)
    assert coverage.reason == WORK_REASON


def test_a_reader_that_says_what_it_read_is_believed_and_the_rest_is_skipped() -> None:
    def read(opened: Opened, out: SourceSink, limits: Limits) -> None:
        del limits
        with contextlib.suppress(InputError):
            opened.budget.charge(10_000)
        out.account(read_bytes=20)

    sink, coverage = filled(read)
    assert (coverage.read_bytes, coverage.skipped_bytes, coverage.reason) == (20, 30, WORK_REASON)
    assert len(stated(sink)) == 1


def test_a_reader_within_its_budget_states_nothing() -> None:
    def read(opened: Opened, out: SourceSink, limits: Limits) -> None:
        del limits
        opened.budget.charge(200)
        out.rows("metrics", {"value": [1.0] * 200})
        out.account(read_bytes=50)

    sink, coverage = filled(read)
    assert (stated(sink), coverage.status) == ([], FileStatus.READ)


#: The factor is at least this many times what a real file asks for; small files are held to the base instead.
MARGIN, SMALL_BYTES = 10, 4096
DENSE = (
    "metrics_csv",
    "nvidia_smi_csv",
    "memory_snapshot",
    "flight_recorder",
    "metrics_jsonl",
    "wandb_history_parquet",
)


@pytest.mark.parametrize("name", DENSE)
def test_real_files_ask_for_a_tenth_of_what_they_may(name: str) -> None:
    ingesters = registry.load("ingesters").ingesters
    paths = [path for path in (FIXTURES / name).rglob("*") if path.is_file() and path.stat().st_size]
    assert paths
    for path in paths:
        opened = opened_bytes(path.name, path.read_bytes())
        sink, _ = fill(contextlib.nullcontext(opened), opened.source, ingesters, DEFAULT)
        asked = max(opened.budget.work, sink.budget.cells)
        if opened.budget.size_bytes >= SMALL_BYTES:
            assert asked * MARGIN <= opened.budget.size_bytes * DEFAULT.work_units_per_byte, path
        assert asked * MARGIN <= opened.budget.limit, path


@pytest.mark.parametrize("step", ["step", "_step"])
def test_rows_before_the_end_of_a_budget_are_kept(step: str) -> None:
    rows = "".join(f'{{"{step}": {n}, "_runtime": {n}, "loss": {n}.5}}\n' for n in range(1, 6))
    inside = ", ".join(f'"k{n}": {n}' for n in range(9_000))
    data = f'{rows}{{"{step}": 6, "_runtime": 6, "{"n" * 20_000}": {{{inside}}}}}\n'.encode()
    readers = registry.load("ingesters").ingesters
    opened = opened_bytes("history.jsonl", data)
    sink, coverage = fill(contextlib.nullcontext(opened), opened.source, readers, DEFAULT)
    assert {WORK_ISSUE} == {issue.code for issue in sink.issues}
    assert sink.frames()["metrics"].filter(pl.col("name") == "loss")["value"].to_list() == [1.5, 2.5, 3.5, 4.5, 5.5]
    assert coverage.status is FileStatus.PARTIAL
