"""Tables whose names stand once, in a header row: `| step | loss |`, `epoch  train_loss  accuracy` or `step;loss`.

Bars may be box-drawing characters, as rich and others print them, of a header other ones than of its rows. A header may
take two lines between bars (`Mini-batch` above `Loss`), and rows may begin with a word that says on which data they
measure, above which the header has a word, too. Of a list in a cell the first number is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from forensics.dialects._numbers import CLOCKED
from forensics.dialects.learned.families import Column, Family, group_names
from forensics.dialects.learned.masking import Slot
from forensics.dialects.learned.roles import roles_of
from forensics.dialects.names import is_duration
from forensics.dialects.spec import N
from forensics.knowledge.vocabulary import stands_for, words_for
from forensics.patterns import lazily

#: Shares and seconds may carry their sign: `73.50%`, `93.6s`.
_SIGNS = "%s"
_NUMBER = lazily(rf"^(?:{N})[{_SIGNS}]?$")
_CLOCK = lazily(rf"^{CLOCKED}$")
#: What every row holds in one of its cells.
_ANY_NUMBER = lazily(r"\d|[nN][aA][nN]|[iI][nN][fF]")
_REST = rf"(?:, *{N})*\]"
_LIST = lazily(rf"^\[{N}{_REST}$")
#: Before the names of a header: the mark of a comment, as `numpy.savetxt` writes it.
_COMMENT = lazily(r"^\s*#+\s+")
#: A norm among names that blanks part, whose bars part no cells.
_NORM = lazily(r"(?<=\s)\|{1,2}(\w{1,4})\|{1,2}(?=\s|$)")
#: The word before the numbers of a row: `! Train   12  0.5`.
_LABEL = lazily(r"^[\s!*>-]*(?P<label>[A-Za-z]\w*)\s+(?=[-+.\d])")
_BARS, _MARKS = "|│┃║", ";,"
_WORD = lazily(r"[^\W\d_]+")
_MAX_CELLS = 24
_BARS_OF_A_NORM = (2, 4)
#: TRL's longest name of a metric, `sampling/sampling_logp_difference/mean`, has 38.
_MAX_NAME_CHARS = 48
#: All lines are searched for the rows of each header, so a file of nothing but headers must not cost their square.
_MAX_HEADERS, _MAX_LINE_CHARS = 16, 1000


def _mark(header: str) -> str:
    """What parts the cells of a table without bars: a semicolon, else a comma, else nothing but blanks."""
    return next((mark for mark in _MARKS if mark in header), "")


def _cells(line: str, mark: str) -> list[str]:
    """The cells of a row: between bars, else between marks where its header has them, else blanks."""
    line = line.strip()
    if (bar := _between(line)) in _BARS:
        return [cell.strip() for cell in line.strip(bar).split(bar)]
    if mark:
        return [cell.strip() for cell in line.split(mark)]
    return re.split(r"\s{2,}|\t", line) if re.search(r"\S(?:\s{2,}|\t)\S", line) else line.split()


def _is_header(cells: Sequence[str]) -> bool:
    return (
        2 <= len(cells) <= _MAX_CELLS
        and len(set(cells)) == len(cells)
        and all(cell[:1].isalpha() and len(cell) <= _MAX_NAME_CHARS for cell in cells)
        and (_counted(cells) or any(stands_for("header_of_losses", cell) for cell in cells))
    )


def _counted(cells: Sequence[str]) -> bool:
    return any(map(_is_counter, cells)) and any(map(_is_measure, cells))


def _is_measure(cell: str) -> bool:
    metric = stands_for("header_of_metrics", cell) or stands_for("printed_metric", cell)
    return metric or stands_for("whole_loss", cell) or stands_for("objective", cell)


@lru_cache(maxsize=4096)
def _is_counter(cell: str) -> bool:
    word = cell.lower()
    named = stands_for("counter_of_steps", word) or stands_for("counter_of_epochs", word)
    return named or stands_for("header_of_counters", cell)


def tables(lines: Sequence[str], repeats: int) -> Iterator[tuple[Family, list[int]]]:
    """Families of rows under a header that names a loss, or a counter and a metric, with the places of these rows."""
    seen: set[tuple[str, ...]] = set()
    last = next((at for at in reversed(range(len(lines))) if _ANY_NUMBER.search(lines[at])), 0)
    for i, printed in enumerate(lines[:last]):
        line = _NORM.sub(r"\1norm", printed) if printed.count("|") in _BARS_OF_A_NORM else printed
        named = line.lstrip(f" \t#{_BARS}")[:1]  # a header begins with a name: most lines are not cut for it
        if not named.isalpha() or len(line) > _MAX_LINE_CHARS:
            continue
        mark = _mark(line)
        for header, is_labelled in _headers(line, lines[i + 1 : i + 2], mark):
            if header in seen or not _is_header(header):
                continue
            if len(seen) == _MAX_HEADERS:
                return
            seen.add(header)
            below = [*enumerate(lines)][i + 1 :]
            found = [one for one in _under(header, below, mark, is_labelled=is_labelled) if len(one[1]) >= repeats]
            yield from found
            if found:
                break


def splits(lines: Sequence[str], shapes: Sequence[str], repeats: int) -> Iterator[tuple[Family, list[int]]]:
    """Families of rows that name a metric, under headers that name the data: `| metric | train | valid |`.

    Such a table comes again with each epoch, so rows of one name are a family. No digit is part of a header, so those
    of the `shapes` of the lines tell whether there is one; few shapes make a log.
    """
    heads = {shape for shape in {*shapes} if heads_splits(shape)}
    if not heads:
        return
    header: tuple[str, ...] = ()
    rows: dict[tuple[str, tuple[str, ...]], list[tuple[int, list[str]]]] = {}
    for at, (line, shape) in enumerate(zip(lines, shapes, strict=True)):
        if len(line) > _MAX_LINE_CHARS or _between(line) not in _BARS:
            continue
        name, *told = _cells(line, "")
        if shape in heads:
            header = tuple(told)
        elif len(told) == len(header) > 0 and _is_measure(name) and _is_row(told, has_bars=False):
            rows.setdefault((name, header), []).append((at, told))
    for (name, data), own in rows.items():
        if len(own) >= repeats and len(set(data)) == len(data):
            yield _of_splits(name, data, [told for _, told in own]), [at for at, _ in own]


def heads_splits(line: str) -> bool:
    """Whether a line is a row between bars whose cells, but for the first one, name the data alone."""
    cells = _cells(line, "")[1:] if _between(line) in _BARS else []
    return len(cells) > 1 and all(stands_for("names_a_split_only", cell) for cell in cells)


def _of_splits(name: str, data: Sequence[str], rows: Sequence[Sequence[str]]) -> Family:
    """The family of the rows of one metric, whose cells are that of each of the data."""
    keys = [f"{split} {name}" for split in data]
    columns = tuple(
        Column(key, tuple(Slot(key, row[i].rstrip(_SIGNS), "", "", over=False) for row in rows), (), place=i)
        for i, key in enumerate(keys)
        if not any(_is_absent(row[i]) for row in rows)
    )
    named = group_names([column.key for column in columns])
    cells = [rf"(?P<{named[key]}>{N})[{_SIGNS}]?" if key in named else rf"[^{_BARS}]*?" for key in keys]
    gap = rf"\s*[{_BARS}]\s*"
    pattern = rf"^\s*[{_BARS}]?\s*{re.escape(name)}{gap}{gap.join(cells)}\s*[{_BARS}]?\s*$"
    return Family(columns, {}, is_metric=True, pattern=pattern, needle=name)


def _headers(line: str, below: Sequence[str], mark: str) -> Iterator[tuple[tuple[str, ...], bool]]:
    """What the names of a header may be, and whether its rows begin with a word."""
    bare = _COMMENT.sub("", line)
    cells = [cell.rstrip(":.") for cell in _cells(bare, mark)]
    if _between(line) in _BARS:
        second = _cells(below[0], mark) if below else []
        if (
            len(second) == len(cells) > 1
            and any(second)
            and all(not cell or cell.lstrip("(")[:1].isalpha() for cell in second)
        ):
            yield tuple(f"{a} {b}".strip() for a, b in zip(cells, second, strict=True)), False
    yield tuple(cells), False
    if not mark and _between(line) not in _BARS:
        words = bare.split()
        if words != cells:
            yield tuple(words), False
        first = next((at for at, word in enumerate(words) if _is_counter(word)), 0)
        if first and all(stands_for("names_a_split_only", word) or not _is_measure(word) for word in words[:first]):
            yield tuple(words[first:]), True


def _under(
    header: tuple[str, ...], lines: Sequence[tuple[int, str]], mark: str, *, is_labelled: bool
) -> Iterator[tuple[Family, list[int]]]:
    """The family of the rows below a header; where a word of each says on which data it measures, one for each word."""
    rows: dict[str, list[tuple[int, list[str]]]] = {}
    places: dict[str, int | None] = {}
    marks: dict[str, str] = {}
    for at, text in lines:
        label = _LABEL.match(text) if is_labelled else None
        if is_labelled and label is None:
            continue
        row = text[label.end() :] if label is not None else text
        cells = _cells(row, mark)
        cells = cells if len(cells) == len(header) else row.split()  # some numbers are wider than others
        if len(cells) == len(header) and _is_row(cells, has_bars=_between(text) in _BARS):
            place = None if is_labelled else _place_of_split(cells)
            word = label["label"] if label is not None else "" if place is None else _WORD.findall(cells[place])[0]
            places[word] = place
            marks.setdefault(word, _between(text))
            rows.setdefault(word, []).append((at, cells))
    for label, told in rows.items():
        between = mark if mark and marks[label] not in _BARS else marks[label]
        if (family := _family(header, [cells for _, cells in told], between, label, places[label])) is not None:
            yield family, [at for at, _ in told]


def _place_of_split(cells: Sequence[str]) -> int | None:
    """Where among the cells of a row the name of its data stands, a mark perhaps beside it: `valid *`."""
    words = [_WORD.findall(cell) for cell in cells]
    return next(
        (at for at, told in enumerate(words) if len(told) == 1 and stands_for("names_a_split_only", *told)), None
    )


def _is_absent(cell: str) -> bool:
    return re.fullmatch(words_for("absent_cell"), cell) is not None


def _is_row(cells: Sequence[str], *, has_bars: bool) -> bool:
    """Whether cells are numbers; between bars some may be words, marks or empty: `| 3 | 0.41 | * | cosine |`."""
    told = [cell for cell in cells if not _is_absent(cell)]
    numbers = sum(bool(_NUMBER.match(cell) or _CLOCK.match(cell) or _LIST.match(cell)) for cell in told)
    return 0 < numbers == len(told) or (has_bars and 2 * numbers > len(cells))


def _told(rows: Sequence[Sequence[str]], i: int) -> list[str]:
    """The cells of one column that hold a value."""
    return [row[i] for row in rows if not _is_absent(row[i])]


def _between(line: str) -> str:
    """The text between the cells of every row: one that is NaN throughout has no decimal point."""
    return next((mark for mark in f"{_BARS}\t" if mark in line), " ")


def _family(
    header: tuple[str, ...], rows: list[list[str]], between: str, label: str, place: int | None
) -> Family | None:
    lists = [i for i in range(len(header)) if any(map(_LIST.match, _told(rows, i)))]
    rows = [[cell[1:].split(",")[0].rstrip("]") if i in lists else cell for i, cell in enumerate(row)] for row in rows]
    clocked = [i for i in range(len(header)) if is_duration(header[i]) and all(map(_CLOCK.match, _told(rows, i)))]
    kept = [i for i in range(len(header)) if (told := _told(rows, i)) and all(map(_NUMBER.match, told))]
    kept = sorted({*kept, *clocked})
    partly = frozenset(i for i in kept if len(_told(rows, i)) < len(rows))
    columns = tuple(
        Column(
            header[i],
            tuple(
                Slot(header[i], cell, "s", "", over=False)
                if i in clocked
                else Slot(header[i], cell.rstrip(_SIGNS), "", "", over=False)
                for cell in _told(rows, i)
            ),
            (),
            place=i,
            optional=i in partly,
        )
        for i in kept
    )
    roles = roles_of([column for column in columns if all(row[column.place][-1:] not in _SIGNS for row in rows)])
    if not roles and any(map(_is_counter, header)):
        return None
    named = group_names(header)
    groups = [roles.get(cell, named[cell]) for cell in header]
    bar = between if between in _BARS + _MARKS else ""
    gap = rf"\s*[{bar}]\s*" if bar else r"\s+"
    shown = {i: rf"(?P<{groups[i]}>{CLOCKED if i in clocked else N})[{_SIGNS}]?" for i in kept}
    shown |= {i: rf"\[(?P<{groups[i]}>{N}){_REST}" for i in lists}
    words = rf"[^{bar}]*?" if bar and bar in _BARS else r"[\d:]+"
    cells = [
        rf"(?:{shown[i]}|{words_for('absent_cell')})" if i in partly else shown.get(i, words)
        for i in range(len(header))
    ]
    edge = rf"\s*[{bar}]?\s*" if bar and bar in _BARS else r"\s*"
    if place is not None:
        cells[place] = rf"[^\w{bar}]*{label}[^\w{bar}]*"
    lead = rf"[\s!*>-]*{label}\s+" if label and place is None else edge
    pattern = f"^{lead}{gap.join(cells)}{edge}$"
    held_out = stands_for("held_out_word", label)
    return Family(columns, roles, is_metric=True, pattern=pattern, needle=label or between, held_out=held_out)
