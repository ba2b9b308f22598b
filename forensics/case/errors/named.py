"""What the launcher, the library and the driver call a rank: the number of its process, and the place of its device.

The kernel and the driver know no ranks: `Killed process 90216`, `Xid (PCI:0000:5d:00): 79, pid=7713`. Other lines of
the run say whose they are. A name that two ranks share, as on two hosts, counts for neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

import polars as pl

from forensics.case.errors.coded import events_of, events_telling
from forensics.case.errors.exits import exits
from forensics.case.errors.kinds import attributes
from forensics.case.errors.launchers import highest_rank
from forensics.case.rank_spans import listed
from forensics.case.steps import only
from forensics.knowledge.errors import telling
from forensics.knowledge.vocabulary import keys_of
from forensics.patterns import lazily
from forensics.store.run import Run, derived

#: Domain, bus and device of a place on the PCI bus, as the driver prints it; NCCL prints no separators.
_PLACE = lazily(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.[0-7])?")
_BARE = lazily(r"[0-9a-f]{1,12}")
#: Who printed a line: a worker of Ray, or NCCL in a process (`host:4122:4139 [6] NCCL WARN …`).
_PRINTED = (
    lazily(r"^\W*\(\w[\w.:]{0,120} pid=(?P<pid>\d{1,10})\b"),
    lazily(r"^(?:.{0,80}? )?(?P<process>[\w.-]{1,64}:(?P<pid>\d{1,10})):\d{1,10} \[\d{1,3}\] "),
)
#: The address by which NCCL meets the other ranks.
_USES = lazily(r"Bootstrap ?: Using [^\s:]{1,32}:([^\s<]{3,64})<")
#: An object of Kubernetes, as `kubectl get events` and the kubelet name it.
_POD = lazily(r"\bpods?/([a-z0-9][a-z0-9.-]{0,252})")
#: The event of a process of which a dump has the stack.
_DUMPED = "stack-process"
#: The number of a file.
_FILE = lazily(r"^(?P<before>.*?)(?P<number>\d{1,6})(?P<after>[^\d/]*)$")
#: So many devices a host mostly has at most.
_DEVICES = 8
#: The fact that the log of the devices states of each: its place on the bus.
_BUS = r"^gpu\.(\d+)\.pci\.bus_id$"


@derived
def ranks_named(run: Run) -> Mapping[str, int]:
    """The rank of each process, by its number, and of each device, by its place on the bus (`5d:00`)."""
    told = [*_processes(run), *_devices(run)]
    known = _certain(told)
    return _certain((*told, *(_in_turn(run, known) or _numbered_dumps(run, known))))


def rank_named(run: Run, attrs: Mapping[str, str], line: str = "") -> int | None:
    """Give the rank of the process, else of the device, that an event names, else of the process that printed it."""
    known = ranks_named(run)
    names = (attrs.get("pid", ""), place_of(attrs.get("pci", "")), *_printed_by(line).values())
    found = next((known[name] for name in names if name in known), _by_index(run, attrs.get("device", "")))
    pod = _POD.search(line) if found is None else None
    return found if pod is None else pods(run).get(pod[1])


@derived
def pods(run: Run) -> Mapping[str, int]:
    """Give the rank of each file that has one, by its name without an ending: that of a pod, where it is one's log."""
    named = run.scan("sources").filter(pl.col("rank").is_not_null()).select("path", "rank").collect()
    return {path.rpartition("/")[2].rpartition(".")[0]: rank for path, rank in named.iter_rows()}


def rank_at(run: Run, peer: str) -> int | None:
    """Give the rank of the network address that NCCL names as a peer, `10.8.0.4<41211>`, by what ranks say they use."""
    return _addresses(run).get(peer.partition("<")[0])


