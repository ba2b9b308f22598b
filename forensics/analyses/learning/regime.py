"""What kind of training a run is, so that its metrics are compared with the ranges of that kind."""

from __future__ import annotations

import polars as pl

from forensics.analyses.learning.lr_config import adapter_of
from forensics.analyses.learning.objective import reinforced
from forensics.case.series import metric_names
from forensics.knowledge.regimes import Sign, signs
from forensics.store.run import Run

#: Regimes of supervised fine-tuning: only an adapter, or all weights, are trained.
ADAPTER, FULL = "adapter", "full"


def regime_of(run: Run) -> str:
    """Give `rl`, `preference`, `adapter` or `full`; empty where nothing says what is trained, as in pretraining."""
    return run.derived(_regime)


def _regime(run: Run) -> str:
    if reinforced(run):
        return "rl"
    said = next((sign.regime for sign in signs() if _fits(run, sign)), "")
    if said in {"rl", "preference"}:
        return said
    if adapter_of(run) is not None:
        return ADAPTER
    return FULL if said else ""


def _fits(run: Run, sign: Sign) -> bool:
    if sign.metric:
        return bool(metric_names(run)["raw_name"].str.contains(f"(?i)(?:^|/)(?:{sign.metric})$").any())
    key, value = pl.col("key").str.to_lowercase(), pl.col("value").fill_null("").str.strip_chars("\"' ")
    fits = key.str.contains(f"(?:^|[./])(?:{sign.key})$") & value.str.to_lowercase().str.contains(f"^(?:{sign.value})$")
    return bool(run.scan("facts").filter((pl.col("family") == "config") & fits).head(1).collect().height)
