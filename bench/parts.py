"""The rest of what a reader read, written as the store writes it: a bench of a reader ends with every row on disk."""

from __future__ import annotations

from pathlib import Path

from forensics.store.sink import SourceSink, settled, write_part


def write_rest(sink: SourceSink, folder: Path) -> None:
    """Write the rows that a sink still holds as further parts of their tables; it holds none after that."""
    for number, (table, held) in enumerate(sink.handed_over()):
        for one in settled(table, [held]):
            frame = one.lazy().collect()
            path = folder / f"{table}-rest-{number:04d}.parquet"
            write_part(frame, path)
            sink.parts.append((table, path, frame.height))
