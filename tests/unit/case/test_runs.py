"""Several runs in one place are told apart; stores, ranks and attempts of one run are not."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from forensics import api, pipeline
from forensics.case.runs import only, parts, split
from forensics.errors import UsageError


def steps(first: int, last: int, *, noise: int = 0) -> list[str]:
    return [
        f"step {n} | loss: {3 - 0.01 * n + 0.01 * ((n * 7 + noise) % 5):.4f} | lr: 1.00e-03"
        for n in range(first, last + 1)
    ]


def placed(root: Path, files: dict[str, Iterable[str]]) -> Path:
    for name, lines in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
    return root


def folders(place: Path) -> list[str]:
    return [part.folder for part in parts(pipeline.ingest_run(place))]


@pytest.mark.parametrize("names", [("seed-1", "seed-2"), ("lr_0", "lr_1"), ("good", "bad"), ("exp/a1", "exp/a2")])
def test_folders_that_each_train_from_their_own_start_are_runs(tmp_path: Path, names: tuple[str, str]) -> None:
    files = {f"{name}/train.log": steps(1, 60, noise=3 * i) for i, name in enumerate(names)}
    assert sorted(folders(placed(tmp_path, files))) == sorted(names)


def test_folders_that_a_tracker_named_at_random_are_runs(tmp_path: Path) -> None:
    names = ("run-20310506_100000-q7w2e9rt", "run-20310506_110000-zk4mhh1p")
    files = {
        f"wandb/{name}/{log}.log": steps(1, 60, noise=3 * at)
        for at, (name, log) in enumerate(zip(names, ("first", "other"), strict=True))
    }
    assert folders(placed(tmp_path, files)) == [f"wandb/{name}" for name in names]


def test_each_run_has_its_own_sources_and_what_belongs_to_none(tmp_path: Path) -> None:
    files = {"seed-1/train.log": steps(1, 60), "seed-2/train.log": steps(1, 60, noise=3), "config.yaml": ["lr: 0.001"]}
    one, two = split(pipeline.ingest_run(placed(tmp_path, files)))
    assert [run.name for run in (one, two)] == [f"{tmp_path}/seed-1", f"{tmp_path}/seed-2"]
    for run in (one, two):
        assert sorted(run.collect("sources")["source"]) == ["config.yaml", "train.log"]


TRIALS: dict[str, Iterable[str]] = {f"fn_7f1_0000{n}_lr=0.{n}/train.log": steps(1, 60, noise=n) for n in (1, 2)}


def errors_of(place: Path) -> dict[str, list[str]]:
    """The lines of errors and ends that each run of a place is told of."""
    runs = split(pipeline.ingest_run(place))
    events = {run.name.rpartition("/")[2]: run.collect("events") for run in runs}
    return {name: sorted({*e.filter(e["code"] != "last_line")["text"].to_list()}) for name, e in events.items()}


def test_a_line_beside_the_runs_that_names_one_of_them_is_of_that_one(tmp_path: Path) -> None:
    lines = [f"Trial fn_7f1_0000{n} {how} after 60 iterations" for n, how in ((1, "errored"), (2, "completed"))]
    found = errors_of(placed(tmp_path, {**TRIALS, "driver.log": ["start", *lines, "then"]}))
    assert [*found.values()] == [[lines[0]], [lines[1]]]


@pytest.mark.parametrize("name", ["fn_7f1", "fn_7f1_0000", "fn_7f1_00003"])
def test_a_line_beside_the_runs_that_names_none_or_all_is_of_all(name: str, tmp_path: Path) -> None:
    line = f"Trial {name} errored after 60 iterations"
    found = errors_of(placed(tmp_path, {**TRIALS, "driver.log": ["start", line, "then"]}))
    assert [*found.values()] == [[line], [line]]


def test_an_error_beside_the_runs_that_one_of_them_tells_itself_is_of_that_one(tmp_path: Path) -> None:
    raised = ["Traceback (most recent call last):", '  File "a.py", line 3, in fn', "    x[k]", "KeyError: 'img'"]
    own = {"fn_7f1_00001_lr=0.1/error.txt": raised}
    told, other = errors_of(placed(tmp_path / "told", {**TRIALS, **own, "driver.log": [*raised, "then"]})).values()
    assert (raised[-1] in told, other) == (True, [])
    both = errors_of(placed(tmp_path / "both", {**TRIALS, "driver.log": [*raised, "then"]})).values()
    assert all(raised[-1] in one for one in both)


def test_a_run_that_died_before_it_trained_is_one_of_several_by_its_name(tmp_path: Path) -> None:
    files = {"seed-1/train.log": steps(1, 60), "seed-2/train.log": ["KeyError: 'rope'"]}
    assert folders(placed(tmp_path, files)) == ["seed-1", "seed-2"]


SWEEP: dict[str, Iterable[str]] = {
    f"multirun/07-30/{n}/{name}": lines
    for n, seed in (("0", 1), ("1", 3))
    for name, lines in ((".hydra/config.yaml", [f"seed: {seed}"]), ("train.log", steps(1, 60, noise=seed)))
}


def test_folders_with_the_settings_of_a_job_are_runs_though_they_are_called_by_a_number(tmp_path: Path) -> None:
    assert folders(placed(tmp_path, SWEEP)) == ["multirun/07-30/0", "multirun/07-30/1"]


def test_what_the_launcher_of_a_sweep_printed_belongs_to_none_of_its_jobs(tmp_path: Path) -> None:
    printed = [*steps(1, 60, noise=1), *steps(1, 60, noise=3)]
    found = split(pipeline.ingest_run(placed(tmp_path, {**SWEEP, "sweep.out": printed})))
    assert [sorted(run.collect("sources")["source"]) for run in found] == [[".hydra/config.yaml", "train.log"]] * 2


def test_a_log_beside_the_jobs_that_measures_nothing_belongs_to_each_of_them(tmp_path: Path) -> None:
    place = placed(tmp_path, {**SWEEP, "launcher.log": ["RuntimeError: the node is gone", "bye"]})
    found = split(pipeline.ingest_run(place))
    assert ["launcher.log" in run.collect("sources")["source"] for run in found] == [True, True]


def test_jobs_beside_a_log_of_another_course_or_one_job_alone_stay_one_run(tmp_path: Path) -> None:
    assert folders(placed(tmp_path / "other", {**SWEEP, "old.log": steps(1, 90)})) == []
    assert folders(placed(tmp_path / "one", {name: rows for name, rows in SWEEP.items() if "/0/" in name})) == []


@pytest.mark.parametrize(
    "files",
    [
        {"rank0/train.log": steps(1, 60), "rank1/train.log": steps(1, 60, noise=3)},
        {"node-1/train.log": steps(1, 60), "node-2/train.log": steps(1, 60, noise=3)},
        {"attempt_0/0/stdout.log": steps(1, 60), "attempt_0/1/stdout.log": steps(1, 60, noise=3)},
        {"a/train.log": steps(1, 60), "b/metrics.csv": ["step,loss", *(f"{n},{2.5 - 0.01 * n}" for n in range(60))]},
        {"train.log": steps(1, 60), "old-1/train.log": steps(1, 60, noise=3), "old-2/train.log": steps(1, 60, noise=1)},
        {"slurm-7.out": steps(1, 60), "slurm-7.err": ["a warning"]},
    ],
    ids=["ranks", "nodes", "torchrun", "other layouts", "a log beside them", "a pair"],
)
def test_what_belongs_to_one_run_stays_together(tmp_path: Path, files: dict[str, Iterable[str]]) -> None:
    run = pipeline.ingest_run(placed(tmp_path, files))
    assert parts(run) == ()
    assert split(run) == (run,)


def test_a_folder_that_goes_on_from_another_one_is_its_next_attempt(tmp_path: Path) -> None:
    resumed = "resumed from checkpoints/step_60 at step 60"
    files = {"try-1/train.log": steps(1, 60), "try-2/train.log": [resumed, *steps(61, 120)]}
    assert folders(placed(tmp_path, files)) == []


def stamped(second: int, lines: Iterable[str]) -> list[str]:
    return [
        f"2031-05-06 10:{(second + i) // 60:02d}:{(second + i) % 60:02d} INFO {line}" for i, line in enumerate(lines)
    ]


def test_logs_of_jobs_that_train_at_the_same_time_are_runs(tmp_path: Path) -> None:
    files = {
        "slurm-4001.out": stamped(0, steps(1, 60)),
        "slurm-4002.out": stamped(5, steps(1, 60, noise=3)),
        "slurm-4002.err": ["a warning"],
    }
    found = parts(pipeline.ingest_run(placed(tmp_path, files)))
    assert [part.folder for part in found] == ["slurm-4001.out", "slurm-4002.out"]
    assert found[1].sources == {"slurm-4002.out", "slurm-4002.err"}


@pytest.mark.parametrize(
    "files",
    [
        {"slurm-4001.out": stamped(0, steps(1, 60)), "slurm-4002.out": stamped(90, steps(1, 60, noise=3))},
        {"slurm-4001.out": stamped(0, steps(1, 60)), "slurm-4002.out": stamped(5, steps(61, 120))},
        {"slurm-4001_0.out": stamped(0, steps(1, 60)), "slurm-4001_1.out": stamped(5, steps(1, 60, noise=3))},
        {"slurm-4001.out": steps(1, 60), "slurm-4002.out": steps(1, 60, noise=3)},
        {"slurm-4001.out": stamped(0, steps(1, 60)), "eval-4002.out": stamped(5, steps(1, 60, noise=3))},
    ],
    ids=["one after the other", "it goes on", "tasks of one job", "no clock", "other programs"],
)
def test_logs_of_jobs_that_may_be_attempts_or_tasks_stay_one_run(
    tmp_path: Path, files: dict[str, Iterable[str]]
) -> None:
    assert folders(placed(tmp_path, files)) == []


DIED = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
FIRST, SECOND = "2031-05-06_10-00-00", "2031-05-06_10-01-30"


def test_dated_folders_of_which_each_began_when_the_one_before_had_died_are_attempts_of_one_run(tmp_path: Path) -> None:
    files = {f"{FIRST}/train.log": stamped(0, [*steps(1, 60), DIED]), f"{SECOND}/train.log": stamped(90, steps(1, 60))}
    assert folders(placed(tmp_path, files)) == []


@pytest.mark.parametrize(
    ("second", "end", "settings"),
    [(90, "training finished", "lr: 0.1"), (20, DIED, "lr: 0.1"), (90, DIED, "lr: 0.2")],
    ids=["the first one finished", "both at the same time", "other settings"],
)
def test_dated_folders_of_experiments_are_runs(second: int, end: str, settings: str, tmp_path: Path) -> None:
    files = {
        f"{FIRST}/train.log": stamped(0, [*steps(1, 60), end]),
        f"{FIRST}/config.yaml": ["lr: 0.1"],
        f"{SECOND}/train.log": stamped(second, steps(1, 60, noise=3)),
        f"{SECOND}/config.yaml": [settings],
    }
    assert folders(placed(tmp_path, files)) == [FIRST, SECOND]


def test_leaves_of_event_files_with_hyperparameters_are_runs_and_those_of_a_writers_tags_are_not(
    tmp_path: Path,
) -> None:
    from tensorboard.compat.proto import event_pb2, summary_pb2  # noqa: PLC0415 - slow to load
    from tensorboard.plugins.hparams import summary_v2  # noqa: PLC0415 - same
    from tensorboard.summary.writer.event_file_writer import EventFileWriter  # noqa: PLC0415 - same

    def leaf(place: Path, settings: dict[str, float]) -> None:
        writer = EventFileWriter(str(place))
        if settings:
            writer.add_event(event_pb2.Event(wall_time=1.0, summary=summary_v2.hparams_pb(settings)))
        for step in range(1, 60):
            value = summary_pb2.Summary.Value(tag="loss", simple_value=3 - step / 50)
            writer.add_event(event_pb2.Event(wall_time=step, step=step, summary=summary_pb2.Summary(value=[value])))
        writer.close()

    leaf(tmp_path / "sweep" / "warm", {"lr": 0.1})
    leaf(tmp_path / "sweep" / "cold", {"lr": 0.2})
    leaf(tmp_path / "tags" / "train", {})
    leaf(tmp_path / "tags" / "slow", {})
    assert folders(tmp_path / "sweep") == ["cold", "warm"]
    assert folders(tmp_path / "tags") == []


def test_a_question_about_one_run_names_the_runs_of_a_place_and_asks_for_one(tmp_path: Path) -> None:
    files = {f"seed-{n}/train.log": steps(1, 60, noise=n) for n in range(1, 6)}
    place = placed(tmp_path, files)
    with pytest.raises(UsageError, match="holds 5 runs: seed-1, seed-2, seed-3 and 2 more") as told:
        only(pipeline.ingest_run(place))
    assert told.value.help == f"give one of them, as {place}/seed-1"
    with pytest.raises(UsageError, match="holds 5 runs"):
        api.triage(place)
    assert only(pipeline.ingest_run(place / "seed-1")).name == f"{place}/seed-1"
