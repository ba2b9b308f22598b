"""Which checkpoints a run left: each once, by its own path, and none that cannot be loaded."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from forensics.analyses.checkpoints import last_clean, why_none
from forensics.case.checkpoints import known
from forensics.model import Onset, Outcome, Shape, Verdict
from forensics.pipeline import ingest_bytes, ingest_run
from forensics.store.run import run_of

_WHOLE = b"PK\x03\x04" + bytes(200) + b"PK\x05\x06" + bytes(18)


def _written(place: Path, log: list[str], *files: str) -> pl.DataFrame:
    (place / "train.log").write_text("\n".join(log) + "\n", encoding="utf-8")
    for name in files:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(_WHOLE)
    return known(ingest_run(place))


def _verdict(shape: Shape | None, step: int | None = None, cause: str = "") -> Verdict:
    return Verdict(Outcome.FAILED, "", shape, Onset(step=step), cause=cause)


def _records(first: int, last: int) -> list[str]:
    return [f"step {at} loss {3 - at / 100:.4f}" for at in range(first, last + 1)]


def test_a_file_inside_of_a_checkpoint_is_no_checkpoint_of_its_own() -> None:
    paths = ("out/step_50", "out/step_50/optimizer.bin", "out/step_50/random_states_0.pkl")
    rows = {"source": "t.log", "seq": range(3), "kind": "saved", "step": [50, 50, 0], "path": paths}
    assert known(run_of("r", {"checkpoints": pl.DataFrame(rows)})).select("step", "path").rows() == [
        (50, "out/step_50")
    ]


def test_a_saved_one_whose_folder_is_gone_from_between_the_others_is_removed(tmp_path: Path) -> None:
    saved = [f"saved checkpoint to out/step_{at}" for at in (20, 40)]
    told = _written(tmp_path, [*_records(1, 45), *saved], "out/step_20/model.pt")
    assert told.select("step", "removed").rows() == [(20, False), (40, True)]


def test_a_saved_one_that_is_gone_from_between_the_others_beside_the_log_is_removed(tmp_path: Path) -> None:
    saved = ["saving model_20.ckpt", "saving model_40.ckpt", "saving out/model_44.ckpt"]
    told = _written(tmp_path, [*_records(1, 45), *saved], "model_20.ckpt")
    assert told.select("step", "removed").rows() == [(20, False), (40, True), (44, False)]


def test_a_saved_one_is_not_missed_where_no_checkpoint_was_copied_with_the_log(tmp_path: Path) -> None:
    told = _written(tmp_path, [*_records(1, 45), "saved checkpoint to out/step_40"])
    assert told.select("step", "removed").rows() == [(40, False)]


def test_one_that_could_not_be_read_is_ruined_and_those_with_a_like_name_are_not(tmp_path: Path) -> None:
    error = [
        "Traceback (most recent call last):",
        '  File "train.py", line 9, in <module>',
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/out/step_4/optim.pt'",
    ]
    files = [f"out/step_{at}/model.pt" for at in (2, 4, 40)]
    told = _written(tmp_path, [*_records(1, 45), *error], *files)
    assert told.select("step", "ruined").rows() == [(2, False), (4, True), (40, False)]


def test_one_named_by_its_epoch_stands_at_the_step_where_that_epoch_ended(tmp_path: Path) -> None:
    log = [
        f"Epoch {e}/9\n"
        + "\n".join(f"{n}/10 ━━━━━━━━━━ 1s 9ms/step - loss: {3 - e / 10 - n / 99:.4f}" for n in (4, 10))
        for e in range(1, 8)
    ]
    told = _written(tmp_path, log, "checkpoints/epoch_04.keras")
    assert told.select("step", "path").rows() == [(40, "checkpoints/epoch_04.keras")]


def test_one_named_by_its_epoch_keeps_the_epoch_where_the_run_counts_nothing_else(tmp_path: Path) -> None:
    log = [f"Epoch {epoch}/9\n10/10 - 1s - 9ms/step - loss: {3 - epoch / 10:.4f}" for epoch in range(1, 8)]
    told = _written(tmp_path, log, "checkpoints/epoch_04.keras")
    assert told.select("step", "path").rows() == [(4, "checkpoints/epoch_04.keras")]


def _epochs(steps: int) -> list[str]:
    return [
        f"Epoch: [{n // steps}]  [{n % steps:>4d}/{steps}]  loss: {2 - n / 1000:.4f}" for n in range(0, 5 * steps, 10)
    ]


def test_bare_numbers_that_are_epochs_from_zero_stand_where_each_is_over(tmp_path: Path) -> None:
    found = _written(tmp_path, _epochs(60), *(f"model_{n}.pth" for n in range(5)))
    assert found["step"].to_list() == [60, 120, 180, 240, 300]


def test_bare_numbers_apart_are_steps(tmp_path: Path) -> None:
    found = _written(tmp_path, _epochs(60), *(f"model_{n}.pth" for n in (0, 60, 120)))
    assert found["step"].to_list() == [0, 60, 120]


def test_numbers_beyond_the_epochs_of_the_run_are_steps(tmp_path: Path) -> None:
    found = _written(tmp_path, _epochs(60), *(f"model_{n}.pth" for n in range(40, 44)))
    assert found["step"].to_list() == [40, 41, 42, 43]


def test_of_wrong_learning_from_an_unknown_step_on_nobody_knows_which_checkpoint_is_clean() -> None:
    rows = {"source": ["t.log"], "seq": [0], "kind": ["saved"], "step": [50], "path": ["out/step_50"]}
    run, verdict = run_of("r", {"checkpoints": pl.DataFrame(rows)}), _verdict(Shape.LEARNING)
    assert last_clean(run, verdict, ()) is None
    assert why_none(run, verdict, ()).startswith("nobody knows whether the one of step 50 is clean")


@pytest.mark.parametrize(("onset", "clean"), [(40, None), (50, None), (51, 50)])
def test_wrong_learning_is_in_the_checkpoint_of_its_onset_and_in_later_ones(onset: int, clean: int | None) -> None:
    rows = {"source": ["t.log"], "seq": [0], "kind": ["saved"], "step": [50], "path": ["out/step_50"]}
    run = run_of("r", {"checkpoints": pl.DataFrame(rows)})
    found = last_clean(run, _verdict(Shape.LEARNING, onset), ())
    assert (None if found is None else found.step) == clean
    assert why_none(run, _verdict(Shape.LEARNING, onset), ()) == "step 50 was saved after the first bad one"
    assert (why_none(run, _verdict(Shape.BAD_EVAL), ()), why_none(run, _verdict(None), ())) == ("", "")
    counted = last_clean(run, _verdict(Shape.LEARNING, onset, "steps_count_anew"), ())
    assert counted is not None
    assert counted.step == 50


@pytest.mark.parametrize(("steps", "at"), [(5, [5, 10, 15]), (4, [1, 2, 3])])
def test_bare_numbers_are_epochs_of_five_steps_or_more(tmp_path: Path, steps: int, at: list[int]) -> None:
    log = [f"Epoch: [{n // steps}]  [{n % steps:>4d}/{steps}]  loss: {2 - n / 1000:.4f}" for n in range(1, 8 * steps)]
    assert _written(tmp_path, log, *(f"model_{n}.pth" for n in (1, 2, 3)))["step"].to_list() == at


def test_two_bare_numbers_in_a_row_are_epochs_and_one_is_a_step(tmp_path: Path) -> None:
    two, one = tmp_path / "two", tmp_path / "one"
    two.mkdir()
    one.mkdir()
    assert _written(two, _epochs(60), "model_2.pth", "model_3.pth")["step"].to_list() == [120, 180]
    assert _written(one, _epochs(60), "model_2.pth")["step"].to_list() == [2]


def test_bare_numbers_apart_are_steps_although_the_run_had_so_many_epochs(tmp_path: Path) -> None:
    found = _written(tmp_path, _epochs(60), *(f"model_{n}.pth" for n in (0, 2, 4)))
    assert found["step"].to_list() == [0, 2, 4]


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("point de reprise écrit : sauvegardes/iter_600.pth", "sauvegardes/iter_600.pth"),
        ("sauvegarde du modèle dans sorties/iter_600.pth", "sorties/iter_600.pth"),
        ("已保存 out/iter_600.pth", "out/iter_600.pth"),
    ],
)
def test_a_folder_whose_name_means_saves_is_no_part_of_the_verb(line: str, path: str) -> None:
    steps = "".join(f"step {n} | loss {2 + 3 / n:.4f}\n" for n in range(1, 30))
    run = ingest_bytes("train.log", (steps + line + "\n").encode())
    assert run.collect("checkpoints")["path"].to_list() == [path]


@pytest.mark.parametrize(
    ("cause", "onset", "clean"),
    [("slow_storage_checkpoint", 50, 40), ("slow_storage_checkpoint", 51, 50), ("waits_in_collective", 50, 50)],
)
def test_a_checkpoint_that_a_rank_was_still_writing_is_no_place_to_go_on_from(
    cause: str, onset: int, clean: int
) -> None:
    rows = {
        "source": ["t.log"] * 2,
        "seq": [0, 1],
        "kind": ["saved"] * 2,
        "step": [40, 50],
        "path": ["out/40", "out/50"],
    }
    run = run_of("r", {"checkpoints": pl.DataFrame(rows)})
    found = last_clean(run, _verdict(Shape.HANG, onset, cause), ())
    words = "still being saved" if cause == "slow_storage_checkpoint" else "saved after the first bad one"
    assert why_none(run, _verdict(Shape.HANG, onset, cause), ()) == f"step 50 was {words}"
    assert found is not None
    assert found.step == clean


_DAMAGED = "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"


def _saved(save: str = "wrote snap/latest.pt (step {})") -> list[str]:
    return [line for at in (20, 40) for line in (*_records(at - 19, at), save.format(at))]


@pytest.mark.parametrize(
    ("loads", "clean"), [("snap/latest.pt", None), ("snap/latest.pt.old", 40), ("base/weights.pt", 40)]
)
def test_the_file_that_a_process_says_it_loads_is_the_damaged_one(
    tmp_path: Path, loads: str, clean: int | None
) -> None:
    raised = ["Traceback (most recent call last):", '  File "run.py", line 7, in <module>', _DAMAGED]
    (tmp_path / "train.log").write_text("\n".join([*_saved(), f"restoring {loads}", *raised]) + "\n")
    found = last_clean(ingest_run(tmp_path), _verdict(Shape.CRASH, 40, "checkpoint_damaged"), ())
    assert (found.step if found else None) == clean


@pytest.mark.parametrize(
    ("line", "replaced"),
    [
        ("wrote snap/latest.pt (step {})", [True, False]),
        ("saving checkpoint at iteration {} to /ckpt/gpt", [False, False]),
    ],
)
def test_of_steps_that_were_saved_into_one_file_only_the_last_is_there(
    tmp_path: Path, line: str, replaced: list[bool]
) -> None:
    assert _written(tmp_path, _saved(line))["replaced"].to_list() == replaced


@pytest.mark.parametrize(("kept", "clean"), [(100, None), (len(_WHOLE), 40)])
def test_a_file_without_a_step_that_was_cut_on_disk_is_none_to_go_on_from(
    tmp_path: Path, kept: int, clean: int | None
) -> None:
    (tmp_path / "snap").mkdir()
    (tmp_path / "snap/latest.pt").write_bytes(_WHOLE[:kept])
    (tmp_path / "train.log").write_text("\n".join([*_saved(), "Killed"]) + "\n")
    found = last_clean(ingest_run(tmp_path), _verdict(Shape.CRASH, 40), ())
    assert (found.step if found else None) == clean


@pytest.mark.parametrize(
    ("every", "steps"), [(50, [50, 100, 150]), (1, [0, 1, 2])], ids=["saves far apart", "each a step"]
)
def test_bare_numbers_of_saves_stand_at_the_steps_of_their_lines(every: int, steps: list[int], tmp_path: Path) -> None:
    lines: list[str] = []
    for n in range(1, 3 * every + 40):
        lines.append(f"step {n}: loss={2 + 3 / n:.4f}")
        if n % every == 0 and n <= 3 * every:
            path = f"/mnt/r/checkpoint_{n // every - 1:06d}"
            lines.append(f"Checkpoint successfully created at: Checkpoint(filesystem=local, path={path})")
    (tmp_path / "driver.log").write_text("\n".join(lines))
    assert known(ingest_run(tmp_path))["step"].to_list() == steps


@pytest.mark.parametrize(
    ("committed", "complete"), [((20, 40), [True, True]), ((20,), [True, False]), ((), [None, None])]
)
def test_one_without_the_file_that_others_got_last_is_not_complete(
    tmp_path: Path, committed: tuple[int, ...], complete: list[bool | None]
) -> None:
    parts = [f"out/step-{at}/__{rank}_0.distcp" for at in (20, 40) for rank in (0, 1)]
    last = [f"out/step-{at}/.metadata" for at in committed]
    assert _written(tmp_path, _records(1, 45), *parts, *last)["complete"].to_list() == complete
