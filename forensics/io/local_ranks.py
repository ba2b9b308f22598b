"""Global ranks of the files that a launcher opens for each process, by what the processes print there.

Torchrun's folder `attempt_0/3/` counts on its own node, and each node begins with 0 again: PyTorch's tag `[rank11]:` in
the folder `3` says that the first rank of its node is 8. The files `slurm-7_0.out`, `slurm-7_1.out`... are those of the
tasks of one step where such tags name the tasks; files of an array of jobs are named alike. Logs of processes that are
named by hosts, or by nothing, tell their rank in their first lines (`I am rank 5 of 8`). Files that each host counts
from 0 (`host1/local_rank_2.txt`) are those of one rank after another.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache

from forensics.errors import InputError
from forensics.io.places.place import Place
from forensics.io.rank_words import words_before
from forensics.model import Source
from forensics.patterns import lazily
from forensics.values import replace

_FOLDER = lazily(r"^(?P<node>(?:.*/)?(?:attempt|restart)[_-]?\d{1,6})/(?P<local>\d{1,6})/[^/]+\.(?:log|out|err|txt)$")
_TAG = lazily(rb"(?:\[rank(?=\d{1,6}\])|\bGLOBAL_RANK: )(\d{1,6})\b")
#: A program's own `rank=11`; it may also be the rank of a matrix, so one folder is not enough to believe it.
_WORD = lazily(rb"(?<![A-Za-z_\d])rank ?[=:] ?(\d{1,6})\b")
#: The same in a sentence (`world 3 rank 1`, `RANK=1`, `worker 1 of 4`), behind a word that makes it another number
#: (`node rank 1`) or none; a file of one task does not have two; by `ranks.tsv`.
_SPOKEN = (
    r"(?i)(?:\b({others}) )?(?<![\w-])(?:{ranks})[ =:]{{1,3}}(\d{{1,6}})\b"
    r"|(?<![\w-])(?:{processes})[ =:]{{1,3}}(\d{{1,6}})(?: of |/)\d{{1,6}}\b"
)
#: The file of a task, or one in its folder, and its kind where it is no log.
_TASK = lazily(
    r"^(?P<base>(?:.*/)?[^/]*[^/\d])(?P<task>\d{1,6})(?P<name>/[^/\d]+)?\.(?:log|out|err|txt|(?P<table>csv|tsv|jsonl))$"
)
_NUMBER = lazily(r"\d+")
_NODE = lazily(rb"(?i)\bnode[_-]?rank[=: ]{1,3}\d")
_LAST_WORD = lazily(r"([a-z]+)[^a-z]*$", re.IGNORECASE)
_LOG = lazily(r"\.(?:log|out|err|txt)$")
#: The same where a number follows the word: `ranklog.0006`, `stdout_3`.
_OUTPUT = lazily(r"(?i)(?:log|out(?:put)?|err)[._-]?\d{1,6}$")
#: Slurm's launcher names the tasks whose end it tells.
_SRUN = lazily(rb"srun: error: [^\s:]{1,255}:? tasks? ([\d,-]{1,255}):")
#: The output of torchrun's agent, which speaks for all workers of its node, names its package.
_AGENT = b"torch.distributed.elastic"
_PEEK_BYTES = 64 << 10
#: Where a process says who it is before it trains.
_HEAD_BYTES, _HEAD_LINES = 4 << 10, 10
_MOST_FILES = 8
_ENOUGH = 2
#: Nothing in the files of a family says their ranks.
_UNTOLD = -1


def with_global_ranks(place: Place, sources: Sequence[Source]) -> list[Source]:
    """The sources with the global ranks of torchrun's folders and of a step's tasks; empty files count.

    What is unknown stays local on a run of one node. If the first rank of one of several nodes cannot be learned, the
    rank is None: which one it is cannot be told. So is that of a log in whose head a launcher says which node it is of,
    and how many processes it starts there: the number in its name counts nodes.
    """
    own = _with_folders(place, _with_tasks(place, _with_tags(place, _without_nodes(place, sources))))
    return _with_hosts(own)


def with_heads(place: Place, sources: Sequence[Source]) -> list[Source]:
    """Give each log of a folder, or of one name, the rank that its first lines say, where each says another, from 0.

    A log says this of itself; the number in its name may count the processes of a node, or the pods of one role.
    """
    families: dict[str, list[Source]] = {}
    for source in sources:
        is_log = _LOG.search(source.path) or _OUTPUT.search(source.path)
        if source.rank is None and source.size_bytes and is_log:
            folder, _, name = source.path.rpartition("/")
            families.setdefault(f"{folder}/*", []).append(source)
            families.setdefault(f"*/{name}", []).append(source)
    ranks: dict[str, int] = {}
    for files in families.values():
        ranks |= _said_first(place, files)
    return [replace(source, rank=ranks.get(source.path, source.rank)) for source in sources]


def _without_nodes(place: Place, sources: Sequence[Source]) -> list[Source]:
    """Take the rank from logs whose names differ in their numbers alone, where the head of one is a launcher's."""
    forms: dict[str, list[Source]] = {}
    for source in sources:
        if source.rank is not None and _LOG.search(source.path):
            forms.setdefault(_NUMBER.sub("*", source.path), []).append(source)
    families = (files for files in forms.values() if any(_is_of_node(_head(place, one)) for one in files[:_ENOUGH]))
    nodes = {one.path for files in families for one in files}
    return [replace(one, rank=None) if one.path in nodes else one for one in sources]