@derived
def _addresses(run: Run) -> Mapping[str, int]:
    rows = events_telling(run, "joining").select("text", "rank")
    known, found = ranks_named(run), list[tuple[str, int]]()
    for text, rank in rows.iter_rows():
        hit = _USES.search(text or "")
        named = (known[name] for name in _printed_by(text or "").values() if name in known)
        own: int | None = rank if rank is not None else next(named, None)
        if hit is not None and own is not None:
            found.append((hit[1], own))
    return _certain(found)


def ranks_on(run: Run, node: str) -> tuple[int, ...]:
    """Give the ranks of a node, where a launcher, or ranks as they start, tell of that one and of others too."""
    rows = map(attributes, events_telling(run, "exit_of_tasks")["attrs"])
    placed = [(one.get("host", ""), set(listed(one.get("tasks", "")))) for one in rows]
    started = ((text or "", attributes(attrs)) for text, attrs, _ in _told(run).iter_rows())
    host = re.compile(rf"(?<![\w-]){re.escape(node)}(?![\w-])")
    placed += [(node if host.search(text) else "", set(listed(one.get("rank", "")))) for text, one in started]
    own = set[int]().union(*(tasks for host, tasks in placed if host == node))
    others = set[int]().union(*(tasks for host, tasks in placed if host != node))
    return tuple(sorted(own)) if node and others - own else ()


def _by_index(run: Run, device: str) -> int | None:
    """Give the rank of a device by its index on a single host, where ranks have a device each; 0 may be all of them."""
    index, last = int(device) if device.isdigit() else 0, highest_rank(run)
    return index if 0 < index <= last < _DEVICES and not many_hosts(run) else None


def many_hosts(run: Run) -> bool:
    """Whether a setting, two hosts of a launcher's lines or two ranks of one local rank say that hosts are many."""
    keys = {*keys_of("nodes_launched"), *keys_of("batch_nodes_setting")}
    facts = run.scan("facts").select("key", "value").drop_nulls().collect()
    counts = [value.strip('"') for key, value in facts.iter_rows() if {key, key.rpartition(".")[2]} & keys]
    hosts = {attributes(attrs).get("host", "") for attrs in events_telling(run, "exit_of_tasks")["attrs"]}
    started = [attributes(attrs) for attrs in _told(run)["attrs"]]
    twice = any("local_rank" in one for one in started) and not _once(started)
    return any(n.isdigit() and int(n) > 1 for n in counts) or len(hosts) > 1 or twice


def _printed_by(line: str) -> dict[str, str]:
    """Give the process that Ray or NCCL puts before what it prints, with its host where it is told, and its number.

    Hosts count their processes from the same number on, and containers all from 1.
    """
    hits = (form.match(line) for form in _PRINTED)
    return next((hit.groupdict() for hit in hits if hit is not None), dict[str, str]())


def place_of(text: str) -> str:
    """Give bus and device of a place on the PCI bus, empty where it is none; hosts count domains in several ways."""
    low = text.strip().lower()
    if hit := _PLACE.fullmatch(low):
        return f"{int(hit[2], 16):02x}:{int(hit[3], 16):02x}"
    if _BARE.fullmatch(low):
        number = int(low, 16) >> 4
        return f"{number >> 8 & 0xFF:02x}:{number & 0xFF:02x}"
    return ""


def _processes(run: Run) -> Iterator[tuple[str, int]]:
    yield from ((str(end.pid), end.rank) for end in exits(run).by_rank.values() if end.pid is not None)
    rows = _told(run, dumps=True).iter_rows()
    started = [_printed_by(text or "") | {"by": str(by)} | attributes(attrs) for text, attrs, by in rows]
    world = max((int(one.get("nranks", 0)) for one in started), default=0)
    single = _once(started) > highest_rank(run)
    for one in started:
        # a communicator of a part of the job counts its own ranks
        whole = one.get("comm_rank") if one.get("nranks") == str(world) else None
        own = one.get("local_rank" if single else "") if "local_rank" in one else one["by"]
        rank = one.get("rank") or whole or own or ""
        if rank.isdigit():
            yield from ((name, int(rank)) for name in _names_of(one) if name)


