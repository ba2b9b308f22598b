"""Memory snapshots: every event, stack and block as a C unpickler reads them, in every schema, whole or cut."""

from __future__ import annotations

import importlib.util
import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from forensics.errors import InputError, NotMine
from forensics.formats.snapshot._fast import FastReader
from forensics.model import FileStatus

FIXTURES = Path(__file__).parents[3] / "fixtures" / "memory_snapshot"


def helpers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("snapshot_truth", Path(__file__).with_name("_snapshot_truth.py"))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["snapshot_truth"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


truth = sys.modules.get("snapshot_truth") or helpers()
make = truth.maker()
Plan = make.Plan
SCHEMAS = ("2.0", "2.1", "2.5", "2.10", "2.12")


def assert_equal_to_the_unpickler(data: bytes) -> None:
    frames, document = truth.written(data).frames(), truth.unpickled(data)
    assert truth.events_read(frames) == truth.events_true(document)
    assert truth.blocks_read(frames) == truth.blocks_true(document)
    segments = frames.get("segments")
    assert (segments.height if segments is not None else 0) == len(document["segments"])


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_events_stacks_and_blocks_are_exact_in_every_schema_and_protocol(schema: str, protocol: int) -> None:
    plan = Plan(schema=schema, steps=14, leak_every=3, devices=3, oom=True, depth=9)
    assert_equal_to_the_unpickler(make.pickled(make.made(plan)[0], protocol))


def test_a_recording_of_one_event_is_exact() -> None:
    document = make.made(Plan(steps=1))[0]
    document["device_traces"] = [[], document["device_traces"][0][:1], []]
    assert_equal_to_the_unpickler(make.pickled(document))


def test_memory_is_exact_when_events_of_two_layouts_alternate() -> None:
    document = make.made(Plan(steps=8))[0]
    for i, event in enumerate(document["device_traces"][0]):
        if i % 3 == 0 and "frames" in event:
            event.pop("user_metadata")
        if i % 7 == 0:
            event["stream"] = -1 - i
    assert_equal_to_the_unpickler(make.pickled(document))


def test_frames_of_a_deep_recursion_are_exact() -> None:
    document = make.made(Plan(steps=2))[0]
    frames = [{"name": f"f{i % 5}", "filename": "/srv/job/deep.py", "line": i} for i in range(2400)]
    for event in document["device_traces"][0][10:14]:
        event["frames"] = list(frames)
    assert_equal_to_the_unpickler(make.pickled(document))


def test_values_of_every_width_are_exact() -> None:
    document = make.made(Plan(steps=3))[0]
    sizes = [0, 1, 255, 256, 65_535, 65_536, 2**31 - 1, 2**31, 2**39, 2**47 + 3, 2**62]
    for event, size in zip(document["device_traces"][0], sizes * 9, strict=False):
        event["size"], event["addr"] = size, (1 << 64) - 1 - size
    assert_equal_to_the_unpickler(make.pickled(document))


def test_most_events_are_read_by_the_template(monkeypatch: pytest.MonkeyPatch) -> None:
    hits: list[bool] = []
    plain: Callable[..., bool] = FastReader.advance

    def counted(self: FastReader, m: object, device: int) -> bool:
        hits.append(plain(self, m, device))
        return hits[-1]

    monkeypatch.setattr(FastReader, "advance", counted)
    sink = truth.written(make.pickled(make.made(Plan(steps=40))[0]))
    assert sink.frames()["allocs"].height > 2000
    assert sum(hits) >= 5
    assert len(hits) - sum(hits) < 60


@pytest.mark.parametrize("devices", [1, 3])
def test_a_cut_file_gives_every_whole_event_before_the_cut(devices: int) -> None:
    whole = make.pickled(make.made(Plan(steps=5, devices=devices))[0])
    events = truth.events_read(truth.written(whole).frames())
    seen = 0
    for end in range(len(whole) // 3, len(whole), 997):
        sink = truth.written(whole[:end])
        kept = truth.events_read(sink.frames())
        assert kept == events[: len(kept)]
        assert len(kept) >= seen
        seen = len(kept)
        assert [issue.code for issue in sink.issues] == ["snapshot-cut"]
        coverage = sink.coverage("memory_snapshot")
        assert coverage.read_bytes + coverage.skipped_bytes == end
    assert seen > 0.9 * len(events)


def test_a_call_in_the_middle_ends_reading_and_what_stands_before_is_kept() -> None:
    sink = truth.written((FIXTURES / "broken-calls" / "memory.pickle").read_bytes())
    assert sink.frames()["allocs"].height > 10
    assert "is not plain data" in sink.issues[0].message
    assert sink.coverage("memory_snapshot").status is FileStatus.PARTIAL


def test_a_call_at_the_beginning_gives_nothing_and_says_so() -> None:
    data = b"\x80\x04}(\x8c\x08segmentscos\nsystem\n."
    with pytest.raises(InputError, match="GLOBAL"):
        truth.written(data)


def test_bytes_behind_the_end_are_told() -> None:
    whole = make.pickled(make.made(Plan(steps=1))[0])
    coverage = truth.written(whole + b"cos\nsystem\n.").coverage("memory_snapshot")
    assert (coverage.skipped_bytes, coverage.reason) == (12, "behind the end of the snapshot")


@pytest.mark.parametrize("schema", SCHEMAS)
def test_json_of_a_snapshot_says_the_same(schema: str) -> None:
    document = make.made(Plan(steps=4, schema=schema, devices=2, oom=True))[0]
    text = json.dumps(document).encode()
    pickled = truth.written(make.pickled(document)).frames()
    read = truth.written(text, "memory.json").frames()
    assert truth.events_read(read) == truth.events_read(pickled)
    assert truth.blocks_read(read) == truth.blocks_read(pickled)


def test_a_bare_list_of_segments_is_a_snapshot_without_events() -> None:
    document = make.made(Plan(steps=3))[0]
    frames = truth.written(make.pickled(document["segments"])).frames()
    assert "allocs" not in frames
    assert truth.blocks_read(frames) == truth.blocks_true(document)


def test_settings_become_facts_and_annotations_rows() -> None:
    frames = truth.written(make.pickled(make.made(Plan(steps=3, expandable=True))[0])).frames()
    facts = dict(frames["facts"].select("key", "value").iter_rows())
    assert facts["memory_snapshot.allocator_settings.expandable_segments"] == "true"
    assert facts["memory_snapshot.complete"] == "true"
    assert frames["annotations"]["stage"].to_list() == ["START", "END"] * 3


def test_events_and_segments_of_the_wrong_kind_are_counted_and_the_rest_is_kept() -> None:
    document = make.made(Plan(steps=2))[0]
    good = len(document["device_traces"][0])
    document["device_traces"][0] += [{"action": 3, "addr": 1, "size": 2}, {"action": "alloc", "addr": "x", "size": 1}]
    document["segments"] += [{"address": "x", "total_size": None, "blocks": 5}]
    sink = truth.written(make.pickled(document))
    assert sink.frames()["allocs"].height == good
    assert {issue.code for issue in sink.issues} == {"event-malformed", "segment-malformed"}


def test_an_unknown_action_is_kept() -> None:
    document = make.made(Plan(steps=2))[0]
    document["device_traces"][0][5]["action"] = "annotate_v9"
    frames = truth.written(make.pickled(document)).frames()
    assert frames["allocs"]["action"].to_list()[5] == "annotate_v9"


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps({"weights": [1, 2]}),
        pickle.dumps([1, 2]),
        b"\x80\x04cos\nsystem\n.",
        b'{"segments": 3}',
        b"[]",
        b"x",
    ],
)
def test_another_pickle_or_document_is_not_taken(data: bytes) -> None:
    with pytest.raises(NotMine):
        truth.written(data)


@pytest.mark.parametrize("name", sorted(make.files()))
def test_the_fixtures_come_out_of_their_maker(name: str) -> None:
    assert (FIXTURES / name).read_bytes() == make.files()[name]


@pytest.mark.skipif(not truth.WHOLE, reason="the corpus of snapshots is not beside this checkout")
@pytest.mark.parametrize("path", truth.WHOLE, ids=lambda p: p.name[:40])
def test_a_snapshot_of_the_corpus_is_exact(path: Path) -> None:
    assert_equal_to_the_unpickler(path.read_bytes())
