"""When a loss scale that falls is a collapse, and where that begins."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from forensics.analyses.nan.scale import ScaleLimits, _dense_from, collapse_of
from forensics.pipeline import ingest_run


@pytest.mark.parametrize(("end", "collapsed"), [(8, True), (16, False)])
def test_a_fall_at_the_start_is_the_search_for_a_scale_unless_it_ends_at_eight_or_below(
    end: int, *, collapsed: bool, tmp_path: Path
) -> None:
    lines, scale = [f"step {at} | loss {3 - 0.01 * at:.4f}" for at in range(1, 21)], 65536.0
    while scale > end:
        scale /= 2
        lines.append(f"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to {scale}")
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    assert (collapse_of(ingest_run(tmp_path)) is not None) is collapsed


@pytest.mark.parametrize(("alone", "begins"), [(419, 500), (420, 420)])
def test_skips_belong_together_up_to_twice_their_mean_distance(alone: int, begins: int) -> None:
    """Eleven skips 40 steps apart and one before them: twice the mean distance is 80 steps."""
    hits = pl.DataFrame({"at": [alone, *range(500, 901, 40)]})
    assert _dense_from(hits, ScaleLimits(skip_share=0.0), 1000)["at"] == begins


def test_skips_belong_together_within_the_share_of_skips_that_is_too_many() -> None:
    hits = pl.DataFrame({"at": [300, *range(500, 901, 40)]})
    assert _dense_from(hits, ScaleLimits(skip_share=0.2), 1000)["at"] == 300
    assert _dense_from(hits, ScaleLimits(skip_share=0.199), 1000)["at"] == 500


@pytest.mark.parametrize(
    ("top", "loss", "collapsed"),
    [
        (1.0, lambda at: 9 * 0.96**at, False),
        (1.0, lambda at: 9.0 - 0.01 * at, True),
        (1.0, lambda at: 9 * 0.96 ** min(at, 62), True),
        (64.0, lambda at: 9 * 0.96**at, True),
    ],
    ids=["learns on", "falls by less than a tenth", "stays", "from above the floor"],
)
def test_a_scale_that_is_low_from_the_start_is_no_collapse_where_the_loss_goes_on_falling(
    top: float, loss: Callable[[int], float], *, collapsed: bool, tmp_path: Path
) -> None:
    rows = [(at, loss(at), top / 2 ** max(0, min(at - 60, 6))) for at in range(1, 76)]
    lines = [
        f"| epoch 001: {at:6d} / 900 loss={x:.3f}, num_updates={at}, loss_scale={scale:g}" for at, x, scale in rows
    ]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    assert (collapse_of(ingest_run(tmp_path)) is not None) is collapsed
