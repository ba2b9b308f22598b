"""Figures: nothing that matters is thinned away, and each run has those that its data can give."""

from __future__ import annotations

from math import inf, nan
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics import pipeline
from forensics.compare.baseline import against
from forensics.figure import Bars, Block, Chart, Flame, Heat, Lanes, Rows
from forensics.figures._thin import MOST_GAPS, note_of, thinned
from forensics.figures.memory_flame import blocks_of
from forensics.pipeline import ingest_bytes
from forensics.store.run import run_of
from forensics.values import replace

FIXTURES = Path(__file__).parents[2] / "fixtures"
RUNS = FIXTURES / "runs"
ANY = st.floats(allow_nan=True, allow_infinity=True)


def figures_of(name: str, base: str | None = None) -> dict[str, object]:
    run = pipeline.ingest_run(RUNS / name if (RUNS / name).exists() else FIXTURES / name)
    if base is not None:
        run = against(run, pipeline.ingest_run(FIXTURES / base))
    return {f.key: f for f in pipeline.with_figures(run, pipeline.report_of(run)).figures}


@given(st.lists(ANY, max_size=400), st.integers(4, 60))
def test_thinning_keeps_the_outline_and_every_place_that_is_not_finite(values: list[float], most: int) -> None:
    y = np.array(values, float)
    x = np.arange(len(y), dtype=float)
    curve = thinned("a", x, y, most)
    finite = y[np.isfinite(y)]
    assert len(curve.x) == len(curve.y) <= most + 2
    assert curve.records == len(y)
    if len(finite):
        assert (min(curve.y), max(curve.y)) == (finite.min(), finite.max())
        assert (curve.y[0], curve.y[-1]) == (finite[0], finite[-1])
    assert list(curve.x) == sorted(curve.x)
    bad = np.flatnonzero(~np.isfinite(y))
    assert all(any(g.first <= b <= g.last for g in curve.gaps) for b in bad)
    assert sum(g.records for g in curve.gaps) == len(bad)


def test_one_spike_among_a_million_records_is_drawn() -> None:
    y = np.ones(1_000_000)
    y[654_321], y[123_456] = 50.0, nan
    curve = thinned("a", np.arange(1_000_000, dtype=float), y, 200)
    assert 50.0 in curve.y
    assert [(g.first, g.what) for g in curve.gaps] == [(123_456.0, "NaN")]
    assert "smallest and the largest of each bucket" in note_of((curve,))


def test_stretches_are_joined_only_when_there_are_very_many() -> None:
    y = np.tile([1.0, inf], 1000)
    gaps = thinned("a", np.arange(2000.0), y, 100).gaps
    assert len(gaps) == MOST_GAPS
    assert sum(g.records for g in gaps) == 1000
    assert {g.what for g in gaps} == {"+inf"}


def test_the_loss_of_a_nan_run_marks_onset_and_last_clean_checkpoint() -> None:
    loss = figures_of("nan-bad-sample-torchtitan")["loss"]
    assert isinstance(loss, Chart)
    assert {m.role for m in loss.marks} >= {"onset", "clean"}
    assert loss.curves[0].gaps
    assert "NAN001" in loss.rules


def test_a_run_of_several_ranks_has_a_map_and_a_time_line_with_the_cause_first() -> None:
    found = figures_of("oom-then-hang-torchrun")
    heat, lanes = found["progress"], found["time-line"]
    assert isinstance(heat, Heat)
    assert len(heat.rows) >= 2
    assert isinstance(lanes, Lanes)
    assert lanes.moments[0].primary
    assert "OOM" in lanes.moments[0].text


def test_an_onset_deep_in_a_long_run_is_drawn_again_from_near() -> None:
    steps = 20_000
    loss = [2.0 + (s % 7) / 100 if s < 15_000 else nan for s in range(steps)]
    rows = pl.DataFrame(
        {"source": "a", "seq": range(steps), "step": range(steps), "line": range(1, steps + 1), "name": "loss",
         "raw_name": "loss", "value": loss}
    )  # fmt: skip
    run = run_of("a", {"metrics": rows})
    report = pipeline.with_figures(run, pipeline.report_of(run))
    near = {f.key: f for f in report.figures}["loss-around-the-onset"]
    assert isinstance(near, Chart)
    assert min(near.curves[0].x) == 14_940.0


@pytest.mark.parametrize("name", sorted(p.name for p in RUNS.iterdir() if p.is_dir()))
def test_every_run_gives_the_same_figures_twice_with_keys_of_their_own(name: str) -> None:
    first, second = figures_of(name), figures_of(name)
    assert repr(first) == repr(second)
    run = pipeline.ingest_run(RUNS / name)
    keys = [f.key for f in pipeline.with_figures(run, pipeline.report_of(run)).figures]
    assert len(keys) == len(set(keys))


