"""Profiler traces: every event of every layout accounted for, exact times, what a cut or damage costs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forensics.errors import NotMine
from forensics.formats.trace.chrome import read

Run = Callable[..., Any]
FIXTURES = Path(__file__).parents[3] / "fixtures" / "chrome_trace"
BASE_NS = 1_786_000_000_000_000_000
OK = sorted(path for path in FIXTURES.glob("ok-*/*") if path.suffix == ".json")


def trace(*events: dict[str, Any], **root: Any) -> bytes:
    return json.dumps({"schemaVersion": 1, **root, "traceEvents": events}, indent=2).encode()


def event(name: str = "op", ts: Any = 1.5, dur: Any = 2, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 3, "tid": 4, "ts": ts, "dur": dur} | more


def facts(wrote: Any) -> dict[str, str]:
    return dict(wrote.table("facts").select("key", "value").rows())


def counted(wrote: Any) -> int:
    return sum(int(value) for key, value in facts(wrote).items() if key.startswith("trace.events."))


@pytest.mark.parametrize("path", OK, ids=lambda path: path.parent.name)
def test_every_event_is_a_row_or_is_counted(path: Path, run: Run) -> None:
    root = json.loads(path.read_bytes())
    events = root if isinstance(root, list) else root["traceEvents"]
    wrote = run(read, path.name, path.read_bytes())
    assert int(facts(wrote)["trace.events"]) == counted(wrote) == len(events)
    assert wrote.table("spans").filter(pl.col("seq").is_null()).height == 0
    assert wrote.coverage.skipped_bytes == 0


@pytest.mark.parametrize("other", ["ok-2026", "ok-one-line"])
def test_layouts_of_one_content_give_the_same_rows(other: str, run_fixture: Run) -> None:
    keep = pl.exclude("source", "rank")
    first, second = (run_fixture(read, f"chrome_trace/{name}").table("spans") for name in ("ok-2026", other))
    assert first.select(keep).equals(second.select(keep))


def test_a_compressed_trace_gives_the_rows_of_the_plain_one(run_fixture: Run) -> None:
    keep = pl.exclude("source")
    first, second = (run_fixture(read, f"chrome_trace/{name}").table("spans") for name in ("ok-2024", "ok-gzip"))
    assert first.select(keep).equals(second.select(keep))


def test_a_kernel_has_its_device_stream_launch_and_collective(run_fixture: Run) -> None:
    spans = run_fixture(read, "chrome_trace/ok-2024").table("spans")
    row = spans.filter((pl.col("category") == "kernel") & pl.col("name").str.starts_with("nccl")).row(0, named=True)
    assert (row["rank"], row["device"], row["stream"], row["thread"]) == (1, 1, "20", None)
    assert (row["start_ns"], row["dur_ns"]) == (BASE_NS + 2_000_620_125, 140_750)
    assert row["bytes"] == 2048 * 2
    attrs = json.loads(row["attrs"])
    assert (attrs["Collective name"], attrs["Process Group Name"], attrs["grid"]) == ("allreduce", "3", [96, 1, 1])
    launch = spans.filter((pl.col("correlation") == row["correlation"]) & (pl.col("category") == "cuda_runtime"))
    assert launch.select("name", "thread", "stream").rows() == [("cudaLaunchKernel", "4100/4100", None)]


def test_only_the_marks_of_steps_have_a_step(run_fixture: Run) -> None:
    spans = run_fixture(read, "chrome_trace/ok-2024").table("spans").drop_nulls("step")
    marks = spans.select("category", "step").rows()
    assert sorted(marks) == [(c, s) for c in ("gpu_user_annotation", "user_annotation") for s in (12, 13, 14)]


def test_shapes_are_dropped_and_ids_kept(run_fixture: Run) -> None:
    spans = run_fixture(read, "chrome_trace/ok-2024").table("spans")
    attrs = json.loads(spans.filter(pl.col("category") == "cpu_op")["attrs"][0])
    assert set(attrs) == {"External id", "Ev Idx"}
    assert "Python id" in spans.filter(pl.col("category") == "python_function")["attrs"][0]


def test_a_wait_for_a_stream_that_is_none_says_minus_one(run_fixture: Run) -> None:
    spans = run_fixture(read, "chrome_trace/ok-2024").table("spans")
    assert set(spans.filter(pl.col("category") == "cuda_sync")["stream"]) == {"-1"}


def test_spellings_of_2021_are_brought_to_the_newer_ones(run_fixture: Run) -> None:
    spans = run_fixture(read, "chrome_trace/ok-2021").table("spans")
    kernels = spans.filter(pl.col("category") == "kernel")
    assert set(spans["category"]) == {"cpu_op", "cuda_runtime", "kernel", "gpu_memcpy", "user_annotation", "trace"}
    assert set(kernels["stream"]) == {"7", "20"}
    assert "External id" in json.loads(kernels["attrs"][0])


def test_decimals_since_1970_are_exact_to_the_nanosecond(run_fixture: Run) -> None:
    exact = run_fixture(read, "chrome_trace/ok-exact-epoch").table("spans")
    based = run_fixture(read, "chrome_trace/ok-2026").table("spans")
    kernels = pl.col("category") == "kernel"
    assert exact.filter(kernels)["start_ns"].to_list() == based.filter(kernels)["start_ns"].to_list()[:4]
    assert exact["start_ns"][1] == BASE_NS + 2_000_001_125


@pytest.mark.parametrize(
    ("ts", "base", "start_ns"),
    [
        (1_786_000_000_000_123, None, 1_786_000_000_000_123_000),
        ("1786000000000123.457", None, 1_786_000_000_000_123_457),
        (1_786_000_000_000_123_457, None, 1_786_000_000_000_123_457),
        (7_764_763_344_962.737, BASE_NS, BASE_NS + 7_764_763_344_962_737),
        (0.001, None, 1),
        (-4.002, BASE_NS, BASE_NS - 4_002),
    ],
)
def test_a_stamp_of_any_kind_is_whole_nanoseconds(ts: Any, base: int | None, start_ns: int, run: Run) -> None:
    root = {} if base is None else {"baseTimeNanoseconds": base}
    spans = run(read, "trace.json", trace(event(ts=ts), event(ts=ts), **root)).table("spans")
    assert spans["start_ns"].to_list() == [start_ns, start_ns]


def test_without_a_base_the_clock_is_its_own(run: Run) -> None:
    assert facts(run(read, "trace.json", trace(event())))["trace.clock"] == '"own"'
    assert facts(run(read, "trace.json", trace(event(), baseTimeNanoseconds=BASE_NS)))["trace.clock"] == '"unix"'


def test_the_rank_and_the_base_may_stand_behind_the_events(run: Run) -> None:
    root = {"schemaVersion": 1, "traceEvents": [event(), event()], "distributedInfo": {"rank": 5}}
    data = json.dumps(root | {"baseTimeNanoseconds": BASE_NS}, indent=2).encode()
    for content, name in ((data, "trace.json"), (gzip.compress(data), "trace.json.gz")):
        row = run(read, name, content).table("spans").row(0, named=True)
        assert (row["rank"], row["start_ns"]) == (5, BASE_NS + 1500)


def test_the_path_names_the_rank_where_the_trace_does_not(run: Run) -> None:
    assert run(read, "rank_6/trace.json", trace(event())).table("spans")["rank"].to_list() == [6]


def test_the_allocator_becomes_metrics_of_each_device(run_fixture: Run) -> None:
    metrics = run_fixture(read, "chrome_trace/ok-2024").table("metrics")
    rows = metrics.select("name", "raw_name", "value", "rank").rows()[:2]
    assert rows == [
        ("gpu_mem_allocated_gib", "gpu.1.Total Allocated", 3.0, 1),
        ("gpu_mem_reserved_gib", "gpu.1.Total Reserved", 8.0, 1),
    ]


def test_begins_and_ends_are_joined_and_what_never_ended_is_stated(run_fixture: Run) -> None:
    wrote = run_fixture(read, "chrome_trace/ok-pairs")
    rows = wrote.table("spans").select("name", "start_ns", "dur_ns").rows()
    assert rows == [("inner", 12_000, 2_250), ("outer", 10_500, 9_500)]
    assert [issue.code for issue in wrote.issues] == ["never-ended", "event-kind"]
    assert wrote.table("metrics").select("raw_name", "value").rows() == [("GPU 0 Utilization.GPU Utilization", 83.5)]


def test_a_killed_jobs_trace_gives_all_whole_events(run_fixture: Run) -> None:
    whole = run_fixture(read, "chrome_trace/ok-2024").table("spans").drop("source", "start_ns")
    wrote = run_fixture(read, "chrome_trace/crash-killed")
    kept = wrote.table("spans").drop("source", "start_ns")
    assert 30 < kept.height < whole.height
    assert kept.equals(whole.head(kept.height))
    assert {issue.code for issue in wrote.issues} == {"damaged", "cut"}
    assert facts(wrote)["trace.clock"] == '"own"'


@pytest.mark.parametrize("name", ["ok-2024", "ok-2026", "ok-one-line", "ok-list", "ok-exact-epoch"])
def test_no_cut_loses_an_event_before_it(name: str, run: Run) -> None:
    data = next((FIXTURES / name).iterdir()).read_bytes()
    ends = whole_events(data)
    for point in range(ends[0], len(data), 61):
        wrote = run(read, "trace.json", data[:point])
        assert int(facts(wrote)["trace.events"]) == sum(end <= point for end in ends)


def whole_events(data: bytes) -> list[int]:
    """Where each event ends, by the standard library's reader."""
    text = data.decode()
    at = text.index("[", max(text.find('"traceEvents"'), 0)) + 1
    ends: list[int] = []
    while (begin := text.find("{", at)) >= 0 and text[at:begin].strip() in {"", ","}:
        _, at = json.JSONDecoder().raw_decode(text, begin)
        ends.append(at)
    return ends


