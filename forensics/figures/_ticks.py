"""Round places on an axis: numbers, powers of ten and times of day, five to eight of them where the values allow it.

And instants as short words.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import ceil, floor, isfinite, log10

FEWEST_TICKS, MOST_TICKS = 5, 8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NS = 1_000_000_000
_SLACK = 1e-9
_STEPS = (5.0, 2.5, 2.0, 1.0)
#: Multiples of a power of ten on a logarithmic axis, from sparse to dense.
_DECADES = ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 5, 7), tuple(range(1, 10)))
#: Round steps of a clock in seconds: up to a second, a minute, an hour, a day, a month.
_CLOCK_S = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10_800, 21_600, 43_200),
    *(86_400, 172_800, 432_000, 864_000, 2_592_000),
)
_TENTH_S, _MINUTE_S, _DAY_S = 0.1, 60, 86_400


def rounds(low: float, high: float, *, whole: bool = False) -> tuple[float, ...]:
    """Give five to eight round values from about `low` to `high`, integers only where `whole`.

    Where no round step gives as many inside, the nearest one outside stands with them; a single value is alone.
    """
    span = high - low
    if span <= 0 or not isfinite(span):
        return (low,)
    unit = 10.0 ** floor(log10(span))
    steps = [m * unit / 10**n for n in range(3) for m in _STEPS]
    steps = [s for s in steps if not whole or (s >= 1 and s == int(s))] or [1.0]
    larger = steps[0]
    for step in steps:
        count = _count(low, high, step)
        if count > MOST_TICKS:
            return _widened(low, high, larger)
        if count >= FEWEST_TICKS:
            return _multiples(low, high, step)
        larger = step
    return _multiples(low, high, larger)


def powers(low: float, high: float) -> tuple[float, ...]:
    """Give five to eight values from `low` to `high`, both above zero, that are round on a logarithmic axis."""
    first, last = floor(log10(low) + _SLACK), ceil(log10(high) - _SLACK)
    every = max(1, ceil((last - first + 1) / MOST_TICKS))
    inside: tuple[float, ...] = ()
    for multiples in _DECADES if every == 1 else _DECADES[:1]:
        values = (m * 10.0**p for p in range(first, last + 1, every) for m in multiples)
        found = tuple(v for v in values if low * (1 - _SLACK) <= v <= high * (1 + _SLACK))
        if len(found) > MOST_TICKS and inside:
            break
        inside = found
        if len(found) >= FEWEST_TICKS:
            break
    return (
        inside
        if len(inside) >= FEWEST_TICKS
        else tuple(v for v in rounds(low, high) if low <= v <= high) or (low, high)
    )


def times(low_ns: int, high_ns: int) -> tuple[tuple[float, str], ...]:
    """Give round times of day from `low_ns` to `high_ns`, each with its share of the way; UTC."""
    span = (high_ns - low_ns) / _NS
    step = next((s for s in _CLOCK_S if span / s < MOST_TICKS), _CLOCK_S[-1])
    step_ns = round(step * _NS)
    first, last = -(-low_ns // step_ns), high_ns // step_ns
    try:
        return tuple(
            ((n * step_ns - low_ns) / (high_ns - low_ns), _clock(n * step_ns, step))
            for n in range(first, min(last, first + 2 * MOST_TICKS) + 1)
        )
    except (OverflowError, ZeroDivisionError):
        return ()


def _clock(t_ns: int, step_s: float) -> str:
    """An instant with no more digits than steps of so many seconds need."""
    when = _EPOCH + timedelta(microseconds=t_ns // 1000)
    if step_s < 1:
        return when.strftime("%H:%M:%S.%f")[:-5] if step_s >= _TENTH_S else when.strftime("%S.%f")[:-3] + " s"
    return when.strftime("%H:%M:%S" if step_s < _MINUTE_S else "%H:%M" if step_s < _DAY_S else "%Y-%m-%d")


def _count(low: float, high: float, step: float) -> int:
    return floor(high / step + _SLACK) - ceil(low / step - _SLACK) + 1


def _multiples(low: float, high: float, step: float) -> tuple[float, ...]:
    first = ceil(low / step - _SLACK)
    return tuple((first + n) * step for n in range(_count(low, high, step)))


def _widened(low: float, high: float, step: float) -> tuple[float, ...]:
    """Add values outside, the nearer first, until there are enough."""
    found = list(_multiples(low, high, step))
    while found and len(found) < FEWEST_TICKS:
        below, above = found[0] - step, found[-1] + step
        found = [below, *found] if low - below < above - high else [*found, above]
    return tuple(found)


def clock(t_ns: int) -> str:
    """Nanoseconds since 1970 as `2026-01-02 03:04:05` in UTC; as a number where no calendar reaches."""
    try:
        return (_EPOCH + timedelta(microseconds=t_ns // 1000)).strftime("%Y-%m-%d %H:%M:%S")
    except OverflowError:
        return f"{t_ns} ns"


def time_of_day(t_ns: int) -> str:
    """Nanoseconds since 1970 as `03:04:05` in UTC; as a number where no calendar reaches."""
    return clock(t_ns).rpartition(" ")[2] if ":" in clock(t_ns) else clock(t_ns)
