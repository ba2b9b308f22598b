"""The `summary.md` that KempnerForge's profiler writes beside its traces: time by category, efficiency, top kernels.

Its shares are kept as printed, under `summary.…` of the family `trace`. They count an operator and the kernels that it
launched both, and take every name with an `mm` in it for a product of matrices: a trace beside it is the better source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.text import Line, lines_of, settle
from forensics.io.tolerant_json import dumps

_TITLE = b"# Profiling Summary"
_HEAD_BYTES = 4096
_MOST_ROWS = 1_000
_FIELD = lazily(r"\*\*(Date|GPU)\*\*: (.{1,200})")
_NUMBER = lazily(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|-?inf|nan", re.IGNORECASE)
_EFFICIENCY = {
    "Total FLOPS": "total_tflop",
    "Achieved TFLOPS": "achieved_tflops",
    "GPU peak (bf16)": "peak_tflops",
    "Kernel efficiency": "kernel_efficiency_pct",
}
_TIMES, _METRICS, _KERNELS = ("Category", "Time (s)", "%"), ("Metric", "Value"), ("Kernel", "CUDA (ms)", "%", "Calls")

Fact = tuple[str, object]


@ingester("kempnerforge_profile", version=1, sniff=Sniff(glob=("summary.md",)), emits=("facts",))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one summary; raises `NotMine` when another title is at its head."""
    del limits
    if not opened.text_head(_HEAD_BYTES).lstrip().startswith(_TITLE):
        raise NotMine("no profiling summary")
    header: tuple[str, ...] = ()
    rows: list[tuple[int, str, str]] = []
    for line in lines_of(opened):
        cells = _cells(line)
        if cells is None:
            header = ()
            facts: Sequence[Fact] = list(_field(line))
        elif not header:
            header = cells
            continue
        else:
            facts = list(_facts(header, cells, len(rows)))
        rows += [(line.number, f"trace.summary.{key}", dumps(value, compact=True).decode()) for key, value in facts]
        if len(rows) > _MOST_ROWS:
            out.issue("too-long", f"more than {_MOST_ROWS} facts; the rest was left out", line=line.number)
            break
    _check(rows, out)
    if rows:
        lines, keys, values = zip(*rows, strict=True)
        out.rows("facts", {"line": lines, "key": keys, "value": values, "family": ["trace"] * len(rows)})
    out.format("profiler summary of KempnerForge")
    settle(opened, out, records=len(rows))


def _cells(line: Line) -> tuple[str, ...] | None:
    """Cells of a row of a table, or None for a line outside of tables."""
    text = line.text.decode("utf-8", errors="replace").strip()
    if len(text) < 2 or not text.startswith("|") or not text.endswith("|"):
        return None
    return tuple(cell.strip().strip("*") for cell in text[1:-1].split("|"))


def _field(line: Line) -> Iterator[Fact]:
    found = _FIELD.match(line.text.decode("utf-8", errors="replace").strip())
    if found is not None:
        yield found[1].lower(), found[2].strip()


def _facts(header: tuple[str, ...], cells: tuple[str, ...], order: int) -> Iterator[Fact]:
    """Facts of one row, by its table; a rule between head and rows has no number and gives none."""
    if header == _TIMES and len(cells) == 3 and (time_s := _number(cells[1])) is not None:
        yield f"time_s.{cells[0]}", time_s
        yield f"share_pct.{cells[0]}", _number(cells[2])
    elif header == _METRICS and len(cells) == 2 and cells[0] in _EFFICIENCY:
        yield _EFFICIENCY[cells[0]], _number(cells[1])
    elif header[:4] == _KERNELS and len(cells) >= 5 and (time_ms := _number(cells[-4])) is not None:
        name = " | ".join(cells[:-4])  # a name may have a bar in it
        kernel = {"name": name, "time_ms": time_ms, "share_pct": _number(cells[-3]), "calls": _number(cells[-2])}
        yield f"kernel.{order:04d}", {**kernel, "gflops": _number(cells[-1])}


def _number(cell: str) -> float | None:
    found = _NUMBER.match(cell.replace(",", ""))
    return float(found[0]) if found is not None else None


def _check(rows: Sequence[tuple[int, str, str]], out: Out) -> None:
    """State that a table is missing, as in a file that was cut."""
    keys = {key for _, key, _ in rows}
    if "trace.summary.time_s.Total" not in keys or not any("summary.kernel." in key for key in keys):
        out.issue("cut", "a table of the summary is missing or has no rows")
