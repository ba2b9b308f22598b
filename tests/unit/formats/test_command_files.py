"""Commands in files: their options are settings, those of the launcher stand apart, nothing is run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from forensics.errors import NotMine
from forensics.formats.configs import commands as command_files

Run = Callable[..., Any]


def facts(wrote: Any) -> dict[str, tuple[int, str, str]]:
    rows = wrote.table("facts").select("key", "line", "value", "family").iter_rows()
    return {key: (line, value, family) for key, line, value, family in rows}


def test_a_continued_command_is_one_and_its_secrets_are_hidden(run_fixture: Run) -> None:
    found = facts(run_fixture(command_files.read, "command_files/ok-script"))
    assert found["lr"] == (5, "0.0003", "config")
    assert found["launcher.nproc_per_node"] == (5, "8", "env")
    assert found["api_key"] == (5, '"***"', "config")
    assert not any("rain" in value or "PuDdLe" in value for _, value, _ in found.values())


def test_a_batch_script_tells_nodes_and_overrides(run_fixture: Run) -> None:
    found = facts(run_fixture(command_files.read, "command_files/ok-batch"))
    assert found["slurm.nnodes"] == (2, '"4"', "env")
    assert found["data.mix"] == (6, '"brook"', "config")


def test_overrides_of_hydra_are_settings(run_fixture: Run) -> None:
    found = facts(run_fixture(command_files.read, "command_files/ok-hydra"))
    assert found == {"optim.lr": (1, "0.3", "config"), "data.mix": (2, '"brook"', "config"), "seed": (3, "4", "config")}


def test_a_script_without_a_training_program_is_left_to_others(run_fixture: Run) -> None:
    with pytest.raises(NotMine):
        run_fixture(command_files.read, "command_files/other-script")