def _with_tags(place: Place, sources: Sequence[Source]) -> list[Source]:
    """Move the ranks of logs of one node that their names count from 0, as far as the tags in them say.

    The output of a launcher's agent, in which the tags are those of its workers, is of no rank.
    """
    forms: dict[str, list[Source]] = {}
    for source in sources:
        if (
            source.rank is not None
            and source.size_bytes
            and _LOG.search(source.path)
            and not _FOLDER.match(source.path)
        ):
            folder, _, name = source.path.rpartition("/")
            forms.setdefault(f"{folder}/{_NUMBER.sub('*', name)}", []).append(source)
    ranks: dict[str, int | None] = {}
    for files in forms.values():
        largest = sorted(files, key=lambda one: -one.size_bytes)[:_ENOUGH]
        if any(_tag_of(_ends(place, one)) not in {None, one.rank} for one in largest):
            ranks |= _moved(place, files)
    return [replace(one, rank=ranks.get(one.path, one.rank)) for one in sources]


def _tag_of(data: bytes) -> int | None:
    """The rank of PyTorch's tags where they are all of one."""
    tags = {int(tag) for tag in _TAG.findall(data)}
    return tags.pop() if len(tags) == 1 else None


def _moved(place: Place, files: Sequence[Source]) -> dict[str, int | None]:
    """The ranks of the logs of one node, by the tags in the largest of them; none where they are not as far apart."""
    apart: set[int] = set()
    for source in sorted(files, key=lambda one: -one.size_bytes)[:_MOST_FILES]:
        data = _ends(place, source)
        if _AGENT in data:
            return dict.fromkeys((one.path for one in files), None)
        tag = _tag_of(data)
        apart |= {tag - (source.rank or 0)} if tag is not None else set()
    first = max(apart, default=0)
    is_sure = len(apart) == 1 and first >= len(files)
    return {one.path: first + (one.rank or 0) for one in files} if is_sure else {}


def _is_of_node(head: bytes) -> bool:
    """Whether a launcher says in the first lines which node it is of, and that it starts several processes there."""
    is_several = any(int(count) > 1 for count in _several().findall(head))
    return is_several and _NODE.search(head) is not None and b"local_rank" not in head.lower()


@cache
def _several() -> re.Pattern[bytes]:
    return re.compile(rf"\b(?:{'|'.join(sorted(words_before('each')))})[=: ]{{1,3}}(\d{{1,4}})\b".encode())


def _said_first(place: Place, files: Sequence[Source]) -> dict[str, int]:
    """Give the rank that each of these files says of itself.

    None where two say the same, where most say nothing, or one does that differs from another in its number alone.
    """
    said: dict[str, int] = {}
    for seen, source in enumerate(files if len(files) >= _ENOUGH else ()):
        told = _spoken_in(_head(place, source))
        if (seen == _MOST_FILES and not said) or not told.isdisjoint(said.values()):
            return {}
        if len(told) == 1:
            said[source.path] = told.pop()
    ranks = set(said.values())
    whole = len(ranks) == len(said) and 0 in ranks and max(ranks) < 2 * len(ranks)
    forms = {path: _NUMBER.sub("*", path) for path in (source.path for source in files)}
    alike = {forms[path] for path in said} & {form for path, form in forms.items() if path not in said}
    return said if whole and not alike and len(said) >= max(_ENOUGH, len(files) / 2) else {}


def _head(place: Place, source: Source) -> bytes:
    """The first lines of a file; nothing where it cannot be opened."""
    try:
        with place.opened(source.disk_path or source.path) as disk:
            return b"\n".join(disk.pread(_HEAD_BYTES, 0).split(b"\n", _HEAD_LINES)[:_HEAD_LINES])
    except (InputError, OSError):
        return b""


