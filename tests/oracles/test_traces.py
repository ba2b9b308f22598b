"""Traces against `json` and plain Python: every value of every row, whole and for the device's time only."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from forensics import pipeline
from forensics.formats.trace import _event as trace_event
from forensics.formats.trace import _salvage as trace_salvage
from forensics.formats.trace import _stream as trace_stream
from forensics.formats.trace._device import may_be_left
from forensics.io.limits import DEFAULT
from forensics.store.run import Run
from forensics.values import replace
from tests.oracles import _trace_truth as oracle
from tests.oracles import _traces_made as made
from tests.oracles._damage import damaged

pytestmark = pytest.mark.usefixtures("only_owned_columns")
#: Blocks from less than an event to more than the file.
BLOCKS = st.integers(130, 6000) | st.just(1 << 20)


def read(data: bytes, **limits: Any) -> Run:
    return pipeline.ingest_bytes("trace.json", data, limits=replace(DEFAULT, **limits))


def facts(run: Run) -> dict[str, str]:
    return dict(run.collect("facts").select("key", "value").rows())


def counts(found: dict[str, str]) -> dict[tuple[str, str], int]:
    """Events that are no rows, by phase and category, as the facts say."""
    keys = {key: key.removeprefix("trace.events.left.").split(".", 1) for key in found if "events.left." in key}
    return {(ph, cat): int(found[key]) for key, (ph, cat) in keys.items()}


def assert_whole(run: Run, truth: oracle.Truth) -> None:
    """Every span with its arguments, every metric, every count."""
    spans, found = run.collect("spans"), facts(run)
    assert oracle.written(spans, oracle.SPAN) == truth.spans
    assert oracle.written_attrs(spans) == truth.attrs
    assert oracle.written(run.collect("metrics"), oracle.METRIC) == truth.metrics
    assert int(found["trace.events"]) == truth.events
    assert int(found["trace.events.spans"]) == truth.of_rows
    assert int(found["trace.events.metrics"]) == truth.of_metrics
    assert counts(found) == {(ph, cat): count for (ph, cat), count in truth.left.items()}
    assert run.collect("sources")["status"].to_list() == ["read"]


def assert_device(run: Run, truth: oracle.Truth) -> None:
    """Exactly the wanted spans, with their values, and all other events in the counts."""
    spans, found = run.collect("spans"), facts(run)
    rows = oracle.written(spans, oracle.SPAN)
    of = dict(zip(oracle.SPAN, range(len(oracle.SPAN)), strict=True))
    wanted = [row for row in truth.spans if not may_be_left(row[of["category"]], row[of["name"]])]
    extra = [row for row in rows if row not in wanted]
    assert [row for row in rows if row in wanted] == wanted
    assert all(row in truth.spans for row in extra)
    left = counts(found)
    assert int(found["trace.events"]) == truth.events
    assert int(found["trace.events.spans"]) + sum(left.values()) == truth.events
    for kind, count in truth.left.items():
        assert left[kind] >= count
    assert run.collect("sources")["status"].to_list() == ["read"]


@given(st.sampled_from(tuple(made.LAYOUTS)), st.integers(0, 10**9), st.integers(2, 90), BLOCKS, st.integers(1, 40))
def test_every_value_of_a_trace_is_what_json_reads(
    layout: str, seed: int, count: int, block_bytes: int, batch_rows: int
) -> None:
    data = made.LAYOUTS[layout](made.events(seed, count))
    truth = oracle.truth(data)
    assert_whole(read(data, block_bytes=block_bytes, batch_rows=batch_rows), truth)
    assert_device(read(data, block_bytes=block_bytes, batch_rows=batch_rows, device_only=True), truth)


#: Events that one place of damage may cost beyond those it touches: the ones before and behind it, and one that their
#: remains make unreadable.
MOST_BESIDE = 3
#: The shortest event of `made.events`, in bytes.
SHORTEST = 60


@given(st.sampled_from(tuple(made.LAYOUTS)), st.integers(0, 10**9), st.integers(10, 90), BLOCKS, st.booleans())
def test_damage_costs_what_it_touches_and_is_always_told(
    layout: str, seed: int, count: int, block_bytes: int, device_only: bool
) -> None:
    # damage to a begin moves the ends behind it; what holds events inside cannot be told from them once it is torn
    events = [one for one in made.events(seed, count) if one["ph"] not in "BE" and "list" not in one.get("args", {})]
    whole = made.LAYOUTS[layout](events)
    hit = damaged(whole, seed)
    run = read(hit.data, block_bytes=block_bytes, device_only=device_only)
    source = run.collect("sources").row(0, named=True)
    assert 0 <= source["read"] <= source["size"] == len(hit.data)
    if source["ingester"] != "chrome_trace":
        assert source["status"] == "skipped"
        return
    same = oracle.valid(hit.data)
    if same is not None:  # a value that is another one and no damage
        (assert_device if device_only else assert_whole)(run, same)
        return
    truth = oracle.truth(whole)
    missing = oracle.values(rows_wanted(truth, device_only)) - oracle.values(
        oracle.written(run.collect("spans"), oracle.SPAN)
    )
    lost = missing.total()
    told = source["status"] != "read" or run.collect("issues").height > 0
    assert told or (not lost and int(facts(run)["trace.events"]) >= truth.events)
    if hit.kind != "cut":
        assert lost <= MOST_BESIDE + hit.width // SHORTEST


def rows_wanted(truth: oracle.Truth, device_only: bool) -> list[oracle.Row]:
    category, name = oracle.SPAN.index("category"), oracle.SPAN.index("name")
    return [row for row in truth.spans if not (device_only and may_be_left(row[category], row[name]))]


class Counting:
    """A decoder, or a function of bytes, that adds up what it was given."""

    def __init__(self, inner: Any, work: list[int]) -> None:
        self.inner, self.work = inner, work

    def decode(self, data: bytes) -> Any:
        self.work[0] += len(data)
        return self.inner.decode(data)

    def __call__(self, data: bytes, *more: Any, **named: Any) -> Any:
        self.work[0] += len(data)
        return self.inner(data, *more, **named)


TORN: dict[str, Callable[[bytes], bytes]] = {
    "no object closes": lambda data: data.replace(b"}", b" "),
    "one object never closes": lambda data: b"{" + data,
    "every close opens": lambda data: data.replace(b"}", b"{"),
    "a quote too many": lambda data: b'"' + data,
    "no comma between events": lambda data: data.replace(b"},", b"} "),
    "no colon": lambda data: data.replace(b":", b";"),
    "brackets": lambda data: b"[" * 40_000 + data,
    "names that do not end": lambda data: b'{"name": "' * 20_000 + data,
    "bare words": lambda data: data.replace(b'"ph"', b'"q":nan,"ph"'),
    "zeros": lambda data: b"".join(data[at : at + 300] + bytes(40) for at in range(0, len(data), 340)),
}
#: Bytes looked at by decoders and searches for each byte of a file, whatever is wrong in it; 20.8 were measured.
MOST_LOOKS = 25


@pytest.mark.parametrize("torn", TORN)
@pytest.mark.parametrize("layout", ["several", "compact"])
def test_salvage_looks_at_each_byte_a_bounded_number_of_times(
    torn: str, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = [0]
    for module, name in (
        *((trace_event, one) for one in ("_fast", "_exact", "_loose", "_device")),
        *((trace_salvage, one) for one in ("loads", "Objects", "_quotes", "_escapes", "_bare_words")),
        *((trace_stream, one) for one in ("salvage", "Objects", "layout_of")),
    ):
        monkeypatch.setattr(module, name, Counting(getattr(module, name), work))
    whole = made.LAYOUTS[layout](made.events(3, 1500))
    begin = whole.index(b"}", 20_000)
    data = whole[:begin] + TORN[torn](whole[begin:])
    run = read(data, block_bytes=4096)
    assert run.collect("spans").height > 10
    if torn == "zeros":  # two of three events are torn, and none of the others is taken for what follows the array
        assert run.collect("spans").height > 100
    assert work[0] <= MOST_LOOKS * len(data)


@pytest.mark.parametrize("layout", ["kineto", "several", "line each", "compact"])
def test_true_size_every_value_and_what_the_command_prints(layout: str, tmp_path: Path, true_size: None) -> None:
    del true_size
    path = tmp_path / "trace.json"
    data, one, copies = made.tiled(layout, 300_000_000)
    path.write_bytes(data)
    expected, events = oracle.tiled(one, copies)
    device = expected.filter(pl.col("category") == "kernel")
    runs = (
        (pipeline.ingest_bytes(path.name, data), expected),
        (pipeline.ingest_run(path, store=tmp_path / "store"), expected),
        (pipeline.ingest_bytes(path.name, data, limits=replace(DEFAULT, device_only=True)), device),
    )
    for run, rows in runs:
        spans = run.scan("spans").filter(pl.col("category").is_in(rows["category"].unique().implode()))
        assert_frame_equal(spans.select(rows.columns).collect().sort("seq"), rows)
        assert int(facts(run)["trace.events"]) == events
        assert run.collect("sources")["status"].to_list() == ["read"]
    command = [sys.executable, "-m", "forensics", "kernels", str(path), "--format", "json", "--per-step", "--top", "0"]
    done = subprocess.run(command, capture_output=True, check=True, env={"XDG_CACHE_HOME": str(tmp_path)})
    said = json.loads(done.stdout)["ranks"][0]
    assert len(said["steps"]) == expected["step"].drop_nulls().len() > 0
    assert said["count"] == device.height
    printed = {one["name"]: (one["count"], round(one["time_s"] * 1e9)) for one in said["top"]}
    truth = device.group_by("name").agg(pl.len(), pl.col("dur_ns").sum())
    assert printed == {name: (count, time_ns) for name, count, time_ns in truth.rows()}
