"""A score that breaks off: one rule tells it, the other gives way, by one threshold."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.analyses.evals.breaks import ScoreFalls
from forensics.pipeline import ingest_run
from forensics.rules.bad_eval.in_training import score_falls
from forensics.rules.learning.overfit import never_regained

_ROWS = [
    (2.0 - 0.1 * n, loss, acc)
    for n, (loss, acc) in enumerate(
        [(2.1, 0.4), (1.9, 0.5), (1.7, 0.6), (1.6, 0.65), (1.5, 0.7), *[(4.8 + 0.01 * n, 0.1) for n in range(5)]]
    )
]


@pytest.mark.parametrize(("broken", "is_break"), [(0.5, True), (0.1, False)])
def test_the_threshold_of_a_break_acts_on_both_rules(broken: float, is_break: bool, tmp_path: Path) -> None:
    rows = [f"{10 * n},{loss},{held},{acc}" for n, (loss, held, acc) in enumerate(_ROWS, 1)]
    (tmp_path / "metrics.csv").write_text("\n".join(["step,loss,eval_loss,eval_acc", *rows, ""]))
    run = ingest_run(tmp_path).under({ScoreFalls: ScoreFalls(broken=broken)})
    told = any("between two evaluations" in finding.title for finding in score_falls(run))
    assert (told, bool(list(never_regained(run)))) == (is_break, not is_break)
