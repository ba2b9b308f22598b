"""The shape of one event of a Chrome trace: what is decoded of it, and how events of another shape are brought into it.

Only fields that analyses need are named, so that the decoder passes over the rest (shapes, registers, call stacks)
without making objects of it. Known arguments are kept under the names that newer profilers print.
"""

from __future__ import annotations

import contextlib
from decimal import Decimal
from typing import Any, cast

import msgspec

Scalar = int | str | float | None
#: The phase of a counter, whose arguments are series of any name.
COUNTER = "C"


class DeviceArgs(msgspec.Struct, gc=False, omit_defaults=True):
    """Arguments of device work, its launches and its collectives that are columns or kept, as printed."""

    correlation: Any = None
    stream: Any = None
    device: Any = None
    bytes: Any = None
    old_external_id: Any = msgspec.field(default=None, name="external id")
    external_id: Any = msgspec.field(default=None, name="External id")
    collective: Any = msgspec.field(default=None, name="Collective name")
    group: Any = msgspec.field(default=None, name="Process Group Name")
    group_ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    group_size: Any = msgspec.field(default=None, name="Group size")
    sequence: Any = msgspec.field(default=None, name="Seq")
    dtype: Any = None
    elements_in: Any = msgspec.field(default=None, name="In msg nelems")
    elements_out: Any = msgspec.field(default=None, name="Out msg nelems")


class Args(DeviceArgs, gc=False, omit_defaults=True):
    """All arguments that are read: those of the device, and what other events have as columns or keep as `attrs`."""

    allocated: Any = msgspec.field(default=None, name="Total Allocated")
    reserved: Any = msgspec.field(default=None, name="Total Reserved")
    moved: Any = msgspec.field(default=None, name="Bytes")
    device_type: Any = msgspec.field(default=None, name="Device Type")
    device_id: Any = msgspec.field(default=None, name="Device Id")
    event_index: Any = msgspec.field(default=None, name="Ev Idx")
    python_id: Any = msgspec.field(default=None, name="Python id")
    python_parent_id: Any = msgspec.field(default=None, name="Python parent id")
    queued: Any = None
    grid: Any = None
    block: Any = None
    occupancy: Any = msgspec.field(default=None, name="est. achieved occupancy %")


class Event(msgspec.Struct, gc=False):
    """One event; `ts` and `dur` are microseconds as floats, or exact (`Decimal`, `int`) where a float would round."""

    ph: str = ""
    name: str = ""
    cat: str = ""
    pid: int | str = ""
    tid: int | str = ""
    ts: float | None = None
    dur: float | None = None
    args: Args | None = None


class _Exact(Event):
    ts: Decimal | None = None  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues] - same slot
    dur: Decimal | None = None  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]


class _DeviceEvent(Event):
    args: DeviceArgs | None = None  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]


class Counted(Event):
    """A counter that was read alone, with all its series."""

    series: Any = None


class _Counter(msgspec.Struct, gc=False):
    ph: str = ""
    args: Any = None


_fast = msgspec.json.Decoder(list[Event])
_exact = msgspec.json.Decoder(list[_Exact])
_device = msgspec.json.Decoder(list[_DeviceEvent])
_loose = msgspec.json.Decoder(list[Any], float_hook=Decimal)
_counters = msgspec.json.Decoder(list[_Counter])
#: What the decoder raises: for syntax and types, for bytes that are no UTF-8, for nesting without end, for exponents
#: that no decimal has.
REFUSED = (msgspec.MsgspecError, ValueError, RecursionError, ArithmeticError)


def decoded(events: bytes | memoryview, *, device_only: bool = False) -> list[Event]:
    """Events in a comma-separated row, all of the usual shape; raises `REFUSED` for anything else.

    With `device_only` they come without the arguments that no analysis of the device reads.
    """
    text = _listed(events)
    return cast("list[Event]", _device.decode(text)) if device_only else _fast.decode(text)


def decoded_exactly(events: bytes) -> list[Event]:
    """The same with times as decimals, for microseconds since 1970 with three decimals, which no float holds.

    Raises `REFUSED` for anything else.
    """
    return cast("list[Event]", _exact.decode(_listed(events)))


def _listed(events: bytes | memoryview) -> bytes:
    """The same events in a list, all of it text: the decoder does not look at what it passes over."""
    data = b"".join((b"[", events, b"]"))
    if not data.isascii():
        data.decode()
    return data


def decoded_loosely(events: bytes) -> list[Event]:
    """Events whose fields have other types (times as text, a number as name); what is no object is an empty event.

    Raises `REFUSED` when it is no JSON.
    """
    return [shaped(one) for one in _loose.decode(b"[" + events + b"]")]


def series_in(events: bytes) -> list[Any]:
    """The arguments of each counter among these events, which decoded as they stand; empty where they do not."""
    with contextlib.suppress(*REFUSED):
        return [one.args for one in _counters.decode(b"[" + events + b"]") if one.ph == COUNTER]
    with contextlib.suppress(*REFUSED):  # a number that no float holds
        return [one.series for one in decoded_loosely(events) if isinstance(one, Counted)]
    return []


def shaped(one: object) -> Event:
    """Bring a decoded JSON value into the shape of an event."""
    if not isinstance(one, dict):
        return Event()
    found = cast("dict[str, Any]", one)
    args = found.get("args")
    phase = _text(found.get("ph"))
    event = (Counted if phase == COUNTER else Event)(
        ph=phase,
        name=_text(found.get("name")),
        cat=_text(found.get("cat")),
        pid=_label(found.get("pid")),
        tid=_label(found.get("tid")),
        args=_args(cast("dict[str, Any]", args)) if isinstance(args, dict) else None,
    )
    if isinstance(event, Counted):
        event.series = args
    event.ts, event.dur = _number(found.get("ts")), _number(found.get("dur"))
    return event


def _args(found: dict[str, Any]) -> Args | None:
    try:
        return msgspec.convert(found, Args)
    except REFUSED:
        return None


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)[:200]


def _label(value: object) -> int | str:
    return value if isinstance(value, int | str) else _text(value)


def _number(value: object) -> Any:  # noqa: ANN401 - a Decimal takes the place of a float where it must be exact
    if isinstance(value, str):
        try:
            value = Decimal(value.strip())
        except ArithmeticError:
            return None
        return value if value.is_finite() else None
    return value if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else None
