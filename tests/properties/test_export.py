"""Any points, under any names: exported, read again, the same bits."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forensics.dialects.names import canonical
from forensics.export import target as targets
from forensics.export.points import select
from forensics.pipeline import ingest_run
from forensics.store.run import Run, run_of

NAMES = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12).filter(
    lambda name: canonical(name).canonical == name and canonical(name).scale == 1 and not name.startswith("_")
)
VALUES = st.floats() | st.floats(width=32)
ROWS = st.lists(st.tuples(st.integers(0, 5), VALUES), min_size=1, max_size=12)


def made(names: list[str], rows: list[tuple[int, float]]) -> Run:
    steps, step = list[int](), 0
    for more, _ in rows:
        step += more
        steps.append(step)
    raw = [names[i % len(names)] for i in range(len(rows))]
    frame = pl.DataFrame(
        {
            "source": ["run.log"] * len(rows),
            "attempt": [0] * len(rows),
            "seq": range(len(rows)),
            "step": steps,
            "name": raw,
            "raw_name": raw,
            "value": [value for _, value in rows],
        },
        strict=False,
    )
    return run_of("made", {"metrics": frame})


def told(run: Run) -> list[tuple[Any, ...]]:
    frame = run.scan("metrics").sort("source", "attempt", "seq", maintain_order=True).collect()
    return [
        (name, step, float(value).hex()) for name, step, value in frame.select("raw_name", "step", "value").iter_rows()
    ]


@pytest.mark.parametrize("to", ["tensorboard", "wandb"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(NAMES, min_size=1, max_size=4, unique=True), rows=ROWS)
def test_points_come_back_from_a_viewers_files(to: str, names: list[str], rows: list[tuple[int, float]]) -> None:
    run = made([name for name in names if name != "epoch"] or ["loss"], rows)
    with tempfile.TemporaryDirectory() as folder:
        for file in targets.load(to).write(select(run)).files:
            path = Path(folder) / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.data)
        again = ingest_run(Path(folder))
    assert sorted(told(again)) == sorted(told(run))
    assert [row[1] for row in told(again)] == sorted(row[1] for row in told(run))
