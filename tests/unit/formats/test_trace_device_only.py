"""Traces of which only what tells of the device's time is read: the same profile, every event still counted."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics import pipeline, registry
from forensics.analyses.traces import loader as trace_loader
from forensics.analyses.traces.gaps import OWN
from forensics.compare.kernel_profile import KernelProfile, profile
from forensics.compare.kernels import diff
from forensics.formats.trace import chrome as chrome_trace
from forensics.formats.trace._device import WANTED, may_be_left
from forensics.formats.trace.calls import QUIET_CALLS
from forensics.io.limits import DEFAULT
from forensics.knowledge.vocabulary import words_for
from forensics.model import Source
from forensics.store.fill import held_bytes
from forensics.store.run import Run
from forensics.values import replace

from . import _made_traces as made

FIXTURES = Path(__file__).parents[3] / "fixtures"
TRACES = sorted(path for path in (FIXTURES / "chrome_trace").rglob("*") if path.is_file())
CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "traces"
REAL = sorted([*CORPUS.rglob("*.json"), *CORPUS.rglob("*.json.gz")])
DEVICE_ONLY = replace(DEFAULT, device_only=True)
ROW = (
    "seq",
    "rank",
    "step",
    "device",
    "stream",
    "thread",
    "category",
    "name",
    "start_ns",
    "dur_ns",
    "correlation",
    "bytes",
)
COLUMNS = list(ROW)


def both(name: str, data: bytes) -> tuple[Run, Run]:
    """The trace read whole, and for the device's time only."""
    return pipeline.ingest_bytes(name, data), pipeline.ingest_bytes(name, data, limits=DEVICE_ONLY)


def facts(run: Run) -> dict[str, str]:
    return dict(run.collect("facts").select("key", "value").rows())


def total(run: Run) -> tuple[int, int]:
    """Events as counted at once, and by kind."""
    found = facts(run)
    return int(found["trace.events"]), sum(int(v) for k, v in found.items() if k.startswith("trace.events."))


def same(name: str, data: bytes) -> KernelProfile:
    """Check that both readings tell the same of the device, and give what they tell."""
    whole, device = both(name, data)
    expected = profile(whole)
    assert profile(device) == expected
    assert diff(device, device) == diff(whole, whole)
    if "trace.events" in facts(whole):
        assert total(whole) == total(device)
        assert total(device)[0] == total(device)[1]
    rows, kept = whole.collect("spans").select(COLUMNS), device.collect("spans").select(COLUMNS)
    assert kept.join(rows, on=COLUMNS, how="anti", nulls_equal=True).is_empty()
    left = rows.join(kept, on="seq", how="anti")
    assert all(may_be_left(*one) for one in left.select("category", "name").iter_rows())
    return expected


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.parent.name)
def test_every_fixture_has_the_same_profile(path: Path) -> None:
    found = same(path.name, path.read_bytes())
    assert found.ranks or path.parent.name in {"ok-empty", "ok-pairs", "broken-gzip"}


@pytest.mark.parametrize("layout", made.LAYOUTS)
@pytest.mark.parametrize("start_us", [2_000_000.0, 1_786_000_002_000_000.25])
def test_every_layout_has_the_same_profile(layout: str, start_us: float, monkeypatch: pytest.MonkeyPatch) -> None:
    data = made.LAYOUTS[layout](made.events(8, start_us=start_us))
    expected = same("trace.json", data)
    assert expected.ranks[0].count > 20
    assert same("trace.json.gz", gzip.compress(data, mtime=0)).ranks[0].count == expected.ranks[0].count
    monkeypatch.setattr(chrome_trace, "_CHUNK_BYTES", 9_000)
    assert same("trace.json", data) == expected


def test_events_are_numbered_by_their_place_in_the_file() -> None:
    events = made.events(20)
    device = pipeline.ingest_bytes("trace.json", made.several_a_line(events), limits=DEVICE_ONLY)
    rows: list[tuple[int, str]] = device.collect("spans").select("seq", "name").rows()
    assert len(rows) > 100
    assert all(events[seq]["name"] == name for seq, name in rows)