def _with_tasks(place: Place, sources: Sequence[Source]) -> list[Source]:
    families: dict[tuple[str, str], dict[int, list[Source]]] = {}
    for source in sources:
        if source.rank is None and (found := _TASK.match(source.path)) is not None:
            name = found["base"] + (found["name"] or ""), found["table"] or ""
            families.setdefault(name, {}).setdefault(int(found["task"]), []).append(source)
    families = {name: tasks for name, tasks in families.items() if max(tasks) == len(tasks) - 1 > 0}
    named: dict[str, set[int]] = {}
    for source in sources:
        if (found := _TASK.match(source.path)) is not None and source.rank == int(found["task"]):
            named.setdefault(found["base"] + (found["name"] or ""), set()).add(int(found["task"]))
    numbered = {source.path for tasks in families.values() for own in tasks.values() for source in own}
    beside: dict[str, list[Source]] = {}
    for source in sources:
        if families and source.path not in numbered and _LOG.search(source.path):
            beside.setdefault(_folder_of(source.path), []).append(source)
    firsts = {n: _first_task(place, tasks, beside.get(_folder_of(n[0]), ())) for n, tasks in families.items()}
    # what the tasks of a step wrote beside their logs is numbered as these are
    sizes = {(_folder_of(base), len(families[base, of])) for (base, of), first in firsts.items() if first == 0}
    sizes |= {(_folder_of(base), len(told)) for base, told in named.items() if max(told) == len(told) - 1 > 0}
    ranks: dict[str, int] = {}
    for (base, table), tasks in families.items():
        first = firsts[base, table]
        if first == _UNTOLD and (_folder_of(base), len(tasks)) in sizes and not _counts_other(base):
            first = 0
        if first is not None and first != _UNTOLD and (first == 0 or (_folder_of(base), len(tasks)) in sizes):
            ranks |= {source.path: first + task for task, files in tasks.items() for source in files}
    return [replace(source, rank=ranks[source.path]) if source.path in ranks else source for source in sources]


def _counts_other(base: str) -> bool:
    """Whether the word before the number counts something else than processes (`ranks.tsv`)."""
    word = _LAST_WORD.search(base.rpartition("/")[2])
    return word is not None and word[1].lower() in words_before("counts", "other")


def _of_others(path: str) -> bool:
    """Whether the number of a task's file counts something else, as nodes."""
    found = _TASK.match(path)
    return found is not None and _counts_other(found["base"])


def _first_task(place: Place, tasks: Mapping[int, Sequence[Source]], beside: Sequence[Source]) -> int | None:
    """The rank of the file numbered 0 among the logs of a step's tasks; None where they are none, or of nodes.

    Tags name the tasks. Each job of an array prints the tag of rank 0 into its file, the one numbered 0 too: it proves
    a step where no other file has a byte. Without tags what two files and more say of their rank does, where none says
    that of another; so does srun's own log in `beside`, where it names these tasks, and that most of them lost a peer
    at once. Files of a second node begin with
    0 again, and the tags of two are as far from their numbers.
    """
    files = sorted(((source, task) for task, own in tasks.items() for source in own), key=lambda f: -f[0].size_bytes)
    told: set[tuple[int, int]] = set()
    spoken: set[tuple[int, int]] = set()
    lost = 0
    for source, task in files[:_MOST_FILES]:
        data = _ends(place, source)
        if _AGENT in data:
            return None
        told |= {(int(tag), task) for tag in _TAG.findall(data)}
        spoken |= {(rank, task) for rank in _spoken_in(data)}
        lost += any(word.encode() in data for word in words_before("peer"))
    if any(tag != task for tag, task in told):
        apart = {tag - task for tag, task in told}
        alike = len(apart) == 1 and len(told) >= _ENOUGH and max(apart) >= len(tasks)
        return max(apart) if alike else None
    if not told and len(spoken) >= _ENOUGH and all(said == task for said, task in spoken):
        return 0
    if any(task for _, task in told) or (told and all(source.size_bytes == 0 for source, task in files if task)):
        return 0
    if not spoken and lost >= _ENOUGH and 2 * lost >= len(files[:_MOST_FILES]) and not _of_others(files[0][0].path):
        return 0
    named = [n for source in beside[:_MOST_FILES] for cell in _SRUN.findall(_ends(place, source)) for n in _spans(cell)]
    return 0 if named and max(named) < len(tasks) else _UNTOLD


def _spoken_in(data: bytes) -> set[int]:
    """Give the ranks that text says, less those of nodes and matrices."""
    found = ((other, rank or process) for other, rank, process in _spoken().findall(data))
    return {int(rank) for other, rank in found if not other}


@cache
def _spoken() -> re.Pattern[bytes]:
    kinds = {"others": ("other", "local"), "ranks": ("rank",), "processes": ("process", "log")}
    words = {name: "|".join(sorted(words_before(*kind))) for name, kind in kinds.items()}
    return re.compile(_SPOKEN.format(**words).encode())


