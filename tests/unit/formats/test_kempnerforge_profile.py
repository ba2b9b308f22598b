"""The summary of KempnerForge's profiler: its tables as facts, and what a cut one lacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from forensics.errors import NotMine
from forensics.formats.trace.kempnerforge import read

Run = Callable[..., Any]


def test_each_table_becomes_facts_with_their_lines(run_fixture: Run) -> None:
    rows = run_fixture(read, "kempnerforge_profile/ok-summary").table("facts")
    found = dict(rows.select("key", "value").rows())
    assert found["trace.summary.time_s.MatMul/GEMM"] == "0.123"
    assert found["trace.summary.share_pct.Communication (NCCL)"] == "13.8"
    assert found["trace.summary.time_s.Total"] == "0.225"
    assert found["trace.summary.achieved_tflops"] == "184.4"
    assert found["trace.summary.kernel_efficiency_pct"] == "28.8"
    kernels = [json.loads(value) for key, value in found.items() if ".kernel." in key]
    assert len(kernels) == 6
    assert kernels[1]["calls"] == 16
    assert kernels[1]["gflops"] is None
    assert rows.row(0, named=True)["line"] == 3
    assert set(rows["family"]) == {"trace"}


def test_a_cut_summary_says_that_a_table_is_missing(run_fixture: Run) -> None:
    wrote = run_fixture(read, "kempnerforge_profile/broken-cut")
    assert [issue.code for issue in wrote.issues] == ["cut"]
    assert wrote.table("facts").height > 5


def test_another_summary_is_left_to_others(run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "summary.md", b"# Summary of the week\n| a | b |\n")