def test_damaged_names_are_repaired_and_lost_events_counted_in_bytes(run_fixture: Run) -> None:
    wrote = run_fixture(read, "chrome_trace/broken-names")
    assert facts(wrote)["trace.events"] == "88"
    assert 'lambda "quoted" \\q' in wrote.table("spans")["name"].to_list()
    assert 0 < wrote.coverage.skipped_bytes < 400
    assert {issue.code for issue in wrote.issues} == {"damaged", "repaired"}


@pytest.mark.parametrize("word", ["NaN", "N/A", "Infinity", "-Infinity"])
def test_a_bare_word_costs_no_event(word: str, run: Run) -> None:
    data = trace(event("a", args={"queued": 77}), event("b")).replace(b"77", word.encode())
    assert run(read, "trace.json", data).table("spans")["name"].to_list() == ["a", "b"]


def test_numbers_as_text_cost_no_event(run_fixture: Run) -> None:
    spans = run_fixture(read, "chrome_trace/ok-mixed-types").table("spans")
    assert spans.filter(pl.col("name") == "cudaLaunchKernel")["bytes"].to_list() == [616] * 4


def test_of_two_equal_keys_the_last_counts(run: Run) -> None:
    data = trace(event("first")).replace(b'"name": "first"', b'"name": "first", "name": "second"')
    assert run(read, "trace.json", data).table("spans")["name"].to_list() == ["second"]


