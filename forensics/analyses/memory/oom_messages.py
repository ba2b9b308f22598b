"""Out-of-memory messages as values: who ran out of what, when, in which phase, and whether the run went on.

The same error is often printed several times (a traceback and its summary, a chain of exceptions, every wrapper); equal
numbers of one rank near each other are one message, and only the first is kept with its count. What the numbers say is
`reading`: *fragmentation* when what is reserved but unallocated would have held the request, *full* when it would not,
*limit* when the device had room and a limit or the driver said no, *others* when other processes hold a tenth of the
device or more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, Literal

import polars as pl
from msgspec import Struct

from forensics.case.errors.coded import events_telling
from forensics.case.errors.failures import Failure, failures
from forensics.case.errors.kinds import Judgement, attributes, of_exception
from forensics.case.last_steps import last_step
from forensics.case.steps import in_file
from forensics.knowledge.allocations import SIZE, clauses
from forensics.knowledge.causes import is_kind
from forensics.knowledge.doing import phase_of
from forensics.knowledge.errors import telling
from forensics.knowledge.sizes import element_bytes
from forensics.model import Locator
from forensics.patterns import lazily
from forensics.store.run import Run, derived
from forensics.values import field_names, replace

Where = Literal["device", "host"]
Reading = Literal["fragmentation", "full", "limit", "others", "unknown"]
_MOST = 4000
#: Messages of one rank within so many lines that print no numbers of their own belong to the one before.
_NEAR_LINES = 60
#: Of the device, from which the part of other processes is worth saying (they leave too little room for a job).
_OTHERS_SHARE = 0.1
#: Of the device, from which what no process is named for is of others: a process's own libraries take 2 GiB or less.
_REST_SHARE = 0.5
_ENOUGH = 3
#: Phases of training and of evaluation alike, so that only the lines before tell which it was.
_OF_EITHER = ("forward", "logits", "unknown")
_OOM, _TRACEBACK = "oom", "traceback"


_UNITS: Mapping[str, int] = MappingProxyType(
    {"bytes": 1, "byte": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
     "kb": 1000, "mb": 10**6, "gb": 10**9, "tb": 10**12, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
)  # fmt: skip
_OTHERS = lazily(r"Process (\d+) has " + SIZE + r" memory in use")
#: Bare numbers of bytes: `kernel: anon-rss:123kB` is covered by the units, `allocate 4770354232` is not.
_BARE = lazily(r"allocat(?:e|ing) (\d{4,18})\b(?!\.\d| [kKMGT]i?B)")
_SHAPE = lazily(r"allocating tensor with shape\s?\[([\d,\s]+)\] and type (\w+)")
#: These writers divide by powers of 1024 and print `GB` (MPSAllocator.mm; TH's THAlloc.c).
_BINARY = lazily(r"MPS backend|not enough memory: you tried")
_DECIMAL = lazily(r"(\d ?[KMGT])B\b")
_DEVICE = lazily(r"\bGPU +(\d{1,3})\b|on device (\d{1,3})\b|device:GPU:(\d{1,3})\b")


#: More than this beside the allocator's own memory is not one process's context and libraries.
_CONTEXT_BYTES = 2 << 30
#: More than any device has.
_ENDLESS = 1 << 60


class Sizes(Struct, frozen=True):
    """The numbers of one message in bytes; None where it does not print them.

    `tried` is what was asked of the driver (for PyTorch the segment, not the tensor); `allowed` a limit the program set
    itself; `unallocated` what the allocator holds and nobody uses; `private` what pools of captured graphs hold; `own`
    and `others` what this and other processes hold on the device; `outside` memory of this process that is not the
    allocator's; `rss` resident host memory of a killed process.
    """

    tried: int | None = None
    free: int | None = None
    capacity: int | None = None
    allocated: int | None = None
    unallocated: int | None = None
    private: int | None = None
    allowed: int | None = None
    own: int | None = None
    others: int | None = None
    outside: int | None = None
    rss: int | None = None
    device: int | None = None

    @property
    def known(self) -> int:
        """How many numbers were printed."""
        return sum(getattr(self, name) is not None for name in field_names(self) if name != "device")

    @property
    def rest(self) -> int | None:
        """What is neither free nor the allocator's, where a message counts no process; None where it does."""
        if self.others is not None or self.own is not None:
            return None
        if self.capacity is None or self.free is None or self.allocated is None or self.unallocated is None:
            return None
        return max(0, self.capacity - self.free - self.allocated - self.unallocated - (self.private or 0))


