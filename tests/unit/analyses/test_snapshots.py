"""Accounts, leak sites and growth of memory snapshots, beside the truth of their maker and on real recordings."""

from __future__ import annotations

import importlib.util
import json
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from forensics.analyses.snapshots.per_device import Snapshot, grown, snapshots
from forensics.model import Confidence
from forensics.store.run import run_of

UNIT = Path(__file__).parents[1]


def helpers() -> ModuleType:
    path = UNIT / "formats" / "_snapshot_truth.py"
    spec = importlib.util.spec_from_file_location("snapshot_truth", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["snapshot_truth"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


truth = sys.modules.get("snapshot_truth") or helpers()
make = truth.maker()
Plan = make.Plan
INCONSISTENT = "facebookresearch+mosaic"


def read(data: bytes, name: str = "memory.pickle") -> tuple[Snapshot, ...]:
    return snapshots(run_of("tested", truth.written(data, name).frames()))


@cache
def of_corpus(path: Path) -> tuple[Snapshot, ...]:
    return read(path.read_bytes(), path.name)


def of(plan: Any) -> tuple[Snapshot, dict[str, Any]]:
    document, true = make.made(plan)
    found = [one for one in read(make.pickled(document)) if one.events or one.reserved_bytes]
    assert len(found) == 1
    return found[0], true


CLEAN = {
    "a clean loop": Plan(steps=30),
    "a clean loop without annotations": Plan(steps=30, annotate=False),
    "garbage that is collected now and then": Plan(steps=40, gc_every=5),
    "small batches at first": Plan(steps=30, warmup=8),
    "one step": Plan(steps=1, layers=12),
    "one step without annotations": Plan(steps=1, layers=12, annotate=False),
    "forward passes alone": Plan(steps=9, layers=6, forward_only=True),
    "a cache with a bound": Plan(steps=40, cache=4),
    "a full ring": Plan(steps=40, ring=900),
    "a store that is filled once": Plan(steps=40, fill=18),
    "requests that are answered": Plan(steps=40, serve=True, annotate=False),
    "a model that is served after it was filled": Plan(steps=40, serve=True, annotate=False, fill=10),
    "an old torch": Plan(steps=30, schema="2.0"),
}
LEAKS = {
    "each step": Plan(steps=30, leak_every=1),
    "each third step": Plan(steps=60, leak_every=3),
    "without annotations": Plan(steps=40, leak_every=2, annotate=False),
    "in a full ring": Plan(steps=80, leak_every=2, ring=2000),
    "begun late": Plan(steps=60, leak_every=2, since=20),
    "an old torch": Plan(steps=40, leak_every=2, schema="2.0"),
    "pool ids": Plan(steps=40, leak_every=2, schema="2.12"),
    "a helper that pins": Plan(steps=40, pin_every=2),
    "a helper that pins for many callers": Plan(steps=40, pin_every=1, callers=16),
    "from the middle on": Plan(steps=60, leak_every=2, leak_from=30),
    "requests that leave something behind": Plan(steps=40, pin_every=2, serve=True, annotate=False, layers=6),
}


@pytest.mark.parametrize("plan", [*CLEAN.values(), *LEAKS.values()], ids=[*CLEAN, *LEAKS])
def test_the_accounts_close_and_agree_with_the_maker(plan: Any) -> None:
    one, true = of(plan)
    assert one.trusted, one.notes
    assert (one.allocated_bytes, one.reserved_bytes) == (true["allocated"], true["reserved"])
    assert sum(share.bytes for share in one.peak_by_stack) == one.peak_bytes
    assert sum(share.bytes for share in one.live_by_stack) == one.allocated_bytes
    if not plan.ring:
        assert one.peak_bytes == true["peak"]


@pytest.mark.parametrize("plan", CLEAN.values(), ids=CLEAN)
def test_nothing_is_called_a_leak_where_nothing_leaks(plan: Any) -> None:
    one, _ = of(plan)
    assert one.leaks == ()


@pytest.mark.parametrize("plan", LEAKS.values(), ids=LEAKS)
def test_the_line_that_leaks_is_named_first(plan: Any) -> None:
    one, true = of(plan)
    assert one.leaks[0].site.endswith(f" {true['site']}")


def test_a_leak_is_measured_in_bytes_per_step_and_period() -> None:
    one, true = of(Plan(steps=60, leak_every=3))
    leak = one.leaks[0]
    assert (leak.bytes, leak.count, leak.period) == (true["leaked"], true["leaks"], 3)
    assert leak.per_step == true["leaked"] / 60
    assert (leak.steps, leak.confidence) == (60, Confidence.HIGH)


def test_where_no_steps_are_told_a_leak_has_no_rate_and_little_confidence() -> None:
    one, true = of(LEAKS["requests that leave something behind"])
    leak = one.leaks[0]
    assert (leak.bytes, leak.count) == (true["leaked"], true["leaks"])
    assert (leak.per_step, leak.period, leak.confidence, one.steps) == (None, None, Confidence.LOW, 0)


def test_a_recording_that_begins_late_counts_what_was_there_before() -> None:
    late, _ = of(Plan(steps=20, since=10))
    whole, _ = of(Plan(steps=20))
    assert late.start_allocated_bytes > 0
    assert late.start_reserved_bytes == whole.reserved_bytes
    assert late.peak_bytes == whole.peak_bytes
    assert any(share.before for share in late.peak_by_stack)
    assert "older than the recording" in " ".join(late.notes)


def test_blocks_from_before_that_are_freed_in_the_recording_count_at_the_start() -> None:
    one, _ = of(Plan(steps=40, schema="2.12", ring=150))
    assert one.quality == "wrapped"
    assert one.start_allocated_bytes > 0


def test_a_state_alone_says_that_there_are_no_events() -> None:
    document = make.made(Plan(steps=3))[0]
    for changed in (document["segments"], document | {"device_traces": [[]]}):
        (one,) = read(make.pickled(changed))
        assert (one.quality, one.events, one.leaks) == ("state only", 0, ())
        assert one.peak_bytes == one.allocated_bytes


def test_a_cut_file_is_partial_and_has_no_start() -> None:
    whole = make.pickled(make.made(Plan(steps=8))[0])
    (one,) = read(whole[: len(whole) // 2])
    assert one.quality == "partial"
    assert not one.trusted


@pytest.mark.parametrize("broken", ["double alloc", "lost block", "wrong size", "wrong sum"])
def test_books_that_do_not_close_are_called_inconsistent_and_name_no_leak(broken: str) -> None:
    document = make.made(Plan(steps=30, leak_every=1))[0]
    events, segments = document["device_traces"][0], document["segments"]
    if broken == "double alloc":
        alloc = next(e for e in events if e["action"] == "alloc")
        events.insert(events.index(alloc) + 1, dict(alloc))
    elif broken == "lost block":
        block = next(b for s in segments for b in s["blocks"] if b["state"] == "active_allocated")
        block["state"] = "inactive"
    elif broken == "wrong size":
        next(e for e in events if e["action"] == "free_completed")["size"] += 512
    else:
        segments[0]["total_size"] += 4096
    (one,) = read(make.pickled(document))
    assert one.quality == "inconsistent"
    assert one.leaks == ()
    assert one.notes


def test_missing_stacks_and_missing_frees_are_told() -> None:
    document = make.made(Plan(steps=3))[0]
    events = [e for e in document["device_traces"][0] if not e["action"].startswith("free")]
    for event in document["device_traces"][0]:
        event.pop("frames", None)
    (bare,) = read(make.pickled(document))
    assert "no event has a stack" in " ".join(bare.notes)
    document["device_traces"] = [events]
    (skipped,) = read(make.pickled(document))
    assert "no frees" in " ".join(skipped.notes)


def test_categories_follow_stacks_and_lifetimes() -> None:
    one, _ = of(Plan(steps=20, layers=3))
    by_name = {share.stack[0].split(" ")[-1]: share.category for share in one.peak_by_stack}
    assert by_name["__init__"] == "parameter"
    assert by_name["_init_group"] == "optimizer"
    assert by_name["forward_2"] == "activation"
    assert all(share.confidence.rank <= Confidence.HIGH.rank for share in one.peak_by_stack)


def test_fragmentation_is_what_active_blocks_keep() -> None:
    one, _ = of(Plan(steps=5))
    expandable, _ = of(Plan(steps=5, expandable=True))
    assert 0 < one.fragmentation < 1
    assert one.fragmentation == one.unreleasable_bytes / one.reserved_bytes
    assert (one.expandable, expandable.expandable) == (False, True)
    assert expandable.fragmentation == 0


def test_two_snapshots_say_what_grew_and_by_how_much_each_step() -> None:
    base, before = of(Plan(steps=20, leak_every=1))
    cand, after = of(Plan(steps=50, leak_every=1))
    growth = grown(base, cand, steps=30)
    assert growth[0].site.endswith("forward_0")
    assert sum(one.bytes for one in growth) == after["leaked"] - before["leaked"]
    assert growth[0].per_step == growth[0].bytes / 30
    assert grown(base, base) == ()


def test_an_oom_event_is_read_with_what_was_asked_and_free() -> None:
    one, _ = of(Plan(steps=3, oom=True))
    assert one.oom is not None
    assert (one.oom.asked_bytes, one.oom.free_bytes, one.oom.events_after) == (64 << 20, 3 << 20, 0)
    assert one.oom.stack[0].endswith("forward_2")


@pytest.mark.skipif(not truth.WHOLE, reason="the corpus of snapshots is not beside this checkout")
@pytest.mark.parametrize("path", truth.WHOLE, ids=lambda p: p.name[:40])
def test_the_identities_hold_on_the_corpus_but_for_the_inconsistent_file(path: Path) -> None:
    for one in of_corpus(path):
        wrong = INCONSISTENT in str(path)
        assert (one.quality == "inconsistent") == wrong, one.notes
        if not wrong:
            assert sum(share.bytes for share in one.peak_by_stack) == one.peak_bytes
            assert min(one.start_allocated_bytes, one.start_reserved_bytes) >= 0


@pytest.mark.skipif(not truth.WHOLE, reason="the corpus of snapshots is not beside this checkout")
@pytest.mark.parametrize("path", truth.WHOLE, ids=lambda p: p.name[:40])
def test_leaks_are_named_on_the_corpus_where_there_are_some_and_only_there(path: Path) -> None:
    beside = path.with_suffix(".truth.json")
    found = of_corpus(path)
    if beside.is_file():
        sites = json.loads(beside.read_text())["leak_sites"]
        (one,) = found
        named = [leak.site.split(" ")[-1] for leak in one.leaks]
        assert set(named[: len(sites)]) == set(sites)
        assert len(named) == len(sites)
    elif "codeasier" in str(path):
        for one in found:
            assert [leak.count for leak in one.leaks] == ([3] if one.allocated_bytes else [])
    else:
        assert not any(one.leaks for one in found)
