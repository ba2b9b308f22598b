"""Logs of `nvidia-smi --query-gpu=… --format=csv -l`: one row for each GPU at each time, with or without a header.

Units are in the cells, in the header, or nowhere. The number of a GPU is part of the name (`gpu.0.memory.used`) and
never a rank: `rank` is null, because the log is about a machine. Without an index or an id of the device, rows at most
20 ms apart are one look at all GPUs, numbered in order. Without a header a column is known by its unit only
(`gpu.0.column_4_mib`); what it measures is not guessed. `[N/A]` was not measured and gives no row, any other word in
brackets (`[Unknown Error]`, `[GPU requires reset]`) a null. Times have no zone and are read as UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import Struct, field

from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.facts import write_facts
from forensics.formats.rows.json_records import number
from forensics.formats.rows.metrics import At, MetricRows
from forensics.formats.rows.text import head_lines, lines_of, misfit, settle

_FIELD = lazily(
    r"(?:utilization|memory|temperature|power|enforced\.power|clocks|clocks_throttle_reasons|clocks_event_reasons|ecc"
    r"|retired_pages|remapped_rows|encoder|fan|pcie|gom|mig|compute_cap|pci|gpu)[._][\w.]+|pstate"
)
_UNIT_CELL = lazily(r"([-+]?\d+(?:\.\d+)?) (%|[KMGT]iB|W|MHz|C)")
_UNIT_HEAD = lazily(r"(.*?) \[([^\]]*)\]")
_TIME = lazily(r"(\d{4})/(\d\d)/(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")
_INDEX = ("index", "gpu_index", "gpu_id", "gpu")
_IDS = (*_INDEX, "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", "gpu_serial")
_NO_METRICS = lazily(r"timestamp|count|name|gpu_name|vbios_version|inforom\..*|driver_version|display_.*|pci\..*|pid")
#: The columns that say the same in every row, and what their facts are called.
_STATED = {"name": "name", "gpu_name": "name", "pci.bus_id": "pci.bus_id", "gpu_bus_id": "pci.bus_id"}
_MIB = {"KiB": 1 / 1024, "MiB": 1.0, "GiB": 1024.0, "TiB": 1048576.0}
_NOT_MEASURED = frozenset({"", "n/a", "[n/a]", "[not supported]", "not supported", "[not found]"})
_SWITCHES = {"Active": 1.0, "Not Active": 0.0, "Enabled": 1.0, "Disabled": 0.0}
#: The bits of what `clocks_throttle_reasons.active` prints, by the fields that print one each (NVML, nvml.h).
_REASONS = {
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
}
_ACTIVE = lazily(r"0x[0-9a-fA-F]{16}")
_TICK_NS = 20_000_000
_SAMPLE_BYTES, _SAMPLE_ROWS, _COLUMNS, _DEVICES, _HEADER_CHARS = 8192, 20, 200, 1000, 100


class _Header(Struct, frozen=True):
    """Names of the columns and their units, and the columns of the device and the time."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    device: int | None
    time: int | None
    bare: bool = False


class _Devices(Struct):
    """Numbers for devices: the printed index, else the order in which ids, or rows of one look, come."""

    known: dict[str, int] = field(default_factory=dict[str, int])
    ordinal: int = -1
    last: int | None = None

    def of(self, header: _Header, cells: Sequence[str], t_ns: int | None) -> int:
        """Number of the device of a row."""
        if header.device is None:
            same = t_ns is not None and self.last is not None and 0 <= t_ns - self.last <= _TICK_NS
            self.ordinal = self.ordinal + 1 if same else 0
            self.last = t_ns
            return self.ordinal
        printed = cells[header.device]
        if header.names[header.device] in _INDEX and printed.isdecimal() and len(printed) < 4:
            return int(printed)
        return self.known.setdefault(printed, len(self.known)) if len(self.known) < _DEVICES else _DEVICES


