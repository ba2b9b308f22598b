"""Symptoms that were told as another one, or not at all: each in a run of its own, beside a run that comes near it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import exp, log
from typing import TYPE_CHECKING

import pytest

from tests.unit.symptoms.kit import report, told, written
from tests.unit.symptoms.logs import Value, at, cosine, falling, noisy, spread, steps, supervised, trainer

if TYPE_CHECKING:
    from pathlib import Path

Files = Mapping[str, str]
DONE = "Training complete.\n"
LOUD = {"failed", "suspect"}


def tuned(records: int = 240, **changed: Value) -> dict[str, Value]:
    return {"loss": noisy(falling(2.0, 1.0), 0.02), "gnorm": spread(0.6), "lr": cosine(2e-4, records)} | changed


def run(records: int = 240, settings: str = "", **changed: Value) -> Files:
    text = steps(records, **tuned(records, **changed)) + DONE
    return {"train.log": text, **({"config.yaml": settings} if settings else {})}


def detected(count: int, last: str) -> Files:
    lines = steps(150, **tuned(150))
    fired = "".join(f"WARNING NaN/Inf loss at step {151 + n} (consecutive={n + 1})\n" for n in range(count))
    return {"train.log": lines + fired + last}


def silent(cancelled: str, rank: int = 4) -> Files:
    """Logs of ranks that end at 06:08:00, and the scheduler's own file, which holds nothing else."""
    logs = {
        f"rank_{r}.log": "".join(
            f"[2026-05-02 06:{n // 30:02}:{n % 30 * 2:02}] INFO step {n} loss {3 - n / 600:.4f} grad_norm 0.61\n"
            for n in range(1, 241)
        )
        for r in range(rank)
    }
    stopped = f"slurmstepd: error: *** JOB 5512 ON gpu-3 CANCELLED AT 2026-05-02T{cancelled} DUE TO TIME LIMIT ***\n"
    return logs | {"slurm-5512.out": stopped}


def mesh(minutes: int) -> Files:
    said = "[rank0]:[titan] 2026-05-02 06:00:{:02},500 - root - INFO - {}\n"
    words = (
        "Starting job: Llama 3 8B",
        "Building 2-D device mesh with ['dp', 'tp'], [4, 2]",
        "Training starts at step 1",
    )
    ended = f"2026-05-02T{6 + minutes // 60:02}:{minutes % 60:02}:00"
    stopped = f"slurmstepd: error: *** JOB 5512 ON gpu-3 CANCELLED AT {ended} DUE TO TIME LIMIT ***\n"
    return {"slurm-5512.out": "".join(said.format(9 * n, word) for n, word in enumerate(words)) + stopped}


def ranks(apart: float) -> Files:
    """Logs of four ranks, of which one leaves the others in its gradient norm and its loss."""
    norm = spread(0.6, seed=8)

    def grown(n: int) -> float:
        return 1 + apart * max(0, n - 90)

    return {
        f"rank_{r}.log": steps(
            220,
            loss=lambda n, r=r: noisy(falling(2.1, 1.1), 0.02, r)(n) * (grown(n) if r == 3 else 1),
            gnorm=lambda n, r=r: norm(n) * (grown(n) if r == 3 else 1),
        )
        + DONE
        for r in range(4)
    }


def resumed(line: str, bump: float) -> Files:
    def second(n: int) -> float:
        return noisy(falling(2.0, 1.0, 90), 0.02)(n + 200) + bump * exp(-n / 30)

    first = tuned(400, loss=noisy(falling(2.0, 1.0, 90), 0.02))
    norm = spread(0.6, seed=2)
    values: dict[str, Value] = {
        "loss": second,
        "gnorm": lambda n: norm(n) * (1 + 6 * bump * exp(-n / 8)),
        "lr": lambda n: first["lr"](n + 200),
    }
    again = "".join(
        f"step={n + 201} " + " ".join(f"{name}={value(n):.6g}" for name, value in values.items()) + "\n"
        for n in range(200)
    )
    return {"train.log": steps(200, **first) + line + again + DONE}


def epochs(*bad: int) -> Files:
    """A log of the Trainer, 90 records an epoch, whose printed epochs have two decimals."""
    return {"train.log": trainer(270, supervised(270, at(bad, noisy(falling(1.9, 0.9), 0.03)), at(bad, spread(0.6))))}


def evaluated(of: Value, training: Value) -> Files:
    lines = steps(240, **tuned(240, loss=training)).splitlines()
    every = [f"{line} eval_loss={of(n):.4f}" if n % 24 == 23 else line for n, line in enumerate(lines)]
    return {"train.log": "\n".join(every) + "\n" + DONE}


def bare(loss: Value, norm: Value, records: int = 240) -> str:
    """What `print(step, loss, norm)` leaves."""
    return "".join(f"{n + 1} {loss(n):.4f} {norm(n):.4f}\n" for n in range(records)) + DONE


