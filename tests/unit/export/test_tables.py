"""CSV, JSON lines, Parquet and the CSV for pandas: the same points, bit for bit, and names that do no harm."""

from __future__ import annotations

import csv
import io
import json
import math

import pandas as pd
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from forensics.export import target as targets
from forensics.export.points import select
from forensics.export.targets.pandas import TARGET as PANDAS
from forensics.store.run import Run
from forensics.store.schema import TABLES

from .conftest import HOSTILE, Back, bits, exported, made, points

VALUES = (0.1, 1 / 3, -0.0, 5e-324, 1.7976931348623157e308, math.nan, math.inf, -math.inf, None, 3.0)
T0 = round(1_750_000_000.25 * 1e9)


def run_of_values() -> list[dict[str, object]]:
    return [
        {"raw_name": n, "step": 2 * s, "seq": s, "line": s + 1, "rank": None if s < 5 else 1, "t_ns": T0, "value": v}
        for s, v in enumerate(VALUES)
        for n in ("loss", "grad_norm")
    ]


def test_the_walk_finds_a_target_per_file() -> None:
    assert targets.names() == ("csv", "jsonl", "pandas", "parquet", "tensorboard", "wandb")
    assert all(targets.load(name).name == name for name in targets.names())


def test_parquet_is_the_table_as_it_is() -> None:
    run = made(run_of_values())
    rows = pl.read_parquet(io.BytesIO(exported(run, "parquet").files[0].data))
    kept = run.collect("metrics").sort("source", "attempt", "rank", "seq", maintain_order=True)
    assert_frame_equal(rows, kept)
    assert [bits(v) for v in rows["value"]] == [bits(v) for v in kept["value"]]


@pytest.mark.parametrize("to", ["csv", "pandas"])
def test_csv_has_every_bit_of_every_number(to: str) -> None:
    run = made(run_of_values())
    rows = list(csv.DictReader(io.StringIO(exported(run, to).files[0].data.decode())))
    told = [(r["raw_name"], int(r["step"]), bits(float(r["value"])) if r["value"] else None) for r in rows]
    assert told == points(run, "raw_name", "step")
    assert {r["value"] for r in rows if r["value_class"] == "nan"} == {"NaN"}
    assert {r["value"] for r in rows if r["value_class"] == "null"} == {""}
    assert set(rows[0]) == set(TABLES["metrics"])


def test_jsonl_has_every_bit_and_never_a_null_for_a_nan() -> None:
    run = made(run_of_values())
    rows = [json.loads(line) for line in exported(run, "jsonl").files[0].data.splitlines()]
    told = [(r["raw_name"], r["step"], None if r["value"] is None else bits(float(r["value"]))) for r in rows]
    assert told == points(run, "raw_name", "step")
    assert {r["value"] for r in rows if r["value_class"] == "nan"} == {"NaN"}


def test_pandas_reads_its_file_exactly_with_the_lines_that_are_printed(tmp_path: pytest.TempPathFactory) -> None:
    names = ("null", "NA", *(name for name in HOSTILE if "\r" not in name))
    run = made([{"raw_name": n, "step": None if v is None else 1, "value": v} for n in names for v in VALUES])
    path = str(tmp_path / "points.csv")
    with open(path, "wb") as file:  # noqa: PTH123 - a path that is also text below
        file.write(exported(run, "pandas").files[0].data)
    scope: dict[str, pd.DataFrame] = {}
    exec("\n".join(PANDAS.opening).replace("FILE", repr(path)), scope)  # the lines under test
    read, kept = scope["points"], run.collect("metrics")
    assert read["raw_name"].tolist() == kept["raw_name"].to_list()
    assert [None if pd.isna(s) else s for s in read["step"]] == kept["step"].to_list()
    assert [bits(v) for v in read["value"]] == ["nan" if v is None else bits(v) for v in kept["value"]]
    assert read["value_class"].tolist() == kept["value_class"].to_list()
    assert scope["table"].shape == (2, len(names))


def test_a_name_never_becomes_a_formula_and_a_number_never_becomes_text() -> None:
    run = made([{"raw_name": n, "step": 1, "value": -1.5} for n in HOSTILE])
    for wide in (False, True):
        data = exported(run, "csv", wide=wide).files[0].data.decode()
        cells = [cell for row in csv.reader(io.StringIO(data)) for cell in row]
        assert not [c for c in cells if c.startswith(("=", "+", "@", "-")) and c != "-1.5"]
        assert not set(data) & set("\x1b\u202e\u2066\u200b\x07\r")
        assert cells.count("-1.5") == len(HOSTILE)


def test_wide_csv_reads_back_as_the_same_points(back: Back) -> None:
    values = [v for v in VALUES if v is not None]
    cells = [{"raw_name": n, "step": s, "seq": s, "value": v} for s, v in enumerate(values) for n in ("loss", "lr")]
    run = made([{**c, "t_ns": round((1.75e9 + c["step"] / 7) * 1e9), "epoch": c["step"] / 3} for c in cells])
    columns = ("raw_name", "name", "step", "epoch", "t_ns")
    assert points(back(exported(run, "csv", wide=True), "metrics.csv"), *columns) == points(run, *columns)


def test_wide_jsonl_reads_back_as_the_same_points_whatever_the_names(back: Back) -> None:
    cells = [{"raw_name": n, "step": s, "seq": s, "value": v} for s, v in enumerate(VALUES) for n in ("loss", *HOSTILE)]
    run = made([{**c, "rank": 2, "t_ns": round((1.75e9 + c["step"] / 7) * 1e9)} for c in cells])
    columns = ("raw_name", "rank", "step", "t_ns")
    assert points(back(exported(run, "jsonl", wide=True), "metrics.jsonl"), *columns) == points(run, *columns)


def test_a_metric_named_like_an_axis_does_not_become_one() -> None:
    run = made([{"raw_name": n, "step": 7, "value": 1.0} for n in ("loss", "step", "source")])
    row = json.loads(exported(run, "jsonl", wide=True).files[0].data)
    assert row == {"step": 7, "loss": 1.0, "metric/step": 1.0, "metric/source": 1.0}


def test_rows_of_several_series_say_which_they_are() -> None:
    rows = [
        {"raw_name": "loss", "source": s, "attempt": a, "step": 1, "value": 1.0}
        for s in ("a.log", "b.log")
        for a in (0, 1)
    ]
    lines = exported(made(rows), "csv", wide=True).files[0].data.decode().splitlines()
    assert lines == ["source,attempt,step,loss", "a.log,0,1,1.0", "a.log,1,1,1.0", "b.log,0,1,1.0", "b.log,1,1,1.0"]


def test_metrics_are_chosen_by_either_name() -> None:
    run = made([{"raw_name": n, "step": 1, "value": 1.0} for n in ("train_loss", "val_loss", "lr")])
    assert [r[0] for r in _selected(run, "loss")] == ["train_loss"]
    assert [r[0] for r in _selected(run, "*_loss")] == ["train_loss", "val_loss"]
    assert _selected(run, "nope") == []


def _selected(run: Run, glob: str) -> list[tuple[str]]:
    return select(run, [glob]).points.select("raw_name").rows()
