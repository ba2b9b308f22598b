"""Lines of watchdogs, barriers, launchers and kernels: what they name is in the events and in the collectives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.dialects import prefixes
from forensics.dialects.events import collectives
from forensics.dialects.reader import Bounds, Reader

LOG = Path(__file__).parents[3] / "fixtures" / "text_log" / "ok-hang-lines" / "hang.log"
WATCH = (
    "[rank7]:[E117 10:15:01.25 ProcessGroupNCCL.cpp:685] [Rank 3] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=4123, OpType=_ALLGATHER_BASE, NumelIn=77, NumelOut=616, Timeout(ms)=90000) ran for 90042 "
    "milliseconds before timing out."
)


def tables(text: str | bytes) -> dict[str, pl.DataFrame]:
    reader = Reader((), Bounds())
    data = text.encode() if isinstance(text, str) else text
    parts = reader.feed(data, offset=0, first_line=1) + reader.close()[0]
    return {name: pl.concat([p[name] for p in parts if name in p]) for name in {n for p in parts for n in p}}


def events(text: str | bytes, code: str) -> list[dict[str, Any]]:
    rows = tables(text)["events"].filter(code=code).to_dicts()
    return [json.loads(row["attrs"]) | {"speaker": row["rank"], "t_ns": row["t_ns"]} for row in rows]


@pytest.mark.parametrize(
    ("line", "code", "named"),
    [
        (WATCH, "nccl-watchdog", {"group_rank": "3", "seq": "4123", "numel_out": "616", "timeout_ms": "90000"}),
        (
            (
                "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=7) ran "
                "for 8 milliseconds before timing out."
            ),
            "nccl-watchdog",
            {"op": "ALLREDUCE", "ran_ms": "8"},
        ),
        (
            "[PG 0 Rank 2] Timeout at NCCL work: 9, last enqueued NCCL work: 11, last completed NCCL work: 8.",
            "nccl-flight",
            {"pg": "0", "group_rank": "2", "seq": "9", "enqueued": "11", "completed": "8"},
        ),
        (
            (
                "[PG ID 3 PG GUID 17(TP) Rank 1] failure detected by watchdog at work sequence id: 5 PG status: last "
                "enqueued work: 6, last completed work: -1."
            ),
            "nccl-flight",
            {"pg_id": "3", "pg": "17", "desc": "TP", "seq": "5", "completed": "-1"},
        ),
        (
            (
                "[PG ID 0 PG GUID 0(default_pg) Rank 6] Received a dump signal due to a collective timeout from "
                " rank 7 and we will try our best to dump the info. Last enqueued work: 56, last completed work: 56."
            ),
            "nccl-dump-signal",
            {"from_rank": "7", "enqueued": "56", "completed": "56"},
        ),
        ("[Rank 3] Could not acquire GIL within 300 ms on exit", "nccl-gil-held", {"timeout_ms": "300"}),
        ("[Rank 0]: Rank 3 failed to pass monitoredBarrier in 4000 ms", "barrier-missed", {"ranks": "3"}),
        ("RuntimeError: Ranks 1, 3 failed to pass monitoredBarrier in 9 ms", "barrier-missed", {"ranks": "1, 3"}),
        ("[gloo/x.cc:8] Timed out waiting 22000ms for recv operation to complete", "gloo-timeout", {"dir": "recv"}),
        (
            "RuntimeError: [gloo/transport/tcp/pair.cc:5] Connection closed by peer [10.0.0.7]:4411",
            "gloo-closed",
            {"addr": "10.0.0.7", "port": "4411"},
        ),
        ("op.preamble.length <= op.nbytes. 96 vs 64", "gloo-mismatch", {"got": "96", "want": "64"}),
        ("Timed out after 31 seconds waiting for clients. 3/4 clients joined.", "store-timeout", {"joined": "3"}),
        (
            "wait timeout after 9000ms, keys: /default_pg/0//cpu//0/2",
            "store-timeout",
            {"keys": "/default_pg/0//cpu//0/2"},
        ),
        ("NCCL health check failed at step 340: timed out", "health-check", {"step": "340"}),
        (
            "Unable to shutdown process 77 via 15, forcefully exiting via 9",
            "agent-forces",
            {"pid": "77", "signal": "9"},
        ),
        ("Sending process 77 closing signal SIGTERM", "agent-sends-signal", {"pid": "77", "signal": "SIGTERM"}),
        ("Received 15 death signal, shutting down workers", "agent-got-signal", {"signal": "15"}),
        (
            (
                "n7:77:91 [3] transport/net_ib.cc:9 NCCL WARN NET/IB : Got completion from peer 10.0.0.9<4411> with "
                "error 12, opcode 0, len 0, vendor err 129 (Send)"
            ),
            "ib-completion",
            {"host": "n7", "peer": "10.0.0.9<4411>", "status": "12", "vendor": "129", "dir": "Send"},
        ),
        ("n7:77:91 [3] NCCL WARN something odd", "nccl-warn", {"host": "n7", "device": "3", "msg": "something odd"}),
        (
            "n7:77:91 [3] NCCL INFO comm 0x5e rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 3b000 commId 0xfe - Init START",
            "nccl-init-start",
            {"comm_rank": "3", "nranks": "8", "comm": "fe"},
        ),
        (
            "NVRM: Xid (PCI:0000:3b:00): 31, pid=77, name=python3, MMU Fault",
            "xid-program",
            {"pci": "0000:3b:00", "xid": "31", "pid": "77", "msg": "MMU Fault"},
        ),
        ("nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 3", "sxid", {"severity": "Fatal"}),
        (
            "INFO: task python3:77 blocked for more than 120 seconds.",
            "kernel-hung-task",
            {"pid": "77", "seconds": "120"},
        ),
        ("nfs: server store7 not responding, still trying", "kernel-nfs", {"server": "store7"}),
        (
            "python3[77]: segfault at 0 ip 00007f sp 00007e error 4 in libx.so.2[7f+d3]",
            "kernel-segfault",
            {"pid": "77", "lib": "libx.so.2"},
        ),
        ("Process 77 on node n7 managing GPU 5", "ras-dead", {"node": "n7", "device": "5"}),
        (
            "  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 77 on node n7",
            "ras-rank",
            {"comm_rank": "7", "op_count": "60", "node": "n7"},
        ),
        (
            "*** STEP 9.0 ON n7 CANCELLED AT 2031-01-17T10:15:00 DUE TO TIME LIMIT ***",
            "slurm-step",
            {"why": "TIME LIMIT"},
        ),
    ],
)
def test_a_line_gives_what_it_names(line: str, code: str, named: dict[str, str]) -> None:
    found = events(f"before\n{line}\nafter\n", code)
    assert len(found) == 1
    assert {key: found[0].get(key) for key in named} == named


def test_the_global_rank_is_that_of_the_tag_and_not_that_in_the_group() -> None:
    row = tables(WATCH + "\n")["collectives"].row(0, named=True)
    assert (row["speaker"], row["seq"], row["op"], row["state"]) == (7, 4123, "all_gather", "timed_out")
    assert (row["in_sizes"], row["out_sizes"]) == ("[[77]]", "[[616]]")


@settings(deadline=None)
@given(st.integers(20, 160), st.sampled_from(["", "  "]))
def test_a_message_wrapped_at_any_width_is_read_as_if_it_were_not(width: int, indent: str) -> None:
    lines = [WATCH[i : i + width] for i in range(0, len(WATCH), width)]
    if "Watchdog caught" not in " ".join(lines[:1]) or len(lines) > 8:
        return
    if any(line != line.strip() for line in lines):
        return  # a break beside a blank takes the blank away: the test below is for those
    row = tables("\n".join([lines[0], *(indent + line for line in lines[1:])]) + "\n")["collectives"].row(0, named=True)
    assert (row["seq"], row["timeout_ms"], row["out_sizes"]) == (4123, 90_000, "[[616]]")


def test_a_message_wrapped_at_blanks_is_read_too() -> None:
    head, tail = WATCH.split(" NumelIn", 1)
    row = tables(f"{head}\nNumelIn{tail}\n")["collectives"].row(0, named=True)
    assert (row["seq"], row["in_sizes"], row["timeout_ms"]) == (4123, "[[77]]", 90_000)


def test_a_number_broken_at_the_last_column_is_whole_again() -> None:
    text = "[PG 0 Rank 1] Timeout at NCCL work: 40, last enqueued NCCL work: 41, last completed NCCL work: 3\n9.\n"
    assert events(text, "nccl-flight")[0]["completed"] == "39"


def test_the_record_after_a_message_is_not_drawn_into_it() -> None:
    cut = WATCH[: WATCH.index(" ran for")]
    found = events(f"{cut}\n{WATCH.replace('4123', '4124')}\n", "nccl-watchdog")
    assert [row.get("seq") for row in found] == [None, "4124"]


def test_the_fixture_gives_every_watchdog_line_once() -> None:
    found = tables(LOG.read_bytes())
    rows = found["collectives"].filter(pl.col("state") == "timed_out", pl.col("op") == "all_reduce")
    assert sorted(rows["speaker"].to_list()) == [0, 1, 2, 3, 4]
    assert set(rows["seq"]) == {58}
    status = found["collectives"].filter(pl.col("group") == "0(default_pg)")
    assert sorted(status["speaker"].to_list()) == [0, 1, 2, 3]


def test_a_fingerprint_is_the_statement_of_the_rank_that_prints_it() -> None:
    row = tables(LOG.read_bytes())["collectives"].filter(state="mismatch").row(0, named=True)
    assert (row["rank"], row["op"], row["seq"], row["in_sizes"], row["dtype"]) == (
        2,
        "all_reduce",
        9,
        "[[4,2]]",
        "Float",
    )


def test_a_desync_report_gives_one_row_for_each_rank() -> None:
    rows = tables(LOG.read_bytes())["collectives"].filter(pl.col("state").is_in(["started", "completed"]))
    assert sorted(rows.select("rank", "seq", "state").rows()) == [
        (0, 31, "started"),
        (1, 31, "started"),
        (2, 30, "completed"),
    ]


def test_the_stack_of_a_failed_collective_gives_the_users_own_frame() -> None:
    row = events(LOG.read_bytes(), "collective-stack")[0]
    assert (row["speaker"], row["site"]) == (1, "/srv/app/loop.py:88 sync_grads")
    assert len(json.loads(row["stack"])) == 2


def test_a_failure_block_is_one_event() -> None:
    row = events(LOG.read_bytes(), "elastic-failure")[0]
    named = {key: row[key] for key in ("local_rank", "exitcode", "signal", "pid", "host", "root_cause")}
    assert named == {"local_rank": "1", "exitcode": "-9", "signal": "SIGKILL", "pid": "4711", "host": "n7.example",
                     "root_cause": "yes"}  # fmt: skip
    assert row["speaker"] == 5
    assert row["t_ns"] == 1_926_411_302_000_000_000


def test_of_a_flood_every_rank_is_heard_once() -> None:
    lines = [WATCH.replace("[rank7]", f"[rank{r}]") for r in range(700)]
    found = tables("\n".join([*lines, *lines]) + "\n")["events"].filter(code="nccl-watchdog")
    assert found["rank"].n_unique() == 700


@pytest.mark.parametrize(
    ("printed", "op", "pair"),
    [
        ("nccl:_all_gather_base", "all_gather", None),
        ("ALLREDUCE", "all_reduce", None),
        ("nccl:recv 3<-0", "recv", (0, 3)),
        ("nccl:send 1->0", "send", (1, 0)),
        ("_REDUCE_SCATTER_BASE", "reduce_scatter", None),
        ("nccl:ALLGATHER_coalesced", "all_gather_coalesced", None),
        ("gloo:barrier", "barrier", None),
        ("custom_op", "custom_op", None),
    ],
)
def test_an_operation_has_one_spelling(printed: str, op: str, pair: tuple[int, int] | None) -> None:
    assert collectives.parsed(printed) == (op, pair)


def test_the_tag_of_mpirun_may_stand_after_a_time_stamp() -> None:
    line = "Fri Aug  1 12:31:45 2031[1,6]<stdout>:n7:77:91 [0] transport.cc:5 NCCL WARN Cuda failure 'odd'"
    row = events(line + "\n", "nccl-warn")[0]
    assert (row["speaker"], row["host"], row["src"]) == (6, "n7", "transport.cc:5")


def test_the_tag_of_mpirun_may_hold_the_host_of_a_cloud() -> None:
    split = prefixes.split("[1,mpirank:5,algo-1]<stderr>:OSError: gone")
    assert split == ("[1,mpirank:5,algo-1]<stderr>:", 5)
    assert prefixes.split("[1,rank:5,algo-1]<stderr>:OSError: gone")[1] is None
