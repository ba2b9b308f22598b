"""Which kind of fine-tuning the settings or the metrics of a run name, by `regimes.jsonl`."""

from __future__ import annotations

import polars as pl

from forensics.case.series import metric_names
from forensics.knowledge.regimes import Sign, signs
from forensics.store.run import Run, derived


@derived
def named_regime(run: Run) -> str:
    """Give `rl`, `preference` or `fine-tuning`, the first that a row names; empty where none does."""
    return next((sign.regime for sign in signs() if _fits(run, sign)), "")


def _fits(run: Run, sign: Sign) -> bool:
    if sign.metric:
        return bool(metric_names(run)["raw_name"].str.contains(f"(?i)(?:^|/)(?:{sign.metric})$").any())
    if "facts" not in run.frames:
        return False
    key, value = pl.col("key").str.to_lowercase(), pl.col("value").fill_null("").str.strip_chars("\"' ")
    fits = key.str.contains(f"(?:^|[./])(?:{sign.key})$") & value.str.to_lowercase().str.contains(f"^(?:{sign.value})$")
    return bool(run.scan("facts").filter((pl.col("family") == "config") & fits).head(1).collect().height)
