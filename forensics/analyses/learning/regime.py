"""What kind of training a run is, so that its metrics are compared with the ranges of that kind."""

from __future__ import annotations

from forensics.analyses.learning.lr_config import adapter_of
from forensics.analyses.learning.objective import reinforced
from forensics.case.regimes import named_regime
from forensics.store.run import Run, derived

#: Regimes of supervised fine-tuning: only an adapter, or all weights, are trained.
ADAPTER, FULL = "adapter", "full"


@derived
def regime_of(run: Run) -> str:
    """Give `rl`, `preference`, `adapter` or `full`; empty where nothing says what is trained, as in pretraining."""
    if reinforced(run):
        return "rl"
    said = named_regime(run)
    if said in {"rl", "preference"}:
        return said
    if adapter_of(run) is not None:
        return ADAPTER
    return FULL if said else ""
