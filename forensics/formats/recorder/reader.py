"""Flight-recorder dumps of PyTorch: the last collectives that one rank enqueued, for NCCL and gloo, pickled or as JSON.

A pickle is read opcode by opcode and never loaded. A dump that was cut gives every entry that is whole. The rank is
that of the file's name, or the one member that all its groups share. The state of each process group is an event of
its own, its local number mapped to the group's name: two ranks number the same group differently. gloo leaves the
state of an entry at `scheduled` and marks the end by `retired`: such an entry is `completed` here, `attrs` keep what
was printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from msgspec import Struct

from forensics.formats.kit import InputError, Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.recorder._rows import EntryRows, Group, group_of, groups_of, units_of, whole
from forensics.formats.rows.json_records import object_of, places, records_before_damage
from forensics.formats.rows.text import document, settle_document
from forensics.io.budget import Budget, WorkExceeded
from forensics.io.pickle import ops as pickle_ops
from forensics.io.pickle.machine import Machine
from forensics.io.tolerant_json import dumps, loads
from forensics.values import replace

_NAMES = (
    *("*trace_rank_*", "*_dump_[0-9]*", "*fr_trace*", "*flight*recorder*", "*_rank_[0-9]*.json", "*fr_dump*"),
    *("*nccl*.json", "*trace_[0-9]*.json", "*trace[0-9]*.json", "*rank[0-9]*.json", "fr/*.json"),
)
_PICKLES = tuple(bytes((0x80, version)) for version in (2, 3, 4, 5))
_PROBE_BYTES = 64 << 10
_END = lazily(r"(?:^|\D)(\d{1,6})(?:\.(?:json|pkl|pickle|bin|dump))?$")
_HEALTH_CHARS = 2_000
#: Units of the state of one group, beside one for each of its ranks: its event takes 10 µs.
_GROUP_UNITS = 64


@ingester("flight_recorder", version=1, sniff=Sniff(glob=_NAMES, magic=_PICKLES), emits=("collectives", "events"))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one dump; raises `NotMine` for other pickles and other JSON."""
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
    for code, words, count in found.flaws:
        out.issue(code, words, count=count)
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


# The document in a flight-recorder dump: pickled or JSON, whole or cut, as plain dicts and lists.
#
# Of a file that was cut, every entry that is whole is kept: what the reader had built when the bytes ended is put
# together from its stack.

#: Entries of one dump that are read: the ring has 2,000 by default.
MOST_ENTRIES = 100_000
_KEYS = (b"collective_seq_id", b"seq_id", b"pg_config", b"profiling_name", b"pg_status")


class Document(Struct, frozen=True):
    """What a dump holds; `damage` says why a part is missing, `good_bytes` is where it was understood to.

    `malformed` counts what is no entry among the entries, `flaws` is the damage found in a pickle.
    """

    top: Mapping[str, Any]
    entries: list[Mapping[str, Any]]
    form: str
    damage: str = ""
    good_bytes: int = 0
    malformed: int = 0
    flaws: tuple[tuple[str, str, int], ...] = ()


def parse(data: bytes, limits: Limits) -> Document:
    """Read the bytes of one dump; raises `NotMine` when they hold none of the names that a dump is made of."""
    if not data.strip():
        return Document({}, [], "empty", "the dump is empty")
    if not any(name in data for name in _KEYS):
        raise NotMine("no flight-recorder dump")
    if data.startswith(b"\x80"):
        return _pickled(data)
    if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
        return _json(data, limits)
    raise NotMine("no flight-recorder dump")


def _pickled(data: bytes) -> Document:
    machine = Machine(data, pickle_ops.DOCUMENT)
    damage, good = "", len(data)
    try:
        top: object = pickle_ops.run(machine)
    except InputError as error:
        damage, good = error.message, min(machine.p, len(data))
        top = _folded(machine.stack, machine.marks)
    if isinstance(top, dict):
        fields = cast("dict[str, object]", top)
        try:  # entries are read to a fixed depth and charged one by one
            pickle_ops.check(machine, {key: value for key, value in fields.items() if key != "entries"})
        except InputError as error:
            damage, top = damage or error.message, {"entries": fields.get("entries")}
    return replace(_of(cast("object", top), "pickle", damage, good), flaws=machine.flaws)


