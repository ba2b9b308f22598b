"""What a metric is to a search for numbers that are not finite: a row of knowledge."""

from __future__ import annotations

import polars as pl
import pytest

from forensics.case.nonfinite import role
from forensics.knowledge.metrics import telling


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("loss", "loss"),
        ("grad_norm", "grad_norm"),
        ("eval_bpb", "eval"),
        ("mtp_loss", "part"),
        ("train/ppl", "part"),
        ("loss_scale", None),
        ("val_loss_best", None),
        ("supply", None),
        ("lr", None),
    ],
)
def test_a_name_has_the_role_of_the_first_row_that_fits(name: str, means: str | None) -> None:
    assert pl.DataFrame({"name": [name]}).select(role()).item() == means


def test_a_fact_is_told_by_whole_names() -> None:
    names = pl.Series(["nan_steps", "frac_non_finite_loss", "nan_steps_total", "loss_scale"])
    assert names.str.contains(telling("bad_updates")).to_list() == [True, True, False, False]
    with pytest.raises(KeyError):
        telling("nothing")
