"""Stacks of threads as text: py-spy, pystack, faulthandler, gdb's `thread apply all bt`, `/proc/<pid>/stack`.

One file may hold several processes, or the sections of several ranks as the debug server of torch.distributed writes
them; a rank that gave no answer, or whose process py-spy could not find, is an event. Locals and source text are passed
over. A log with stacks among other lines is no dump.
"""

from __future__ import annotations

from msgspec import Struct

from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.text import lines_of, settle
from forensics.formats.stacks._rows import StackRows, Thread, process_attrs, whole
from forensics.formats.stacks.sites import Frame

_MAGICS = (
    *(b"Process ", b"Traceback for thread ", b"=== Rank ", b"PARTIAL DATA: ", b"Thread 0x", b"Current thread 0x"),
    *(b"Thread ", b"[New LWP ", b"Timeout (", b"[<"),
)
_GLOBS = (
    *("*pyspy*", "*py-spy*", "*py_spy*", "*pystack*", "*stack*", "*faulthandler*", "*traceback*", "*backtrace*"),
    *("*gdb*", "*hang*dump*", "*thread*dump*"),
)
#: A process that py-spy could look into, and in which it found no thread.
_NO_THREAD = lazily(rb"Process \d+: [^\n]*\nPython v\d")
_HEAD_BYTES = 64 << 10
#: Share of the first lines that must belong to a dump: what is less is a log with a stack in it.
_LEAST_SHARE = 0.6
_LINE_CHARS = 4_000
_RANK = lazily(r"^=== Rank (?P<rank>\d{1,7}): ")
_PARTIAL = lazily(r"^PARTIAL DATA: \d+/\d+ workers responded")
_ABSENT = lazily(r"^ {2}Rank (?P<rank>\d{1,7}): (?P<why>.*)$")
_FAILED = lazily(r"^Error: (?P<why>.+)$")
_PROCESS = lazily(r"^(?:Parent )?Process (?P<pid>\d{1,10})(?:: ?(?P<command>.*))?$")
_PYSPY = lazily(
    r"^Thread (?P<thread>0[xX][0-9A-Fa-f]+|\d+) \((?P<state>(?:idle|active)(?:\+gil)?)\)(?:: \"(?P<name>.*)\")?$"
)
_PYSTACK = lazily(
    r"^Traceback for thread (?P<thread>\d+)(?: \((?P<name>[^)]*)\))? \[(?P<flags>[^\]]*)\] \(most recent call last\):"
)
_FAULT = lazily(
    r"^(?P<current>Current thread|Thread) (?P<thread>0x[0-9a-fA-F]+)(?: \[(?P<name>[^\]]*)\])? "
    r"\(most recent call first\):"
)
_GDB = lazily(
    r"^Thread (?P<number>\d+) \((?:Thread (?P<thread>0x[0-9a-fA-F]+) )?\(?LWP (?P<lwp>\d+)\)?"
    r"(?: \"(?P<name>[^\"]*)\")?\)(?: \(Exiting\))?:"
)
_PYSPY_FRAME = lazily(r"^ {4}(?P<function>\S.*?) \((?P<where>[^()]*(?:\([^()]*\)[^()]*)*)\)$")
_PYSTACK_FRAME = lazily(
    r"^ {4}\((?P<kind>Python|C|Other)\) File \"(?P<file>[^\"]*)\", line (?P<line>\d+), in (?P<function>.*?)"
    r"(?: \(inlined\))?(?: \((?P<lib>/[^()]*)\))?$"
)
_FAULT_FRAME = lazily(r"^ {2}File \"(?P<file>[^\"]*)\", line (?P<line>\d+|\?+)(?:,)? in (?P<function>.*)$")
_GDB_FRAME = lazily(r"^#(?P<number>\d+) +(?:0x[0-9a-fA-F]+ in )?(?P<function>\S.*?)(?: \((?P<rest>.*))?$")
_GDB_PLACE = lazily(r"\) at (?P<file>\S+?):(?P<line>\d+)$|\) from (?P<lib>\S+)$")
_KERNEL = lazily(r"^\[<[0-9a-fA-F]+>\] (?P<function>[\w.]+)(?:\+0x[0-9a-f]+/0x[0-9a-f]+)?(?: \[(?P<lib>\w+)\])?$")
#: Lines of a dump that say nothing of a thread.
_BESIDE = lazily(
    r"^(?:Python v\d|Fatal Python error: |Python runtime state: |Timeout \([\d:.]+\)!$|Extension modules: "
    r"|\[New LWP \d|\[Thread debugging|Using host libthread_db|\[Inferior |Detaching from |Attaching to "
    r"|warning: |Download failed: |Using executable found|Core file information:|\s*state: |Reading symbols"
    r"|process \d+ is executing|\[Switching to thread|=+$|-+$|\s+(?:<no Python frame>|<invalid frame>|\.\.\.|<.*>)$)"
)
_PY_FILE = lazily(r"\.pyx?$|^<")


