"""Lines of nothing but numbers, as `print(step, loss)` or `print(step, loss.item(), norm)` leaves them.

No name tells what they are, so their numbers must: the first rises evenly, and the second falls as a loss does, or is
NaN, or goes up and down above 1 where a gradient norm is all that follows it: a loss that does not fall. What follows
is kept without a name; a number that is ever not finite is no rate, time or share, and beside a loss it is the gradient
norm. So is the only one behind it where it jitters as a norm does: a rate of learning is smooth, the time of a step and
a throughput jitter by a few percent, and a score is a share.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isfinite, log

from forensics.dialects.learned.families import Column, Family
from forensics.dialects.learned.masking import Slot, shapes_of, slots, source
from forensics.dialects.names import enumerates, falls
from forensics.dialects.spec import N
from forensics.knowledge.vocabulary import stands_for
from forensics.patterns import lazily
from forensics.stats.spread import median_of

#: The texts before the numbers of alike lines, and the numbers of each.
Rows = dict[tuple[str, ...], list[tuple[Slot, ...]]]
#: Fewer lines enumerate something.
_LEAST_LINES = 12
_LEAST_WIDTH, _MOST_WIDTH = 2, 4
#: A counter, a loss and one number more.
_NAMED = 3
_MOST_CHARS = 200
_BETWEEN = r"[\s,:;]+"
_TENSOR = (r"(?:tensor\()?", r"(?:(?:, [^)]*)?\))?")
#: Before the numbers the time since the start and to the end, and behind the counter its share of the plan, as the
#: recurrent networks of PyTorch's tutorials print them: `0m 12s (- 3m 4s) (1500 2%) 2.85`.
_TIMES = r"(?:(?:\d+h )?\d+m \d+s(?: \(- ?(?:\d+h )?\d+m \d+s\))? )?"
_COUNTER = rf"[\s(\[]*{_TIMES}[(\[]?({{}}\d+)(?: +\d+(?:\.\d+)?%[)\]]?)?"
_FIRST = lazily(_COUNTER.format(""))
_ROW = lazily(rf"{_COUNTER.format('')}(?:{_BETWEEN}{_TENSOR[0]}{N}{_TENSOR[1]}){{1,3}}[\s)\]]*")
_NUMBER = lazily(rf"(?<![\w.]){N}(?![\w.])")
#: So many numbers in the end that are not finite are no single bad record.
_FEW_LOST = 3
_BLANKS = lazily(r"\s+")
#: Of the rises of a counter so many may be falls: a run that began again.
_FALLS = 0.2
#: Norms of one step and the next differ so much, in the median of their logarithms: 0.1 where their spread is 0.1, and
#: twice that is usual; times of steps of a quiet machine differ by 0.03.
_JITTER = 0.1
#: Above it a number is a count or a throughput.
_MOST_NORM = 1000.0
#: A loss that does not fall may rise so much from its first third to its last; a score rises more.
_GROWN = 1.1
#: All of something, in percent.
_WHOLE = 100


def nameless(lines: Sequence[str]) -> Iterator[Family]:
    """The family of lines without a name that have a counter and a loss, by the number of their cells."""
    rows: dict[tuple[int, str], list[list[str]]] = {}
    for line in lines:
        if len(line) <= _MOST_CHARS and _ROW.fullmatch(line):
            counter = _FIRST.match(line)
            cells = [counter[1], *_NUMBER.findall(line, counter.end())] if counter is not None else []
            rows.setdefault((len(cells), "\t" if "\t" in line else " "), []).append(cells)
    for (width, between), found in rows.items():
        if _LEAST_WIDTH <= width <= _MOST_WIDTH and len(found) > _LEAST_LINES:
            columns = [
                Column(str(at), tuple(map(_cell, cells)), (), place=at)
                for at, cells in enumerate(zip(*found, strict=True))
            ]
            if _counts(columns[0]) and (_is_loss(columns[1]) or _stays(columns)):
                yield _family(columns, between)


def rows_alike(lines: Sequence[str]) -> Rows:
    """Give the numbers of lines alike but for these, by the texts before each."""
    rows: Rows = {}
    for line, shape in zip(lines, shapes_of(lines), strict=True):
        row = slots(line, shape) if len(line) <= _MOST_CHARS else ()
        if _LEAST_WIDTH <= len(row) <= _MOST_WIDTH and {slot.unit for slot in row} <= {"", "%"}:
            rows.setdefault(tuple(_BLANKS.sub(" ", slot.before) for slot in row), []).append(row)
    return rows


def unnamed(rows: Rows, *, of_splits: bool = False) -> Iterator[Family]:
    """Families of lines alike but for their numbers, where no name tells the loss: `[40] 3.21`, `40 | train | 3.21 |`.

    What counts stands first, behind its epoch perhaps, and what becomes half as large, up and down, or is lost for
    good, stands next; behind the share of the plan that a counter has reached, it may stay, too. `of_splits`: only
    lines that begin with the name of their data, `train 050 2.18 21.3`.
    """
    for texts, found in rows.items():
        columns = [Column("", cells, (), place=at) for at, cells in enumerate(zip(*found, strict=True))]
        if len(found) > _LEAST_LINES and (not of_splits or stands_for("names_a_split_only", found[0][0].key)):
            yield from _of_row(columns, texts)


def _of_row(columns: Sequence[Column], texts: Sequence[str]) -> Iterator[Family]:
    """The family of one kind of lines, with the texts before their numbers."""
    told = [column for column in columns if not column.cells[0].over]
    shares = [column for column in told[1:2] if _is_share(column, told[0])]
    told = [column for column in told if column not in shares]
    ahead = len(told) > _LEAST_WIDTH and enumerates(told[0].values)
    if len(told) < _LEAST_WIDTH + ahead or any(cell.unit for column in told for cell in column.cells):
        return
    counter, loss = told[ahead], told[ahead + 1]
    anew = _begins_anew(counter.values) or (ahead and any(b < a for a, b in pairwise(told[0].values)))
    falls = (loss.has_a_course and _halves(loss.values)) or _is_lost(loss)
    if not (_counts(counter, anew=anew) and _is_unnamed(loss.cells[0]) and (falls or (shares and _wavers(loss)))):
        return
    held_out = any(stands_for("held_out_word", cell.key) for cell in (told[0].cells[0], loss.cells[0]))
    roles = {counter.place: "iter" if anew else "step", loss.place: "eval_loss" if held_out else "loss"}
    if held_out and anew:
        del roles[counter.place]  # batches of an evaluation
    roles |= {told[0].place: "epoch"} if ahead else {}
    roles |= {column.place: "grad_norm" for column in told[ahead + 2 :][:1] if _is_lost(loss) and _is_lost(column)}
    groups = [roles.get(column.place, f"value_{column.place + 1}") for column in columns]
    cells = (
        f"{source(text)}{N}%" if column in shares else f"{source(text)}(?P<{group}>{N})"
        for text, group, column in zip(texts, groups, columns, strict=True)
    )
    words = re.findall(r"[^\s\x01-\x04]+", " ".join(texts))
    needle = max(words, key=len, default=" ")
    yield Family(tuple(columns), {"": "step"}, is_metric=True, pattern="^" + "".join(cells), needle=needle)


def _is_share(column: Column, counter: Column) -> bool:
    """Whether a column is in percent how far a counter is of one plan."""
    most = max(column.values)
    if column.units != {"%"} or not 0 < most <= _WHOLE:
        return False
    last = max(counter.values)
    near = (abs(b - a * most / last) <= 1 for a, b in zip(counter.values, column.values, strict=True))
    return last > 0 and all(near)


def _wavers(column: Column) -> bool:
    """Whether it goes up and down as a loss that does not fall, no share and no count, or is lost."""
    told = [value for value in column.values if isfinite(value)]
    if len(told) < len(column.values):
        return _is_loss(column)
    turns = sum((b - a) * (c - b) < 0 for a, b, c in zip(told, told[1:], told[2:], strict=False))
    third = len(told) // 3
    rises = median_of(told[-third:]) > _GROWN * median_of(told[:third])
    moves = any(not value.is_integer() for value in told) and 2 * turns > len(told) - 2
    return moves and not rises and min(told) >= 0 and 1 < median_of(told) < _MOST_NORM


def _is_lost(column: Column) -> bool:
    """Whether fractions went up and down until none of them was finite any more, whatever their course."""
    told = [value for value in column.values if isfinite(value)]
    lost = [not isfinite(value) for value in column.values[len(told) :]]
    moves = any(not value.is_integer() for value in told) and any(b > a for a, b in pairwise(told))
    return len(told) > _LEAST_LINES and len(lost) >= _FEW_LOST and all(lost) and moves


def _begins_anew(values: Sequence[float]) -> bool:
    """Whether a counter begins anew twice at least, each time where it had reached the same number."""
    falls = [i for i, (a, b) in enumerate(pairwise(values), 1) if b < a]
    return len(falls) > 1 and {values[i] for i in falls} == {values[0]} and len({values[i - 1] for i in falls}) == 1


def _is_unnamed(cell: Slot) -> bool:
    """Whether no name precedes a number, or one that says only on which data."""
    return not cell.key or stands_for("names_a_split_only", cell.key)


def _halves(values: Sequence[float]) -> bool:
    """Whether the last third is half as large as the first numbers, or less."""
    told = [value for value in values if isfinite(value)]
    return 2 * median_of(told[-(len(told) // 3) :]) <= median_of(told[: max(3, len(told) // 20)])


def _cell(text: str) -> Slot:
    return Slot("", text, "", "", over=False)


def _counts(column: Column, *, anew: bool = False) -> bool:
    """Whether it rises by the same whole number, but where a run or, `anew`, an epoch began again."""
    rises = [b - a for a, b in pairwise(column.values)]
    up = {rise for rise in rises if rise > 0}
    return len(up) == 1 and (anew or sum(rise <= 0 for rise in rises) <= _FALLS * len(rises))


def _is_loss(column: Column) -> bool:
    told = [value for value in column.values if isfinite(value)]
    parts = any(not value.is_integer() for value in told)
    return not told or (parts and min(told) >= 0 and falls(told))


def _stays(columns: Sequence[Column]) -> bool:
    """Whether a loss that does not fall precedes a gradient norm: a rate is smooth, and a score is a share."""
    if len(columns) != _NAMED or not all(map(isfinite, (*columns[1].values, *columns[2].values))):
        return False
    values = columns[1].values
    turns = sum((b - a) * (c - b) < 0 for a, b, c in zip(values, values[1:], values[2:], strict=False))
    moves = any(not value.is_integer() for value in values) and 2 * turns > len(values) - 2
    return moves and min(values) >= 0 and 1 < median_of(values) < _MOST_NORM and _jitters(columns[2])


def _jitters(column: Column) -> bool:
    """Whether the numbers are positive and go up and down as a gradient norm does, and are no shares."""
    values = column.values
    if min(values) <= 0 or median_of(values) > _MOST_NORM or len({*values}) < len(values) // 2:
        return False
    steps = [log(b / a) for a, b in pairwise(values)]
    turns = sum(a * b < 0 for a, b in pairwise(steps))
    return median_of([*map(abs, steps)]) >= _JITTER and 2 * turns > len(steps)


def _family(columns: Sequence[Column], between: str) -> Family:
    lost = next((column.place for column in columns[2:] if not all(map(isfinite, column.values))), None)
    if lost is None and len(columns) == _NAMED and _jitters(columns[2]):
        lost = columns[2].place
    rest = ("grad_norm" if column.place == lost else f"value_{column.place + 1}" for column in columns[2:])
    groups = ["step", "loss", *rest]
    cells = [rf"(?P<{group}>{N})" for group in groups]
    middle = _BETWEEN.join(rf"{_TENSOR[0]}{cell}{_TENSOR[1]}" for cell in cells[1:])
    pattern = rf"^{_COUNTER.format('?P<step>')}{_BETWEEN}{middle}[\s)\]]*$"
    return Family(tuple(columns), {columns[0].key: "step"}, is_metric=True, pattern=pattern, needle=between)