def test_an_empty_run_has_no_figures() -> None:
    run = run_of("empty", {})
    assert pipeline.with_figures(run, pipeline.report_of(run)).figures == ()


def total(blocks: tuple[Block, ...]) -> float:
    return sum(b.value for b in blocks)


def all_blocks(blocks: tuple[Block, ...]) -> list[Block]:
    return [one for b in blocks for one in (b, *all_blocks(b.children))]


SNAPSHOTS = sorted(p.name for p in (FIXTURES / "memory_snapshot").iterdir())


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_a_flame_graph_holds_every_byte_of_the_peak_and_no_child_is_wider_than_its_parent(name: str) -> None:
    flames = [f for f in figures_of(f"memory_snapshot/{name}").values() if isinstance(f, Flame)]
    assert flames
    for flame in flames:
        assert total(flame.roots) == pytest.approx(flame.total)
        for block in all_blocks(flame.roots):
            assert total(block.children) <= block.value * (1 + 1e-9)
            assert 0 <= block.kind < len(flame.kinds)
        assert len(all_blocks(flame.roots)) <= 1200


def test_leak_sites_have_a_flame_graph_of_their_own_and_the_timeline_marks_the_peak() -> None:
    found = figures_of("memory_snapshot/ok-leak-2.12")
    leaks, line = found["memory-leaks-1"], found["memory-timeline-1"]
    assert isinstance(leaks, Flame)
    assert "OOM020" in leaks.rules
    assert "forward_0" in leaks.caption
    assert isinstance(line, Chart)
    assert [c.label for c in line.curves] == ["reserved", "allocated"]
    assert all(r >= a for r, a in zip(line.curves[0].y, line.curves[1].y, strict=False))
    assert line.marks[0].label.startswith("peak")
    assert max(line.curves[1].y) == pytest.approx(float(line.marks[0].label.split()[1].replace(",", "")), rel=1e-3)


def test_a_recording_that_ran_out_marks_where() -> None:
    line = figures_of("memory_snapshot/ok-expandable-oom")["memory-timeline-1"]
    assert isinstance(line, Chart)
    assert "onset" in {m.role for m in line.marks}


def test_deep_and_many_stacks_stay_a_drawing_that_fits() -> None:
    stacks = [(tuple(f"a.py:{n % m} f{n}" for m in range(2, 200)), 1.0, 0) for n in range(3000)]
    blocks, least = blocks_of(stacks)
    assert total(blocks) == 3000
    assert len(all_blocks(blocks)) <= 1300
    assert least >= 0.003


def collectives(ranks: int, last: dict[int, int], *, timed: bool = True) -> dict[str, object]:
    start = 1_790_000_000_000_000_000
    rows = [
        {"source": f"dump_{rank}", "rank": rank, "group": "0", "group_size": ranks, "seq": seq, "op": "all_reduce",
         "state": "completed" if seq < 30 else "started", "created_ns": start + seq * 10**9 if timed else None}
        for rank in range(ranks) for seq in range(last.get(rank, 30) + 1)
    ]  # fmt: skip
    run = run_of("a", {"collectives": pl.DataFrame(rows, infer_schema_length=None)})
    return {f.key: f for f in pipeline.with_figures(run, pipeline.report_of(run)).figures}


@pytest.mark.parametrize("timed", [True, False])
def test_collectives_that_did_not_end_are_flagged_in_the_row_of_their_rank(timed: bool) -> None:
    heat = collectives(4, {2: 29}, timed=timed)["collectives"]
    assert isinstance(heat, Heat)
    assert heat.rows == ("rank 0", "rank 1", "rank 2", "rank 3")
    assert {row for row, _ in heat.flagged} == {0, 1, 3}
    assert all(heat.cells[row][column] is not None for row, column in heat.flagged)
    assert "last ended all_reduce 29 of group 0" in heat.told[2]
    assert "did not end: all_reduce seq 30" in heat.told[0]
    assert heat.x_label.startswith("time (UTC)" if timed else "number in the group")
    assert 5 <= len(heat.ticks) <= 8


def test_maps_of_very_many_ranks_draw_some_and_say_so() -> None:
    heat = collectives(200, {199: 12})["collectives"]
    assert isinstance(heat, Heat)
    assert len(heat.rows) <= 66
    assert heat.note.endswith("of 200 ranks are drawn")


def test_steps_of_a_trace_are_split_by_kernel_category() -> None:
    bars = figures_of("chrome_trace/ok-2026")["step-categories"]
    assert isinstance(bars, Bars)
    assert [b.label for b in bars.bars] == ["step 12", "step 13"]
    assert all(sum(b.values) > 0 for b in bars.bars)
    assert "communication" in bars.parts


