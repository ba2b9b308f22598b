"""What makes two failures the same one: the words of an error without all that differs between two runs of it.

`bare` masks what a second run of the same failure prints differently: times, ranks, hosts, addresses, process and run
ids, sizes and other numbers, and the folders of a path; each is a row of `identity.tsv`. What it keeps is the wording,
names and the ends of paths.
`root_of` is a hash of shape, cause, these words and what tells two failures of one wording apart; `entity_of` is the
exact thing that the words name.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache, lru_cache
from importlib.resources import files

from msgspec import Struct

from forensics.patterns import compiled, lazily

#: Words that are compared; a message goes on with tensors, sizes and stacks of one run.
_MOST_CHARS = 300
_HASH_CHARS = 12
#: No more of a line is looked at: it may be hostile, and each mask reads it again.
_MOST_READ = 2000
#: The words of so many lines are kept: each finding of a run is compared with all of them.
_KEPT = 64
#: An exception's own words begin here: what a launcher, a logger or a rank prefix prints before them is no part of it.
_EXCEPTION = lazily(
    r"(?<![\w.'\"/])(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Warning|Exit|Failure)\b(?=:|$|\s*\()"
)
_LIST = lazily(r"<#>(?:\s*(?:,|-|x|and|to|\.)\s*<#>)+")
#: A number that says what failed, not how large it was, is a word: it is spelled in letters, so that no mask takes it.
_WORD = "<word>"
#: What stands before the words of a line, and the things that a failure can be bound to, so that it fails there again.
_BEFORE, _THING = "<before>", "<thing>"
_LETTERS = str.maketrans("0123456789-", "zqwrtypsdfm")
_BLANKS = lazily(r"\s+")
#: A frame of the program's own code is where a failure was seen, not what it is bound to.
_CODE = (".py", ".pyx", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".so")


class Identity(Struct, frozen=True):
    """Which failure it is, over runs, and what it is bound to: a checkpoint, a shard, a data position or a device."""

    root: str
    entity: str | None = None


@lru_cache(maxsize=_KEPT)
def bare(text: str) -> str:
    """Give the words of an error line without what differs between two runs of the same failure."""
    words = spoken(text[:_MOST_READ])
    for pattern, mask in rows():
        if mask not in {_BEFORE, _THING}:
            words = compiled(pattern).sub(_spelled if mask == _WORD else mask, words)
    return _BLANKS.sub(" ", _LIST.sub("<#>", words)).strip()[:_MOST_CHARS]


@cache
def rows() -> tuple[tuple[str, str], ...]:
    """Give patterns of what differs between two runs of one failure, and what stands in its place (`identity.tsv`)."""
    lines = (files("forensics") / "identity.tsv").read_text(encoding="utf-8").splitlines()
    cells = (line.split("\t") for line in lines if not line.startswith("#"))
    return tuple((pattern, mask) for pattern, mask, *_ in cells)


@cache
def _before() -> re.Pattern[str]:
    return lazily(rf"^\s*(?:{'|'.join(pattern for pattern, mask in rows() if mask == _BEFORE)})\s*")


def _spelled(found: re.Match[str]) -> str:
    return found[0].translate(_LETTERS)


def spoken(text: str) -> str:
    """Give an error line from its exception on, else without the stamps, ranks and hosts before its words."""
    begin = _EXCEPTION.search(text[:_MOST_READ])
    if begin:
        return text[begin.start() :]
    before = _before()
    while (found := before.match(text)) and found.end():
        text = text[found.end() :]
    return text


def root_of(shape: str, cause: str, words: str, apart: str = "") -> str:
    """Give 12 hexadecimal digits that are equal for runs that failed the same way.

    `apart` is what tells it from a failure in the same words.
    """
    text = "|".join((shape, cause, bare(words), *filter(None, [bare(apart)])))
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:_HASH_CHARS]


@lru_cache(maxsize=_KEPT)
def entity_of(text: str) -> str | None:
    """Give the checkpoint, shard, data position or device that an error line names; None where it names none."""
    found = (one[0] for pattern, mask in rows() if mask == _THING for one in compiled(pattern).finditer(text))
    return next((_BLANKS.sub(" ", name) for name in found if not name.endswith(_CODE)), None)
