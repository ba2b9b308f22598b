"""Rows of dumped stacks: threads in order, frames innermost first, and one event for each process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from forensics.formats.rows.metrics import int64
from forensics.formats.rows.out import Out
from forensics.formats.stacks.sites import Frame
from forensics.io.tolerant_json import dumps

#: Frames of one thread that are kept: the innermost ones; a runaway recursion has a thousand.
MOST_FRAMES = 500
_FLUSH_ROWS = 50_000
_CHARS, _QUOTE_CHARS = 500, 400
_COLUMNS = (*("rank", "pid", "thread", "thread_name", "seq", "depth"), *("function", "file", "line", "kind", "state"))
_EVENT = ("seq", "line", "rank", "level", "code", "text", "attrs")


class Thread(Struct):
    """One thread as dumped; `frames` and `kinds` are innermost first when it is closed."""

    thread: str
    name: str = ""
    state: str = ""
    pid: int | None = None
    rank: int | None = None
    frames: list[Frame] = field(default_factory=list[Frame])
    kinds: list[str] = field(default_factory=list[str])
    innermost_last: bool = False

    def add(self, frame: Frame, kind: str) -> None:
        """Add the next frame as printed; of a stack that is too deep the innermost frames stay."""
        if len(self.frames) >= MOST_FRAMES:
            if not self.innermost_last:
                return
            del self.frames[0], self.kinds[0]
        self.frames.append(frame)
        self.kinds.append(kind)


class StackRows:
    """Writes threads and notes to the sink, in batches."""

    def __init__(self, out: Out | None = None, batch_rows: int = _FLUSH_ROWS) -> None:
        """Start empty; rows are handed over when `batch_rows` wait, at most 50,000 and those of one thread.

        Without a sink, threads and notes are only counted.
        """
        self._out = out
        self._rows = min(batch_rows, _FLUSH_ROWS)
        self.noted = 0
        self._columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        self._events: dict[str, list[Any]] = {name: [] for name in _EVENT}
        self.threads = 0

    def add(self, thread: Thread) -> None:
        """Add one thread; one without a frame is counted and gives no row."""
        seq, self.threads = self.threads, self.threads + 1
        step = -1 if thread.innermost_last else 1
        for depth, (frame, kind) in enumerate(zip(thread.frames[::step], thread.kinds[::step], strict=True)):
            cells = (
                *(thread.rank, thread.pid, thread.thread or None, thread.name or None, seq, depth),
                *(_shown(frame.function), _shown(frame.file) or None, frame.line, kind, thread.state or None),
            )
            for name, cell in zip(_COLUMNS, cells, strict=True):
                self._columns[name].append(cell)
        if len(self._columns["seq"]) >= self._rows:
            self._flush()

    def note(self, code: str, text: str, *, line: int | None, rank: int | None, attrs: dict[str, object]) -> None:
        """Add one event."""
        said = {"role": "context"} | {k: str(v)[:_CHARS] for k, v in attrs.items() if v not in (None, "")}
        shown = _shown(text)[:_QUOTE_CHARS]
        cells = (self.noted, line, rank, "info", code, shown, dumps(said, compact=True).decode())
        for name, cell in zip(_EVENT, cells, strict=True):
            self._events[name].append(cell)
        self.noted += 1
        if len(self._events["seq"]) >= self._rows:
            self._flush()

    def _flush(self) -> None:
        for table, columns in (("stack_frames", self._columns), ("events", self._events)):
            if columns["seq"] and self._out is not None:
                self._out.rows(table, columns)
        self._columns = {name: [] for name in _COLUMNS}
        self._events = {name: [] for name in _EVENT}

    def close(self) -> None:
        """Write what is left."""
        self._flush()


def _shown(text: str) -> str:
    return text[:_CHARS].encode("utf-8", "replace").decode()


def whole(text: str | None) -> int | None:
    """A decimal number of 64 bits, else None."""
    return int64(int(text)) if text and text.isascii() and text.isdigit() and len(text) < 20 else None


#: Options of a command line that say the rank of its process, by what they say.
_RANK_OPTIONS = {
    **dict.fromkeys(("--local-rank", "--local_rank"), "local_rank"),
    **dict.fromkeys(("--rank", "--global-rank", "--global_rank", "--process-id", "--process_id"), "rank"),
}


def process_attrs(command: Sequence[str] | str) -> dict[str, object]:
    """What a command line says of its process: its rank, and the local one that torch's launcher puts there."""
    words = command.split() if isinstance(command, str) else list(command)
    attrs: dict[str, object] = {"command": " ".join(words)}
    for word, after in zip(words, [*words[1:], ""], strict=True):
        flag, equals, value = word.partition("=")
        said = value if equals else after
        if flag in _RANK_OPTIONS and said.isdigit() and len(said) < 7:
            attrs[_RANK_OPTIONS[flag]] = said
    return attrs
