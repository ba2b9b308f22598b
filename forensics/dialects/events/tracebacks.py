"""Python tracebacks as one event each: the exception, its message, the innermost frame.

After the frames the first line without indentation is the exception, whatever its name. Lines of other ranks between
those of a traceback are passed over; a chain (`During handling of …`, `direct cause`) is one event whose `exc` is the
last exception and whose `root_exc` is the first; where the last only repeats the first, as a pool of processes does,
the frames are those of the first, which met the error. A message of several lines belongs to its exception (`more` is
what follows its first one), and an exception that it quotes (a compiler's or a worker's wrapper) is the inner one:
`root_exc` too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice, pairwise
from typing import Any

import orjson
import polars as pl
from msgspec import Struct, field

from forensics.dialects import _lines, prefixes
from forensics.dialects.events.last_words import message_of
from forensics.dialects.events.signatures import SOURCE
from forensics.knowledge.libraries import is_library, is_library_frame
from forensics.knowledge.vocabulary import stands_for, words_for
from forensics.patterns import compiled, lazily

#: Tracebacks of one file that are assembled; further ones are counted.
MOST = 500
#: So many bytes are looked at from the begin of one on.
WINDOW_BYTES = 64 << 10
HEAD = "Traceback (most recent call last)"
#: Anomaly detection prints the frames of a forward call; no exception follows them.
FORWARD = "Traceback of forward call"
#: Where faulthandler begins; the stack of the thread that died follows, its innermost call first.
FATAL = "Fatal Python error: "
#: Where faulthandler.dump_traceback_later begins; the stacks of all threads follow, that of the main one last.
LATE = "Timeout ("
_HEAD = lazily("|".join(map(_lines.literal, (HEAD, FORWARD, FATAL, LATE))))
_LATE = lazily(r"Timeout \([\d:.]{4,20}\)!")
_OF_THREAD = lazily(r"(?:Current thread|Thread) 0x[^\n]*\(most recent call first\):")
_DIED = lazily(
    r'Current thread [^\n]*\(most recent call first\):((?:\s*\n\s*File "[^"\n]{1,500}", line \d+ in [^\n]{1,200})+)'
)
_CALL = lazily(r'File "(?P<file>[^"\n]+)", line (?P<line>\d+) in (?P<function>[^\n]+)')
_FRAME = lazily(r'File "(?P<file>[^"]{1,500})", line (?P<line>\d{1,9}), in (?P<function>.{1,200})')
_RICH = lazily(r"^[│|] (?P<file>\S{1,500}\.py):(?P<line>\d{1,9}) in (?P<function>\S{1,200})")
#: Frames of a notebook, in three generations of IPython (core/ultratb.py), and as Colab links them. Where the first
#: line names no number, the arrow below it does, and it and Rich's show the statement.
_CELL = lazily(
    r"^(?:File )?\[?(?P<file>(?:[/~<]|[A-Za-z]:[\\/])[^\s\]:(]{1,500}(?:\.py|>))(?:\]\(\S+\))?(?::(?P<line>\d{1,9}),)?"
    r" in (?P<function><cell line: \d+>|[\w<>.]{1,200})"
)
_INPUT = lazily(r"^(?P<file>Cell In ?\[\d{1,6}\]), line (?P<line>\d{1,9})(?P<function>)$")
_ARROW = lazily(r"^(?:-+>|[│|] +❱) ?(?P<line>\d{1,9})(?: │)? +(?P<code>.*?)[ │|]*$")
#: Names that are exceptions wherever they occur, also where frames are missing.
_KNOWN = lazily(
    r"^(?P<exc>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Warning|Failure|Unsupported|Timeout|Iteration"
    r"|Expired|Died|Canceled|Cancelled|Group)|(?:[a-z_]\w*\.)+[A-Z]\w*|KeyboardInterrupt|SystemExit|[A-Z]\w*Err)"
    r"(?:: ?(?P<message>.*))?$"
)
#: After frames: any name of a class, with the one that a wrapper puts in brackets behind its own. One plain word in
#: small letters is a program (`srun: error: …`), in capitals a level (`INFO: …`); without a message it is one of a
#: shell's (`Killed`).
_NAMED = lazily(
    r"^(?P<exc>(?:(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*|[A-Z]\w*[a-z]\w*(?=[(:])|[A-Z]\w*[a-z]\w*[A-Z]\w*|[a-z]+_\w+(?=:))"
    r"(?:\([\w.]+\))?)(?:: ?(?P<message>.*))?$"
)
#: Words of the line before a head: the interpreter or the logger goes on as if nothing had happened.
_IGNORED = lazily(rb"Exception ignored (?:in|on|while)|--- Logging error ---")
#: Words of the line before a head: not the program's own course, but something beside it.
#: TorchScript's own stack, which is a part of the message above it (PyTorch 1.3, torch/csrc/jit).
_SCRIPTED = lazily(rb"^The above operation failed in interpreter\b")
_ASIDE = lazily(rb"Exception in thread|Error in atexit|exception was never retrieved|Exception in Tkinter")
#: The outermost frame of a thread, where other lines are between its announcement and the head.
_THREAD = lazily(r'File "[^"]*threading\.py", line \d+, in _bootstrap')
#: Whose traceback it is, where all ranks print that of the one that failed (torch.distributed.checkpoint).
_WHOSE = lazily(r"Traceback \(most recent call last\): \(RANK (?P<rank>\d{1,7})\)")
_HANDLING = "During handling of the above exception"
_CHAIN = (_HANDLING, "The above exception was the direct cause")
#: Words that a launcher or a bar left before a head: the rank directly before it speaks.
_SPEAKER = lazily(r"\[(?:[Rr]ank|RANK)[ _:]?(?P<rank>\d{1,7})\][: ] ?$")
#: Functions that enter a program: what reaches them ends it, however it is printed.
_OUTERMOST, _CELLS = "<module>", "<cell line: "
_ENTRIES = frozenset((_OUTERMOST, "main", "_main"))
#: Folders of code that is not the program's own.
#: The number of no line: the first line is 0, and a missing head comes before it.
_BEFORE = -2
#: A message is over after so many lines.
_MESSAGE_LINES = 12
#: So many innermost frames tell what a process waited in.
_STACK = 24
#: Of the statement that raised it so much is kept; a longer one goes on in lines that a traceback does not show.
_STATEMENT = 200
#: Of the lines that a message goes on with, so much of their begin and of their end: a long one ends with its remedy.
_MORE = 400
#: A message that is a traceback, as `repr` shows it: what a process raised of the text of another one's.
_QUOTED = lazily(r"""^[\w.]+: (?P<mark>['"])Traceback \(most recent call last\):\\n(?P<lines>.*)(?P=mark)\s*$""")
#: So many lines and bytes before a head may say what the program itself thinks of the error.
_ABOVE, _ABOVE_BYTES = 8, 4096
#: Words of a sentence; so much of an exception's message in it, and it only repeats that.
_WORDS, _ECHO = 3, 40
_ANSI = lazily(_lines.ANSI)
#: A message that is one literal, as that of every KeyError, has no line more.
_LITERAL = lazily(r"""^(?P<mark>['"])(?:(?!(?P=mark)).)*(?P=mark)$""")
_BREAK, _NUMBER = lazily("[\n\r\x08]"), lazily(r"\d+")


class Traceback(Struct):
    """What was read so far; `deep` is the indent of the last frame."""

    exc: str = ""
    message: str = ""
    file: str = ""
    line: str = ""
    function: str = ""
    statement: str = ""
    frames: int = 0
    at: int = 0
    text: str = ""
    rank: int | None = None
    root: tuple[str, str, str] | None = None
    root_stack: list[str] = field(default_factory=list[str])
    root_statement: str = ""
    root_at: int = 0
    more: list[str] = field(default_factory=list[str])
    whole: bool = False
    read: int = 0
    ended: bool = False
    quotes: bool = False
    handling: bool = False
    chain: bool = False
    deep: int = 0
    outer: str = ""
    logged: bool = False
    stack: list[str] = field(default_factory=list[str])

    @property
    def frame(self) -> str:
        """The innermost frame so far: file, line and function."""
        return f"{self.file}:{self.line} in {self.function}" if self.file else ""

    @property
    def own_frame(self) -> str:
        """The innermost frame of the program's own code, where there is one."""
        return next((one for one in reversed(self.stack) if not is_library_frame(one)), self.frame)

    @property
    def caught(self) -> bool:
        """Whether a function printed it, of the program or by a logger: one that nobody catches begins at the entry."""
        file, _, function = self.outer.rpartition(" in ")
        begins = function in _ENTRIES or function.startswith(_CELLS)
        return bool(file) and not begins and (self.logged or not is_library(file))

    def attrs(self) -> dict[str, str]:
        """As the strings of an event."""
        repeats = self.root is not None and self.root[:2] == (self.exc, self.message) and self.root_stack
        root = self.root if self.root and self.root[:2] != (self.exc, self.message) else None
        stack, statement = (self.root_stack, self.root_statement) if repeats else (self.stack, self.statement)
        said = {
            "exc": self.exc,
            "message": self.message[:1000],
            "more": ends_of(self.more),
            "frame": self.root[2] if self.root and repeats else self.frame,
            "frames": str(self.frames),
            "statement": statement[:_STATEMENT],
            "stack": _innermost(stack),
            "root_exc": root[0] if root else "",
            "root_message": root[1][:1000] if root else "",
            "root_frame": root[2] if root else "",
            "root_stack": _innermost(self.root_stack) if root else "",
            "root_statement": self.root_statement[:_STATEMENT] if root else "",
            "handling": "yes" if root and self.handling else "",
            "caught": "yes" if self.caught else "",
        }
        return {key: value.encode("utf-8", "replace").decode() for key, value in said.items() if value}


def _innermost(stack: Sequence[str]) -> str:
    calls = [call.encode("utf-8", "replace").decode() for call in stack[: -_STACK - 1 : -1]]
    return orjson.dumps(calls).decode() if len(calls) > 1 else ""


def _body(line: str, lead: prefixes.Lead | None, words: re.Pattern[str]) -> tuple[str, int | None, int]:
    """A line without its prefixes and the `words` of the head behind them; its rank, and how long those words are."""
    prefix, rank = prefixes.split(line, lead)
    begin = words.match(line, len(prefix))
    end = begin.end() if begin is not None else len(prefix)
    return line[end:], rank, end - len(prefix)


def read(head: str, lines: Sequence[str], lead: prefixes.Lead | None = None) -> Traceback:
    """Read the traceback that begins with the line `head`; `lines` follow it, without line ends.

    `lead`: what a carrier of the log put before each line. A logger's words before the head come again before the
    lines, with other numbers.
    """
    prefix, rank = prefixes.split(head, lead)
    before = head[len(prefix) : head.find(HEAD, len(prefix))]
    indent = len(before) - len(before.lstrip()) if not before.strip() else 0
    if rank is None and (glued := _SPEAKER.search(before)) is not None:
        before, rank = "", int(glued["rank"])
    found, forward = Traceback(rank=rank), FORWARD in head
    words = re.compile(_NUMBER.sub(r"\\d+", re.escape(before)) if before.strip() else "")
    for number, line in enumerate(lines, start=1):
        rest, speaker, worded = _body(_ANSI.sub("", line), lead, words)
        found.logged = found.logged or worded > 0
        if rank is not None and speaker != rank:
            continue
        if forward and not rest.startswith("  "):
            break
        if _take(found, rest[min(indent, len(rest) - len(rest.lstrip())) :], number, _ANSI.sub("", line)):
            break
    return found


def _take(found: Traceback, rest: str, number: int, raw: str) -> bool:
    """Account for one line; True when the traceback is over."""
    if (frame := _frame(rest)) is not None:
        found.frames += 1
        found.deep = len(rest) - len(rest.lstrip())
        found.file, found.line = frame["file"], frame["line"] or ""
        found.function, found.statement = frame["function"].strip(" *") or _OUTERMOST, ""
        found.outer = found.outer or found.frame
        found.stack.append(found.frame)
        found.ended = False
    elif not rest.strip():
        found.whole = found.whole or found.ended
        return False
    elif rest.startswith(_CHAIN):
        found.chain = True
        found.handling = found.handling or rest.startswith(_HANDLING)
        if found.root is None:
            found.root, found.root_statement = (found.exc, found.message, found.frame), found.statement
            found.root_stack, found.root_at = [*found.stack], found.at
    elif rest.startswith("Traceback") and found.ended:
        if not (found.chain or found.quotes):
            return True
        found.chain = found.ended = found.quotes = False
        found.outer = ""
        found.stack.clear()
    elif not found.ended and (last := _exception(found, rest)) is not None:
        found.exc, found.message, found.at, found.text = last["exc"], (last["message"] or "").strip(), number, raw
        found.ended, found.whole = True, _LITERAL.match(found.message) is not None
        found.more.clear()
        _unfold(found)
    elif found.ended and not found.chain:
        return _of_message(found, rest, number)
    elif not found.ended and found.stack:
        _show(found, rest)
    found.read = number
    return False


def _unfold(found: Traceback) -> None:
    """Take the exception and the frames of a traceback that the message quotes; it was raised there."""
    quoted = _QUOTED.match(f"{found.exc}: {found.message}")
    inner = read(HEAD, re.sub(r"\\([\\'])", r"\1", quoted["lines"]).split("\\n")) if quoted is not None else Traceback()
    if inner.exc:
        found.exc, found.message, found.statement, found.stack = inner.exc, inner.message, inner.statement, inner.stack
        found.file, found.line, found.function = inner.file, inner.line, inner.function


def _frame(rest: str) -> re.Match[str] | None:
    return (
        (_FRAME.search(rest) if _QUOTED.match(rest) is None else None)
        or _RICH.match(rest)
        or _CELL.match(rest)
        or _INPUT.match(rest)
    )


def _show(found: Traceback, rest: str) -> None:
    """Take the statement of the frame above from a line: the first one behind it, or the one that an arrow marks."""
    if (arrow := _ARROW.match(rest)) is not None:
        found.line, found.statement = arrow["line"], arrow["code"]
        found.stack[-1] = found.frame
    elif rest[0].isspace() and rest.strip(" ^~"):
        found.statement = found.statement or rest.strip()


def _exception(found: Traceback, rest: str) -> re.Match[str] | None:
    """Match an exception's line; once a known one was read, frames that its message shows lead to no other name.

    Of an exception that quotes a traceback (Keras, `in user code:`) the inner one is as deep as its frames.
    """
    inner = rest.lstrip()
    if found.message.endswith(":") and found.exc and len(rest) - len(inner) <= found.deep:
        rest = inner
    return _KNOWN.match(rest) or (_NAMED.match(rest) if found.frames and not _KNOWN.match(found.exc) else None)


def _of_message(found: Traceback, rest: str, number: int) -> bool:
    """Account for a line behind an exception; True when it is no line of its message any more."""
    if number > found.at + _MESSAGE_LINES:
        return True
    if not found.message:
        found.message = rest.strip() if found.text.rstrip().endswith(":") else ""
    elif found.root is None and (quoted := _KNOWN.match(rest.lstrip())) is not None and found.message.endswith(":"):
        found.root = (quoted["exc"], (quoted["message"] or "").strip(), found.frame)
    found.quotes = rest.rstrip().endswith(":")
    found.whole = found.whole or stands_for("line_of_another_writer", rest)
    if not found.whole:
        found.more.append(rest.strip())
    found.read = number
    return False


def ends_of(more: Sequence[str]) -> str:
    """The lines that a message goes on with, without the middle of many."""
    text = "\n".join(more)
    return text if len(text) <= 2 * _MORE else f"{text[:_MORE]}\n…\n{text[-_MORE:]}"


def goes_on(rest: str) -> bool:
    """Whether a line without its prefixes may be one of the message of the exception above it."""
    return (
        not rest.startswith((*_CHAIN, "Traceback"))
        and _frame(rest) is None
        and not stands_for("line_of_another_writer", rest)
    )


def plain(data: bytes) -> str:
    """Bytes as text without ANSI sequences."""
    return _ANSI.sub("", data.decode("utf-8", "replace"))


def _said_above(found: Traceback, above: bytes, lead: prefixes.Lead | None) -> dict[str, str]:
    """The nearest line before a traceback that the program logged as an error, and how far above it stands.

    What only announces the traceback, or says the words of its exception, says no more than that does.
    """
    for far, line in enumerate(reversed(plain(above).splitlines()[-_ABOVE:]), start=1):
        rest = line[len(prefixes.split(line, lead)[0]) :]
        if _frame(rest) is not None or rest.startswith("Traceback"):
            return {}
        hit = compiled(words_for("level_of_an_error")).search(line)
        said = message_of(line[hit.end() :]) if hit is not None else ""
        if len(said.split()) >= _WORDS and not stands_for("announces_an_error", said):
            echoes = found.message and found.message[:_ECHO] in said
            return {} if echoes else {"said": said[: 2 * _MORE], "said_above": str(far)}
    return {}


class _Open(Struct):
    """A traceback whose lines may go on in the next block."""

    row: dict[str, Any]
    window: bytes
    above: bytes


class Assembler:
    """Tracebacks over the blocks of one file; looks only at the lines after a head."""

    def __init__(
        self, *, most: int, window_bytes: int, lines: int, quote_chars: int, lead: prefixes.Lead | None = None
    ) -> None:
        """At most `most` events, each from at most `window_bytes` bytes and `lines` lines after its head."""
        self._lead = lead
        self._most, self._bytes, self._lines, self._chars = most, window_bytes, lines, quote_chars
        self._open: list[_Open] = []
        self._read_to: dict[int | None, int] = {}
        self.count = self.left_out = 0

    def go_on(self, data: bytes) -> list[dict[str, Any]]:
        """Go on with what earlier blocks left open; gives what is whole now."""
        events: list[dict[str, Any]] = []
        waiting, self._open = self._open, []
        for one in waiting:
            one.window += data[: self._bytes - len(one.window)]
            if data and len(one.window) < self._bytes:
                self._open.append(one)
            else:
                events += self._event(one.row, one.window, one.above)
        return events

    def close(self) -> list[dict[str, Any]]:
        """Finish what is still open."""
        return self.go_on(b"")

    def feed(self, found: pl.DataFrame, data: bytes, offset: int) -> list[dict[str, Any]]:
        """Events of the heads among `found` (columns seq, line, byte, text, raw, rank), lines of the block `data`."""
        heads = _lines.holding(found, _HEAD)
        heads = heads.filter(~heads["text"].str.contains(SOURCE)) if heads.height else heads
        events: list[dict[str, Any]] = []
        free = max(0, self._most - self.count - len(self._open))
        self.left_out += max(0, heads.height - free)
        for row in heads.head(free).iter_rows(named=True):
            start = row["byte"] - offset
            above = data[max(0, start - _ABOVE_BYTES) : start].rstrip(b"\r\n")
            window = data[start : start + self._bytes]
            if start + self._bytes > len(data):
                self._open.append(_Open(row, window, above))
            else:
                events += self._event(row, window, above)
        return events

    def headless(self, row: dict[str, Any], window: bytes) -> list[dict[str, Any]]:
        """The event of frames without a head, where an exception ends them; `row` is the line before them."""
        return [event for event in self._event(row, window, b"") if "exc" in orjson.loads(event["attrs"])]

    def has_read(self, seq: int) -> bool:
        """Whether a segment is part of a traceback that was read."""
        return seq <= max(self._read_to.values(), default=_BEFORE)

    def _event(self, row: dict[str, Any], window: bytes, above: bytes) -> list[dict[str, Any]]:
        before = above.rsplit(b"\n", 1)[-1][-400:]
        quoted = _QUOTED.match(row["raw"][len(prefixes.split(row["raw"], self._lead)[0]) :])
        if row["seq"] <= self._read_to.get(row["rank"], _BEFORE) or quoted or _SCRIPTED.search(before) is not None:
            return []
        if FATAL in row["raw"]:
            return _died_in(row, window.decode("utf-8", "replace"), self._chars)
        if HEAD not in row["raw"] and FORWARD not in row["raw"]:
            return _stood_in(row, window.decode("utf-8", "replace"), self._chars, self._lead)
        self.count += 1
        text = window[: self._bytes].decode("utf-8", "surrogateescape")
        breaks = [found.start() for found in islice(_BREAK.finditer(text), self._lines + 1)]
        lines = [text[a + 1 : b] for a, b in pairwise([*breaks, len(text)])]
        found = read(row["raw"], lines, self._lead)
        rank = found.rank if row["rank"] is None else row["rank"]
        whose = _WHOSE.search(row["raw"])
        if FORWARD in row["raw"]:
            return [_forward_call(row, rank, found, self._chars)]
        self._read_to[rank] = row["seq"] + found.read
        place = {key: row[key] for key in ("seq", "line", "byte")}
        if found.at:
            skipped = text[: breaks[found.at - 1] + 1]
            place = {"seq": row["seq"] + found.at, "line": row["line"] + skipped.count("\n")}
            place |= {"byte": row["byte"] + len(skipped.encode("utf-8", "surrogateescape"))}
        harmless = _IGNORED.search(before) is not None or "failed with: Traceback" in row["raw"]
        attrs = {"role": "benign" if harmless else "root", "shape": "crash", "head_line": str(max(1, row["line"]))}
        if _ASIDE.search(before) is not None or any(map(_THREAD.search, lines[:2])):
            attrs["aside"] = "yes"
        if found.root_at:
            attrs["root_line"] = str(row["line"] + text.count("\n", 0, breaks[found.root_at - 1] + 1))
        attrs |= _said_above(found, above, self._lead)
        said = (found.text or row["raw"]).encode("utf-8", "replace").decode()[: self._chars]
        return [
            {
                **place,
                "stamped": row["raw"][:160],
                "rank": rank if whose is None else int(whose["rank"]),
                "step": None,
                "level": "error",
                "code": "traceback",
                "text": said,
            }
            | {"attrs": orjson.dumps(attrs | found.attrs()).decode()}
        ]


def _died_in(row: dict[str, Any], text: str, chars: int) -> list[dict[str, Any]]:
    """The event of the stack on which the interpreter died, where faulthandler printed it."""
    found = _DIED.search(plain(text.encode()))
    if found is None:
        return []
    return [_native(row, [*map(_called, _CALL.finditer(found[1]))], chars, "native_stack")]


def _stood_in(row: dict[str, Any], text: str, chars: int, lead: prefixes.Lead | None) -> list[dict[str, Any]]:
    """The event of the stack in which the main thread was when faulthandler's time ran out.

    Lines that another rank prints between are not of it.
    """
    if _LATE.search(row["raw"]) is None:
        return []
    stacks: list[list[str]] = []
    for line in text.split("\n")[1:]:
        prefix, rank = prefixes.split(line, lead)
        own = plain(line[len(prefix) :].encode()).strip()
        call = _CALL.search(own)
        if not own or (rank is not None and rank != row["rank"]):
            continue
        if _OF_THREAD.match(own):
            stacks.append([])
        elif call is not None and stacks:
            stacks[-1].append(_called(call))
        elif not own.startswith(("<", "...")):
            break
    runs_script = (stack for stack in stacks if stack and stack[-1].endswith(" in <module>"))
    main = next(runs_script, stacks[-1] if stacks else [])
    return [_native(row, main, chars, "late_stack")] if main else []


def _called(call: re.Match[str]) -> str:
    return f"{call['file']}:{call['line']} in {call['function'].strip()}"


def _native(row: dict[str, Any], stack: list[str], chars: int, code: str) -> dict[str, Any]:
    attrs = {"role": "context", "shape": "crash", "stack": orjson.dumps(stack[:_STACK]).decode()}
    place = {key: row[key] for key in ("seq", "line", "byte", "rank")}
    said = {"stamped": row["raw"][:160], "text": row["raw"][:chars], "attrs": orjson.dumps(attrs).decode()}
    return place | said | {"step": None, "level": "info", "code": code}


def _forward_call(row: dict[str, Any], rank: int | None, found: Traceback, chars: int) -> dict[str, Any]:
    """The event of a forward call whose backward failed: `frame` is the program's own innermost one."""
    attrs = {"role": "context", "shape": "nan", "frame": found.own_frame.encode("utf-8", "replace").decode()}
    place = {key: row[key] for key in ("seq", "line", "byte")}
    said = {"stamped": row["raw"][:160], "text": row["raw"][:chars], "attrs": orjson.dumps(attrs).decode()}
    return place | said | {"rank": rank, "step": None, "level": "info", "code": "forward_call"}
