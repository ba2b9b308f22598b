"""Scrapes of the DCGM exporter, as Prometheus text: `DCGM_FI_DEV_GPU_UTIL{gpu="0",…} 98`, one or many in a file.

The number of a GPU is part of the name (`gpu.0.DCGM_FI_DEV_GPU_UTIL`) and never a rank: `rank` is null. Where a series
comes again, the next scrape begins. Times are printed only by some scrapers; labels that name a host or a pod are left.
"""

from __future__ import annotations

from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.json_records import number
from forensics.formats.rows.metrics import At, MetricRows
from forensics.formats.rows.text import head_lines, lines_of, settle
from forensics.formats.trackers.points import time_of

_SAMPLE = lazily(rb"(?:# (?:HELP|TYPE) )?DCGM_FI_\w+[{ ]")
_ROW = lazily(
    r"(?P<name>[A-Za-z_:][\w:]{0,200})(?:\{(?P<labels>(?:[^\"}]|\"(?:[^\"\\]|\\.)*+\")*+)\})?"
    r"[ \t]+(?P<value>[-+]?[\w.+-]{1,40})(?:[ \t]+(?P<t>\d{1,19}))?[ \t]*"
)
_GPU = lazily(r'(?:^|,)\s*gpu="(\d{1,4})"')
_SAMPLE_BYTES, _LINE_CHARS, _SERIES = 65_536, 8192, 100_000


@ingester(
    "dcgm_exporter",
    version=1,
    sniff=Sniff(glob=("*.prom", "*dcgm*", "*metrics*", "*gpu*", "*.txt", "*.log", "*.out")),
    emits=("metrics",),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read all scrapes of one file; raises `NotMine` when its first lines name no field of DCGM."""
    lines = head_lines(opened, _SAMPLE_BYTES)
    named = any(map(_SAMPLE.match, lines))
    fits = sum(line.startswith(b"#") or _ROW.fullmatch(_text(line)) is not None for line in lines if named)
    if not named or 4 * fits < 3 * len(lines):
        raise NotMine("no samples of DCGM")
    rows = MetricRows(out, limits)
    seen: set[str] = set()
    scrape = records = lost = 0
    for line in lines_of(opened):
        text = _text(line.text)
        if not text or text.startswith("#"):
            continue
        found = _ROW.fullmatch(text)
        value = number(found["value"]) if found else None
        if found is None or value is None:
            out.issue("line-not-read", "a line is no sample", byte=line.byte, line=line.number)
            lost += len(line.text)
            continue
        series = f"{found['name']}{found['labels']}"
        if series in seen or len(seen) >= _SERIES:
            scrape += 1
            seen.clear()
        seen.add(series)
        at = At(
            scrape, opened.source.attempt or 0, None, line.number, line.byte,
            t_ns=time_of(number(found["t"])) if found["t"] else None,
        )  # fmt: skip
        rows.add(at, _name(found["name"], found["labels"] or ""), value)
        records += 1
    rows.close()
    out.format("DCGM exporter")
    settle(opened, out, records=records, lost_bytes=lost, reason="lines that are no samples")


def _text(line: bytes) -> str:
    return line[:_LINE_CHARS].decode("utf-8", "replace").strip()


def _name(name: str, labels: str) -> str:
    gpu = _GPU.search(labels)
    return name if gpu is None else f"gpu.{gpu[1]}.{name}"