def _folded(stack: list[Any], marks: list[int]) -> Any:  # noqa: ANN401 - plain data of any kind
    """Close the containers that were still open: each list and dict takes the whole values that wait above its mark."""
    values = list(stack)
    for mark in reversed(marks):
        if not 0 < mark <= len(values):
            return None
        below, waiting = values[mark - 1], values[mark:]
        del values[mark:]
        if isinstance(below, list):
            cast("list[Any]", below).extend(waiting)
        elif isinstance(below, dict):
            keys = waiting[0 : len(waiting) // 2 * 2 : 2]
            pairs = zip(keys, waiting[1::2], strict=False)
            cast("dict[Any, Any]", below).update({k: v for k, v in pairs if isinstance(k, str | int)})
        else:
            del values[mark - 1 :]
    return values[0] if values else None


def _json(data: bytes, limits: Limits) -> Document:
    try:
        return _of(loads(data, limits), "json", "", len(data))
    except InputError as error:
        damage = error.message
    inside = places(data, "entries")
    found, good = records_before_damage(data, inside if inside.spans else places(data))
    fields = _fields_before(data, inside.spans[0][0]) if inside.spans else {}
    return _of({**fields, "entries": found}, "json", damage, good)


def _fields_before(data: bytes, begin: int) -> dict[str, Any]:
    """The fields of the document before its entries, such as the groups and their members."""
    head = data[: max(data.rfind(b'"entries"', 0, begin), 0)].rstrip(b" \t\r\n,")
    return object_of(head + b"}") or {}


def _of(top: object, form: str, damage: str, good_bytes: int) -> Document:
    if isinstance(top, list):
        found: object = cast("list[object]", top)
        top = {}
    else:
        found = cast("dict[str, Any]", top).get("entries") if isinstance(top, dict) else None
    if not isinstance(top, dict):
        top = {}
    fields = {str(k): v for k, v in cast("dict[object, Any]", top).items()}
    if "entries" not in fields:
        found = next((one for one in (found, *fields.values()) if _has_entries(one)), found)
    listed = cast("list[Any]", found)[:MOST_ENTRIES] if isinstance(found, list) else []
    whole = [e for e in listed if _is_entry(e)]
    if not damage and not whole and not {"pg_config", "pg_status", "version", "entries"} & fields.keys():
        raise NotMine("no flight-recorder dump")
    if isinstance(found, list) and len(cast("list[Any]", found)) > MOST_ENTRIES and not damage:
        damage = f"more than {MOST_ENTRIES} entries; the rest was not read"
    malformed = len(listed) - len(whole)
    if "entries" in fields and not isinstance(fields["entries"], list):
        malformed = 1
    return Document(fields, whole, form, damage, good_bytes, malformed)


def _has_entries(value: object) -> bool:
    return isinstance(value, list) and any(_is_entry(one) for one in cast("list[object]", value))


def _is_entry(value: object) -> bool:
    """Whether a value is a whole entry: it names an operation and says what became of it."""
    return isinstance(value, dict) and "profiling_name" in value and "state" in value


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
    last_of = {str(entry.get("pg_id")): entry for entry in found.entries}
    told = {key: group_of(entry, groups) for key, entry in last_of.items()}
    names = {group.name for group in told.values()}
    left = sorted((key for key in keys if key not in told), key=_in_order)
    unnamed = sorted((name for name in groups if name not in names), key=_in_order)
    if len(left) == len(unnamed):
        told |= {key: groups[name] for key, name in zip(left, unnamed, strict=True)}
    return told


def _in_order(name: str) -> tuple[int, int, str]:
    return (0, int(name), "") if name.isdigit() and len(name) < 19 else (1, 0, name)
