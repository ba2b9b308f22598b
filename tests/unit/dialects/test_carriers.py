"""Logs that came through a carrier: each line behind its stamp, or as a string of a JSON object."""

from __future__ import annotations

import json
from collections.abc import Callable

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.dialects import prefixes, wraps
from forensics.errors import NotMine
from forensics.formats.metrics import json_lines
from forensics.formats.text import log as text_log
from forensics.io.limits import DEFAULT
from forensics.io.reading import opened_bytes
from forensics.store.sink import SourceSink

STEPS = [f"step {n} loss {3 - n / 40:.4f}" for n in range(1, 31)]
RAISED = [
    "Traceback (most recent call last):",
    '  File "/app/train.py", line 61, in main',
    "    labels[row]",
    "KeyError: 'mill'",
]
AGENT = [
    "Root Cause (first observed failure):",
    "[0]:",
    "  time      : 2025-06-15_15:10:05",
    "  host      : node7",
    "  rank      : 3 (local_rank: 3)",
    "  exitcode  : -9 (pid: 4711)",
]


def stamp(n: int) -> str:
    return f"2025-06-15T15:{n // 60:02d}:{n % 60:02d}.{n * 1234567:09d}Z"


def clock(n: int) -> str:
    return f"15:{n // 60:02d}:{n % 60:02d}"


def as_json(**fields: object) -> str:
    return json.dumps(fields, separators=(",", ":"))


CARRIERS: dict[str, Callable[[int, str], str]] = {
    "kubectl logs --timestamps": lambda n, line: f"{stamp(n)} {line}",
    "files of a container runtime": lambda n, line: f"{stamp(n)} {'stderr' if n > 30 else 'stdout'} F {line}",
    "journalctl": lambda n, line: f"Jun 15 {clock(n)} node7 train.sh[4711]: {line}",
    "syslog": lambda n, line: f"{stamp(n)[:23]}+00:00 node7 train[4711]: {line}",
    "docker compose logs -t": lambda n, line: f"trainer-1  | {stamp(n)} {line}",
    "CloudWatch": lambda n, line: f"{1750000000000 + 1000 * n} {line}",
    "moreutils ts": lambda n, line: f"2025-06-15 {clock(n)} {line}",
    "Docker's JSON": lambda n, line: as_json(log=line + "\n", stream="stdout", time=stamp(n)),
    "Cloud Logging": lambda n, line: as_json(jsonPayload={"message": line}, severity="INFO", timestamp=stamp(n)),
    "journalctl -o json": lambda n, line: as_json(MESSAGE=line, __REALTIME_TIMESTAMP=str(1750000000000000 + n)),
    "a JSON logger": lambda n, line: as_json(ts=stamp(n), level="info", msg=line),
    "a JSON logger in a stamped log": lambda n, line: f"{stamp(n)} " + as_json(ts=stamp(n), level="info", msg=line),
}


def read(lines: list[str], piece_bytes: int = 1 << 23) -> dict[str, pl.DataFrame]:
    opened = opened_bytes("train.log", "".join(f"{line}\n" for line in lines).encode())
    sink = SourceSink(opened.source)
    text_log.read(opened, sink, piece_bytes=piece_bytes)
    return sink.frames()


@pytest.mark.parametrize("carried", CARRIERS.values(), ids=list(CARRIERS))
def test_what_ended_a_run_is_read_behind_whatever_carried_its_log(
    carried: Callable[[int, str], str],
) -> None:
    lines = [carried(n, line) for n, line in enumerate([*STEPS, *RAISED, *AGENT])]
    found = read(lines)["events"]
    (raised,) = found.filter(code="traceback").iter_rows(named=True)
    attrs = json.loads(raised["attrs"])
    assert (attrs["exc"], attrs["message"], attrs["frame"]) == ("KeyError", "'mill'", "/app/train.py:61 in main")
    assert raised["line"] == len(STEPS) + len(RAISED)
    (failure,) = found.filter(code="elastic-failure").iter_rows(named=True)
    said = json.loads(failure["attrs"])
    assert (said["exitcode"], said["host"], said["root_cause"]) == ("-9", "node7", "yes")
    assert failure["rank"] == 3


@pytest.mark.parametrize("carried", CARRIERS.values(), ids=list(CARRIERS))
def test_pieces_of_any_size_give_the_rows_of_the_whole(carried: Callable[[int, str], str]) -> None:
    lines = [carried(n, line) for n, line in enumerate([*STEPS, *RAISED, *STEPS, "Killed"])]
    whole = read(lines)
    for piece_bytes in (2000, 700, 300):
        pieces = read(lines, piece_bytes)
        assert pieces.keys() == whole.keys()
        for table, rows in whole.items():
            order = ["line", "byte", *(name for name in ("code", "raw_name") if name in rows.columns)]
            assert pieces[table].sort(order).equals(rows.sort(order)), table


