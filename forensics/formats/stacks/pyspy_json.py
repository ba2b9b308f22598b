"""Stacks as `py-spy dump --json` writes them: a list of threads with their frames, innermost first.

Locals are not kept. A file that was cut gives the threads that are whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from forensics.formats.kit import InputError, Limits, NotMine, Opened, Out, Sniff, ingester
from forensics.formats.rows.json_records import places, records_before_damage
from forensics.formats.rows.metrics import INT64
from forensics.formats.rows.text import document, settle_document
from forensics.formats.stacks._rows import StackRows, Thread, process_attrs
from forensics.formats.stacks.sites import Frame
from forensics.io.tolerant_json import as_list, loads

_HEAD_BYTES = 16 << 10
_KEYS = (b'"os_thread_id"', b'"owns_gil"', b'"thread_name"')


@ingester(
    "pyspy_json",
    version=1,
    sniff=Sniff(glob=("*pyspy*", "*py-spy*", "*py_spy*", "*stack*.json", "*spy*.json", "*dump*.json")),
    emits=("stack_frames", "events"),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one dump; raises `NotMine` when it is no list of threads."""
    head = opened.text_head(_HEAD_BYTES)
    gone = head.strip() == b"[]" and "spy" in opened.source.path.rsplit("/", 1)[-1].lower()
    if not gone and not (head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[") and any(key in head for key in _KEYS)):
        raise NotMine("no list of threads")
    data = document(opened, limits)
    lost, threads = 0, []
    try:
        found = loads(data, limits)
        threads = cast("list[Any]", found) if isinstance(found, list) else []
    except InputError as error:
        threads, good = records_before_damage(data, places(data))
        out.issue("damaged", f"{error.message}; {len(threads)} threads before it were read", byte=good)
        lost = max(len(data) - good, 1)
    rows = StackRows(out, limits.batch_rows)
    seen: set[int] = set()
    for item in threads:
        if isinstance(item, dict):
            _thread(cast("dict[str, Any]", item), rows, opened.source.rank, seen)
    rows.close()
    out.format("py-spy (json)")
    settle_document(opened, out, records=rows.threads, lost_bytes=lost)


def _thread(item: Mapping[str, Any], rows: StackRows, rank: int | None, seen: set[int]) -> None:
    pid = _whole(item.get("pid"))
    number = _whole(item.get("os_thread_id")) or _whole(item.get("thread_id"))
    state = "gil" if item.get("owns_gil") is True else "active" if item.get("active") is True else "idle"
    thread = Thread(str(number or ""), _text(item.get("thread_name")), state, pid, rank)
    for cell in as_list(item.get("frames")):
        if isinstance(cell, dict):
            thread.add(*_frame(cast("dict[str, object]", cell)))
    rows.add(thread)
    about = item.get("process_info")
    if pid is not None and pid not in seen and len(seen) < 1000 and isinstance(about, dict):
        command = _text(cast("dict[str, object]", about).get("command_line"))
        attrs: dict[str, object] = {"pid": pid, **process_attrs(command)}
        rows.note("stack-process", f"Process {pid}: {command}", line=None, rank=rank, attrs=attrs)
        seen.add(pid)


def _frame(cell: Mapping[str, object]) -> tuple[Frame, str]:
    file, line = _text(cell.get("filename")) or _text(cell.get("short_filename")), _whole(cell.get("line"))
    python = file.endswith((".py", ".pyx")) or file.startswith("<")
    return Frame(_text(cell.get("name")), file, line or None), "python" if python else "native"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value in INT64 else None
