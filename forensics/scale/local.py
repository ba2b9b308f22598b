"""The engine of one machine: a pool of processes that are started, never forked, and may die.

A process does one item at a time, so it is known which item it died of.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
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


class Local(Struct, frozen=True):
    """So many processes on this machine."""

    jobs: int

    def map_unordered(self, function: Callable[[W], R], items: Sequence[W]) -> Iterator[tuple[W, R] | Lost[W]]:
        """Do every item; where no process can be started, in this one.

        Raises:
            PlaceError: when the machine refuses the place that an item writes to.
        """
        return tried_twice(lambda several, alone: _done(function, several, 1 if alone else self.jobs), items)


class _NoProcessError(Exception):
    """A process ended before it could be asked."""


class _Process(Struct, Generic[W], eq=False):
    """One process, and the item that it is at."""

    program: subprocess.Popen[bytes]
    item: W | None = None

    @property
    def answers(self) -> BinaryIO:
        return cast("BinaryIO", self.program.stdout)

    def ask(self, item: W) -> bool:
        """Hand over an item; false when the process has gone."""
        self.item = item
        try:
            wire.send(cast("BinaryIO", self.program.stdin), wire.packed(item))
        except OSError:
            return False
        return True

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
    """The processes at work, and what is left to do."""

    function: Callable[[W], R]
    kind: type[R]
    left: deque[W]
    ready: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    working: list[_Process[W]] = field(default_factory=list)

    def hire(self) -> None:
        one = _started(self.function)
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
                one: _Process[W] = key.data
                data = wire.received(one.answers)
                item, one.item = one.item, None
                if data is None and item is None:
                    raise _NoProcessError
                if data is None and item is not None:
                    yield item, None, one.ended()
                    self.dismiss(one)
                    if self.left:
                        self.hire()
                    continue
                if item is not None and data is not None:
                    yield item, wire.unpacked(data, Reply).record_as(self.kind), ""
                if not self.left:
                    self.dismiss(one)
                else:
                    one.ask(self.left.popleft())  # one that has gone is seen by its answer, which ends


def _done(function: Callable[[W], R], items: Iterable[W], jobs: int) -> Iterator[tuple[W, R | None, str]]:
    left = deque(items)
    if not left:
        return
    crew = _Crew(function, get_type_hints(function)["return"], left)
    try:
        for _ in range(min(jobs, len(left))):
            crew.hire()
        yield from crew.answers()
    except (_NoProcessError, OSError):
        asked = [one.item for one in crew.working if one.item is not None]
        yield from ((item, function(item), "") for item in (*asked, *left))
    finally:
        while crew.working:
            crew.dismiss(crew.working[0])
        crew.ready.close()
