"""Real metric files, where they are at hand, against readings by pandas and json: every point equal, bit for bit."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forensics.formats.metrics import table as metrics_csv
from forensics.formats.metrics import trainer_state
from forensics.formats.wandb.exports import history_parquet as wandb_history_parquet
from forensics.formats.wandb.exports import json_rows as wandb_export_json

ROOT = Path(__file__).parents[4] / "shared" / "corpus"
STATES = sorted(ROOT.rglob("*trainer_state*.json"))
TABLES = sorted(
    [*ROOT.glob("metrics/lightning_csv/**/*.csv"), *ROOT.glob("logs/*/*metrics.csv"), *ROOT.glob("logs/yolo*/*.csv")]
)
PARQUET = sorted(ROOT.rglob("*.parquet"))
LINES = sorted(ROOT.rglob("wandb-history.jsonl"))
Run = Callable[..., Any]
Point = tuple[str, float | None, str]
AXES = {"step", "epoch"}


def bits(value: float) -> str:
    return float(value).hex() if math.isfinite(value) else str(float(value))


def points(wrote: Any) -> Counter[Point]:
    frame = wrote.table("metrics").filter(pl.col("value_class") != "null")
    return Counter(
        (name, step, bits(value)) for name, step, value in frame.select("raw_name", "step", "value").iter_rows()
    )


def logged(rows: Iterable[dict[str, Any]], axis: str, axes: set[str]) -> Counter[Point]:
    found: Counter[Point] = Counter()
    for row in rows:
        for name, value in row.items():
            if name not in axes and isinstance(value, (int, float)) and not isinstance(value, bool):
                found[name, None if row.get(axis) is None else int(row[axis]), bits(value)] += 1
    return found


@pytest.mark.skipif(not STATES, reason="no trainer states at hand")
@pytest.mark.parametrize("path", STATES, ids=lambda p: "/".join(p.parts[-3:]))
def test_a_trainer_state_holds_what_json_reads(path: Path, run: Run) -> None:
    history = json.loads(path.read_bytes())["log_history"]
    wrote = run(trainer_state.read, path.name, path.read_bytes())
    assert points(wrote) == logged(history, "step", AXES)
    assert wrote.coverage.skipped_bytes == 0
    assert wrote.issues == []


@pytest.mark.skipif(not TABLES, reason="no tables at hand")
@pytest.mark.parametrize("path", TABLES, ids=lambda p: "/".join(p.parts[-2:]))
def test_a_table_holds_what_the_csv_module_reads(path: Path, run: Run) -> None:
    with path.open(newline="") as file:
        rows = [{k.strip(): float(v) for k, v in row.items() if v and v.strip()} for row in csv.DictReader(file)]
    axis = "step" if any("step" in row for row in rows) else "epoch"
    wrote = run(metrics_csv.read, path.name, path.read_bytes())
    assert points(wrote) == logged(rows, axis, AXES)
    assert wrote.coverage.skipped_bytes == 0


@pytest.mark.skipif(not PARQUET, reason="no Parquet files at hand")
@pytest.mark.parametrize("path", PARQUET, ids=lambda p: p.name)
def test_a_history_holds_what_polars_reads(path: Path, run: Run) -> None:
    rows = pl.read_parquet(path).to_dicts()
    wrote = run(wandb_history_parquet.read, path.name, path.read_bytes())
    assert points(wrote) == logged(rows, "_step", {"_step", "Unnamed: 0"})


@pytest.mark.skipif(not LINES, reason="no history lines at hand")
@pytest.mark.parametrize("path", LINES, ids=lambda p: p.parts[-2])
def test_history_lines_hold_what_json_reads(path: Path, run: Run) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    wrote = run(wandb_export_json.read, "scan.jsonl", path.read_bytes())
    found = points(wrote)
    wanted = logged(rows, "_step", {"_step", "_runtime", "_timestamp"})
    assert {key: count for key, count in wanted.items() if found[key] != count} == {}
