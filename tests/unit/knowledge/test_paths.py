"""What a path tells of a checkpoint."""

from __future__ import annotations

import pytest

from forensics.knowledge.paths import CheckpointName, Named, checkpoint_names, named, whose


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("checkpoints/epoch_04.keras", Named("checkpoints/epoch_04.keras", epoch=4)),
        ("work_dirs/epoch_12.pth", Named("work_dirs/epoch_12.pth", epoch=12)),
        ("out/resnet-epoch=7.ckpt", Named("out/resnet-epoch=7.ckpt", epoch=7)),
        ("models/weights.03-1.25.hdf5", Named("models/weights.03-1.25.hdf5", epoch=3)),
        ("models/cp-0010.weights.h5", Named("models/cp-0010.weights.h5", epoch=10)),
        ("tune/epoch_2/model-00001-of-00002.safetensors", Named("tune/epoch_2", epoch=2)),
        ("logs/rl_model_1600_steps.zip", Named("logs/rl_model_1600_steps.zip", step=1600)),
        ("lit/epoch=3-step=400.ckpt", Named("lit/epoch=3-step=400.ckpt", step=400)),
        ("out/step_50/random_states_0.pkl", Named("out/step_50", step=50)),
        ("out/checkpoint-60.tmp/model.safetensors", Named("out/checkpoint-60.tmp", step=60, temporary=True)),
        ("exp/asr_train/4epoch.pth", Named("exp/asr_train/4epoch.pth", epoch=4)),
        ("out/model.ckpt-400.index", Named("out/model.ckpt-400.index", step=400)),
        ("ckpt/state.400.pt", Named("ckpt/state.400.pt", step=400)),
        ("out/snap_000200.bin", Named("out/snap_000200.bin", step=200)),
        ("exp/valid.acc.ave_10best.pth", Named("exp")),
        ("out/snapshot.bin", Named("out")),
        ("weights/best.pt", Named("weights")),
        ("best.pt", None),
        ("a/step_123456789012345678901/model.pt", Named("a/step_123456789012345678901")),
    ],
)
def test_a_name_gives_the_step_or_the_epoch(path: str, told: Named | None) -> None:
    assert named(path) == told


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("out/step_50", "out/step_50"),
        ("out/step_50/", "out/step_50"),
        ("/data/run/checkpoint-40/optimizer.pt", "/data/run/checkpoint-40"),
        ("out/step_50/custom_checkpoint_0.pkl", "out/step_50"),
        ("checkpoints/epoch_04.keras", "checkpoints/epoch_04.keras"),
        ("lit/epoch=3-step=400.ckpt", "lit/epoch=3-step=400.ckpt"),
        ("checkpoints/300", "checkpoints/300"),
    ],
)
def test_a_log_may_name_the_folder_the_file_or_a_file_inside_of_it(path: str, own: str) -> None:
    found = whose(path)
    assert found is not None
    assert found.path == own


def test_a_path_without_a_place_in_training_is_nobodys() -> None:
    assert whose("weights/best.pt") is None
    assert whose("model.safetensors") is None


@pytest.mark.parametrize("row", checkpoint_names(), ids=lambda row: row.row)
def test_a_row_fits_the_names_that_it_is_like_and_no_near_miss(row: CheckpointName) -> None:
    assert [name for name in row.like if row.compiled.match(name) is None] == []
    assert [name for name in row.unlike if row.compiled.match(name)] == []
