"""Episodes of monitor files, and arguments in hparams.yaml: read as data, with their lines."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from forensics.errors import NotMine
from forensics.formats.configs import hparams as hparams_yaml
from forensics.formats.configs.yaml_leaves import leaves
from forensics.formats.metrics import monitor as monitor_csv

Run = Callable[..., Any]


def facts(wrote: Any) -> dict[str, Any]:
    return {key: json.loads(value) for key, value in wrote.table("facts").select("key", "value").iter_rows()}


def test_an_episode_is_a_step_and_has_the_time_of_its_end(run_fixture: Run) -> None:
    wrote = run_fixture(monitor_csv.read, "monitor_csv/ok-successes")
    assert wrote.points("episode_reward") == [(k + 1, -20.0 + 3 * k) for k in range(8)]
    first = wrote.table("metrics").row(0, named=True)
    assert (first["line"], first["t_ns"] // 1000) == (3, 1_760_000_004_750_000)
    assert facts(wrote) == {"monitor.t_start": 1760000000.5, "monitor.env_id": "Ledge-v2"}


def test_a_nan_reward_stays_one(run_fixture: Run) -> None:
    rewards = run_fixture(monitor_csv.read, "monitor_csv/ok-plain").points("episode_reward")
    assert rewards[0] == (1, 1.5)
    assert math.isnan(rewards[1][1])


def test_a_cut_episode_is_stated(run_fixture: Run) -> None:
    wrote = run_fixture(monitor_csv.read, "monitor_csv/broken-cut")
    assert [issue.code for issue in wrote.issues] == ["row-cut"]
    assert len(wrote.points("episode_length")) == 7


@pytest.mark.parametrize("data", [b"", b"r,l,t\n1,2,3\n", b"#{}\nx,y\n1,2\n"])
def test_other_tables_are_left_to_others(data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(monitor_csv.read, "monitor.csv", data)


def test_arguments_become_facts_with_their_paths_and_types(run_fixture: Run) -> None:
    wrote = run_fixture(hparams_yaml.read, "hparams_yaml/ok-arguments")
    assert facts(wrote) == {
        "batch_size": 12,
        "lr": 3e-05,
        "warmup": 0.0,
        "name": "null",
        "use_ema": True,
        "resume": None,
        "limit": "Infinity",
        "shape.0": 8,
        "shape.1": 16,
        "backbone.depth": 4,
        "backbone.act": "!!python/name:torch.nn.modules.activation.GELU",
        "teacher": "*one",
        "root.0": "/",
        "root.1": "data",
        "opt.betas.0": 0.9,
        "opt.betas.1": 0.95,
        "note": "two\nlines",
    }
    assert wrote.table("facts")["line"].to_list()[:3] == [1, 2, 3]


def test_a_cut_file_keeps_what_stands_before_the_cut(run_fixture: Run) -> None:
    wrote = run_fixture(hparams_yaml.read, "hparams_yaml/broken-cut")
    assert facts(wrote)["opt.betas.1"] == 0.95
    assert [issue.code for issue in wrote.issues] == ["damaged"]
    assert wrote.coverage.skipped_bytes > 0


def test_a_tag_constructs_nothing(run: Run, tmp_path: Any) -> None:
    proof = tmp_path / "made"
    data = f"a: !!python/object/apply:os.mkdir ['{proof}']\nb: !!python/module:antigravity ''\n".encode()
    assert facts(run(hparams_yaml.read, "hparams.yaml", data)) == {
        "a.0": str(proof),
        "b": "!!python/module:antigravity",
    }
    assert not proof.exists()


def test_aliases_cannot_make_a_document_grow() -> None:
    text = "a: &a [x, x, x]\n" + "".join(f"k{n}: &k{n} [*a, *a, *a, *a]\n" for n in range(40))
    assert len(list(leaves(text))) == 3 + 160


@pytest.mark.parametrize("data", [b"", b"\n# only words\n"])
def test_an_empty_file_gives_no_facts(data: bytes, run: Run) -> None:
    assert run(hparams_yaml.read, "hparams.yaml", data).table("facts").is_empty()


@pytest.mark.parametrize("data", [b"just text", b"\x00\x01", b"- 'open"])
def test_what_is_no_mapping_is_left_to_others(data: bytes, run: Run) -> None:
    with pytest.raises(NotMine):
        run(hparams_yaml.read, "hparams.yaml", data)
