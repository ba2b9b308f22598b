"""Texts of actions are filled with what is known, and a setting that is right already makes an action needless."""

from __future__ import annotations

import pytest

from forensics.knowledge.causes import Remedy, causes, filled


def test_a_part_in_brackets_is_left_out_where_its_value_is_not_known() -> None:
    text = "inspect the batch[ of step {step}][ on rank {rank}]"
    assert filled(text, {"step": "40", "rank": ""}) == "inspect the batch of step 40"
    assert filled(text, {}) == "inspect the batch"


def test_a_text_whose_value_is_not_known_is_no_text() -> None:
    assert filled("look at rank {rank}", {"rank": ""}) is None
    assert filled("look at rank {rank}", {"rank": "3"}) == "look at rank 3"


def test_an_action_has_other_words_for_the_case_that_a_value_is_not_known() -> None:
    remedy = Remedy("look at rank {rank}", "here", otherwise="look for the rank that is silent")
    assert remedy.words({"rank": "3"}) == "look at rank 3"
    assert remedy.words({}) == "look for the rank that is silent"
    assert Remedy("look at rank {rank}", "here").words({}) is None


@pytest.mark.parametrize(
    ("value", "told"), [(None, True), ("0", True), ("0.5", False), ("1.0", False), ("1.5", True), ("off", True)]
)
def test_a_setting_within_the_range_makes_an_action_needless(value: str | None, told: bool) -> None:
    assert Remedy("clip at 1.0", "here", setting="clip", within=(0, 1)).is_about(value) is told


@pytest.mark.parametrize(("value", "told"), [(None, True), ("bf16-mixed", False), ("16-mixed", True)])
def test_a_setting_of_the_pattern_makes_an_action_needless(value: str | None, told: bool) -> None:
    assert Remedy("train in bf16", "here", setting="precision", unless=".*bf16.*").is_about(value) is told


@pytest.mark.parametrize(("value", "told"), [(None, False), ("true", True), ("false", False)])
def test_an_action_that_is_about_a_value_is_told_of_that_value_only(value: str | None, told: bool) -> None:
    assert Remedy("turn fp8 off", "here", setting="fp8", where="true").is_about(value) is told


def test_a_cause_that_its_error_lines_explain_has_their_advice_as_its_action() -> None:
    cause = causes()["device_mismatch"]
    assert cause.why == ""
    assert [remedy.text for remedy in cause.actions] == ["{fix}"]
    assert cause.actions[0].source == cause.source


def test_an_action_asks_for_other_settings_and_one_that_no_file_states_fits_nothing_but_an_empty_pattern() -> None:
    remedy = Remedy("set use_reentrant to true", "here", given={"zero_stage": "3"})
    assert remedy.is_given({"zero_stage": "3"})
    assert not remedy.is_given({"zero_stage": "2"})
    assert not remedy.is_given({})
    assert Remedy("train in bf16", "here", given={"precision": "|32"}).is_given({})
