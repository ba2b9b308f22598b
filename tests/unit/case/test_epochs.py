"""Epochs and steps of a run, converted by what it printed of both."""

from __future__ import annotations

import polars as pl
import pytest

from forensics.case.epochs import EpochScale, counts_epochs, epoch_scale
from forensics.store.run import Run, run_of


def _run(rows: list[dict[str, object]], heads: list[tuple[int, int]] = [], batches: int = 0) -> Run:  # noqa: B006 - never changed
    """Rows of a loss; `heads` are (seq, epoch) of lines `Epoch 3/10`, `batches` the length that a bar prints."""
    given = [
        {"source": "t.log", "name": "loss", "raw_name": "loss", "value": 3 - n / 100, "seq": n, **row}
        for n, row in enumerate(rows)
    ]
    drawn = [{"source": "t.log", "unit": "epoch", "done": epoch, "plan": 30, "seq": seq} for seq, epoch in heads]
    drawn += [
        {"source": "t.log", "unit": "batch", "done": batches, "plan": batches, "seq": seq + 1}
        for seq, _ in heads
        if batches
    ]
    tables = {"metrics": pl.DataFrame(given, infer_schema_length=None)}
    if drawn:
        tables["progress"] = pl.DataFrame(drawn)
    return run_of("r", tables)


def test_a_share_of_an_epoch_and_a_step_in_one_record_give_the_length_of_an_epoch() -> None:
    scale = epoch_scale(_run([{"step": 50, "epoch": 0.4386}, {"epoch": 0.6667}]))
    assert scale is not None
    assert scale.step_of(0.6667) == 76


def test_the_later_half_of_the_records_tells_where_an_early_share_of_few_digits_is_far_off() -> None:
    scale = epoch_scale(_run([{"step": at, "epoch": told} for at, told in ((30, 0.3), (60, 0.53), (100, 0.88))]))
    assert scale == EpochScale(100 / 0.88)


def test_records_one_an_epoch_that_number_nothing_else_count_epochs() -> None:
    rows = [{"step": at, "seq": 10 * at + 1} for at in (1, 2, 3, 4)]
    run = _run(rows, heads=[(10 * at, at) for at in (1, 2, 3, 4, 5)], batches=5)
    assert epoch_scale(run) == EpochScale(1.0)
    assert not counts_epochs(run)


def test_bars_inside_of_an_epoch_give_its_length() -> None:
    rows = [{"step": 10 * epoch + at, "seq": 100 * epoch + at} for epoch in (0, 1, 2) for at in (3, 10)]
    scale = epoch_scale(_run(rows, heads=[(100 * at, at + 1) for at in (0, 1, 2)], batches=10))
    assert scale is not None
    assert scale.step_of(2) == 20


def test_a_log_of_epochs_beside_a_store_of_steps_is_converted() -> None:
    log = [{"step": at, "seq": 10 * at + 1} for at in range(1, 29)]
    finer = [
        {"source": "m.jsonl", "step": 5 * at, "seq": at, "value": 3 - n / 100} for n, at in enumerate(range(1, 29))
    ]
    finer += [{"source": "m.jsonl", "step": 5 * at + 1, "seq": 100 + at, "value": 1 - at / 100} for at in range(29)]
    run = _run([*log, *finer], heads=[(10 * at, at) for at in range(1, 29)], batches=5)
    assert counts_epochs(run) == {"t.log"}
    scale = epoch_scale(run)
    assert scale is not None
    assert scale.step_of(4) == 20


@pytest.mark.parametrize("first", [0, 1])
def test_the_last_step_of_each_epoch_gives_the_line(first: int) -> None:
    rows = [
        {"step": 40 * n + at, "epoch": float(n + first), "seq": 50 * n + at} for n in range(4) for at in range(1, 41)
    ]
    scale = epoch_scale(_run(rows))
    assert scale is not None
    assert scale.step_of(2 + first) == 120


def test_steps_alone_give_no_scale() -> None:
    assert epoch_scale(_run([{"step": 1}, {"step": 2}])) is None


def test_an_epoch_that_damage_made_no_number_has_no_step() -> None:
    epochs = pl.DataFrame({"epoch": [2.0, float("nan"), float("inf")]})
    assert epochs.select(EpochScale(10.0).steps_of(pl.col("epoch"))).to_series().to_list() == [20, None, None]
