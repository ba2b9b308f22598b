"""RSM007 resume-nondeterministic: a step done again gives another loss.

What it detects: steps that were replayed after a restart with losses that differ from those of the first time.

Why it matters: a run that cannot be repeated cannot be bisected: a spike or a NaN may be gone the next time.

How it decides: at five steps or more that both lives did, the relative difference of the losses is above 1e-6 and above
half of the last digit printed. Differences much smaller than the noise from step to step are those of kernels and of
the order of sums; differences as large as it are those of other data.

What else looks like this: a changed batch size or number of devices.

What to do next: seed every generator and save their states; `torch.use_deterministic_algorithms(True)` finds most
kernels, though some remain.

References: PyTorch documentation, reproducibility.

Example:
    ```metrics
    attempt: 0*24 1*12
    step: 0..23 16..27
    loss: 2.02 1.97 1.99 1.96 1.96 1.97 1.92 1.94 1.91 1.91 1.92 1.87 1.89 1.86 1.86 1.87 1.82 1.84 1.81 1.81 1.82
        1.77 1.79 1.76 1.831 1.827 1.827 1.821 1.807 1.787 1.801 1.747 1.74 1.76 1.73 1.73
    ```
    => RSM007 info confidence=medium step=16 cause=other_data causal=context median_difference=0.01300 noise=0.02000
Not this:
    ```metrics
    attempt: 0*24 1*12
    step: 0..23 16..27
    loss: 2.02 1.97 1.99 1.96 1.96 1.97 1.92 1.94 1.91 1.91 1.92 1.87 1.89 1.86 1.86 1.87 1.82 1.84 1.81 1.81 1.82
        1.77 1.79 1.76 1.82 1.84 1.81 1.81 1.82 1.77 1.79 1.76 1.74 1.76 1.73 1.73
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.resume.around import Around, around, paired
from forensics.case.processes.lives import restarts
from forensics.rules.kit import Finding, Findings, Onset, Run, proof, rule
from forensics.stats.spread import median


@dataclass(frozen=True, slots=True)
class Config:
    """Thresholds of RSM007: pairs, relative difference, and the share of the noise that tells data from kernels."""

    pairs: int = 5
    relative: float = 1e-6
    noise: float = 0.3


@rule(
    "learning", needs=("metrics", "checkpoints"), config=Config, severity="info", confidence="medium", causal="context"
)
def nondeterministic(run: Run, cfg: Config) -> Findings:
    """Compare the losses of the steps that were done twice, at the first restart where they differ."""
    for boundary in restarts(run):
        seen = around(run, boundary, "loss") if boundary.kind == "replays" else None
        pairs = paired(seen) if seen is not None else pl.DataFrame()
        if seen is None or pairs.height < cfg.pairs:
            continue
        size = pl.max_horizontal(pl.col("old").abs(), pl.col("new").abs())
        quantum = _quantum(pl.concat([pairs["old"], pairs["new"]]))
        differ = pairs.filter((pl.col("delta").abs() > cfg.relative * size) & (pl.col("delta").abs() > quantum / 2))
        if differ.height >= cfg.pairs:
            yield _finding(seen, pairs, differ, cfg)
            return


def _quantum(values: pl.Series) -> float:
    """The unit in which values are printed, at most: their smallest difference."""
    least = values.unique().sort().diff().drop_nulls().min()
    return float(least) if isinstance(least, float) else 0.0


def _finding(seen: Around, pairs: pl.DataFrame, differ: pl.DataFrame, cfg: Config) -> Finding:
    step, typical = int(differ["at"][0]), median(differ["delta"].abs())
    noise = median(pairs["old"].diff().drop_nulls().abs())
    data = typical > cfg.noise * noise
    rows = [frame.filter(pl.col("at") == step).row(0, named=True) for frame in (seen.after, seen.replaced)]
    return nondeterministic.finding(
        f"step {step} done again gives {differ['new'][0]:.6g} after {differ['old'][0]:.6g}",
        f"{differ.height} of {pairs.height} steps done twice differ, by {typical:.3g} in the middle, "
        + (f"as much as neighbouring steps do ({noise:.3g})" if data else f"far less than neighbours do ({noise:.3g})"),
        proof(rows[0], rows[1]),
        Onset(step=step),
        cause="other_data" if data else "nondeterministic_kernels",
        numbers={"pairs": pairs.height, "differ": differ.height, "median_difference": typical, "noise": noise},
    )
