"""The numbers of a line, whatever the spelling of those that are none."""

from __future__ import annotations

from math import isinf, isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.dialects.learned.masking import Slot, _places, names_hold, shapes_of, slots


def value(text: str) -> float:
    return Slot("loss", text, "", "", over=False).value


@pytest.mark.parametrize("word", ["nan", "NaN", "NAN"])
@pytest.mark.parametrize("tail", ["", ".0"])
def test_every_spelling_of_nan_is_nan(word: str, tail: str) -> None:
    assert isnan(value(word + tail))
    assert isnan(value("-" + word + tail))


@pytest.mark.parametrize("word", ["inf", "Inf", "INF", "infinity", "Infinity"])
@pytest.mark.parametrize("tail", ["", ".0"])
def test_every_spelling_of_infinity_is_infinite(word: str, tail: str) -> None:
    assert isinf(value(word + tail))
    assert value("-" + word + tail) < 0


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_what_it_says(number: float) -> None:
    assert value(repr(number)) == number
    assert value(f"{number:,.1f}") == float(f"{number:.1f}")


@pytest.mark.parametrize("date", ["11/22/2026 20:17:13", "[11/22 20:17:13]", "11/22/26 20:17:13"])
def test_a_date_with_slashes_counts_nothing(date: str) -> None:
    assert [(slot.key, slot.text) for slot in slots(f"{date} - step 20: loss 1.60")] == [
        ("step", "20"),
        ("loss", "1.60"),
    ]


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("Validation loss 6312: 0.149", ["step", "Validation loss"]),
        ("train accuracy 12 : 0.81", ["step", "train accuracy"]),
        ("loss 0.5: 0.149", ["loss", ""]),
        ("loss: 12: 0.149", ["loss", ""]),
        ("rank 3: 0.149", ["rank", ""]),
    ],
)
def test_a_whole_number_between_a_name_and_its_colon_counts(line: str, keys: list[str]) -> None:
    assert [slot.key for slot in slots(line)] == keys


def test_a_count_of_a_plan_is_no_date() -> None:
    assert [slot.over for slot in slots("11/22 loss 1.60")] == [False, True, False]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("layer3 loss: 0.5 of 7", "layer4 loss: 0.7 of 9"),
        ("loss nan.0 lr 0.1", "loss nan.5 lr 0.1"),
        ("Loss for epoch 3: 0.5", "Loss for epoch 4: 0.25"),
        ("E3 iter[ 14/ 15] loss 2.5", "E4 iter[ 15/ 15] loss 1.5"),
    ],
)
def test_a_line_is_read_alike_whatever_line_of_its_shape_was_read_before(one: str, other: str) -> None:
    _places.cache_clear()
    alone = slots(other)
    _places.cache_clear()
    slots(one)
    assert slots(other) == alone
    assert [slot.text for slot in alone] != [slot.text for slot in slots(one)]


@pytest.mark.parametrize(
    ("line", "holds"), [("step 12 loss: 0.5", True), ("layer3 loss: 0.5", False), ("[07:08:09] it 3 loss 0.5", True)]
)
def test_the_keys_of_a_shape_hold_where_no_digit_stands_in_a_name(line: str, *, holds: bool) -> None:
    (shape,) = shapes_of([line])
    assert names_hold(shape) is holds
    assert slots(line) == slots(line, shape)


def test_lines_have_the_shape_that_each_has_alone() -> None:
    lines = ["step 12 loss: 0.5", "", "loss nan.5 at 3", "loss: inf at 41", "", "step 34 loss: 0.6"]
    assert shapes_of(lines) == [shape for line in lines for shape in shapes_of([line])]
    assert shapes_of(lines)[0] == shapes_of(lines)[-1] == "step 00 loss: 0.0"
    assert shapes_of(lines)[2:4] == ["loss nan.5 at 3", "loss: inf at 00"]
    assert shapes_of([]) == []


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("step 3 | 2.07 mse | 0.807 gnorm", ["step", "mse", "gnorm"]),
        ("[1, 620] · 2.14 avg_loss · 2965.0 ips · 21048MB mem", ["", "", "avg_loss", "ips", "mem"]),
        ("3.2 Training Loss | 0.5 acc | Epoch: [2]", ["Training Loss", "acc", "Epoch"]),
        ("12 loss 2.3 acc 0.5", ["", "loss", "acc"]),
        ("[12] loss 2.3 acc 0.5", ["", "loss", "acc"]),
        ("read 50000 train / 10000 val samples", ["read", ""]),
        ("0.5 loss 2.3", ["", "loss"]),
        ("12 files, 3 folders", ["", ""]),
    ],
)
def test_a_name_behind_a_number_is_its_own_where_the_line_is_written_so(line: str, keys: list[str]) -> None:
    assert [slot.key for slot in slots(line)] == keys


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("step 50 l is nan accuracy is 0.5", ["step", "l", "accuracy"]),
        ("step 50 loss nan lr 0.1", ["step", "loss", "lr"]),
        ("number of nan iterations: 0", ["number of nan iterations"]),
        ("total nan steps 3 | lr 0.1", ["total nan steps", "lr"]),
    ],
)
def test_nan_is_the_value_of_the_metric_before_it_and_a_word_elsewhere(line: str, keys: list[str]) -> None:
    assert [slot.key for slot in slots(line)] == keys


