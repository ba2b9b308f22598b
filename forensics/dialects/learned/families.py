"""A learned family of lines as a `Line`: one pattern with a group per column, and the step of each match.

Beside it what no repetition teaches. A handler that is as wide as a terminal prints a record in two lines (rich's, 80
columns where no terminal is), of which the second names no step and has that of the first; and a save line of a custom
loop has the step in its path, in its text, or on the nearest earlier line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from math import isfinite
from types import MappingProxyType

import numpy as np
import polars as pl
from msgspec import Struct

from forensics.dialects._numbers import CLOCKED
from forensics.dialects._numbers import SUFFIXES as THOUSANDS
from forensics.dialects.learned.masking import LETTERS, SOURCE, UNIT_SOURCE, Slot, source
from forensics.dialects.names import canonical, counts, falls, is_anew, is_duration, measured, of_pair, seconds_in
from forensics.dialects.spec import DECIMAL_COMMA, NS, RESERVED, Line, N, Name
from forensics.knowledge.vocabulary import in_english, keys_of, stands_for
from forensics.patterns import lazily

_MAX_FIRST, _MAX_GAP = 120, 60
_COUNT = r"[\d,]*\d"
_RATE = lazily(r"[^\W\d_]+/[^\W\d_]+")
_UNNAMED = lazily(rf"[^0-9{LETTERS}]+")
#: All of something, in percent.
_WHOLE = 100


@dataclass(frozen=True)
class Column:
    """One key of a family: its numbers row by row, the maxima of `N/M`, and whether some rows lack it.

    `begins` are the places in `cells` at which the rows of another rank begin; `role` is that of a counter without a
    key, which its numbers alone tell.
    """

    key: str
    cells: tuple[Slot, ...]
    maxima: tuple[Slot, ...]
    place: int
    optional: bool = False
    begins: frozenset[int] = frozenset()
    role: str = ""

    @cached_property
    def is_clocked(self) -> bool:
        """Whether one of its numbers is a duration as a clock shows it."""
        texts = "\n".join([cell.text for cell in self.cells]) + "\n"
        return ":" in texts or "s\n" in texts

    @cached_property
    def values(self) -> tuple[float, ...]:
        """The printed numbers in file order."""
        if not self.is_clocked and self.units.isdisjoint(THOUSANDS):
            with suppress(ValueError):  # one of them is not printed as Python does
                return tuple([float(cell.text) for cell in self.cells])
        return tuple(cell.value for cell in self.cells)

    @cached_property
    def units(self) -> AbstractSet[str]:
        """The units behind its numbers."""
        return frozenset([cell.unit for cell in self.cells])

    @cached_property
    def befores(self) -> AbstractSet[str]:
        """The texts before its numbers, of which few make a column."""
        return frozenset([cell.before for cell in self.cells])

    @cached_property
    def behind(self) -> str:
        """The key, where it is the unit behind every number and nothing stands before it."""
        return self.key if all(cell.behind == self.key for cell in self.cells) else ""

    @property
    def varies(self) -> bool:
        """Whether it is not printed alike every time."""
        return any(cell.text != self.cells[0].text for cell in self.cells)

    @property
    def has_decimal_comma(self) -> bool:
        """Whether one of its numbers has its decimals behind a comma."""
        texts = [cell.text for cell in self.cells if "," in cell.text]
        return any(re.match(DECIMAL_COMMA, text) for text in texts)

    @property
    def is_finite(self) -> bool:
        """Whether one of its numbers is finite."""
        return any(map(isfinite, self.values))

    @property
    def is_marked(self) -> bool:
        """Whether the same sign stands before every number, by which a pattern finds it: `<40>`, `#40`."""
        return bool(_shared(self.befores).strip())

    @property
    def counts_evenly(self) -> bool:
        """Whether every line has it, as a bare number or a percentage, and it rises by the same whole number."""
        percent = self.units == {"%"} and max(self.values) <= _WHOLE
        bare = not self.optional and (self.units == {""} or percent)
        return bare and counts(self.values, self.begins)

    @cached_property
    def has_a_course(self) -> bool:
        """Whether it is a fraction without a unit that falls, and goes up on the way, as no rate and no countdown."""
        if self.optional or any(self.units):
            return False
        told = [value for value in self.values if isfinite(value)]
        is_fraction = min(told, default=-1) >= 0 and any(not value.is_integer() for value in told)
        return is_fraction and falls(told) and is_anew([-value for value in told])


#: What counts → the group of the number that it counts to.
_LIMITS: Mapping[str, str] = MappingProxyType({"step": "max_steps", "iter": "iters", "epoch": "epochs"})


class Family(Struct, frozen=True):
    """Lines with the same keys in the same order: columns, and what some are (key → step, iter, epoch or rank).

    `held_out`: what they measure is that of an evaluation, which the lines say and not each key.
    """

    columns: tuple[Column, ...]
    roles: Mapping[str, str]
    is_metric: bool
    #: for tables with a header row, where no key stands beside a number
    pattern: str = ""
    needle: str = ""
    held_out: bool = False
    #: the line that counts closes the record: `Train loss: 0.41`, then `Epoch 3 took 12 s`
    is_ahead: bool = False
    #: the key of the only time that records print, which is that of a step whatever it is called
    time: str = ""


def as_line(family: Family, *, points: bool = False) -> Line:
    """The family's pattern: literal text as far as all rows agree, gaps elsewhere, a group per number.

    `points`: in the log itself, other than in the numbers of the family, points part thousands.
    """
    names: dict[str, Name | None] = {}
    parts: list[str] = []
    literals: list[str] = []
    groups = group_names([column.key for column in family.columns])
    ordered = sorted(family.columns, key=lambda c: c.place)
    players = players_of([column.key for column in ordered])
    reached = -1
    for i, column in enumerate(ordered):
        role = column.role or family.roles.get(column.key)
        if role is None and not column.key:
            continue
        group = role or groups[column.key]
        if role is None and _counts_batches(column):
            names[group] = None
        elif role is None:
            name = players.get(column.key) or _named(column, ordered[i - 1].key if i else "")
            name = Name("step_time_s", seconds_of(column) or 1.0) if column.key == family.time else name
            names[group] = _of_evaluation(name, column.key) if family.held_out else name
        text, literal = _lead(column, ordered[i - 1].behind if i else "", first=i == 0)
        is_behind = i == 0 or column.place == reached + 1 or text.startswith(".*?")
        part = ("" if is_behind else ".*?") + text + _number(column, group, points=points)
        reached = column.place
        limit = _LIMITS.get(role or "")
        if column.maxima and limit is not None:
            part += source(_shared({cell.before for cell in column.maxima}))
            part += _count({cell.unit for cell in column.maxima}, limit, points=points)
            reached += 1
        if column.optional:
            parts.append(f"(?:{part})?")
        else:
            parts.append(part)
            literals.append(literal)
    meaning = "metrics" if family.is_metric else "progress"
    comma = points or any(column.has_decimal_comma for column in family.columns)
    if family.pattern:
        return Line("metrics", family.needle, family.pattern, names=names, comma=comma, points=points)
    return Line(meaning, _needle(literals), "".join(parts), names=names, comma=comma, points=points)


def _counts_batches(column: Column) -> bool:
    """Whether a number in brackets is the batch of a test and its count, as in `Test: [50/196]`; a share has none."""
    in_brackets = bool(column.maxima) and all(cell.before.endswith("[") for cell in column.cells)
    return in_brackets and stands_for("held_out_word", column.key) and not stands_for("printed_metric", column.key)


def seconds_of(column: Column) -> float | None:
    """How many seconds are one of a column's numbers, by the unit behind each or in the name; None for no time."""
    return seconds_in(column.key, column.behind or next(iter(column.units))) if len(column.units) == 1 else None


