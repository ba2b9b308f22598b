"""Settings, tokenizers, packages and commits as facts: read with lines, without secrets, and nothing else taken."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.dialects.settings.literal import Walk, leaves
from forensics.errors import NotMine
from forensics.formats.configs import documents as config_files
from forensics.formats.configs import git_record
from forensics.formats.configs import requirements as requirements_txt
from forensics.formats.configs import tokenizers as tokenizer_files
from forensics.formats.rows.secrets import masked
from forensics.formats.text import log as text_log

Run = Callable[..., Any]


def facts(wrote: Any, family: str | None = None) -> dict[str, Any]:
    rows = wrote.table("facts").select("key", "value", "family").iter_rows()
    return {key: json.loads(value) for key, value, found in rows if family in (None, found)}


def lines(wrote: Any) -> dict[str, int]:
    return dict(wrote.table("facts").select("key", "line").iter_rows())


def test_a_model_configuration_is_read_with_lines_and_its_version_apart(run_fixture: Run) -> None:
    wrote = run_fixture(config_files.read, "config_files/ok-huggingface")
    assert facts(wrote, "config")["rope_scaling.factor"] == 2.0
    assert facts(wrote, "versions") == {"transformers_version": "4.51.3"}
    assert lines(wrote)["vocab_size"] == 13
    assert wrote.coverage.skipped_bytes == 0


def test_generation_settings_are_a_family_of_their_own(run_fixture: Run) -> None:
    wrote = run_fixture(config_files.read, "config_files/ok-generation")
    assert facts(wrote, "generation") == {
        "do_sample": True,
        "temperature": 0.7,
        "eos_token_id.0": 2,
        "eos_token_id.1": 5,
    }


def test_tables_in_lists_of_toml_have_the_lines_of_their_own(run_fixture: Run) -> None:
    wrote = run_fixture(config_files.read, "config_files/ok-toml")
    assert facts(wrote)["data.datasets.1.weight"] == 0.35
    assert lines(wrote)["data.datasets.0.weight"] == 12
    assert lines(wrote)["data.datasets.1.weight"] == 16
    assert lines(wrote)["optimizer.betas.1"] == 8


def test_the_wrapping_of_a_tracker_is_taken_off(run_fixture: Run) -> None:
    wrote = run_fixture(config_files.read, "config_files/ok-wandb")
    assert facts(wrote, "config") == {"learning_rate": 0.0006, "model.dim": 384, "model.layers": 6}
    assert facts(wrote, "versions") == {"cli": "0.17.4", "python": "3.11.6"}


def test_an_alias_is_not_followed(run_fixture: Run) -> None:
    assert facts(run_fixture(config_files.read, "config_files/ok-hydra"))["eval_data"] == "*d"


def test_secrets_and_persons_are_never_written(run_fixture: Run) -> None:
    found = facts(run_fixture(config_files.read, "config_files/ok-secrets"))
    hidden = ("hub_token", "wandb_api_key", "db_password", "user_name", "contact")
    assert {found[key] for key in hidden} == {"***"}
    assert (found["eos_token"], found["max_tokens"], found["lr"]) == ("</s>", 512, 0.001)
    assert found["data_url"] == "https://***@store.example/x"


@pytest.mark.parametrize(
    ("case", "kept"),
    [("broken-cut-json", "num_hidden_layers"), ("broken-cut-toml", "optimizer.lr"), ("broken-yaml", "seed")],
)
def test_what_stands_before_damage_is_kept_and_the_damage_stated(case: str, kept: str, run_fixture: Run) -> None:
    wrote = run_fixture(config_files.read, f"config_files/{case}")
    assert kept in facts(wrote)
    assert [issue.code for issue in wrote.issues] == ["damaged"]


@pytest.mark.parametrize("case", ["other-trace", "other-results", "other-data", "other-lines"])
def test_documents_that_hold_no_settings_are_left_to_others(case: str, run_fixture: Run) -> None:
    with pytest.raises(NotMine):
        run_fixture(config_files.read, f"config_files/{case}")


def test_a_tokenizer_gives_numbers_and_hashes_and_no_vocabulary(run_fixture: Run) -> None:
    wrote = run_fixture(tokenizer_files.read, "tokenizer_files/ok-bpe")
    found = facts(wrote)
    assert (found["tokenizer.n_base_tokens"], found["tokenizer.n_tokens"], found["tokenizer.max_id"]) == (22, 24, 23)
    assert found["tokenizer.special.23"] == "</s>"
    assert "ab" not in {str(value) for value in found.values()}


def test_the_same_vocabulary_and_merges_have_one_hash_in_all_files(run_fixture: Run) -> None:
    whole = facts(run_fixture(tokenizer_files.read, "tokenizer_files/ok-bpe"))
    for case, key in (("ok-vocab", "tokenizer.base_sha256"), ("ok-merges", "tokenizer.merges_sha256")):
        assert facts(run_fixture(tokenizer_files.read, f"tokenizer_files/{case}"))[key] == whole[key]


def test_a_template_has_one_hash_wherever_it_stands(run_fixture: Run) -> None:
    alone = facts(run_fixture(tokenizer_files.read, "tokenizer_files/ok-template"))
    inside = facts(run_fixture(tokenizer_files.read, "tokenizer_files/ok-settings"))
    assert alone["tokenizer.chat_template_sha256"] == inside["tokenizer.chat_template_sha256"]


def test_a_cut_tokenizer_is_stated_and_not_counted(run_fixture: Run) -> None:
    wrote = run_fixture(tokenizer_files.read, "tokenizer_files/broken-cut")
    assert [issue.code for issue in wrote.issues] == ["damaged"]
    assert not facts(wrote)


def test_packages_keep_versions_and_commits_and_lose_addresses(run_fixture: Run) -> None:
    found = facts(run_fixture(requirements_txt.read, "requirements_txt/ok-freeze"))
    assert found["torch"] == "2.7.1"
    assert found["larch"] == "commit 0a1b2c3d4e5f"
    assert "forge.example" not in json.dumps(found)


def test_prose_is_no_list_of_packages(run_fixture: Run) -> None:
    with pytest.raises(NotMine):
        run_fixture(requirements_txt.read, "requirements_txt/other-prose")


@pytest.mark.parametrize("case", ["ok-alone", "ok-log"])
def test_a_commit_is_read_without_its_author(case: str, run_fixture: Run) -> None:
    found = facts(run_fixture(git_record.read, f"git_record/{case}"))
    assert found == {"git_commit": "5f0c1d2e3b4a59687786f5e4d3c2b1a001122334"}


def test_a_log_gives_the_settings_that_it_prints(run_fixture: Run) -> None:
    wrote = run_fixture(text_log.read, "text_log/ok-settings")
    found, at = facts(wrote, "config"), lines(wrote)
    assert found["model.dim"] == 384
    assert found["bf16"] is True
    assert (found["padded_vocab_size"], at["padded_vocab_size"]) == (8064, 6)
    assert (found["betas.1"], at["betas.1"]) == (0.95, 9)
    assert found["sched.kind"] == "cosine"
    assert (found["optimizer.weight_decay"], at["optimizer.weight_decay"]) == (0.05, 14)
    assert found["hub_token"] == "***"
    assert facts(wrote, "env") == {"launcher.nproc_per_node": 4}


def test_a_log_of_steps_alone_has_no_settings(run: Run) -> None:
    wrote = run(text_log.read, "train.log", b"".join(b"step %d loss 2.5 lr: 0.1\n" % n for n in range(50)))
    assert not facts(wrote)


@pytest.mark.parametrize(
    "key", ["api_key", "HF_TOKEN", "wandb.api_key", "aws_secret_access_key", "db.password", "token"]
)
def test_a_value_under_a_secret_name_is_masked(key: str) -> None:
    assert masked(key, "correct-horse") == "***"


@pytest.mark.parametrize(
    "key", ["bos_token", "image_token", "num_tokens", "text_key", "tokenizer", "keyword", "monkey"]
)
def test_a_setting_that_sounds_like_a_secret_is_kept(key: str) -> None:
    assert masked(key, "plain") == "plain"


scalars = st.none() | st.booleans() | st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False)
keys = st.text("abcdefgh_", min_size=1, max_size=6)
cells = scalars | st.text(max_size=12)
documents = st.dictionaries(keys, cells | st.dictionaries(keys, cells | st.just({}), max_size=3), max_size=4)


def flat(value: object, path: str = "") -> dict[str, object]:
    if isinstance(value, dict):
        return {k: v for key, inner in value.items() for k, v in flat(inner, f"{path}.{key}" if path else key).items()}
    return {path: value}


@given(documents)
def test_json_and_python_spellings_of_a_document_give_its_leaves(document: dict[str, object]) -> None:
    for text in (json.dumps(document), repr(document)):
        walk = Walk()
        assert {leaf.path: leaf.value for leaf in leaves(text, 0, walk)} == flat(document)
        assert walk.end == len(text)


@given(st.text("{}[]()'\",:= aT1\\<>\n", max_size=200))
def test_no_text_breaks_the_walk(text: str) -> None:
    walk = Walk()
    found = list(leaves("{" + text, 0, walk))
    assert all(leaf.at <= len(text) + 1 for leaf in found)