@pytest.mark.parametrize(
    ("line", "numbers"), [("Acc@1 0.5", ["0.5"]), ("@7 acc 0.5", ["7", "0.5"]), ("Ep.7 acc 0.5", ["7", "0.5"])]
)
def test_a_digit_is_part_of_a_name_behind_a_letter_and_a_sign_alone(line: str, numbers: list[str]) -> None:
    assert [slot.text for slot in slots(line)] == numbers


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("Epoch 3 done in 4.52 sec loss=3.1", [("Epoch", ""), ("done", "sec"), ("loss", "")]),
        ("epoch 3 finished in 12.1 s, loss 0.44", [("epoch", ""), ("finished", "s"), ("loss", "")]),
        ("step 3 loss 0.44 (12 samples)", [("step", ""), ("loss", ""), ("", "")]),
    ],
)
def test_seconds_may_stand_apart_from_their_number(line: str, told: list[tuple[str, str]]) -> None:
    assert [(slot.key, slot.unit) for slot in slots(line)] == told


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("e0 b10 obj=1.23", ["e", "b", "obj"]),
        ("Epoch3 iter120: loss 0.5", ["Epoch", "iter", "loss"]),
        ("t5 loss 0.5", ["t5 loss"]),
        ("e5-base loss 0.5", ["e5-base loss"]),
        ("b1_0 0.9 loss 0.5", ["b1_0", "loss"]),
    ],
)
def test_a_counter_may_be_glued_to_its_name(line: str, keys: list[str]) -> None:
    assert [slot.key for slot in slots(line)] == keys


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        ("Epoch 1/30 - loss: 1.1 (0.11s)", ["Epoch", "", "loss", "time"]),
        ("epoch 4 | 0.33 | 12.1s", ["epoch", "", "time"]),
        ("[12.3s] step 4 loss 3", ["", "step", "loss"]),
        ("step 4 loss 3 (1.2s, 3.4s)", ["step", "loss", "time", ""]),
        ("step 4 loss 3 12.1s", ["step", "loss", "time"]),
        ("waited 3 ms for a batch, 12.1 ms on it", ["waited", "time"]),
        ("loss 2.31/10.4%", ["loss", ""]),
        ("dönem 4 süre 1.07 sn", ["dönem", "süre"]),
        ("waited 3 ms for a batch of 12.1 ms", ["waited", "batch"]),
        ("step 4 loss 3 | 12.1 s/step", ["step", "loss", "s/step"]),
        ("step 4 loss 3 (12.1%)", ["step", "loss", ""]),
    ],
)
def test_a_time_behind_a_mark_needs_no_name(line: str, keys: list[str]) -> None:
    assert [slot.key for slot in slots(line)] == keys


def test_the_thread_and_the_line_of_code_in_a_lead_of_glog_are_no_numbers() -> None:
    line = "I0102 03:04:05.678901 140093 loop.py:18] [740] loss=0.5, lr=0.1"
    assert [(slot.key, slot.text) for slot in slots(line)] == [("", "740"), ("loss", "0.5"), ("lr", "0.1")]
    assert [slot.text for slot in slots("J0102 03:04:05.678901 140093 loop.py:18] loss=0.5")][:2] == ["140093", "18"]


@pytest.mark.parametrize(
    ("line", "over"),
    [("trn 2.31/10.4%", False), ("trn 23/100%", True), ("trn 2.3/10.4", True)],
)
def test_a_percentage_behind_a_fraction_is_no_plan_of_it(line: str, over: bool) -> None:
    assert slots(line)[1].over is over


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("loss nan", ["nan"]),
        ("loss: -Infinity", ["-Infinity"]),
        ("loss=INF, lr=NaN", ["INF", "NaN"]),
        ("потери: ٣", ["٣"]),
        ("information on a nanosecond of banana", []),
        ("Infinities and an influence", []),
    ],
)
def test_a_line_of_words_alone_has_no_number(line: str, numbers: list[str]) -> None:
    assert [slot.text for slot in slots(line)] == numbers


def test_a_rate_of_each_gpu_is_no_part_of_the_next_name() -> None:
    found = slots("Batch (t): 1.2, 460.1/s, 115.2/s/gpu LR: 0.0005 Loss: 3.4")
    assert [(slot.key, slot.text) for slot in found[-2:]] == [("LR", "0.0005"), ("Loss", "3.4")]


@pytest.mark.parametrize(("words", "key"), [("loss went down from ", ""), ("resumed from: ", "resumed from")])
def test_a_value_that_something_had_before_has_no_name(words: str, key: str) -> None:
    assert slots(f"{words}0.3 to 0.2")[0].key == key
