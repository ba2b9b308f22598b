"""What a run computed on is read off the signs that it left; where there are none, nothing is said."""

from __future__ import annotations

import polars as pl
import pytest

from forensics.case.backend import backend
from forensics.store.run import run_of


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("cuda-oom", "cuda"),
        ("nccl-watchdog", "cuda"),
        ("hccl-notify", "npu"),
        ("rocm-memory-fault", "rocm"),
        ("gloo-timeout", "cpu"),
    ],
)
def test_an_error_line_names_the_backend(code: str, told: str) -> None:
    assert backend(run_of("a", {"events": pl.DataFrame({"source": ["a.log"], "code": [code]})})) == told


def test_a_line_of_the_device_itself_weighs_more_than_one_that_other_devices_print_too() -> None:
    both = pl.DataFrame({"source": ["a.log"] * 2, "code": ["cuda-oom", "hip-alloc-failed"]})
    assert backend(run_of("a", {"events": both})) == "rocm"


def test_a_setting_names_the_backend() -> None:
    facts = pl.DataFrame({"source": ["c.json"], "key": ["ddp.backend"], "value": ['"gloo"'], "family": ["config"]})
    assert backend(run_of("a", {"facts": facts})) == "cpu"


def test_a_run_without_a_sign_has_no_backend() -> None:
    assert backend(run_of("a", {})) == ""
