"""MLflow's file store (`mlruns/<experiment>/<run>/`): a file of lines for each metric, one for each parameter or tag.

A line of a metric is `<milliseconds> <value> <step>`; the first versions wrote no step, later ones add a dataset. `nan`
and `inf` are words. The name of the metric is the path below `metrics/`, or the base name where that is not known. The
files of a run are known by their folders `metrics`, `params` and `tags`; their content decides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.json_records import number
from forensics.formats.rows.metrics import MetricRows, int64
from forensics.formats.rows.text import Line, head_lines, lines_of, misfit, settle
from forensics.formats.trackers.points import STATUS, Point, TrackedPoints, TrackerFacts, time_of

_ROW = lazily(
    rb"(\d{10,13}) ([-+]?(?:(?:\d++(?:\.\d*+)?|\.\d++)(?:e[-+]?\d++)?|nan|inf(?:inity)?))(?: (-?\d{1,19})(?: .*)?)?",
    re.IGNORECASE,
)
_FOLDER = lazily(r"(?:^|/)(metrics|params|tags)/(.+)\Z")
_META = lazily(rb"(?m)^(?:run_id|run_uuid): *'?[0-9a-f]{32}'?\s*$")
_META_LINE = lazily(r"([a-z_]{1,40}): *(.*?)\s*\Z")
#: the store itself allows parameters of 6,000 and tags of 8,000 characters
_VALUE_BYTES = 40_000
_SAMPLE_BYTES, _SAMPLE_ROWS, _LINE_BYTES = 8192, 50, 4096


@ingester(
    "mlflow_files",
    version=2,
    sniff=Sniff(
        path=(
            *("metrics/*", "*/metrics/*", "params/*", "*/params/*", "tags/*", "*/tags/*"),
            *("meta.yaml", "*/meta.yaml"),
        ),
        fallback=True,
    ),
    emits=("metrics", "events", "facts"),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one file of a run; raises `NotMine` when its content is not this store's."""
    path = opened.source.path
    folder = _FOLDER.search(path)
    if path.rsplit("/", 1)[-1] == "meta.yaml":
        _meta(opened, out)
    elif folder is not None and folder[1] != "metrics":
        _setting(opened, out, folder[1], folder[2])
    else:
        _metric(opened, out, limits, folder[2] if folder else path.rsplit("/", 1)[-1])


def _metric(opened: Opened, out: Out, limits: Limits, name: str) -> None:
    """Points of one metric; with the `metrics` folder in its path one good line is enough, without it most must be."""
    lines = head_lines(opened, _SAMPLE_BYTES)[:_SAMPLE_ROWS]
    good = sum(_point(line, name, 0) is not None for line in lines)
    if not good or (2 * good <= len(lines) and _FOLDER.search(opened.source.path) is None):
        raise NotMine("lines are not a time, a value and a step")
    rows = MetricRows(out, limits)
    points = TrackedPoints(rows, opened.source.rank, opened.source.attempt or 0)
    lost = count = 0
    for line in lines_of(opened):
        point = _point(line.text, name, line.byte, line)
        if point is not None:
            points.add(point)
            count += 1
        elif line.text.strip():
            lost += misfit(line, "is not a time, a value and a step", out)
    rows.close()
    out.format("MLflow metric file")
    settle(opened, out, records=count, lost_bytes=lost, reason="lines that are no points")


def _point(text: bytes, name: str, byte: int, line: Line | None = None) -> Point | None:
    found = _ROW.fullmatch(text.strip()) if len(text) < _LINE_BYTES else None
    stamp = None if found is None else time_of(number(found[1].decode()))
    if found is None or stamp is None:
        return None
    value = number(found[2].decode())
    if value is not None and math.isnan(value):
        value = math.nan
    step = int64(int(found[3])) if found[3] else 0
    return Point("", name, value, step, stamp, byte, line.number if line else None)


def _setting(opened: Opened, out: Out, folder: str, name: str) -> None:
    """The file of a parameter or tag is its value; other files below such a folder are larger or no text."""
    if opened.size_bytes > _VALUE_BYTES:
        raise NotMine("too long for a value")
    data = opened.span(0, _VALUE_BYTES)
    if b"\0" in data or data.decode("utf-8", "replace").count("\ufffd") > len(data) // 100:
        raise NotMine("no text")
    facts = TrackerFacts()
    value = data.decode("utf-8", "replace").rstrip("\n")
    if folder == "params":
        facts.setting(name, value)
    else:
        facts.tag(name, value)
    facts.write(out)
    out.format(f"MLflow {folder[:-1]}")
    out.account(read_bytes=opened.size_bytes, records=1)


def _meta(opened: Opened, out: Out) -> None:
    """How the run began and ended; a flat file of settings with the run's id."""
    data = opened.span(0, _VALUE_BYTES)
    if opened.size_bytes > _VALUE_BYTES or not _META.search(data):
        raise NotMine("no run of MLflow")
    known = dict(_entries(data))
    facts = TrackerFacts()
    status = known.get("status", "")
    number_of = int(status) if status.isdecimal() and len(status) < 3 else 0
    facts.put("exit", "mlflow.status", STATUS[number_of] if 0 < number_of < len(STATUS) else status)
    for key in ("start_time", "end_time"):
        if (when := int64(number(known.get(key)))) is not None:
            facts.put("progress", f"mlflow.{key}", when)
    if known.get("run_name"):
        facts.put("env", "mlflow.run_name", known["run_name"])
    facts.write(out)
    out.format("MLflow run")
    out.account(read_bytes=opened.size_bytes, records=1)


def _entries(data: bytes) -> Iterator[tuple[str, str]]:
    for text in data.decode("utf-8", "replace").splitlines():
        found = _META_LINE.match(text)
        if found is not None:
            yield found[1], found[2].strip("'\"")