@ingester(
    "nvidia_smi_csv",
    version=3,
    sniff=Sniff(glob=("*.csv", "*smi*", "*gpu*", "*nvidia*", "*.log", "*.txt", "*.out")),
    emits=("metrics", "facts"),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one log; raises `NotMine` when the first lines are neither its header nor rows with units."""
    header = _sniff(opened)
    rows, devices = MetricRows(out, limits), _Devices()
    models: dict[tuple[int, str], str] = {}
    seq = lost = 0
    for line in lines_of(opened):
        cells = _cells(line.text)
        if not any(cells):
            continue
        again = _header(cells)
        if again is not None:
            header = again
        elif not _is_row(cells, header):
            lost += misfit(line, "does not fit the columns", out)
        else:
            if not line.ended and not _UNIT_CELL.fullmatch(cells[-1]):
                cells[-1] = ""  # the writer ends every line, so this number, or this word, may be the begin of another
            t_ns = None if header.time is None else _time(cells[header.time])
            device = devices.of(header, cells, t_ns)
            _row(
                cells,
                header,
                device,
                At(seq, opened.source.attempt or 0, None, line.number, line.byte, t_ns=t_ns),
                rows,
            )
            _model(cells, header, device, models)
            seq += 1
    rows.close()
    write_facts(out, ((f"gpu.{device}.{what}", said, "env") for (device, what), said in models.items()))
    out.format("nvidia-smi csv without a header" if header.bare else "nvidia-smi csv")
    settle(opened, out, records=seq, lost_bytes=lost, reason="lines that do not fit the columns")


def _cells(text: bytes) -> list[str]:
    plain = text[:_SAMPLE_BYTES].decode("utf-8", "replace").removeprefix("\ufeff")
    return [cell.strip() for cell in plain.split(",", _COLUMNS)]


def _sniff(opened: Opened) -> _Header:
    """The columns; a training log that merely begins with such a table is none, so most of its lines must be rows."""
    lines = head_lines(opened, _SAMPLE_BYTES)
    first = map(_cells, lines[:_SAMPLE_ROWS])
    header = next((found for cells in first if (found := _header(cells) or _guessed(cells))), None)
    if header is None:
        raise NotMine("no header and no rows of nvidia-smi")
    fits = sum(_header(cells) is not None or _is_row(cells, header) for cells in map(_cells, lines))
    if 4 * fits < 3 * len(lines):
        raise NotMine("a table of nvidia-smi inside other text")
    return header


def _header(cells: Sequence[str]) -> _Header | None:
    """The header, where these cells are one: at least two fields of nvidia-smi, one of them a measure."""
    if not cells[0][:1].isalpha() or max(map(len, cells)) > _HEADER_CHARS:
        return None
    split = [_UNIT_HEAD.fullmatch(cell) for cell in cells]
    names = tuple(found[1] if found else cell for found, cell in zip(split, cells, strict=True))
    measures = sum(_FIELD.fullmatch(name) is not None for name in names)
    others = sum(name in {*_IDS, "timestamp", "name"} for name in names)
    if not measures or measures + others < max(2, len(names) // 2 + 1) or "pid" in names:
        return None
    units = tuple(found[2] if found else "" for found in split)
    device = next((names.index(name) for name in _IDS if name in names), None)
    return _Header(names, units, device, names.index("timestamp") if "timestamp" in names else None)


def _guessed(cells: Sequence[str]) -> _Header | None:
    """Columns of a row without a header: named by their place and unit."""
    units = [found[2] if (found := _UNIT_CELL.fullmatch(cell)) else "" for cell in cells]
    if sum(unit != "" for unit in units) < 2 or not any(unit.endswith("iB") or unit in {"W", "MHz"} for unit in units):
        return None
    words = {"%": "pct", "C": "c"}
    names = [f"column_{place}_{words.get(unit, unit).lower()}".rstrip("_") for place, unit in enumerate(units, start=1)]
    time = next((place for place, cell in enumerate(cells) if _time(cell) is not None), None)
    return _Header(tuple(names), tuple(units), None, time, bare=True)


def _is_row(cells: Sequence[str], header: _Header) -> bool:
    """Whether a line may be a row: its time is one, and where units were printed without a header, they come again."""
    if len(cells) != len(header.names) or (header.time is not None and _time(cells[header.time]) is None):
        return False
    if not header.bare:
        return True
    return all(
        not unit or cell.startswith("[") or cell.lower() in _NOT_MEASURED or cell.endswith(f" {unit}")
        for cell, unit in zip(cells, header.units, strict=True)
    )


def _time(cell: str) -> int | None:
    found = _TIME.fullmatch(cell)
    if found is None:
        return None
    try:
        when = datetime(*(int(part) for part in found.groups()[:6]), tzinfo=UTC)  # pyright: ignore[reportArgumentType]
    except ValueError:
        return None
    return int(when.timestamp()) * 1_000_000_000 + int((found[7] or "0").ljust(9, "0"))


def _row(cells: Sequence[str], header: _Header, device: int, at: At, rows: MetricRows) -> None:
    for place, (name, unit, cell) in enumerate(zip(header.names, header.units, cells, strict=True)):
        if place in {header.device, header.time} or name in _IDS or _NO_METRICS.fullmatch(name):
            continue
        found = _UNIT_CELL.fullmatch(cell)
        value = number(found[1] if found else cell)
        if value is None:
            value = _SWITCHES.get(cell)
        factor = 1.0 if header.bare else _MIB.get(found[2] if found else unit, 1.0)
        if value is not None:
            rows.add(at, f"gpu.{device}.{name}", value * factor)
        elif name.endswith("_reasons.active") and _ACTIVE.fullmatch(cell):
            for bit, reason in _REASONS.items():
                rows.add(at, f"gpu.{device}.{name.removesuffix('active')}{reason}", float(bool(int(cell, 16) & bit)))
        elif cell.startswith("[") and cell.lower() not in _NOT_MEASURED:
            rows.add(at, f"gpu.{device}.{name}", None)


def _model(cells: Sequence[str], header: _Header, device: int, models: dict[tuple[int, str], str]) -> None:
    if len(models) >= _DEVICES:
        return
    for name, cell in zip(header.names, cells, strict=True):
        if name in _STATED and cell:
            models.setdefault((device, _STATED[name]), cell[:200])
