"""Names that no table knows are understood by what else the run logs."""

from __future__ import annotations

import polars as pl
import pytest

from forensics.case.series import keys_of
from forensics.dialects.names import canonical
from forensics.store.run import run_of


def named(*printed: str) -> list[str]:
    """Give the canonical names of printed ones, in a run that logs each of them once."""
    rows = {
        "source": ["train.log"] * len(printed),
        "seq": range(len(printed)),
        "raw_name": printed,
        "name": [canonical(name).canonical for name in printed],
        "value": [1.0] * len(printed),
    }
    return keys_of(run_of("run", {"metrics": pl.DataFrame(rows)}))["name"].to_list()


@pytest.mark.parametrize("name", ["train_nll_loss", "main loss", "trainer/lm_nll", "objective.cross_entropy"])
def test_the_only_loss_of_a_run_is_its_loss(name: str) -> None:
    assert named("lr", name, "acc") == ["lr", "loss", "acc"]


def test_the_only_loss_of_held_out_data_is_the_loss_of_the_evaluation() -> None:
    assert named("main_loss", "dev_nll") == ["loss", "eval_loss"]


@pytest.mark.parametrize("name", ["gradient_l2", "grads/global_norm", "norm of gradients"])
def test_the_only_norm_of_the_gradients_is_their_norm(name: str) -> None:
    assert named("loss", name) == ["loss", "grad_norm"]


def test_two_losses_are_parts_of_one_or_of_two_models() -> None:
    assert named("span_loss", "mlm_loss") == ["span_loss", "mlm_loss"]


@pytest.mark.parametrize("part", ["kl_loss", "aux_loss", "loss_D", "policy_loss"])
def test_a_part_of_a_loss_is_not_the_loss(part: str) -> None:
    assert named("lr", part) == ["lr", part]


def test_beside_a_loss_of_a_known_name_no_other_is_one() -> None:
    assert named("loss", "main_loss") == ["loss", "main_loss"]
    assert named("grad_norm", "gradient_l2") == ["grad_norm", "gradient_l2"]
