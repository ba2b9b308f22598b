"""From the words of NaN detectors to candidates: a guard's line, a watcher's exception, a sampler fed with NaN."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from forensics.rules._kit import Row, attributes
from forensics.rules.nan._series import Candidate, Status
from forensics.signals.failures import failures
from forensics.signals.timeline import in_order
from forensics.store.run import Run

#: This many finite losses after a detector's last line mean that training went on; this many lines at most are a stumble.
_SURVIVED = 2
_STUMBLES = 3


@dataclass(frozen=True, slots=True)
class _Line:
    row: Row
    line: int
    echo: bool
    cleared: bool


def detector_candidates(run: Run, rows: pl.DataFrame) -> list[Candidate]:
    """Judge the detectors' lines of every source; `rows` are the watched metric rows."""
    lines = [*_dialect_lines(run)]
    spoken = {(item.row["source"], item.line) for item in lines}
    lines += [item for item in _errors(run) if (item.row["source"], item.line) not in spoken]
    sources = sorted({item.row["source"] for item in lines})
    return [c for s in sources for c in _judge(sorted((x for x in lines if x.row["source"] == s), key=_line), rows)]


def detector_lines(run: Run) -> list[Row]:
    """The event rows of dialects' own NaN lines, in file order."""
    return [item.row for item in _dialect_lines(run)]


def _line(item: _Line) -> int:
    return item.line


def _dialect_lines(run: Run) -> Iterator[_Line]:
    rows = run.scan("events").filter(pl.col("code").str.ends_with(".nan")).sort("source", "seq").collect()
    for row in rows.iter_rows(named=True):
        yield _Line(row, row["line"] or row["seq"] or 0, echo=attributes(row).get("role") == "symptom", cleared=False)


def _errors(run: Run) -> Iterator[_Line]:
    for failure in in_order(f for f in failures(run) if f.shape == "nan"):
        row: dict[str, Any] = {
            "source": failure.source,
            "line": failure.line,
            "byte": failure.byte,
            "seq": None,
            "step": failure.step,
            "rank": failure.rank,
            "t_ns": failure.t_ns,
            "code": failure.code,
            "text": failure.quote,
            "attrs": None,
        }
        echo = "probability tensor" in failure.quote or failure.code == "prob-tensor-nan"
        yield _Line(row, failure.at, echo=echo, cleared=bool(failure.cleared))


def _judge(lines: list[_Line], rows: pl.DataFrame) -> Iterator[Candidate]:
    source = lines[0].row["source"]
    own = rows.filter((pl.col("source") == source) & ~pl.col("bad"))
    losses = own.filter(pl.col("role").is_in(["loss", "part"]) & (pl.col("value") != 0.0))
    at = losses.select(pl.coalesce("line", "seq").fill_null(0)).to_series()
    after = int((at > lines[-1].line).sum())
    ended = lines[-1].cleared or after >= _SURVIVED
    first = lines[0] if ended else _last_stretch(lines, at)
    before = losses.filter(at < first.line).tail(1)
    clean = before.row(0, named=True) if before.height else None
    step = first.row["step"] if first.row["step"] is not None else clean["at"] if clean else None
    if ended:
        few = len(lines) <= max(_STUMBLES, len(at) // 20)
        status = Status.TRANSIENT if few else Status.INTERMITTENT
    else:
        status = Status.FAILED
    yield Candidate(
        status=status,
        role="echo" if first.echo else "detector",
        row=first.row,
        clean=clean,
        step=step,
        n=len(at) + len(lines),
        n_bad=len(lines),
        n_after=after,
        own_step=first.row["step"] is not None,
    )


def _last_stretch(lines: list[_Line], at: pl.Series) -> _Line:
    """The first line of those at the end between which no run of finite losses lies."""
    first = len(lines) - 1
    while first and int(((at > lines[first - 1].line) & (at < lines[first].line)).sum()) <= _SURVIVED:
        first -= 1
    return lines[first]
