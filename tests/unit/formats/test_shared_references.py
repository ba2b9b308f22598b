"""Few values that stand for many: each reader keeps what its budget allows, states the rest, and ends soon."""

from __future__ import annotations

import contextlib
import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest

from forensics import registry
from forensics.io.limits import DEFAULT
from forensics.io.reading import opened_bytes
from forensics.model import FileCoverage, FileStatus
from forensics.store.fill import fill
from forensics.store.sink import WORK_ISSUE, WORK_REASON
from forensics.values import replace

SMALL = replace(DEFAULT, work_units=20_000, work_units_per_byte=2)
FRAME = {"filename": "f.py", "line": 7, "name": "f"}
BLOCK = {"size": 512, "state": "active_allocated", "frames": [FRAME]}
EVENT = {"action": "alloc", "addr": 1, "size": 2, "stream": 0, "time_us": 5, "frames": [FRAME]}
ENTRY = {"profiling_name": "nccl:all_reduce", "state": "scheduled", "collective_seq_id": 1, "pg_id": 0, "frames": []}


@dataclass(frozen=True, slots=True)
class Wrote:
    tables: dict[str, pl.DataFrame]
    codes: set[str]
    coverage: FileCoverage
    work: int
    limit: int

    def rows(self, table: str) -> int:
        return self.tables[table].height if table in self.tables else 0


def read(name: str, path: str, data: bytes) -> Wrote:
    opened = opened_bytes(path, data, SMALL)
    ingesters = [one for one in registry.load("ingesters").ingesters if one.name == name]
    sink, coverage = fill(contextlib.nullcontext(opened), opened.source, ingesters, SMALL)
    codes = {issue.code for issue in sink.issues}
    return Wrote(sink.frames(), codes, coverage, opened.budget.work, opened.budget.limit)


def ended(wrote: Wrote, size_bytes: int) -> bool:
    """Whether the end of the budget is stated, nothing passes as whole, and no work was done behind the end."""
    coverage = wrote.coverage
    assert WORK_ISSUE in wrote.codes
    assert "ingester-failed" not in wrote.codes
    assert coverage.status is not FileStatus.READ
    assert WORK_REASON in coverage.reason
    assert coverage.read_bytes + coverage.skipped_bytes == size_bytes
    assert wrote.work < wrote.limit * 1.5
    return True


def segment(blocks: list[Any]) -> dict[str, Any]:
    return {"address": 4096, "total_size": 2 << 20, "device": 0, "blocks": blocks}


def snapshot(segments: list[Any], **more: object) -> dict[str, Any]:
    return {"segments": segments, "device_traces": [], **more}


def doubled(depth: int) -> list[Any]:
    """Lists of two references to the list before; all of them come first in a document, so that none is nested."""
    levels: list[Any] = [["x"]]
    for _ in range(depth):
        levels.append([levels[-1]] * 2)
    return levels


SNAPSHOTS = {
    "segments": (snapshot([segment([])] * 5_000), "segments"),
    "blocks": (snapshot([segment([BLOCK] * 5_000)]), "blocks"),
    "blocks of segments": (snapshot([segment([BLOCK] * 300)] * 300), "blocks"),
    "frames": (snapshot([segment([{**BLOCK, "frames": [FRAME] * 20}] * 2_000)]), "blocks"),
    "annotations": (snapshot([segment([BLOCK])], external_annotations=[{"name": "n"}] * 9_000), "annotations"),
}


@pytest.mark.parametrize(("document", "table"), SNAPSHOTS.values(), ids=SNAPSHOTS)
@pytest.mark.parametrize("protocol", [2, 4])
def test_a_snapshot_whose_parts_are_one_part_is_read_until_its_budget_ends(
    document: object, table: str, protocol: int
) -> None:
    data = pickle.dumps(document, protocol)
    wrote = read("memory_snapshot", "s.pickle", data)
    assert ended(wrote, len(data))
    assert 100 < wrote.rows(table) < 5_000
    assert 0 < wrote.coverage.read_bytes < len(data)


def test_settings_that_refer_to_settings_end_the_budget_and_leave_the_rest_whole() -> None:
    inner = dict.fromkeys(range(300), [1] * 1_000)
    document = snapshot([segment([BLOCK])], allocator_settings=dict.fromkeys(range(300), inner))
    data = pickle.dumps(document, 4)
    wrote = read("memory_snapshot", "s.pickle", data)
    assert ended(wrote, len(data))
    assert wrote.rows("blocks") == 1


def test_stacks_that_share_their_frames_end_the_budget_in_the_events() -> None:
    lists = [[FRAME] * n for n in range(200)]
    data = pickle.dumps({"segments": [], "device_traces": [[{**EVENT, "frames": one} for one in lists]]}, 4)
    wrote = read("memory_snapshot", "s.pickle", data)
    assert ended(wrote, len(data))
    assert 0 < wrote.rows("allocs") < 200


def test_a_stack_that_goes_on_frame_by_frame_ends_the_budget() -> None:
    frame = b"}\x94(\x8c\x08filename\x94\x8c\x01f\x94ua"  # entry 3 of the memo
    head = b"\x80\x04}\x94(\x8c\x08segments\x94]\x94" + frame + b"\x8c\x04more](](h\x03e"
    data = head + b"(h\x03e" * 2_000 + b"eu."
    wrote = read("memory_snapshot", "s.pickle", data)
    assert ended(wrote, len(data))