@pytest.mark.parametrize("layout", ["several a line", "one a line", "apart"])
def test_a_trace_that_was_cut_anywhere_has_the_same_profile(layout: str) -> None:
    data = made.LAYOUTS[layout](made.events(4))
    for at in range(len(data) - 400, len(data), 67):
        same("trace.json", data[:at])
    for at in range(20_000, len(data) - 400, max(len(data) // 7, 1)):
        same("trace.json", data[:at])


def test_digits_that_no_float_holds_are_kept() -> None:
    events = [
        made.duration("kernel", f"k{at}", 0, 0, (0, 7), device=0, stream=7, correlation=at)
        | {"ts": f"@178600000{at:07d}.{at % 997 + 1:03d}@", "dur": f"@{at}.{at % 991:03d}@"}
        for at in range(300)
    ]
    mixed = [
        one for at, kernel in enumerate(events) for one in (made.duration("cpu_op", "aten::x", 5 + at, 1.5), kernel)
    ]
    data = made.several_a_line(mixed).replace(b'"@', b"").replace(b'@"', b"")
    same("trace.json", data)
    device = pipeline.ingest_bytes("trace.json", data, limits=DEVICE_ONLY).collect("spans")
    expected = [(178600000 * 10**7 + at) * 1000 + at % 997 + 1 for at in range(300)]
    assert device.filter(pl.col("category") == "kernel")["start_ns"].to_list() == expected


def test_a_name_whose_first_letter_is_escaped_is_decoded() -> None:
    mark = made.duration("python_function", "ProfilerStep#3", 2_000_000.0, 900_000.0)
    data = made.several_a_line([*made.events(10), mark] * 2).replace(b'"ProfilerStep#3"', rb'"\u0050rofilerStep#3"')
    assert 3 in {one.step for one in same("trace.json", data).ranks[0].steps}


def test_a_second_array_and_a_missing_comma_are_met() -> None:
    first, second = made.several_a_line(made.events(10)), made.several_a_line(made.events(10, seed=5))
    begin = second.index(b'"traceEvents"')
    two = first[: first.rindex(b"}")].rstrip() + b",\n  " + second[begin:]
    assert facts(both("t.json", two)[1])["trace.events"] == facts(both("t.json", two)[0])["trace.events"]
    same("trace.json", two)
    at = first.index(b"},\n  {", 20_000)
    same("trace.json", first[: at + 1] + first[at + 2 :])


def test_a_trace_of_the_host_only_is_still_a_trace() -> None:
    events = [made.duration("cpu_op", "aten::x", 100.0 + at, 0.5) for at in range(500)]
    found = same("trace.json", made.several_a_line(events))
    assert [(one.rank, one.count) for one in found.ranks] == [(0, 0)]


def test_work_of_the_host_behind_a_wait_has_one_cause_in_both() -> None:
    events = [
        made.duration("cuda_runtime", "cudaLaunchKernel", 0, 2, correlation=1),
        made.duration("kernel", "a", 10, 90, (0, 7), device=0, stream=7, correlation=1),
        made.duration("cuda_runtime", "cudaStreamSynchronize", 20, 85),
        *(made.duration("cpu_op", "aten::index", at, 900) for at in range(110, 20_000, 1_000)),
        *(made.duration("cuda_runtime", "cudaGetDevice", at, 900) for at in range(110, 20_000, 1_000)),
        made.duration("cuda_runtime", "cudaLaunchKernel", 20_200, 2, correlation=2),
        made.duration("kernel", "a", 20_210, 90, (0, 7), device=0, stream=7, correlation=2),
    ]
    (idle,) = same("trace.json", made.several_a_line(events)).ranks[0].idle
    assert (idle.cause, idle.gaps, idle.time_ns) == (OWN, 1, 20_110_000)


def test_kinds_that_are_left_out_are_counted_by_phase_and_category() -> None:
    events = made.events(30)
    found = facts(pipeline.ingest_bytes("trace.json", made.one_a_line(events), limits=DEVICE_ONLY))
    for ph, cat in (("i", "cpu_instant_event"), ("s", "ac2g"), ("f", "ac2g")):
        expected = sum((one["ph"], one["cat"]) == (ph, cat) for one in events)
        assert found[f"trace.events.left.{ph}.{cat}"] == str(expected)
    assert found == facts(pipeline.ingest_bytes("trace.json", made.on_one_line(events), limits=DEVICE_ONLY))


@pytest.mark.parametrize(
    "name", ["c10d::send", "nccl:all_reduce", "gloo:x", "mpi:x", "record_param_comms", "## Wait() ##"]
)
def test_marks_that_an_analysis_finds_by_name_are_wanted(name: str) -> None:
    assert pl.Series([name]).str.contains(words_for("collective_event")).all()
    assert not may_be_left("cpu_op", name)


def test_the_wanted_names_are_those_of_the_analyses() -> None:
    alternatives = words_for("collective_event").removeprefix("(?:").strip("^()").split("|")
    assert {one[:3] for one in alternatives} == {one[:3] for one in WANTED["cpu_op"]} - {"enu", "Pro"}
    for cat in ("cpu_op", "Operator", "python_function"):
        assert not may_be_left(cat, trace_loader.MARK + "#x.__next__")
        assert not may_be_left(cat, "ProfilerStep#12")
        assert may_be_left(cat, "aten::mul")


def test_no_quiet_call_launches_or_waits() -> None:
    assert not pl.Series(sorted(QUIET_CALLS)).str.contains(words_for("blocking_call")).any()
    assert not any(
        word in one for one in QUIET_CALLS for word in ("Launch", "Memcpy", "Memset", "Synchronize", "Malloc")
    )


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), min_size=1, max_size=4),
    st.sampled_from(sorted(made.LAYOUTS)),
)
def test_flipped_bytes_never_raise_and_every_event_is_counted_once(flips: list[tuple[float, int]], layout: str) -> None:
    data = bytearray(made.LAYOUTS[layout](made.events(7)))
    for where, bits in flips:
        data[min(int(where * len(data)), len(data) - 1)] ^= bits
    run = pipeline.ingest_bytes("trace.json", bytes(data), limits=DEVICE_ONLY)
    assert "ingester-failed" not in run.collect("issues")["code"].to_list()
    if "trace.events" in facts(run):
        assert total(run)[0] == total(run)[1]
        assert run.collect("spans")["seq"].is_unique().all()
    profile(run)


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(200, 30_000), st.sampled_from(sorted(made.LAYOUTS)))
def test_blocks_of_any_size_give_the_same_rows(seed: int, size: int, layout: str) -> None:
    data = made.LAYOUTS[layout](made.events(5, seed=seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chrome_trace, "_CHUNK_BYTES", size)
        same("trace.json", data)


def test_a_store_for_the_device_and_a_whole_one_never_stand_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rank0.json"
    path.write_bytes(made.several_a_line(made.events(10)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(pipeline, "IN_MEMORY_BYTES", 1)
    heights: dict[str, list[int]] = {"whole": [], "device": []}
    for kind in ("device", "whole", "device", "whole"):
        run = pipeline.ingest_run(path, limits=DEVICE_ONLY if kind == "device" else DEFAULT)
        heights[kind].append(run.collect("spans").height)
    assert heights["whole"][0] == heights["whole"][1] > heights["device"][0] == heights["device"][1] > 0
    assert len(list((tmp_path / "cache").glob("forensics/runs/*"))) == 2


@pytest.mark.parametrize(("size_bytes", "kept"), [(1 << 30, False), ((1 << 30) + 4, True)])
def test_the_work_of_a_trace_above_1_gib_lies_on_disk_while_it_is_judged(size_bytes: int, kept: bool) -> None:
    source = Source("rank0.json", size_bytes)
    held = held_bytes(source, registry.load("ingesters").ingesters, DEVICE_ONLY)
    assert (held > pipeline.IN_MEMORY_BYTES) == kept


@pytest.mark.skipif(not REAL, reason="no real traces at hand")
def test_real_traces_have_the_same_profile() -> None:
    differ: list[str] = []
    for path in REAL:
        whole, device = pipeline.ingest_run(path), pipeline.ingest_run(path, limits=DEVICE_ONLY)
        if "trace.events" not in facts(whole):
            continue
        if profile(whole) != profile(device) or total(whole) != total(device):
            differ.append(path.name)
    assert not differ
