"""Analyses of profiler traces on small traces whose answers are worked out by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from forensics.analyses.traces import gaps as trace_gaps
from forensics.analyses.traces import ranks as trace_ranks
from forensics.analyses.traces.breakdown import by_rank, by_step
from forensics.analyses.traces.gaps import idle_causes, idle_gaps
from forensics.analyses.traces.gpu import gpu_rows
from forensics.analyses.traces.kernels import kernels, shares, unlaunched
from forensics.analyses.traces.loader import loader_share
from forensics.analyses.traces.ranks import arrivals, waits
from forensics.analyses.traces.steps import steps, timed_steps
from forensics.analyses.traces.syncs import sync_calls
from forensics.rules.slowdown.traces.host import trace_host_copies
from forensics.store.run import Run, run_of

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
US = 1_000


def row(category: str, name: str, start_us: float, dur_us: float, **more: Any) -> dict[str, Any]:
    span = {"category": category, "name": name, "start_ns": int(start_us * US), "dur_ns": int(dur_us * US)}
    return {"source": "t.json", "rank": 0, "thread": None, "correlation": None, "attrs": None} | span | more


def host(name: str, start_us: float, dur_us: float, category: str = "cpu_op", **more: Any) -> dict[str, Any]:
    return row(category, name, start_us, dur_us, thread="1/1", **more)


def launch(number: int, at_us: float, **more: Any) -> dict[str, Any]:
    return host("cudaLaunchKernel", at_us, 2, "cuda_runtime", correlation=number, **more)


def kernel(number: int | None, start_us: float, dur_us: float, name: str = "gemm_a", **more: Any) -> dict[str, Any]:
    return row("kernel", name, start_us, dur_us, correlation=number, stream="7", device=0, **more)


def step(number: int, start_us: float, dur_us: float, **more: Any) -> dict[str, Any]:
    return host(f"ProfilerStep#{number}", start_us, dur_us, "user_annotation", step=number, **more)


def traced(*rows: dict[str, Any]) -> Run:
    numbered = [{"seq": i, "step": None, "stream": None, "device": None} | r for i, r in enumerate(rows)]
    frame = pl.DataFrame(numbered, infer_schema_length=None)
    return run_of("traces", {"spans": frame})


def test_two_streams_at_once_are_busy_once_and_overlap_is_told() -> None:
    run = traced(
        kernel(None, 0, 100),
        kernel(None, 50, 100, NCCL),
        kernel(None, 140, 20, NCCL),
        row("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 200, 50),
        row("gpu_user_annotation", "forward", 0, 1000),
        row("cuda_sync", "Context Sync", 0, 5000),
    )
    found = by_rank(run).row(0, named=True)
    assert (found["span_ns"], found["busy_ns"], found["idle_ns"]) == (250 * US, 210 * US, 40 * US)
    assert (found["compute_ns"], found["communication_ns"], found["memory_ns"]) == (100 * US, 110 * US, 50 * US)
    assert (found["overlap_ns"], found["exposed_ns"], found["count"]) == (50 * US, 60 * US, 4)


def test_work_belongs_to_the_step_that_launched_it_not_to_the_one_it_ran_in() -> None:
    run = traced(
        step(1, 0, 100), step(2, 100, 100), launch(1, 90), launch(2, 110), kernel(1, 130, 10), kernel(2, 140, 30)
    )
    assert by_step(run).select("step", "busy_ns").rows() == [(1, 10 * US), (2, 30 * US)]


def test_a_mark_on_the_device_or_of_a_second_thread_is_no_second_step() -> None:
    mark = row("gpu_user_annotation", "ProfilerStep#1", 5, 100, step=1)
    assert steps(traced(step(1, 0, 100), mark, step(1, 3, 90) | {"thread": "1/2"})).height == 1


def test_one_launch_of_a_graph_has_many_kernels() -> None:
    run = traced(
        host("cudaGraphLaunch", 0, 3, "cuda_runtime", correlation=9), *(kernel(9, 10 * i, 5) for i in range(1, 4))
    )
    assert gpu_rows(run)["launch_ns"].to_list() == [0] * 3
    assert unlaunched(run).is_empty()


def test_work_and_gaps_hold_what_somebody_reads() -> None:
    run = traced(*(one for at in range(500) for one in (launch(at + 1, 30 * at), kernel(at + 1, 30 * at + 10, 5))))
    assert (idle_gaps(run).height, sync_calls(run).height, by_rank(run)["count"].to_list()) == (499, 0, [500])
    assert (gpu_rows(run).estimated_size() + idle_gaps(run).estimated_size()) / 500 < 300, (
        "bytes for each piece of work"
    )


def test_work_from_before_the_window_is_kept_and_told_from_a_lost_launch() -> None:
    run = traced(kernel(5, 0, 7, "early"), launch(6, 2), kernel(6, 10, 5), kernel(8, 20, 4, "lost"))
    assert unlaunched(run).select("name", "before", "time_ns").rows() == [
        ("early", True, 7 * US),
        ("lost", False, 4 * US),
    ]
    assert by_rank(run)["busy_ns"].to_list() == [16 * US]


@pytest.mark.parametrize(
    ("between", "late_us", "cause"),
    [
        ([host("enumerate(DataLoader)#_X.__next__", 110, 80, "user_annotation")], 195, trace_gaps.LOADER),
        ([host("cudaStreamSynchronize", 20, 85, "cuda_runtime")], 195, trace_gaps.SYNC),
        ([host("cudaStreamSynchronize", 112, 80, "cuda_runtime")], 195, trace_gaps.SYNC),
        ([host("nccl:all_reduce", 110, 80, "user_annotation")], 195, trace_gaps.COMM_WAIT),
        ([host("aten::add", 110, 80)], 195, trace_gaps.HOST),
        ([], 20, trace_gaps.UNKNOWN),
    ],
)
def test_a_gap_is_charged_to_what_the_host_did(between: list[dict[str, Any]], late_us: float, cause: str) -> None:
    run = traced(launch(1, 0), kernel(1, 10, 90), *between, launch(2, late_us), kernel(2, 200, 10))
    assert idle_gaps(run).select("dur_ns", "cause").rows() == [(100 * US, cause)]


@pytest.mark.parametrize(
    ("silent_us", "busy_us", "cause"),
    [
        (5_000, 0, trace_gaps.OWN),
        (4_999, 0, trace_gaps.SYNC),  # as long as a queue of launches may be
        (6_000, 6_000, trace_gaps.OWN),
        (6_000, 6_001, trace_gaps.SYNC),  # calls of the driver take most of the gap
    ],
)
def test_a_wait_is_not_blamed_for_the_programs_own_work_behind_it(silent_us: float, busy_us: float, cause: str) -> None:
    late_us = 105 + silent_us + busy_us
    run = traced(
        launch(1, 5),
        kernel(1, 10, 95),
        host("cudaStreamSynchronize", 20, 85, "cuda_runtime"),
        host("cudaMalloc", 105, busy_us, "cuda_runtime"),
        host("aten::index", 105 + busy_us, silent_us),  # as work on the host
        host("cudaGetDevice", 105 + busy_us, silent_us, "cuda_runtime"),  # as a question
        launch(2, late_us),
        kernel(2, late_us + 5, 10),
    )
    assert idle_gaps(run)["cause"].to_list() == [cause]


@pytest.mark.parametrize(("copied_us", "rules"), [(20, ["SLO039"]), (19.9, [])])
def test_copies_of_the_host_count_where_nothing_computes_beside_them(copied_us: float, rules: list[str]) -> None:
    run = traced(
        row("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 0, copied_us),
        row("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 40, 40),  # beside a kernel
        kernel(None, copied_us, 100 - copied_us),
    )
    assert [one.rule for one in trace_host_copies(run)] == rules


def test_a_short_gap_after_a_timely_launch_is_latency_between_kernels() -> None:
    run = traced(launch(1, 0), launch(2, 3), kernel(1, 10, 90), kernel(2, 101, 10))
    assert idle_causes(run).select("cause", "gaps", "time_ns").rows() == [(trace_gaps.KERNEL, 1, US)]


def test_a_long_gap_beside_a_collective_that_was_launched_in_time_is_communication() -> None:
    run = traced(launch(1, 0), launch(2, 3), kernel(1, 10, 90), kernel(2, 200, 10, NCCL))
    assert idle_gaps(run)["cause"].to_list() == [trace_gaps.COMM_WAIT]


def test_gaps_add_up_to_the_idle_time_even_with_empty_kernels_in_them() -> None:
    run = traced(kernel(None, 0, 10), kernel(None, 50, 0), kernel(None, 90, 10), kernel(None, 95, 20))
    assert int(idle_gaps(run)["dur_ns"].sum()) == by_rank(run)["idle_ns"][0] == 80 * US


def test_a_wait_is_named_with_its_operator_and_the_frame_of_the_program() -> None:
    run = traced(
        step(3, 0, 500),
        host("train.py(42): loop", 0, 400, "python_function"),
        host("torch/_tensor.py(10): item", 90, 100, "python_function"),
        host("<built-in method item>", 95, 90, "python_function"),
        host("aten::item", 100, 80),
        host("aten::add", 100, 2),
        host("aten::_local_scalar_dense", 105, 70),
        launch(1, 1),
        host("cudaMemcpyAsync", 106, 4, "cuda_runtime", correlation=2),
        host("cudaStreamSynchronize", 112, 60, "cuda_runtime", correlation=3),
        host("aten::mul", 190, 10),
        kernel(1, 5, 150),
        row("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 160, 5, correlation=2),
    )
    found = sync_calls(run).row(0, named=True)
    assert (found["op"], found["frame"], found["step"]) == ("aten::_local_scalar_dense", "train.py(42): loop", 3)
    assert found["copy"] == "Memcpy DtoH (Device -> Pageable)"


def test_what_the_profiler_waits_for_at_its_end_is_not_the_programs() -> None:
    stop = host("cudaDeviceSynchronize", 150, 30, "cuda_runtime", correlation=7)
    run = traced(step(1, 0, 100), launch(1, 5), kernel(1, 10, 10), stop)
    assert sync_calls(run).is_empty()
    assert sync_calls(traced(launch(1, 5), kernel(1, 10, 10), stop)).is_empty()
    within = host("cudaDeviceSynchronize", 50, 30, "cuda_runtime", correlation=7)
    assert sync_calls(traced(step(1, 0, 100), launch(1, 5), within)).height == 1


@pytest.mark.parametrize(
    ("rank", "second", "found"),
    [
        (None, 3, [[2, 3, 4]]),
        (None, 2, [[2], [3]]),
        (0, 2, [[2, 3]]),
    ],
    ids=["files that follow each other", "files with a step in common", "a rank's own files"],
)
def test_steps_of_several_traces_are_one_clock_where_they_are_of_one_process(
    rank: int | None, second: int, found: list[list[int]]
) -> None:
    files = (("a.json", 1), ("b.json", second))
    run = traced(
        *(
            step(at, at * 100, 90) | {"source": source, "rank": rank}
            for source, first in files
            for at in range(first, first + 2)
        )
    )
    told = list(timed_steps(run))
    assert [rows["at"].to_list() for rows in told] == found
    assert {pace for rows in told for pace in rows["pace"]} == {90e-6}


def test_the_share_of_the_loader_counts_only_what_lies_within_steps() -> None:
    call = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    run = traced(step(1, 100, 100), host(call, 90, 20, "user_annotation"), host(call, 150, 40, "user_annotation"))
    found = loader_share(run).row(0, named=True)
    assert (found["calls"], found["wait_ns"], found["in_steps_ns"], found["steps_ns"]) == (
        2,
        60 * US,
        50 * US,
        100 * US,
    )
    assert found["share"] == pytest.approx(0.5)
    assert found["in_process"]


def test_a_collective_with_mm_in_its_signature_is_communication() -> None:
    run = traced(
        kernel(None, 0, 85, "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long)"), kernel(None, 90, 15)
    )
    found = dict(shares(kernels(run), "label").select("label", "share").iter_rows())
    assert found["communication"] == pytest.approx(0.85)


def of_ranks(*ranks: list[tuple[int, int]], shift_us: float = 0, attrs: str | None = None) -> Run:
    return traced(
        *(
            kernel(None, start + shift_us * rank, dur, NCCL)
            | {"source": f"r{rank}.json", "rank": rank, "attrs": attrs and attrs % number}
            for rank, rows in enumerate(ranks)
            for number, (start, dur) in enumerate(rows)
        )
    )


LATE = ([(0, 100), (200, 100)], [(90, 10), (290, 10)], [(40, 60), (240, 60)])


def test_the_rank_that_waits_least_is_the_one_the_others_wait_for() -> None:
    found = waits(of_ranks(*LATE))
    assert found.select("rank", "wait_ns", "last").rows() == [(1, 0, 2), (2, 100 * US, 0), (0, 180 * US, 0)]


def test_clocks_that_differ_between_hosts_do_not_change_who_waits() -> None:
    assert (
        waits(of_ranks(*LATE, shift_us=30)).select("rank", "wait_ns").rows()
        == waits(of_ranks(*LATE)).select("rank", "wait_ns").rows()
    )


def test_collectives_are_matched_by_group_and_number_where_windows_begin_apart() -> None:
    attrs = '{"Collective name":"allreduce","Process Group Name":"0","Seq":%d}'
    both = of_ranks([(0, 50), (200, 100)], [(10, 40), (290, 10)], attrs=attrs)
    spans = both.collect("spans")
    cut = run_of("cut", {"spans": spans.filter((pl.col("rank") != 1) | (pl.col("seq") > 2))})
    assert arrivals(both).height == 4
    assert arrivals(cut).select("rank", "wait_ns").rows() == [(0, 90 * US), (1, 0)]
    bare = cut.collect("spans").with_columns(attrs=pl.lit(None, pl.String))
    assert arrivals(run_of("bare", {"spans": bare})).is_empty(), "without numbers, unequal counts cannot be matched"


def test_kernels_that_did_not_run_at_once_are_not_the_same_collective() -> None:
    apart = [
        kernel(None, 1000 * rank + 10 * rank * n, 5, NCCL) | {"source": f"r{rank}", "rank": rank}
        for rank in (0, 1)
        for n in (1, 2, 9)
    ]
    assert not arrivals(traced(*apart)).filter(pl.col("wait_ns") > 5 * US).height


def test_chance_is_that_of_a_binomial_over_all_ranks() -> None:
    assert trace_ranks.chance_of(8, 5, 8) == pytest.approx(0.00984, abs=2e-5)
    assert trace_ranks.chance_of(4, 0, 4) == 1.0


def test_a_run_without_traces_has_empty_analyses() -> None:
    empty = Run("empty")
    for analysis in (
        by_rank,
        by_step,
        idle_gaps,
        idle_causes,
        sync_calls,
        waits,
        loader_share,
        unlaunched,
    ):
        assert analysis(empty).is_empty()
