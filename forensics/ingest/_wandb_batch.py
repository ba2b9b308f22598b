"""Many history rows at once: the n-th items of all rows together, then all numbers and all names in one go.

Rows that do not look like what every known writer writes are left to the reader of single rows, and it decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from forensics.dialects import _lines
from forensics.ingest._tf_wire import WireError, fields
from forensics.ingest._wandb_items import numbers_of
from forensics.ingest._wandb_points import Place
from forensics.ingest._wandb_varints import PAD, OddError, demand
from forensics.ingest._wandb_wire import Cells, cells_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forensics.ingest._wandb_history import History, Row

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

_MOST_KEYS = 20_000
#: First bytes of JSON texts that hold a number although they are none: strings, objects, null.
_MAY_HOLD = np.zeros(256, bool)
_MAY_HOLD[np.frombuffer(b'"{n', np.uint8)] = True
_FAR = 9.0e18
#: Line ends, other control bytes and bytes beyond ASCII become a control byte, by which such a key is known.
_PLAIN = bytes(b if 32 <= b < 127 else 1 for b in range(256))


@dataclass(slots=True)
class Keys:
    """Every key met so far by its number, exact; a name is made once for each."""

    spans: list[str] = field(default_factory=list[str])
    names: list[str] = field(default_factory=list[str])
    _kind: pl.Enum = field(default_factory=lambda: pl.Enum([]))

    def codes(self, spans: pl.Series, *, plain: bool = False) -> Ints | None:
        """The number of each key; None where `plain` is asked and a new one holds what is no printable ASCII."""
        found = spans.cast(self._kind, strict=False)
        if found.null_count():
            new = spans.filter(found.is_null()).unique(maintain_order=True).to_list()
            if None in new or len(self.spans) + len(new) > _MOST_KEYS:
                raise OddError
            if plain and any(not key.isascii() or not key.isprintable() for key in new):
                return None
            self.spans += new
            self.names += [_name(span.encode()) for span in new]
            self._kind = pl.Enum(self.spans)
            found = spans.cast(self._kind)
        return found.to_physical().to_numpy().astype(np.int64)


def decode(history: History, rows: list[Row], keys: Keys) -> bool:
    """Read rows together and hand their points over; false, and nothing done, where they are not of the usual form."""
    bodies = [record.payload[at:end] for record, at, end in rows]
    text = b"".join((*bodies, PAD))
    sizes = np.fromiter(map(len, bodies), np.int64, len(bodies))
    try:
        cells = cells_of(np.frombuffer(text, np.uint8), sizes)
        codes, values = _cut(cells, text, keys)
        numbers = values.cast(pl.Float64, strict=False)
        batch = _Batch(history, rows, keys, cells, codes, numbers.to_numpy(), numbers.is_not_null().to_numpy())
        columns = batch.columns()
    except OddError:
        return False
    batch.hand_over(columns, text)
    return True


def _cut(cells: Cells, text: bytes, keys: Keys) -> tuple[Ints, pl.Series]:
    """Number of the key and text of the value of each item."""
    names, values = _quick(cells, text)
    codes = keys.codes(names, plain=True) if names.len() == len(cells.row) else None
    if codes is None:
        names, values = _exact(cells, text)
        codes = keys.codes(names)
    assert codes is not None
    return codes, values


def _quick(cells: Cells, text: bytes) -> tuple[pl.Series, pl.Series]:
    """Keys and values of all items, read as the lines of a text; in a key beyond plain ASCII a byte is changed.

    The bytes before and behind each of them are lengths and tags, which line ends may replace; what stands between
    becomes lines that nobody looks at. Cutting a text at line ends costs a fifth of taking each span out of it.
    """
    plain = bytearray(text.translate(_PLAIN))
    each = np.frombuffer(plain, np.uint8)
    for places in (
        cells.key_at - 1,
        cells.key_at + cells.key_len,
        cells.value_at - 1,
        cells.value_at + cells.value_len,
    ):
        each[places] = ord("\n")
    lines = _lines.strings(bytes(plain))
    return lines.gather_every(4, 1).head(len(cells.row)), lines.gather_every(4, 3).head(len(cells.row))


def _exact(cells: Cells, text: bytes) -> tuple[pl.Series, pl.Series]:
    spans = pl.DataFrame({"ka": cells.key_at, "kl": cells.key_len, "va": cells.value_at, "vl": cells.value_len})
    whole = pl.lit(text)
    cut = spans.select(
        key=whole.bin.slice(pl.col("ka"), pl.col("kl")).cast(pl.String, strict=False),
        value=whole.bin.slice(pl.col("va"), pl.col("vl")).cast(pl.String, strict=False),
    )
    return cut["key"], cut["value"]


def _name(span: bytes) -> str:
    """Name of a key; the framed parts of a nested one are joined with dots."""
    if span[:1] in {b"\n", b"\x12"}:
        try:
            parts = [span[a:b] for _, _, a, b in fields(span, 0, len(span))]
        except WireError:
            parts = [span]
        return b".".join(parts).decode("utf-8", "replace")
    return span.decode("utf-8", "replace")


@dataclass(slots=True)
class _Batch:
    history: History
    rows: list[Row]
    keys: Keys
    cells: Cells
    code: Ints
    number: Floats
    is_number: NDArray[np.bool_]

    def axis(self, name: str) -> tuple[Floats, NDArray[np.bool_]]:
        """Value of one key in each row, NaN where it is not; and whether it is."""
        values = np.full(len(self.rows), np.nan)
        there = np.zeros(len(self.rows), bool)
        for code in (n for n, known in enumerate(self.keys.names) if known == name):
            hit = np.flatnonzero((self.code == code) & self.is_number)
            values[self.cells.row[hit]] = self.number[hit]
            there[self.cells.row[hit]] = True
        return values, there

    def columns(self) -> dict[str, Ints | Floats]:
        """What the points of each row share, one value a row; raises `OddError` where `_step` is missing."""
        step, there = self.axis("_step")
        demand(there & (np.abs(step) < _FAR))
        stamp, _ = self.axis("_timestamp")
        byte = np.fromiter((record.byte for record, _, _ in self.rows), np.int64, len(self.rows))
        return {"byte": byte, "step": step.astype(np.int64), "stamp": stamp, "epoch": self.axis("epoch")[0]}

    def hand_over(self, shared: dict[str, Ints | Floats], text: bytes) -> None:
        """Write the points of all rows."""
        history, points = self.history, self.history.points
        step = shared["step"].astype(np.int64)
        stamp = shared["stamp"]
        timed = (stamp > 0) & (stamp < 9.2e9)
        t_ns = np.where(timed, np.rint(np.where(timed, stamp, 0) * 1e9), 0).astype(np.int64)
        if timed.any():
            history.t_ns = int(t_ns[np.flatnonzero(timed)[-1]])
        attempt = self._attempts(step)
        used = np.array([not name.startswith("_") for name in self.keys.names], bool)[self.code]
        kept = np.flatnonzero(used & self.is_number)
        rest = np.flatnonzero(used & ~self.is_number)
        rest = rest[_MAY_HOLD[np.frombuffer(text, np.uint8)[self.cells.value_at[rest]]]]
        gsteps = self._gsteps(step)
        row, code = self.cells.row[kept], self.code[kept]
        names = [points.names[name] for name in self.keys.names]
        value = self.number[kept]
        if any(name.scale != 1 for name in names):
            value *= np.array([name.scale for name in names])[code]
        points.numeric.update(self.keys.names[n] for n in np.flatnonzero(np.bincount(code, minlength=1)))
        frame = pl.DataFrame(
            {
                "seq": shared["byte"][row],
                "attempt": attempt[row],
                "byte": shared["byte"][row],
                "step": step[row],
                "epoch": shared["epoch"][row],
                "t_ns": t_ns[row],
                "gstep": gsteps[kept],
                "name": pl.Series([name.canonical for name in names], dtype=pl.String).gather(code),
                "raw_name": pl.Series(self.keys.names, dtype=pl.String).gather(code),
                "value": value,
            }
        ).with_columns(
            pl.lit(history.rank, dtype=pl.Int32).alias("rank"),
            pl.col("t_ns").replace(0, None),
        )
        if np.isnan(shared["epoch"]).any():
            frame = frame.with_columns(pl.col("epoch").fill_nan(None))
        if np.isfinite(value).all():
            frame = frame.with_columns(value_class=pl.lit("finite"))
        points.out.rows("metrics", frame)
        self._odd_values(rest, text, (step, t_ns, attempt, shared["epoch"].astype(np.float64), gsteps))

    def _odd_values(self, rest: Ints, text: bytes, shared: tuple[Ints, Ints, Ints, Floats, Ints]) -> None:
        """Points that stand in strings and objects, and nulls."""
        step, t_ns, attempt, epoch, gsteps = shared
        for n in rest.tolist():
            row, at, size = int(self.cells.row[n]), int(self.cells.value_at[n]), int(self.cells.value_len[n])
            byte = self.rows[row][0].byte
            own_epoch = None if np.isnan(epoch[row]) else float(epoch[row])
            place = Place(
                byte, int(attempt[row]), self.history.rank, byte, int(step[row]), own_epoch, int(t_ns[row]) or None
            )
            for name, number in numbers_of(self.keys.names[int(self.code[n])], text[at : at + size]):
                self.history.points.add(place, int(gsteps[n]), name, number)

    def _attempts(self, step: Ints) -> Ints:
        see = self.history.attempts.see
        first = see("_step", int(step[0]))
        if (np.diff(step) >= 0).all():
            see("_step", int(step[-1]))
            return np.full(len(step), first, np.int64)
        return np.array([first, *(see("_step", own) for own in step[1:].tolist())], np.int64)

    def _gsteps(self, step: Ints) -> Ints:
        """Optimizer step of each item."""
        axes = self.history.axes
        found = step[self.cells.row]
        if not axes.axes():
            return found
        axis_of = [axes.axis_of(name) for name in self.keys.names]
        for axis in sorted(axes.axes()):
            own = np.array([known == axis for known in axis_of], bool)[self.code]
            values, there = self.axis(axis)
            there &= np.isfinite(values) & (np.abs(values) < _FAR)
            last = np.maximum.accumulate(np.where(there, np.arange(len(step)), -1))
            whole = np.where(there, values, 0).astype(np.int64)
            before = axes.last.get(axis)
            steps = np.where(last >= 0, whole[np.maximum(last, 0)], step if before is None else before)
            found[own] = steps[self.cells.row[own]]
            if there.any():
                axes.last[axis] = int(whole[last[-1]])
        return found
