"""The summary of a W&B run: of each key the last value, which may be in any of the summary records of the log.

A record repeats only what changed, so a value that was logged once may be thousands of records before the end. Values
are read of those records only that hold the last one of some key.
"""

from __future__ import annotations

from msgspec import Struct, field

from forensics.formats.wandb._facts import Facts
from forensics.formats.wandb._history import BATCH_BYTES, BATCH_RECORDS, FEWEST_RECORDS, Row
from forensics.formats.wandb._items import items
from forensics.io.limits import DEFAULT, Limits
from forensics.io.records.protobuf import WireError

#: Longer records are passed over.
MOST_BYTES = 1 << 20
#: As many facts as a run may have.
_MOST_KEYS = 20_000
#: The field of the keys that a record deletes.
_REMOVE = 2


class Summaries(Struct):
    """Feed records in order, then `write`; `many` allows to use numpy, and keys are then known by their hashes."""

    facts: Facts
    many: bool
    limits: Limits = DEFAULT
    _last: dict[bytes | int, Row] = field(default_factory=dict[bytes | int, Row])
    _waiting: list[Row] = field(default_factory=list[Row])
    _waiting_bytes: int = 0

    def feed(self, rows: list[Row]) -> None:
        """Take records in their order."""
        rows = [row for row in rows if row[4] - row[3] <= MOST_BYTES]
        self._waiting += rows
        self._waiting_bytes += sum([end - at for _, _, _, at, end in rows])
        most_bytes = min(BATCH_BYTES, self.limits.block_bytes)
        if len(self._waiting) >= self._most_rows or self._waiting_bytes >= most_bytes:
            self._look()

    @property
    def _most_rows(self) -> int:
        return min(BATCH_RECORDS, self.limits.batch_rows)

    def write(self) -> None:
        """Note the last value of each key that was met."""
        self._look()
        for _, _, data, at, end in sorted(
            {row[1]: row for row in self._last.values()}.values(), key=lambda row: row[1]
        ):
            try:
                self.facts.summary(data, at, end)
            except WireError:
                continue
        self._last.clear()

    def _look(self) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        for begin in range(0, len(waiting), self._most_rows):
            rows = waiting[begin : begin + self._most_rows]
            found, others = self._last_of(rows)
            self._last.update((key, rows[n]) for key, n in found.items())
            for n in others:
                self._last.update(dict.fromkeys(_keys(rows[n]), rows[n]))
        if len(self._last) > _MOST_KEYS:
            self.write()

    def _last_of(self, rows: list[Row]) -> tuple[dict[bytes | int, int], list[int]]:
        """Rows by the hash of each key whose last one they are; and those to be looked at one by one."""
        if not self.many or len(rows) < FEWEST_RECORDS:
            return {}, list(range(len(rows)))
        from forensics.formats.wandb._batch import last_of  # noqa: PLC0415 - numpy is loaded for large logs only

        return last_of(rows)


def _keys(row: Row) -> list[bytes]:
    """Keys that a record sets; one of its own for a record that also does something else."""
    _, byte, data, at, end = row
    try:
        keys = [key for key, _ in items(data, at, end)]
        deleted = [key for key, _ in items(data, at, end, _REMOVE)]
    except WireError:
        return [b"\0%d" % byte]
    return [*keys, b"\0%d" % byte] if deleted else keys
