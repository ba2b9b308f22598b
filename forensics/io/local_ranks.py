"""Global ranks of torchrun's folders: `attempt_0/3/` counts on its own node, and each node begins with 0 again.

A node's first global rank is learned from what its workers print: PyTorch's tag `[rank11]:` in the folder `3` says 8.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from forensics.errors import InputError
from forensics.io.opening import open_regular
from forensics.model import Source

_FOLDER = re.compile(
    r"^(?P<node>(?:.*/)?(?:attempt|restart)[_-]?\d{1,6})/(?P<local>\d{1,6})/[^/]+\.(?:log|out|err|txt)$"
)
_TAG = re.compile(rb"\[rank(\d{1,6})\]:")
#: A program's own `rank=11`; it may also be the rank of a matrix, so one folder is not enough to believe it.
_WORD = re.compile(rb"(?<![A-Za-z_\d])rank ?[=:] ?(\d{1,6})\b")
_PEEK_BYTES = 64 << 10
_MOST_FILES = 8
_ENOUGH = 2


def with_global_ranks(top: str, sources: Sequence[Source]) -> list[Source]:
    """The sources, those of torchrun's folders with the global rank; unknown stays local on a run of one node.

    Of several nodes whose first rank cannot be learned, the rank is None: which one it is cannot be told.
    """
    nodes: dict[str, list[Source]] = {}
    for source in sources:
        if (found := _FOLDER.match(source.path)) is not None:
            nodes.setdefault(found["node"], []).append(source)
    if not nodes:
        return list(sources)
    first = {node: _first_rank(top, files) for node, files in nodes.items()}
    alone = len({node.rsplit("/", 1)[0] for node in nodes}) == 1
    return [_placed(source, first, alone=alone) for source in sources]


def _placed(source: Source, first: Mapping[str, int | None], *, alone: bool) -> Source:
    folder, _, _ = source.path.rpartition("/")
    node, _, local = folder.rpartition("/")
    if node not in first or not local.isdigit():
        return source
    base = first[node]
    if base is None:
        return source if alone else replace(source, rank=None)
    return replace(source, rank=base + int(local))


def _first_rank(top: str, files: Sequence[Source]) -> int | None:
    """The global rank of the node's local rank 0, by the first tag; by the program's own words where two agree."""
    said: Counter[int] = Counter()
    for source in sorted(files, key=lambda one: -one.size_bytes)[:_MOST_FILES]:
        local = int(source.path.split("/")[-2])
        data = b"\n".join(_ends(top, source))
        for pattern, enough in ((_TAG, True), (_WORD, False)):
            tags = Counter(int(tag) for tag in pattern.findall(data))
            rank = tags.most_common(1)[0][0] if tags else -1
            if rank >= local and enough:
                return rank - local
            if rank >= local:
                said[rank - local] += 1
    base, votes = said.most_common(1)[0] if said else (0, 0)
    return base if votes >= _ENOUGH and votes > sum(said.values()) // 2 else None


def _ends(top: str, source: Source) -> Iterator[bytes]:
    """The first and the last bytes of a file; nothing where it cannot be opened."""
    try:
        fd, _ = open_regular(f"{top}/{source.disk_path or source.path}", follow=False)
    except (InputError, OSError):
        return
    try:
        yield os.pread(fd, _PEEK_BYTES, 0)
        if source.size_bytes > _PEEK_BYTES:
            yield os.pread(fd, _PEEK_BYTES, source.size_bytes - _PEEK_BYTES)
    except OSError:
        return
    finally:
        os.close(fd)