def test_the_name_of_a_function_that_is_no_text_is_left_out() -> None:
    levels = doubled(60)
    frame = {**FRAME, "name": levels[-1]}
    data = pickle.dumps({"levels": levels, **snapshot([segment([{**BLOCK, "frames": [frame]}])])}, 4)
    wrote = read("memory_snapshot", "s.pickle", data)
    assert wrote.tables["frames"]["function"].to_list() == [""]
    assert wrote.coverage.status is FileStatus.READ


def recorder(entries: list[Any], **more: object) -> dict[str, Any]:
    config = {"0": {"name": "0", "desc": "d", "ranks": "[0, 1]"}}
    return {"version": "2.5", "pg_config": config, "pg_status": {}, "entries": entries, **more}


RANKS = list(range(300))
RECORDERS: dict[str, tuple[dict[str, Any], int]] = {
    "entries": (recorder([ENTRY] * 5_000), 50),
    "frames": (recorder([{**ENTRY, "frames": [FRAME] * 40}] * 5_000), 20),
    "sizes": (recorder([{**ENTRY, "input_sizes": [[7] * 16] * 64}] * 5_000), 1),
    "groups": (recorder([ENTRY], pg_config={f"{n}": {"name": f"{n}", "ranks": RANKS} for n in range(200)}), 0),
}


@pytest.mark.parametrize(("document", "least"), RECORDERS.values(), ids=RECORDERS)
def test_a_recorder_whose_parts_are_one_part_is_read_until_its_budget_ends(
    document: dict[str, Any], least: int
) -> None:
    data = pickle.dumps(document, 4)
    wrote = read("flight_recorder", "nccl_trace_rank_0", data)
    assert ended(wrote, len(data))
    assert least <= wrote.rows("collectives") < 5_000


def test_states_of_groups_that_share_their_ranks_end_the_budget() -> None:
    entries = [{**ENTRY, "pg_id": n} for n in range(100)]
    status = {f"{n}": {"last_enqueued_collective": 1} for n in range(100)}
    config = {"0": {"name": "0", "desc": "d", "ranks": RANKS}}
    named = [{**one, "process_group": ("0", "d")} for one in entries]
    data = pickle.dumps(recorder(named, pg_status=status, pg_config=config), 4)
    wrote = read("flight_recorder", "nccl_trace_rank_0", data)
    assert ended(wrote, len(data))
    assert 0 < wrote.tables["events"].filter(pl.col("code") == "fr-group").height < 100


@pytest.mark.parametrize("name", ["health_check_results", "version", "nccl_version"])
def test_what_a_recorder_says_of_itself_is_visited_before_it_is_written(name: str) -> None:
    data = pickle.dumps(recorder([ENTRY], **{name: ["n" * 5_000] * 1_000}), 4)
    wrote = read("flight_recorder", "nccl_trace_rank_0", data)
    assert ended(wrote, len(data))
    assert wrote.rows("collectives") == 1


def test_a_recorder_that_is_nested_without_end_gives_its_entries() -> None:
    levels = doubled(60)
    data = pickle.dumps({"levels": levels, **recorder([ENTRY] * 3, health_check_results=levels[-1])}, 4)
    wrote = read("flight_recorder", "nccl_trace_rank_0", data)
    assert wrote.rows("collectives") == 3
    assert wrote.coverage.status is FileStatus.PARTIAL


def test_words_of_an_entry_that_are_no_text_are_left_out() -> None:
    levels = doubled(60)
    one = {**ENTRY, "thread_id": levels[-1], "pg_name": levels[-1], "process_group": levels[-1]}
    entries = [levels[-1], one]  # the first is no entry
    wrote = read("flight_recorder", "nccl_trace_rank_0", pickle.dumps({"entries": [levels, *entries]}, 4))
    assert wrote.rows("collectives") == 1
    assert wrote.coverage.status is FileStatus.READ


NAME, FEW = "n" * 20_000, {f"k{n}": n for n in range(500)}
PATHS: dict[str, Callable[[], tuple[str, str, bytes]]] = {
    "json": lambda: ("config_files", "config.json", json.dumps({"lr": 1, "model": {NAME: FEW}}).encode()),
    "yaml": lambda: (
        "config_files",
        "config.yaml",
        f"lr: 1\n? {NAME}\n: {{{', '.join(f'k{n}: 1' for n in range(500))}}}".encode(),
    ),
    "toml": lambda: (
        "config_files",
        "config.toml",
        ("lr = 1\n[" + NAME + "]\n" + "".join(f"k{n} = 1\n" for n in range(500))).encode(),
    ),
    "hparams": lambda: (
        "hparams_yaml",
        "hparams.yaml",
        f"lr: 1\n? {NAME}\n: {{{', '.join(f'k{n}: 1' for n in range(500))}}}".encode(),
    ),
}


@pytest.mark.parametrize("make", PATHS.values(), ids=PATHS)
def test_a_long_name_before_many_settings_ends_the_budget(make: Callable[[], tuple[str, str, bytes]]) -> None:
    name, path, data = make()
    wrote = read(name, path, data)
    assert ended(wrote, len(data))
    assert 1 < wrote.rows("facts") < 500


def test_a_long_name_before_many_metrics_of_a_line_ends_the_budget() -> None:
    first = {"step": 1, "loss": 2.5}
    data = (json.dumps(first) + "\n" + json.dumps({**first, NAME: FEW}) + "\n").encode()
    assert ended(read("metrics_jsonl", "m.jsonl", data), len(data))


def test_brackets_behind_a_long_name_cost_no_name_each() -> None:
    data = json.dumps({"lr": 1, NAME: [[]] * 50_000}).encode()
    wrote = read("config_files", "config.json", data)
    assert wrote.work < 10
    assert wrote.coverage.status is FileStatus.READ
