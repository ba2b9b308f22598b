"""Rules on profiler traces: what else must hold beside the examples of their pages."""

from __future__ import annotations

import polars as pl

from forensics.model import Severity
from forensics.rules.slowdown.recompiles import trace_recompiles
from forensics.rules.slowdown.straggler import trace_straggler
from forensics.rules.slowdown.traces.busy import trace_exposed_communication
from forensics.rules.slowdown.traces.grew import trace_memory_ops_grew
from forensics.rules.slowdown.traces.idle import trace_data_starvation, trace_host_syncs
from forensics.store.run import Run, run_of

MS = 1_000_000
NCCL = "ncclDevKernel_AllReduce_Sum"


def traced(*rows: tuple[str, str, int, int], source: str = "t.json", rank: int | None = None) -> pl.DataFrame:
    frame = [
        {
            "source": source,
            "rank": rank,
            "seq": seq,
            "category": category,
            "name": name,
            "start_ns": start * MS,
            "dur_ns": dur * MS,
            "step": int(name[13:]) if name.startswith("ProfilerStep#") else None,
            "thread": None if category in {"kernel", "gpu_memcpy"} else "1/1",
        }
        for seq, (category, name, start, dur) in enumerate(rows)
    ]
    return pl.DataFrame(frame, infer_schema_length=None)


def run(*frames: pl.DataFrame) -> Run:
    return run_of("run", {"spans": pl.concat(frames, how="vertical_relaxed")})


def test_a_trace_of_the_host_only_can_still_show_a_slow_loader() -> None:
    mark = ("user_annotation", "ProfilerStep#4", 0, 100)
    slow = ("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 10, 40)
    found = list(trace_data_starvation(run(traced(mark, slow))))
    assert [f.numbers["lost_share"] for f in found] == [0.4]
    assert "num_workers=0" not in found[0].title
    assert not list(trace_data_starvation(run(traced(mark, (*slow[:3], 5)))))


def test_waits_of_a_host_whose_device_is_always_busy_are_told_and_not_warned_of() -> None:
    rows = [("kernel", "gemm", 0, 100), *(("cuda_runtime", "cudaStreamSynchronize", 10 * i, 9) for i in range(9))]
    found = list(trace_host_syncs(run(traced(*rows))))
    assert [f.severity for f in found] == [Severity.INFO]


def test_few_collectives_are_no_proof_of_a_slow_network() -> None:
    rows = [("kernel", NCCL, 10 * i, 9) for i in range(4)]
    assert list(trace_exposed_communication(run(traced(*rows))))
    assert not list(trace_exposed_communication(run(traced(*rows[:3]))))


def test_a_copy_that_grew_on_one_rank_is_not_compared_with_another_rank() -> None:
    def window(first: int, copy: int, source: str, rank: int) -> pl.DataFrame:
        work = (("kernel", "gemm", first, 90), ("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", first + 90, copy))
        return traced(*work, source=source, rank=rank)

    assert not list(trace_memory_ops_grew(run(window(0, 1, "r0", 0), window(500, 30, "r1", 1))))
    found = list(trace_memory_ops_grew(run(window(0, 1, "a", 0), window(500, 30, "b", 0), window(0, 1, "c", 1))))
    assert [f.onset.rank for f in found] == [0]


def test_a_first_step_that_compiles_is_a_warm_up() -> None:
    marks = [("user_annotation", f"ProfilerStep#{n}", 100 * n, 100) for n in (1, 2)]
    compiling = ("cpu_op", "entire_frame_compile (dynamo_timed)", 110, 80)
    assert not list(trace_recompiles(run(traced(*marks, compiling))))
    again = ("cpu_op", "entire_frame_compile (dynamo_timed)", 210, 80)
    assert [f.numbers["share"] for f in trace_recompiles(run(traced(*marks, compiling, again)))] == [0.8]


def job(late: int, times: int, ranks: int = 8, lost: int = 5) -> Run:
    """Collectives every 10 ms on each rank, to `times` of which the rank `late` comes `lost` ms after the others."""
    frames: list[pl.DataFrame] = []
    for rank in range(ranks):
        waits = [lost if n < times and rank == late else (rank + n) % ranks == 0 for n in range(8)]
        rows = [("kernel", NCCL, 10 * n + int(wait), 8 - int(wait)) for n, wait in enumerate(waits)]
        frames.append(traced(*rows, source=f"r{rank}", rank=rank))
    return run(*frames)


def test_a_rank_is_named_when_chance_cannot_explain_how_often_it_is_last() -> None:
    assert [f.culprits for f in trace_straggler(job(late=3, times=8))] == [(3,)]
    assert [f.culprits for f in trace_straggler(job(late=3, times=6))] == [(3,)]


def test_ranks_that_are_last_in_turn_are_not_named() -> None:
    assert not list(trace_straggler(job(late=3, times=0)))
    assert not list(trace_straggler(job(late=3, times=2)))
