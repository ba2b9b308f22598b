"""Small files beside a W&B run: facts without persons, system metrics with their units, copies never counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from forensics.errors import NotMine
from forensics.formats.wandb._system import system_name
from forensics.formats.wandb.side import read

Run = Callable[..., Any]


def facts(wrote: Any) -> dict[str, str]:
    return dict(wrote.table("facts").select("key", "value").iter_rows())


def test_a_summary_is_facts_and_no_metrics(run_fixture: Run) -> None:
    wrote = run_fixture(read, "wandb_side/ok-summary")
    assert facts(wrote) == {"summary.train/loss": '"NaN"', "summary.best.acc": "0.71"}
    assert not wrote.table("metrics").height


def test_metadata_name_no_person_no_folder_and_no_secret(run_fixture: Run) -> None:
    known = facts(run_fixture(read, "wandb_side/ok-metadata"))
    assert (known["program"], known["git_commit"], known["host"]) == ('"train.py"', '"5d1f0c2"', '"node-7"')
    assert known["args"] == '["--lr","0.004","--api-key=***"]'
    assert not any("someone" in value for value in known.values())


def test_old_events_are_metrics_in_the_units_of_their_names(run_fixture: Run) -> None:
    rows = run_fixture(read, "wandb_side/ok-events").table("metrics")
    first = dict(rows.head(4).select("name", "value").iter_rows())
    assert first == {
        "gpu_util_pct": 81.5,
        "gpu_mem_used_pct": 62.25,
        "host_cpu_util_pct": 14.5,
        "process_rss_gib": 2.0,
    }
    assert rows["t_ns"][0] == 1_590_000_000_000_000_000


def test_a_cut_last_line_costs_that_line(run_fixture: Run) -> None:
    wrote = run_fixture(read, "wandb_side/broken-cut-events")
    assert wrote.table("metrics").height == 20
    assert [issue.code for issue in wrote.issues] == ["row-cut"]
    assert wrote.coverage.skipped_bytes > 0


def test_a_cut_summary_is_a_stated_loss(run_fixture: Run) -> None:
    wrote = run_fixture(read, "wandb_side/broken-cut-summary")
    assert [issue.code for issue in wrote.issues] == ["not-json"]
    assert wrote.coverage.read_bytes == 0


def test_a_history_under_files_is_not_counted_again(run: Run) -> None:
    wrote = run(read, "run-1/files/wandb-history.jsonl", b'{"loss": 1, "_step": 0}\n')
    assert not wrote.frames
    assert wrote.coverage.reason.startswith("copy")


def test_a_history_of_the_flat_layout_is_left_to_the_reader_of_json_lines(run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "run-1/wandb-history.jsonl", b'{"loss": 1, "_step": 0}\n')


@pytest.mark.parametrize(
    ("key", "version", "name", "scale"),
    [
        ("cpu", "0.12.15", "host_cpu_util_pct", 1),
        ("cpu", "0.16.3", "process_cpu_pct", 1),
        ("gpu.3.memoryAllocatedBytes", "", "gpu_mem_used_gib", 2**-30),
        ("gpu.process.3.gpu", "", "gpu_process_util_pct", 1),
        ("disk.\\/.usageGB", "", "disk_used_gib", 1),
        ("disk./.usagePercent", "", "disk_used_pct", 1),
        ("something.new", "", "system.something.new", 1),
    ],
)
def test_units_follow_the_key_and_the_version(key: str, version: str, name: str, scale: float) -> None:
    found = system_name(key, version)
    assert (found.canonical, found.scale) == (name, scale)
