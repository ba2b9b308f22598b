"""The ledger: what each counter of a run counts, of how much, and where it stands."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from forensics.case.progress import Counter, Ledger, ledger
from forensics.dialects.counters import kind_of, plan_keys, plan_names
from forensics.pipeline import ingest_bytes, ingest_run, report_of
from forensics.store.run import Run


def read(place: Path, lines: list[str]) -> tuple[Run, Ledger]:
    (place / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    run = ingest_run(place)
    return run, ledger(run)


def bar(label: str, done: int, plan: int, per: str = "it/s") -> str:
    return f"{label}{done * 100 // plan}%|###| {done}/{plan} [00:{done % 60:02d}<01:00,  2.00{per}]"


def records(count: int) -> list[str]:
    return [f"step {at} loss {3 - at / 100:.4f}" for at in range(1, count + 1)]


def only(found: Ledger, **wanted: object) -> Counter:
    (one,) = (c for c in found.counters if all(getattr(c, name) == value for name, value in wanted.items()))
    return one


def test_a_bar_of_a_data_set_counts_no_step_of_training(tmp_path: Path) -> None:
    bars = [bar("Map (num_proc=4): ", done, 18819, " examples/s") for done in range(0, 18820, 697)]
    run, found = read(tmp_path, [*bars, *records(20)])
    one = only(found, plan=18819)
    assert (one.what, one.done, one.is_bar) == ("data", 18819, True)
    assert run.collect("metrics")["step"].max() == 20
    assert not run.collect("metrics")["raw_name"].str.contains("num_proc").any()


@pytest.mark.parametrize(("within", "what"), [(0, ""), (1, "train")])
def test_a_bar_without_a_label_trains_where_a_record_of_the_training_stands_within_it(
    within: int, what: str, tmp_path: Path
) -> None:
    bars, told = [bar("", done, 40) for done in range(1, 41)], records(20)
    _, found = read(tmp_path, [*bars[: 40 - within], *told[:within], *bars[40 - within :], *told[within:]])
    assert only(found, plan=40).what == what


@pytest.mark.parametrize(
    ("label", "what"), [("loss={v:.3f}: ", "train"), ("part A: ", ""), ("eval loss={v:.3f}: ", "eval")]
)
def test_a_bar_whose_words_tell_nothing_trains_where_its_frames_print_a_loss(
    label: str, what: str, tmp_path: Path
) -> None:
    bars = [bar(label.format(v=3 - at / 20), at, 40) for at in range(1, 41)]
    _, found = read(tmp_path, [*records(20), *bars])
    assert {one.what for one in found.counters} == {what}


@pytest.mark.parametrize(("again", "what"), [(1, "train"), (2, "")])
def test_a_bar_that_is_full_again_and_again_counts_no_training(again: int, what: str, tmp_path: Path) -> None:
    """A bar is drawn full twice: as its last step is done, and as it is closed."""
    bars = [bar(f"loss={3 - at / 20:.3f}: ", min(at, 40), 40) for at in range(1, 41 + again)]
    _, found = read(tmp_path, [*records(20), *bars])
    assert {one.what for one in found.counters} == {what}


@pytest.mark.parametrize(
    ("label", "per", "kind"),
    [
        ("Map (num_proc=4)", "examples/s", "data"),
        ("Tokenizing train dataset", "examples/s", "data"),
        ("Generating train split", "examples/s", "data"),
        ("Loading checkpoint shards", "it/s", "data"),
        ("", "examples/s", "data"),
        ("model.safetensors: downloading", "MB/s", "download"),
        ("Fetching 5 files", "it/s", "download"),
        ("Evaluating", "it/s", "eval"),
        ("Validation DataLoader 0", "it/s", "data"),
        ("sampling", "it/s", "sampling"),
        ("Epoch 3/10", "it/s", "train"),
        ("training", "s/it", "train"),
        ("", "it/s", ""),
    ],
)
def test_words_before_a_bar_and_its_rate_tell_what_it_counts(label: str, per: str, kind: str) -> None:
    assert kind_of(label, per) == kind


def test_a_bar_without_a_name_counts_training_where_records_stand_between_its_frames(tmp_path: Path) -> None:
    mixed = [line for at in range(1, 21) for line in (f"step {at} loss {3 - at / 50:.4f}", bar("", at, 20))]
    alone = [bar("", at, 8) for at in range(9)]
    _, found = read(tmp_path, [*mixed, *alone])
    assert {(c.plan, c.what) for c in found.counters} == {(20, "train"), (8, "")}


def streams(place: Path, bars: list[str], log: list[str], printed: str = "stdout.log") -> Ledger:
    (place / "stderr.log").write_text("\r".join(bars) + "\n", encoding="utf-8")
    (place / printed).write_text("\n".join(log) + "\n", encoding="utf-8")
    return ledger(ingest_run(place))


UNNUMBERED = [f"{{'loss': {3 - at / 50:.4f}, 'grad_norm': 0.5, 'epoch': {at / 40:.4f}}}" for at in range(1, 21)]
MAIN = [bar("", at, 40) for at in range(21)]


def test_a_bar_counts_training_where_the_other_stream_of_its_process_numbers_no_step(tmp_path: Path) -> None:
    evaluated = [*MAIN[:11], *(bar("", at, 8) for at in range(9)), *MAIN[11:]]
    assert {(c.plan, c.what) for c in streams(tmp_path, evaluated, UNNUMBERED).counters} == {(40, "train"), (8, "")}


@pytest.mark.parametrize(
    ("bars", "log", "printed"),
    [
        (MAIN, records(20), "stdout.log"),  # the records number their steps
        (MAIN, UNNUMBERED, "eval.log"),  # the other file is no stream of this process
        ([*(bar("", at, 8) for at in range(9)), *MAIN], UNNUMBERED, "stdout.log"),  # a data set was read first
        ([*MAIN, *(bar("", at, 8) for at in range(9))], UNNUMBERED, "stdout.log"),  # another loop came after it
    ],
)
def test_a_bar_without_a_name_says_nothing_of_training_elsewhere(
    bars: list[str], log: list[str], printed: str, tmp_path: Path
) -> None:
    assert "train" not in {c.what for c in streams(tmp_path, bars, log, printed).counters}


def test_a_bar_that_begins_again_in_each_epoch_counts_batches(tmp_path: Path) -> None:
    lines = [bar(f"Epoch {e}/3: ", at, 30) for e in (1, 2) for at in range(0, 31, 3)]
    _, found = read(tmp_path, [*lines, *records(20)])
    batches = only(found, unit="batch")
    assert (batches.what, batches.done, batches.plan, batches.passes) == ("train", 30, 30, 2)
    assert {(c.done, c.plan, c.first) for c in found.counters if c.unit == "epoch"} == {(2, 3, 1)}


@pytest.mark.parametrize(
    "frame",
    [
        "40/100 [======>.......] - ETA: 3s - loss: 0.5",
        "Epoch 1 ━━━━━━━━━━━━━━━━ 40/100 0:00:10 • 0:00:04",
        "40.00% [40/100 00:10<00:12]",
        " 40%|####      | 40/100 [00:10<00:12,  4.00it/s]",
    ],
)
def test_bars_of_every_style_are_counters(tmp_path: Path, frame: str) -> None:
    _, found = read(tmp_path, [*records(20), frame, *records(2)])
    assert {c.plan for c in found.counters if c.done == 40} == {100}


def test_a_bar_is_a_clock(tmp_path: Path) -> None:
    run, _ = read(tmp_path, ["train:  5%|#| 5/100 [01:02:05<09:10,  2.00it/s]", *records(3)])
    assert run.collect("progress")["elapsed_s"].drop_nulls().to_list() == [3725]


def test_in_a_crowd_of_frames_no_pass_of_a_bar_is_lost(tmp_path: Path) -> None:
    epochs = [bar("train: ", at, 20) for _ in range(60) for at in range(21)]
    run, found = read(tmp_path, [*epochs, *records(3)])
    one = only(found, plan=20)
    assert (one.done, one.passes) == (20, 60)
    assert run.collect("progress").height < len(epochs)


def test_plans_of_settings_are_counts_above_zero(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"max_steps": -1, "num_train_epochs": 3, "learning_rate": 0.1}')
    _, found = read(tmp_path, records(5))
    assert [(p.unit, p.count) for p in found.plans] == [("epoch", 3)]


def test_a_long_bar_keeps_its_ends_and_a_bounded_number_of_frames(tmp_path: Path) -> None:
    run, found = read(tmp_path, [*(bar("train: ", at, 5000) for at in range(5001)), *records(3)])
    kept = run.collect("progress")
    assert (kept["done"].min(), kept["done"].max()) == (0, 5000)
    assert kept.height < 600
    assert only(found, plan=5000).is_reached


def test_what_the_program_prints_as_its_plan_comes_before_its_settings(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("trainer:\n  max_steps: 5000\n  num_train_epochs: 3\n", encoding="utf-8")
    assert read(tmp_path, records(20))[1].planned("step") == 5000
    told = read(tmp_path, ["  Total optimization steps = 1,400", *records(20)])[1]
    assert (told.planned("step"), told.planned("epoch")) == (1400, 3)


@pytest.mark.parametrize(
    ("key", "unit"),
    [
        ("trainer.max_steps", "step"),
        ("maxSteps.value", "step"),
        ("args/train-iters", "step"),
        ("training.steps", "step"),
        ("total_timesteps", "step"),
        ("SOLVER.MAX_ITER", "step"),
        ("sgd.max_iter", ""),
        ("num_train_epochs", "epoch"),
        ("epochs", "epoch"),
        ("ppo.n_steps", ""),
        ("ppo.n_epochs", ""),
        ("eval_steps", ""),
        ("warmup_epochs", ""),
    ],
)
def test_a_setting_is_a_plan_by_its_whole_name(key: str, unit: str) -> None:
    assert [name for name in ("step", "epoch") if re.search(plan_keys(name), key)] == ([unit] if unit else [])


def test_every_row_of_the_tables_of_counters_has_its_source() -> None:
    for name in ("counters.tsv", "plans.tsv"):
        rows = (files("forensics.dialects") / name).read_text(encoding="utf-8").splitlines()
        cells = [row.split("\t") for row in rows if not row.startswith("#")]
        assert all(len(row) == 4 and row[3].strip() for row in cells), name
    assert {name.unit for name in plan_names()} == {"step", "epoch"}


def test_a_record_right_before_the_last_frame_of_a_bar_makes_it_one_of_training(tmp_path: Path) -> None:
    first, *later = records(20)
    lines = [*(bar("", done, 400) for done in (1, 100, 200, 300)), first, bar("", 400, 400), *later]
    assert only(read(tmp_path, lines)[1], plan=400).what == "train"


@pytest.mark.parametrize(("last", "outcome"), [(20, "cannot_say"), (50, "healthy")])
def test_batches_of_an_earlier_epoch_do_not_end_the_last_one(last: int, outcome: str) -> None:
    lines = [
        f"{bar(f'Epoch {epoch}/3: ', done, plan)[:-1]}, loss={3 - (epoch * 40 + done) / 100:.3f}]"
        for epoch, plan, ends in ((1, 40, 40), (2, 40, 40), (3, 50, last))
        for done in range(10, ends + 1, 10)
    ]
    verdict = report_of(ingest_bytes("train.log", ("\n".join(lines) + "\n").encode())).verdict
    assert verdict.outcome == outcome
