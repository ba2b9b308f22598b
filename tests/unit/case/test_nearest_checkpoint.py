"""Which checkpoint an advice names: the one of the step, else the nearest one that was saved."""

from __future__ import annotations

import polars as pl
import pytest

from forensics.case.checkpoints import nearest_words
from forensics.store.run import run_of


@pytest.mark.parametrize(
    ("saved", "step", "words"),
    [
        ((100, 200), 200, "the checkpoint of step 200"),
        ((100, 200), 160, "the checkpoint of step 200, the nearest one to step 160"),
        ((100, 200), 19, "the checkpoint of step 100, the nearest one to step 19"),
        ((), 19, "the checkpoint of step 19"),
        ((100,), None, "an earlier checkpoint"),
    ],
)
def test_the_nearest_saved_checkpoint_is_named(saved: tuple[int, ...], step: int | None, words: str) -> None:
    rows = {"source": "train.log", "seq": [*range(len(saved))], "step": [*saved], "kind": "saved"}
    run = run_of("r", {"checkpoints": pl.DataFrame(rows)} if saved else {})
    assert nearest_words(run, step) == words
