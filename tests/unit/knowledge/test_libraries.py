from __future__ import annotations

import re

import pytest

from forensics.knowledge.libraries import Change, Lack, changed, changes, installed_by, lacks


@pytest.mark.parametrize("row", lacks(), ids=lambda row: row.row)
def test_a_row_names_what_is_not_there_and_its_owner(row: Lack) -> None:
    assert all(hit and hit["owner"] and hit["name"] for hit in (re.search(row.words, text) for text in row.like))
    assert not any(re.search(other.words, text) for other in lacks() for text in row.unlike)


@pytest.mark.parametrize("row", changes(), ids=lambda row: row.like)
def test_a_message_is_answered_by_the_row_that_is_about_it(row: Change) -> None:
    told = changed(row.like)
    assert row.package in told or told.startswith(("Use ", row.advice[:12]))
    assert "{" not in told
    assert any(row.is_about(owner, name) for owner, name in [_asked(row.like)])


def _asked(message: str) -> tuple[str, str]:
    quoted = message.split("'")[1::2]
    if "No module" in message:
        owner, _, name = quoted[0].rpartition(".")
        return owner, name
    if "cannot import" in message:
        return quoted[1], quoted[0]
    if "unexpected keyword" in message:
        return message.removeprefix("TypeError: ").partition("(")[0].removesuffix(".__init__"), quoted[0]
    return quoted[0], quoted[1]


@pytest.mark.parametrize("row", changes(), ids=lambda row: row.like)
def test_a_row_says_what_to_do_in_one_way(row: Change) -> None:
    assert bool(row.below) + bool(row.since) + bool(row.advice) <= 1
    assert row.below or row.since or row.advice or row.instead


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            "AttributeError: module 'numpy' has no attribute 'float'",
            "Install numpy below 1.24, or use the plain type without np.: newer ones have no float",
        ),
        ("AttributeError: module 'numpy' has no attribute 'windmill'", ""),
        ("AttributeError: module 'tidewheel' has no attribute 'float'", ""),
        (
            "TypeError: Trainer.__init__() got an unexpected keyword argument 'gpus'",
            "Install pytorch-lightning below 2.0, or use accelerator and devices: newer ones have no gpus",
        ),
        ("TypeError: Mill.__init__() got an unexpected keyword argument 'gpus'", ""),
        (
            "AttributeError: module 'torch.amp' has no attribute 'GradScaler'",
            "Install torch 2.3 or newer, or use torch.cuda.amp.GradScaler: older ones have no GradScaler",
        ),
        ("the module 'numpy' has many attributes", ""),
    ],
)
def test_a_name_that_a_version_took_or_brought_is_answered_by_that_version(message: str, told: str) -> None:
    assert changed(message) == told


@pytest.mark.parametrize(
    ("module", "package"),
    [("sklearn", "scikit-learn"), ("sklearn.svm", "scikit-learn"), ("google.protobuf", "protobuf"), ("google", "")],
)
def test_a_module_is_installed_by_the_package_that_brings_it(module: str, package: str) -> None:
    assert installed_by(module) == package
