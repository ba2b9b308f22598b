"""Instants as short words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def clock(t_ns: int) -> str:
    """Nanoseconds since 1970 as `2026-01-02 03:04:05` in UTC; as a number where no calendar reaches."""
    try:
        return (_EPOCH + timedelta(microseconds=t_ns // 1000)).strftime("%Y-%m-%d %H:%M:%S")
    except OverflowError:
        return f"{t_ns} ns"


def time_of_day(t_ns: int) -> str:
    """Nanoseconds since 1970 as `03:04:05` in UTC; as a number where no calendar reaches."""
    return clock(t_ns).rpartition(" ")[2] if ":" in clock(t_ns) else clock(t_ns)
