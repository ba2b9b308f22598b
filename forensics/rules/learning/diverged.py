"""LRN001 diverged: the training loss left its best level for good, and stayed finite.

What it detects: a loss that rises far above the level it had reached and never comes back; a loss frozen at one value
above its best (a model that answers the same to everything: ln of the vocabulary size for a language model); a
loss that is absurdly large from the first record.

Why it matters: the run goes on, nothing crashes, and everything after the onset is lost.

How it decides: the level of the last tenth of the records is above the best level by a share of it and by many times
the noise between neighbours, and no value after the onset returns below the middle of the two; or the last two records
or more are twice as high as anything before. An evaluation loss that is no worse after the onset than before it
contradicts, and silences the rule. Runs that log rewards, and losses that end in NaN, are left to other rules.

What else looks like this: an auxiliary loss that grows by design while the evaluation improves; a new stage or a
resumed run with other data; a spike that recovers.

What to do next: resume from a checkpoint before the onset with a lower learning rate, or skip the data of that step.

References: Chowdhery et al. 2022, PaLM, section 5.1 (loss spikes); Zhang et al. 2022, OPT-175B logbook.

Example:
    ```metrics step,name,value
    1,loss,2.5
    2,loss,9.75
    3,loss,9.25
    4,loss,9.25
    5,loss,9.25
    6,loss,9.25
    7,loss,9.25
    8,loss,9.25
    9,loss,9.25
    10,loss,9.25
    11,loss,9.25
    12,loss,9.25
    ```
    => LRN001 error step=2
Not this:
    ```metrics step,name,value
    1,loss,6.5
    2,loss,5.5
    3,loss,4.75
    4,loss,4.5
    5,loss,9.5
    6,loss,4.25
    7,loss,4.0
    8,loss,3.75
    9,loss,3.5
    10,loss,3.75
    11,loss,3.5
    12,loss,3.25
    ```
    => nothing
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import polars as pl

from forensics.model import Causal, Confidence, Evidence, EvidenceRole, Finding, Locator, Onset, Severity, Shape
from forensics.registry import rule
from forensics.rules.learning._rise import Rise, rise_of
from forensics.signals.losses import Series, series_of
from forensics.store.run import Run


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of LRN001.

    `rise` is a share of the best level and `sigmas` a multiple of the noise, both of which the rise must exceed;
    `absurd` is a loss that no training starts from; `frozen` is how many equal records at the end, at least a third
    of all, make a frozen loss; `exploded` times the highest value before is what the last two or more records of a loss
    that exploded just before the end must exceed.
    """

    records: int = 20
    window: int = 5
    rise: float = 0.2
    sigmas: float = 8.0
    frozen: int = 5
    absurd: float = 1e10
    exploded: float = 2.0


@rule("LRN001", shape=Shape.LEARNING, needs=("metrics",), config=Config)
def diverged(run: Run, cfg: Config | None = None) -> Iterator[Finding]:
    """Find the source whose training loss left its best level for good, the earliest onset first."""
    cfg = cfg or Config()
    if _reinforced(run):
        return
    evals = tuple(series_of(run, "eval_loss"))
    found = [hit for s in series_of(run, "loss") if (hit := _judge(s, evals, cfg)) is not None]
    if found:
        yield min(found, key=lambda f: f.onset.step if f.onset.step is not None else 1 << 62)


def _reinforced(run: Run) -> bool:
    named = run.scan("metrics").select(
        pl.col("name").str.contains(r"(?i)reward|(?:^|[/_])kl(?:$|[/_])|advantage|policy").any()
    )
    return bool(named.collect().item())


