"""Flight-recorder dumps: collectives with their groups, states and call sites; and what a broken one still gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.errors import NotMine
from forensics.formats.recorder.reader import read
from tests.unit.formats.conftest import FIXTURES, ingest

Run = Callable[..., Any]
WHOLE = "nccl_trace_rank_3"


def whole() -> bytes:
    return (Path(FIXTURES) / "flight_recorder" / "ok-nccl" / WHOLE).read_bytes()


def attrs(row: dict[str, Any]) -> dict[str, Any]:
    return json.loads(row["attrs"])


def test_an_entry_gives_group_members_operation_sizes_and_the_users_own_frame(run_fixture: Run) -> None:
    rows = run_fixture(read, "flight_recorder/ok-nccl").table("collectives").to_dicts()
    first, pending = rows[0], rows[4]
    assert [row["rank"] for row in rows] == [3] * 6
    assert (first["group"], first["group_size"], first["ranks"]) == ("0(default_pg)", 4, "[0,1,2,3]")
    assert (first["seq"], first["op"], first["in_sizes"], first["dtype"]) == (1, "all_reduce", "[[64,8]]", "Float")
    assert (first["state"], first["retired"], first["timeout_ms"]) == ("completed", True, 90_000)
    assert first["site"] == "/srv/app/loop.py:88 sync_grads"
    assert len(json.loads(first["stack"])) == 3
    assert (pending["op"], pending["state"], attrs(pending)["op"]) == (
        "all_gather",
        "scheduled",
        "nccl:_all_gather_base",
    )


def test_a_send_names_both_ends_by_their_global_ranks(run_fixture: Run) -> None:
    row = run_fixture(read, "flight_recorder/ok-nccl").table("collectives").row(5, named=True)
    assert (row["op"], row["p2p_seq"], row["ranks"]) == ("send", 9, "[1,3]")
    assert {k: attrs(row)[k] for k in ("p2p", "src", "dst")} == {"p2p": True, "src": 3, "dst": 1}


def test_the_state_of_each_group_is_an_event_under_the_groups_name(run_fixture: Run) -> None:
    events = run_fixture(read, "flight_recorder/ok-nccl").table("events").to_dicts()
    assert [row["code"] for row in events] == ["fr-dump", "fr-group", "fr-group", "fr-group"]
    assert (attrs(events[0])["entries"], attrs(events[0])["pending"]) == ("6", "2")
    assert [attrs(row)["group"] for row in events[1:]] == ["0(default_pg)", "7(PIPE)", "9(EDGE)"]
    assert (attrs(events[1])["last_enqueued"], attrs(events[1])["last_completed"]) == ("6", "5")


def test_a_retired_gloo_entry_is_completed_and_its_one_unnamed_group_gives_the_members(run_fixture: Run) -> None:
    rows = run_fixture(read, "flight_recorder/ok-gloo").table("collectives").to_dicts()
    assert [row["state"] for row in rows] == ["completed"] * 3 + ["scheduled"]
    assert (rows[3]["op"], rows[3]["ranks"], rows[3]["group"]) == ("barrier", "[0,1]", "0(default_pg)")
    assert attrs(rows[0])["state"] == "scheduled"


def test_json_says_the_same_as_the_pickle_but_for_frames(run_fixture: Run) -> None:
    drop = ("source", "site", "stack")
    printed = run_fixture(read, "flight_recorder/ok-json").table("collectives").drop(drop)
    assert printed.equals(run_fixture(read, "flight_recorder/ok-nccl").table("collectives").drop(drop))


@pytest.mark.parametrize(
    ("name", "rank"),
    [("comm_lib_trace_rank_n7-a_3", 3), ("_dump_3", 3), ("dump", 3), ("nccl_trace_rank_3", 3), ("trace_rank_12", 3)],
)
def test_the_rank_is_that_of_the_name_unless_the_groups_say_otherwise(name: str, rank: int, run: Run) -> None:
    wrote = run(read, name, whole())
    assert set(wrote.table("collectives")["rank"]) == {rank}


def test_the_oldest_form_is_a_bare_list(run_fixture: Run) -> None:
    rows = run_fixture(read, "flight_recorder/ok-oldest").table("collectives").to_dicts()
    assert [(row["seq"], row["op"], row["rank"]) for row in rows] == [(0, "broadcast", 0), (1, "broadcast", 0)]
    assert rows[1]["created_ns"] - rows[0]["created_ns"] == 1000


def test_a_dump_without_entries_says_that_nothing_was_enqueued(run_fixture: Run) -> None:
    wrote = run_fixture(read, "flight_recorder/ok-no-entries")
    assert wrote.table("collectives").height == 0
    assert wrote.table("events")["code"].to_list() == ["fr-dump"]
    assert not wrote.issues


def test_an_empty_file_is_a_dump_that_is_damaged(run: Run) -> None:
    wrote = run(read, "trace_rank_2", b"")
    assert wrote.table("events")["rank"].to_list() == [2]
    assert [issue.code for issue in wrote.issues] == ["damaged"]


@pytest.mark.parametrize("case", ["broken-cut", "broken-cut-json"])
def test_a_cut_dump_gives_its_whole_entries(case: str, run_fixture: Run) -> None:
    wrote = run_fixture(read, f"flight_recorder/{case}")
    seqs = wrote.table("collectives")["seq"].to_list()
    assert seqs == list(range(1, len(seqs) + 1))
    assert len(seqs) >= 2
    assert [issue.code for issue in wrote.issues] == ["damaged"]
    assert wrote.coverage.skipped_bytes > 0


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 2100))
def test_wherever_it_is_cut_the_entries_before_the_cut_are_read(at: int) -> None:
    data = whole()
    try:
        wrote = ingest(read, WHOLE, data[:at])
    except NotMine:
        assert b"pg_config" not in data[:at]
        return
    seqs = wrote.table("collectives")["seq"].to_list()
    assert seqs == [1, 2, 3, 4, 5, 3][: len(seqs)]
    ended = data[:at].count(b"\x89u") + data[:at].count(b"h,u")
    assert ended - 1 <= len(seqs) <= 6


def test_what_would_call_something_is_refused_and_said(run_fixture: Run) -> None:
    with pytest.raises(NotMine):
        run_fixture(read, "flight_recorder/broken-calls")


def test_a_call_inside_a_dump_ends_it_there(run: Run) -> None:
    data = whole()
    at = data.index(b"X\x0c\x00\x00\x00nccl_version")
    wrote = run(read, WHOLE, data[:at] + b"cos\nsystem\n" + data[at:])
    assert "not plain data" in wrote.issues[0].message


@pytest.mark.parametrize("data", [b"\x80\x02}q\x00.", b"{}", b'{"entries": 3}', b"[]", b"\x80\x04N.", b"step 1"])
def test_other_pickles_and_other_json_are_left_to_others(data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "trace_rank_0", data)
