"""Forms in which loops of all kinds print a step, its loss and its time, each with a near miss."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from forensics.dialects._numbers import floats, seconds_of
from forensics.dialects.engine import parse_text
from forensics.dialects.learned.generic import learn
from forensics.dialects.learned.masking import slots
from forensics.dialects.learned.roles import last_word
from forensics.dialects.names import canonical, falls, is_duration, is_each_time, measured
from forensics.dialects.spec import Name

COUNT = 30


def read(lines: list[str]) -> pl.DataFrame:
    dialect = learn(lines)
    assert dialect is not None
    return parse_text(dialect, "\n".join(lines) + "\n")["metrics"]


def values(lines: list[str], name: str) -> list[float]:
    return read(lines).filter(pl.col("name") == name)["value"].to_list()


def steps(lines: list[str], name: str = "loss") -> list[int | None]:
    return read(lines).filter(pl.col("name") == name)["step"].to_list()


def loss(i: int) -> float:
    return round(3 / (1 + i / 10) + 0.01 * (i % 3), 4)


def took(i: int) -> float:
    return 0.25 + 0.01 * (i % 4)


@pytest.mark.parametrize(
    ("unit", "seconds"),
    [
        ("sec/step", 1.0),
        ("s/it", 1.0),
        ("s per batch", 1.0),
        ("ms/step", 0.001),
        ("ms per iter", 0.001),
        ("s/Schritt", 1.0),
    ],
)
def test_a_duration_of_a_step_is_its_time_in_whatever_unit(unit: str, seconds: float) -> None:
    lines = [f"global step {i}: loss = {loss(i)} ({took(i):.3f} {unit})" for i in range(COUNT)]
    assert values(lines, "step_time_s") == pytest.approx([took(i) * seconds for i in range(COUNT)])


@pytest.mark.parametrize("unit", ["s/epoch", "MB/s", "it/s", "loss/step", "x/step"])
def test_a_rate_and_a_duration_of_anything_else_are_no_time_of_a_step(unit: str) -> None:
    assert canonical(unit).canonical != "step_time_s"


@pytest.mark.parametrize(
    ("printed", "known"),
    [
        ("iter_ms", Name("step_time_s", 0.001)),
        ("perf/step_us", Name("step_time_s", 1e-6)),
        ("step_time_sec", Name("step_time_s", 1.0)),
        ("iteration_time_ms", Name("step_time_s", 0.001)),
        ("load_ms", Name("data_time_s", 0.001)),
        ("t_data_s", Name("data_time_s")),
        ("step_s", Name("step_s")),
        ("time this epoch", Name("step_time_s")),
        ("time_per_epoch", Name("step_time_s")),
        ("time this run", Name("time this run")),
        ("data_time_ms", Name("data_time_s", 0.001)),
        ("steps_sec", Name("steps_sec")),
        ("iter_secs", Name("iter_secs")),
        ("elapsed_ms", Name("elapsed_ms")),
        ("fwd_ms", Name("fwd_ms")),
        ("epoch_ms", Name("epoch_ms")),
    ],
)
def test_a_unit_of_time_behind_a_name_of_a_step_or_a_wait_is_its_unit(printed: str, known: Name) -> None:
    assert canonical(printed) == known


def test_the_second_of_two_rates_beside_each_other_is_a_rate() -> None:
    lines = [f"Step {i}/100; acc: 39.{i:02}; xent: {loss(i)}; {900 + i}/{800 + i} tok/s;" for i in range(COUNT)]
    assert values(lines, "tokens_per_sec") == [800.0 + i for i in range(COUNT)]


@pytest.mark.parametrize(
    ("printed", "known"),
    [
        ("loss (val)", Name("eval_loss")),
        ("loss (train)", Name("loss")),
        ("step time (ms)", Name("step_time_s", 0.001)),
        ("memory (MB)", Name("mem_allocated_gib", 1 / 1024)),
        ("loss (kl)", Name("loss (kl)")),
        ("loss (s)", Name("loss (s)")),
    ],
)
def test_the_word_in_brackets_behind_a_name_is_its_data_or_its_unit_or_a_part_of_it(printed: str, known: Name) -> None:
    assert canonical(printed) == known


def test_a_time_whose_unit_is_in_its_name_is_one_of_each_step_where_it_is_measured_anew() -> None:
    anew, clock = [3.0, 2.0, 3.0, 2.0, 3.0, 2.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert measured("dt (ms)", {""}, lambda: anew) == Name("step_time_s", 0.001)
    assert measured("dt (ms)", {""}, lambda: clock).canonical != "step_time_s"
    assert measured("dt (gb)", {""}, lambda: anew).canonical != "step_time_s"


def test_a_word_in_brackets_that_names_a_counter_is_left_out_of_the_name() -> None:
    assert [(s.key, s.text) for s in slots("loss (batch)=1.25")] == [("loss", "1.25")]
    assert [(s.key, s.text) for s in slots("(epoch: 3, iters: 40)")] == [("epoch", "3"), ("iters", "40")]


def test_a_value_stands_behind_its_name_and_its_counter() -> None:
    lines = [f"Train loss {i * 20} {loss(i)} Grad Norm 0.{i + 10} {took(i):.2f}s/it" for i in range(COUNT)]
    assert values(lines, "loss") == [loss(i) for i in range(COUNT)]
    assert steps(lines) == [i * 20 for i in range(COUNT)]
    lost = [line if i < 20 else f"Train loss {i * 20} nan Grad Norm nan 0.25s/it" for i, line in enumerate(lines)]
    assert sum(value != value for value in values(lost, "loss")) == COUNT - 20  # noqa: PLR0124 - NaN


def test_a_score_and_its_mean_are_no_counter_and_value() -> None:
    assert [s.key for s in slots("top1 89 85.2")] == ["top1", ""]


def test_both_numbers_behind_two_names_of_counters_have_theirs() -> None:
    lines = [f"epoch/iter: {i // 10}/{i * 20}  total_loss: {loss(i)}" for i in range(COUNT)]
    assert steps(lines) == [i * 20 for i in range(COUNT)]
    assert [s.key for s in slots("loss/acc: 2/6")] == ["loss/acc", ""]


def _by_epoch(i: int) -> str:
    return f"TRAIN Batch {i // 10}/{i % 10 * 50} loss {loss(i)} lr 0.001"


def _by_plan(i: int) -> str:
    return f"TRAIN Batch {i}/{COUNT} loss {loss(i)} lr 0.001"


@pytest.mark.parametrize(
    ("form", "counted"),
    [
        (_by_epoch, True),
        (_by_plan, False),
    ],
)
def test_a_plan_that_counts_within_another_number_is_the_batch_of_an_epoch(
    form: Callable[[int], str], *, counted: bool
) -> None:
    told = steps([form(i) for i in range(COUNT)])
    assert told == ([i // 10 * 500 + i % 10 * 50 for i in range(COUNT)] if counted else list(range(COUNT)))


def test_counts_behind_the_share_that_they_make_are_no_progress() -> None:
    lines = [f"Loss: {loss(i)} | Acc: {100 * (40 + i) / 6400:.3f}% ({40 + i}/6400) {i * 3}/100 " for i in range(COUNT)]
    assert steps(lines) == [i * 3 for i in range(COUNT)]


def test_counts_that_make_another_share_than_the_one_before_them_are_progress() -> None:
    lines = [f"Loss: {loss(i)} | Acc: {50 + i / 4:.3f}% ({20 + i}/6400) {i * 3}/100 " for i in range(COUNT)]
    assert steps(lines) == [20 + i for i in range(COUNT)]


def test_a_letter_glued_to_a_counter_with_a_plan_names_it() -> None:
    lines = [f"  E{i // 10 + 1}/3 S{i % 10 * 20 + 1}/200 | loss={loss(i)} acc=0.5" for i in range(COUNT)]
    assert steps(lines) == [i // 10 * 200 + i % 10 * 20 + 1 for i in range(COUNT)]
    assert slots("node S12 ready") == ()


def test_a_counter_of_batches_may_begin_again_without_an_epoch() -> None:
    lines = [f"Step {i % 10 * 50}: Gen Loss: {loss(i)}, Disc Loss: 0.6{i}" for i in range(COUNT)]
    assert steps(lines, "Gen Loss") == [i * 50 for i in range(COUNT)]


def test_a_counter_that_falls_once_or_behind_many_lines_or_elsewhere_counts_what_a_restart_lost() -> None:
    def form(i: int) -> str:
        return f"Step {i * 50}: Gen Loss: {loss(i)}, Disc Loss: 0.6{i}"

    once = [form(i) for i in (*range(20), *range(20))]
    beside = [line for _ in range(3) for line in ("ready", *map(form, range(10)))]
    far = [line for _ in range(3) for line in ([f"setting up part {k}" for k in "abcdef"] + list(map(form, range(10))))]
    elsewhere = [form(i) for i in (*range(10), *range(8), *range(12))]
    for lines in (once, beside, far, elsewhere):
        assert max(steps(lines, "Gen Loss")) < 1000, lines  # type: ignore[type-var] # all have a step


@pytest.mark.parametrize(
    ("key", "word"), [("Epoch Number", "epoch"), ("It.", "it"), ("number", "number"), ("grad norm", "norm")]
)
def test_the_word_that_counts_may_have_a_point_or_a_number_behind_it(key: str, word: str) -> None:
    assert last_word(key) == word


def test_an_evenly_rising_number_counts_beside_an_epoch_that_stays() -> None:
    lines = [f"Ep. {i // 15 + 1} : Upd {i * 100 + 1} : Cost {loss(i)} : gNorm 0.9{i}" for i in range(COUNT)]
    assert steps(lines, "grad_norm")[-1] == (COUNT - 1) * 100 + 1
    each = [f"Ep. {i + 1} : images {i * 100 + 100} : loss {loss(i)} : gNorm 0.9{i}" for i in range(COUNT)]
    assert steps(each) == list(range(1, COUNT + 1))


def test_a_line_of_a_counter_and_its_time_alone_is_a_record() -> None:
    lines = [line for i in range(COUNT) for line in (f"Epoch {i} completed in {10 + i % 3}.5s", f"   Loss: {loss(i)}")]
    assert values(lines, "step_time_s") == [10.5 + i % 3 for i in range(COUNT)]
    assert steps(lines) == list(range(COUNT))


@pytest.mark.parametrize(
    "form",
    [
        "Эпоха {i}/30 | шаг {s} | потери {v} | точность 0.5",
        "第{i}轮 训练损失:{v} 验证准确率:54.71% 用时:5.3秒",
        "エポック {i}/30  学習損失: {v}  時間: 2.5秒",
    ],
)
def test_words_of_other_languages_name_a_loss(form: str) -> None:
    lines = [form.format(i=i + 1, s=i * 10, v=loss(i)) for i in range(COUNT)]
    assert values(lines, "loss") == [loss(i) for i in range(COUNT)]


@pytest.mark.parametrize(("text", "seconds"), [("1:02:03", 3723.0), ("00:30", 30.0), ("12:30.5", 750.5)])
def test_a_duration_may_be_printed_as_a_clock(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds
    assert floats(pl.Series([text, "1.5", "1,000", None, "nan"])).to_list()[:4] == [seconds, 1.5, 1000.0, None]
    lines = [f"Epoch {i} loss {loss(i)} time: 0:{10 + i % 3}:05 eta: 0:10:00" for i in range(COUNT)]
    assert values(lines, "step_time_s") == [605.0 + 60 * (i % 3) for i in range(COUNT)]


def test_a_table_may_hold_times_as_a_clock_shows_them() -> None:
    head = "epoch     train_loss  valid_loss  time    "
    lines = [head, *(f"{i:<9} {loss(i):.6f}    {loss(i) + 1:.6f}    00:{30 + i % 3}     " for i in range(COUNT))]
    assert values(lines, "step_time_s") == [30.0 + i % 3 for i in range(COUNT)]


@pytest.mark.parametrize("text", ["12:75", "1:2:3", "2024-01-01"])
def test_a_clock_that_shows_no_time_is_no_number(text: str) -> None:
    assert floats(pl.Series([text])).to_list() == [None]


def test_a_time_that_is_left_and_a_time_of_day_are_no_durations() -> None:
    assert not is_duration("eta")
    assert not is_duration("time left")
    assert is_duration("Time elapsed")
    assert [s.key for s in slots("[12:30:01] step 5 loss 0.3")] == ["step", "loss"]


@pytest.mark.parametrize(
    ("course", "is_loss"),
    [
        ([3.0 - 0.1 * i for i in range(10)] + [2.0 + 2 * i for i in range(20)], True),
        ([3.0 - 0.02 * i for i in range(10)] + [3.0 + 2 * i for i in range(20)], False),
        ([2.0] * 3 + [1.8] * 4 + [1.59] * 3 + [3.0] * 20, True),
        ([2.0] * 3 + [1.8] * 4 + [1.61] * 3 + [3.0] * 20, False),
        ([2.0, 1.0, 1.0, 1.0, 1.0] + [3.0] * 12, False),
        ([2.0, 1.9] + [1.51] * 2 + [3.0] * 16, True),
        ([2.0, 1.9] + [1.53] * 2 + [3.0] * 16, False),
        ([2.0, 1.9, 1.0] + [3.0] * 17, False),  # one low number
        ([1.0 + 0.1 * i for i in range(30)], False),
        ([3.0, 2.0, 9.0, 9.0, 9.0, 9.0], False),
    ],
)
def test_a_loss_may_fall_by_a_fifth_within_its_first_third_and_rise_for_good(
    course: list[float], *, is_loss: bool
) -> None:
    assert falls(course) is is_loss


def test_the_time_before_a_bare_counter_may_stand_alone() -> None:
    lines = [f"{i}m {i % 60}s ({i * 50 + 1} {i * 3}%) {loss(i)}" for i in range(COUNT)]
    assert values(lines, "loss") == [loss(i) for i in range(COUNT)]


@pytest.mark.parametrize(
    ("text", "seconds"), [("2m 3s", 123.0), ("1h 2m 3s", 3723.0), ("0m11s", 11.0), ("5m 7s", 307.0)]
)
def test_a_duration_may_be_printed_in_minutes_and_seconds(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds
    assert floats(pl.Series([text])).to_list() == [seconds]


def test_an_epoch_and_its_minutes_above_its_losses_are_one_record() -> None:
    lines = [line for i in range(COUNT) for line in (f"Epoch: {i:02} | Time: 1m {i % 3}s", f"\tTrain Loss: {loss(i)}")]
    assert values(lines, "step_time_s") == [60.0 + i % 3 for i in range(COUNT)]
    assert steps(lines) == list(range(COUNT))


def test_the_losses_of_few_epochs_are_read_below_the_lines_of_their_batches() -> None:
    def epoch(e: int) -> list[str]:
        batches = [f"  Batch {40 * i:>5}  of  400.    Elapsed: 0:00:{10 + i}." for i in range(20)]
        return [f"======== Epoch {e + 1} / 4 ========", *batches, f"  Average training loss: {loss(e)}"]

    lines = [line for e in range(4) for line in epoch(e)]
    assert values(lines, "loss") == [loss(e) for e in range(4)]
    best = [line.replace("Average training loss", "Widest part") for line in lines]
    assert "Widest part" not in set(read(best)["name"])


@pytest.mark.parametrize(
    ("printed", "known"),
    [
        ("batch train loss", "loss"),
        ("Loss_AVG", "loss"),
        ("Running loss", "loss"),
        ("avg_val_loss", "eval_loss"),
        ("best train loss", "best train loss"),
        ("mean speed", "mean speed"),
    ],
)
def test_a_mean_of_a_loss_is_a_loss_and_a_best_one_is_not(printed: str, known: str) -> None:
    assert measured(printed, {""}, lambda: [1.0, 2.0]).canonical == known


def test_a_name_may_have_a_stroke_between_its_words() -> None:
    assert [s.key for s in slots("Loss: 0.5 | Tokens / Sec: 5669.1")] == ["Loss", "Tokens / Sec"]
    assert canonical("Tokens / Sec").canonical == "tokens_per_sec"


@pytest.mark.parametrize(
    ("course", "each"),
    [
        ([0.5] * 12 + [1.4] * 12, True),
        ([0.5] * 5 + [0.8] + [1.4] * 14, True),
        ([0.5] * 6 + [1.4] * 12, False),
        ([0.0] * 12 + [1.0] * 12, False),
        ([5.0] * 6 + [6.0] * 6 + [7.0] * 6 + [8.0] * 6, False),
        ([5.0] * 24, False),
    ],
)
def test_a_time_that_changes_once_or_twice_in_twenty_records_is_no_clock(course: list[float], *, each: bool) -> None:
    assert is_each_time(course) is each


def test_a_clock_that_begins_again_is_no_time_of_each_step_and_one_of_two_speeds_is() -> None:
    assert not is_each_time([1.0 + 12 * (n % 3) for n in range(30)])
    assert is_each_time([1.0 + 12 * (n % 2) for n in range(30)])
    assert is_each_time([0.2, 0.2, 0.5] * 10)
