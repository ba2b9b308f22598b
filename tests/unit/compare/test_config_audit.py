"""The audit of settings: the injected cause comes first, noise is no cause, and spelling is no difference."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from forensics.cli.main import run as command
from forensics.compare.config._keys import concept_of, normalised
from forensics.compare.config.values import same, value_of
from tests.unit.compare._pair_files import ROOT, compared, scored, write


def test_the_injected_cause_is_ranked_first_and_noise_is_no_cause(tmp_path: Path) -> None:
    score = scored(tmp_path, "config_pairs", 96, 11)
    assert score["first"] >= 0.9 * score["pairs"]
    assert score["in three"] >= 0.98 * score["pairs"]
    assert (score["without"], score["claimed of nothing"]) == (24, 0)


def test_shares_in_other_units_and_another_order_are_no_change(tmp_path: Path) -> None:
    good = "data:\n  datasets:\n  - name: fern\n    weight: 0.7\n  - name: moss\n    weight: 0.3\n"
    bad = "data:\n  datasets:\n  - name: moss\n    weight: 3\n  - name: fern\n    weight: 7\n"
    assert not compared(tmp_path, {"a.yaml": good}, {"a.yaml": bad}).differences


def test_a_blend_of_weights_and_paths_is_a_mix(tmp_path: Path) -> None:
    rows = "  data_path ..... {}\n  seed ......... 1\n  lr ......... 0.1\n"
    table = f"------ arguments ------\n{rows}--- end of arguments ---\n"
    found = compared(
        tmp_path,
        {"a.log": table.format("['0.5', '/d/fern', '0.5', '/d/moss']")},
        {"a.log": table.format("['0.9', '/e/fern', '0.1', '/e/moss']")},
    )
    assert found.causes
    assert found.causes[0].family == "data mix and order"


def test_another_name_and_format_for_the_same_setting_is_no_difference(tmp_path: Path) -> None:
    found = compared(tmp_path, {"a.yaml": "lr: 3.0e-4\nseed: 1\n"}, {"b.toml": "learning_rate = 0.0003\nseed = 1\n"})
    assert not found.differences


def test_both_values_have_both_places(tmp_path: Path) -> None:
    found = compared(tmp_path, {"a.yaml": "seed: 1\nlr: 0.1\n"}, {"a.yaml": "lr: 0.4\nseed: 1\n"})
    (one,) = found.causes
    assert (one.name, one.base, one.cand) == ("lr.peak", "0.1", "0.4")
    assert one.base_evidence is not None
    assert one.cand_evidence is not None
    assert (one.base_evidence.place, one.cand_evidence.place) == ("a.yaml:2", "a.yaml:1")


def test_the_same_batch_split_otherwise_is_a_minor_difference(tmp_path: Path) -> None:
    found = compared(
        tmp_path,
        {"a.yaml": "micro_batch_size: 4\ngradient_accumulation_steps: 8\nlr: 0.1\n"},
        {"a.yaml": "micro_batch_size: 8\ngradient_accumulation_steps: 4\nlr: 0.1\n"},
    )
    assert len(found.differences) == 2
    assert not found.causes


def test_the_logged_rate_counts_where_the_configured_one_is_equal(tmp_path: Path) -> None:
    def log(peak: float) -> str:
        return "".join(json.dumps({"step": n, "loss": 2.5, "lr": peak * (1 - n / 200)}) + "\n" for n in range(1, 100))

    found = compared(
        tmp_path,
        {"a.yaml": "lr: 0.001\n", "metrics.jsonl": log(0.001)},
        {"a.yaml": "lr: 0.001\n", "metrics.jsonl": log(0.0005)},
    )
    assert [d.name for d in found.causes] == ["lr.logged"]


def test_a_secret_that_differs_is_never_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write(tmp_path / "good", {"a.yaml": "lr: 0.1\nhub_token: hf_AbCdEfGhIjKlMnOpQr12\n"})
    bad = write(tmp_path / "bad", {"a.yaml": "lr: 0.2\nhub_token: hf_ZyXwVuTsRqPoNmLkJi34\n"})
    for form in ("text", "markdown", "json", "github", "junit"):
        command(["diff", str(good), str(bad), "--section", "config", "--format", form])
        shown = capsys.readouterr().out
        assert "AbCdEf" not in shown
        assert "ZyXwVu" not in shown


def test_the_section_lists_every_difference_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write(tmp_path / "good", {"a.yaml": "lr: 0.1\nseed: 1\nrun_name: fern\n"})
    bad = write(tmp_path / "bad", {"a.yaml": "lr: 0.2\nseed: 2\nrun_name: moss\n"})
    command(["diff", str(good), str(bad), "--section", "config,throughput", "--format", "json"])
    found = json.loads(capsys.readouterr().out)
    rows = found["sections"]["config"]["rows"]
    assert [(row["rank"], row["name"], row["cause"]) for row in rows] == [(1, "lr.peak", "true"), (2, "seed", "false")]
    schema = json.loads((ROOT / "forensics/report/_schema/diff-1.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(found, schema)


def test_nothing_recorded_differs_is_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write(tmp_path / "good", {"a.yaml": "lr: 0.1\n"})
    bad = write(tmp_path / "bad", {"a.yaml": "lr: 1e-1\n"})
    command(["diff", str(good), str(bad), "--section", "config"])
    shown = capsys.readouterr().out
    assert "nothing that was recorded differs" in shown
    assert "pip freeze" in shown


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        ("optimizer.params.lr", "lr.peak"), ("trainer/max_steps", "budget"), ("lr-warmup-fraction", "lr.warmup"),
        ("data.datasets.[fern].weight", "data.weights"), ("datasets.[fern].revision", "data.sources"),
        ("maxSeqLength", "batch.sequence"), ("padded_vocab_size", "tokenizer.vocabulary"),
        ("generation.top_p", "decoding"), ("bf16.enabled", "precision.training"), ("rotary_base", "model.position"),
        ("tp_size", "parallelism"), ("random_seed", "seed"), ("actor.optim.lr", "lr.peak"),
    ],
)  # fmt: skip
def test_a_key_has_one_meaning_whatever_the_trainer_calls_it(key: str, wanted: str) -> None:
    found = concept_of(normalised(key))
    assert found is not None
    assert found.name == wanted


@pytest.mark.parametrize(
    "key",
    ["output_dir", "run_name", "wandb.project", "master_port", "hostname", "logging_steps", "save_steps", "created_at",
     "dataloader_num_workers", "hydra.run.dir", "profiler.enabled", "checkpoint.interval", "report_to"],
)  # fmt: skip
def test_noise_has_no_meaning(key: str) -> None:
    assert concept_of(normalised(key)) is None


@pytest.mark.parametrize(
    ("a", "b"),
    [("0.0001", '"1e-4"'), ("null", '"None"'), ('"torch.bfloat16"', '"bf16"'), ("4", "4.0"), ("true", '"True"'),
     ('"/mnt/a/fern"', '"s3://moss/fern"'), ('"[0.9, 0.95]"', "[0.9, 0.95]")],
)  # fmt: skip
def test_two_spellings_are_one_value(a: str, b: str) -> None:
    assert same(value_of(a), value_of(b))


@pytest.mark.parametrize(("a", "b"), [("0.0001", "0.0002"), ("null", "0.1"), ('"adamw"', '"lion"'), ("true", "false")])
def test_other_values_are_not_the_same(a: str, b: str) -> None:
    assert not same(value_of(a), value_of(b))
