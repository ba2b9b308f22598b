"""How far the reading is, on one line of a terminal that is wiped at the end; nothing where nobody watches."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Generator
from typing import TextIO

from msgspec import Struct, field

from forensics.pipeline import Progress

#: A run that is read sooner needs no line.
_PATIENCE_S, _EVERY_S = 0.7, 0.2
_WIPE = "\r\x1b[2K"


@contextlib.contextmanager
def watched(*, quiet: bool, stream: TextIO | None = None) -> Generator[Callable[[Progress], None] | None]:
    """Give what the reading shall tell its progress to; None when `quiet` or where stderr is no terminal."""
    to = stream if stream is not None else sys.stderr
    if quiet or not to.isatty():
        yield None
        return
    line = _Line(to)
    ticker = threading.Thread(target=line.run, daemon=True)
    ticker.start()
    try:
        yield line.tell
    finally:
        line.stop.set()
        ticker.join()
        if line.shown:
            to.write(_WIPE)
            to.flush()


class _Line(Struct):
    stream: TextIO
    began: float = field(default_factory=time.monotonic)
    last: Progress | None = None
    shown: bool = False
    stop: threading.Event = field(default_factory=threading.Event)

    def tell(self, progress: Progress) -> None:
        self.last = progress

    def run(self) -> None:
        self.stop.wait(_PATIENCE_S)
        while not self.stop.is_set():
            if self.last is not None:
                self.stream.write(_WIPE + said(self.last, time.monotonic() - self.began))
                self.stream.flush()
                self.shown = True
            self.stop.wait(_EVERY_S)


def said(progress: Progress, elapsed_s: float) -> str:
    """Give `3 of 12 files, 412 of 1,020 MB, 85 MB/s, 7 s left`; before the first file ends, the time so far."""
    files = f"{progress.files:,} of {progress.of_files:,} {progress.unit}"
    line = f"reading: {files}, {_mb(progress.size_bytes)} of {_mb(progress.of_bytes)} MB"
    if not progress.size_bytes or elapsed_s <= 0:
        return f"{line}, {elapsed_s:.0f} s"
    rate = progress.size_bytes / elapsed_s
    left = (progress.of_bytes - progress.size_bytes) / rate
    return f"{line}, {_mb(rate)} MB/s, {left:.0f} s left"


def _mb(size_bytes: float) -> str:
    return f"{size_bytes / 1e6:,.0f}"
