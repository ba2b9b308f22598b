"""Runs that stand in one place: what a failed one differs in from its siblings, as `forensics triage` notes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from forensics.cli.main import run as command
from tests.unit.symptoms.kit import written
from tests.unit.symptoms.logs import FINE_TUNING, Value, at, falling, noisy, spread, steps, supervised, trainer

SETTINGS = FINE_TUNING + "max_grad_norm: 0\nbf16: true\nweight_decay: 0.0\nnum_hidden_layers: 32\n"
BLOWN = trainer(
    120,
    supervised(120, at(range(90, 120), noisy(falling(1.9, 0.9), 0.03)), at(range(87, 90), spread(0.6), 28.0)),
    ended=False,
)
SOUND = trainer(120, supervised(120))
Notes = Callable[[Mapping[str, str]], str]


@pytest.fixture
def notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Notes:
    """What `forensics triage PLACE` notes of the runs in a place with these files."""

    def of(files: Mapping[str, str]) -> str:
        command(["triage", str(written(tmp_path, dict(files))), "--exit-zero"])
        return capsys.readouterr().err

    return of


def pair(settings: str, second: str, first: str = BLOWN, of: str = SETTINGS) -> dict[str, str]:
    return {"run1/train.log": first, "run1/config.yaml": of, "run2/train.log": second, "run2/config.yaml": settings}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("0.00002", "0.000002", "learning_rate 2e-05 → 2e-06: a lower learning rate stops it"),
        ("max_grad_norm: 0", "max_grad_norm: 1.0", "max_grad_norm 0 → 1: gradient clipping stops it"),
        ("bf16: true", "bf16: false", "bf16 true → false: another precision stops it"),
    ],
)
def test_a_sibling_that_did_not_fail_is_a_check_that_was_made(notes: Notes, old: str, new: str, told: str) -> None:
    assert f"run1 failed and run2 did not, which differs in {told}" in notes(pair(SETTINGS.replace(old, new), SOUND))


def test_a_sibling_with_the_same_settings_leaves_seed_data_and_host(notes: Notes) -> None:
    assert "with the same settings: compare their seeds, data order and hosts" in notes(pair(SETTINGS, SOUND))


@pytest.mark.parametrize("bare", ["run1/config.yaml", "run2/config.yaml"])
def test_settings_that_one_run_does_not_tell_are_not_the_same(notes: Notes, bare: str) -> None:
    told = {path: text for path, text in pair(SETTINGS, SOUND).items() if path != bare}
    assert "with the same settings" not in notes(told)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("num_hidden_layers: 32", "num_hidden_layers: 48", "mend the loop before the architecture"),
        ("weight_decay: 0.0", "weight_decay: 0.3", "regularization does not mend a divergence"),
        ("micro_batch_size: 2", "micro_batch_size: 4", "settings were tuned before the baseline works"),
    ],
)
def test_a_second_failure_tells_which_change_came_too_soon(notes: Notes, old: str, new: str, told: str) -> None:
    assert told in notes(pair(SETTINGS.replace(old, new), BLOWN))


@pytest.mark.parametrize(("second", "hits"), [(2.31, True), (0.9, False)])
def test_two_runs_that_did_not_learn_tell_which_change_came_too_soon(notes: Notes, second: float, hits: bool) -> None:
    flat, other = (steps(120, loss=noisy(falling(2.31, to), 0.002), gnorm=spread(0.5)) for to in (2.31, second))
    end, classes = "Training complete.\n", "num_classes: 10\nmicro_batch_size: "
    text = notes(pair(classes + "4\n", other + end, flat + end, of=classes + "2\n"))
    assert ("settings were tuned before the baseline works" in text) is hits
    assert ("all 2 runs fail; not tried yet" in text) is hits


def test_checks_that_nobody_made_are_listed_once_all_runs_failed(notes: Notes) -> None:
    text = notes(pair(SETTINGS.replace("0.00002", "0.000002"), BLOWN))
    assert "all 2 runs fail; not tried yet: clipping at 1.0, fp32, two examples learned by heart" in text
    assert "not tried yet" not in notes(pair(SETTINGS.replace("0.00002", "0.000002"), SOUND))


@pytest.mark.parametrize(("last", "told"), [(2.1, "does not learn it by heart"), (0.004, "learns it by heart")])
def test_a_run_of_one_batch_tells_whether_the_loop_is_right(notes: Notes, last: float, told: str) -> None:
    log = steps(120, loss=falling(2.4, last, 15), gnorm=spread(0.5)) + "Training complete.\n"
    assert told in notes(pair(SETTINGS + "overfit_batches: 1\n", log))


LOSS = noisy(falling(1.9, 0.9), 0.03)


def parted(first: int) -> Value:
    """The same loss, but for the last digits from a record on."""
    return lambda n: LOSS(n) * (1 + (1e-3 if n >= first else 0.0))


@pytest.mark.parametrize(
    ("first", "told"), [(0, "at step 1: the seed or the order of the data"), (60, "at step 61: kernels that are not")]
)
def test_two_runs_of_one_configuration_part_at_a_step(notes: Notes, first: int, told: str) -> None:
    logs = [steps(120, loss=loss, gnorm=spread(0.5)) for loss in (LOSS, parted(first))]
    text = notes(pair(SETTINGS, logs[1], logs[0]))
    assert told in text
    assert "torch.use_deterministic_algorithms(True)" in text


@pytest.mark.parametrize("seeds", [("seed: 1\n", "seed: 1\n", 120), ("seed: 1\n", "seed: 2\n", 0)])
def test_equal_losses_and_other_seeds_are_no_note(notes: Notes, seeds: tuple[str, str, int]) -> None:
    first, second, apart = seeds
    logs = [steps(120, loss=loss, gnorm=spread(0.5)) for loss in (LOSS, parted(apart))]
    assert "part at step" not in notes(pair(SETTINGS + second, logs[1], logs[0], SETTINGS + first))


@pytest.mark.parametrize("key", ["world_size", "gpus"])
@pytest.mark.parametrize(("worse", "told"), [(0.5, True), (0.0, False)])
def test_a_higher_loss_on_more_devices_asks_for_the_wrapper(
    notes: Notes, key: str, worse: float, *, told: bool
) -> None:
    alone, spread_out = falling(4.0, 1.0, 60), falling(4.0 + worse, 1.0 + worse, 60)
    losses = noisy(alone, 0.02, 1), noisy(spread_out, 0.02, 2)
    logs = [steps(200, loss=loss, gnorm=spread(0.5)) for loss in losses]
    text = notes(pair(SETTINGS + f"{key}: 8\n", logs[1], logs[0], SETTINGS + f"{key}: 1\n"))
    assert ("run2 on 8 devices ends at a loss of" in text) == told
    assert ("Check the DDP or FSDP wrapper" in text) == told


def test_a_sibling_with_better_scores_is_offered_as_the_baseline(notes: Notes) -> None:
    def result(score: float) -> str:
        metric = {"alias": "mmlu", "acc,none": score, "acc_stderr,none": 0.005}
        samples = {"mmlu": {"original": 10042, "effective": 10042}}
        return json.dumps({"results": {"mmlu": metric}, "n-samples": samples, "config": {"model": "hf"}})

    files = pair(SETTINGS.replace("0.00002", "0.000002"), SOUND, SOUND)
    text = notes(
        {
            **files,
            "run1/results_2026-01-01T00-00-00.json": result(0.61),
            "run2/results_2026-01-01T00-00-00.json": result(0.42),
        }
    )
    assert "run2 scores below run1 (mmlu 0.42 and 0.61); they differ in learning_rate 2e-05 → 2e-06" in text
    assert "/run2 --baseline " in text
