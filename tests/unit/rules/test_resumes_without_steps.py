"""Logs that number no steps, or that say that no checkpoint was found: what the loss says of a restart."""

from __future__ import annotations

from collections.abc import Callable
from math import exp

import numpy as np
import pytest

from forensics.pipeline import ingest_bytes, report_of

_HEAD = "start: small model with 42.1M weights\n"
_LOADED = "loaded weights from runs/last.pt\n"


def _records(level: Callable[[int], float], seed: int) -> str:
    noise = np.random.default_rng(seed).normal(0, 0.02, 120)
    return "".join(f"loss {level(i) + noise[i]:.4f} tok_s {41000 + 7 * (i % 9)}\n" for i in range(120))


def _fresh(i: int) -> float:
    return 3.1 + 6 * exp(-i / 30)


def _on(i: int) -> float:
    return _fresh(120 + i)


def _jumped(i: int) -> float:
    return 3.1 + 1.6 * exp(-i / 12)


@pytest.mark.parametrize(
    ("loaded", "after", "rules"),
    [
        (_LOADED, _on, set[str]()),
        (_LOADED, _jumped, {"RSM001"}),
        (_LOADED, _fresh, {"RSM002"}),
        ("", _fresh, set[str]()),  # another run that is appended
    ],
)
def test_a_loss_tells_what_a_resume_lost_where_no_step_is_numbered(
    loaded: str, after: Callable[[int], float], rules: set[str]
) -> None:
    log = _HEAD + _records(_fresh, 1) + _HEAD + loaded + _records(after, 2) + "finished\n"
    found = report_of(ingest_bytes("train.log", log.encode())).findings
    assert {one.rule for one in found if one.severity.name in {"WARNING", "ERROR"}} == rules


def _epochs(count: int) -> str:
    return "".join(
        f"Epoch {e} | Training | Loss: {22 + 80 * exp(-e / 4):.4f}\n"
        f"Epoch {e} | Validation | Loss: {26 + 80 * exp(-e / 4):.4f} | Dataset: dev.csv\n"
        for e in range(count)
    )


@pytest.mark.parametrize(
    ("said", "rules"),
    [
        ("I Could not find best validating checkpoint.\n", {"RSM002"}),
        ("=> no checkpoint found at 'out/last.pt'\n", {"RSM002"}),
        ("I Initializing all variables.\n", set[str]()),  # nothing was asked for
    ],
)
def test_a_program_that_found_no_checkpoint_began_anew(said: str, rules: set[str]) -> None:
    found = report_of(ingest_bytes("train.log", (_epochs(9) + said + _epochs(6)).encode())).findings
    assert {one.rule for one in found if one.severity.name in {"WARNING", "ERROR"}} == rules


def test_an_attempt_begins_with_the_training_of_its_first_epoch() -> None:
    store = ingest_bytes("train.log", (_epochs(9) + _epochs(6)).encode())
    losses = store.scan("metrics").collect().sort("seq")
    assert losses["attempt"].to_list() == [0] * 18 + [1] * 12


@pytest.mark.parametrize(("dice", "severity"), [(0.07, "WARNING"), (0.4, "INFO")])
def test_a_flat_loss_whose_overlap_is_next_to_nothing_has_learned_nothing(dice: float, severity: str) -> None:
    noise = np.random.default_rng(3).normal(0, 0.004, (2, 40))
    lines = (
        f"epoch {e}: train loss {1.04 - 0.0005 * e + noise[0, e]:.4f}, val dice {dice + noise[1, e]:.4f}\n"
        for e in range(40)
    )
    found = report_of(ingest_bytes("train.log", "".join(lines).encode())).findings
    assert [one.severity.name for one in found if one.rule == "LRN005"] == [severity]


@pytest.mark.parametrize(
    ("again", "spikes"), [("05-07 09:00:00 building the model\n", 0), ("05-07 09:00:00 a note\n", 1)]
)
def test_a_second_process_whose_batches_count_on_makes_no_spike(again: str, spikes: int) -> None:
    def epochs(hour: int) -> str:
        lines = (
            f"05-06 {hour:02d}:{e:02d}:{b // 4:02d} Epoch {e + 1}/4\n" * (b == 25)
            + f"05-06 {hour:02d}:{e:02d}:{b // 4:02d} {b}/200 - loss: {0.2 + 1.9 * exp(-(e + b / 200) / 1.6):.4f}\n"
            for e in range(4)
            for b in range(25, 201, 25)
        )
        return "".join(lines)

    log = "05-06 08:00:00 building the model\n" + epochs(8) + again + epochs(9)
    found = report_of(ingest_bytes("train.log", log.encode())).findings
    assert sum(one.rule == "LRN003" for one in found) == spikes


def _batches(level: float, seed: int) -> str:
    noise = np.random.default_rng(seed).normal(0, 0.02, 30)
    return "".join(f"Epoch: [83][{200 * i}/10010]\tTime 0.40\tLoss {level + noise[i]:.4f}\n" for i in range(30))


@pytest.mark.parametrize(
    ("loaded", "after", "rules"),
    [
        ("=> loaded checkpoint 'last.pth.tar' (epoch 83)\n", 3.5, {"RSM001"}),
        ("=> loaded checkpoint 'last.pth.tar' (epoch 83)\n", 3.1, set[str]()),  # less than twice: other data may do it
        ("", 3.5, set[str]()),
    ],
)
def test_a_state_that_is_loaded_within_the_first_epoch_of_a_log_is_judged_by_its_loss(
    loaded: str, after: float, rules: set[str]
) -> None:
    log = _batches(1.65, 1) + loaded + _batches(after, 2)
    found = report_of(ingest_bytes("train.log", log.encode())).findings
    told = [one for one in found if one.severity.name == "WARNING" and one.rule.startswith("RSM")]
    assert {one.rule for one in told} == rules
    assert all(one.cause == "loss_step_at_resume" for one in told)


def test_a_loss_that_doubles_and_falls_back_once_is_no_lasting_jump() -> None:
    back = _batches(3.5, 2).splitlines(keepends=True)
    back[-2] = "Epoch: [83][5600/10010]\tTime 0.40\tLoss 1.6400\n"
    log = _batches(1.65, 1) + "=> loaded checkpoint 'last.pth.tar' (epoch 83)\n" + "".join(back)
    found = report_of(ingest_bytes("train.log", log.encode())).findings
    assert [one.severity.name for one in found if one.rule == "RSM001"] == ["INFO"]
