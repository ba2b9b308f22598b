"""The engine of one machine: a pool of processes that are started, never forked, and may die.

A process does one item at a time and says when it begins, so it is known which item it died of: one that it never
began has nothing to do with its end, and goes to the next process.
"""

from __future__ import annotations

import io
import json
import os
import selectors
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO, Generic, TypeVar, cast, get_type_hints

from msgspec import Struct, field

from forensics.scale import wire
from forensics.scale.second_try import W, tried_twice
from forensics.scale.worker import Reply, name_of
from forensics.store.disk import Lost

R = TypeVar("R")
_START = (
    "import json, sys\nsys.path[:] = json.loads(sys.argv[1])\n"
    "from forensics.scale.worker import main\nmain(sys.argv[2])"
)
#: Numeric libraries start a thread for each core; here a core has its process.
_ONE_THREAD = {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
#: So many processes in a row that end before they begin an item: here none can work, and no further one is started.
_MOST_VAIN = 3
_NOT_AGAIN = "no process can be started to try it again"


class Local(Struct, frozen=True):
    """So many processes on this machine."""

    jobs: int

    def map_unordered(self, function: Callable[[W], R], items: Sequence[W]) -> Iterator[tuple[W, R] | Lost[W]]:
        """Do every item; where no process can be started, in this one, unless a process died of it.

        Raises `PlaceError` when the machine refuses the place that an item writes to.
        """

        def attempt(several: Sequence[W], alone: bool) -> Iterator[tuple[W, R | None, str]]:  # noqa: FBT001 - as typed
            left = deque(several)
            yield from _by_processes(function, left, 1 if alone else self.jobs)
            yield from ((item, None, _NOT_AGAIN) if alone else (item, function(item), "") for item in left)

        return tried_twice(attempt, items)


class _Process(Struct, Generic[W], eq=False):
    """One process, the item that it was asked for, and whether it began it."""

    program: subprocess.Popen[bytes]
    item: W | None = None
    has_begun: bool = False

    @property
    def answers(self) -> BinaryIO:
        """What it sends, unbuffered: what waits to be read is seen by a selector."""
        return cast("BinaryIO", cast("io.BufferedReader", self.program.stdout).raw)

    def ask(self, item: W) -> None:
        """Hand over an item; where the process has gone, its answers end."""
        self.item, self.has_begun = item, False
        with suppress(OSError):
            wire.send(cast("BinaryIO", self.program.stdin), wire.packed(item))

    def ended(self) -> str:
        """Say how the process ended."""
        code = self.program.wait()
        how = f"ended with exit code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
        return f"the process that reads it {how}"

    def close(self) -> None:
        self.program.kill()
        self.program.wait()
        for stream in (self.program.stdin, self.program.stdout):
            with suppress(OSError):
                cast("BinaryIO", stream).close()


def _started(function: Callable[[W], object]) -> _Process[W]:
    path = json.dumps([os.path.abspath(one) for one in sys.path])  # noqa: PTH100 - an empty one is the working folder
    flags = ("-I",) if sys.flags.isolated else ("-P",)
    command = [sys.executable, *flags, "-c", _START, path, name_of(function)]
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    return _Process(subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=null, env=os.environ | _ONE_THREAD))  # noqa: S603


class _Crew(Struct, Generic[W, R]):
    """The processes at work, and what is left to do; `vain` of them in a row ended before they began an item."""

    function: Callable[[W], R]
    kind: type[R]
    left: deque[W]
    ready: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    working: list[_Process[W]] = field(default_factory=list)
    vain: int = 0

    def hire(self) -> None:
        """Start a process, where that is of use."""
        if not self.left or self.vain >= _MOST_VAIN:
            return
        try:
            one = _started(self.function)
        except OSError:
            return
        self.working.append(one)
        self.ready.register(one.answers, selectors.EVENT_READ, one)

    def dismiss(self, one: _Process[W]) -> None:
        self.working.remove(one)
        self.ready.unregister(one.answers)
        one.close()

    def answers(self) -> Iterator[tuple[W, R | None, str]]:
        """Whatever comes first: a record, or the item that a process died of and how."""
        while self.working:
            for key, _ in self.ready.select():
                yield from self._heard(key.data)

    def _heard(self, one: _Process[W]) -> Iterator[tuple[W, R | None, str]]:
        """Take what a process sends: nothing when it waits for an item, and once more when it begins it; a record."""
        data, item = wire.received(one.answers), one.item
        if data is None:
            yield from self._ended(one)
        elif data == b"" and item is not None:
            one.has_begun, self.vain = True, 0
        else:
            if item is not None:  # it is kept before the next one begins: a command that is killed loses one
                yield item, wire.unpacked(data, Reply).record_as(self.kind), ""
            if self.left:
                one.ask(self.left.popleft())
            else:
                self.dismiss(one)

    def _ended(self, one: _Process[W]) -> Iterator[tuple[W, R | None, str]]:
        how = one.ended()
        self.dismiss(one)
        if not one.has_begun:
            self.vain += 1
            self.left.extendleft([one.item] if one.item is not None else [])
        self.hire()
        if one.has_begun and one.item is not None:
            yield one.item, None, how


def _by_processes(function: Callable[[W], R], left: deque[W], jobs: int) -> Iterator[tuple[W, R | None, str]]:
    """Do items on so many processes; what these never began stays in `left`."""
    crew = _Crew(function, get_type_hints(function)["return"], left)
    try:
        for _ in range(min(jobs, len(left))):
            crew.hire()
        yield from crew.answers()
    finally:
        while crew.working:
            crew.dismiss(crew.working[0])
        crew.ready.close()
