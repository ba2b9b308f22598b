"""The bundled demonstration runs, as golden runs: `fixtures/make/runs.py` says what each of them is."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

from make.base import Label, Made

_SCRIPT = Path(__file__).resolve().parents[3] / "fixtures" / "make" / "runs.py"


def runs() -> Iterator[Made]:
    """One golden run for each bundled run of that script."""
    spec = importlib.util.spec_from_file_location("make_runs", _SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for name, files, label in script.made():
        yield Made(
            f"bundled-{name}",
            files,
            Label(
                outcome=label["outcome"],
                shape=label["shape"] or "none",
                causes=(label["cause"],) if "cause" in label else (),
                onset=label.get("onset_step"),
                culprits=tuple(label["culprits"]) if "culprits" in label else None,
                checkpoint=label.get("clean"),
            ),
        )
