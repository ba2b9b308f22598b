"""Checkpoints on disk: the step by the names that trainers give, weights never read, unfinished saves named so."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

import pytest

from forensics.errors import NotMine
from forensics.formats.checkpoints.folders import read
from forensics.model import Source
from forensics.registry import Sniff, load
from forensics.store.fill import candidates
from forensics.values import replace

Run = Callable[..., Any]
WEIGHTS = b"\x80\x02\x00weights"


@pytest.mark.parametrize(
    ("path", "step", "folder"),
    [
        ("out/checkpoint-500/model.safetensors", 500, "out/checkpoint-500"),
        ("ckpt/step_40/shard/__0_0.distcp", 40, "ckpt/step_40"),
        ("ckpt/step1000-unsharded/model.pt", 1000, "ckpt/step1000-unsharded"),
        ("global_step20/mp_rank_00_model_states.pt", 20, "global_step20"),
        ("iter_0000500/mp_rank_00/model_optim_rng.pt", 500, "iter_0000500"),
        ("lightning_logs/epoch=1-step=200.ckpt", 200, "lightning_logs/epoch=1-step=200.ckpt"),
        ("composer/ep3-ba1200-rank0.pt", 1200, "composer/ep3-ba1200-rank0.pt"),
        ("fairseq/checkpoint_7_9000.pt", 9000, "fairseq/checkpoint_7_9000.pt"),
        ("detectron/model_0004999.pth", 4999, "detectron/model_0004999.pth"),
        ("state_step002000.pt", 2000, "state_step002000.pt"),
        ("checkpoints/300/params.npz", 300, "checkpoints/300"),
        ("weights/best.pt", None, "weights"),
        ("hf/model-00001-of-00004.safetensors", None, "hf"),
    ],
)
def test_the_step_stands_in_the_path(path: str, step: int | None, folder: str, run: Run) -> None:
    wrote = run(read, path, WEIGHTS)
    rows = wrote.table("checkpoints").select("step", "path", "kind", "complete").rows()
    assert rows == [(step, folder, "directory", None)]
    assert (wrote.coverage.read_bytes, wrote.coverage.reason) == (0, "weights, not read")


def test_a_temporary_folder_and_an_empty_file_are_not_complete(run: Run) -> None:
    for path, step, data in (
        ("checkpoint-60.tmp/model.safetensors", 60, WEIGHTS),
        ("tmp-checkpoint-80/model.safetensors", 80, WEIGHTS),
        ("checkpoints/70.orbax-checkpoint-tmp-17/_CHECKPOINT_METADATA", 70, WEIGHTS),
        ("checkpoints/75.orbax-checkpoint-tmp-17/default/d/0a1b2c", 75, WEIGHTS),
        ("checkpoint-90/model.safetensors", 90, b""),
    ):
        assert run(read, path, data).table("checkpoints").select("step", "complete").rows() == [(step, False)], path


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("step_40/model.pt", b"PK\x03\x04" + bytes(300) + b"PK\x05\x06" + bytes(18)),
        ("rl_model_40_steps.zip", b"PK\x03\x04" + bytes(300) + b"PK\x05\x06" + bytes(18)),
        ("step_40/w.h5", b"\x89HDF\r\n\x1a\n" + bytes(32) + (300).to_bytes(8, "little") + bytes(252)),
        ("step_40/w.hdf5", b"\x89HDF\r\n\x1a\n\x02" + bytes(19) + (300).to_bytes(8, "little") + bytes(264)),
    ],
)
def test_a_container_that_lacks_its_end_is_not_complete(name: str, whole: bytes, run: Run) -> None:
    for data, complete in (
        (whole, None),
        (whole[:-1], None if name.endswith((".pt", ".zip")) else False),
        (whole[:200], False),
    ):
        assert run(read, name, data).table("checkpoints").select("step", "complete").rows() == [(40, complete)]


def test_text_in_place_of_weights_stands_for_a_checkpoint_that_was_saved(run: Run) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    rows = run(read, "out/checkpoint-40/model.safetensors", pointer).table("checkpoints")
    assert rows.select("step", "complete").rows() == [(40, None)]


@pytest.mark.parametrize("name", ["data/train.h5", "upload.zip", "features.hdf5"])
def test_an_archive_without_a_step_in_its_name_is_left_to_others(name: str, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, name, WEIGHTS)


def test_a_marker_that_is_written_last_means_complete(run: Run) -> None:
    for path in ("step_40/.metadata", "log/DONE_00000040"):
        rows = run(read, path, WEIGHTS).table("checkpoints").select("step", "complete").rows()
        assert rows == [(40, True)], path


@pytest.mark.parametrize(
    ("path", "data", "step", "folder"),
    [
        ("out/latest", b"global_step20", 20, "out/global_step20"),
        ("latest_checkpointed_iteration.txt", b"500\n", 500, "iter_0000500"),
        ("work/last_checkpoint", b"/data/exp/iter_900.pth", 900, "work/iter_900.pth"),
    ],
)
def test_a_pointer_names_a_finished_checkpoint(path: str, data: bytes, step: int, folder: str, run: Run) -> None:
    wrote = run(read, path, data)
    assert wrote.table("checkpoints").select("step", "path", "complete").rows() == [(step, folder, True)]
    assert wrote.coverage.read_bytes == len(data)


def test_a_data_set_is_no_checkpoint(run: Run) -> None:
    wrote = run(read, "data/train.bin", WEIGHTS)
    assert wrote.table("checkpoints").height == 0
    assert wrote.coverage.skipped_bytes == len(WEIGHTS)


@pytest.mark.parametrize(
    ("path", "data"), [("run/latest", b"two words"), ("notes.bin", b"only text\n"), ("latest", b"")]
)
def test_text_with_such_a_name_is_left_to_others(path: str, data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(read, path, data)


@pytest.mark.parametrize("glob", ["latest", "*.pt", "step*", "*/ckpt/*", "*_[0-9].pt", "shard?", "a*b", "*a*b*", "*"])
def test_a_name_is_offered_by_each_form_of_glob_as_fnmatch_has_it(glob: str) -> None:
    names = (
        "latest",
        "latest2",
        "x.pt",
        "x.pt.gz",
        "x_1.pt",
        "step",
        "step_3",
        "a/ckpt/b",
        "shard1",
        "ab",
        "a-b",
        "xaabx",
    )
    one = replace(load("ingesters").ingesters[0], sniff=Sniff(path=(glob,)))
    offered = [name for name in names if [*candidates(Source(name, 10), b"", [one])]]
    assert offered == [name for name in names if fnmatchcase(name, glob)] != []


@pytest.mark.parametrize(
    "name", ["latest", ".metadata", "latest_checkpointed_iteration.txt", "model.pt", "DONE_00000040"]
)
def test_these_names_are_offered_here_before_the_text_log(name: str) -> None:
    order = [one.name for one in candidates(Source(f"step_1/{name}", 10), b"\x80", load("ingesters").ingesters)]
    assert order[0] == "checkpoint_dirs"


def test_every_file_of_a_folder_that_orbax_has_not_renamed_is_offered_here() -> None:
    names = ("70.orbax-checkpoint-tmp-17/default/d/0a1b", "70/default/d/0a1b")
    first = ([*candidates(Source(name, 10), b"\x0c", load("ingesters").ingesters)][:1] for name in names)
    assert ["checkpoint_dirs" in {one.name for one in found} for found in first] == [True, False]
