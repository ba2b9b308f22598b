"""Small helpers that rules share: evidence from table rows, and readable numbers."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from forensics.case.steps import step_of
from forensics.model import Evidence, EvidenceRole, Locator
from forensics.patterns import lazily

Row = Mapping[str, Any]
_MS_PER_S = 1000
#: A name that says the unit of its sizes, and one that says milliseconds, while times are kept in seconds.
_IN_GIB, _IN_MS = lazily(r"(?i)gi?b"), lazily(r"(?i)(?:^|[^a-z])ms(?:ec)?(?:$|[^a-z])")


def metric_evidence(row: Row, role: EvidenceRole = EvidenceRole.PRIMARY) -> Evidence:
    """Evidence of one row of the metrics table; the quote is its printed name and number, sizes in GiB."""
    value, name = row["value"], str(row["raw_name"] or row["name"])
    kept = str(row["name"])
    printed = value * _MS_PER_S if value is not None and kept.endswith("_s") and _IN_MS.search(name) else value
    shown = number(printed) if row["value_class"] != "filtered-by-writer" else "hidden by the writer"
    unit = " GiB" if kept.endswith("_gib") and not _IN_GIB.search(name) else ""
    step = step_of(row)
    where = "" if step is None else f" at step {step}"
    return Evidence(
        source=row["source"],
        locator=locator(row),
        quote=f"{name} = {shown}{unit}{where}",
        step=step,
        rank=row["rank"],
        t_ns=row["t_ns"],
        name=row["name"],
        value=value,
        role=role,
    )


def event_evidence(row: Row, role: EvidenceRole = EvidenceRole.PRIMARY) -> Evidence:
    """Evidence of one row of the events table; the quote is the line as printed."""
    return Evidence(
        source=row["source"],
        locator=locator(row),
        quote=row["text"] or row["code"] or "",
        step=row["step"],
        rank=row["rank"],
        t_ns=row["t_ns"],
        name=row["code"],
        role=role,
    )


def fact_evidence(row: Row, role: EvidenceRole = EvidenceRole.RELATED) -> Evidence:
    """Evidence of one row of the facts table: a key and its value."""
    return Evidence(
        source=row["source"],
        locator=Locator(line=row["line"], path=row["key"]),
        quote=f"{row['key']} = {row['value']}",
        name=row["key"],
        role=role,
    )


def checkpoint_evidence(row: Row) -> Evidence:
    """Evidence of one known checkpoint: its step and path."""
    quote = f"checkpoint of step {row['step']}: {row['path'] or 'path not printed'}"
    place = Locator(line=row["line"])
    return Evidence(row["source"] or "", place, quote, step=row["step"], role=EvidenceRole.RELATED)


def locator(row: Row) -> Locator:
    """Where a row of the store was read: its line if it has one, else its record."""
    line, byte = row["line"], row.get("byte")
    return Locator(line=line, byte=byte, record=None if line is not None else row.get("seq"))


def number(value: float | None) -> str:
    """A number in at most six significant digits; `nan`, `inf` and `-inf` as such."""
    return "nothing" if value is None else f"{value:.6g}"


def times(count: int) -> str:
    """`once`, `2 times`."""
    return "once" if count == 1 else f"{count} times"


def at_step(step: int | None, epoch: float | None = None) -> str:
    """`step 12`, else `epoch 1.55` where that is printed, or what to say when neither is."""
    if step is None and epoch is not None and isfinite(epoch):
        return f"epoch {number(epoch)}"
    return "an unnumbered step" if step is None else f"step {step}"