#: The process in the name of a dump that says no other: `7003.txt`, `stack-7003.log`.
_NAMED = lazily(r"(?:^|[._-])(?:pid[._-]?)?(\d{2,10})(?:\.[a-z]+)*$")


@ingester("stack_dump", version=3, sniff=Sniff(glob=_GLOBS, magic=_MAGICS), emits=("stack_frames", "events"))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one dump; raises `NotMine` when no thread is in its first lines, or most of them are others."""
    name = opened.source.path.rsplit("/", 1)[-1].lower()
    if not _is_dump(opened.text_head(_HEAD_BYTES), name):
        raise NotMine("no stacks")
    rows = StackRows(out, limits.batch_rows)
    named = _NAMED.search(name) if opened.source.rank is None else None
    reader = Reader(rows, rank=opened.source.rank, _pid=whole(named[1]) if named is not None else None)
    lost_bytes = lost_lines = 0
    first: int | None = None
    for line in lines_of(opened):
        if not reader.feed(line.text.decode("utf-8", "replace"), line.number):
            lost_bytes += len(line.text)
            lost_lines += 1
            first = line.number if first is None else first
    reader.close()
    rows.close()
    out.format("+".join(sorted(reader.tools or {})) or "no process")
    if lost_lines:
        out.issue("strange-line", "lines that belong to no stack", line=first, count=lost_lines)
    settle(opened, out, records=rows.threads, lost_bytes=lost_bytes, reason="lines that belong to no stack")


def _is_dump(head: bytes, name: str) -> bool:
    reader = Reader(StackRows())
    for number, line in enumerate(head.splitlines(), start=1):
        reader.feed(line.decode("utf-8", "replace"), number)
    if reader.failed:
        return "spy" in name or b"py_spy::" in head
    return bool(reader.tools or _NO_THREAD.match(head)) and reader.known >= _LEAST_SHARE * (
        reader.known + reader.strange
    )


# Lines of stack dumps: what each says, in the words of py-spy, pystack, faulthandler, gdb and the kernel.


class Reader(Struct):
    """Reads lines in order; `known` and `strange` count those that belong to a dump and those that do not."""

    rows: StackRows
    rank: int | None = None
    known: int = 0
    strange: int = 0
    tools: dict[str, int] | None = None
    failed: bool = False
    _pid: int | None = None
    _open: Thread | None = None
    _partial: bool = False
    #: Whether the rank is that of a command line, and no file's or section's.
    _told: bool = False

    def feed(self, text: str, number: int) -> bool:
        """Read one line (without its end); whether it belongs to a dump, which no line with a zero byte does."""
        line = text[:_LINE_CHARS].rstrip()
        if not line:
            return True
        known = "\0" not in line and (
            self.failed
            or self._failure(line, number)
            or self._header(line, number)
            or self._thread(line)
            or self._frame(line)
        )
        known = known or _BESIDE.match(line) is not None
        self.known += known
        self.strange += not known
        return known

    def close(self) -> None:
        """Finish the last thread."""
        if self._open is not None:
            self.rows.add(self._open)
        self._open = None

    def _begin(self, tool: str, thread: Thread) -> bool:
        self.close()
        thread.pid, thread.rank = self._pid, self.rank
        self._open, self._partial = thread, False
        self.tools = self.tools or {}
        self.tools[tool] = self.tools.get(tool, 0) + 1
        return True

    def _failure(self, line: str, number: int) -> bool:
        """The tool found no process to look at: it says why, and then prints a stack of its own."""
        found = _FAILED.match(line) if self.known + self.strange == 0 else None
        if found is None:
            return False
        attrs: dict[str, object] = {"why": found["why"]}
        self.rows.note("stack-no-answer", line, line=number, rank=self.rank, attrs=attrs)
        self.failed = True
        return True

    def _header(self, line: str, number: int) -> bool:
        if (found := _RANK.match(line)) is not None:
            self.close()
            self.rank, self._pid, self._partial, self._told = int(found["rank"]), None, False, False
        elif _PARTIAL.match(line) is not None:
            self._partial = True
        elif self._partial and (found := _ABSENT.match(line)) is not None:
            attrs: dict[str, object] = {"why": found["why"]}
            self.rows.note("stack-no-answer", line.strip(), line=number, rank=int(found["rank"]), attrs=attrs)
        elif (found := _PROCESS.match(line)) is not None:
            self.close()
            self._pid = whole(found["pid"])
            attrs = {"pid": found["pid"], **process_attrs(found["command"] or "")}
            self.rank = whole(str(attrs.get("rank", ""))) if self.rank is None or self._told else self.rank
            self._told |= "rank" in attrs
            self.rows.note("stack-process", line, line=number, rank=self.rank, attrs=attrs)
        else:
            return False
        return True

    def _thread(self, line: str) -> bool:
        if "hread" not in line:
            return False
        if (found := _PYSPY.match(line)) is not None:
            state = "gil" if "gil" in found["state"] else found["state"]
            return self._begin("py-spy", Thread(found["thread"], found["name"] or "", state))
        if (found := _PYSTACK.match(line)) is not None:
            state = "gil" if "Has the GIL" in found["flags"] else ""
            return self._begin("pystack", Thread(found["thread"], found["name"] or "", state, innermost_last=True))
        if (found := _FAULT.match(line)) is not None:
            current = found["current"].startswith("Current")
            return self._begin(
                "faulthandler", Thread(found["thread"], found["name"] or "", "active" if current else "")
            )
        if (found := _GDB.match(line)) is not None:
            return self._begin("gdb", Thread(found["lwp"], found["name"] or ""))
        return False

    def _frame(self, line: str) -> bool:
        if (found := _KERNEL.match(line)) is not None:
            if self._open is None:
                self._begin("kernel", Thread("", "kernel"))
            return self._add(Frame(found["function"], found["lib"] or ""), "kernel")
        if self._open is None:
            return False
        if line.startswith("    "):
            return self._indented(line)
        if (found := _FAULT_FRAME.match(line)) is not None:
            return self._add(Frame(found["function"], found["file"], whole(found["line"])), "python")
        if (found := _GDB_FRAME.match(line)) is not None:
            place = _GDB_PLACE.search(found["rest"] or "")
            file = (place["file"] or place["lib"]) if place else ""
            number = whole(place["line"]) if place else None
            return self._add(Frame(found["function"], file, number), "native")
        return False

    def _indented(self, line: str) -> bool:
        if line.startswith("        "):
            return True  # source text, or locals, which are not kept
        if (found := _PYSTACK_FRAME.match(line)) is not None:
            kind = "python" if found["kind"] == "Python" else "native"
            file = found["lib"] if kind == "native" and found["lib"] else found["file"]
            return self._add(Frame(found["function"], file, whole(found["line"]) or None), kind)
        if (found := _PYSPY_FRAME.match(line)) is not None:
            file, colon, number = found["where"].rpartition(":")
            at = whole(number) if colon else None
            frame = Frame(found["function"], file if at is not None else found["where"], at)
            return self._add(frame, "python" if at is not None and _PY_FILE.search(file) else "native")
        return line.startswith("    File ") or line.lstrip().startswith(("Arguments:", "Locals:"))

    def _add(self, frame: Frame, kind: str) -> bool:
        if self._open is not None:
            self._open.add(frame, kind)
        return True
