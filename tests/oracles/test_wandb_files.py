"""W&B transaction logs against wandb's own messages: every point, setting, summary and console line, by value."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics import pipeline
from forensics.dialects.names import canonical
from forensics.formats.wandb.run import read
from forensics.io.limits import DEFAULT, Limits
from forensics.io.reading import opened_bytes
from forensics.io.records import leveldb_log
from forensics.io.records.leveldb_frame import frame
from forensics.store.sink import SourceSink
from forensics.values import replace

sys.path.insert(0, str(Path(__file__).parent))
from damage import hit
from wandb_logs import HEADER, STRETCHES, Point, Stretch, bits, chunks, log_of, records, said

pytestmark = pytest.mark.usefixtures("only_owned_columns")
#: Rows that wait together, and bytes of a batch, of a console piece, and of a log that is read together.
SIZES = st.builds(
    lambda rows, size: replace(DEFAULT, batch_rows=rows, block_bytes=size),
    st.sampled_from([65, 100, 1 << 17]),
    st.sampled_from([4_000, 40_000, 8 << 20]),
)


@pytest.fixture(scope="module")
def pb() -> Any:
    return pytest.importorskip("wandb.proto.wandb_internal_pb2")


def ours(data: bytes, limits: Limits) -> SourceSink:
    opened = opened_bytes("run-a.wandb", data)
    sink = SourceSink(opened.source, limits)
    read(opened, sink, limits)
    return sink


def points(sink: SourceSink) -> list[Point]:
    """Our points in the order of the file."""
    rows = sink.frames().get("metrics")
    columns = ("byte", "raw_name", "step", "t_ns", "attempt", "gstep", "value")
    return (
        []
        if rows is None
        else sorted((Point(*row[:-1], bits(row[-1])) for row in rows.select(columns).iter_rows()), key=repr)
    )


def facts(sink: SourceSink, family: str) -> dict[str, str]:
    rows = sink.frames()["facts"]
    return {key: value for key, value, own in rows.select("key", "value", "family").iter_rows() if own == family}


def flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Leaves as facts hold them: what is no finite number is told as its name."""
    if isinstance(value, dict):
        for key, cell in value.items():
            yield from flat(f"{name}.{key}", cell)
    else:
        yield name, repr(json.loads(json.dumps(value), parse_constant=str))


def plain(texts: dict[str, str]) -> dict[str, str]:
    return {key: repr(json.loads(text, parse_constant=str)) for key, text in texts.items()}


@given(stretches=STRETCHES, seed=st.integers(0, 1 << 16), limits=SIZES)
def test_every_point_setting_and_summary_is_kept(pb: Any, stretches: list[Stretch], seed: int, limits: Limits) -> None:
    data = log_of(pb, stretches, seed)
    wrote, expected = ours(data, limits), said(pb, data)
    assert points(wrote) == sorted(expected.points, key=repr)
    settings = dict(leaf for key, value in expected.config.items() for leaf in flat(key, value))
    known = plain(facts(wrote, "config"))
    assert {key: known.get(key) for key in settings} == settings
    last = [(f"summary.{key}", value) for key, value in expected.summary.items() if not key.startswith("_")]
    summed_up = dict(leaf for key, value in last if not isinstance(value, list) for leaf in flat(key, value))
    assert plain(facts(wrote, "progress")) == summed_up
    coverage = wrote.coverage("wandb_run")
    assert (coverage.read_bytes, coverage.skipped_bytes, coverage.records) == (len(data), 0, expected.records)


def test_rows_longer_than_a_block_are_read_together(pb: Any) -> None:
    data = log_of(pb, [Stretch(66, 900, 0, 0.001, consoles=False, seldom=True)], 3)
    assert sum(len(parts) > 2 for parts in chunks(data)) > 64
    assert points(ours(data, DEFAULT)) == sorted(said(pb, data).points, key=repr)


@pytest.mark.parametrize("block_bytes", [1 << 10, 8 << 20], ids=["together", "one-by-one"])
def test_an_alert_a_resume_and_system_metrics_are_of_the_rows_before_them(pb: Any, block_bytes: int) -> None:
    def row(step: int, now: float) -> bytes:
        cells = {"loss": "1.5", "_step": str(step), "_timestamp": repr(now)}
        items = [pb.HistoryItem(key=key, value_json=text) for key, text in cells.items()]
        return pb.Record(history=pb.HistoryRecord(item=items)).SerializeToString()

    alert = pb.Record(alert=pb.AlertRecord(title="Loss", level="WARN")).SerializeToString()
    resumed = pb.Record(run=pb.RunRecord(run_id="a", resumed=True, starting_step=5)).SerializeToString()
    stats = pb.Record(stats=pb.StatsRecord(item=[pb.StatsItem(key="gpu.0.temp", value_json="61")])).SerializeToString()
    before = [row(step, 1.75e9 + step) for step in range(80)]
    after = [row(step, 1.76e9 + step) for step in range(70)]
    data = frame([stats, *before, alert, stats, *after, stats, resumed], HEADER)
    wrote = ours(data, replace(DEFAULT, block_bytes=block_bytes))
    events = wrote.frames()["events"].select("code", "t_ns").rows()
    assert events == [("wandb.alert", 1_750_000_079 * 10**9), ("wandb.resumed", 1_760_000_069 * 10**9)]
    temperatures = [p.attempt for p in points(wrote) if p.raw_name == "system.gpu.0.temp"]
    assert sorted(temperatures) == [0, 0, 1]


