"""The numbers in an out-of-memory message, clause by clause: every allocator prints some of the same ones.

One tolerant pattern per clause, not per message, so that a version that leaves one out or adds one is still read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_UNITS: Mapping[str, int] = MappingProxyType(
    {"bytes": 1, "byte": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
     "kb": 1000, "mb": 10**6, "gb": 10**9, "tb": 10**12, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
)  # fmt: skip
_V = r"(\d[\d.,]*) ?(bytes?|[KMGT]i?B|[KMGT]\b|B\b)"
_CLAUSES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern.replace("{v}", _V)))
    for name, pattern in (
        ("tried", r"[Tt]ried to allocate {v}"),
        ("tried", r"Requested\s*: {v}"),
        ("tried", r"(?:trying|[Ff]ailed|[Aa]ttempting) to (?:allocate|reserve)(?: request for)? {v}"),
        ("tried", r"CUDA (?:calloc|malloc|host alloc)(?:ing)? {v}"),
        ("tried", r"Unable to allocate {v}"),
        ("capacity", r"total capaci?ty of {v}"),
        ("capacity", r"GPU +\d+; {v} total capacity"),
        ("capacity", r"Device limit\s*: {v}"),
        ("capacity", r"max allowed: {v}"),
        ("capacity", r"Used [\d.]+[KMGT]? of {v}"),
        ("free", r"of which {v} is free"),
        ("free", r"[;,] {v} free"),
        ("free", r"Free \(according to CUDA\)\s*: {v}"),
        ("allowed", r"{v} allowed;"),
        ("own", r"this process has {v} memory in use"),
        ("allocated", r"(?:Of the allocated memory )?{v} is allocated by PyTorch"),
        ("allocated", r"{v} already allocated"),
        ("allocated", r"Currently allocated\s*: {v}"),
        ("allocated", r"MPS allocated: {v}"),
        ("outside", r"other allocations: {v}"),
        ("private", r"with {v} allocated in private pools"),
        ("unallocated", r"and {v} is reserved by PyTorch but unallocated"),
        ("reserved", r"{v} reserved in total by PyTorch"),
        ("cached", r"{v} cached\)"),
        ("rss", r"anon-rss:(\d+)(k)B"),
    )
)
_OTHERS = re.compile(r"Process (\d+) has " + _V + r" memory in use")
#: Bare numbers of bytes: `kernel: anon-rss:123kB` is covered by the units, `allocate 4770354232` is not.
_BARE = re.compile(r"allocat(?:e|ing) (\d{4,18})(?: bytes|\b)")
_SHAPE = re.compile(r"allocating tensor with shape\s?\[([\d,\s]+)\] and type (\w+)")
_DTYPES: Mapping[str, int] = MappingProxyType(
    {"float": 4, "double": 8, "half": 2, "bfloat16": 2, "int32": 4, "int64": 8, "int8": 1, "uint8": 1, "bool": 1,
     "float32": 4, "float16": 2, "float64": 8, "complex64": 8}
)  # fmt: skip
#: These writers divide by powers of 1024 and print `GB` (MPSAllocator.mm; TH's THAlloc.c).
_BINARY = re.compile(r"MPS backend|not enough memory: you tried")
_DECIMAL = re.compile(r"(\d ?[KMGT])B\b")
_DEVICE = re.compile(r"\bGPU +(\d{1,3})\b|on device (\d{1,3})\b|device:GPU:(\d{1,3})\b")


#: More than this beside the allocator's own memory is not one process's context and libraries.
_CONTEXT_BYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class Sizes:
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
        return sum(getattr(self, name) is not None for name in self.__slots__ if name != "device")


def sizes_of(text: str) -> Sizes:
    """Read the numbers of a message; of a clause that stands twice the first counts."""
    if _BINARY.search(text) is not None:
        text = _DECIMAL.sub(r"\1iB", text)
    found: dict[str, int] = {}
    for name, pattern in _CLAUSES:
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
    itself = next((o for o in others if "own" not in found and mine and 0 <= o - mine <= _CONTEXT_BYTES), None)
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
    if shape is None or shape[2] not in _DTYPES:
        return None
    size = _DTYPES[shape[2]]
    for extent in shape[1].split(","):
        size *= int(extent) if extent.strip().isdigit() else 1
    return size if size < 1 << 60 else None


def _bytes(number: str, unit: str) -> int | None:
    """Turn a printed size into bytes; None for what is no number, or larger than any memory."""
    try:
        value = float(number.replace(",", "").rstrip(".")) * _UNITS[unit.lower()]
    except (ValueError, KeyError):
        return None
    return int(value) if value < 1 << 60 else None
