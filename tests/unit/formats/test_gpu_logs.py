"""GPU logs: every cell with its unit and device, rows without a header not guessed at, losses stated."""

from __future__ import annotations

import csv
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forensics.errors import NotMine
from forensics.formats.gpu import dcgm_exporter, dcgmi_dmon
from forensics.formats.gpu import nvidia_smi as nvidia_smi_csv
from forensics.pipeline import ingest_run

Run = Callable[..., Any]
ROOT = Path(__file__).parents[3]
REAL = sorted((ROOT.parent / "shared").glob("corpus/metrics/gpu_csv/*/*.csv"))
HEAD = "timestamp, index, utilization.gpu [%], memory.used [MiB]\n"


def test_a_cell_becomes_a_point_in_the_unit_of_its_name(run: Run) -> None:
    data = (HEAD + "2025/07/09 21:00:01.250, 3, 34 %, 2048 MiB\n").encode()
    rows = run(nvidia_smi_csv.read, "gpu.csv", data).table("metrics")
    assert rows.select("raw_name", "name", "value").rows() == [
        ("gpu.3.utilization.gpu", "gpu_util_pct", 34.0),
        ("gpu.3.memory.used", "gpu_mem_used_gib", 2.0),
    ]
    assert (
        rows["t_ns"].to_list()
        == [int(datetime(2025, 7, 9, 21, 0, 1, 250_000, tzinfo=UTC).timestamp() * 1000) * 10**6] * 2
    )
    assert rows["rank"].to_list() == rows["step"].to_list() == [None, None]


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 200_000)), min_size=1, max_size=20), st.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_units_in_cells_or_in_the_header_give_the_same(run: Run, cells: list[tuple[int, int]], units: bool) -> None:
    pct, mib = (" %", " MiB") if units else ("", "")
    data = HEAD + "".join(f"2025/07/09 21:00:01.250, 0, {u}{pct}, {m}{mib}\n" for u, m in cells)
    wrote = run(nvidia_smi_csv.read, "gpu.csv", data.encode())
    assert wrote.table("metrics").filter(pl.col("name") == "gpu_util_pct")["value"].to_list() == [u for u, _ in cells]
    used = wrote.table("metrics").filter(pl.col("name") == "gpu_mem_used_gib")["value"]
    assert [v * 1024 for v in used] == [m for _, m in cells]


REASONS = {"0x0000000000000060": ["hw_thermal_slowdown", "sw_thermal_slowdown"], "0x0000000000000001": []}


@pytest.mark.parametrize(("printed", "active"), REASONS.items())
def test_the_bits_of_the_reasons_are_those_that_fields_print_one_by_one(
    printed: str, active: list[str], run: Run
) -> None:
    data = f"timestamp,gpu,clocks.sm,clocks_throttle_reasons.active\n2024/08/01 12:00:00.000,3,700 MHz,{printed}\n"
    rows = run(nvidia_smi_csv.read, "smi.csv", data.encode()).table("metrics").filter(pl.col("value") == 1)
    assert sorted(rows["raw_name"]) == [f"gpu.3.clocks_throttle_reasons.{reason}" for reason in active]


def test_without_an_index_rows_of_one_look_are_numbered_in_order(run_fixture: Run) -> None:
    metrics = run_fixture(nvidia_smi_csv.read, "nvidia_smi_csv/ok-nounits").table("metrics")
    devices = metrics.filter(pl.col("name") == "gpu_util_pct")["raw_name"].to_list()
    assert devices[:5] == [f"gpu.{n % 4}.utilization.gpu" for n in range(5)]


def test_without_a_header_a_column_has_a_unit_and_no_meaning(run_fixture: Run) -> None:
    wrote = run_fixture(nvidia_smi_csv.read, "nvidia_smi_csv/ok-no-header")
    assert set(wrote.table("metrics")["name"]) == {f"gpu.0.column_{n}" for n in ("2_pct", "3_mib", "4", "5_w")}
    assert wrote.coverage.format == "nvidia-smi csv without a header"


def test_what_was_not_measured_gives_no_row_and_what_failed_a_null(run_fixture: Run) -> None:
    metrics = run_fixture(nvidia_smi_csv.read, "nvidia_smi_csv/crash-gpu-lost").table("metrics")
    assert metrics.filter(pl.col("raw_name").str.contains("fan")).is_empty()
    nulls = metrics.filter(pl.col("value_class") == "null")
    assert set(nulls["name"]) == {"gpu_util_pct", "gpu_power_w"}
    assert set(nulls["raw_name"].str.slice(0, 5)) == {"gpu.0"}


def test_a_line_that_is_no_row_is_stated(run: Run) -> None:
    text = "Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.\n"
    data = HEAD + "2025/07/09 21:00:01.250, 0, 3 %, 4 MiB\n" * 4 + text + "2025/07/09 21:00:02.250, 0, 5 %, 4"
    wrote = run(nvidia_smi_csv.read, "gpu.csv", data.encode())
    assert [(issue.code, issue.line) for issue in wrote.issues] == [("line-not-read", 6)]
    assert wrote.coverage.skipped_bytes == len(text) - 1


