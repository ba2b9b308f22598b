"""`monitor.csv` of the Monitor wrappers of reinforcement learning: one row per episode, below a line of `#{json}`.

The columns are `r` (reward of the episode), `l` (its length in steps) and `t` (seconds since the start that the first
line names), and what the environment adds. The file counts episodes, so the number of the episode, from 1, is the step.
"""

from __future__ import annotations

from typing import cast

from forensics.dialects.spec import Name
from forensics.formats.kit import InputError, Limits, NotMine, Opened, Out, Sniff, ingester
from forensics.formats.rows.delimited import refused, rows_of
from forensics.formats.rows.facts import write_facts
from forensics.formats.rows.json_records import number
from forensics.formats.rows.metrics import At, MetricRows, nanoseconds
from forensics.formats.rows.text import settle
from forensics.io.tolerant_json import loads

_HEADER = ("r", "l", "t")
_MEANS = {"r": Name("episode_reward"), "l": Name("episode_length")}


@ingester("monitor_csv", version=1, sniff=Sniff(glob=("*monitor.csv", "*monitor.json")), emits=("metrics", "facts"))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one file of episodes.

    Raises `NotMine` when the first line is no `#` comment or the second is not the header `r,l,t`.
    """
    first, _, rest = opened.text_head(65_536).partition(b"\n")
    names = [cell.strip() for cell in rest.partition(b"\n")[0].decode("utf-8", "replace").split(",")]
    if not first.startswith(b"#") or not set(_HEADER) <= set(names):
        raise NotMine("no comment and no header r,l,t")
    start = _start(first[1:], out)
    rows = MetricRows(out, limits)
    source = opened.source
    seq = lost = 0
    for index, row in enumerate(rows_of(opened, ",", out)):
        if index < 2:
            continue
        if wrong := refused(row, len(names), out):
            lost += wrong
            continue
        numbers = dict(zip(names, (number(cell.strip()) for cell in row.cells), strict=False))
        since = numbers.pop("t", None)
        at = At(
            seq,
            attempt=source.attempt or 0,
            rank=source.rank,
            line=row.line,
            byte=row.byte,
            step=seq + 1,
            t_ns=nanoseconds(None if since is None or start is None else start + since),
        )
        for name, value in numbers.items():
            if name and value is not None:
                rows.add(at, name, value, means=_MEANS.get(name))
        seq += 1
    rows.close()
    out.format("monitor.csv")
    settle(opened, out, records=seq, lost_bytes=lost, reason="rows that do not fit the header")


def _start(comment: bytes, out: Out) -> float | None:
    """Unix seconds of the start; the other entries become facts."""
    try:
        found = loads(comment.strip())
    except InputError:
        out.issue("line-not-json", "the comment on the first line is no JSON: times are not known", line=1)
        return None
    if not isinstance(found, dict):
        return None
    told = cast("dict[str, object]", found)
    kept = {key: value for key, value in told.items() if isinstance(value, (str, int, float))}
    write_facts(out, ((f"monitor.{key}", value, "config") for key, value in kept.items()), line=1)
    return number(told.get("t_start"))
