"""The scanner that finds the lines of known failures (`forensics.knowledge.errors`) in a log."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import orjson
import polars as pl

from forensics.dialects import _lines
from forensics.dialects.events.floods import FIRST_KEPT, LAST_KEPT, RANKS_KEPT, Flood, Hit
from forensics.knowledge import errors
from forensics.patterns import compiled

#: Program text, not output: logs often print the script that they come from. Searched in a segment as printed; a match
#: is never a metric or an error, whatever words it holds.
SOURCE = (
    r"^[+-]?\s*(?:(?:async )?(?:def|class) \w+.*:|import \w|from [\w.]+ import\b"
    r"|(?:if|elif|while|for|with|except|try|else|finally|async)\b.*:\s*(?:#.*)?$"
    r"|raise [\w.]+|return\b|assert\b|print0?\(|@\w+|#|\"\"\"|'''|f?r?[\"'].*[\"'][,)+]\s*$|[fr][\"'].*[\"']\s*$"
    r"|\w+(?:\.\w+|\[[^\]]*\])*\s*[-+*/]?=\s*(?:[A-Za-z_({\"']|\[(?:[^\d]|$)|\s\[))"  # `ranks=[8, 9]` is printed
    r"|\b(?:print0?|log(?:ger|ging)?\.\w+|log0|warnings\.warn|RuntimeError|ValueError|Exception)\(f?[\"']"
    r"|\braise [\w.]+\(|^[+-]?\s+[\"'].*[\"']\s*$"  # at its line's start a program prints what it prints in quotes
)
#: So many equal complaints in one block are no program text.
_CHECKED = 2_000
#: So few rows, and rows of so few letters, are searched one by one.
_FEW, _FEW_CHARS = 200, 3_000
_STAMP_CHARS = 160
#: A longer line is looked at up to here.
_LINE_CHARS = 20_000
#: PyTorch's own tag of the global rank, wherever it is: harnesses put words of their own before it.
_RANK_TAG = r"\[rank(\d{1,7})\]:"


@cache
def stems() -> tuple[str, ...]:
    """Short literals that are in most lines that may hold a signature, from `stems.json`; one serves many of them.

    All lines of a log are searched for these in one pass, so they are rare in ordinary output.
    """
    return tuple(orjson.loads((files("forensics.dialects.events") / "stems.json").read_bytes()))


@cache
def literals() -> tuple[str, ...]:
    """The stems, and every needle that contains none of them: a row of the table needs no stem of its own."""
    needles = pl.Series([*_numbers_of()])
    bare = needles.filter(~needles.str.contains_any(pl.Series(stems()).implode()))
    return (*stems(), *bare.to_list())


@cache
def pattern() -> str:
    """Finds every line that may hold a signature."""
    return _lines.alternation(literals())


@cache
def _numbers_of() -> Mapping[str, tuple[int, ...]]:
    """Each needle with the numbers of its signatures."""
    numbers: dict[str, list[int]] = {}
    for number, signature in enumerate(errors.lines()):
        for needle in signature.needles:
            numbers.setdefault(needle, []).append(number)
    return MappingProxyType({needle: tuple(every) for needle, every in numbers.items()})


def _fitting(rows: pl.DataFrame, fits: Callable[[str], bool]) -> pl.DataFrame:
    """The rows whose text fits."""
    found = [at for at, text in enumerate(rows["text"].to_list()) if fits(text)]
    return rows if len(found) == rows.height else rows[found] if found else rows.clear()


class Scanner:
    """Signatures over the blocks of one file."""

    def __init__(self, *, quote_chars: int = 400) -> None:
        """`quote_chars` cuts the text of an event."""
        self._signatures = errors.lines()
        self._needles = _numbers_of()
        self._counts = Counter[int]()
        self._last: dict[int, deque[tuple[Hit, dict[str, Any]]]] = {}
        self._kept: dict[int, list[Hit]] = {}
        self._ranks: dict[int, set[int]] = {}
        self._chars = quote_chars

    def feed(self, found: pl.DataFrame) -> list[dict[str, Any]]:
        """Events of the lines in `found` (columns seq, line, byte, text, raw, rank), those to be kept now.

        A line that a benign row knows is no error of that row's family.
        """
        if not found.height:
            return []
        tagged = pl.col("text").str.extract(_RANK_TAG, 1).cast(pl.Int64, strict=False)
        found = found.with_columns(rank=pl.coalesce("rank", tagged))
        rows_of: dict[int, set[int]] = {}
        for needle, rows in self._holding(found["text"]):
            for number in self._needles[needle]:
                rows_of.setdefault(number, set()).update(rows)
        events = [
            (self._signatures[number], event)
            for number in sorted(rows_of)
            for event in self._verified(number, found[sorted(rows_of[number])])
        ]
        harmless = {(event["seq"], row.family) for row, event in events if row.kind == "benign"}
        told = (e for row, e in events if row.kind == "benign" or (e["seq"], row.family) not in harmless)
        return sorted(told, key=lambda event: event["seq"])

    def _holding(self, texts: pl.Series) -> Iterator[tuple[str, list[int]]]:
        """Each needle that is in some texts, with their rows; in few letters they are looked for one by one."""
        listed: list[str] = texts.to_list()
        if len(whole := "\n".join(listed)) <= _FEW_CHARS:
            near = [needle for needle in self._needles if needle in whole]
            yield from ((needle, [row for row, text in enumerate(listed) if needle in text]) for needle in near)
            return
        every = texts.str.extract_many(list(self._needles), overlapping=True).to_frame("needle").with_row_index("row")
        present = every.explode("needle").drop_nulls().unique(maintain_order=True)
        for (needle,), part in present.group_by("needle", maintain_order=True):
            yield str(needle), part["row"].to_list()

    def close(self) -> tuple[list[dict[str, Any]], list[tuple[str, int]]]:
        """The last hits of each signature that flooded, and how many of each were left out between."""
        events = [event for kept in self._last.values() for _, event in kept]
        lost = [(flood.code, flood.left_out) for flood in self.floods() if flood.left_out]
        return sorted(events, key=lambda event: event["seq"]), lost

    def floods(self) -> Iterator[Flood]:
        """How often each signature was hit, and which hits are kept."""
        for number, first in sorted(self._kept.items()):
            hits = sorted((*first, *(hit for hit, _ in self._last.get(number, ()))), key=lambda hit: hit.seq)
            yield Flood(self._signatures[number].id, self._counts[number], tuple(hits))

    def _verified(self, number: int, rows: pl.DataFrame) -> Iterator[dict[str, Any]]:
        rows = self._hit(number, rows)
        free = max(0, FIRST_KEPT - self._counts[number])
        first, rest = rows.head(free), rows.slice(free)
        seen = self._ranks.setdefault(number, set())
        seen.update(first["rank"].drop_nulls().to_list())
        if rest.height and len(seen) < RANKS_KEPT:
            fresh = rest.filter(pl.col("rank").is_not_null() & ~pl.col("rank").is_in(list(seen)))
            fresh = fresh.unique("rank", keep="first", maintain_order=True).head(RANKS_KEPT - len(seen))
            seen.update(fresh["rank"].to_list())
            rest = rest.filter(~pl.col("seq").is_in(fresh["seq"].implode()))
            first = pl.concat([first, fresh])
        self._counts[number] += min(rows.height, free) + rest.height
        for row in first.iter_rows(named=True):
            self._kept.setdefault(number, []).append(Hit(row["seq"], row["byte"], row["rank"]))
            yield self._event(number, row)
        if rest.height:
            last = self._last.setdefault(number, deque(maxlen=LAST_KEPT))
            for row in rest.tail(LAST_KEPT).iter_rows(named=True):
                last.append((Hit(row["seq"], row["byte"], row["rank"]), self._event(number, row)))

    def _hit(self, number: int, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows that contain a signature and are no program text.

        Python's engine, which keeps its patterns, searches a few rows of ASCII, in which both engines find the same,
        and where a pattern looks ahead.
        """
        signature = self._signatures[number]
        is_plain = rows.height <= _FEW and all(map(str.isascii, rows["text"].to_list()))
        if is_plain or "(?!" in signature.pattern:
            rows = _fitting(rows, lambda text: bool(signature.compiled.search(text[:_LINE_CHARS])))
        else:
            rows = rows.filter(pl.col("text").str.head(_LINE_CHARS).str.contains(signature.pattern))
        if rows.height > _CHECKED:
            return rows
        if is_plain:
            return _fitting(rows, lambda text: not compiled(SOURCE).search(text))
        return rows.filter(~pl.col("text").str.contains(SOURCE))

    def _event(self, number: int, row: dict[str, Any]) -> dict[str, Any]:
        signature = self._signatures[number]
        hit = signature.compiled.search(row["text"][:_LINE_CHARS])
        groups = hit.groupdict() if hit is not None else {}  # the engines of both patterns agree but for odd letters
        # a name that two branches of a pattern share is spelled `name__2` in the second
        attrs = {k.split("__")[0]: v.strip() for k, v in groups.items() if v is not None}
        rank, step = attrs.get("rank", ""), attrs.get("step", "").replace(",", "")
        return {
            "seq": row["seq"],
            "line": row["line"],
            "byte": row["byte"],
            "rank": int(rank) if rank.isdigit() and len(rank) < 8 else row["rank"],
            "step": int(step) if step.isdigit() and len(step) < 18 else None,
            "level": "error" if signature.is_error else "info",
            "code": signature.id,
            "text": quote(row["raw"], hit.start() if hit is not None else 0, self._chars),
            "attrs": attributes(signature, attrs),
            "stamped": row["raw"][:_STAMP_CHARS],
        }


def attributes(row: errors.ErrorLine, said: Mapping[str, str] = MappingProxyType({})) -> str:
    """The attributes of an event of a row, with what its pattern took out of the line, as JSON."""
    known = {"role": row.role, "shape": row.shape, "family": row.family, "cause": row.cause}
    return orjson.dumps({key: value for key, value in (known | dict(said)).items() if value}).decode()


def quote(raw: str, at: int, chars: int) -> str:
    """The line cut to `chars`, keeping the place `at` inside when the line is longer."""
    return raw if len(raw) <= chars else raw[max(0, min(at - chars // 4, len(raw) - chars)) :][:chars]