def sizes_of(text: str) -> Sizes:
    """Read the numbers of a message; of a clause that occurs twice the first counts."""
    if _BINARY.search(text) is not None:
        text = _DECIMAL.sub(r"\1iB", text)
    found: dict[str, int] = {}
    for name, pattern in clauses():
        hit = pattern.search(text)
        if hit is not None and name not in found:
            value = _bytes(hit[1], hit[2])
            if value is not None:
                found[name] = value
    if "tried" not in found and (tried := _tried_otherwise(text)) is not None:
        found["tried"] = tried
    held = found.pop("reserved", found.get("cached"))
    found.pop("cached", None)
    if held is not None and "unallocated" not in found:
        # the oldest messages print the cache without what is allocated from it
        whole = held if "reserved in total" in text else held + found.get("allocated", 0)
        found["unallocated"] = max(0, whole - found.get("allocated", 0))
    others = [_bytes(hit[2], hit[3]) or 0 for hit in _OTHERS.finditer(text)]
    mine = found.get("allocated", 0) + found.get("unallocated", 0) + found.get("private", 0)
    room = found.get("capacity", _ENDLESS)
    own = (o for o in others if "own" not in found and mine and (0 <= o - mine <= _CONTEXT_BYTES or mine + o > room))
    itself = next(own, None)
    if itself is not None:  # in a container the driver's process id is not one that the program knows as its own
        found["own"] = itself
        others.remove(itself)
    if others:
        found["others"] = sum(others)
    if "outside" not in found and "own" in found and "allocated" in found:
        used = found["allocated"] + found.get("unallocated", 0) + found.get("private", 0)
        found["outside"] = max(0, found["own"] - used)
    device = _DEVICE.search(text)
    return Sizes(**found, device=int(next(g for g in device.groups() if g)) if device else None)


def _tried_otherwise(text: str) -> int | None:
    if (bare := _BARE.search(text)) is not None:
        return int(bare[1])
    shape = _SHAPE.search(text)
    size = element_bytes(shape[2]) if shape is not None else None
    if shape is None or size is None:
        return None
    for extent in shape[1].split(","):
        size *= int(extent) if extent.strip().isdigit() else 1
    return size if size < 1 << 60 else None


def _bytes(number: str, unit: str) -> int | None:
    """Turn a printed size into bytes; None for a text without a number, or a size above any memory."""
    try:
        value = float(number.replace(",", "").rstrip(".")) * _UNITS[unit.lower()]
    except (ValueError, KeyError):
        return None
    return int(value) if value < 1 << 60 else None


class OomMessage(Struct, frozen=True):
    """One out-of-memory error; `sizes` are its numbers in bytes, `copies` how often it was printed.

    `survived` is why the run did not end of it (`progress` and the like), empty when it may have.
    """

    source: str
    locator: Locator
    code: str
    rank: int | None
    step: int | None
    t_ns: int | None
    where: Where
    phase: str
    sizes: Sizes
    quote: str
    survived: str = ""
    copies: int = 1

    @property
    def at(self) -> int:
        """Place inside its source."""
        return self.locator.line if self.locator.line is not None else self.locator.byte or 0

    @property
    def reading(self) -> Reading:
        """The cause, as far as the numbers tell it."""
        size = self.sizes
        if self.where == "host" or size.tried is None:
            return "unknown"
        if size.others and size.capacity and size.others >= _OTHERS_SHARE * size.capacity:
            return "others"
        if size.rest and size.capacity and size.rest >= _REST_SHARE * size.capacity:
            return "others"
        if size.free is not None and size.free >= size.tried:
            return "limit"
        if size.unallocated is None:
            return "unknown"
        return "fragmentation" if size.unallocated >= size.tried else "full"


@derived
def oom_messages(run: Run) -> tuple[OomMessage, ...]:
    """Every out-of-memory message of a run, in the order of sources and lines, copies folded."""
    judged = {(f.source, f.at): f for f in failures(run)}
    kept: list[OomMessage] = []
    for row in islice(_rows(run, judged), _MOST):
        one = _message(row, last_step(run, row["source"], row["order"], row["t_ns"], row["rank"]), judged)
        if one is not None:
            _add(kept, one)
    if not kept:
        return ()
    begun = _evaluations(run)
    return tuple(replace(one, phase="evaluation") if _evaluates(run, one, begun) else one for one in kept)


