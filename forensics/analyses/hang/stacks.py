"""The place of each rank's main thread: inside a collective or outside, and its kind of work.

A rank may have left several dumps; the kind that most ranks left is compared. A rank that left none has the stack of
its traceback, where that says that it waited for others or was stopped from outside, or the one that faulthandler
printed where several were aborted, or where its time ran out. DDP waits inside `backward`
without any frame of a collective, so that counts as inside.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import polars as pl
from msgspec import Struct

from forensics.case.errors.coded import events_of
from forensics.case.errors.failures import standing
from forensics.case.errors.kinds import Weight, attributes
from forensics.case.errors.named import ranks_named
from forensics.case.steps import only
from forensics.knowledge.doing import by_frame
from forensics.knowledge.libraries import is_library
from forensics.knowledge.vocabulary import stands_for
from forensics.patterns import lazily
from forensics.store.run import Run, derived

_DIGITS = lazily(r"\d+")
#: The wait must be among so many innermost frames.
_NEAR = 14
#: Where a thread waits for another one: who called it says for what.
_WAITS = lazily(r"(?:^|/)(?:threading|queue)\.py$")
_MOST_FRAMES = 120


class Frame(Struct, frozen=True):
    """One frame; `text` is `function (file:line)`."""

    function: str
    file: str
    line: int | None

    @property
    def text(self) -> str:
        """The frame as one reads it."""
        place = f"{self.file}:{self.line}" if self.line is not None else self.file
        return f"{self.function} ({place})"


class Stack(Struct, frozen=True):
    """The main thread of one rank, innermost frame first; `raised` is the stack of a traceback, not of a dump.

    `line` is that of the exception, where one was raised.
    """

    rank: int
    frames: tuple[Frame, ...]
    state: str
    source: str
    raised: bool = False
    line: int | None = None

    @property
    def inside(self) -> bool:
        """Whether it waits for other ranks."""
        return any(stands_for("collective_frame", f.text) for f in self.frames[:_NEAR])

    @property
    def fetching(self) -> bool:
        """Whether it waits for a batch of a worker of the loader."""
        return any(stands_for("loader_frame", f.text) for f in self.frames[:_NEAR])

    @property
    def p2p(self) -> bool:
        """Whether it waits in a send or a receive."""
        return any(stands_for("point_to_point_frame", f.text) for f in self.frames[:3])

    @property
    def call(self) -> str:
        """The collective that it waits in, `backward` where DDP waits in it, empty where it waits in none."""
        for frame in self.frames[:_NEAR]:
            if stands_for("collective_frame", frame.text):
                return frame.function.rsplit(".", 1)[-1].removeprefix("_engine_run_")
        return ""

    @property
    def starting(self) -> bool:
        """Whether it still joins the job."""
        return stands_for("joining_frame", "\n".join(f.text for f in self.frames[:_NEAR]))

    @property
    def ended(self) -> bool:
        """Whether it was already past its own end when the dump was taken."""
        return any(stands_for("ending_frame", f.text) for f in self.frames[:6])

    @property
    def running(self) -> bool:
        """Whether it computed, in Python or below."""
        return "active" in self.state or "gil" in self.state

    @property
    def work(self) -> str:
        """The kind of work of the innermost frames; empty when they name none."""
        return self._working[1]

    @property
    def at(self) -> Frame:
        """The frame that names the work, else the innermost."""
        return self._working[0]

    @property
    def _working(self) -> tuple[Frame, str]:
        told = [frame for frame in self.frames[:_NEAR] if not _WAITS.search(frame.file)][:4]
        for frame in told:
            if is_library(frame.file) and frame is not told[0]:
                break
            if (found := by_frame(f"{frame.function} {frame.file.rsplit('/', 1)[-1]}")) is not None:
                return frame, found.cause
        return self.frames[0], ""


_OF_LINE = ("code", "text", "source", "rank", "line", "attrs")


@derived
def stacks(run: Run) -> Mapping[int, Stack]:
    """Give the main thread of each rank that left a stack."""
    return _aborted(run) | _raised(run) | _dumped(run)


def main_threads(run: Run) -> tuple[Stack, ...]:
    """Give the main thread of each dump, of a process whose rank is known (its `rank`) or not (-1), by source."""
    if "stack_frames" not in run.frames:
        return ()
    rows = (
        run.scan("stack_frames")
        .filter(pl.col("thread_name").str.contains(r"(?i)^MainThread$") & (pl.col("depth").fill_null(0) < _MOST_FRAMES))
        .sort("source", "seq", "depth")
        .collect()
    )
    return tuple(_stack(part) for _, part in rows.group_by("source", "seq", maintain_order=True))


def _stack(part: pl.DataFrame) -> Stack:
    """The stack of one thread, from its rows in order."""
    frames = tuple(Frame(r["function"] or "", r["file"] or "", r["line"]) for r in part.iter_rows(named=True))
    rank = part["rank"][0]
    return Stack(-1 if rank is None else rank, frames, part["state"][0] or "", part["source"][0])


def _raised(run: Run) -> dict[int, Stack]:
    """Stacks of the tracebacks of ranks that waited for others or were stopped; nobody raises out of a mere read."""
    found: dict[int, Stack] = {}
    for failure in standing(run):
        if failure.rank is not None and failure.stack:
            stack = Stack(
                failure.rank, tuple(map(_frame, failure.stack)), "", failure.source, raised=True, line=failure.line
            )
            waits = failure.weight in {Weight.CLOSED, Weight.TIMEOUT} and stack.inside
            if failure.weight is Weight.STOP or waits:
                found.setdefault(failure.rank, stack)
    return found


def _aborted(run: Run) -> dict[int, Stack]:
    """Stacks of ranks that were aborted together, or late together: either shows where each rank was."""
    rows = only(events_of(run, ["native_stack", "late_stack"], ("source", "line")), *_OF_LINE)
    found: dict[int, Stack] = {}
    for code, text, source, rank, line, attrs in rows.iter_rows():
        if rank is None or (code == "native_stack" and ": Aborted" not in (text or "")):
            continue
        frames = map(_frame, json.loads(attributes(attrs).get("stack", "[]")))
        found[rank] = Stack(rank, tuple(frames), "", source, line=line)
    return found if len(found) > 1 else {}


def _frame(text: str) -> Frame:
    """Read `file:line in function`."""
    place, _, function = text.rpartition(" in ")
    file, _, line = place.rpartition(":")
    return Frame(function, file, int(line) if line.isdigit() else None)


def _dumped(run: Run) -> dict[int, Stack]:
    if "stack_frames" not in run.frames:
        return {}
    every = _frames(run)
    threads = (
        every.filter(pl.col("rank").is_not_null())
        .with_columns(
            # faulthandler names no thread; the main one alone runs a script
            main=pl.coalesce(pl.col("thread_name").str.contains(r"(?i)^MainThread$"), pl.col("function") == "<module>"),
            native=pl.col("kind").eq("native").fill_null(value=False),
        )
        .group_by("source", "rank", "seq")
        .agg(
            main=pl.col("main").max(),
            native=pl.col("native").any(),
            frames=pl.len(),
            number=pl.col("thread").first().cast(pl.Int64, strict=False),
        )
        # gdb gives the main thread the program's name; it is the first that the process had
        .with_columns(first=pl.col("native") & (pl.col("number") == pl.col("number").min().over("source", "rank")))
        .with_columns(main=pl.col("main") | pl.col("first").fill_null(value=False))
        .collect()
    )
    chosen = _chosen(threads)
    if not chosen:
        return {}
    wanted = pl.DataFrame(
        [(rank, source, seq) for rank, (source, seq) in chosen.items()],
        schema={"rank": pl.Int32, "source": pl.String, "seq": pl.Int64},
        orient="row",
    )
    rows = (
        every.join(wanted.lazy(), on=["rank", "source", "seq"], how="semi")
        .filter(pl.col("depth").fill_null(0) < _MOST_FRAMES)
        .sort("rank", "depth")
        .collect()
    )
    threads = (_stack(part) for _, part in rows.group_by("rank", maintain_order=True))
    return {thread.rank: thread for thread in threads}


def _frames(run: Run) -> pl.LazyFrame:
    """The frames of all dumps, with the rank of a process that others name by its number."""
    frames, named = run.scan("stack_frames"), ranks_named(run)
    own = pl.DataFrame(
        [(int(name), rank) for name, rank in named.items() if name.isdigit()],
        schema={"pid": pl.Int64, "named": pl.Int32},
        orient="row",
    )
    joined = frames.join(own.lazy(), on="pid", how="left", maintain_order="left")
    return joined.with_columns(rank=pl.coalesce("rank", "named")).drop("named")


def _chosen(threads: pl.DataFrame) -> dict[int, tuple[str, int]]:
    """Source and thread of each rank: of the kind of file that most ranks left, Python stacks before native ones."""
    if threads.is_empty():
        return {}
    kinds: dict[str, set[int]] = {}
    for source, rank in threads.select("source", "rank").iter_rows():
        kinds.setdefault(_DIGITS.sub("#", source), set()).add(rank)
    order = threads.with_columns(
        spread=pl.col("source").map_elements(lambda s: len(kinds[_DIGITS.sub("#", s)]), return_dtype=pl.Int64)
    ).sort(["rank", "native", "spread", "main", "source", "seq"], descending=[False, False, True, True, False, False])
    found: dict[int, tuple[str, int]] = {}
    for rank, source, seq in order.select("rank", "source", "seq").iter_rows():
        found.setdefault(rank, (source, seq))
    return found


# Stacks of all ranks as one prefix tree, outermost frame first: each node with the ranks that have it and lack it.


class Node(Struct, frozen=True):
    """One frame of the tree; `depth` counts from the outermost, `lack` are ranks of the parent without this frame."""

    frame: str
    depth: int
    have: tuple[int, ...]
    lack: tuple[int, ...]


def prefix_tree(found: Mapping[int, Stack]) -> tuple[Node, ...]:
    """Merge stacks from their outermost frames; frames that do not branch are given by the innermost of them.

    A node is followed by its children, those that most ranks have first.
    """
    paths = {rank: tuple(f.text for f in reversed(stack.frames)) for rank, stack in found.items()}
    return tuple(_walk(paths))


def _walk(paths: Mapping[int, Sequence[str]]) -> Iterator[Node]:
    todo = list(reversed(list(_children(paths, tuple(sorted(paths)), 0))))
    depth = [0] * len(todo)
    while todo:
        (have, lack, place), deep = todo.pop(), depth.pop()
        end = _straight(paths, have, place)
        yield Node(paths[have[0]][end - 1], deep, have, lack)
        below = list(reversed(list(_children(paths, have, end))))
        todo.extend(below)
        depth.extend([deep + 1] * len(below))


def _children(
    paths: Mapping[int, Sequence[str]], ranks: tuple[int, ...], place: int
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """Group ranks by their frame at a place: who has it, who lacks it."""
    groups: dict[str, list[int]] = {}
    for rank in ranks:
        if place < len(paths[rank]):
            groups.setdefault(paths[rank][place], []).append(rank)
    for having in sorted(groups.values(), key=lambda r: (-len(r), r)):
        inside = set(having)
        yield tuple(having), tuple(r for r in ranks if r not in inside), place


def _straight(paths: Mapping[int, Sequence[str]], ranks: tuple[int, ...], place: int) -> int:
    """Follow frames that all of these ranks share; give the place after them."""
    first, end = paths[ranks[0]], place
    while end < len(first) and all(end < len(paths[r]) and paths[r][end] == first[end] for r in ranks):
        end += 1
    return end
