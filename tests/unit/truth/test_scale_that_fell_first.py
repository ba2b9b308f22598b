"""A loss scale that fell for good between two records: triage and nan-origin begin where it fell."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import open_run
from forensics.analyses.nan.origin import origin
from tests.unit.truth._runs import write


@pytest.mark.parametrize("fell", [94, 95])
def test_triage_and_nan_origin_begin_where_the_scale_fell(fell: int, tmp_path: Path) -> None:
    lines = ["step 3: gradient overflow, skipping update, loss scale 32768"]
    lines += [f"step {n}/200 | loss: {3 - n / 100:.3f} | grad_norm: {0.5 + n % 3 / 50:.3f}" for n in range(5, 95, 5)]
    lines += ["step 95/200 | loss: 2.05 | grad_norm: inf"] if fell == 94 else []
    for at, step in enumerate(range(fell, fell + 17)):
        lines.append(f"step {step}: gradient overflow, skipping update, loss scale {16384 / 2**at:g}")
    lines += [f"step {n}/200 | loss: 2.05 | grad_norm: inf" for n in range(100, 115, 5)]
    opened = open_run(write(tmp_path, {"train.log": lines}))
    verdict, found = opened.triage(figures=False).verdict, origin(opened.run)
    assert (verdict.shape is not None, verdict.onset.step) == (True, found.first_bad_step)
    assert (found.kind, found.first_bad_step) == ("loss_scale_collapse", fell)