def _named(column: Column, before: str) -> Name:
    """The canonical name by the key and the one before it, the unit that every number carries, and the numbers."""
    units = {"B" if unit in THOUSANDS else unit for unit in column.units}
    limits = {f"{cell.unit}B" if cell.unit in THOUSANDS else cell.unit for cell in column.maxima}
    units = limits if units == {""} and limits else units
    name = measured(of_pair(column.key, before), units, lambda: column.values)
    if name == Name(column.key) and len(units) == 1 and _RATE.fullmatch(rate := min(units)) is not None:
        return canonical(in_english(rate))  # `speed: 447.8 samples/s`
    most = {cell.value for cell in column.maxima}
    whole = max(most, default=0)
    if len(most) == 1 and 0 < max(column.values, default=0) <= whole and stands_for("score", column.key):
        return Name(name.canonical, name.scale / whole)  # `Accuracy: 375/3840`
    return name


def players_of(keys: Sequence[str]) -> Mapping[str, Name]:
    """Give what two losses mean that one line calls by their letters.

    They are of a discriminator and a generator, `dl=0.7 gl=1.2`, or of training and validation, `tl 0.7 vl 0.8`.
    """
    players = _pair_of(keys_of("two_players"), keys, ("d_loss", "g_loss"))
    return players | _pair_of(keys_of("two_splits"), keys, ("loss", "eval_loss"))


