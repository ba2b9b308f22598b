"""Many history rows at once: the n-th items of all rows together, then all numbers and all names in one go.

Rows that do not look like what every known writer writes are left to the reader of single rows, and it decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from msgspec import Struct, field

from forensics.formats.rows.metrics import At
from forensics.formats.wandb._define import TRAINER_STEPS
from forensics.formats.wandb._items import numbers_of
from forensics.formats.wandb._wire import PAD, Cells, OddError, cells_of, demand, key_hashes
from forensics.io.columns import owned
from forensics.io.records.protobuf import WireError, fields

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from forensics.formats.wandb._history import History, Row

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

#: First bytes of JSON texts that hold a number although they are none: strings, objects, null.
_MAY_HOLD = np.zeros(256, bool)
_MAY_HOLD[np.frombuffer(b'"{n', np.uint8)] = True
_FAR = 9.0e18
#: Keys that are kept by number; a log with more of them is read row by row.
_MOST_KEYS = 20_000
_SLOT_BITS = 16


class Keys(Struct):
    """Every key met so far by its number; a name is made once for each."""

    names: list[str] = field(default_factory=list[str])
    _numbers: dict[int, int] = field(default_factory=dict[int, int])

    def of(self, cells: Cells, text: bytearray) -> Ints:
        """The number of the key of each item; raises `OddError` when there are too many keys."""
        hashes, firsts, which = np.unique(
            key_hashes(np.frombuffer(text, np.uint8), cells), return_index=True, return_inverse=True
        )
        for code, first in zip(hashes.tolist(), firsts.tolist(), strict=True):
            if code not in self._numbers:
                at = int(cells.key_at[first])
                self._numbers[code] = len(self.names)
                self.names.append(_name(bytes(text[at : at + int(cells.key_len[first])])))
        if len(self.names) > _MOST_KEYS:
            raise OddError
        return np.array([self._numbers[code] for code in hashes.tolist()], np.int64)[which]


def values_of(cells: Cells, text: bytearray) -> pl.Series:
    """The text of the value of each item; null where it is none."""
    spans = pl.DataFrame({"at": owned(cells.value_at), "size": owned(cells.value_len)})
    value = pl.lit(bytes(text)).bin.slice(pl.col("at"), pl.col("size")).cast(pl.String, strict=False)
    return spans.select(value.alias("value"))["value"]


def _name(span: bytes) -> str:
    """Name of a key; the framed parts of a nested one are joined with dots."""
    if span[:1] in {b"\n", b"\x12"}:
        try:
            parts = [span[a:b] for _, _, a, b in fields(span, 0, len(span))]
        except WireError:
            parts = [span]
        return b".".join(parts).decode("utf-8", "replace")
    return span.decode("utf-8", "replace")


def decode(history: History, rows: list[Row], keys: Keys) -> list[int] | None:
    """Read rows together and hand their points over; give the attempt of each row.

    None, and nothing done, where they are not of the usual form.
    """
    bodies = [data[at:end] for _, _, data, at, end in rows]
    text = bytearray().join((*bodies, PAD))
    sizes = np.fromiter(map(len, bodies), np.int64, len(bodies))
    try:
        cells = cells_of(np.frombuffer(text, np.uint8), sizes)
        codes = keys.of(cells, text)
        for name in filter(keys.names.__contains__, TRAINER_STEPS):
            history.axes.assume(name)
        numbers = values_of(cells, text).cast(pl.Float64, strict=False)
        batch = _Batch(history, rows, keys, cells, codes, numbers.to_numpy(), numbers.is_not_null().to_numpy(), text)
        columns = batch.columns()
    except OddError:
        return None
    return batch.hand_over(columns)


class _Batch(Struct):
    history: History
    rows: list[Row]
    keys: Keys
    cells: Cells
    code: Ints
    number: Floats
    is_number: NDArray[np.bool_]
    text: bytearray

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
        if axes := self.history.axes.axes():
            holds = [any(f"{axis}.".startswith(f"{name}.") for axis in axes) for name in self.keys.names]
            if len(self._may_hold(np.array(holds, bool)[self.code])):
                raise OddError  # an axis in a string or an object counts from its row on
        stamp, _ = self.axis("_timestamp")
        byte = np.array([byte for _, byte, _, _, _ in self.rows], np.int64)
        return {"byte": byte, "step": step.astype(np.int64), "stamp": stamp, "epoch": self.axis("epoch")[0]}

    def hand_over(self, shared: dict[str, Ints | Floats]) -> list[int]:
        """Write the points of all rows; give the attempt of each."""
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
        rest = self._may_hold(used)
        gsteps = self._gsteps(step)
        code = self.code[kept]
        points.numeric.update(self.keys.names[n] for n in np.flatnonzero(np.bincount(code, minlength=1)))
        records = {"seq": shared["byte"], "byte": shared["byte"], "step": step, "t_ns": t_ns, "attempt": attempt}
        rows = pl.DataFrame({name: owned(column) for name, column in {**records, "epoch": shared["epoch"]}.items()})
        rows = rows.with_columns(pl.col("t_ns").replace(0, None), pl.col("epoch").fill_nan(None))
        frame = points.rows.coded(rows, self.cells.row[kept], self.keys.names, code, self.number[kept])
        frame = frame.with_columns(gstep=owned(gsteps[kept]), rank=pl.lit(history.rank, dtype=pl.Int32))
        if np.isfinite(frame["value"].to_numpy()).all():
            frame = frame.with_columns(value_class=pl.lit("finite"))
        points.rows.out.rows("metrics", frame)
        self._odd_values(rest, (step, t_ns, attempt, shared["epoch"].astype(np.float64), gsteps))
        found: list[int] = attempt.tolist()
        return found

    def _odd_values(self, rest: Ints, shared: tuple[Ints, Ints, Ints, Floats, Ints]) -> None:
        """Points in strings and objects, and nulls."""
        step, t_ns, attempt, epoch, gsteps = shared
        for n in rest.tolist():
            row, at, size = int(self.cells.row[n]), int(self.cells.value_at[n]), int(self.cells.value_len[n])
            byte = self.rows[row][1]
            own_epoch = None if np.isnan(epoch[row]) else float(epoch[row])
            place = At(
                byte,
                attempt=int(attempt[row]),
                rank=self.history.rank,
                byte=byte,
                step=int(step[row]),
                epoch=own_epoch,
                t_ns=int(t_ns[row]) or None,
                gstep=int(gsteps[n]),
            )
            for name, number in numbers_of(self.keys.names[int(self.code[n])], bytes(self.text[at : at + size])):
                self.history.points.add(place, name, number)

    def _may_hold(self, among: NDArray[np.bool_]) -> Ints:
        """Which of these items are no numbers but may hold some."""
        rest = np.flatnonzero(among & ~self.is_number)
        return rest[_MAY_HOLD[np.frombuffer(self.text, np.uint8)[self.cells.value_at[rest]]]]

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


def last_of(rows: list[Row]) -> tuple[dict[bytes | int, int], list[int]]:
    """For the hash of each key the last row that holds it; and the rows that are to be read another way."""
    bodies = [data[at:end] for _, _, data, at, end in rows]
    sizes = np.fromiter(map(len, bodies), np.int64, len(bodies))
    text = np.frombuffer(bytearray().join((*bodies, PAD)), np.uint8)
    try:
        cells = cells_of(text, sizes)
    except OddError:
        return {}, list(range(len(rows)))
    row = cells.row
    # the last value is followed by keys to delete, or by nothing
    reached = np.zeros(len(rows), np.int64)
    reached[row] = cells.value_at + cells.value_len
    others: list[int] = np.flatnonzero(reached != np.cumsum(sizes)).tolist()
    hashes = key_hashes(text, cells)
    last = np.full(1 << _SLOT_BITS, -1)
    slot = (hashes >> np.uint64(64 - _SLOT_BITS)).astype(np.int64)
    last[slot] = np.arange(len(slot))
    missed = np.flatnonzero(hashes[last[slot]] != hashes)
    places = last[last >= 0]
    found = dict(zip(hashes[missed].tolist(), row[missed].tolist(), strict=True))
    found.update(zip(hashes[places].tolist(), row[places].tolist(), strict=True))
    return found, others
