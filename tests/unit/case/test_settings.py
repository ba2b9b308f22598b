"""A setting has one name however a trainer spells it; where files disagree, nothing is said of it."""

from __future__ import annotations

import polars as pl
import pytest

from forensics.action import Setting
from forensics.case.settings import keyed, keys_with, settings, stated
from forensics.store.run import Run, run_of


def run_with(*facts: tuple[str, str], family: str = "config") -> Run:
    rows = [
        {"source": "c.yaml", "line": n, "key": k, "value": v, "family": family} for n, (k, v) in enumerate(facts, 1)
    ]
    return run_of("a", {"facts": pl.DataFrame(rows)})


@pytest.mark.parametrize("others", [0, 60])
@pytest.mark.parametrize(
    "key", ["max_grad_norm", "trainer.gradient_clip_val", "clip-grad", "optimizer/clip_grad_norm", "grad_clip.value"]
)
def test_a_setting_is_known_by_each_of_its_names_beside_few_keys_and_many(key: str, others: int) -> None:
    run = run_with((key, "0.5"), *((f"layer.{n}.max_grad_norms", "1") for n in range(others)))
    assert settings(run) == {"clip": Setting(key, "0.5", "c.yaml:1")}


def test_a_setting_that_files_disagree_on_is_left_out() -> None:
    assert "lr" not in settings(run_with(("lr", "0.1"), ("optimizer.lr", "0.2")))
    assert settings(run_with(("lr", "0.1"), ("optimizer.lr", "0.1")))["lr"].place == "c.yaml:1"


def test_a_switch_means_what_it_stands_for_and_nothing_when_it_is_off() -> None:
    assert settings(run_with(("fp16", "false"), ("bf16", "true")))["precision"].value == "bf16"
    assert "precision" not in settings(run_with(("fp16", "false")))


@pytest.mark.parametrize(
    ("facts", "value"),
    [
        ((("amp", "true"), ("dtype", "float16")), "float16"),
        ((("fp16", "true"), ("torch_dtype", "float16")), "fp16"),
        ((("bf16", "true"), ("torch_dtype", "torch.bfloat16"), ("use_amp", "true")), "bf16"),
        ((("amp", "true"),), "amp"),
        ((("fp16", "true"), ("torch_dtype", "bfloat16")), None),
    ],
    ids=["a switch of no type", "two words for a type", "both", "the switch alone", "two types"],
)
def test_values_that_mean_the_same_agree(facts: tuple[tuple[str, str], ...], value: str | None) -> None:
    found = settings(run_with(*facts)).get("precision")
    assert (found.value if found is not None else None) == value


def test_a_value_of_nothing_is_no_setting() -> None:
    assert settings(run_with(("max_grad_norm", "null"), ("lr", '""'))) == {}


def test_the_version_of_a_package_is_no_setting() -> None:
    assert settings(run_with(("dtype", "float16"), family="weights")) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [("deepspeed", "deepspeed_configs/zero3_bf16.json"), ("zero_optimization.stage", "3"), ("ds/zero_stage", "3")],
)
def test_a_value_is_read_out_of_what_names_it(key: str, value: str) -> None:
    assert settings(run_with((key, value)))["zero_stage"].value == "3"


@pytest.mark.parametrize(("key", "value"), [("deepspeed", "ds_config_v3.json"), ("curriculum.stage", "3")])
def test_what_names_no_value_is_no_setting(key: str, value: str) -> None:
    assert "zero_stage" not in settings(run_with((key, value)))


def test_what_files_say_of_a_setting_is_given_as_it_stands_even_where_it_is_off() -> None:
    said = ("Trainer.Gradient-Checkpointing", '"False"'), ("ddp_backend", "gloo"), ("gradient_checkpoints", "7")
    run = run_with(*said)
    assert stated(run, "recompute").select("key", "said").rows() == [("Trainer.Gradient-Checkpointing", "false")]
    assert stated(run, "device")["said"].to_list() == ["gloo"]
    with pytest.raises(KeyError):
        stated(run, "no_such_setting")


def test_facts_are_found_by_patterns_of_their_keys_in_the_order_of_the_table() -> None:
    run = run_with(("b.steps", "1"), ("lr", "0.1"), ("epochs", "2"), ("b.steps", "3"))
    assert keyed(run, "steps$", "^epochs$").collect()["value"].to_list() == ["1", "2", "3"]
    assert keys_with(run, "steps$") == ["b.steps"]
    assert keyed(run, "^b$").collect().is_empty()
    assert keyed(run, "^b$").collect_schema() == run.scan("facts").collect_schema()
    assert keyed(run_of("a", {}), "steps").collect().is_empty()