def of_ranks(size: int, *complaining: int) -> str:
    """A log of rank 0 that states the size of the world, and the watchdogs of those ranks that waited."""
    lines = "".join(f"[2026-05-02 06:00:{n:02}] [rank 0] INFO step {n} loss {3 - n / 90:.4f}\n" for n in range(1, 60))
    waited = (
        f"[2026-05-02 06:40:00] [rank{rank}]:[E502 06:40:00.1 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught"
        " collective operation timeout: WorkNCCL(SeqNum=512, OpType=ALLREDUCE, NumelIn=64, NumelOut=64,"
        " Timeout(ms)=1800000) ran for 1800032 milliseconds before timing out.\n"
        for rank in complaining
    )
    return f"INFO distributed: world_size={size}\n{lines}" + "".join(waited)


def spiky(peak: float, *places: int) -> Files:
    steady = noisy(falling(2.0, 1.0), 0.02)
    return run(320, loss=lambda n: steady(n) * (peak if n in places else 1.0))


def counted(devices: tuple[int, int]) -> Files:
    """Records of steps that take twice as long from 151 on, with a count of devices before and after."""

    def row(n: int) -> str:
        later = n > 150
        seconds = 0.4 * (1 + later) * (1 + n % 3 / 200)
        return json.dumps({"step": n, "loss": 3 - n / 200, "step_time": seconds, "train/world_size": devices[later]})

    return {"metrics.jsonl": "".join(f"{row(n)}\n" for n in range(1, 301)), "train.log": DONE}


def scored(*scores: float, documents: int = 5000) -> Files:
    """Results of checkpoints that follow each other."""

    def results(step: int, score: float) -> str:
        tasks = {"boolq": score, "piqa": score / 1.3, "sciq": score / 0.9}
        told = {
            "results": {task: {"acc,none": value, "acc_stderr,none": 0.005} for task, value in tasks.items()},
            "configs": {},
            "config": {"model_args": f"pretrained=out/step_{step}"},
            "n-samples": {task: {"original": documents, "effective": documents} for task in tasks},
        }
        return json.dumps(told)

    named = "step_{0}000/results_2026-05-0{0}T10-00-00.json"
    return {named.format(n): results(1000 * n, score) for n, score in enumerate(scores, 1)}


SYMPTOMS: dict[str, tuple[Files, tuple[str, ...], Files]] = {
    "a detector that stops the run": (
        detected(10, "Too many consecutive NaNs — stopping\n"),
        ("FAILED nan", "the run stopped itself after too many such steps in a row"),
        run(),
    ),
    "ranks that went silent, by the scheduler's own file": (
        silent("16:19:30"),
        ("FAILED hang", "Nothing was trained in the last 612 minutes", "py-spy dump", "confidence low"),
        {},
    ),
    "ranks that never trained after their mesh was built": (
        mesh(170),
        ("FAILED hang", "after the ranks began to join", "export NCCL_DEBUG=INFO"),
        {},
    ),
    "a rank whose weights left the others and took its loss along": (
        ranks(0.02),
        ("FAILED learning", "culprits rank 3", "weights were equal and now differ", "Compare a checksum"),
        ranks(0.0),
    ),
    "a checkpoint that was loaded without its optimizer": (
        resumed("=> loaded checkpoint './out/checkpoint.pth.tar' (epoch 4)\n", 0.7),
        ("SUSPECT learning", "the restart of step 201", "optimizer's state was not restored"),
        resumed("=> loaded checkpoint './out/checkpoint.pth.tar' (epoch 4)\n", 0.0),
    ),
    "one place of rounded epochs": (
        epochs(31, 121, 211),
        ("SUSPECT nan", "at the same place of 3 epochs, first at step 32", "(bad_sample, "),
        epochs(),
    ),
    "an evaluation of another domain, in a run without settings": (
        evaluated(noisy(lambda n: 2.9 + 0.3 * exp(-n / 40), 0.02), noisy(falling(2.0, 1.0), 0.02)),
        ("SUSPECT learning", "above the training loss from the first evaluation on", "eval_shifted"),
        evaluated(noisy(falling(2.1, 1.1), 0.02), noisy(falling(2.0, 1.0), 0.02)),
    ),
    "an evaluation that was trained on, in a run without settings": (
        evaluated(noisy(lambda _: 0.2, 0.01), noisy(falling(2.4, 1.5), 0.02)),
        ("SUSPECT learning", "below the training loss", "eval_leak", "Search the samples of the evaluation"),
        evaluated(noisy(lambda n: 0.7 + exp(-n / 40), 0.02), noisy(falling(3.4, 2.6), 0.02)),
    ),
    "two spikes that together weigh as three": (
        spiky(4.6, 130, 231),
        ("SUSPECT learning", "2 spikes of loss", "step 232", "gradient norm"),
        spiky(4.6, 130),
    ),
    "a loss of guessing with next to no gradient": (
        run(260, "vocab_size: 32000\n", loss=noisy(lambda _: log(32000), 0.004), gnorm=spread(4e-6)),
        ("FAILED learning", "the cost of chance", "Check the initialisation: He or Xavier"),
        run(260, "vocab_size: 32000\n", loss=noisy(falling(10.4, 4.0), 0.03)),
    ),
    "a printed loop whose loss stays where it is": (
        {"out.txt": bare(noisy(lambda _: 4.4, 0.03), spread(0.7))},
        ("SUSPECT learning", "Loss did not fall: 4.4", "Overfit a single batch"),
        {"out.txt": bare(noisy(falling(4.4, 2.0), 0.03), spread(0.7))},
    ),
    "an evaluation of another domain that was made early": (
        evaluated(noisy(lambda n: 2.7 + 0.3 * exp(-n / 40), 0.02), noisy(falling(2.2, 1.0, 40.0), 0.02)),
        ("SUSPECT learning", "eval_shifted", "Decode samples of both sets"),
        {},
    ),
    "the one rank of a stated world that does not complain": (
        {"slurm-7.out": of_ranks(4, 0, 1, 2)},
        ("FAILED hang", "Rank 3 never entered the collective"),
        {},
    ),
    "half the devices, by a metric": ({}, (), counted((16, 8))),
    "slower steps on as many devices, by a metric": (
        counted((16, 16)),
        ("FAILED slowdown", "from step 151 on"),
        {},
    ),
    "checkpoints with one and the same score in three large tasks": (
        scored(0.61234, 0.61234),
        ("SUSPECT bad_eval", "are equal in all 3 metrics", "checkpoint"),
        scored(0.61234, 0.61311),
    ),
}