def _with_hosts(sources: Sequence[Source]) -> list[Source]:
    """Count on from host to host where the folders of hosts, numbered from 0 or 1, hold the same ranks from 0 on.

    Hosts with other numbers may be in any order: the ranks of their files are unknown.
    """
    hosts: dict[tuple[str, str], dict[int, list[Source]]] = {}
    for source in sources:
        found = _hosted().match(source.path) if source.rank is not None else None
        if found is not None:
            name = found["before"], _NUMBER.sub("*", found["name"])
            hosts.setdefault(name, {}).setdefault(int(found["host"]), []).append(source)
    ranks: dict[str, int | None] = {}
    for folders in hosts.values():
        each = {host: {source.rank for source in files} for host, files in folders.items()}
        count = max(map(len, each.values()))
        if len(each) > 1 and all(own == set(range(count)) for own in each.values()):
            for host, files in folders.items():
                before = (host - min(each)) * count
                ranks |= {one.path: before + (one.rank or 0) if _count_on(each) else None for one in files}
    return [replace(one, rank=ranks.get(one.path, one.rank)) for one in sources]


@cache
def _hosted() -> re.Pattern[str]:
    """A file below the folder of a host, and the number of that."""
    words = "|".join(sorted(words_before("machine")))
    return re.compile(rf"(?i)(?P<before>(?:.*/)?(?:{words})[_-]?)(?P<host>\d{{1,6}})/(?P<name>.+)$")


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _spans(cell: bytes) -> list[int]:
    return [int(number) for number in re.findall(rb"\d{1,7}", cell)]


def _with_folders(place: Place, sources: Sequence[Source]) -> list[Source]:
    nodes: dict[str, list[Source]] = {}
    for source in sources:
        if (found := _FOLDER.match(source.path)) is not None:
            nodes.setdefault(found["node"], []).append(source)
    if not nodes:
        return list(sources)
    first = {node: _first_rank(place, files) for node, files in nodes.items()}
    first = first if any(rank is not None for rank in first.values()) else _in_order(nodes)
    alone = len({node.rsplit("/", 1)[0] for node in nodes}) == 1
    return [_placed(source, first, alone=alone) for source in sources]


def _in_order(nodes: Mapping[str, Sequence[Source]]) -> dict[str, int | None]:
    """The first rank of each node by the number of its folder, where all are hosts with as many workers."""
    found = {node: hit for node in nodes if (hit := _hosted().match(f"{node}/")) is not None}
    hosts = {node: int(hit["host"]) for node, hit in found.items()}
    workers = {frozenset(int(one.path.split("/")[-2]) for one in files) for files in nodes.values()}
    count = len(next(iter(workers)))
    is_one_job = len(hosts) == len(nodes) and len({hit["before"] for hit in found.values()}) == 1
    if not is_one_job or workers != {frozenset(range(count))} or not _count_on(hosts.values()):
        return dict.fromkeys(nodes)
    return {node: (host - min(hosts.values())) * count for node, host in hosts.items()}


def _count_on(hosts: Collection[int]) -> bool:
    """Whether numbers of hosts count on from 0 or 1: others may be in any order."""
    return min(hosts) < 2 and max(hosts) - min(hosts) == len(set(hosts)) - 1


def _placed(source: Source, first: Mapping[str, int | None], *, alone: bool) -> Source:
    folder, _, _ = source.path.rpartition("/")
    node, _, local = folder.rpartition("/")
    if node not in first or not local.isdigit():
        return source
    base = first[node]
    if base is None:
        return source if alone else replace(source, rank=None)
    return replace(source, rank=base + int(local))


def _first_rank(place: Place, files: Sequence[Source]) -> int | None:
    """The global rank of the node's local rank 0, by the first tag; by the program's own words where two agree."""
    said: Counter[int] = Counter()
    for source in sorted(files, key=lambda one: -one.size_bytes)[:_MOST_FILES]:
        local = int(source.path.split("/")[-2])
        data = _ends(place, source)
        for pattern, enough in ((_TAG, True), (_WORD, False)):
            tags = Counter(int(tag) for tag in pattern.findall(data))
            rank = tags.most_common(1)[0][0] if tags else -1
            if rank >= local and enough:
                return rank - local
            if rank >= local:
                said[rank - local] += 1
    base, votes = said.most_common(1)[0] if said else (0, 0)
    return base if votes >= _ENOUGH and votes > sum(said.values()) // 2 else None


def _ends(place: Place, source: Source) -> bytes:
    """The first and the last bytes of a file; nothing where it cannot be opened."""
    if not source.size_bytes:
        return b""
    try:
        with place.opened(source.disk_path or source.path) as disk:
            first = disk.pread(_PEEK_BYTES, 0)
            if source.size_bytes <= _PEEK_BYTES:
                return first
            return first + b"\n" + disk.pread(_PEEK_BYTES, source.size_bytes - _PEEK_BYTES)
    except (InputError, OSError):
        return b""
