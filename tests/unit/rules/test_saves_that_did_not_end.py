"""A newest checkpoint whose save did not end, in a run that stopped there and in one that went past it."""

from __future__ import annotations

import polars as pl
import pytest

from forensics.rules.resume.parts import lacks_parts
from forensics.store.run import run_of


@pytest.mark.parametrize(
    ("last", "severity"),
    [(300, "info"), (240, "warning"), (150, "warning")],
    ids=["its plan is reached", "it ended on the way", "it ended at the save"],
)
def test_a_save_that_did_not_end_costs_nothing_where_the_run_went_past_it_to_its_plan(last: int, severity: str) -> None:
    steps = list(range(10, last + 1, 10))
    losses = pl.DataFrame({"step": steps, "seq": steps, "value": [2.0] * len(steps)}).with_columns(
        source=pl.lit("train.log"), name=pl.lit("loss"), raw_name=pl.lit("loss"), value_class=pl.lit("finite")
    )
    plan = {"source": ["c.json"], "family": ["config"], "key": ["max_steps"], "value": ["300"]}
    save = {"source": ["tmp-checkpoint-150/model.safetensors"], "seq": [0], "step": [150], "kind": ["directory"]}
    saved = pl.DataFrame(save | {"path": ["tmp-checkpoint-150"], "complete": [False]})
    run = run_of("made", {"metrics": losses, "facts": pl.DataFrame(plan), "checkpoints": saved})
    (hit,) = lacks_parts(run)
    assert (hit.severity.value, hit.onset.step) == (severity, 150)