def _pair_of(pairs: Sequence[str], keys: Sequence[str], names: tuple[str, str]) -> dict[str, Name]:
    """What both keys of a pair mean, of the first pair that is printed; `pairs` are keys two by two."""
    printed = {key.lower(): key for key in keys}
    both = (two for two in zip(pairs[::2], pairs[1::2], strict=True) if two[0] in printed and two[1] in printed)
    return {printed[key]: Name(name) for key, name in zip(next(both, ()), names, strict=False)}


def _of_evaluation(name: Name, key: str) -> Name:
    """The name of what an evaluation measures; a rate is none, and a time there is that of no training step."""
    if name.canonical == "step_time_s" or is_duration(key):
        return Name(f"val {key}")
    measures = stands_for("printed_metric", name.canonical) and not stands_for("printed_rate", name.canonical)
    held_out = stands_for("held_out_word", name.canonical) or not measures
    return name if held_out else Name(canonical(f"val {name.canonical}").canonical, name.scale)


def group_names(keys: Sequence[str]) -> dict[str, str]:
    """Each printed key as the name of a group: letters and digits, no fixed meaning, no name twice."""
    taken = {*RESERVED}
    out: dict[str, str] = {}
    for key in keys:
        base = _UNNAMED.sub("_", key).strip("_") or "value"
        base = f"n_{base}" if base[0].isdigit() else base
        name, n = base, 2
        while name in taken:
            name, n = f"{base}_{n}", n + 1
        taken.add(name)
        out[key] = name
    return out


def _number(column: Column, group: str, *, points: bool) -> str:
    if group in {"step", "iter"}:
        glued = column.behind if column.behind in column.units else ""
        parts = r"(?:\.0+)?" if all(map(float.is_integer, column.values)) else r"(?:\.\d+)?"
        return _count(column.units, group, points=points) + parts + (re.escape(glued) + r"\s*" if glued else "")
    if group == "rank":
        return r"(?P<rank>\d{1,6})"
    if column.is_clocked:
        return rf"(?P<{group}>{CLOCKED})"
    suffixed = not column.units.isdisjoint(THOUSANDS)
    number = rf"(?P<{group}>{NS})" if suffixed else rf"(?P<{group}>{N})"
    if column.behind:
        unit = UNIT_SOURCE if any(column.units) and not suffixed else ""
        return rf"{number}{unit}\s?{re.escape(column.behind)}" + (r"\b" if column.behind[-1].isalnum() else "")
    return number if suffixed else number + UNIT_SOURCE


def _count(units: AbstractSet[str], group: str, *, points: bool) -> str:
    """A whole number, or one in thousands (`424k`)."""
    return rf"(?P<{group}>{_COUNT if units.isdisjoint(THOUSANDS) and not points else NS})"


def _shared(texts: AbstractSet[str]) -> str:
    """The longest end that all texts share, blanks counted as one; none where there is no text."""
    if not texts:
        return ""
    flat = [re.sub(r"\s+", " ", text) for text in texts]
    low, high = min(flat, key=_reversed), max(flat, key=_reversed)
    same = next((i for i, (a, b) in enumerate(zip(reversed(low), reversed(high), strict=False)) if a != b), None)
    return low[len(low) - (min(len(low), len(high)) if same is None else same) :]


def _reversed(text: str) -> str:
    return text[::-1]


