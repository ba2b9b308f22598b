"""Stacks as text and JSON, and process states: threads in order, frames innermost first."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from forensics.errors import NotMine
from forensics.formats.stacks import dump as stack_dump
from forensics.formats.stacks import proc_state, pyspy_json

Run = Callable[..., Any]


def frames(wrote: Any) -> list[tuple[object, ...]]:
    return list(wrote.table("stack_frames").select("seq", "depth", "function", "file", "line", "kind").iter_rows())


def test_py_spy_text_gives_threads_innermost_first_and_no_locals(run_fixture: Run) -> None:
    wrote = run_fixture(stack_dump.read, "stack_dump/ok-pyspy")
    table = wrote.table("stack_frames")
    assert frames(wrote)[0] == (0, 0, "barrier", "torch/distributed/distributed_c10d.py", 4710, "python")
    assert table.filter(seq=0)["function"].to_list() == ["barrier", "wrapper", "evaluate", "<module>"]
    assert table.filter(depth=0).select("rank", "pid", "thread", "thread_name", "state").rows() == [
        (1, 4711, "4711", "MainThread", "idle"),
        (1, 4711, "4790", "loader (0)", "gil"),
    ]
    event = wrote.table("events").row(0, named=True)
    assert (event["code"], json.loads(event["attrs"])["local_rank"]) == ("stack-process", "1")
    assert not wrote.issues


def test_native_frames_have_a_library_and_no_line(run_fixture: Run) -> None:
    found = frames(run_fixture(stack_dump.read, "stack_dump/ok-native"))
    assert [(f[3], f[4], f[5]) for f in found] == [
        ("libc.so.6", None, "native"),
        ("libdrv.so.2", None, "native"),
        ("loop.py", 77, "python"),
        ("<string>", 1, "python"),
    ]
    assert str(found[1][2]).startswith("gdrv::wait(int, std::vector<float")


def test_pystack_prints_the_innermost_frame_last_and_says_who_holds_the_lock(run_fixture: Run) -> None:
    wrote = run_fixture(stack_dump.read, "stack_dump/ok-pystack")
    assert [(f[0], f[2]) for f in frames(wrote)] == [(0, "compute_all"), (0, "main"), (0, "<module>"), (1, "pump")]
    assert wrote.table("stack_frames")["state"].to_list() == ["gil", "gil", "gil", None]


def test_faulthandler_marks_the_current_thread(run_fixture: Run) -> None:
    wrote = run_fixture(stack_dump.read, "stack_dump/ok-faulthandler")
    heads = wrote.table("stack_frames").filter(depth=0)
    assert heads.select("rank", "thread", "function", "state").rows() == [
        (3, "0x00007f01", "drain", None),
        (3, "0x00007f02", "read_shard", "active"),
    ]


def test_the_debug_servers_sections_name_the_ranks_and_who_gave_no_answer(run_fixture: Run) -> None:
    wrote = run_fixture(stack_dump.read, "stack_dump/ok-server")
    assert wrote.table("stack_frames").select("rank", "function").rows() == [(0, "forward"), (1, "backward")]
    assert wrote.table("events").select("code", "rank").rows() == [("stack-no-answer", 2)]
    assert wrote.coverage.records == 3


def test_gdb_frames_are_native(run_fixture: Run) -> None:
    wrote = run_fixture(stack_dump.read, "stack_dump/ok-gdb")
    assert frames(wrote)[0] == (0, 0, "futex_wait", "../sysdeps/nptl/futex-internal.h", 146, "native")
    assert [(f[2], f[3]) for f in frames(wrote)][1:] == [
        ("c10d::Watch::loop()", "/opt/lib/libtorch_cuda.so"),
        ("read", "/lib/libc.so.6"),
        ("??", None),
    ]


def test_the_kernels_stack_is_one_thread(run_fixture: Run) -> None:
    found = frames(run_fixture(stack_dump.read, "stack_dump/ok-kernel"))
    assert [(f[2], f[3], f[5]) for f in found] == [
        ("rpc_wait_bit_killable", "sunrpc", "kernel"),
        ("nfs4_do_close", "nfsv4", "kernel"),
        ("do_syscall_64", None, "kernel"),
    ]


def test_a_process_that_py_spy_could_not_find_is_an_event(run_fixture: Run) -> None:
    wrote = run_fixture(stack_dump.read, "stack_dump/ok-gone")
    event = wrote.table("events").row(0, named=True)
    assert (event["code"], event["rank"], wrote.table("stack_frames").height) == ("stack-no-answer", 6, 0)
    assert json.loads(event["attrs"])["why"] == "No such process (os error 3)"
    assert not wrote.issues


def test_a_line_that_belongs_to_no_stack_is_lost_and_said(run_fixture: Run) -> None:
    wrote = run_fixture(stack_dump.read, "stack_dump/broken-mixed")
    assert [issue.code for issue in wrote.issues] == ["strange-line"]
    assert wrote.coverage.skipped_bytes == len(b"permission denied, retrying")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"Process 12 started\nstep 1 loss 2.5\n",
        b'step 1\nstep 2\nstep 3\nThread 1 (idle): "a"\n    f (x.py:1)\nstep 4\nstep 5\n',
        b"=== Rank 0: http://n/handler/pyspy_dump ===\nError: 500\n",
        b"Error: disk full\nstep 3\n",
    ],
)
def test_logs_are_left_to_others(data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(stack_dump.read, "stacks.txt", data)


def test_json_gives_the_same_rows_as_text_does(run_fixture: Run) -> None:
    wrote = run_fixture(pyspy_json.read, "pyspy_json/ok-threads")
    heads = wrote.table("stack_frames").filter(depth=0)
    assert heads.select("rank", "pid", "thread", "thread_name", "state", "function").rows() == [
        (2, 4711, "4711", "MainThread", "gil", "all_gather"),
        (2, 4711, "4799", None, "idle", "all_gather"),
    ]
    assert [(f[5], f[4]) for f in frames(wrote)][:3] == [("python", 3200), ("python", 41), ("native", None)]
    assert json.loads(wrote.table("events")["attrs"][0])["local_rank"] == "2"


def test_cut_json_gives_the_threads_that_are_whole(run_fixture: Run) -> None:
    wrote = run_fixture(pyspy_json.read, "pyspy_json/broken-cut")
    assert wrote.table("stack_frames")["seq"].unique().to_list() == [0]
    assert [issue.code for issue in wrote.issues] == ["damaged"]


def test_no_thread_at_all_is_a_process_that_was_gone(run: Run) -> None:
    wrote = run(pyspy_json.read, "pyspy_rank2.json", b"[]\n")
    assert wrote.coverage.records == 0
    with pytest.raises(NotMine):
        run(pyspy_json.read, "stack.json", b"[]\n")


def test_a_process_state_is_an_event(run_fixture: Run) -> None:
    row = run_fixture(proc_state.read, "proc_state/ok-stopped").table("events").row(0, named=True)
    attrs = json.loads(row["attrs"])
    assert (row["code"], row["rank"]) == ("proc-state", 2)
    assert (attrs["state"], attrs["wchan"], attrs["pid"], attrs["rss_bytes"]) == (
        "T",
        "do_signal_stop",
        "4711",
        "20971520",
    )


def test_each_process_of_a_file_has_its_own(run_fixture: Run) -> None:
    wrote = run_fixture(proc_state.read, "proc_state/ok-two")
    assert [json.loads(text)["state"] for text in wrote.table("events")["attrs"]] == ["T", "D"]
    assert wrote.table("events")["line"].to_list() == [1, 8]


def test_a_jobs_record_is_no_process(run: Run) -> None:
    with pytest.raises(NotMine):
        run(proc_state.read, "status.txt", b"Job ID: 7\nState: FAILED (exit code 1)\n")