def test_two_arrays_of_events_are_both_read_and_stated(run: Run) -> None:
    one = json.dumps([event("a"), event("b")])
    two = json.dumps([event("c")])
    wrote = run(read, "trace.json", f'{{"traceEvents": {one}, "x": 1, "traceEvents": {two}}}'.encode())
    assert wrote.table("spans")["name"].to_list() == ["a", "b", "c"]
    assert [issue.code for issue in wrote.issues] == ["two-arrays"]


def test_objects_that_look_like_events_inside_of_one_do_not_part_it(run: Run) -> None:
    inner = [{"ph": "X", "name": str(i)} for i in range(40)]
    data = json.dumps({"traceEvents": [event(f"e{i}", args={"list": inner}) for i in range(30)]}).encode()
    assert run(read, "trace.json", data).table("spans").height == 30


def test_zero_durations_are_kept_and_work_without_a_time_is_stated(run: Run) -> None:
    short = event("short", ts=9, dur=0, cat="kernel")
    lost = event("lost", ts=0, dur=0, cat="kernel")
    back = event("back", ts=9, dur=-3)
    wrote = run(read, "trace.json", trace(short, lost, back, event("late", ts="soon"), event("open", dur=None)))
    assert wrote.table("spans").select("name", "dur_ns").rows() == [("short", 0), ("back", 0), ("open", None)]
    assert {issue.count for issue in wrote.issues} == {1}
    assert len(wrote.issues) == 4
    assert int(facts(wrote)["trace.events"]) == counted(wrote)


def test_deep_nesting_and_long_strings_are_bounded(run: Run) -> None:
    deep = trace(event("a"), event("b")).replace(b'"b"', b'"b", "args": {"x": ' + b"[" * 5000 + b"]" * 5000 + b"}")
    assert run(read, "trace.json", deep).table("spans")["name"].to_list()[0] == "a"
    spans = run(read, "trace.json", trace(event("n" * 300_000), event("b"))).table("spans")
    assert spans["name"].str.len_chars().to_list() == [8192, 1]


def test_hosts_and_folders_are_no_facts(run_fixture: Run) -> None:
    keys = set(facts(run_fixture(read, "chrome_trace/ok-2024")))
    assert {"trace.distributedInfo.world_size", "trace.deviceProperties.0.name"} <= keys
    assert not any("host" in key or "traceName" in key for key in keys)


@pytest.mark.parametrize(
    "data",
    [b'{"nodes": []}', b"[1, 2]", b'[{"step": 1, "loss": 2.5}]', b"", b'{"log_history": []}', b'{"traceEvents": 3}'],
)
def test_other_json_is_left_to_others(data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "x.json", data)


@pytest.mark.parametrize("number", ["1e999999999999999999999", "1234567890123456789012345678901234567890.5", "-1e400"])
@pytest.mark.parametrize("odd", [{"name": 7}, {}], ids=["a number as name", "all as usual"])
def test_a_number_that_nothing_holds_raises_nothing(number: str, odd: dict[str, Any], run: Run) -> None:
    huge = event("a", ts=77, args={"correlation": 88, "bytes": 88}) | odd
    data = trace(huge, event("b")).replace(b"88", number.encode()).replace(b"77", number.encode())
    wrote = run(read, "trace.json", data)
    assert "b" in wrote.table("spans")["name"].to_list()
    assert not {issue.code for issue in wrote.issues} & {"ingester-failed"}