def test_more_short_rows_than_sixteen_bits_count_stay_in_order(pb: Any) -> None:
    cells = [("_step", "{}"), ("a", "1")]
    rows = [
        pb.Record(
            history=pb.HistoryRecord(item=[pb.HistoryItem(key=key, value_json=text.format(k)) for key, text in cells])
        ).SerializeToString()
        for k in range(70_000)
    ]
    frames = ours(frame(rows, HEADER), DEFAULT).frames()["metrics"]
    assert frames["step"].to_list() == list(range(70_000))


HITS = st.tuples(st.sampled_from(["flip", "zero", "delete", "cut"]), st.integers(0, 1 << 30), st.integers(1, 3_000))
PAYLOADS = st.tuples(
    st.sampled_from([30, 300, 3_000, 60_000]), st.integers(1, 60), st.integers(0, 1 << 16), st.sampled_from([0, 7])
)


def made(longest: int, count: int, seed: int) -> list[bytes]:
    rng = random.Random(seed)
    return [b"%08d" % n + rng.randbytes(rng.randint(0, longest)) for n in range(count)]


@given(PAYLOADS, HITS)
def test_of_the_records_that_damage_spares_none_is_lost(
    log: tuple[int, int, int, int], damage: tuple[str, int, int]
) -> None:
    longest, count, seed, base = log
    payloads = made(longest, count * 40 if longest < 1_000 else count, seed)
    data = frame(payloads, HEADER, base=base)
    kind, where, size = damage
    broken, low, high = hit(data, kind, len(HEADER) + where % (len(data) - len(HEADER)), size)
    spared = {
        payload
        for payload, parts in zip(payloads, chunks(data, base), strict=True)
        if all(end <= low or begin >= high for begin, end in parts)
    }
    read_bytes = lost_bytes = 0
    kept: list[bytes] = []
    for item in leveldb_log.records(broken):
        if isinstance(item, leveldb_log.Damage):
            lost_bytes += item.size_bytes
        else:
            kept.append(item.payload)
            read_bytes += len(item.payload)
    assert len(spared - set(kept)) <= 0.01 * len(spared)
    assert kept == [payload for payload in payloads if payload in set(kept)]
    assert read_bytes + lost_bytes <= len(broken)


@given(stretches=STRETCHES, seed=st.integers(0, 1 << 16), damage=HITS)
def test_a_damaged_log_gives_points_of_the_sound_one_and_its_bytes_add_up(
    pb: Any, stretches: list[Stretch], seed: int, damage: tuple[str, int, int]
) -> None:
    data = log_of(pb, [replace(s, consoles=False, count=min(s.count, 70)) for s in stretches], seed)
    kind, where, size = damage
    broken, _, _ = hit(data, kind, len(HEADER) + where % (len(data) - len(HEADER)), size)
    wrote = ours(broken, replace(DEFAULT, block_bytes=40_000))
    own = Counter((p.raw_name, p.step, p.t_ns, p.bits) for p in points(wrote))
    assert not own - Counter((p.raw_name, p.step, p.t_ns, p.bits) for p in said(pb, data).points)
    coverage = wrote.coverage("wandb_run")
    assert coverage.read_bytes + coverage.skipped_bytes == len(broken)
    assert not coverage.skipped_bytes or wrote.issues


@pytest.mark.usefixtures("true_size")
@pytest.mark.parametrize("stored", [False, True], ids=["in-memory", "stored"])
def test_every_point_at_true_size(pb: Any, tmp_path: Path, stored: bool) -> None:
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "run-b3nchm4r.wandb"
    bench().write_log(path, 210_000_000, 50)
    rows = pipeline.ingest_run(tmp_path / "run", store=tmp_path / "store" if stored else None).collect("metrics")
    expected: dict[str, list[tuple[int, int, float]]] = {}
    for parts, payload in records(path.read_bytes()):
        message = pb.Record.FromString(payload)
        if message.WhichOneof("record_type") == "history":
            cells = {i.nested_key[0]: json.loads(i.value_json) for i in message.history.item}
            for name, cell in cells.items():
                if not name.startswith("_"):
                    expected.setdefault(name, []).append((parts[0][0], cells["_step"], cell))
    assert rows.height == sum(map(len, expected.values())) > 2_000_000
    units = {name: canonical(name).scale for name in expected}
    for (name,), own in rows.partition_by("raw_name", as_dict=True).items():
        byte, step, value = (np.array(column) for column in zip(*expected[str(name)], strict=True))
        np.testing.assert_array_equal(own["byte"].to_numpy(), byte)
        np.testing.assert_array_equal(own["step"].to_numpy(), step)
        np.testing.assert_array_equal(own["value"].to_numpy(), value * units[str(name)])


def bench() -> Any:
    """The generator of the bench, whose file has the name of a package."""
    place = Path(__file__).parents[2] / "bench" / "wandb.py"
    spec = importlib.util.spec_from_file_location("bench_of_wandb", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
