"""Transaction logs of W&B: every number as its own message classes decode it, console and exit, damage stated."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.errors import InputError, NotMine
from forensics.formats.wandb.run import read
from forensics.io.limits import Limits
from forensics.io.reading import opened_bytes
from forensics.io.records import leveldb_log
from forensics.io.records.leveldb_frame import frame
from forensics.io.records.leveldb_log import Damage, Record
from forensics.model import FileStatus
from forensics.store.sink import SourceSink

HERE = Path(__file__).parents[3] / "fixtures" / "wandb_run"
FIXTURES = sorted(HERE.iterdir())
HEADER = b":W&B\xe1\xbe\x00"
Run = Callable[..., Any]


def content(case: str) -> bytes:
    return next((HERE / case).rglob("*.wandb")).read_bytes()


def records(data: bytes) -> list[Record]:
    return [item for item in leveldb_log.records(data) if isinstance(item, Record)]


def damage(data: bytes) -> list[Damage]:
    return [item for item in leveldb_log.records(data) if isinstance(item, Damage)]


def events(wrote: Any, code: str) -> pl.DataFrame:
    return wrote.table("events").filter(pl.col("code") == code)


def facts(wrote: Any) -> dict[str, str]:
    return dict(wrote.table("facts").select("key", "value").iter_rows())


@pytest.mark.parametrize("folder", FIXTURES, ids=lambda p: p.name)
def test_every_number_is_what_the_message_classes_decode_bit_for_bit(folder: Path, run: Run) -> None:
    pb = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    data = content(folder.name)
    want: list[tuple[int, str, bytes]] = []
    for record in records(data):
        for item in pb.Record.FromString(record.payload).history.item:
            name = item.key or ".".join(item.nested_key)
            if not name.startswith("_"):
                want.append((record.byte, name, struct.pack("<d", float(json.loads(item.value_json)))))
    rows = run(read, "run-a.wandb", data).table("metrics").select("byte", "raw_name", "value").iter_rows()
    assert [(byte, name, struct.pack("<d", value)) for byte, name, value in rows] == want


@pytest.mark.parametrize("folder", FIXTURES, ids=lambda p: p.name)
def test_every_byte_is_accounted_for(folder: Path, run: Run) -> None:
    data = content(folder.name)
    coverage = run(read, "run-a.wandb", data).coverage
    assert coverage.read_bytes + coverage.skipped_bytes == len(data)
    assert (coverage.status is FileStatus.READ) == (not folder.name.startswith("broken-"))


def test_exit_zero_is_a_success_behind_all_rows(run: Run) -> None:
    wrote = run(read, "run-a.wandb", content("ok-finished"))
    mark = events(wrote, "wandb.ended").row(0, named=True)
    assert mark["byte"] > wrote.table("metrics")["byte"].max()
    assert mark["t_ns"] == wrote.table("metrics")["t_ns"].max()
    assert facts(wrote)["exit_code"] == "0"


def test_another_exit_code_is_context_and_no_success(run: Run) -> None:
    wrote = run(read, "run-a.wandb", content("crash-interrupted"))
    attrs = json.loads(events(wrote, "wandb.exit")["attrs"][0])
    assert (attrs["role"], attrs["exit_code"]) == ("context", "255")
    assert not events(wrote, "wandb.ended").height


def test_a_log_without_an_exit_record_says_so(run: Run) -> None:
    assert facts(run(read, "run-a.wandb", content("broken-killed")))["exit_record"] == "false"


def test_a_traceback_that_comes_in_pieces_is_one_event_at_its_byte_in_the_file(run: Run) -> None:
    data = content("crash-key-error")
    found = events(run(read, "run-a.wandb", data), "traceback")
    assert found.height == 1
    row = found.row(0, named=True)
    assert json.loads(row["attrs"])["exc"] == "KeyError"
    assert data[row["byte"] :].startswith(b"KeyError: 'label_17'")
    assert row["t_ns"] == 1_750_000_040_000_000_000


def test_steps_times_and_non_finite_values_stay(run: Run) -> None:
    wrote = run(read, "run-a.wandb", content("crash-nan"))
    loss = wrote.table("metrics").filter(pl.col("name") == "loss").row(12, named=True)
    assert (loss["step"], loss["value_class"]) == (12, "nan")
    assert loss["t_ns"] == pytest.approx(1_750_000_024_250_000_000, abs=1000)
    assert wrote.table("metrics").filter(pl.col("value_class") == "+inf").height == 28


def test_settings_become_facts_and_persons_and_folders_do_not(run: Run) -> None:
    known = facts(run(read, "run-a.wandb", content("ok-finished")))
    assert (known["max_steps"], known["optim.lr"], known["wandb"]) == ("40", "0.004", '"0.24.0"')
    assert known["program"] == '"train.py"'
    assert not any("someone" in value for value in known.values())


def item(name: bytes, value: bytes) -> bytes:
    inner = b"\x0a" + bytes([len(name)]) + name + b"\x82\x01" + bytes([len(value)]) + value
    return b"\x0a" + bytes([len(inner)]) + inner


def row(*cells: tuple[bytes, bytes]) -> bytes:
    body = b"".join(item(*cell) for cell in cells)
    return b"\x12" + bytes([len(body)]) + body


def test_a_null_in_a_column_of_numbers_is_suspected_to_be_a_lost_nan(run: Run) -> None:
    data = frame([row((b"loss", value)) for value in (b"null", b"1.5", b"null")], HEADER)
    classes = run(read, "a.wandb", data).table("metrics").sort("seq")["value_class"].to_list()
    assert classes == ["null-suspected-nan", "finite", "null-suspected-nan"]


def test_a_null_of_a_writer_that_keeps_nan_is_only_a_null(run: Run) -> None:
    newer = b"\xaa\x01\x0a\x0a\x08\x0a\x060.28.1"
    data = frame([newer, row((b"loss", b"null"), (b"loss", b"2"))], HEADER)
    assert run(read, "a.wandb", data).table("metrics").sort("value")["value_class"].to_list() == ["null", "finite"]


def test_quoted_numbers_and_plain_objects_are_read_and_media_are_not(run: Run) -> None:
    cells = (
        (b"a", b'"NaN"'),
        (b"b", b'{"c": 2, "d": {"e": 3}}'),
        (b"h", b'{"_type": "histogram", "bins": [1]}'),
        (b"s", b'"text"'),
        (b"t", b"true"),
    )
    names = run(read, "a.wandb", frame([row(*cells)], HEADER)).table("metrics")["raw_name"].to_list()
    assert names == ["a", "b.c", "b.d.e"]


def test_a_flipped_byte_costs_one_record() -> None:
    data = content("broken-flipped-byte")
    assert len(records(data)) == len(records(content("ok-finished"))) - 1
    assert [item.code for item in damage(data)] == ["bad-chunk"]


def test_the_seven_bytes_that_a_kill_leaves_are_a_cut_and_nothing_else() -> None:
    data = content("broken-killed")
    assert damage(data) == [Damage("truncated", len(data) - 7, 7)]


def test_a_zeroed_block_costs_what_stood_in_it() -> None:
    found = damage(content("broken-zeroed-block"))
    assert {item.code for item in found} == {"unfinished", "zeroed"}
    assert next(item for item in found if item.code == "zeroed").size_bytes == leveldb_log.BLOCK_BYTES


def test_blocks_counted_from_behind_the_header_lose_nothing() -> None:
    assert damage(content("ok-blocks-behind-header")) == []


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 90_000), st.binary(max_size=12)), max_size=8),
    st.sampled_from([0, leveldb_log.HEADER_BYTES]),
)
def test_what_is_framed_is_read_back_and_its_bytes_are_found(parts: list[tuple[int, bytes]], base: int) -> None:
    payloads = [seed + bytes([n % 251]) * n for n, seed in parts]
    data = frame(payloads, HEADER, base=base)
    found = records(data)
    assert [record.payload for record in found] == payloads
    for record in found:
        at = len(record.payload) - 1
        assert data[record.file_byte(at)] == record.payload[at]


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=400))
def test_damage_and_records_never_overlap(tail: bytes) -> None:
    data = content("ok-finished")[:900] + tail
    assert sum(item.size_bytes for item in damage(data)) <= len(data) - 7


def test_a_record_above_the_limit_is_dropped_and_the_next_is_read() -> None:
    data = frame([b"x" * 100_000, b"next"], HEADER)
    found = list(leveldb_log.records(data, Limits(record_bytes=50_000)))
    assert [item.payload for item in found if isinstance(item, Record)] == [b"next"]
    assert "record-too-long" in {item.code for item in found if isinstance(item, Damage)}


def test_sound_records_that_are_no_message_are_an_issue(run: Run) -> None:
    wrote = run(read, "a.wandb", frame([b"\xff\xff\xff", row((b"loss", b"1"))], HEADER))
    assert [issue.code for issue in wrote.issues] == ["not-a-record"]
    assert wrote.table("metrics").height == 1


def test_other_content_of_this_name_is_not_ours(run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "run-a.wandb", b"version https://example.org/pointer\n")


def mutated(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    kind = rng.randrange(4)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + rng.randbytes(rng.randrange(300)) + data[at:]
    if kind == 2:
        return data[:at] + data[at + rng.randrange(2000) :]
    payloads = [bytearray(record.payload) for record in records(data)]
    for payload in rng.sample(payloads, len(payloads) // 2):
        payload[rng.randrange(len(payload))] = rng.randrange(256)
    return frame([bytes(payload) for payload in payloads], HEADER)


@pytest.mark.parametrize("seed", range(6))
def test_no_mutation_raises_anything_but_input_errors(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        data = mutated(content(rng.choice(FIXTURES).name), rng)
        opened = opened_bytes("run-a.wandb", data)
        sink = SourceSink(opened.source)
        try:
            read(opened, sink, Limits())
        except (InputError, NotMine):
            continue
        coverage = sink.coverage("tested")
        assert coverage.read_bytes + coverage.skipped_bytes == len(data)
