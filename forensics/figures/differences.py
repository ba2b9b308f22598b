"""What a run differs in from its baselines: one table for each section of a comparison that has something to say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from forensics.compare.diff import diff
from forensics.compare.model import Section
from forensics.figure import Rows
from forensics.figures.kind import FigureKind
from forensics.model import Number, Report, Severity
from forensics.store.run import Run

_MOST_ROWS, _MOST_COLUMNS = 60, 12
#: The shape of the findings that a section explains.
_SHAPES = {"evals": "bad_eval", "config": "bad_eval", "throughput": "slowdown"}
#: Facts of a section that its table has, too.
_MOST_FACTS = 8


def differences(run: Run, report: Report) -> Iterator[Rows]:
    """Give every section of the comparison; nothing without a baseline."""
    names = [base.name for base in run.bases]
    against = " and ".join((*names[:1], *([f"{len(names) - 1} more"] if len(names) > 1 else [])))
    for section in diff(run.bases, run).sections if names else ():
        yield _rows(section, against, report)


def _rows(section: Section, base: str, report: Report) -> Rows:
    head = _head(section.rows)
    shown = section.rows[:_MOST_ROWS]
    answer = f"{section.answer.value.replace('_', ' ')}: " if section.answer is not None else ""
    return Rows(
        key=f"against-{section.name}",
        title=f"{section.title}, against {base}",
        caption=f"{answer}{section.headline}.",
        facts=section.facts[: None if not section.rows else _MOST_FACTS],
        notes=section.notes,
        head=tuple(name.replace("_", " ") for name in head),
        rows=tuple(tuple(_cell(row.get(name)) for name in head) for row in shown),
        rules=_rules(section, report),
        note=f"the first {len(shown)} of {len(section.rows)} rows" if len(shown) < len(section.rows) else "",
    )


def _rules(section: Section, report: Report) -> tuple[str, ...]:
    shape = _SHAPES.get(section.name)
    told = (f.rule for f in report.findings if f.severity is not Severity.INFO and f.shape.value == shape)
    return tuple(sorted(set(told)))


def _head(rows: Sequence[Mapping[str, Number | None]]) -> tuple[str, ...]:
    """Columns that hold something, in the order of the rows."""
    used = {name: None for row in rows for name, value in row.items() if value is not None and value != ""}
    return tuple(used)[:_MOST_COLUMNS]


def _cell(value: Number | None) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


FIGURES = FigureKind(15, differences)
