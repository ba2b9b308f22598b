"""The bracket, the checkpoint and the command to go on from."""

from __future__ import annotations

import math
import shlex

import polars as pl
import pytest

from forensics import registry
from forensics.analyses.nan.origin import origin
from forensics.case.restart import restart_command
from forensics.store.run import Run, run_of

NAN = math.nan


def run(
    losses: dict[int, float],
    norms: dict[int, float] | None = None,
    saves: list[tuple[str, int, str]] | None = None,
    form: str = "text: kempnerforge",
) -> Run:
    metrics = [
        pl.DataFrame({"step": list(d), "seq": list(d), "value": [float(v) for v in d.values()]}).with_columns(
            name=pl.lit(n), raw_name=pl.lit(n), source=pl.lit("a.log")
        )
        for n, d in (("loss", losses), ("grad_norm", norms or {}))
        if d
    ]
    rows = [
        {"source": "a.log", "seq": i, "line": i, "kind": k, "step": s, "path": p}
        for i, (k, s, p) in enumerate(saves or [])
    ]
    tables = {"metrics": pl.concat(metrics), "sources": pl.DataFrame({"source": ["a.log"], "format": [form]})}
    return run_of("run", {**tables, "checkpoints": pl.DataFrame(rows)} if rows else tables)


def until(bad: int, last: int = 60, every: int = 1) -> dict[int, float]:
    return {s: (NAN if s >= bad else 2.0) for s in range(every, last + 1, every)}


def saved(*steps: int, kind: str = "committed") -> list[tuple[str, int, str]]:
    return [(kind, s, f"out/step_{s}") for s in steps]


def test_the_last_checkpoint_before_the_last_clean_step_is_the_one_to_use() -> None:
    found = origin(run(until(45), saves=saved(20, 40, 60)))
    assert found.last_clean_checkpoint is not None
    assert (found.first_bad_step, found.last_clean_step, found.last_clean_checkpoint.step) == (45, 44, 40)
    assert [c.state for c in found.checkpoints] == ["clean", "clean", "dirty"]
    assert found.restart == "--checkpoint.load_path=out/step_40"


def test_a_checkpoint_of_a_step_whose_gradient_is_nan_is_dirty_although_its_loss_is_finite() -> None:
    norms = {s: (NAN if s >= 40 else 1.0) for s in range(1, 61)}
    found = origin(run(until(41), norms, saved(20, 40)))
    assert found.first_bad_metric == "grad_norm"
    assert [(c.step, c.state) for c in found.checkpoints] == [(20, "clean"), (40, "dirty")]


def test_a_checkpoint_at_the_last_finite_loss_is_clean_but_to_be_looked_at() -> None:
    found = origin(run(until(41), saves=saved(40)))
    assert found.checkpoints[0].state == "clean"
    assert "look for NaN" in found.checkpoints[0].why


def test_a_checkpoint_between_two_printed_records_is_unknown() -> None:
    found = origin(run(until(50, every=10), saves=saved(20, 45)))
    assert [(c.step, c.state) for c in found.checkpoints] == [(20, "clean"), (45, "unknown")]


def test_a_checkpoint_that_retention_removed_is_not_offered() -> None:
    found = origin(run(until(45), saves=[*saved(20, 40), ("removed", 40, "out/step_40")]))
    assert found.last_clean_checkpoint is not None
    assert found.last_clean_checkpoint.step == 20


def test_a_save_that_was_never_committed_is_not_offered() -> None:
    found = origin(run(until(45), saves=[*saved(20), *saved(40, kind="saved")]))
    assert found.last_clean_checkpoint is not None
    assert found.last_clean_checkpoint.step == 20


def test_a_checkpoint_after_the_rise_began_is_passed_over_for_one_before_it() -> None:
    norms = {s: (1.0 + 0.01 * (s % 4)) * (20.0 if s > 40 else 1.0) for s in range(1, 45)}
    found = origin(run(until(45), norms, saved(20, 42)))
    assert found.precursor is not None
    assert (found.kind, found.precursor.step) == ("optimization_blowup", 41)
    assert found.last_clean_checkpoint is not None
    assert found.last_clean_checkpoint.step == 20


def test_a_folder_on_disk_gives_the_path() -> None:
    found = origin(
        run(until(45), saves=[("saved", 40, "/scratch/x/checkpoint-40"), ("directory", 40, "checkpoint-40")])
    )
    assert found.last_clean_checkpoint is not None
    assert found.last_clean_checkpoint.path == "checkpoint-40"


def test_a_healthy_run_has_no_origin_and_an_empty_one_is_unknown() -> None:
    assert origin(run(until(100))).kind == "none"
    assert origin(Run("empty")).kind == "unknown"


def test_a_stumble_is_stated_but_is_no_origin_to_restart_from() -> None:
    found = origin(run({s: (NAN if s == 30 else 2.0) for s in range(1, 100)}, saves=saved(20)))
    assert (found.kind, found.first_bad_step, found.restart) == ("none", 30, None)


TRAINERS = {one.name: one for one in registry.load("dialects").dialects}


@pytest.mark.parametrize("name", [name for name, one in TRAINERS.items() if one.restart])
def test_a_path_of_the_input_is_quoted_for_every_trainer(name: str) -> None:
    nasty = "out; rm -rf $HOME/step_40 'x'/step_40"
    words = shlex.split(restart_command([TRAINERS[name]], 40, nasty))
    assert "rm" not in words
    assert all(";" not in w or nasty in w or nasty.rpartition("/")[0] in w for w in words)


@pytest.mark.parametrize("path", ["a\nb", "a\x1b[31mb", "a\u202eb", "a\ud800"])
def test_a_path_with_control_characters_makes_no_command(path: str) -> None:
    assert restart_command([TRAINERS["kempnerforge"]], 40, path) == "resume from the checkpoint of step 40"


def test_an_unknown_trainer_gets_a_sentence() -> None:
    assert restart_command([TRAINERS["keras"]], 40, "x y/step_40") == "resume from 'x y/step_40'"
    assert restart_command([TRAINERS["nanogpt"]], 40, "out") == "--init_from=resume"
    assert restart_command([], 40, None) == "resume from the checkpoint of step 40"
    megatron = [TRAINERS["megatron"]]
    assert restart_command(megatron, 40, "ckpt/gpt") == "--load ckpt/gpt --ckpt-step 40"
    assert restart_command(megatron, 40, "ckpt/gpt/iter_0000040") == "--load ckpt/gpt --ckpt-step 40"
    assert restart_command(megatron, 40, "iter_0000040") == "--load . --ckpt-step 40"
    assert restart_command([TRAINERS["torchtitan"]], 40, None) == "--checkpoint.load_step=40"
