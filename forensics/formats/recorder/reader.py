"""Flight-recorder dumps of PyTorch: the last collectives that one rank enqueued, for NCCL and gloo, pickled or as JSON.

A pickle is read opcode by opcode and never loaded. A dump that was cut gives every entry that is whole. The rank is
that of the file's name, or the one member that all its groups share. The state of each process group is an event of
its own, its local number mapped to the group's name: two ranks number the same group differently. gloo leaves the
state of an entry at `scheduled` and marks the end by `retired`: such an entry is `completed` here, `attrs` keep what
was printed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from forensics.errors import NotMine
from forensics.formats.recorder._document import Document, parse
from forensics.formats.recorder._rows import EntryRows, Group, group_of, groups_of, units_of, whole
from forensics.formats.rows.out import Out
from forensics.formats.rows.text import document, settle_document
from forensics.io.budget import Budget, WorkExceeded
from forensics.io.limits import Limits
from forensics.io.reading import Opened
from forensics.io.tolerant_json import dumps
from forensics.registry import Sniff, ingester

_NAMES = ("*trace_rank_*", "*_dump_[0-9]*", "*fr_trace*", "*flight_recorder*", "*_rank_[0-9]*.json", "*fr_dump*")
_PICKLES = tuple(bytes((0x80, version)) for version in (2, 3, 4, 5))
_PROBE_BYTES = 64 << 10
_END = re.compile(r"(?:^|\D)(\d{1,6})(?:\.(?:json|pkl|pickle|bin|dump))?$")
_HEALTH_CHARS = 2_000
#: Units of the state of one group, beside one for each of its ranks: its event takes 10 µs.
_GROUP_UNITS = 64


@ingester(
    "flight_recorder",
    version=1,
    sniff=Sniff(glob=_NAMES, magic=_PICKLES),
    emits=("collectives", "events"),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one dump.

    Raises:
        NotMine: for other pickles and other JSON.
    """
    if opened.size_bytes and not _may_be(opened.text_head(_PROBE_BYTES)):
        raise NotMine("no flight-recorder dump")
    data = document(opened, limits)
    found = parse(data, limits)
    groups = groups_of(found.top.get("pg_config"), opened.budget)
    rank = _rank(opened.source.path, opened.source.rank, groups)
    rows = EntryRows(rank, groups)
    kept = _add(found, rows, opened.budget)
    events = _events(found, groups, rank, opened.budget)
    out.format(f"flight recorder ({found.form})")
    if found.damage:
        before = f"; {len(found.entries)} entries before it were read" if found.entries else ""
        out.issue("damaged", f"{found.damage}{before}", byte=found.good_bytes)
    if found.misframed:
        out.issue("frame-damaged", "frames of the pickle are not as long as they say", count=found.misframed)
    if found.damaged_texts:
        out.issue("text-damaged", "texts that are no UTF-8; what they name is not found", count=found.damaged_texts)
    if found.malformed and not found.damage:
        out.issue("entry-malformed", "entries without an operation or a state", count=found.malformed)
    if kept < len(found.entries):
        out.account(read_bytes=opened.size_bytes * kept // len(found.entries), records=kept)
    else:
        lost = len(data) - found.good_bytes if found.damage else 0
        settle_document(opened, out, records=kept, lost_bytes=max(lost, int(bool(found.damage))))
    if rows.columns:
        out.rows("collectives", rows.columns)
    out.rows("events", events)


def _add(found: Document, rows: EntryRows, budget: Budget) -> int:
    """Add the entries and give how many of them the budget allowed."""
    for count, entry in enumerate(found.entries):
        try:
            budget.charge(units_of(entry))
        except WorkExceeded:
            return count
        rows.add(entry)
    return len(found.entries)


def _may_be(head: bytes) -> bool:
    return any(name in head for name in (b"pg_config", b"pg_status", b"collective_seq_id", b"profiling_name"))


def _rank(path: str, named: int | None, groups: Mapping[str, Group]) -> int | None:
    """The rank of the file's name, checked by the groups: every group that a rank lists has it as a member."""
    name = path.rsplit("/", 1)[-1]
    end = _END.search(name)
    if ("rank" not in name.lower() and end is not None) or (named is None and end is not None):
        named = int(end[1])
    members = [frozenset(group.ranks) for group in groups.values() if group.ranks]
    shared = members[0].intersection(*members[1:]) if members else frozenset[int]()
    if len(shared) == 1 and named not in shared:
        return next(iter(shared))
    return named


def _events(found: Document, groups: Mapping[str, Group], rank: int | None, budget: Budget) -> dict[str, list[Any]]:
    """One event for the dump, and one for each process group whose state it gives."""
    pending = sum(entry.get("state") != "completed" and entry.get("retired") is not True for entry in found.entries)
    top = found.top
    version, library = top.get("version"), top.get("nccl_version") or top.get("comm_lib_version")
    health = top.get("health_check_results")
    try:
        budget.visit([version, library, health])
    except WorkExceeded:
        version = library = health = None
    about = {"version": version, "library": library, "entries": len(found.entries), "pending": pending}
    about |= {"groups": len(groups), "damaged": found.damage}
    text = f"flight recorder: {len(found.entries)} entries, {pending} not completed"
    events = [("fr-dump", text, about)]
    events += [("fr-group", f"{s['group']}: enqueued {s['last_enqueued']}, completed {s['last_completed']}", s)
               for s in _status(found, groups, budget)]  # fmt: skip
    if health is not None:
        events.append(("fr-health", dumps(health, compact=True).decode()[:_HEALTH_CHARS], {}))
    columns: dict[str, list[Any]] = {name: [] for name in ("seq", "rank", "level", "code", "text", "attrs")}
    for seq, (code, said, attrs) in enumerate(events):
        kept = {key: str(cell) for key, cell in attrs.items() if cell not in (None, "")}
        cells = (seq, rank, "info", code, said, dumps({"role": "context", **kept}, compact=True).decode())
        for name, cell in zip(columns, cells, strict=True):
            columns[name].append(cell)
    return columns


def _status(found: Document, groups: Mapping[str, Group], budget: Budget) -> list[dict[str, Any]]:
    """Last enqueued, started and completed collective of each group, under the group's name."""
    status = found.top.get("pg_status")
    if not isinstance(status, dict):
        return []
    local = _local_names(found, groups, [str(key) for key in cast("dict[object, object]", status)])
    rows: list[dict[str, Any]] = []
    for key, value in cast("dict[object, object]", status).items():
        if isinstance(value, dict):
            cells = cast("dict[str, object]", value)
            group = local.get(str(key), Group(str(key)))
            try:
                budget.charge(_GROUP_UNITS + len(group.ranks))
            except WorkExceeded:
                break
            row: dict[str, Any] = {"group": group.label, "pg_id": str(key)}
            row |= {f"last_{n}": whole(cells.get(f"last_{n}_collective")) for n in ("enqueued", "started", "completed")}
            rows.append(row | {"ranks": list(group.ranks) or None})
    return rows


def _local_names(found: Document, groups: Mapping[str, Group], keys: list[str]) -> dict[str, Group]:
    """Groups by the rank's own number: as entries tell it, and the rest by the order of both numbers."""
    told = {str(entry.get("pg_id")): group_of(entry, groups) for entry in found.entries}
    names = {group.name for group in told.values()}
    left = sorted((key for key in keys if key not in told), key=_in_order)
    unnamed = sorted((name for name in groups if name not in names), key=_in_order)
    if len(left) == len(unnamed):
        told |= {key: groups[name] for key, name in zip(left, unnamed, strict=True)}
    return told


def _in_order(name: str) -> tuple[int, int, str]:
    return (0, int(name), "") if name.isdigit() and len(name) < 19 else (1, 0, name)
