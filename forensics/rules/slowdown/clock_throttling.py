"""SLO007 gpu-clocks-throttled: a GPU ran at much lower clocks than it did before, under load.

What it detects: an SM clock that fell and stayed low while the GPU was busy, in logs of nvidia-smi, DCGM or a
tracker.

Why it matters: nothing in the training log says so; the steps are slower by what the clock lost, and one such GPU
slows all ranks.

How it decides: per GPU, samples with a utilisation of half or more: the share whose clock lies below `fall` of the
highest clock held by a tenth of them. From `share` on it is told: as a warning when the driver's throttle reasons, a
temperature of `hot` or a draw of `power` of the limit explain it, else as a note.

What else looks like this: application clocks that were set on purpose; lower boost clocks of a heavier kernel mix.

What to do next: read the throttle reasons on the host, and look at its cooling.

References: NVIDIA, "nvidia-smi" manual page, on clocks event reasons.

Example:
    ```metrics
    t_ns: 0..230000000000/10000000000
    name: gpu_sm_clock_mhz
    raw_name: gpu.0.clocks.sm
    value: 1980 1975 1970 1980 1975 1970 1980 1975 1970 1980 1975 1970 1080*12
    ```
    ```metrics
    t_ns: 0..230000000000/10000000000
    name: gpu_temp_c
    raw_name: gpu.0.temperature.gpu
    value: 62*12 88*12
    ```
    ```metrics
    t_ns: 0..230000000000/10000000000
    name: gpu_util_pct
    raw_name: gpu.0.utilization.gpu
    value: 98
    ```
    => SLO007 warning confidence=high t_ns=120000000000 cause=thermal_throttling high_mhz=1980 low_mhz=1080
Not this: steady clocks
    ```metrics
    t_ns: 0..230000000000/10000000000
    name: gpu_sm_clock_mhz
    raw_name: gpu.0.clocks.sm
    value: (1980 1975 1970)*8
    ```
    ```metrics
    t_ns: 0..230000000000/10000000000
    name: gpu_temp_c
    raw_name: gpu.0.temperature.gpu
    value: 62
    ```
    ```metrics
    t_ns: 0..230000000000/10000000000
    name: gpu_util_pct
    raw_name: gpu.0.utilization.gpu
    value: 98
    ```
    => nothing
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.analyses.traces.gpu_clocks import Throttled, throttled
from forensics.rules.kit import Finding, Findings, Run, onset_at, proof, rule


@dataclass(frozen=True, slots=True)
class Clocks:
    """Thresholds of SLO007: `fall` is the clock under its usual high, `share` of the loaded samples, `hot` in Celsius.

    `power` is the share of the power limit; `samples` the fewest loaded samples of a device.
    """

    fall: float = 0.85
    share: float = 0.2
    hot: float = 80.0
    power: float = 0.95
    samples: int = 12


@rule("slowdown", needs=("metrics",), config=Clocks)
def gpu_clocks_throttled(run: Run, cfg: Clocks) -> Findings:
    """Find the GPU that lost most of its clock."""
    found = [t for t in throttled(run, fall=cfg.fall, samples=cfg.samples) if t.share >= cfg.share]
    if found:
        yield _finding(min(found, key=lambda t: t.low / t.high), cfg)


def _finding(one: Throttled, cfg: Clocks) -> Finding:
    rows = one.rows
    first = rows.row(0, named=True)
    known = _reason(one, cfg)
    reason, cause = known or ("the log does not tell why", "low_clocks")
    return gpu_clocks_throttled.finding(
        f"GPU {one.device} ran at {one.low:.0f} MHz instead of {one.high:.0f} MHz in "
        f"{100 * one.share:.0f} % of its loaded samples: {reason}",
        "its SM clock under load is below the one it held before",
        proof(first, rows.row(-1, named=True)),
        onset_at(first),
        severity="warning" if known else "info",
        confidence="high" if known else "low",
        cause=cause,
        numbers={"high_mhz": one.high, "low_mhz": one.low, "share": one.share},
        likely=(
            "cooling: a fan, a blocked intake, a neighbour that heats",
            "a power limit set by the operator or the rack",
        ),
    )


def _reason(one: Throttled, cfg: Clocks) -> tuple[str, str] | None:
    if one.reasons:
        return f"the driver says {', '.join(one.reasons)}", "clock_throttling"
    if one.temperature is not None and one.temperature >= cfg.hot:
        return f"at {one.temperature:.0f} C", "thermal_throttling"
    if one.power_share is not None and one.power_share >= cfg.power:
        return f"at {100 * one.power_share:.0f} % of its power limit", "power_throttling"
    return None
