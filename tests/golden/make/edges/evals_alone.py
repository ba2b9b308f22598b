"""Scores that a run logged while it trained, on either side of what is a fall."""

from __future__ import annotations

from collections.abc import Iterator

from make.base import Label, Made
from make.edges.evals import HEALTHY, Evaluated, made


def runs() -> Iterator[Made]:
    """Runs whose own scores fall, or do not."""
    for fall in (0.02, 0.04, 0.06, 0.2):
        scores = [round(0.5 + 0.05 * min(at, 5) - fall * max(0, at - 5) / 4, 4) for at in range(10)]
        label = Label(outcome="suspect|failed", shape="bad_eval|learning", onset=600, within=100) if fall > 0.1 else HEALTHY  # fmt: skip
        yield Made(f"edge-evals-score-falls-{fall}", Evaluated(logged={"eval/accuracy": scores}).files(), label)
    for count in (5, 6):
        scores = [0.5, 0.65, *(0.6 - 0.03 * at for at in range(count - 2))]
        yield made(f"score-falls-of-{count}", Evaluated(logged={"eval/accuracy": scores}))
    losses = [2.0, 1.8, 1.7, 1.7, 1.8, 1.95, 2.1, 2.3, 2.5, 2.8]
    label = Label(outcome="suspect|failed", shape="learning|bad_eval", onset=400, within=200)
    yield Made("edge-evals-loss-rises", Evaluated(logged={"eval/loss": losses}).files(), label)
