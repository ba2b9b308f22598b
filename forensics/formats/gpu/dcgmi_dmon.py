"""Tables of `dcgmi dmon` and of `nvidia-smi dmon`: a header that comes again and again, a row for each GPU, no commas.

`dcgmi dmon` prints no time at all: the order of the rows is all there is, `t_ns` and `step` are null. The columns are
those of the last header, whatever their order. The number of a GPU is part of the name (`gpu.0.GPUTL`) and never a
rank: `rank` is null. `N/A` and `-` were not measured and give no row. Dates of `nvidia-smi dmon -o DT` are read as UTC.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import Struct

from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.json_records import number
from forensics.formats.rows.metrics import At, MetricRows
from forensics.formats.rows.text import head_lines, lines_of, misfit, settle

_ENTITY = lazily(r"#\s*Entity\s+(\S.*)")
_SMI = lazily(r"#\s*((?:Date\s+)?(?:Time\s+)?gpu(?:\s+[\w-]+)+)\s*")
_SMI_UNITS = lazily(r"#\s*(?:YYYYMMDD\s+)?(?:HH:MM:SS\s+)?Idx(?:\s+\S+)+\s*")
_ROW = lazily(r"\s*([A-Z][\w-]{0,20}) +(\d{1,4})\s+(\S.*)")
_UNITS_ROW = lazily(r"\s*I[Dd]\b[\s\w%/-]*")
_SAMPLE_BYTES, _LINE_CHARS = 8192, 8192
_AXES = frozenset({"Date", "Time", "gpu"})


class _Header(Struct, frozen=True):
    """Columns behind the entity (dcgmi), or all columns with `gpu` among them (nvidia-smi)."""

    names: tuple[str, ...]
    is_dcgmi: bool


@ingester(
    "dcgmi_dmon",
    version=1,
    sniff=Sniff(glob=("*dcgm*", "*dmon*", "*gpu*", "*smi*", "*.log", "*.txt", "*.out", "*.csv")),
    emits=("metrics",),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one table; raises `NotMine` when none of the first lines is a header of it."""
    _sniff(opened)
    rows = MetricRows(out, limits)
    header: _Header | None = None
    tool = ""
    seq = lost = 0
    for line in lines_of(opened):
        text = _text(line.text)
        again = _header(text)
        if again is not None:
            header, tool = again, tool or ("dcgmi dmon" if again.is_dcgmi else "nvidia-smi dmon")
            continue
        if not text.strip() or _is_units(text):
            continue
        at = At(seq, opened.source.attempt or 0, None, line.number, line.byte)
        if header is None or not _row(text, header, at, rows):
            lost += misfit(line, "does not fit the columns", out)
        else:
            seq += 1
    rows.close()
    out.format(tool)
    settle(opened, out, records=seq, lost_bytes=lost, reason="lines that do not fit the columns")


def _sniff(opened: Opened) -> None:
    """A training log that merely begins with such a table is none, so most of the first lines must be rows."""
    header: _Header | None = None
    other = fits = 0
    lines = [_text(line) for line in head_lines(opened, _SAMPLE_BYTES)]
    for text in lines if any(map(_header, lines)) else ():
        header = (again := _header(text)) or header
        known = again is not None or _is_units(text) or (header is not None and _cells(text, header) is not None)
        fits, other = fits + known, other + (not known)
    if header is None or fits < 3 * other:
        raise NotMine("no table of dmon")


def _is_units(text: str) -> bool:
    return (_UNITS_ROW.fullmatch(text) or _SMI_UNITS.fullmatch(text)) is not None


def _text(line: bytes) -> str:
    return line[:_LINE_CHARS].decode("utf-8", "replace").rstrip("\r\n")


def _header(text: str) -> _Header | None:
    if (found := _ENTITY.fullmatch(text.strip())) is not None:
        return _Header(tuple(found[1].split()), is_dcgmi=True)
    found = _SMI.fullmatch(text.strip())
    return None if found is None else _Header(tuple(found[1].split()), is_dcgmi=False)


def _cells(text: str, header: _Header) -> tuple[str, list[str]] | None:
    """Device and cells of a row, None where it does not fit the header."""
    if header.is_dcgmi:
        found = _ROW.fullmatch(text)
        cells = found[3].split() if found else []
        device = f"{found[1].lower()}.{found[2]}" if found else ""
    else:
        cells = text.split()
        printed = cells[header.names.index("gpu")] if len(cells) == len(header.names) else ""
        device = f"gpu.{printed}" if printed.isdecimal() and len(printed) < 5 else ""
    return (device, cells) if device and len(cells) == len(header.names) else None


def _row(text: str, header: _Header, at: At, rows: MetricRows) -> bool:
    """Add one row; false where it does not fit the header."""
    found = _cells(text, header)
    if found is None:
        return False
    device, cells = found
    when = _time([cell for name, cell in zip(header.names, cells, strict=True) if name in {"Date", "Time"}])
    _add(device, header.names, cells, at._replace(t_ns=when), rows)
    return True


def _time(parts: Sequence[str]) -> int | None:
    """Date and time of a row; a time without its date does not count."""
    try:
        when = datetime.strptime(" ".join(parts), "%Y%m%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(when.timestamp()) * 1_000_000_000


def _add(device: str, names: Sequence[str], cells: Sequence[str], at: At, rows: MetricRows) -> None:
    for name, cell in zip(names, cells, strict=True):
        if name not in _AXES and (value := number(cell)) is not None:
            rows.add(at, f"{device}.{name}", value)