def test_a_baseline_gives_a_table_for_each_section_of_the_comparison() -> None:
    found = figures_of("eval_results/ok-03", "eval_results/ok-04")
    evals = found["against-evals"]
    assert isinstance(evals, Rows)
    assert evals.head[:2] == ("task", "metric")
    assert all(len(row) == len(evals.head) for row in evals.rows)
    assert "EVL021" in evals.rules
    assert not [key for key in figures_of("eval_results/ok-03") if key.startswith("against-")]


def test_how_far_each_rank_came_is_drawn_beside_what_it_left() -> None:
    rows = [
        {"source": "a", "seq": n, "rank": rank, "step": n, "t_ns": (1_790_000_000 + n) * 10**9, "name": "loss",
         "raw_name": "loss", "value": 2.0}
        for rank in range(2) for n in range(60 if rank == 0 else 30)
    ]  # fmt: skip
    run = run_of("a", {"metrics": pl.DataFrame(rows)})
    found = {f.key: f for f in pipeline.with_figures(run, pipeline.report_of(run)).figures}
    steps = found["steps-over-time"]
    assert isinstance(steps, Heat)
    assert steps.most == 59
    assert steps.cells[0][-1] == 1.0
    assert steps.cells[1][-1] is None
    assert "last step 29" in steps.told[1]


def first_of(name: str) -> str:
    return next(iter(figures_of(name)))


def test_the_figure_that_decides_a_shape_comes_first() -> None:
    assert first_of("nan-blowup-kempnerforge") == "loss"
    assert first_of("oom-then-hang-torchrun") == "memory-at-oom"
    assert next(iter(collectives(4, {2: 29}))) == "collectives"
    assert next(iter(paced([1.0] * 60 + [2.0] * 60))) == "seconds-per-step"


def paced(seconds: list[float]) -> dict[str, object]:
    rows = [
        {"source": "a", "seq": 2 * n + k, "step": n, "line": n + 1, "name": name, "raw_name": name, "value": value}
        for n, pace in enumerate(seconds)
        for k, (name, value) in enumerate((("step_time_s", pace + n % 3 / 100), ("loss", 2.0)))
    ]  # fmt: skip
    run = run_of("a", {"metrics": pl.DataFrame(rows)})
    return {f.key: f for f in pipeline.with_figures(run, pipeline.report_of(run)).figures}


def test_a_run_of_no_shape_begins_with_its_time_line_and_loss() -> None:
    assert first_of("healthy-nanogpt") in {"time-line", "loss"}


def test_every_metric_of_a_run_is_drawn_and_none_twice() -> None:
    found = figures_of("nan-blowup-kempnerforge")
    assert list(found) == [
        *("loss", "grad_norm", "mem_peak_gib", "seconds-per-step"),
        *("lr", "mem_total_gib", "mfu", "tokens_per_sec"),
    ]