def _evaluations(run: Run) -> Mapping[str, list[int]]:
    """Places of each source where an evaluation begins, in their order."""
    place = in_file()
    rows = events_telling(run, "evaluating").select("source", at=place)
    return {str(key[0]): sorted(part["at"]) for key, part in rows.group_by("source")}


def _evaluates(run: Run, one: OomMessage, begun: Mapping[str, list[int]]) -> bool:
    """Whether an evaluation had begun before a message, with no training step in between."""
    if one.phase not in _OF_EITHER:
        return False
    last = max((at for at in begun.get(one.source, ()) if at < one.at), default=None)
    return last is not None and last_step(run, one.source, last) == last_step(run, one.source, one.at)


def _rows(run: Run, judged: Mapping[tuple[str, int], Failure]) -> Iterator[dict[str, Any]]:
    """Events about memory: lines of that shape, and tracebacks that are judged so."""
    memory = pl.col("attrs").str.contains(r'"shape":\s*"oom"').fill_null(value=False)
    rows = (
        run.scan("events")
        .filter(memory | (pl.col("code") == _TRACEBACK))
        .with_columns(order=in_file())
        .sort("source", "order", "seq", maintain_order=True)
        .collect()
    )
    for row in rows.iter_rows(named=True):
        failure = judged.get((row["source"], row["order"]))
        if row["code"] != _TRACEBACK or (failure is not None and _raised(failure)[1] == _OOM):
            yield row


def _raised(failure: Failure) -> Judgement:
    """Judge a traceback by its own words, without the lines that follow it."""
    return of_exception(failure.exception, failure.message)


def _message(
    row: Mapping[str, Any], before: int | None, judged: Mapping[tuple[str, int], Failure]
) -> OomMessage | None:
    attrs = attributes(row["attrs"])
    role = attrs.get("role", "")
    if role == "benign":
        return None
    texts = [attrs.get("sizes", ""), row["text"] or "", attrs.get("message", ""), attrs.get("root_message", "")]
    text = max(texts, key=lambda said: sizes_of(said).known)
    failure = judged.get((row["source"], row["order"]))
    sizes = sizes_of(text)
    if role == "context" and not sizes.known:
        return None
    code = str(row["code"])
    step = row["step"] if row["step"] is not None else before
    cause = _raised(failure)[2] if code == _TRACEBACK and failure is not None else attrs.get("cause", "")
    return OomMessage(
        source=row["source"],
        locator=Locator(line=row["line"], byte=row["byte"]),
        code=code,
        rank=row["rank"] if failure is None or failure.rank is None else failure.rank,
        step=step,
        t_ns=row["t_ns"],
        where="host" if is_kind(cause, "host_memory") else "device",
        phase=phase_of(attrs.get("frame", ""), failure.stack if failure is not None else ()),
        sizes=sizes,
        quote=row["text"] or "",
        survived=failure.cleared if failure is not None else "",
    )


def _add(kept: list[OomMessage], one: OomMessage) -> None:
    """Keep a message, or fold it into the one that it repeats or completes."""
    for i in range(len(kept) - 1, max(-1, len(kept) - 64), -1):
        other = kept[i]
        if other.source != one.source or other.rank != one.rank or other.where != one.where:
            continue
        near = abs(one.at - other.at) <= _NEAR_LINES
        same = one.at == other.at or _alike(one.sizes, other.sizes)
        part = near and (not one.sizes.known or not other.sizes.known or one.code in telling("oom_numbers"))
        if same or part:
            kept[i] = _joined(other, one)
            return
    kept.append(one)


def _alike(a: Sizes, b: Sizes) -> bool:
    """Whether two messages have at least three numbers in common and contradict each other in none."""
    both = [(getattr(a, name), getattr(b, name)) for name in ("tried", "free", "capacity", "allocated", "unallocated")]
    known = [(x, y) for x, y in both if x is not None and y is not None]
    return len(known) >= _ENOUGH and all(x == y for x, y in known)


def _joined(a: OomMessage, b: OomMessage) -> OomMessage:
    names = field_names(Sizes)
    sizes = Sizes(**{n: getattr(a.sizes, n) if getattr(a.sizes, n) is not None else getattr(b.sizes, n) for n in names})
    phase = a.phase if a.phase != "unknown" else b.phase
    count = a.copies + (b.code not in telling("oom_numbers"))
    return replace(a, sizes=sizes, phase=phase, survived=a.survived or b.survived, copies=count)
