"""Tables and rows as people print them: names in two lines, words before rows, lists in cells, no names at all."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from random import Random

import polars as pl
import pytest

from forensics.dialects.engine import parse_text
from forensics.dialects.learned import headers
from forensics.dialects.learned.generic import learn


def metrics(lines: list[str]) -> pl.DataFrame:
    dialect = learn(lines)
    return parse_text(dialect, "\n".join(lines) + "\n")["metrics"] if dialect is not None else pl.DataFrame()


def told(lines: list[str]) -> dict[str, tuple[int, int | None, int | None]]:
    """Each name with its count, its first and its last step."""
    rows = metrics(lines)
    if not rows.height:
        return {}
    own = rows.group_by("name", maintain_order=True).agg(pl.len(), pl.col("step").first(), last=pl.col("step").last())
    return {name: (count, first, last) for name, count, first, last in own.iter_rows()}


def falling(at: int, count: int, noise: Random) -> float:
    return 3 * exp(-4 * at / count) + 0.4 + noise.gauss(0, 0.03)


def folds(form: str, epochs: list[int]) -> list[str]:
    noise = Random(1)
    steps = [(e, b) for e in epochs for b in range(0, 500, 100)]
    return [form.format(e=e, b=b, v=falling(at, len(steps), noise)) for at, (e, b) in enumerate(steps)]


def test_batches_begin_anew_with_each_epoch_where_the_epochs_of_the_next_fold_do_too() -> None:
    rows = metrics(folds("Epoch: [{e}][{b}/500] Loss: {v:.4f} LR: 0.001", [1, 2, 3, 1, 2, 3]))
    loss = rows.filter(pl.col("name") == "loss")
    assert loss["step"].to_list() == [*range(0, 1500, 100)] * 2
    assert loss["attempt"].n_unique() == 2


def test_a_step_that_falls_with_the_epoch_alone_is_that_of_a_run_that_began_again() -> None:
    noise = Random(1)
    steps = [*range(0, 1500, 50), *range(1000, 3000, 50)]
    lines = [f"epoch {s // 500} step {s} loss {falling(at, 70, noise):.4f}" for at, s in enumerate(steps)]
    assert metrics(lines).filter(pl.col("name") == "loss")["step"].to_list() == steps


def table(row: Callable[[int, float, float], str], count: int = 30) -> list[str]:
    noise = Random(2)
    return [row(at, falling(at, count, noise), falling(at, count, noise) + 0.2) for at in range(1, count + 1)]


def test_the_names_of_a_table_may_stand_in_two_lines_between_bars() -> None:
    head = [
        "|=====|",
        "| Iteration | Elapsed | Mini-batch | Validation |",
        "|    | (mm:ss) |    Loss    |    Loss    |",
        "|=====|",
    ]
    found = told([*head, *table(lambda at, a, b: f"| {at * 30} | 00:{at} | {a:.4f} | {b:.4f} |")])
    assert found["loss"] == found["eval_loss"] == (30, 30, 900)


def test_a_row_of_numbers_is_no_second_line_of_names() -> None:
    found = told(["| step | train_loss |", *table(lambda at, a, _: f"| {at} | {a:.4f} |")])
    assert found == {"loss": (30, 1, 30)}


def test_of_a_list_in_a_cell_the_first_number_is_read() -> None:
    head = "Step      Train loss                Test loss"
    rows = metrics([head, *table(lambda at, a, b: f"{at:<9} [{a:.2e}, 1.0e+01]      [{b:.2e}, 1.0e+01]")])
    assert {name for name, *_ in rows.filter(pl.col("value") < 9).group_by("name").len().iter_rows()} == {
        "loss",
        "eval_loss",
    }
    assert rows["value"].max() != 10.0
    lost = metrics([head, *(f"{at:<9} [nan, nan]      [nan, nan]" for at in range(20))])
    assert lost.filter(pl.col("name") == "loss")["value"].is_nan().all()


def test_a_header_is_sought_among_words_above_the_last_number_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    is_header = headers._is_header
    monkeypatch.setattr(headers, "_is_header", lambda cells: asked.append(cells[0]) or is_header(cells))
    rows = [f"{at} nan" for at in range(30)]
    found = told(["nobody reads this", "step loss", *rows, "some words follow"])
    assert (found["loss"], {*asked}) == ((30, 0, 29), {"nobody", "step"})
    assert not [*headers.tables(["step loss", "more words"] * 30, 3)]


def test_lines_of_one_shape_are_asked_once_whether_they_name_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    heads = headers.heads_splits
    monkeypatch.setattr(headers, "heads_splits", lambda line: asked.append(line) or heads(line))
    epochs = [(f"| loss | {3 - at / 10:.3f} | {3.1 - at / 10:.3f} |", f"epoch {at:02d} | done") for at in range(10)]
    lines = [line for one in epochs for line in ("| metric | train | val |", *one)]
    assert {name: count for name, (count, *_) in told(lines).items()} == {"loss": 10, "eval_loss": 10}
    assert len(asked) == len({*asked}) == 3


def test_a_comment_may_hold_the_names() -> None:
    found = told(["# Epoch batch         loss        lr", *table(lambda at, a, _: f"   0 {at:5d}  {a:11.3g}  0.001")])
    assert found["loss"][0] == 30


def test_the_word_before_a_row_says_on_which_data_it_measures() -> None:
    head = ["  Train      #    Epoch      wal         loss        f_mae"]
    rows = table(
        lambda at, a, b: (
            f"! Train        {at:4d}  {7.0 * at:8.3f}  {a:.3g}  9.1\n! Validation {at:6d}  7.5  {b:.3g}  9.5"
        )
    )
    found = told([*head, *"\n".join(rows).split("\n")])
    assert found["loss"] == found["eval_loss"] == (30, 1, 30)
    assert found["val f_mae"] == found["f_mae"] == (30, 1, 30)


def test_a_word_before_a_row_below_a_header_without_one_is_not_read() -> None:
    rows = table(lambda at, a, _: f"Trial {at:4d}  7.0  {a:.3g}")
    assert "loss" not in told(["Epoch   wal   loss", *rows])


def titled(every: int, *, trains: bool) -> list[str]:
    noise, lines = Random(3), ["training"]
    for epoch in range(1, 9):
        lines += ["training"] * (trains and epoch > 1)
        lines += [f"epoch {epoch} batch {b} loss {falling(epoch, 8, noise):.3f}" for b in range(1, 11)]
        lines += [
            "validation",
            *(f"epoch {epoch} batch {b} loss {falling(epoch, 8, noise):.3f}" for b in range(1, every)),
        ]
    return lines


def test_between_titles_of_both_an_evaluation_may_count_its_batches() -> None:
    rows = metrics(titled(4, trains=True))
    assert {name: part.height for (name,), part in rows.group_by("name")} == {"loss": 80, "eval_loss": 24}
    assert rows["attempt"].n_unique() == 1
    assert rows.filter(pl.col("name") == "loss")["step"].to_list() == [*range(1, 81)]


def test_one_title_of_training_does_not_make_what_counts_again_an_evaluation() -> None:
    assert told(titled(1, trains=False))["loss"][0] == 80


def test_the_time_of_an_evaluation_is_that_of_no_step() -> None:
    noise = Random(4)
    lines = list[str]()
    for epoch in range(8):
        lines += [f"step {100 * epoch + b} loss {falling(epoch, 8, noise):.3f}" for b in range(0, 100, 10)]
        lines += [f"EVAL: [{b}/30] Elapsed 0m {b}s Loss: {falling(epoch, 8, noise):.3f}" for b in (0, 10, 20, 29)]
    assert "step_time_s" not in told(lines)


def split(form: str, words: tuple[str, str] = ("train", "valid")) -> list[str]:
    noise, lines = Random(5), list[str]()
    for epoch in range(12):
        lines.append(f"epoch {epoch} lr 2.5e-02")
        for word, last in zip(words, (301, 101), strict=True):
            loss = [falling(epoch, 12, noise) for _ in range(0, last, 50)]
            lines += [form.format(w=word, b=50 * at, v=one, t=90 - 20 * one) for at, one in enumerate(loss)]
        lines.append(f"train_acc {50 + epoch}.5")
    return lines


def test_rows_of_numbers_behind_the_name_of_their_data_have_a_loss_first() -> None:
    found = told(split("10:0{w[0]}1 {w} {b:03d} {v:e} {t:f}".replace("{w[0]}", "1")))
    assert found["loss"][0] == 84
    assert found["eval_loss"][0] == 36
    assert told(split("{w} {b:03d} {v:e} {t:f}"))["loss"] == (84, 0, 12 * 350 - 50)


def test_rows_behind_any_other_word_keep_no_name_beside_what_is_named() -> None:
    assert "loss" not in told(split("{w} {b:03d} {v:e} {t:f}", ("heap", "disk")))


def test_a_time_of_twelve_hours_is_no_name() -> None:
    assert "val acc" in told([f"11/21 10:{at:02d}:02 AM val acc {50 + at}.5 step {at}" for at in range(20)])


SHARED = "{s} {p:.0f}% (0m {t}s) {v:.4f} Satou / Japanese"


def shared(value: Callable[[int, Random], float], plan: int = 3000) -> list[str]:
    noise = Random(6)
    return [SHARED.format(s=50 * at, p=5000 * at / plan, t=at, v=value(at, noise)) for at in range(1, 61)]


def test_behind_the_share_of_its_plan_a_loss_may_stay() -> None:
    assert told(shared(lambda _, noise: 2.99 + noise.gauss(0, 0.03))) == {"loss": (60, 50, 3000)}


@pytest.mark.parametrize(
    "lines",
    [
        shared(lambda at, noise: 20.0 + at + noise.gauss(0, 3)),  # a score rises
        shared(lambda at, _: 2.0 + at),  # a clock
        shared(lambda _, noise: 0.5 + noise.gauss(0, 0.1)),  # a share
        [line.replace("% (", "% (", 1) for line in shared(lambda _, noise: 2.9 + noise.gauss(0, 0.03), plan=3000)[:12]],
    ],
)
def test_what_else_stands_behind_a_share_is_no_loss(lines: list[str]) -> None:
    assert told(lines) == {}


def test_a_share_that_is_not_that_of_the_counter_is_none_of_its_plan() -> None:
    noise = Random(7)
    lines = [
        SHARED.format(s=50 * at, p=noise.uniform(0, 100), t=at, v=2.9 + noise.gauss(0, 0.03)) for at in range(1, 61)
    ]
    assert told(lines) == {}


@pytest.mark.parametrize("form", ["iter {s} | dl={a:.3f} gl={b:.3f}", "[{s}] D: {a:.3f} G: {b:.3f} loss {a:.3f}"])
def test_two_players_may_be_called_by_their_letters(form: str) -> None:
    found = told(table(lambda at, a, b: form.format(s=at, a=a, b=b)))
    assert found["d_loss"] == found["g_loss"] == (30, 1, 30)


def test_one_of_two_letters_is_no_player() -> None:
    found = told(table(lambda at, a, b: f"iter {at} | dl={b:.3f} | loss {a:.3f}"))
    assert "dl" in found
    assert "d_loss" not in found


def test_a_norm_between_single_bars_is_one_and_parts_no_cells() -> None:
    found = told(["#  it    loss    |g|", *table(lambda at, a, b: f"{at:5d} {a:9.4f} {b:9.4f}")])
    assert found == {"loss": (30, 1, 30), "grad_norm": (30, 1, 30)}
    assert told(table(lambda at, a, b: f"step {at} loss={a:.4f}, |g|={b:.4f}")) == found


def test_columns_may_be_parted_by_one_blank_and_by_more() -> None:
    rows = table(lambda at, a, b: f"   {at:5d}     {a:.4f}   {b:.4f} 0.5")
    assert told(["  it  loss  val_loss  ess", *rows])["eval_loss"] == (30, 1, 30)


def test_a_short_cell_between_bars_is_a_cell() -> None:
    assert told(["step | g | loss", *table(lambda at, a, b: f"{at} | {b:.4f} | {a:.4f}")])["loss"] == (30, 1, 30)


@pytest.mark.parametrize(
    "form",
    [
        "[epoch {s}/30] train loss={a:.3f} acc={c:.2f} | val loss={b:.3f} acc={d:.2f}",
        "epoch {s}: train loss {a:.3f}, acc {c:.2f}, val loss {b:.3f}, acc {d:.2f}",
    ],
)
def test_what_stands_twice_is_once_of_the_data_that_its_part_began_with(form: str) -> None:
    rows = metrics(table(lambda at, a, b: form.format(s=at, a=a, b=b, c=0.9, d=0.5)))
    found = {name: (part.height, part["value"].max()) for (name,), part in rows.group_by("name")}
    assert found["acc"] == (30, 0.9)
    assert found["val acc"] == (30, 0.5)


def test_what_stands_twice_without_other_data_between_keeps_no_name_of_any() -> None:
    found = told(table(lambda at, a, b: f"step {at} loss {a:.3f} lr 0.1 aux loss {b:.3f} lr 0.2"))
    assert not any(name.startswith(("val", "aux lr")) for name in found)


@pytest.mark.parametrize("bar", ["|", "│"])
def test_rows_of_metrics_under_a_header_of_data_are_of_each_of_them(bar: str) -> None:
    lines: list[str] = []
    for e in range(1, 13):
        lines += [f"Epoch {e} summary", "+-----+-----+-----+", f"{bar} metric {bar} train {bar} valid {bar}"]
        lines += [f"{bar} loss   {bar} {2 / e:.4f} {bar} {2.2 / e:.4f} {bar}"]
        lines += [f"{bar} acc    {bar} {1 - 1 / e:.1%} {bar} {0.9 - 0.8 / e:.1%} {bar}"]
    found = told(lines)
    assert found["loss"] == found["eval_loss"] == (12, 1, 12)
    assert found["train acc"] == found["valid acc"] == (12, 1, 12)


def test_rows_under_a_header_of_other_words_are_of_no_data() -> None:
    lines = ["| metric | first | last |", *(f"| loss | {2 / at:.4f} | {1 / at:.4f} |" for at in range(1, 13))]
    assert "eval_loss" not in told(lines)
