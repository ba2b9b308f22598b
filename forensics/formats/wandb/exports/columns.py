"""What the column names of a W&B export mean: a chart's `<run> - <metric>` with `__MIN` and `__MAX`, or a history."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from forensics.patterns import lazily

#: the row numbers that a data frame writes as a column of their own
INDEX = lazily(r"Unnamed: \d+(?:\.\d+)?|index|level_0")
#: axes that the chart's menu offers; any metric can be one too
_CHART_AXES = lazily(r"Step|Relative Time(?: \(.*\))?|Wall Time")
_TIME_AXES = lazily(r"(?i)relative time.*|wall time|_runtime|_timestamp")
HISTORY_AXES = frozenset(("_step", "_timestamp", "_runtime"))
_BOUNDS = ("__MIN", "__MAX")


class Column(Struct, frozen=True):
    """One column of a chart: whose values of which metric; `bound` is `__MIN` or `__MAX` of a bin, or nothing."""

    index: int
    header: str
    run: str
    metric: str
    bound: str


class Chart(Struct, frozen=True):
    """The columns of a chart; `by_time` says that its x axis is no step."""

    axis: str
    by_time: bool
    columns: tuple[Column, ...]


def _base(name: str) -> tuple[str, str]:
    for bound in _BOUNDS:
        if name.endswith(bound):
            return name.removesuffix(bound), bound
    return name, ""


def is_history(names: Sequence[str]) -> bool:
    """Whether these are the columns of a run's history: it has `_step`, which no other writer calls so."""
    return "_step" in {name.strip() for name in names}


def is_chart(names: Sequence[str]) -> bool:
    """Whether this is the header of a chart's CSV."""
    return chart_of(names) is not None


def chart_of(names: Sequence[str]) -> Chart | None:
    """The columns of a chart's CSV; None for another table.

    Every column but the first belongs to a run, as `<run> - <metric>`; a grouped chart may print the group alone, which
    is known by its `__MIN` and `__MAX`. A name with several ` - ` is cut at the last one.
    """
    axis, others = (names[0].strip(), [name.strip() for name in names[1:]]) if names else ("", [])
    known = set(others)
    bounded = {base for name in others for base, bound in (_base(name),) if bound and base in known}
    if not any(others) or not (bounded or _CHART_AXES.fullmatch(axis)):
        return None
    columns: list[Column] = []
    for index, name in enumerate(others, start=1):
        base, bound = _base(name)
        run, dash, metric = base.rpartition(" - ")
        if not dash and base not in bounded:
            if not name:
                continue
            return None
        columns.append(Column(index, name, run if dash else base, metric if dash else base, bound))
    return Chart(axis, _TIME_AXES.fullmatch(axis) is not None, tuple(columns))
