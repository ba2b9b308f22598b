"""More of the audit: other trainers' forms, what was consumed, weights on disk, launchers, several baselines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics.case.consumed import consumed, source_of
from forensics.cli.main import run as command
from forensics.compare.config._keys import OTHER, concept_of, normalised
from forensics.compare.config.audit import audit, audit_all
from forensics.pipeline import ingest_run
from tests.unit.compare._pair_files import ROOT, compared, maker, scored, write


@pytest.mark.parametrize("seed", [3, 41])
def test_the_cause_comes_first_in_other_forms_and_among_other_noise(tmp_path: Path, seed: int) -> None:
    score = scored(tmp_path, "config_pairs_other", 64, seed)
    assert score["first"] >= 0.9 * score["pairs"]
    assert score["in three"] >= 0.98 * score["pairs"]
    assert (score["without"], score["claimed of nothing"]) == (16, 0)


def metrics(shares: dict[str, float]) -> str:
    rows = (
        {"step": n, "loss": 2.5, **{f"data_mixture/tokens/source={k}": int(v * n * 1000) for k, v in shares.items()}}
        for n in range(1, 30)
    )
    return "".join(json.dumps(row) + "\n" for row in rows)


MIX = "data:\n  datasets:\n  - name: fern\n    weight: 0.7\n  - name: moss\n    weight: 0.3\n"


def test_a_mix_that_was_consumed_otherwise_is_a_cause_though_the_configurations_are_equal(tmp_path: Path) -> None:
    found = compared(
        tmp_path,
        {"a.yaml": MIX, "metrics.jsonl": metrics({"fern": 0.7, "moss": 0.3})},
        {"a.yaml": MIX, "metrics.jsonl": metrics({"fern": 0.4, "moss": 0.6})},
    )
    assert [(d.name, d.base, d.cand) for d in found.causes] == [
        ("data.consumed", "0.7", "0.4"), ("data.consumed", "0.3", "0.6"),
    ]  # fmt: skip
    assert found.base_drifts == ()
    assert "fern was to be 0.7 of the data and was 0.4 (a.yaml:4; metrics.jsonl:29)" in found.cand_drifts


def test_the_drawn_shares_of_a_blend_are_read_from_the_log(tmp_path: Path) -> None:
    ratios = "> building indices for blendable datasets ...\n > sample ratios:\n"
    ratios += (
        "   dataset 0, input: 0.8, achieved: 0.8001\n   dataset 1, input: 0.2, achieved: 0.1999\n step 1 loss 2.5\n"
    )
    run = ingest_run(write(tmp_path / "run", {"train.log": ratios}))
    assert {label: round(c.share, 4) for label, c in consumed(run).items()} == {
        "dataset 0": 0.8001,
        "dataset 1": 0.1999,
    }


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("data_mixture/tokens/source=web", "web"), ("data/web/tokens_seen", "web"), ("consumed_tokens/code", "code"),
        ("train/tokens_per_source/wiki", "wiki"), ("throughput/tokens_per_sec", None), ("tokens/total", None),
        ("train/loss", None), ("throughput/device/tokens", None), ("num_tokens", None),
    ],
)  # fmt: skip
def test_a_metric_that_counts_a_source_names_it(name: str, source: str | None) -> None:
    assert source_of(name) == source


def test_options_in_the_metadata_of_a_tracker_are_settings(tmp_path: Path) -> None:
    def side(rate: str) -> dict[str, str]:
        args = ["--learning_rate", rate, "--hub_token=hf_abcdefghijklmnop12", "--dataset_mixture", "fern=0.7,moss=0.3"]
        return {"wandb/run-1/files/wandb-metadata.json": json.dumps({"program": "train.py", "args": args})}

    (one,) = compared(tmp_path, side("1e-4"), side("3e-4")).causes
    assert (one.name, one.base, one.cand) == ("lr.peak", "0.0001", "0.0003")


def test_a_launch_script_gives_options_and_devices(tmp_path: Path) -> None:
    script = "torchrun --nproc_per_node {} train.py --lr 0.1 \\\n  --micro_batch_size 4 --seed 1\n"
    found = compared(tmp_path, {"launch.sh": script.format(8)}, {"launch.sh": script.format(4)})
    assert [(d.name, d.base, d.cand) for d in found.causes] == [("batch.effective", "32", "16")]


def test_more_devices_and_fewer_accumulations_are_the_same_batch(tmp_path: Path) -> None:
    text = "world_size: {}\ntensor_model_parallel_size: {}\nmicro_batch_size: 2\nupdate_freq: [{}]\nlr: 0.1\n"
    found = compared(tmp_path, {"a.yaml": text.format(16, 2, 8)}, {"a.yaml": text.format(16, 1, 4)})
    assert not found.causes


def test_rows_of_the_embedding_are_compared_from_the_weights(tmp_path: Path) -> None:
    weights = maker("safetensors_header").weights
    for name, rows in (("good", 96), ("bad", 80)):
        write(tmp_path / name, {"a.yaml": "lr: 0.1\n"})
        (tmp_path / name / "model.safetensors").write_bytes(weights({"model.embed_tokens.weight": (rows, 4)}))
    (one,) = audit(ingest_run(tmp_path / "good"), ingest_run(tmp_path / "bad")).causes
    assert (one.family, one.base, one.cand) == ("tokenizer and vocabulary", "96", "80")


def test_what_two_good_runs_differ_in_is_no_cause(tmp_path: Path) -> None:
    texts = (
        "lr: 0.1\nmax_steps: 900\nseed: 1\n",
        "lr: 0.2\nmax_steps: 900\nseed: 2\n",
        "lr: 0.2\nmax_steps: 400\nseed: 3\n",
    )
    runs = [ingest_run(write(tmp_path / str(n), {"a.yaml": text})) for n, text in enumerate(texts)]
    assert [d.name for d in audit(runs[0], runs[2]).causes] == ["lr.peak", "budget"]
    assert [d.name for d in audit_all(runs[:2], runs[2]).causes] == ["budget"]


def test_triage_takes_several_baselines(capsys: pytest.CaptureFixture[str]) -> None:
    base = ROOT / "fixtures/runs/bad-eval-good"
    command(["triage", str(ROOT / "fixtures/runs/bad-eval-mix"), "--baseline", str(base), "--baseline", str(base)])
    assert "in the baseline" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("key", "family"),
    [
        ("base_emb_dim", "model"), ("enable_data_shuffling", "data mix and order"), ("model.attn.rope_scale", "model"),
        ("sft_train_on_completion_only", "data mix and order"), ("gradient_clipping_threshold", "optimizer"),
        ("learning_rate_schedule_type", "learning rate and schedule"), ("decode_sampling_nucleus_p", "decoding"),
        ("load_parameters_path", "model"), ("max_steps_per_epoch", "batch and tokens"), ("init_weights_seed", "seeds"),
        ("muon_warmup_iters", "learning rate and schedule"), ("activation_dtype", "precision"),
    ],
)  # fmt: skip
def test_the_words_of_an_unknown_key_tell_its_family(key: str, family: str) -> None:
    found = concept_of(normalised(key))
    assert found is not None
    assert found.family == family


@pytest.mark.parametrize(
    "key",
    ["dataset_cache_steps", "model_save_interval", "train_log_period", "tokenizer_workers", "eval.batch_size_hint"],
)
def test_words_of_places_and_rhythms_tell_nothing(key: str) -> None:
    found = concept_of(normalised(key))
    assert found is None or found is OTHER or not found.weight > 3 or found.family == "evaluation settings"
