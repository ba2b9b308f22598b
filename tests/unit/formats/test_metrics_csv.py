"""Comma-separated metrics: sparse rows, padded names, NaN kept, a cut last row dropped."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from forensics.errors import NotMine
from forensics.formats.metrics.table import read

Run = Callable[..., Any]


def test_an_empty_cell_was_not_logged(run_fixture: Run) -> None:
    wrote = run_fixture(read, "metrics_csv/ok-lightning")
    assert [step for step, _ in wrote.points("loss")] == list(range(9, 100, 10))
    assert [step for step, _ in wrote.points("eval_loss")] == [49, 99]
    assert wrote.table("metrics")["line"].to_list()[0] == 2
    assert wrote.table("metrics")["attempt"].unique().to_list() == [0]


def test_a_table_by_epoch_uses_the_epoch_as_its_step(run_fixture: Run) -> None:
    wrote = run_fixture(read, "metrics_csv/ok-yolo")
    metrics = wrote.table("metrics")
    assert metrics["step"].unique().sort().to_list() == metrics["epoch"].unique().sort().to_list() == list(range(1, 8))
    assert "train/box_loss" in metrics["raw_name"].to_list()


def test_a_printed_nan_is_a_nan(run_fixture: Run) -> None:
    loss = run_fixture(read, "metrics_csv/crash-nan").points("loss")
    assert [step for step, value in loss if math.isnan(value)] == list(range(15, 21))


def test_a_cut_last_row_is_stated_and_not_read(run_fixture: Run) -> None:
    wrote = run_fixture(read, "metrics_csv/broken-cut")
    assert [issue.code for issue in wrote.issues] == ["row-cut"]
    assert wrote.coverage.skipped_bytes > 0


def test_a_second_header_and_a_step_that_goes_back_begin_an_attempt(run: Run) -> None:
    data = b"step,loss\n1,3.0\n2,2.5\nstep,loss,lr\n1,2.9,0.1\n"
    metrics = run(read, "m.csv", data).table("metrics")
    assert metrics.select("attempt", "step", "name").rows() == [
        (0, 1, "loss"),
        (0, 2, "loss"),
        (1, 1, "loss"),
        (1, 1, "lr"),
    ]


def test_quotes_times_and_foreign_cells_are_understood(run: Run) -> None:
    data = b'step,timestamp,"a,b",note\r\n1,1750000000,"2.5",fine\r\n'
    row = run(read, "m.csv", data).table("metrics").row(0, named=True)
    assert (row["raw_name"], row["value"], row["t_ns"]) == ("a,b", 2.5, 1_750_000_000_000_000_000)


@pytest.mark.parametrize("rows", [3, 400])
@pytest.mark.parametrize(
    ("cell", "second"), [("2025-11-27 14:20:{n:02}", 1), ("{unix}.5", 1), ("0.{n}", None), ("1{n:02}", None)]
)
def test_a_column_that_may_hold_durations_is_the_time_where_its_first_row_holds_a_date(
    cell: str, second: int | None, rows: int, run: Run
) -> None:
    lines = (f"{cell.format(n=n % 60, unix=1764253244 + n % 60)},{n},0.5" for n in range(1, rows + 1))
    metrics = run(read, "m.csv", table("time,step,loss", *lines)).table("metrics")
    known = metrics.filter(pl.col("name") == "loss")["t_ns"].cast(pl.Datetime("ns")).dt.second().to_list()
    assert (known[0], len(known)) == (None if second is None else 45 if "unix" in cell else second, rows)
    assert (metrics["raw_name"] == "time").any() == (second is None)


def test_a_row_with_too_many_cells_is_stated(run: Run) -> None:
    wrote = run(read, "m.csv", b"step,loss\n1,2.0\n2,1.9,7\n3,1.8\n")
    assert [(issue.code, issue.line) for issue in wrote.issues] == [("row-not-read", 3)]
    assert wrote.points("loss") == [(1, 2.0), (3, 1.8)]


def table(*lines: str) -> bytes:
    return "\n".join(lines).encode()


def test_the_first_column_is_the_axis_where_it_counts_and_another_falls_as_a_loss_does(run: Run) -> None:
    wrote = run(read, "m.csv", table("pass,fit", *(f"{at},{3 / at + at % 2 / 9:.4f}" for at in range(1, 20))))
    assert wrote.table("metrics")["step"].to_list() == list(range(1, 20))
    short = run(read, "m.csv", table("ep,auc", *(f"{at},{at / 40:.4f}" for at in range(1, 20))))
    assert short.table("metrics")["step"].to_list() == list(range(1, 20))


@pytest.mark.parametrize(
    "data",
    [
        table("index,used", *(f"{at},{at % 7 / 9:.4f}" for at in range(1, 20))),
        table("t,price", *(f"{at * at},{3 / at:.4f}" for at in range(1, 20))),
        table("row,left", *(f"{at},{40 - at}" for at in range(1, 20))),
    ],
    ids=["nothing falls", "uneven", "no fraction"],
)
def test_a_table_whose_first_column_only_enumerates_is_left_to_others(data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "m.csv", data)


@pytest.mark.parametrize("data", [b"", b"name,score\na,1\n", b"1,2\n3,4\n", b"step,loss\n", b"step,loss\nx,y\n"])
def test_other_tables_are_left_to_others(data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "m.csv", data)


def test_progress_of_reinforcement_learning_is_read_by_its_own_axis(run_fixture: Run) -> None:
    board = run_fixture(read, "metrics_csv/ok-stable-baselines")
    assert [step for step, _ in board.points("rollout/ep_rew_mean")] == [512 * k for k in range(1, 7)]
    assert [step for step, _ in board.points("loss")] == [512 * k for k in range(2, 7)]
    spinning = run_fixture(read, "metrics_csv/ok-spinning-up")
    metrics = spinning.table("metrics")
    assert metrics["step"].unique().sort().to_list() == [4000 * k for k in range(1, 6)]
    assert metrics["epoch"].unique().sort().to_list() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [step for step, value in spinning.points("StdEpRet") if math.isnan(value)] == [16_000]


def test_columns_of_the_configuration_are_facts_and_no_points(run_fixture: Run) -> None:
    wrote = run_fixture(read, "metrics_csv/ok-rllib")
    assert wrote.table("facts").select("key", "value", "family").rows() == [
        ("lr", "0.0007", "config"),
        ("env", '"Ledge-v2"', "config"),
    ]
    assert set(wrote.table("metrics")["raw_name"]) == {"episode_reward_mean", "timesteps_total"}


def test_a_quoted_cell_may_hold_a_line_end_and_the_lines_still_count(run: Run) -> None:
    data = b'step,note,loss\n1,"two\nlines",2.5\n2,"one",2.0\n'
    metrics = run(read, "m.csv", data).table("metrics")
    assert metrics.select("step", "value", "line").rows() == [(1, 2.5, 2), (2, 2.0, 4)]


def test_a_quote_that_never_closes_costs_no_other_row(run: Run) -> None:
    data = b"step,loss\n1,2.5\n" + b'2,"2.4\n' + b"".join(b"%d,2.0\n" % k for k in range(3, 300))
    wrote = run(read, "m.csv", data)
    assert [step for step, _ in wrote.points("loss")] == list(range(1, 300))


def test_a_table_of_another_language_has_its_decimals_behind_a_comma(run: Run) -> None:
    data = b"epoche;schritt;verlust\n1;50;2,3311\n2;100;0,091\n3;150;1,5\n"
    assert run(read, "verlauf.csv", data).points("loss") == [(50, 2.3311), (100, 0.091), (150, 1.5)]


@pytest.mark.parametrize("columns", ["step,metric,value", "step,metric.name,value", "step,metricName,metricValue"])
def test_a_long_table_names_each_number_in_its_row(columns: str, run: Run) -> None:
    rows = "".join(f"{at},{name},{at / 4}\n" for at in range(1, 6) for name in ("loss", "grad_norm"))
    wrote = run(read, "m.csv", f"{columns}\n{rows}".encode())
    assert wrote.points("loss") == wrote.points("grad_norm") == [(at, at / 4) for at in range(1, 6)]


def test_a_column_of_numbers_names_no_other(run: Run) -> None:
    wrote = run(read, "m.csv", b"step,key,value\n1,7,0.5\n2,8,0.25\n")
    assert {*wrote.table("metrics")["raw_name"]} == {"key", "value"}


@pytest.mark.parametrize(("rows", "is_read"), [(13, True), (11, False)])
def test_rows_of_a_loss_that_nothing_counts_count_themselves(rows: int, *, is_read: bool, run: Run) -> None:
    data = b"loss,lr\n" + b"".join(b"%.2f,0.1\n" % (3 - at / 10) for at in range(rows))
    if is_read:
        assert [step for step, _ in run(read, "losses.csv", data).points("loss")] == [*range(1, rows + 1)]
    else:
        with pytest.raises(NotMine):
            run(read, "losses.csv", data)


def test_dates_of_a_column_of_times_are_the_times(run: Run) -> None:
    rows = "".join(f"2025-04-02T10:00:{at:02}.250000+00:00,{at},0.5\n" for at in range(1, 9))
    metrics = run(read, "m.csv", b"timestamp,epoch,loss\n" + rows.encode()).table("metrics")
    assert metrics["t_ns"].diff().drop_nulls().unique().to_list() == [10**9]


@pytest.mark.parametrize(("begin", "steps"), [(1_700_000_000, [4000, 4020]), (100, [100, 140])])
def test_seconds_since_1970_before_the_counter_are_no_steps(run: Run, begin: int, steps: list[int]) -> None:
    rows = "".join(f"{begin + n * 40},{4000 + n * 20},{2.2 - n * 0.01:.4f}\n" for n in range(20))
    metrics = run(read, "m.csv", f"wallclock,upd,objective\n{rows}".encode()).table("metrics")
    assert metrics["step"].unique().sort().to_list()[:2] == steps


@pytest.mark.parametrize(("end", "steps"), [(-1, [1, 2, 3, 4]), (200, [100, 200, 100, 200])])
def test_steps_of_an_epoch_whose_end_is_minus_one_are_counted_by_their_rows(
    end: int, steps: list[int], run: Run
) -> None:
    rows = "".join(f"{epoch},{step},0.{epoch}{n}\n" for epoch in (0, 1) for n, step in enumerate((100, end)))
    wrote = run(read, "similarity_evaluation_results.csv", f"epoch,steps,cosine_spearman\n{rows}".encode())
    assert [step for step, _ in wrote.points("cosine_spearman")] == steps
    assert wrote.table("metrics")["epoch"].to_list() == [0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("NEP-7/val/loss.csv", "val/loss"),
        ("NEP-7/loss.csv", "loss"),
        ("run-exp_validation-tag-epoch_loss.csv", "validation/epoch_loss"),
        ("run-exp_7-tag-grad_norm.csv", "grad_norm"),
        ("prices/market.csv", "value"),
    ],
)
def test_a_column_that_is_called_a_value_has_the_name_of_its_path(path: str, name: str, run: Run) -> None:
    rows = "".join(f"{at},{at / 4},{1_700_000_000 + at}.5\n" for at in range(5))
    wrote = run(read, path, b"step,value,timestamp\n" + rows.encode())
    assert {*wrote.table("metrics")["raw_name"]} == {name}


def test_of_many_rows_the_value_has_that_name_too(run: Run) -> None:
    rows = "".join(f"{at},{at / 4:.6f}\n" for at in range(5_000))
    assert len(run(read, "val/loss.csv", b"step,value\n" + rows.encode()).points("eval_loss")) == 5_000


@pytest.mark.parametrize(
    ("first", "every", "steps"),
    [(0, 10, [0, 10, 20, 30, 40, 50]), (10, 10, [10, 20, 30, 40, 50, 60]), (4, 7, [4, 11, 18, 22, 29, 36])],
)
def test_batches_of_an_epoch_are_counted_on_in_the_next(first: int, every: int, steps: list[int], run: Run) -> None:
    rows = "".join(f"{epoch},{first + every * n},2.{n}\n" for epoch in (0, 1) for n in range(3))
    metrics = run(read, "m.csv", f"epoch,batch,loss\n{rows}".encode()).table("metrics")
    assert metrics["gstep"].to_list() == steps
    assert metrics["step"].to_list()[3:] == [first + every * n for n in range(3)]
    assert metrics["attempt"].unique().to_list() == [0]


def test_one_row_for_each_epoch_counts_its_epochs(run: Run) -> None:
    wrote = run(read, "m.csv", b"epoch,batches,loss\n1,40,2.5\n2,40,2.0\n3,40,1.5\n")
    assert [step for step, _ in wrote.points("loss")] == [1, 2, 3]


@pytest.mark.parametrize("rows", [3, 400])
@pytest.mark.parametrize("column", ["phase", "split", "metric.context.subset"])
def test_rows_of_held_out_data_make_a_series_of_their_own(column: str, rows: int, run: Run) -> None:
    lines = "".join(f"{at},{data},{at / size}\n" for at in range(rows) for data, size in (("train", 4), ("Valid", 2)))
    wrote = run(read, "m.csv", f"epoch,{column},loss\n{lines}".encode())
    assert wrote.points("loss") == [(at, at / 4) for at in range(rows)]
    assert wrote.points("eval_loss") == [(at, at / 2) for at in range(rows)]


@pytest.mark.parametrize("rows", [3, 900])
def test_a_row_that_ends_before_its_split_is_one_of_training(rows: int, run: Run) -> None:
    lines = [f"{at},{at / 4},{at / 8},{data}" for at in range(1, rows + 1) for data in ("train", "val")]
    data = "\n".join(["step,loss,acc,phase", *lines, f"{rows + 1},0.5", ""])
    wrote = run(read, "m.csv", data.encode())
    assert wrote.points("loss") == [*((at, at / 4) for at in range(1, rows + 1)), (rows + 1, 0.5)]
    assert wrote.points("eval_loss") == [(at, at / 4) for at in range(1, rows + 1)]
    assert len(wrote.points("val/acc")) == len(wrote.points("acc")) == rows


def test_a_line_of_nothing_below_words_is_no_table(run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "m.csv", b'{"step": 1, "loss": 2.5}\n{"r)\x05\r;9')


def test_a_row_that_ends_before_its_name_costs_itself_alone(run: Run) -> None:
    wrote = run(read, "m.csv", b"step,value,metric\n1,2.5,loss\n2,2.0,loss\n3,1.5\n4,1.0,loss\n")
    assert wrote.points("loss") == [(1, 2.5), (2, 2.0), (4, 1.0)]
    assert {*wrote.table("metrics")["raw_name"]} == {"loss"}


def test_a_name_that_says_so_itself_gets_no_second_word_of_its_data(run: Run) -> None:
    wrote = run(read, "m.csv", b"step,runContext,metricName,metricValue\n1,validate,val_loss,2\n2,train,loss,1.5\n")
    assert wrote.table("metrics")["raw_name"].to_list() == ["val_loss", "loss"]


def test_a_column_of_other_words_is_no_split(run: Run) -> None:
    wrote = run(read, "m.csv", b"step,phase,loss\n1,warmup,2.5\n2,train,2.0\n3,val,1.5\n")
    assert wrote.points("loss") == [(1, 2.5), (2, 2.0), (3, 1.5)]


@pytest.mark.parametrize("rows", [3, 900])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("above", [["# run by: anna, seed 7, lr 1,5"], ["# abalone", "#", "# tanh, mse"], []])
@pytest.mark.parametrize("mark", ["", "# "])
def test_comments_above_a_header_are_no_rows(mark: str, above: list[str], delimiter: str, rows: int, run: Run) -> None:
    lines = [f"{n}{delimiter}{1 + n / 8}{delimiter}0.1" for n in range(1, rows + 1)]
    data = "\n".join([*above, f"{mark}step{delimiter}loss{delimiter}lr", *lines, "# stopped by hand", ""])
    wrote = run(read, "m.csv", data.encode())
    assert [step for step, _ in wrote.points("loss")] == [*range(1, rows + 1)]
    assert wrote.issues == []


def test_a_comment_alone_is_no_header(run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, "m.csv", b"# step by step, a loss\n# nothing else, here\n")
