"""Real traces, where they are at hand, against an exact sweep over their events by another program."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forensics import registry
from forensics.analyses.traces.breakdown import by_rank
from forensics.analyses.traces.gaps import idle_causes, idle_gaps
from forensics.analyses.traces.kernels import kernels, shares
from forensics.analyses.traces.loader import loader_share
from forensics.analyses.traces.ranks import waits
from forensics.analyses.traces.steps import steps
from forensics.compare.kernel_profile import profile
from forensics.model import Finding
from forensics.pipeline import ingest_run
from forensics.report.pages.kernels import LAYOUT, Page
from forensics.store.run import Run

SHARED = Path(__file__).parents[4] / "shared"
TRACES = SHARED / "corpus" / "traces"
READINGS = sorted((SHARED / "reference" / "readings").glob("traces_*.json"))
FILES = sorted([*TRACES.rglob("*.json"), *TRACES.rglob("*.json.gz")])
WITHIN_NS = 1
COLUMNS = {
    "span": "span_ns",
    "busy": "busy_ns",
    "idle": "idle_ns",
    "computation_union": "compute_ns",
    "communication_union": "communication_ns",
    "memory_union": "memory_ns",
    "comm_overlapped_by_computation": "overlap_ns",
    "exposed_communication": "exposed_ns",
}
needs_corpus = pytest.mark.skipif(not FILES, reason="no real traces at hand")


def readings() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in READINGS:
        for name, exact in json.loads(path.read_text(encoding="utf-8")).get("exact", {}).items():
            if (TRACES / name).exists():
                yield name, exact


EXACT = list(readings())
needs_readings = pytest.mark.skipif(not EXACT, reason="no readings of real traces at hand")


@cache
def run_of_file(name: str) -> Run:
    return ingest_run(TRACES / name)


@needs_readings
def test_every_time_of_every_trace_is_that_of_the_exact_sweep() -> None:
    for name, exact in EXACT:
        found = by_rank(run_of_file(name)).row(0, named=True)
        assert found["count"] == exact["gpu_events"], name
        off = {
            column: found[column] - exact["timeline_us"][key] * 1000
            for key, column in COLUMNS.items()
            if abs(found[column] - exact["timeline_us"][key] * 1000) > WITHIN_NS
        }
        assert not off, name


@needs_readings
def test_steps_and_the_wait_for_the_loader_are_those_of_the_exact_sweep() -> None:
    for name, exact in EXACT:
        run = run_of_file(name)
        marks = steps(run).select("step", (pl.col("end_ns") - pl.col("start_ns")).alias("dur"))
        read = {f"ProfilerStep#{number}": dur / 1000 for number, dur in marks.iter_rows()}
        assert read == pytest.approx(exact["profiler_steps_us"]), name
        if (known := exact.get("dataloader_us")) is not None:
            found = loader_share(run).row(0, named=True)
            assert (found["calls"], found["wait_ns"]) == (known["calls"], pytest.approx(known["union"] * 1000)), name
            assert found["in_steps_ns"] == pytest.approx(known["inside_steps"] * 1000), name


@needs_corpus
def test_on_every_trace_gaps_add_up_and_the_page_has_eighty_columns() -> None:
    for path in FILES:
        run = ingest_run(path)
        idle = by_rank(run)["idle_ns"].sum()
        assert idle_gaps(run)["dur_ns"].sum() == idle, path.name
        assert idle_causes(run)["time_ns"].sum() == idle, path.name
        _found(run)
        page = Page(profile(run), per_step=True, per_rank=True)
        lines = "\n".join(LAYOUT.render(page, "text")).split("\n")
        assert not [line for line in lines if len(line) > 80 and not line.startswith("of ")], path.name


def loaders(folder: str) -> list[Path]:
    return sorted(path for path in FILES if folder in str(path))


@needs_corpus
@pytest.mark.parametrize("folder", ["resnet50_num_workers_0", "google_owlv2"])
def test_the_data_loader_is_the_first_cause_of_idle_time_without_worker_processes(folder: str) -> None:
    for path in loaders(folder):
        run = run_of_file(str(path.relative_to(TRACES)))
        assert idle_causes(run)["cause"][0] == "data loader", path.name
        assert loader_share(run)["in_process"].to_list() == [True]
        assert "SLO010" in {f.rule for f in _found(run)}, path.name


@needs_corpus
def test_the_data_loader_is_not_blamed_with_worker_processes() -> None:
    for path in loaders("resnet50_num_workers_4"):
        assert "SLO010" not in {f.rule for f in _found(run_of_file(str(path.relative_to(TRACES))))}, path.name


def starts_us(path: Path) -> list[int]:
    """When each collective kernel of a trace with a common clock started, in order of time."""
    events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    return sorted(e["ts"] for e in events if e.get("cat") == "kernel" and e["name"].startswith("nccl"))


@needs_corpus
def test_the_rank_that_the_others_wait_for_is_named_in_a_job_of_eight() -> None:
    folder = TRACES / "param" / "dlrm_kineto"
    by_time = [starts_us(path) for path in sorted(folder.glob("worker*"))]
    last = [max(times) for times in zip(*by_time, strict=True)]
    known = [sum(end - own for end, own in zip(last, times, strict=True)) for times in by_time]
    run = ingest_run(folder)
    found = dict(waits(run).select("rank", pl.col("wait_ns") / 1000).iter_rows())
    # aligning the clocks may move each arrival by the few microseconds that the stamps are apart
    assert [found[rank] for rank in range(8)] == pytest.approx(known, abs=3 * len(last))
    assert [f.culprits for f in _found(run) if f.rule == "SLO014"] == [(known.index(min(known)),)]


@needs_readings
def test_the_share_of_communication_is_that_of_the_exact_sweep() -> None:
    for name, exact in EXACT:
        summed = exact["summed_us"]
        rows = dict(shares(kernels(run_of_file(name)), "label").select("label", "share").iter_rows())
        known = summed.get("communication", 0) / sum(summed.values())
        assert rows.get("communication", 0.0) == pytest.approx(known), name


def _found(run: Run) -> list[Finding]:
    """What the rules that need spans say."""
    rules = [r for r in registry.load("rules").rules if "spans" in r.needs]
    return [finding for rule in rules for finding in rule(run)]
