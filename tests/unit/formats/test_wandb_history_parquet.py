"""Parquet histories: nulls, NaN and order understood; claims that contradict each other refused before decoding."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from forensics.errors import InputError, LimitExceeded, NotMine
from forensics.formats.wandb.exports.history_parquet import read
from forensics.io.parquet_pages import shape_of

Run = Callable[..., Any]
WHOLE = Path(__file__).parents[3] / "fixtures" / "wandb_history_parquet" / "ok-artifact" / "0000.parquet"


def parquet(frame: pl.DataFrame, **options: Any) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer, **options)
    return buffer.getvalue()


def test_a_null_was_not_logged_and_a_nan_beside_nulls_is_a_nan(run_fixture: Run) -> None:
    wrote = run_fixture(read, "wandb_history_parquet/ok-artifact")
    loss = wrote.points("loss")
    assert [step for step, value in loss if math.isnan(value)] == list(range(33, 40))
    assert [step for step, _ in wrote.points("eval_loss")] == [9, 19, 29, 39]
    assert wrote.issues == []
    assert wrote.coverage.skipped_bytes == 0


def test_unsorted_rows_are_numbered_by_their_step(run_fixture: Run) -> None:
    wrote = run_fixture(read, "wandb_history_parquet/ok-unsorted")
    metrics = wrote.table("metrics").filter(pl.col("name") == "loss").sort("seq")
    assert metrics["step"].to_list() == metrics["seq"].to_list() == list(range(40))
    assert "Unnamed: 0" not in wrote.table("metrics")["raw_name"].to_list()
    assert [issue.code for issue in wrote.issues] == ["rows-unsorted"]


def test_a_nan_in_a_history_without_nulls_is_never_called_a_nan(run_fixture: Run) -> None:
    wrote = run_fixture(read, "wandb_history_parquet/ok-padded")
    classes = wrote.table("metrics").group_by("name", "value_class").len().sort("name", "value_class").rows()
    assert classes == [("eval_loss", "finite", 4), ("eval_loss", "null", 36), ("loss", "finite", 40)]
    assert [(issue.code, issue.count) for issue in wrote.issues] == [("nan-not-logged", 36)]


def test_a_table_of_another_trainer_is_read_by_its_step(run_fixture: Run) -> None:
    wrote = run_fixture(read, "wandb_history_parquet/ok-by-step")
    assert [step for step, _ in wrote.points("loss")] == [1, 2, 3]
    assert math.isnan(wrote.points("loss")[1][1])
    assert [issue.code for issue in wrote.issues] == ["column-not-read"]
    assert wrote.table("facts").is_empty()


def test_texts_that_print_numbers_are_numbers(run: Run) -> None:
    frame = pl.DataFrame({"_step": [0, 1, 2, 3], "loss": ["NaN", "Infinity", "0.5", None], "trainer/global_step": 9})
    metrics = run(read, "h.parquet", parquet(frame)).table("metrics").filter(pl.col("name") == "loss")
    assert metrics["value_class"].to_list() == ["nan", "+inf", "finite"]
    assert metrics["gstep"].to_list() == [9, 9, 9]


def test_a_history_of_exactly_500_rows_with_gaps_is_a_sample(run: Run) -> None:
    frame = pl.DataFrame({"_step": [3.0 * k for k in range(500)], "loss": [1.0] * 500})
    assert [issue.code for issue in run(read, "h.parquet", parquet(frame)).issues] == ["sampled-export"]


def test_a_file_without_a_footer_is_refused(run_fixture: Run) -> None:
    with pytest.raises(InputError, match="footer"):
        run_fixture(read, "wandb_history_parquet/broken-cut")


def test_a_table_without_a_step_is_left_to_others(run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "t.parquet", parquet(pl.DataFrame({"text": ["a"], "n": [1]})))


def test_a_small_file_that_claims_very_many_cells_is_refused(run: Run) -> None:
    data = parquet(pl.DataFrame({"_step": pl.repeat(0, 3_000_000, eager=True)}), compression="zstd")
    assert len(data) < 20_000
    with pytest.raises(LimitExceeded):
        run(read, "bomb.parquet", data)


def test_pages_that_contradict_the_footer_cost_their_column_only() -> None:
    frame = pl.DataFrame({"_step": list(range(50)), "loss": [float(k) for k in range(50)]})
    data = bytearray(parquet(frame, compression="uncompressed", statistics=False))
    second = data.index(b"PAR1", 0) + 4
    shape = shape_of(bytes(data))
    assert [column.name for column in shape.columns] == ["_step", "loss"]
    refused: list[str] = []
    for at in range(second, len(data) // 2):
        changed = bytes(data[:at]) + bytes((data[at] ^ 0x40,)) + bytes(data[at + 1 :])
        refused += [name for name, _ in shape_of(changed).refused]
    assert set(refused) <= {"_step", "loss"}
    assert refused


def test_flipped_bytes_anywhere_raise_nothing_but_an_input_error(run: Run) -> None:
    rng = random.Random(8)
    whole = WHOLE.read_bytes()
    ends = {"read": 0, "refused": 0}
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 3))):
            data[rng.randrange(4, len(data) - 8)] ^= 1 << rng.randrange(8)
        try:
            run(read, "h.parquet", bytes(data))
        except InputError:
            ends["refused"] += 1
        else:
            ends["read"] += 1
    assert min(ends.values()) > 0
