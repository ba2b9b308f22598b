"""Clocks of GPUs under load, and the logged reason for a fall: levels only."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from msgspec import Struct

from forensics.case.series import keys_of, metric_rows
from forensics.case.world import world
from forensics.stats.spread import median
from forensics.store.run import Run

_CLOCK = ("gpu_sm_clock_mhz", "gpu_clock_mhz")
_DEVICE = r"gpu[._](\d{1,4})[._]"
_REASON = r"(?i)clocks_(?:throttle|event)_reasons\.((?:hw|sw)_\w*(?:slowdown|thermal|brake|power_cap)\w*)"
_LOADED, _HIGH, _KEEPS = 50.0, 0.9, 3
#: Logs of GPUs have a record in each minute or more; nothing but chance brings two onsets of a long run so near.
SAME_ONSET_NS = 120_000_000_000


class Throttled(Struct, frozen=True):
    """A device whose clock fell: `high` and `low` in MHz, `share` of the loaded samples, what stood beside it.

    `temperature` is the median in Celsius while low, `power_share` the median draw over the limit; `rows` are the
    low samples of the clock.
    """

    device: str
    high: float
    low: float
    share: float
    temperature: float | None
    power_share: float | None
    reasons: tuple[str, ...]
    rows: pl.DataFrame


def rank_of(run: Run, one: Throttled) -> int | None:
    """Give the rank of a device of the only host: its number, where there are several and each rank may have one."""
    keys = keys_of(run)
    own = keys.filter(pl.col("name").is_in(_CLOCK))
    devices = {*own["raw_name"].cast(pl.String).str.extract(_DEVICE).drop_nulls()}
    fits = max(world(run), default=0) < len(devices) > 1
    return int(one.device) if own["source"].n_unique() == 1 and fits else None


def throttled(run: Run, *, fall: float, samples: int) -> Iterator[Throttled]:
    """Find devices whose clock lay below `fall` of the highest clock that a tenth of their loaded samples held."""
    if not keys_of(run)["name"].is_in(_CLOCK).any():
        return
    own = metric_rows(run, pl.col("name").str.starts_with("gpu")).filter(pl.col("value_class") == "finite")
    rows = own.sort("source", "seq", maintain_order=True).collect()
    rows = rows.with_columns(device=pl.col("raw_name").str.extract(_DEVICE))
    for _, part in rows.filter(pl.col("device").is_not_null()).group_by(["source", "device"], maintain_order=True):
        found = _of_device(part, fall, samples)
        if found is not None:
            yield found


def _of_device(rows: pl.DataFrame, fall: float, samples: int) -> Throttled | None:
    clock = rows.filter(pl.col("name").is_in(_CLOCK) & (pl.col("value") > 0)).unique("seq", maintain_order=True)
    load = _beside(rows, "gpu_util_pct")
    loaded = clock.join(load, on="seq", how="left", maintain_order="left")
    loaded = loaded.filter(pl.col("beside").fill_null(100.0) >= _LOADED)
    if loaded.height < samples:
        return None
    high = float(loaded["value"].quantile(_HIGH) or 0.0)
    low = loaded.filter(pl.col("value") < fall * high)
    if low.height < _KEEPS:
        return None
    limit, draw = _median_at(rows, "gpu_power_limit_w", low), _median_at(rows, "gpu_power_w", low)
    return Throttled(
        device=str(rows["device"][0]),
        high=high,
        low=median(low["value"]),
        share=low.height / loaded.height,
        temperature=_median_at(rows, "gpu_temp_c", low),
        power_share=draw / limit if draw and limit else None,
        reasons=_reasons(rows, low),
        rows=low.drop("beside", "device"),
    )


def _beside(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    own = rows.filter(pl.col("name") == name).unique("seq", maintain_order=True)
    return own.select("seq", pl.col("value").alias("beside"))


def _median_at(rows: pl.DataFrame, name: str, low: pl.DataFrame) -> float | None:
    values = _beside(rows, name).join(low.select("seq"), on="seq", how="semi")["beside"]
    return median(values) if values.len() else None


def _reasons(rows: pl.DataFrame, low: pl.DataFrame) -> tuple[str, ...]:
    """Throttle reasons that the driver called active in at least one low sample."""
    active = rows.filter((pl.col("value") == 1.0) & pl.col("raw_name").str.contains(_REASON))
    active = active.join(low.select("seq"), on="seq", how="semi")
    return tuple(sorted(set(active["raw_name"].str.extract(_REASON).drop_nulls())))
