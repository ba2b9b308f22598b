"""Logs of GPUs against csv and str.split: every number of every row, its device, time, line and byte."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.formats.gpu import dcgm_exporter, dcgmi_dmon
from forensics.formats.gpu import nvidia_smi as nvidia_smi_csv

from .tables import BATCH_ROWS, BLOCK_BYTES, NUMBER, read, rows

pytestmark = pytest.mark.usefixtures("only_owned_columns")
BEGIN = datetime(2031, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
UNITS = {"utilization.gpu": " %", "memory.used": " MiB", "temperature.gpu": "", "power.draw": " W"}
WATTS = st.decimals(0, 999, places=2).map(str)
LOOK = st.tuples(st.integers(0, 7), st.integers(0, 100), st.integers(0, 90_000), st.integers(20, 99), WATTS)
LOOKS = st.lists(LOOK, min_size=1, max_size=40)


def ns_of(when: datetime) -> int:
    return (when - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000


@given(looks=LOOKS, missing=st.booleans(), batch_rows=BATCH_ROWS, block_bytes=BLOCK_BYTES)
def test_every_number_of_nvidia_smi_is_read(
    looks: list[tuple[Any, ...]], missing: bool, batch_rows: int, block_bytes: int
) -> None:
    names = list(UNITS)
    text = "timestamp, index, " + ", ".join(f"{n} [{UNITS[n].strip() or 'x'}]" if UNITS[n] else n for n in names) + "\n"
    begins = []
    for i, (index, *cells) in enumerate(looks):
        begins.append(len(text))
        words = [f"{cell}{UNITS[name]}" for name, cell in zip(names, cells, strict=True)]
        words[3] = "[N/A]" if missing and i % 3 == 0 else words[3]
        when = BEGIN + timedelta(seconds=i)
        text += f"{when:%Y/%m/%d %H:%M:%S}.250, {index}, " + ", ".join(words) + "\n"
    sink = read(nvidia_smi_csv.read, "gpu.csv", text.encode(), batch_rows=batch_rows, block_bytes=block_bytes)
    _, *peer = csv.reader(io.StringIO(text), skipinitialspace=True)
    expected = [
        (seq, ns_of(BEGIN + timedelta(seconds=seq)), seq + 2, begins[seq], f"gpu.{cells[1]}.{name}", in_gib(name, cell))
        for seq, cells in enumerate(peer)
        for name, cell in zip(names, cells[2:], strict=True)
        if cell != "[N/A]"
    ]
    assert rows(sink, "seq", "t_ns", "line", "byte", "raw_name", "value") == expected


def in_gib(name: str, cell: object) -> str:
    """A number as it is kept: memory, which both tools print in MiB, in GiB."""
    return repr(float(str(cell).split(maxsplit=1)[0]) / (1024 if name in {"memory.used", "FBUSD"} else 1))


@given(LOOKS, BATCH_ROWS, BLOCK_BYTES, st.integers(1, 9))
def test_every_number_of_dcgmi_dmon_is_read(
    looks: list[tuple[Any, ...]], batch_rows: int, block_bytes: int, header_rows: int
) -> None:
    head = "#Entity   GPUTL  FBUSD  GPTMP  POWER\nID\n"
    text, begins, lines = "", [], []
    for i, (index, *cells) in enumerate(looks):
        if i % header_rows == 0:
            text += head
        begins.append(len(text))
        lines.append(text.count("\n") + 1)
        text += f"GPU {index}     {cells[0]}     {cells[1]}   {'N/A' if i % 4 == 3 else cells[2]}    {cells[3]}\n"
    sink = read(dcgmi_dmon.read, "dmon.txt", text.encode(), batch_rows=batch_rows, block_bytes=block_bytes)
    expected = [
        (seq, lines[seq], begins[seq], f"gpu.{index}.{name}", in_gib(name, cell))
        for seq, (index, *cells) in enumerate(looks)
        for name, cell in zip(("GPUTL", "FBUSD", "GPTMP", "POWER"), cells, strict=True)
        if not (name == "GPTMP" and seq % 4 == 3)
    ]
    assert rows(sink, "seq", "line", "byte", "raw_name", "value") == expected


@given(
    st.lists(st.lists(NUMBER, min_size=3, max_size=3), min_size=1, max_size=20), st.booleans(), BATCH_ROWS, BLOCK_BYTES
)
def test_every_sample_of_the_dcgm_exporter_is_read(
    scrapes: list[list[float]], timed: bool, batch_rows: int, block_bytes: int
) -> None:
    text, expected = "", []
    for scrape, values in enumerate(scrapes):
        text += "# HELP DCGM_FI_DEV_X a\n# TYPE DCGM_FI_DEV_X gauge\n"
        for gpu, value in enumerate(values):
            stamp = f" {1_750_000_000_000 + scrape}" if timed else ""
            t_ns = (1_750_000_000_000 + scrape) * 10**6 if timed else None
            place = scrape, t_ns, text.count("\n") + 1, len(text)
            text += f'DCGM_FI_DEV_X{{gpu="{gpu}",host="a b"}} {value!r}{stamp}\n'
            expected.append((*place, f"gpu.{gpu}.DCGM_FI_DEV_X", repr(value)))
    sink = read(dcgm_exporter.read, "m.prom", text.encode(), batch_rows=batch_rows, block_bytes=block_bytes)
    assert rows(sink, "seq", "t_ns", "line", "byte", "raw_name", "value") == expected