def _lead(column: Column, behind: str, *, first: bool) -> tuple[str, str]:
    """The pattern before a number, and the literal in it: anchored when all rows agree on it from the line's start.

    `behind` is the name of the number before, which is printed behind it.
    """
    befores = column.befores
    texts = {re.sub(rf"^\s*{re.escape(behind)}", "", text) for text in befores} if behind else befores
    if first and len({text[-1:].isspace() for text in texts}) > 1:  # `[  5000]` and `[400000]`
        texts = {f"{text.rstrip()} " for text in texts}
    shared = _shared(texts)
    whole = all(re.sub(r"\s+", " ", text) == shared for text in texts)
    if (
        whole
        and first
        and column.place == 0
        and not column.optional
        and len(shared) <= _MAX_FIRST
        and not set(shared) & set(SOURCE)
    ):
        return r"^\s*" + source(shared).removeprefix(r"\s*"), shared
    if whole and not first and shared and column.key.split(" ")[-1] not in shared and column.key:
        return source(shared) if shared.strip() else r"\s+", ""  # the key stands before another number
    if column.behind:
        return ("" if first else r".*?"), column.behind
    clipped = re.split("[\x01-\x04]", shared)[-1] if first else shared
    words = column.key.split(" ")
    key = next((end for end in (" ".join(words[at:]) for at in range(len(words))) if end in shared), column.key)
    clipped = _from_a_word(clipped, key)
    text = source(clipped) if clipped.strip() else rf"{re.escape(key)}\W{{0,6}}?" if key else ""
    begins = (clipped or key)[:1].isalnum() and (first or not any(map(_is_glued, texts, repeat(clipped))))
    edge = r"\b" if begins else ""
    gap = "" if first else r".*?"
    return f"{gap}{edge}{text}", clipped or key


def _is_glued(text: str, end: str) -> bool:
    """Whether a digit stands right before the end of the text that follows a number, and so no word begins there."""
    before = re.sub(r"\s+", " ", text).removesuffix(end)
    return bool(end) and (not before or before[-1:].isalnum())


def _needle(literals: Sequence[str]) -> str:
    """The longest word that stands in every line: no blanks, whose number may differ, and no placeholders."""
    words = [word for literal in literals for word in re.split(r"[\s\x01-\x04]+", literal) if word]
    return max(words, key=len, default="")


def _from_a_word(text: str, key: str) -> str:
    """At most 60 characters that begin between words and hold the whole key; empty when the rows share less."""
    text = text[-_MAX_GAP:]
    later = re.sub(r"^\w+", "", text)
    kept = later if len(later.strip()) > len(key) else text
    return kept if len(kept.strip()) >= len(key) else ""


#: What counts steps; a save names one by the way.
_OF_RECORDS = ("metrics", "progress")


def finish(frame: pl.DataFrame, *, ahead: Collection[int] = ()) -> pl.DataFrame:
    """Fill `step`: printed, else `(epoch - first) * batches + batch`, else the epoch, else the last one before.

    Epochs in parts (`1.35`) are none. `first` is 0 where an epoch 0 is printed and 1 elsewhere; a batch counter without
    an epoch starts a new epoch where it falls. A line that names only an epoch takes the last step before it when other
    lines count finer; one of an epoch that is over, as in a table at the end, the last step of that epoch. Lines of the
    kinds `ahead` have the step of the next line that counts.
    """
    if not frame["step"].null_count():
        return frame
    first = 0.0 if frame["epoch"].eq(0).any() else 1.0
    batch = pl.col("iter")
    frame = frame.with_columns(_turn=_turns(frame["iter"]))
    rises = batch.drop_nulls().diff()
    left_out = pl.when(batch.min() == 0).then(rises.filter(rises > 0).min()).otherwise(0)  # the last one is not printed
    per_epoch = pl.coalesce("iters", batch.max() + left_out)
    turn = pl.coalesce(pl.col("epoch") - first, pl.col("_turn"))
    fine = (turn * per_epoch + batch).cast(pl.Int64, strict=False)
    if "held_out" in frame.columns:  # batches of an evaluation are no steps
        fine = pl.when(~pl.col("held_out")).then(fine)
    alone = not (frame["seq"].diff() == 0).any()  # else a line was read in two ways, of which one may know the step
    same_line = [] if alone and frame["seq"].is_sorted() else [pl.col("step").max().over("seq")]
    frame = frame.with_columns(step=pl.coalesce(pl.col("step"), *same_line, fine)).drop("_turn")
    records = frame.filter(pl.col("meaning").is_in(_OF_RECORDS))
    counted = pl.col("step").is_not_null()
    if "at" in frame.columns:  # rows of the chunk before have steps, which may be epochs
        is_epoch = pl.col("epoch").is_null() | (pl.col("step") == pl.col("epoch"))
        counted &= pl.col("at").is_not_null() | ~is_epoch
    in_parts = not (records["epoch"].drop_nulls().drop_nans() % 1 == 0).all()  # of an epoch, which no step is
    if not in_parts and not records.select(counted.any()).item():
        own = pl.when(pl.col("epoch").is_not_nan()).then(pl.col("epoch").cast(pl.Int64, strict=False))
        frame = frame.with_columns(step=pl.coalesce("step", own))  # a save may name an epoch, too
    step, epoch = pl.col("step"), pl.col("epoch")
    is_ahead = pl.col("kind").is_in(ahead)
    if ahead:
        frame = frame.with_columns(step=pl.when(is_ahead).then(step.backward_fill()).otherwise(step))
    at = pl.when(step.is_not_null()).then(epoch).forward_fill()
    of_its_epoch = pl.when(epoch < at).then(step.max().over("epoch"))
    nearest = pl.when(~is_ahead).then(step.forward_fill()) if ahead else step.forward_fill()
    return frame.with_columns(step=pl.coalesce(step, *_in_its_name(frame), of_its_epoch, nearest))