def _names_of(one: Mapping[str, str]) -> tuple[str, str, str]:
    return one.get("process", ""), one.get("pid", ""), place_of(one.get("bus_id", ""))


def _told(run: Run, *, dumps: bool = False) -> pl.DataFrame:
    """The lines that name a process of a rank; with `dumps` also the command lines in dumps that say a local rank."""
    of_rank = telling("process_of_rank")
    rows = events_of(run, {*of_rank, _DUMPED} if dumps else of_rank)
    if dumps and rows.height:
        rows = rows.filter(pl.col("code").is_in(of_rank) | pl.col("attrs").str.contains('"local_rank"'))
        rows = rows.select("source", "text", "attrs", "rank").unique(maintain_order=True)
    return only(rows, "text", "attrs", "rank")


def _in_turn(run: Run, named_already: Mapping[str, int]) -> list[tuple[str, int]]:
    """Give the processes that nothing else names by their order: a launcher starts its workers by rank, one by one.

    They are those that it ended while they lived, or of which a dump has the stack, where there is one for each rank.
    """
    size = highest_rank(run) + 1
    rows = events_of(run, {*telling("ended_alive"), _DUMPED})
    named: dict[str, set[int]] = {}
    for code, attrs in only(rows, "code", "attrs").iter_rows():
        named.setdefault(code, set()).update(int(pid) for pid in (attributes(attrs).get("pid", ""),) if pid.isdigit())
    known = {int(name): rank for name, rank in named_already.items() if name.isdigit()}
    found: list[tuple[str, int]] = []
    for pids in named.values():
        left = [rank for rank in range(size) if rank not in known.values()]
        unknown = sorted(pids - known.keys())
        if size > 1 and len(left) == len(unknown):
            found += zip(map(str, unknown), left, strict=True)
    return found


def _numbered_dumps(run: Run, known: Mapping[str, int]) -> list[tuple[str, int]]:
    """Give the processes by the numbers of the files with their stacks: one each, from 0 on, named alike."""
    if known:
        return []
    rows = only(events_of(run, [_DUMPED]), "source", "rank", "attrs")
    dumps: dict[str, dict[int, list[str]]] = {}
    for source, rank, attrs in rows.iter_rows():
        hit = _FILE.search(source) if rank is None else None
        if hit is not None:
            of_name = dumps.setdefault(f"{hit['before']}*{hit['after']}", {})
            of_name.setdefault(int(hit["number"]), []).append(attributes(attrs).get("pid", ""))
    for of_name in dumps.values():
        pids = [pid for own in of_name.values() for pid in own]
        if max(of_name) == len(of_name) - 1 > 0 and len(pids) == len(of_name) == len(set(pids)) and all(pids):
            return [(own[0], number) for number, own in of_name.items()]
    return []


def _once(told: Iterable[Mapping[str, str]]) -> int:
    """How many local ranks were told, 0 where one came twice: the job has more than one node, or more than one try."""
    local = [one["local_rank"] for one in told if "local_rank" in one]
    return len(local) if len(local) == len(set(local)) else 0


def _devices(run: Run) -> Iterator[tuple[str, int]]:
    """Give the places of the devices of a host, where the job has one rank for each of them."""
    facts = run.scan("facts").filter(pl.col("key").str.contains(_BUS)).select("key", "value").unique().collect()
    places = [(place_of((value or "").strip('"')), int(key.split(".")[1])) for key, value in facts.iter_rows()]
    if len(places) == highest_rank(run) + 1:
        yield from (one for one in places if one[0])


def _certain(pairs: Iterable[tuple[str, int]]) -> Mapping[str, int]:
    found: dict[str, set[int]] = {}
    for name, rank in pairs:
        found.setdefault(name, set()).add(rank)
    return {name: next(iter(ranks)) for name, ranks in found.items() if len(ranks) == 1}