@pytest.mark.parametrize("name", [name for name, (files, _, _) in SYMPTOMS.items() if files])
def test_a_symptom_is_told_as_itself(tmp_path: Path, name: str) -> None:
    files, said, _ = SYMPTOMS[name]
    text = told(written(tmp_path, dict(files))).replace(" - ", " ")
    assert [words for words in said if words.lower() not in text.lower()] == [], text


@pytest.mark.parametrize("name", [name for name, (_, _, near) in SYMPTOMS.items() if near])
def test_what_comes_near_it_stays_quiet(tmp_path: Path, name: str) -> None:
    verdict = report(written(tmp_path, dict(SYMPTOMS[name][2]))).verdict
    assert verdict.outcome.value not in LOUD, verdict.headline


@pytest.mark.parametrize(
    "files",
    [silent("08:08:20"), silent("06:31:00"), mesh(20)],
    ids=["a zone of time", "a stop that came soon", "a short job"],
)
def test_a_job_that_was_ended_is_no_hang_where_another_reason_fits(tmp_path: Path, files: Files) -> None:
    assert report(written(tmp_path, dict(files))).verdict.shape == "stopped"


@pytest.mark.parametrize("count", [1, 4])
def test_a_detector_that_nobody_saw_stop_the_run_is_not_said_to_have(tmp_path: Path, count: int) -> None:
    assert "stopped itself" not in told(written(tmp_path, dict(detected(count, ""))))


def test_equal_scores_of_small_tasks_are_chance(tmp_path: Path) -> None:
    assert report(written(tmp_path, dict(scored(0.61, 0.61, documents=200)))).findings == ()


def test_neighbours_of_a_place_are_other_places(tmp_path: Path) -> None:
    found = report(written(tmp_path, dict(epochs(31, 124)))).findings
    assert "NAN015" not in {finding.rule for finding in found}


@pytest.mark.parametrize(
    ("second", "third"),
    [
        (cosine(3.0, 240), spread(0.7)),
        (noisy(lambda _: 0.6, 0.03), spread(0.7)),
        (noisy(lambda n: 4.4 + n / 900, 0.03), spread(0.7, 0.01)),
    ],
    ids=["a rate", "a score", "times of steps"],
)
def test_numbers_without_names_that_are_no_flat_loss_are_not_told_as_one(
    tmp_path: Path, second: Value, third: Value
) -> None:
    verdict = report(written(tmp_path, {"out.txt": bare(second, third)})).verdict
    assert verdict.outcome.value not in LOUD, verdict.headline


@pytest.mark.parametrize(("size", "waits"), [(4, (0, 1, 2, 3)), (3, (0, 1, 2))])
def test_a_world_whose_ranks_all_complain_lacks_none(tmp_path: Path, size: int, waits: tuple[int, ...]) -> None:
    assert report(written(tmp_path, {"slurm-7.out": of_ranks(size, *waits)})).verdict.culprits == ()


@pytest.mark.parametrize(("epoch", "place"), [(", 'epoch': {at:.2f}", "epoch 0.65"), ("", "an unnumbered step")])
def test_a_record_without_a_step_is_told_by_its_epoch(tmp_path: Path, epoch: str, place: str) -> None:
    lines = [
        f"{{'loss': {'nan' if n >= 65 else f'{1.3 + n % 4 / 100:.2f}'}, 'learning_rate': 1e-05"
        f"{epoch.format(at=n / 100)}}}\n"
        for n in range(1, 121)
    ]
    assert f"Loss is NaN from {place} on" in told(written(tmp_path, {"train.log": "".join(lines)}))