@pytest.mark.parametrize(
    "data",
    [b"", b"step,loss\n1,2.5\n", b"pid, process_name, used_gpu_memory [MiB]\n1, python, 4 MiB\n", b"1, 2, 3\n",
     b"timestamp,name,value\n", b"2025/07/09 21:00:01, 3 %, 4 %\n", b"step 1 loss 2.5, used 3 MiB\n"],
)  # fmt: skip
def test_other_tables_are_left_to_others(run: Run, data: bytes) -> None:
    with pytest.raises(NotMine):
        run(nvidia_smi_csv.read, "gpu.csv", data)


def test_dcgmi_rows_follow_the_columns_of_the_last_header(run_fixture: Run) -> None:
    wrote = run_fixture(dcgmi_dmon.read, "dcgmi_dmon/ok-columns-change")
    rows = wrote.table("metrics")
    assert rows.filter(pl.col("name") == "gpu_util_pct")["value"].tail(1).to_list() == [99.0]
    assert rows.filter(pl.col("name") == "gpu_mem_used_gib")["value"].tail(1).to_list() == [11000 / 1024]
    assert rows.filter(pl.col("seq") == 10)["raw_name"].to_list() == ["gpu.0.GPUTL", "gpu.0.FBUSD", "gpu.0.SMACT"]
    assert rows["t_ns"].null_count() == rows.height
    assert (wrote.issues, wrote.coverage.format, wrote.coverage.records) == ([], "dcgmi dmon", 49)


def test_the_tables_of_nvidia_smi_dmon_have_times_where_dates_are_printed(run_fixture: Run) -> None:
    wrote = run_fixture(dcgmi_dmon.read, "dcgmi_dmon/ok-nvidia-smi")
    rows = wrote.table("metrics")
    assert rows["t_ns"].null_count() == 0
    assert set(rows["name"]) == {"gpu_power_w", "gpu_temp_c", "gpu_util_pct", "gpu_mem_util_pct", "gpu_mem_used_gib"}
    assert wrote.coverage.format == "nvidia-smi dmon"


def test_a_dmon_row_that_is_cut_is_stated(run_fixture: Run) -> None:
    wrote = run_fixture(dcgmi_dmon.read, "dcgmi_dmon/broken-cut")
    assert [issue.code for issue in wrote.issues] == ["row-cut"]
    assert wrote.coverage.records == 47


@pytest.mark.parametrize("data", [b"", b"# a heading\nGPU 0 1 2\n", b"step 1 loss 2\n", b"# gpu\n 0\n"])
def test_text_without_a_dmon_header_is_left_to_others(run: Run, data: bytes) -> None:
    with pytest.raises(NotMine):
        run(dcgmi_dmon.read, "dmon.log", data)


def test_scrapes_are_told_apart_by_a_series_that_comes_again(run_fixture: Run) -> None:
    wrote = run_fixture(dcgm_exporter.read, "dcgm_exporter/ok-scrapes")
    rows = wrote.table("metrics")
    assert rows.group_by("seq").len()["len"].to_list() == [4, 4, 4]
    used = rows.filter(pl.col("raw_name") == "gpu.0.DCGM_FI_DEV_FB_USED")
    assert used["value"].to_list() == [20480 / 1024, 20481 / 1024, 20482 / 1024]
    assert used["name"].to_list() == ["gpu_mem_used_gib"] * 3


def test_each_log_finds_its_reader_in_a_run() -> None:
    for name in ("nvidia_smi_csv", "dcgmi_dmon", "dcgm_exporter"):
        frame = ingest_run(ROOT / "fixtures" / name).scan("sources").collect()
        assert set(frame["ingester"]) == {name}


@pytest.mark.skipif(not REAL, reason="no real logs here")
@pytest.mark.parametrize("path", REAL, ids=lambda p: p.parent.name)
def test_a_real_log_has_the_numbers_that_another_reader_finds(run: Run, path: Path) -> None:
    wrote = run(nvidia_smi_csv.read, path.name, path.read_bytes())
    with path.open(newline="") as lines:
        cells = [[cell.strip().split(" ")[0] for cell in row[1:]] for row in csv.reader(lines)]
    assert wrote.table("metrics")["value"].to_list() == [float(cell) for row in cells for cell in row]
    assert (wrote.coverage.skipped_bytes, wrote.issues) == (0, [])


@pytest.mark.parametrize(
    ("read", "table"),
    [
        (nvidia_smi_csv.read, b"name, memory.total [MiB]\nNVIDIA A100, 40960 MiB\n"),
        (nvidia_smi_csv.read, b"12 %, 40960 MiB, 3 W\n"),
        (dcgmi_dmon.read, b"#Entity   GPUTL\nID\nGPU 0     1\n"),
        (dcgm_exporter.read, b'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 98\n'),
    ],
)
def test_a_training_log_that_begins_with_such_a_table_is_left_to_others(
    run: Run, read: Callable[..., None], table: bytes
) -> None:
    assert run(read, "train.log", table).coverage.skipped_bytes == 0
    with pytest.raises(NotMine):
        run(read, "train.log", table + b"step 1 | loss 2.5 | lr 1e-3\n" * 30)


def test_the_last_cell_of_a_row_without_a_line_end_is_read_only_with_its_unit(run: Run) -> None:
    row = HEAD + "2025/07/09 21:00:01.250, 0, 34 %, 20480 MiB\n2025/07/09 21:00:02.250, 0, 35 %, "
    for end, read in (("20481 MiB", 4), ("2048", 3), ("[Unknown Er", 3)):
        assert run(nvidia_smi_csv.read, "gpu.csv", (row + end).encode()).table("metrics").height == read
