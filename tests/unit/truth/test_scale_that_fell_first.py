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


@pytest.mark.parametrize(
    ("scale", "precision", "cause"),
    [
        ("1.0", "bf16", "data_or_numerics"),
        ("1.0", "fp16", "loss_scale_collapse"),
        ("64.0", "bf16", "loss_scale_collapse"),
    ],
)
def test_skipped_updates_blame_the_loss_scale_only_where_there_is_one(
    scale: str, precision: str, cause: str, tmp_path: Path
) -> None:
    loss = {n: f" lm loss: {9 - n / 200:E} |" if n < 600 else "" for n in range(10, 910, 10)}
    lines = [
        f" iteration {n:8d}/    2000 | consumed samples: {n * 512:12d} | elapsed time per iteration (ms): 812.0"
        f" | learning rate: 1.500000E-04 | global batch size:   512 |{loss[n]}"
        f" loss scale: {scale} | grad norm: {'nan' if n >= 600 else f'{1 + n % 3 / 50:.3f}'}"
        f" | number of skipped iterations: {10 * (n >= 600):3d} | number of nan iterations: {10 * (n >= 600):3d} |"
        for n in loss
    ]
    folder = write(tmp_path, {"slurm.log": lines, "config.yaml": [f"precision: {precision}"]})
    assert open_run(folder).triage(figures=False).verdict.cause == cause
