"""A process of the local engine: an item in, its record out, until nobody asks any more.

It starts from nothing: no fork, and nothing of the program that asks. Who asks may be killed; then the item at hand is
finished and published, and the process ends.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar, get_type_hints

from msgspec import Struct

from forensics.errors import PlaceError
from forensics.scale import wire

T = TypeVar("T")
_GC_THRESHOLD = 200_000


class Reply(Struct, frozen=True):
    """What became of an item: the record as JSON, or what the machine refused."""

    record: str = ""
    place: str = ""
    errno: int = 0
    words: str = ""
    help: str = ""

    def record_as(self, kind: type[T]) -> T:
        """Give the record; raises `PlaceError` when the machine refused the place that the item writes to."""
        if self.place:
            raise PlaceError(self.place, OSError(self.errno, self.words), help=self.help)
        return wire.unpacked(self.record.encode("ascii"), kind)


def name_of(function: Callable[..., object]) -> str:
    """Name a function of a module, so that another process finds it."""
    return f"{function.__module__}:{function.__qualname__}"


def main(named: str) -> None:
    """Greet; then say that an item from standard input begins, and answer it on standard output.

    What a library prints goes to stderr.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal tells every process of its group; the first one decides
    gc.set_threshold(_GC_THRESHOLD)
    asked, told = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    _function(named)  # its imports belong to the start, not to the first item
    try:
        wire.send(told, b"")
        while (data := wire.received(asked)) is not None:
            wire.send(told, b"")
            wire.send(told, wire.packed(reply_to(named, data)))
    except BrokenPipeError:
        pass
    os._exit(0)  # threads of libraries have nothing to finish


def _function(named: str) -> Callable[[Any], Any]:
    module, _, name = named.partition(":")
    return getattr(import_module(module), name)


def reply_to(named: str, data: bytes) -> Reply:
    """Do one item with the function of this name."""
    function = _function(named)
    hints = get_type_hints(function)
    kind = next(kind for name, kind in hints.items() if name != "return")
    try:
        return Reply(wire.packed(function(wire.unpacked(data, kind))).decode("ascii"))
    except PlaceError as error:
        words = error.message.removeprefix(f"{error.place}: ")
        return Reply(place=error.place, errno=error.errno or 0, words=words, help=error.help)