#: The number at the end of a file's name: `pop_2500.pt`.
_NUMBERED = r"[-_=](\d{1,15})\.[A-Za-z]\w*$"


def _in_its_name(frame: pl.DataFrame) -> list[pl.Expr]:
    """The step in the name of a file, where it is between those of the records before and behind the save."""
    if "path" not in frame.columns or not frame["path"].count():
        return []
    number, step = pl.col("path").str.extract(_NUMBERED).cast(pl.Int64, strict=False), pl.col("step")
    behind = step.backward_fill().fill_null(step.max() + step.drop_nulls().diff().max())
    return [pl.when(number.is_between(step.forward_fill(), behind)).then(number)]


def _turns(batch: pl.Series) -> pl.Series:
    """How often a counter has begun again, row by row."""
    filled = batch.forward_fill()
    return (filled < filled.shift(1)).fill_null(value=False).cum_sum().cast(pl.Float64)


#: Share of the lines of a group that belong to records alike: the first of a sample may have lost its own.
_BELOW = 0.9


def continues(places: Sequence[int], rows: Sequence[tuple[Slot, ...]], heads: Sequence[Sequence[int]]) -> bool:
    """Whether lines carry on the records that other lines begin, and no number of them but a time lacks a name.

    They are indented and each right below such a line, or there is one of them in each block that those begin.
    `places` are the lines' own, each of `heads` those of the lines of one kind that count steps or epochs.
    """
    if not all(slot.key or slot.over or slot.is_time for row in rows for slot in row):
        return False
    begun = {place + 1 for kind in heads for place in kind}
    below = sum(place in begun for place in places)
    if all(row[0].before[:1].isspace() for row in rows) and below >= _BELOW * len(places):
        return True
    return any(_is_one_of_each(places, kind) for kind in heads)


def is_closed(places: Sequence[int], heads: Sequence[Sequence[int]]) -> bool:
    """Whether lines that count close the records of lines that do not: none of any kind is above the first of these."""
    if not heads or min(kind[0] for kind in heads) < places[0]:
        return False
    return any(_is_one_of_each([-place for place in places[::-1]], [-head for head in kind[::-1]]) for kind in heads)


def _is_one_of_each(places: Sequence[int], heads: Sequence[int]) -> bool:
    """Whether one of the places, and no more, lies behind each of the heads and before the next one."""
    blocks = np.searchsorted(heads, places)
    per_block = np.bincount(blocks, minlength=len(heads) + 1)[1:]
    return bool((per_block == 1).sum() >= _BELOW * max(len(heads), len(places)))


def sums_up(places: Sequence[int], held_out: Sequence[int], heads: Sequence[int]) -> bool:
    """Whether the last record above each of some lines is one of an evaluation, and none above them trains.

    `held_out` and `heads`: places of the records of an evaluation and of those that train, both in order.
    """
    own, trains = (np.searchsorted(kind, places) for kind in (held_out, heads))
    if not min(own, default=0):
        return False
    last = np.asarray(held_out)[own - 1]
    return bool((last > np.where(trains > 0, np.asarray([*heads, -1])[trains - 1], -1)).all())
