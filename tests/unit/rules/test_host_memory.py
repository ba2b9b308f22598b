"""Memory of a process that grows: a large one by half a GiB, a small one by more than it held."""

from __future__ import annotations

import polars as pl
import pytest

from forensics.pipeline import ingest_bytes
from forensics.rules.oom.host import host_memory_grows
from forensics.store.run import run_of


@pytest.mark.parametrize(
    ("first_gib", "rise_gib", "told"),
    [
        (0.04, 0.12, True),
        (0.04, 0.09, False),  # less than `small_gib`
        (0.3, 0.25, False),  # less than it held
        (0.3, 0.35, True),
        (4.0, 0.45, False),
        (4.0, 0.6, True),
    ],
)
def test_a_small_process_grows_by_more_than_it_held(first_gib: float, rise_gib: float, *, told: bool) -> None:
    rows = [first_gib + rise_gib * i / 99 for i in range(100)]
    cells = {"source": "run.csv", "seq": range(100), "step": range(100), "name": "process_rss_gib", "value": rows}
    run = run_of("made", {"metrics": pl.DataFrame(cells).with_columns(raw_name="name")})
    assert [finding.cause for finding in host_memory_grows(run)] == ["host_leak"] * told


@pytest.mark.parametrize(
    ("name", "is_killed", "told"),
    [
        ("host_mem_used_gib", True, True),
        ("host_mem_used_gib", False, False),
        ("gpu_mem_used_gib", True, False),
        ("process_rss_gib", False, True),
    ],
)
def test_the_memory_of_a_whole_host_counts_where_the_run_was_killed(name: str, *, is_killed: bool, told: bool) -> None:
    rises = [60 + at / 2 for at in range(100)]  # one that doubles counts anyhow
    cells = {"source": "a.log", "seq": range(100), "step": range(100), "name": name, "value": rises}
    death = {"source": ["a.log"], "seq": [100], "line": [101], "code": ["shell-killed"], "text": ["Killed"]}
    tables = {"metrics": pl.DataFrame(cells).with_columns(pl.col("value").cast(pl.Float64), raw_name="name")}
    attrs = '{"role": "symptom", "shape": "crash", "cause": "silent_death_sigkill"}'
    tables |= {"events": pl.DataFrame(death | {"attrs": [attrs]})} if is_killed else {}
    assert [finding.cause for finding in host_memory_grows(run_of("made", tables))] == ["host_leak"] * told


@pytest.mark.parametrize(
    ("last", "severity"),
    [("srun: error: n7: task 1: Out Of Memory", "error"), ("srun: error: n7: task 1: Exited", "warning")],
)
def test_a_growth_that_ends_where_the_host_has_no_more_is_an_error(last: str, severity: str) -> None:
    rows = [f"{r}: iter {n} | loss {2 + 3 / n:.3f} | rss {40 + r * n / 2:.1f} GB" for n in range(1, 90) for r in (0, 1)]
    run = ingest_bytes("slurm-1.out", "\n".join([*rows, last, ""]).encode())
    assert [(f.severity.value, f.culprits) for f in host_memory_grows(run)] == [(severity, (1,))]
