"""Rows of a W&B history, wherever they were exported to: axes, attempts, and what the export says about its gaps.

`step` is W&B's own `_step`; `gstep` is the trainer's step where it was logged, in the same row or the last before it.
`run.history()` gives 500 rows by default, a random one of each interval, and pads what a row did not log.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from forensics.formats.rows.facts import write_facts
from forensics.formats.rows.metrics import At, MetricRows, int64, unix_ns
from forensics.formats.rows.out import Out
from forensics.formats.wandb._define import TRAINER_STEPS
from forensics.formats.wandb.exports.columns import HISTORY_AXES, INDEX

#: Rows that `run.history()` returns unless asked for more: the default of its argument `samples`.
DEFAULT_SAMPLES = 500
SAMPLED = "sampled-export"


class Extent(Struct, frozen=True):
    """Rows of an export that have a `_step`, their lowest and highest `_step`, and how many different ones."""

    rows: int
    low: int
    high: int
    distinct: int


def state_extent(extent: Extent | None, rows: int, out: Out) -> None:
    """Write what is known about the rows that the export does not hold: a row of facts, and an issue where sampled."""
    missing = 0 if extent is None else max(extent.high - extent.low + 1 - extent.distinct, 0)
    sampled = rows == DEFAULT_SAMPLES and (extent is None or missing > 0)
    if sampled:
        out.issue(
            SAMPLED,
            f"exactly {DEFAULT_SAMPLES} rows, the default of run.history(): sampled at random, "
            f"{missing} steps between them are not in this file; scan_history gives every row",
            count=max(missing, 1),
        )
    facts: dict[str, object] = {"export.kind": "history", "export.rows": rows, "export.missing_steps": missing}
    facts["export.sampled"] = True if sampled else False if missing == 0 else None
    write_facts(out, ((key, value, "progress") for key, value in facts.items()))


class HistoryRows(Struct):
    """Rows on their way to the sink; `add` takes them one by one, in the order of the file."""

    out: Out
    rows: MetricRows
    rank: int | None
    attempt: int
    count: int = 0
    fallen: int = 0
    _low: int | None = None
    _high: int = 0
    _last: int | None = None
    _trainer: int | None = None
    _distinct: int = 0

    def add(self, cells: Iterable[tuple[str, float | None]], line: int | None, byte: int | None) -> None:
        """Add one row: the numbers that it logged, by name, None where padded, and the row's place."""
        row = dict(cells)
        step = int64(row.get("_step"))
        self._follow(step)
        trainer = next((found for name in TRAINER_STEPS if (found := int64(row.get(name))) is not None), None)
        self._trainer = self._trainer if trainer is None else trainer
        at = At(
            self.count,
            attempt=self.attempt,
            rank=self.rank,
            line=line,
            byte=byte,
            step=step,
            epoch=row.get("epoch"),
            t_ns=unix_ns(row.get("_timestamp")),
            gstep=self._trainer,
        )
        for name, value in row.items():
            if name and name not in HISTORY_AXES and not INDEX.fullmatch(name):
                self.rows.add(at, name, value)
        self.count += 1

    def close(self) -> None:
        """Hand over the rest, and state what the export lacks."""
        self.rows.close()
        extent = None if self._low is None else Extent(self.count, self._low, self._high, self._distinct)
        if self.fallen:
            self.out.issue(
                "rows-unsorted", "rows stand before rows of lower `_step`; kept in the file's order", count=self.fallen
            )
        state_extent(extent, self.count, self.out)

    def _follow(self, step: int | None) -> None:
        """A fall of `_step` to the first one of all begins the next run in the same file; any other is disorder."""
        if step is None:
            return
        if self._last is not None and self._low is not None and step < self._last:
            if step <= self._low:
                self.attempt += 1
                self._trainer = None
                self._low, self._high, self._distinct = step, step, 0
            else:
                self.fallen += 1
        self._low = step if self._low is None else min(self._low, step)
        self._high = step if self._last is None else max(self._high, step)
        self._distinct += step != self._last
        self._last = step
