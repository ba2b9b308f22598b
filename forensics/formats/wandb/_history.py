"""History rows of a W&B transaction log: one record after the other, or many at once where there are many."""

from __future__ import annotations

from math import isnan

from msgspec import Struct, field

from forensics.dialects.spec import Name
from forensics.formats.rows.attempts import Attempts
from forensics.formats.rows.metrics import At, int64, nanoseconds
from forensics.formats.wandb._define import StepAxes
from forensics.formats.wandb._items import items, leaves, numbers_of, parts, plain_number
from forensics.formats.wandb._points import Points
from forensics.io.limits import DEFAULT, Limits
from forensics.io.records.protobuf import WireError

#: Rows that are decoded at once: few enough to stay in the cache, many enough to pay for the calls.
BATCH_RECORDS, BATCH_BYTES, FEWEST_RECORDS = 2048, 4 << 20, 64
_KEYS = 100_000

#: A history row: number of its record, the byte of the file where that begins, bytes that hold the row, where in them.
Row = tuple[int, int, bytes, int, int]


class History(Struct):
    """Rows as they come, and what outlives one of them: names, x axes, the attempt and the last time.

    `many` allows to decode rows together, which needs numpy; `odd` are the rows that were no messages: number and byte
    of the record, and why.
    """

    points: Points
    attempts: Attempts
    rank: int | None
    many: bool
    limits: Limits = DEFAULT
    axes: StepAxes = field(default_factory=StepAxes)
    t_ns: int | None = None
    odd: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])
    _names: dict[bytes, str] = field(default_factory=dict[bytes, str])
    _waiting: list[Row] = field(default_factory=list[Row])
    _waiting_bytes: int = 0
    _keys: object = None
    _beside: list[tuple[int, At, list[tuple[str, float, Name]]]] = field(
        default_factory=list[tuple[int, At, list[tuple[str, float, Name]]]]
    )

    def feed(self, rows: list[Row]) -> None:
        """Take rows in their order."""
        if not self.many:
            for row in rows:
                self._one(row)
            return
        self._waiting += rows
        self._waiting_bytes += sum([end - at for _, _, _, at, end in rows])
        if len(self._waiting) >= self._most_rows or self._waiting_bytes >= min(BATCH_BYTES, self.limits.block_bytes):
            self.flush()

    @property
    def _most_rows(self) -> int:
        return min(BATCH_RECORDS, self.limits.batch_rows)

    def beside(self, place: At, points: list[tuple[str, float, Name]]) -> None:
        """Take points that belong to the attempt of the row before them: printed name, value, meaning."""
        self._beside.append((len(self._waiting), place, points))
        if not self._waiting or len(self._beside) >= self._most_rows:
            self.flush()

    def flush(self) -> None:
        """Decode what waits; needed before a record that changes how rows are read, or asks for the time."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        beside, self._beside = self._beside, []
        attempts = [self.attempts.current]
        for begin in range(0, len(waiting), self._most_rows):
            rows = waiting[begin : begin + self._most_rows]
            found = self._together(rows) if len(rows) >= FEWEST_RECORDS else None
            attempts += [self._one(row) for row in rows] if found is None else found
        for count, place, points in beside:
            own = place._replace(attempt=attempts[count])
            for raw, value, name in points:
                self.points.add(own, raw, value, name)

    def _together(self, rows: list[Row]) -> list[int] | None:
        from forensics.formats.wandb import _batch as wandb_batch  # noqa: PLC0415 - numpy is loaded for large logs only

        if self._keys is None:
            self._keys = wandb_batch.Keys()
        assert isinstance(self._keys, wandb_batch.Keys)
        return wandb_batch.decode(self, rows, self._keys)

    def _one(self, row: Row) -> int:
        try:
            self._read(row)
        except WireError as error:
            self.odd.append((row[0], row[1], str(error)))
        return self.attempts.current

    def _read(self, row: Row) -> None:  # noqa: C901 - one branch for each kind of key
        _, byte, data, at, end = row
        step = t_ns = epoch = None
        cells: list[tuple[str, float | None, str]] = []
        for key, value in items(data, at, end):
            name = self._names.get(key) or self._name(key)
            number = plain_number(value)
            if name == "_step":
                step = int64(number)
            elif name == "_timestamp":
                t_ns = nanoseconds(number)
            elif not name.startswith("_"):
                if name == "epoch" and number is not None and not isnan(number):
                    epoch = number
                if number is not None:
                    cells.append((name, number, name))
                else:
                    cells += [(inner, found, name) for inner, found in numbers_of(name, value)]
        if step is None:
            step = row_step(data, at, end)
        self.t_ns = t_ns or self.t_ns
        place = At(byte, self.attempts.see("_step", step), self.rank, None, byte, step, epoch, t_ns, step)
        if axes := self.axes.axes():
            for name, number, _ in cells:
                if name in axes:
                    self.axes.see(name, number)
        for name, number, key in cells:
            gstep = self.axes.step(key, step)
            self.points.add(place if gstep == place.gstep else place._replace(gstep=gstep), name, number)

    def _name(self, key: bytes) -> str:
        name = key.decode("utf-8", "replace")
        self.axes.assume(name)
        if len(self._names) < _KEYS:
            self._names[key] = name
        return name


def row_step(data: bytes, at: int, end: int) -> int | None:
    """The step that the record itself carries; 0 where its field is empty.

    Raises `WireError` when the bytes are no such message.
    """
    for start, stop in parts(data, at, end, 2):
        step = dict(leaves(data, start, stop, {1: "step"})).get("step", 0)
        return step if isinstance(step, int) else None
    return None
