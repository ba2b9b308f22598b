"""Captures of `/proc/<pid>/status`: what the kernel said that a process was doing, with its wait channel.

Each process gives one event: state (R runs, S sleeps, D cannot be interrupted, T is stopped, Z is dead and not yet
collected), pid, threads, resident memory, and the kernel function it waits in where `wchan` was captured too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.text import lines_of, settle
from forensics.formats.stacks._rows import StackRows

_HEAD_BYTES = 8 << 10
_FIELD = lazily(r"^(?P<key>[A-Za-z][A-Za-z0-9_]{1,40}):\s*(?P<value>.{0,400})$")
_STATE = lazily(rb"^State:\s+[A-Za-z]\b", re.MULTILINE)
_PID = lazily(rb"^(?:Pid|Tgid|VmRSS|wchan|Threads):\s", re.MULTILINE)
_LOCAL = lazily(rb"^(?:JobId|JobID|Job ID)\b", re.MULTILINE)
_KEPT = {"Name": "name", "Pid": "pid", "Threads": "threads", "wchan": "wchan", "SigQ": "sigq", "PPid": "ppid"}


@ingester(
    "proc_state",
    version=1,
    sniff=Sniff(glob=("*proc*", "*status*", "*.state", "*wchan*"), magic=(b"Name:\t",)),
    emits=("events",),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one capture, of one process or of several.

    Raises `NotMine` when no process state is in its first lines.
    """
    head = opened.text_head(_HEAD_BYTES)
    if _STATE.search(head) is None or _PID.search(head) is None or _LOCAL.search(head) is not None:
        raise NotMine("no process state")
    rows = StackRows(out, limits.batch_rows)
    count = lost_bytes = lost_lines = 0
    cells: dict[str, str] = {}
    begin = 1
    for line in lines_of(opened):
        text = line.text.decode("utf-8", "replace")
        found = _FIELD.match(text)
        if found is None:
            lost_bytes += len(line.text) if text.strip() else 0
            lost_lines += bool(text.strip())
            continue
        if found["key"] in cells and found["key"] in ("Name", "State", "Pid"):
            count += _write(rows, cells, begin, opened.source.rank)
            cells = {}
        begin = begin if cells else line.number
        cells[found["key"]] = found["value"].strip()
    count += _write(rows, cells, begin, opened.source.rank)
    rows.close()
    out.format("process state")
    if lost_lines:
        out.issue("strange-line", "lines that are no field of a process", count=lost_lines)
    settle(opened, out, records=count, lost_bytes=lost_bytes, reason="lines that are no field of a process")


def _write(rows: StackRows, cells: Mapping[str, str], line: int, rank: int | None) -> int:
    """Write the event of one process; 0 where its state is missing."""
    state = cells.get("State", "")
    if not state:
        return 0
    attrs: dict[str, object] = {"state": state[:1], **dict(_known(cells))}
    said = f"process {cells.get('Pid', '?')}: {state}" + (f", in {cells['wchan']}" if cells.get("wchan") else "")
    rows.note("proc-state", said, line=line, rank=rank, attrs=attrs)
    return 1


def _known(cells: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key, name in _KEPT.items():
        if cells.get(key):
            yield name, cells[key]
    resident = cells.get("VmRSS", "").split()
    if resident and resident[0].isdigit() and len(resident[0]) < 16:
        yield "rss_bytes", str(int(resident[0]) << 10)
