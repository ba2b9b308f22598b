"""A document of plots, each a list of steps and one of values: `{"train": {"loss": {"x": [0, 10], "y": [2.3, 2.1]}}}`.

ClearML gives reported scalars so, by the title and the series of each plot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import cast

from msgspec import Struct

from forensics.formats.rows.json_records import flat, number, record_of
from forensics.formats.rows.metrics import int64, unix_ns
from forensics.formats.rows.text import Line
from forensics.patterns import lazily

_HEAD = lazily(rb'\{\s*(?:"name"\s*:\s*"[^"]*"\s*,\s*)?"[xy]"\s*:\s*\[')
_DEEPEST = 3


class JsonPlots(Struct, frozen=True):
    """The records of a document of plots, one for each step; all stand in its first line."""

    plots: tuple[tuple[str, Sequence[float], Sequence[object]], ...]

    #: It says so itself, whatever its name: each of its plots counts its steps.
    is_of_metrics: bool = True

    def __iter__(self) -> Iterator[tuple[Line, dict[str, object]]]:
        """Give them in the order of their steps."""
        line = Line(1, 0, b"", ended=True)
        points = [(x, name, y) for name, xs, ys in self.plots for x, y in zip(xs, ys, strict=True)]
        for step, same in groupby(sorted(points, key=itemgetter(0)), key=itemgetter(0)):
            yield line, {"step": step, **{name: value for _, name, value in same}}


def may_be_plots(head: bytes) -> bool:
    """Whether an object of plots is in the head of a document."""
    return head.lstrip()[:1] == b"{" and _HEAD.search(head) is not None


def plots_of(data: bytes) -> JsonPlots | None:
    """Read the plots of which the steps are whole numbers that rise; None where there is none of two points."""
    found = tuple(_plots(dict(flat(record_of(data) or {}, "/", _DEEPEST))))
    return JsonPlots(found) if found else None


def _plots(cells: Mapping[str, object]) -> Iterator[tuple[str, Sequence[float], Sequence[object]]]:
    for key, cell in cells.items():
        name, _, axis = key.rpartition("/")
        values = cells.get(f"{name}/y")
        if axis != "x" or not isinstance(cell, list) or not isinstance(values, list):
            continue
        told = [number(one) for one in cast("list[object]", cell)]
        steps = [x for x in told if x is not None and x == int64(x) and unix_ns(x) is None]
        own = cast("list[object]", values)
        if len(steps) == len(told) == len(own) > 1 and all(a < b for a, b in pairwise(steps)):
            title, _, series = name.rpartition("/")
            yield series if series == title else name, steps, own
