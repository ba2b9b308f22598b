"""Which kind of fine-tuning the settings or the metrics of a run name, by `regimes.jsonl`."""

from __future__ import annotations

import polars as pl

from forensics.case.series import metric_names
from forensics.case.settings import keyed, keys_with
from forensics.knowledge.regimes import Sign, signs
from forensics.patterns import compiled, having
from forensics.store.run import Run, derived


@derived
def named_regime(run: Run) -> str:
    """Give `rl`, `preference` or `fine-tuning`, the first that a row names; empty where none does."""
    return next((sign.regime for sign in signs() if _fits(run, sign)), "")


def _fits(run: Run, sign: Sign) -> bool:
    if sign.metric:
        return bool(having(metric_names(run)["raw_name"], f"(?i)(?:^|/)(?:{sign.metric})$"))
    pattern = f"(?i)(?:^|[./])(?:{sign.key})$"
    if not keys_with(run, pattern):
        return False
    said = keyed(run, pattern).filter(pl.col("family") == "config").select("value").collect().to_series()
    fits = compiled(f"(?:{sign.value})")
    return any(fits.fullmatch((value or "").strip("\"' ").lower()) for value in said.to_list())
