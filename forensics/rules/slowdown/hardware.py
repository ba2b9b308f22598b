"""What devices give: their clocks under load, the share of their arithmetic that is used, and whether there is one."""

from __future__ import annotations

import polars as pl

from forensics.analyses.traces.gpu_clocks import Throttled, rank_of, throttled
from forensics.case.backend import backend
from forensics.case.errors.coded import events_telling
from forensics.case.series import holding, index_of, metric_records, placed_rows
from forensics.case.settings import OFF, settings
from forensics.case.steps import in_file, ordered, parts, step_of
from forensics.knowledge.ranges import range_of
from forensics.patterns import lazily
from forensics.rules.kit import Findings, Onset, Run, Struct, event_evidence, proof, rule
from forensics.store.packed import PLACE


class Clocks(Struct, frozen=True):
    """Thresholds of SLO007: `fall` is the clock under its usual high, `share` of the loaded samples, `hot` in Celsius.

    `power` is the share of the power limit; `samples` the fewest loaded samples of a device. Below `deep` of its clock
    a device runs slow whatever the reason.
    """

    fall: float = 0.85
    deep: float = 0.5
    share: float = 0.2
    hot: float = 80.0
    power: float = 0.95
    samples: int = 12


@rule("SLO007 gpu-clocks-throttled", "metrics")
def gpu_clocks_throttled(run: Run, cfg: Clocks) -> Findings:
    """Find the GPU that lost most of its clock."""
    found = [t for t in throttled(run, fall=cfg.fall, samples=cfg.samples) if t.share >= cfg.share]
    if not found:
        return
    one = min(found, key=lambda t: t.low / t.high)
    known = _reason(one, cfg)
    reason, cause = known or ("the log does not tell why", "low_clocks")
    told = known is not None or one.low < cfg.deep * one.high
    rank = rank_of(run, one) if len(found) == 1 and told else None
    yield gpu_clocks_throttled.finding(
        f"GPU {one.device} ran at {one.low:.0f} MHz instead of {one.high:.0f} MHz in "
        f"{100 * one.share:.0f} % of its loaded samples: {reason}",
        "its SM clock under load is below the one it held before",
        proof(one.rows.row(0, named=True), one.rows.row(-1, named=True)),
        Onset(t_ns=one.rows["t_ns"][0], rank=rank),
        severity="warning" if told else "info",
        confidence="high" if known else "medium" if told else "low",
        culprits=() if rank is None else (rank,),
        cause=cause,
        numbers={"high_mhz": one.high, "low_mhz": one.low, "share": one.share},
        likely=(
            "cooling: a fan, a blocked intake, a neighbour that heats",
            "a power limit set by the operator or the rack",
        ),
    )


def _reason(one: Throttled, cfg: Clocks) -> tuple[str, str] | None:
    if one.reasons:
        hot = any("thermal" in reason for reason in one.reasons)
        return f"the driver says {', '.join(one.reasons)}", "thermal_throttling" if hot else "clock_throttling"
    if one.temperature is not None and one.temperature >= cfg.hot:
        return f"at {one.temperature:.0f} C", "thermal_throttling"
    if one.power_share is not None and one.power_share >= cfg.power:
        return f"at {100 * one.power_share:.0f} % of its power limit", "power_throttling"
    return None


_FULL = lazily(r"32.*|fp32|float32")


class Utilisation(Struct, frozen=True):
    """Thresholds of SLO008: a median model-FLOPs utilisation below `low` (a share of 1), over `records` at least."""

    low: float = range_of("mfu").lo
    records: int = 8


@rule("SLO008 low-mfu", "metrics facts", cause="low_mfu")
def low_mfu(run: Run, cfg: Utilisation) -> Findings:
    """Find the lowest median utilisation that a source prints."""
    named = holding(run, "utilisation")
    finite = placed_rows(run, named).filter((pl.col("value") > 0) & pl.col("value").is_finite())
    rows = ordered(finite).select("source", "raw_name", "name", "value", PLACE).collect()
    for part in parts(rows, ("source", "raw_name")):
        late = part.slice(part.height // 10)
        middle = late["value"].median()
        if late.height < cfg.records or not isinstance(middle, float):
            continue
        share = middle / 100 if "pct" in late["name"][0] or "percent" in late["name"][0] or middle > 1.5 else middle
        if share >= cfg.low:
            continue
        first, last = (index_of(run).table.row(late[PLACE][at]) for at in (0, -1))
        slow = _slow_path(run)
        yield low_mfu.finding(
            f"the model uses {100 * share:.1f} % of the peak arithmetic of its devices (median)",
            f"the median of {late.height} records; dense transformers reach 30 to 60 % where they are tuned",
            proof(first, last),
            Onset(step=step_of(first), rank=first["rank"]),
            numbers={"mfu": share, "records": late.height},
            severity="warning" if slow else "info",
            confidence="medium" if slow else "low",
            causal="symptom" if slow else "context",
        )
        return


def _slow_path(run: Run) -> bool:
    """Whether the settings keep matrix products in fp32, or all of the attention's matrix in memory."""
    said = {name: setting.value.lower() for name, setting in settings(run).items()}
    full = _FULL.fullmatch(said.get("precision", "fp32" if said.get("bf16") in OFF else ""))
    return full is not None or said.get("attention") == "eager"


class Left(Struct, frozen=True):
    """Thresholds of SLO038: the fewest training records of the same file behind the line."""

    records: int = 2


@rule("SLO038 on-the-cpu", "events metrics facts", confidence="high", cause="on_the_cpu")
def on_the_cpu(run: Run, cfg: Left) -> Findings:
    """Find the line that says that no GPU was found, where the run trained on."""
    if backend(run) not in {"", "cpu"}:
        return
    for row in events_telling(run, "on_the_cpu", order=("source", "seq")).iter_rows(named=True):
        place = in_file() > (row["line"] or row["byte"] or 0)
        behind = metric_records(run).filter(pl.col("trains") & (pl.col("source") == row["source"]) & place)
        records = behind.select("seq").unique().collect().height
        if records >= cfg.records:
            yield on_the_cpu.finding(
                "the run trains on the CPU: the framework found no GPU that it can use",
                f"it says so once, and {records} training records follow",
                proof(event_evidence(row)),
                severity="info",
                numbers={"records": records},
            )
            return
