"""What a program prints directly behind a bar, which is drawn without a newline, is a line of its own."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from forensics.pipeline import ingest_run
from forensics.store.run import Run

STEPS = 60


def frame(done: int, behind: str = "") -> str:
    share, loss = done * 100 // STEPS, 3 - done / 40
    return f"\r {share}%|###  | {done}/{STEPS} [00:{done // 10:02d}<00:06, 9.74it/s, loss={loss:.4f}]{behind}"


def read(place: Path, behind: str) -> Run:
    drawn = [frame(done, behind.format(done) if done % 10 == 0 else "") for done in range(1, STEPS + 1)]
    (place / "train.log").write_text("".join(drawn) + "\n", encoding="utf-8")
    return ingest_run(place)


def values(run: Run, name: str) -> list[tuple[int, float]]:
    rows = run.collect("metrics").filter((pl.col("name") == name) & pl.col("step").is_not_null()).sort("step")
    return list(rows.select("step", "value").unique().sort("step").iter_rows())


def test_an_evaluation_that_is_printed_behind_a_bar_is_read(tmp_path: Path) -> None:
    found = values(read(tmp_path, "step {} eval_loss 1.6741\n"), "eval_loss")
    assert [step for step, _ in found] == [10, 20, 30, 40, 50, 60]


def test_the_bar_is_read_as_without_it(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "glued").mkdir()
    plain, glued = read(tmp_path / "plain", "\n"), read(tmp_path / "glued", "step {} eval_loss 1.6741\n")
    assert values(glued, "loss") == values(plain, "loss") != []
    done = [run.collect("progress")["done"].to_list() for run in (plain, glued)]
    assert done[0] == done[1]
    assert plain.collect("metrics").filter(pl.col("name") == "loss")["line"].to_list() == [
        line for step, line in glued.collect("metrics").filter(pl.col("name") == "loss").select("step", "line").rows()
    ]


@pytest.mark.parametrize("behind", ["\n", " \n", "]\n"])
def test_a_bar_with_nothing_behind_it_is_one_segment(behind: str, tmp_path: Path) -> None:
    run = read(tmp_path, behind)
    assert values(run, "loss")
    assert run.collect("events").filter(pl.col("code") == "last_line")["text"].str.contains("it/s").all()


def dicts(total: int, end: str) -> str:
    rows = (
        {"loss": f"{4 - 3 * at / total:.4}", "grad_norm": "0.9", "epoch": f"{2 * at / total:.4}"}
        for at in range(5, total, 5)
    )
    return "".join(f"{row}\n" for row in rows) + end


@pytest.mark.parametrize(
    ("end", "steps"),
    [
        (
            "{'train_runtime': '6.4', 'train_samples_per_second': '17', 'train_loss': '1.7', 'epoch': '2'}\n",
            [5, 10, 110],
        ),
        ("", []),  # where the epochs end is not told
    ],
)
def test_records_behind_a_bar_that_is_kept_full_alone_are_counted_by_their_epochs(
    end: str, steps: list[int], tmp_path: Path
) -> None:
    bar = "100%|##########| 111/111 [00:06<00:00, 15.48it/s]\n"
    (tmp_path / "output.log").write_text(bar + dicts(111, end), encoding="utf-8")
    found = [step for step, _ in values(ingest_run(tmp_path), "loss")]
    assert [*found[:2], *found[-1:]] == steps


def test_one_record_beside_a_full_bar_is_of_its_count(tmp_path: Path) -> None:
    bar = "100%|##########| 8/8 [00:06<00:00, 15.48it/s]\n"
    (tmp_path / "output.log").write_text(bar + dicts(8, ""), encoding="utf-8")
    assert [step for step, _ in values(ingest_run(tmp_path), "loss")] == [8]
