"""Every bound on what an input may cost, in one frozen value."""

from __future__ import annotations

from msgspec import Struct


class Limits(Struct, frozen=True):
    """Bounds per run and per file; bytes unless the name says otherwise.

    `block_bytes` is the unit of streaming; a text line is kept up to `line_bytes` and the rest is counted as lost. A
    reader hands over at most `batch_rows` rows at once, and the store writes a part of a table whenever `part_rows`
    rows of it wait (250,000 metric rows are about 30 MB). `expanded_ratio` and `expanded_bytes` bound what a compressed
    file may grow to. With `device_only`, a profiler trace gives rows for the device's time only; everything else of it
    is counted by kind.

    A file may cost `work_units` and `work_units_per_byte` more for each of its bytes, decoded (`io.budget`). Measured:
    no file of 4 KB or more asks for over 1.47 a byte (GPU samples as CSV), no smaller one for over 4,200 in all. The
    factor is 11 times the first, so that cells of two bytes each still fit; the base costs about 0.2 s.
    """

    block_bytes: int = 8 << 20
    line_bytes: int = 1 << 20
    batch_rows: int = 1 << 17
    part_rows: int = 250_000
    quote_chars: int = 400
    files: int = 1_000_000
    depth: int = 64
    expanded_bytes: int = 64 << 30
    expanded_ratio: int = 1_000
    json_bytes: int = 512 << 20
    json_depth: int = 200
    record_bytes: int = 256 << 20
    events: int = 200_000
    issues: int = 1_000
    traceback_lines: int = 400
    work_units: int = 1 << 20
    work_units_per_byte: int = 16
    device_only: bool = False


DEFAULT = Limits()
