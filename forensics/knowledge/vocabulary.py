"""How programs write one thing: words of frames, metrics, settings, files, kernels, and keys that are its name.

A row of the files of `vocabulary/` has `row` (its name), `means` (what its words stand for), `words` (a search in the
text), `like` (texts that it fits), `unlike` (near misses, which no row of its meaning fits) and `source`. Rows of one
meaning are alternatives. Patterns are run by `re` and by polars: no look-around, no back-reference. A row of
`files/keys.jsonl` has `row`, `means`, `keys` (each compared whole) and `source`; rows of one meaning follow one
another, the best key first.

`vocabulary/languages.tsv` has the words of logs in other languages, each with its English one. What is known of a
printed name is known by its English words: `Validierungsverlust`, `验证损失` and `потери валидации` are asked for as
`validation loss`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from forensics.io.tables import table_rows
from forensics.knowledge._rows import Row, rows_of
from forensics.patterns import compiled

_ANY_CASE = "(?i)"
#: Longer texts are lines and no names.
_MOST_CHARS = 80
#: Scripts without blanks between words: Japanese, Chinese, Korean. As a class of a pattern they take 4 ms to compile.
_UNPARTED = "\u3041", "\ud7a3"
#: Blanks that were put where none belongs.
_AROUND, _BLANKS = re.compile(r" +([_/.,;:!?)])|([_/(]) +"), re.compile(r" +")
#: Letters that Python's engine takes for `i` and `s` where case does not count: Turkish KAYBI fits the word with the
#: dotless one.
_SAME = ("\u0131", "i"), ("\u017f", "s")
_ASCII_WORD = re.compile(r"[a-z]+")
_LETTER = r"[^\W\d_]"


class Wording(Row, frozen=True):
    """One row; the fields are those of the table."""

    row: str
    means: str
    words: str
    like: tuple[str, ...]
    source: str
    unlike: tuple[str, ...] = ()


def wordings() -> tuple[Wording, ...]:
    """Every row, in the order of the files."""
    return rows_of("vocabulary", Wording)


def words_for(means: str) -> str:
    """Give the pattern of all words for one meaning; raises `KeyError` when no row has the meaning."""
    return _patterns()[means]


def stands_for(means: str, text: str) -> bool:
    """Whether a text holds words of a meaning, in any language; raises `KeyError` when no row has the meaning."""
    if len(text) > _MOST_CHARS:  # the head of a log is not kept
        return _compiled(means).search(text) is not None
    return _names(means, text)


@lru_cache(maxsize=4096)
def _names(means: str, name: str) -> bool:
    """The same of a name, which is asked for again in each file of a run."""
    return _compiled(means).search(in_english(name)) is not None


class Keys(Row, frozen=True):
    """Keys of one meaning; the fields are those of the table."""

    row: str
    means: str
    keys: tuple[str, ...]
    source: str


def every_key() -> tuple[Keys, ...]:
    """Every row of keys, in the order of the file."""
    return rows_of("files/keys.jsonl", Keys)


def keys_of(means: str) -> tuple[str, ...]:
    """Give the keys of one meaning, the best first; raises `KeyError` when no row has the meaning."""
    return _keys_by_meaning()[means]


@cache
def _keys_by_meaning() -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for one in every_key():
        found[one.means] = (*found.get(one.means, ()), *one.keys)
    return found


@cache
def _patterns() -> Mapping[str, str]:
    every: dict[str, list[str]] = {}
    for one in wordings():
        words = f"(?i:{one.words.removeprefix(_ANY_CASE)})" if one.words.startswith(_ANY_CASE) else f"(?:{one.words})"
        every.setdefault(one.means, []).append(words)
    return {means: "|".join(words) for means, words in every.items()}


@cache
def _compiled(means: str) -> re.Pattern[str]:
    return re.compile(words_for(means))


class _Words(NamedTuple):
    """The words of all rows, the longest first, each also folded; each in English; those in ASCII, whole and parts.

    `begun`: by the first two letters of what is folded, where its words are among all.
    """

    every: tuple[tuple[str, str], ...]
    begun: Mapping[str, tuple[int, ...]]
    english: Mapping[str, str]
    whole: frozenset[str]
    parts: tuple[str, ...]


@cache
def _words() -> _Words:
    rows = table_rows("forensics.knowledge", "vocabulary/languages.tsv")
    words = {word.replace("_", " "): english for english, words, *_ in rows for word in words.split()}
    folded = {word: _folded(word) for word in words}
    plain = [word for word in folded.values() if word.isascii()]
    whole = frozenset(word.split(" ")[0] for word in plain if "-" not in word)
    parts = tuple(word.strip("-") for word in plain if "-" in word)
    every = tuple((word, folded[word].strip("-")) for word in sorted(words, key=len, reverse=True))
    begun: dict[str, tuple[int, ...]] = {}
    for at, (_, plain) in enumerate(every):
        begun[plain[:2]] = (*begun.get(plain[:2], ()), at)
    return _Words(every, begun, {folded[word].strip("-"): told for word, told in words.items()}, whole, parts)


def _folded(text: str) -> str:
    low = text.lower()
    for letter, taken in _SAME:
        low = low.replace(letter, taken)
    return low


def is_unparted(text: str) -> bool:
    """Whether a text holds a character of a script without blanks between words."""
    first, last = _UNPARTED
    return not text.isascii() and any(first <= character <= last for character in text)


def _found(word: str) -> str:
    if is_unparted(word[0]):
        return word
    before = "" if word.startswith("-") else f"(?<!{_LETTER})"
    behind = "" if word.endswith("-") else f"(?!{_LETTER})"
    return f"{before}{re.escape(word.strip('-'))}{behind}"


def in_english(name: str) -> str:
    """Give a printed name with the words of other languages that it holds in English; a longer text as it is."""
    return name if len(name) > _MOST_CHARS else _translated(name)


@lru_cache(maxsize=4096)
def _translated(name: str) -> str:
    words, folded = _words(), _folded(name)
    # most are ASCII, and few of their words are known: a look at each costs less than one at all
    is_known = not words.whole.isdisjoint(_ASCII_WORD.findall(folded)) or any(part in folded for part in words.parts)
    if name.isascii() and not is_known:
        return name
    # a pattern of all words takes 15 ms to compile, one of those that the name holds 0.1 ms
    near = words.begun.keys() & {*folded, *map("".join, pairwise(folded))}
    places = sorted(at for begins in near for at in words.begun[begins] if words.every[at][1] in folded)
    if not places:
        return name
    held = "|".join(_found(words.every[at][0]) for at in places)
    said = compiled(f"(?i){held}").sub(lambda word: f" {words.english[_folded(word[0])]} ", name)
    return name if said == name else _BLANKS.sub(" ", _AROUND.sub(r"\1\2", said)).strip()