def _judge(series: Series, evals: tuple[Series, ...], cfg: Config) -> Finding | None:
    values = series.values
    if series.ends_nonfinite:
        return None
    if len(values) >= cfg.frozen and median(values) > cfg.absurd:
        low = max((i for i, v in enumerate(values) if v <= cfg.absurd), default=-1)
        return _finding(series, Rise(values[0], values[-1], min(low + 1, len(values) - 1), 0.0, 0), "is absurdly large")
    frozen = rise_of(values, window=1)
    if frozen is not None and _is_frozen(frozen, len(values), cfg) and not _improved(series, frozen, evals):
        return _finding(series, frozen, "is frozen")
    burst = _burst(values, cfg)
    if burst is not None and not _improved(series, burst, evals):
        return _finding(series, burst, "exploded at the end")
    rise = rise_of(values, window=cfg.window) if len(values) >= cfg.records else None
    if rise is not None and _is_rise(rise, len(values), cfg) and not _improved(series, rise, evals):
        return _finding(series, rise, "rose and stayed")
    return None


def _is_frozen(rise: Rise, count: int, cfg: Config) -> bool:
    return rise.frozen >= max(cfg.frozen, count // 3) and rise.best > 0 and rise.final > rise.best * (1 + cfg.rise)


def _is_rise(rise: Rise, count: int, cfg: Config) -> bool:
    high = rise.final - rise.best
    return (
        rise.best > 0
        and high > cfg.rise * rise.best
        and high > cfg.sigmas * rise.noise
        and cfg.window <= rise.onset <= count - cfg.window
    )


def _burst(values: tuple[float, ...], cfg: Config) -> Rise | None:
    """Find a loss whose last two or more values are far above every value before them."""
    if len(values) < cfg.records or min(values) <= 0:
        return None
    for first in range(len(values) - cfg.window, len(values) - 1):
        if min(values[first:]) > cfg.exploded * max(values[:first]):
            return Rise(min(values), values[-1], first, 0.0, 0)
    return None


def _improved(series: Series, rise: Rise, evals: tuple[Series, ...]) -> bool:
    """Whether an evaluation loss was no worse after the onset than at its last value before it."""
    onset = series.steps[rise.onset]
    if onset is None:
        return False
    for other in evals:
        pairs = [(s, v) for s, v in zip(other.steps, other.values, strict=True) if s is not None]
        before = [v for s, v in pairs if s < onset]
        after = [v for s, v in pairs if s >= onset]
        if before and after and min(after) <= before[-1]:
            return True
    return False


def _finding(series: Series, rise: Rise, words: str) -> Finding:
    i = rise.onset
    step, last = series.steps[i], series.steps[i - 1] if i else None
    quote = f"{series.raw_name} = {series.values[i]:.6g}" + (f" at step {step}" if step is not None else "")
    uniform = round(math.exp(rise.final)) if rise.frozen and 1 < rise.final < 14 else None
    guess = f"; ln({uniform}) is what a uniform answer over that many classes costs" if uniform else ""
    return Finding(
        rule="LRN001",
        shape=Shape.LEARNING,
        severity=Severity.ERROR,
        confidence=Confidence.MEDIUM,
        title=f"{series.raw_name} {words}: {rise.best:.4g} → {rise.final:.4g}"
        + (f" from step {step}" if step is not None else ""),
        because=f"no later value comes back to the lower half of that rise{guess}",
        evidence=(
            _evidence(series, i, quote, EvidenceRole.PRIMARY),
            _evidence(series, len(series) - 1, f"{series.raw_name} = {series.values[-1]:.6g}", EvidenceRole.RELATED),
        ),
        onset=Onset(step=step, t_ns=series.times[i], rank=series.rank, step_lo=last),
        cause="frozen_loss" if words == "is frozen" else "diverged",
        causal=Causal.ROOT,
        numbers={"best": rise.best, "final": rise.final, "noise": rise.noise},
        likely=("the learning rate is too high for this point of the run", "bad data at the onset"),
        next=("resume from a checkpoint before the onset with a lower learning rate",),
    )


def _evidence(series: Series, i: int, quote: str, role: EvidenceRole) -> Evidence:
    return Evidence(
        source=series.source,
        locator=Locator(line=series.lines[i], byte=series.bytes[i]),
        quote=quote,
        step=series.steps[i],
        rank=series.rank,
        t_ns=series.times[i],
        name=series.name,
        value=series.values[i],
        role=role,
    )