def test_a_loggers_words_before_a_head_come_again_with_other_numbers() -> None:
    lines = [f"2025-06-15 {clock(n)},{n:03d} ERROR train: {line}" for n, line in enumerate(RAISED)]
    (raised,) = read([*STEPS, *lines])["events"].filter(code="traceback").iter_rows(named=True)
    assert json.loads(raised["attrs"])["message"] == "'mill'"


def test_a_rank_between_a_carriers_stamp_and_an_error_is_read() -> None:
    lines = [
        f"{stamp(n)} {line}" for n, line in enumerate([*STEPS, "[default2]:RuntimeError: CUDA error: out of memory"])
    ]
    assert read(lines)["events"].filter(pl.col("code") != "last_line")["rank"].unique().to_list() == [2]


def test_a_killed_process_is_seen_behind_a_stamp() -> None:
    lines = [f"{stamp(n)} {line}" for n, line in enumerate([*STEPS, "Killed"])]
    assert "killed" in " ".join(read(lines)["events"]["code"])


def test_the_time_of_a_carrier_is_the_time_of_its_line() -> None:
    lines = [as_json(MESSAGE=line, __REALTIME_TIMESTAMP=str(1750000000000000 + n)) for n, line in enumerate(STEPS)]
    times = read(lines)["metrics"].filter(name="loss")["t_ns"]
    assert times.to_list() == [1750000000000000000 + n * 1000 for n in range(len(STEPS))]


@pytest.mark.parametrize(
    ("time", "written"),
    [
        (1750000000, b"2025-06-15T15:06:40Z x\r"),
        (1750000000.0, b"2025-06-15T15:06:40.000000Z x\r"),
        (1750000000000, b"2025-06-15T15:06:40.000Z x\r"),
        ("1750000000000000", b"2025-06-15T15:06:40.000000Z x\r"),
        (1750000000000000000, b"2025-06-15T15:06:40.000000Z x\r"),
    ],
)
def test_a_count_since_1970_is_told_by_its_digits_and_written_alike_each_time(time: object, written: bytes) -> None:
    assert wraps.opened(as_json(msg="x", ts=time, level="info").encode()).startswith(written)


@pytest.mark.parametrize("time", ["soon", 17, "", None, "17500000000000000000000"])
def test_what_is_no_time_is_left_out(time: object) -> None:
    assert wraps.opened(as_json(msg="x", ts=time, level="info").encode()).startswith(b"x\r")


def test_an_exception_in_a_field_beside_the_message_is_read() -> None:
    records = [as_json(event="step", step=n, loss=3 - n / 40, timestamp=stamp(n)) for n in range(1, 31)]
    last = as_json(event="failed", exception="\n".join(RAISED), timestamp=stamp(31), level="error")
    opened = opened_bytes("train.jsonl", "\n".join([*records, last]).encode())
    with pytest.raises(NotMine, match="strings of the objects"):
        json_lines.read(opened, SourceSink(opened.source), DEFAULT)
    tables = read([*records, last])
    assert json.loads(tables["events"].filter(code="traceback")["attrs"][0])["exc"] == "KeyError"
    assert tables["metrics"].filter(name="loss").height == 30


RECORDS = [
    b'{"event":"step","step":3,"loss":2.5,"timestamp":"2025-06-15T15:00:00Z"}',  # a record of metrics
    b'{"jsonPayload":{"message":"step","loss":2.5},"timestamp":"2025-06-15T15:00:00Z"}',
    b'{"text":"A mill ground corn.","id":"a7"}',  # a sample of a data set has neither a time nor a level
    b'{"msg":"torn',
    b'["msg"]',
    b"message: {x}",
]


@pytest.mark.parametrize("record", RECORDS)
def test_what_no_carrier_wrote_stays_as_it_is(record: bytes) -> None:
    assert wraps.opened(record) == record


@given(st.text(max_size=60), st.text('\x1b\n\r"\\é', max_size=9), st.booleans())
def test_an_opened_line_has_as_many_bytes_and_newlines_as_before(text: str, odd: str, is_ascii: bool) -> None:
    line = json.dumps({"time": stamp(7), "log": text + odd}, ensure_ascii=is_ascii).encode("utf-8", "replace")
    opened = wraps.opened(line + b"\n" + line)
    assert len(opened) == 2 * len(line) + 1
    assert opened.count(b"\n") == 1


def test_a_lead_of_some_lines_only_is_not_one_of_a_carrier() -> None:
    led, bare = [f"{stamp(n)} x".encode() for n in range(98)], [b"x"] * 2
    assert prefixes.lead_of([b"\n".join([*led, *bare])]) is not None
    assert prefixes.lead_of([b"\n".join([*led[1:], *bare, b"x"])]) is None
    assert prefixes.lead_of([b"\n".join(led[:5])]) is not None
    assert prefixes.lead_of([b"\n".join(led[:4])]) is None
