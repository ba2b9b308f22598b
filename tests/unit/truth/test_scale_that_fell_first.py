"""A loss scale that fell for good between two records: triage and nan-origin begin where it fell."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import open_run
from forensics.analyses.nan.origin import origin
from tests.unit.truth._runs import write


@pytest.mark.parametrize(("fell", "bad", "begins", "clean"), [(94, 95, 94, 90), (95, 100, 95, 94), (94, 90, 90, 85)])
def test_triage_and_nan_origin_begin_where_the_first_of_scale_and_number_is_lost(
    fell: int, bad: int, begins: int, clean: int, tmp_path: Path
) -> None:
    lines = ["step 3: gradient overflow, skipping update, loss scale 32768"]
    norms = {n: "inf" if n >= bad else f"{0.5 + n % 3 / 50:.3f}" for n in range(5, 115, 5)}
    records = {n: f"step {n}/200 | loss: {3 - n / 200:.3f} | grad_norm: {norms[n]}" for n in norms}
    falls = {
        fell + at: f"step {fell + at}: gradient overflow, skipping update, loss scale {16384 / 2**at:g}"
        for at in range(17)
    }
    one = [*lines, *(said[n] for n in range(5, 115) for said in (records, falls) if n in said)]
    two = {"slurm-7.err": records.values(), "slurm-7.out": [*lines, *falls.values()]}
    for name, files in (("one", {"train.log": one}), ("two", two)):
        opened = open_run(write(tmp_path / name, files))
        verdict, found = opened.triage(figures=False).verdict, origin(opened.run)
        assert verdict.onset.step == found.first_bad_step
        assert (found.first_bad_step, verdict.onset.step_lo) == (begins, clean)