@pytest.mark.parametrize(("rise", "first"), [(0.1, "loss and eval_loss"), (-0.1, "loss")])
def test_an_evaluation_loss_that_decides_is_drawn_in_one_chart_with_the_training_loss(rise: float, first: str) -> None:
    lines = [f"{{'loss': {2.0 * 0.93**n + 0.02:.4f}, 'epoch': {n / 10:.1f}}}" for n in range(1, 61)]
    evals = [f"{{'eval_loss': {1.6 + rise * n:.4f}, 'epoch': {n / 2:.1f}}}" for n in range(1, 13)]
    mixed = [line for n, line in enumerate(lines) for line in ([line, evals[n // 5]] if n % 5 == 4 else [line])]
    run = ingest_bytes("train.log", "\n".join(mixed).encode())
    charts = [f for f in pipeline.with_figures(run, pipeline.report_of(run)).figures if isinstance(f, Chart)]
    assert charts[0].title == f"{first} over records"
    if rise > 0:
        assert {(c.label, c.x[0], c.x[-1]) for c in charts[0].curves} == {("loss", 0, 70), ("eval_loss", 5, 71)}
        assert "eval_loss" not in {chart.key for chart in charts}


def test_a_metric_of_two_values_is_no_chart() -> None:
    rows = [
        {"source": "a", "seq": 2 * n + k, "step": n, "line": n + 1, "name": name, "raw_name": name, "value": 1.0}
        for k, (name, count) in enumerate((("three", 3), ("two", 2))) for n in range(count)
    ]  # fmt: skip
    run = run_of("a", {"metrics": pl.DataFrame(rows)})
    assert [f.key for f in pipeline.with_figures(run, pipeline.report_of(run)).figures] == ["three"]


def test_a_loss_under_a_spike_has_a_logarithmic_axis_and_one_that_falls_has_none() -> None:
    spike, fall = figures_of("nan-blowup-kempnerforge")["loss"], figures_of("healthy-nanogpt")["loss"]
    assert isinstance(spike, Chart)
    assert isinstance(fall, Chart)
    assert spike.log
    assert not fall.log


def test_the_curve_of_the_rank_at_fault_is_marked_and_only_this_one() -> None:
    rows = [
        {"source": f"rank{rank}.log", "seq": n, "rank": rank, "step": n, "line": n + 1, "name": "loss",
         "raw_name": "loss", "value": nan if rank == 1 and n > 20 else 2.0}
        for rank in range(2) for n in range(40)
    ]  # fmt: skip
    run = run_of("a", {"metrics": pl.DataFrame(rows)})
    report = pipeline.report_of(run)
    at_fault = replace(report, verdict=replace(report.verdict, culprits=(1,)))
    loss = {f.key: f for f in pipeline.with_figures(run, at_fault).figures}["loss"]
    assert isinstance(loss, Chart)
    assert [(c.label, c.culprit) for c in loss.curves] == [("rank 0", False), ("rank 1", True)]


def test_the_checkpoint_of_the_verdict_is_the_one_that_is_marked() -> None:
    run = pipeline.ingest_run(RUNS / "nan-blowup-kempnerforge")
    report = pipeline.report_of(run)
    loss = pipeline.with_figures(run, report).figures[0]
    assert isinstance(loss, Chart)
    assert [m.label for m in loss.marks if m.role == "clean"] == ["last clean checkpoint 100"]
    without = replace(report, verdict=replace(report.verdict, checkpoint=None))
    bare = pipeline.with_figures(run, without).figures[0]
    assert isinstance(bare, Chart)
    assert [m for m in bare.marks if m.role == "clean"] == []


def test_the_device_that_ran_out_holds_what_the_message_says_and_the_request_passes_its_size() -> None:
    device = figures_of("oom-then-hang-torchrun")["memory-at-oom"]
    assert isinstance(device, Bars)
    assert device.limit is not None
    held, asked = (sum(bar.values) for bar in device.bars)
    assert (held, asked) == (pytest.approx(79.15 - 1.12), pytest.approx(79.15 - 1.12 + 4.0))
    assert held < device.limit.at < asked
    assert device.bars[0].label == "rank 3 holds"


def test_a_culprit_that_left_no_record_with_a_time_has_an_empty_row() -> None:
    heat = figures_of("oom-then-hang-torchrun")["progress"]
    assert isinstance(heat, Heat)
    assert heat.culprits == ("rank 3",)
    assert set(heat.cells[heat.rows.index("rank 3")]) == {None}


def test_scores_are_bars_of_one_evaluation_and_curves_of_several() -> None:
    once = figures_of("bad-eval-mix")["evaluations-acc"]
    assert isinstance(once, Bars)
    assert {bar.label for bar in once.bars} == {"lagoon", "tides"}
    rows = [
        {"source": f"step_{step}/results.json", "seq": n, "task": task, "metric": "acc", "value": value + step / 1000,
         "step": step}
        for step in (100, 200, 300) for n, (task, value) in enumerate((("a", 0.2), ("b", 0.3)))
    ]  # fmt: skip
    run = run_of("a", {"evals": pl.DataFrame(rows)})
    several = {f.key: f for f in pipeline.with_figures(run, pipeline.report_of(run)).figures}["evaluations-acc"]
    assert isinstance(several, Chart)
    assert [(c.label, c.x) for c in several.curves] == [("a", (100, 200, 300)), ("b", (100, 200, 300))]
    assert several.caption.startswith("a 0.3 at step 100, then 0.5 at step 300")


def test_a_metric_of_any_name_has_a_key_of_its_own_without_blanks() -> None:
    names = ["a b", "a-b", "a\tb", "<b>", "eval/acc"]
    rows = [
        {"source": "a", "seq": len(names) * n + k, "step": n, "line": n + 1, "name": name, "raw_name": name,
         "value": 1.0}
        for k, name in enumerate(names) for n in range(4)
    ]  # fmt: skip
    run = run_of("a", {"metrics": pl.DataFrame(rows)})
    figures = pipeline.with_figures(run, pipeline.report_of(run)).figures
    keys = {figure.title.removesuffix(" over steps"): figure.key for figure in figures}
    assert len(set(keys.values())) == len(names)
    assert (keys["a-b"], keys["eval/acc"]) == ("a-b", "eval/acc")
    assert not [key for key in keys.values() if not key.replace("/", "").replace("-", "").isalnum()]


@pytest.mark.parametrize("name", ["nan-blowup-kempnerforge", "oom-then-hang-torchrun"])
def test_metrics_that_are_read_one_by_one_are_drawn_as_those_that_are_read_together(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = figures_of(name)
    monkeypatch.setattr("forensics.figures._metric._TOGETHER", 0)
    assert figures_of(name) == together
