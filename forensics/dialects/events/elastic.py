"""Failure blocks of torchrun and the stack of a failed collective: records of several lines, one event each.

An agent prints a block for each worker that failed, with its global and local rank, exit code, signal, process id, host
and a time in whole seconds; the one that it saw first is under `Root Cause`. A worker that ended with 0 has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import orjson
import polars as pl

from forensics.dialects import prefixes
from forensics.dialects._lines import ANSI, holding
from forensics.knowledge.libraries import is_library
from forensics.patterns import lazily

BLOCK = r"^\W*rank\s*: \d{1,7} \(local_rank: \d+\)"
#: The code of a failure block.
FAILURE = "elastic-failure"
STACK = "Stack trace of the failed collective"
#: One of these is in every line that `records` looks for.
NEEDLES = (" (local_rank: ", STACK)
_HEADS = lazily(f"{BLOCK}|{STACK}")
_RANK = lazily(r"^\W*rank\s*: (?P<rank>\d{1,7}) \(local_rank: (?P<local_rank>\d{1,7})\)")
_FIELD = lazily(r"^\W*(?P<key>time|host|exitcode|error_file|traceback)\s*: (?P<value>.*)$")
_EXIT = lazily(r"^(?P<exitcode>-?\d{1,9}) \(pid: (?P<pid>\d{1,10})\)(?:\s+\((?P<signal>SIG\w+)\))?")
_SIGNAL = lazily(r"Signal (?P<number>\d+) \((?P<signal>SIG\w+)\) received by PID")
_END = lazily(r"^\W*(?:\[\d{1,6}\]:|-{10,}|={10,}|Root Cause)")
_FRAME = lazily(r"^#(?P<number>\d{1,3}) (?P<function>.{1,200}?) from (?P<file>\S{1,300}):(?P<line>\d{1,9})$")
_ANSI = lazily(ANSI)
_MOST = 20_000
_BEFORE_BYTES, _AFTER_BYTES, _AFTER_LINES, _FRAMES = 1_000, 4_000, 12, 40
_CHARS = 300


def records(
    found: pl.DataFrame, data: bytes, offset: int, chars: int, lead: prefixes.Lead | None = None
) -> list[dict[str, Any]]:
    """Events of the blocks whose line of the rank is among the suspects `found` of the block `data`."""
    rows = holding(found, _HEADS).head(_MOST).iter_rows(named=True)
    return [event for row in rows for event in _event(row, data, row["byte"] - offset, chars, lead)]


def _event(
    row: dict[str, Any], data: bytes, begin: int, chars: int, lead: prefixes.Lead | None
) -> Iterator[dict[str, Any]]:
    after = _lines(data[begin : begin + _AFTER_BYTES], lead)[1:]
    if STACK in row["text"]:
        attrs = _frames(after)
        if attrs:
            yield _row("collective-stack", row, attrs, row["raw"][:chars], row["rank"])
        return
    head = _RANK.match(row["text"])
    if head is None:
        return
    before = _lines(data[max(0, begin - _BEFORE_BYTES) : begin].rstrip(b"\r\n"), lead)
    attrs = {**head.groupdict(), **_above(before), **_below(after[:_AFTER_LINES])}
    ended = " ".join(attrs[name] for name in ("exitcode", "signal") if name in attrs)
    text = f"rank {attrs['rank']} (local_rank {attrs['local_rank']}) failed: exitcode {ended or '?'}"
    stamped = attrs.get("time", "").replace("_", " ")
    yield _row(FAILURE, row, attrs, text[:chars], int(attrs["rank"])) | {"stamped": stamped}


def _row(code: str, row: dict[str, Any], attrs: dict[str, str], text: str, rank: int | None) -> dict[str, Any]:
    said = {"role": "context", **{k: v.encode("utf-8", "replace").decode() for k, v in attrs.items() if v}}
    place = {name: row[name] for name in ("seq", "line", "byte")}
    named = {"rank": rank, "step": None, "level": "info", "code": code, "text": text}
    return {**place, **named, "attrs": orjson.dumps(said).decode(), "stamped": row["raw"][:160]}


def _lines(data: bytes, lead: prefixes.Lead | None) -> list[str]:
    """Lines that are not blank, without colours and without the prefixes of launchers."""
    text = _ANSI.sub("", data.decode("utf-8", "replace"))
    lines = (line for line in re.split(r"[\n\r\x08]", text) if line.strip())
    return [line[len(prefixes.split(line, lead)[0]) :] for line in lines]


def _above(lines: Sequence[str]) -> dict[str, str]:
    """Time and host, and whether the block is the one that the agent saw first."""
    attrs: dict[str, str] = {}
    for line in reversed(lines[-6:]):
        if "Root Cause" in line:
            attrs["root_cause"] = "yes"
            break
        if (field := _FIELD.match(line)) is not None and field["key"] in ("time", "host"):
            attrs.setdefault(field["key"], field["value"].strip()[:_CHARS])
        elif "-----" in line or "Failures:" in line:
            break
    return attrs


def _below(lines: Sequence[str]) -> dict[str, str]:
    attrs: dict[str, str] = {}
    for line in lines:
        if _END.match(line):
            break
        field = _FIELD.match(line)
        if field is None:
            continue
        value = field["value"].strip()
        if field["key"] == "exitcode" and (code := _EXIT.match(value)) is not None:
            attrs |= {key: text for key, text in code.groupdict().items() if text is not None}
        elif field["key"] == "traceback":
            attrs["traceback"] = value[:_CHARS]
            if (signal := _SIGNAL.search(value)) is not None:
                attrs.setdefault("signal", signal["signal"])
            break
        elif field["key"] == "error_file" and value != "<N/A>":
            attrs["error_file"] = value[:_CHARS]
    return attrs


def _frames(lines: Sequence[str]) -> dict[str, str]:
    """Frames of the call that is stuck, innermost first, and the innermost one of the user's own."""
    frames: list[str] = []
    own = ""
    for line in lines:
        frame = _FRAME.match(line.strip())
        if frame is None or len(frames) >= _FRAMES:
            break
        frames.append(f"{frame['file']}:{frame['line']} {frame['function']}")
        own = own or (frames[-1] if not is_library(frame["file"]) else "")
    return {"site": own or frames[0], "stack": orjson.dumps(frames).decode()} if frames else {}
