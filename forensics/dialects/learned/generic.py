"""The dialect of a log nobody has seen: learned from sampled lines.

Lines whose numbers carry the same keys in the same order, again and again, are a trainer's metric lines; prose,
source code, argument dumps and profiler tables are not. A group of lines is trusted when it repeats at least 5 times
(3 in a tiny file; twice where it is an evaluation with a step beside such lines; once in an excerpt of a few lines,
where its loss is NaN), names a loss-like quantity or counts steps beside another named number, and its counter grows.
`nan` counts only as the value of a key: one whose other rows are numbers, or a loss or a gradient norm. Units are
unknown, so numbers are kept as printed; names still go through the table of canonical names.

The step is, in order of preference: a growing counter; `(epoch - first) * batches + batch` where the counter starts
again in each epoch; a counter that wraps at `M` of `N/M`; the epoch; the first whole number that rises evenly before a
loss, or before a fraction that falls as a loss does. Which one, the values decide. A line that counts nothing has the
step of the one before it that does, or of the one behind it where that closes each record.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain, pairwise
from operator import itemgetter

from forensics.dialects._counters import is_of_data
from forensics.dialects.learned.families import (
    Column,
    Family,
    as_line,
    continues,
    finish,
    is_closed,
    players_of,
    seconds_of,
    sums_up,
)
from forensics.dialects.learned.headers import heads_splits, splits, tables
from forensics.dialects.learned.masking import NUMBER, Slot, names_a_metric, names_hold, shapes_of, slots
from forensics.dialects.learned.nameless import nameless, rows_alike, unnamed
from forensics.dialects.learned.roles import counts_batches, last_word, roles_of
from forensics.dialects.names import canonical, counts, enumerates, is_each_time, is_since_start, measured
from forensics.dialects.spec import Dialect, Line
from forensics.dialects.trainers.tables import ANY_LOG
from forensics.io.rank_words import words_before
from forensics.knowledge.paths import WEIGHTS
from forensics.knowledge.vocabulary import in_english, keys_of, stands_for, words_for
from forensics.patterns import lazily
from forensics.values import replace

#: Values that semicolons part, as statements are: `acc: 39.1; ppl: 5.7; lr: 0.002;`.
_PARTED = lazily(r"(?:\w+: *[-+]?[\w.]+[^;:]*; *){2}")
#: Program text, and the summary that a tracker prints of a run that is over.
_CODE = lazily(
    r"\s*(?:(?:def|class|import|from|return|if|for|while|assert|print)\b.*[:)\]]\s*$"
    r"|[#@](?!\d|#*\s(?:\w+ ){0,2}\w+:? \[?\d)|//|wandb:\s)"
)
#: Who printed a line, within it, behind its time too (masked: \x01): `INFO [rank 3] step 10 …`, `rank=3 | step 10 …`,
#: `{"rank": 3, …`; no rank of a matrix or a machine.
_SPEAKER = lazily(
    r"(?i)(?:^|[\[(|,;{\x01]|:\d\d(?:[.,]\d{1,9})?Z?\]?|(?:^|[\s\]])(?:INFO|WARN(?:ING)?|DEBUG))"
    r" ?\"?rank\"?(?:[ =_]|: ?)?(\d{1,6})\b"
)
#: Words for a rank, and those for a process, which may count something else.
_PROCESSES = words_before("process")
_OWN = "|".join(sorted({"rank", *_PROCESSES}))
#: A file of weights, before the number of a line.
_WEIGHTS = lazily(rf"(?:{WEIGHTS}|\.(?:tar|pkl))\b")
#: The shortest of them: a line without one names no rank.
_NAMED = sorted(word for word in {"rank", *_PROCESSES} if not any(other in word for other in _PROCESSES - {word}))
#: The same as `_SPEAKER` anywhere in a line, where the numbers are the ranks'.
_NUMBERED = lazily(
    rf"(?i)(?:^|[\s(\[|,])\"?(?:(?:global|world|mpi|dist|process)_)?(?:{_OWN})\"?(?:[ =_]|: ?)(\d{{1,6}})\b"
)
#: A number whose point parts thousands, one with its decimals behind a comma, and one with them behind a point.
_THOUSANDS = lazily(r"(?<![\w.,])([1-9]\d{0,2})\.(\d{3})(?![\w.]|,\d{3})")
_DECIMALS = lazily(r"(?<![\w.,\[(])(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))(?![\w.,])")
_POINT = lazily(r"(?<![\w.,])(?:\d+\.(?:\d{1,2}|\d{4,})|0\.\d+)(?![\w.])")
_GLUED = lazily(r"(?<![\w.+/:\\-])([A-Za-z]{1,3})(\d{1,9})(?=[\s,:;|)\]]|$)")
#: Marks the keys of a line that begins as one of an evaluation: `[val] step 40 loss 0.3 acc 0.8`.
_HELD_OUT = "\x05"
#: Marks a key whose number has a maximum beside it; a printed key may end with a slash, and with none of these.
_OVER = NUMBER
#: Keys of a line in order → where it is in the sample, and its numbers.
_Groups = dict[tuple[str, ...], list[tuple[int, tuple[Slot, ...]]]]
#: The keys of alike lines, where they are in the sample, and their numbers.
_Group = tuple[tuple[str, ...], list[int], list[tuple[Slot, ...]]]
#: All of something, in percent.
_WHOLE = 100
#: A metric is below so many folders at most: `critic/rewards/mean`.
_MOST_FOLDERS = 2
_MIN_REPEATS, _MIN_TINY, _TINY_LINES = 5, 3, 60
#: Evaluations are rare: beside training lines that repeat, two that name their step are enough.
_MIN_EVALUATIONS = 2
#: Whoever cuts so few lines out of a log has found them by their loss.
_EXCERPT_LINES = 12
_MAX_FAMILIES, _MAX_COLUMNS, _MAX_CHARS = 24, 48, 2000
_MAX_HOMES = 64
#: A rate that warms up and decays turns once, one of two cycles three times.
_MOST_TURNS = 4
#: Above each title there may be a time, a level and a module.
_MAX_TITLE = 120
_TITLES = ("title_of_evaluation", "title_of_training")
_COUNTERS = frozenset({"step", "iter", "epoch"})
_RANKS = frozenset(keys_of("rank_of_row"))
#: Keys may stand twice in a line that prints more of them once, and more than so many: a best score, a running mean.
_MOST_TWICE = 2


def learn(lines: Sequence[str], ranks: Sequence[int | None] = (), *, beside: bool = False) -> Dialect | None:
    """Find the metric lines among sampled lines and describe them as a dialect; None when nothing repeats that way.

    `lines` are printed segments in file order, without line ends, colour codes and rank prefixes; `ranks` are the ranks
    that printed them, where prefixes name some. A counter grows within a rank; ranks print in any order.
    `beside`: another dialect reads what trains.
    """
    points = _parts_thousands(lines)
    lines = [_THOUSANDS.sub(r"\1\2", line) for line in lines] if points else lines
    lines = _parted(lines)
    ranks = _speakers(lines, ranks)
    if len(set(ranks)) > 1:
        order = sorted(range(len(lines)), key=lambda at: -1 if ranks[at] is None else ranks[at] or 0)
        lines, ranks = [lines[at] for at in order], [ranks[at] for at in order]
    else:
        ranks = ()
    repeats = _MIN_TINY if len(lines) < _TINY_LINES else _MIN_REPEATS
    excerpt = len(lines) < _TINY_LINES and sum(bool(line.strip()) for line in lines) <= _EXCERPT_LINES
    shapes = shapes_of(lines)
    titles = _titles(lines, shapes)
    under_headers = [*tables(lines, repeats), *splits(lines, shapes, repeats)]
    rows = {at for _, places in under_headers for at in places}
    groups = _merged(_grouped(((at, line) for at, line in enumerate(lines) if at not in rows), shapes))
    found = [*_families(groups, ranks, repeats, titles, excerpt=excerpt), *(family for family, _ in under_headers)]
    found = found[:_MAX_FAMILIES]
    found = _evaluations_first(found, beside=beside)
    found = _with_nameless(found, lines)
    if not any(family.is_metric for family in found):
        return None
    shown = _with_lone_time(found)
    learned = tuple(as_line(family, points=points) for family in shown)
    return Dialect(
        name="generic",
        title="Learned from the log itself",
        lines=(*learned, *_sections(lines, titles, repeats), *ANY_LOG["saves"].lines),
        sniff=tuple(line.pattern for line in learned if line.meaning == "metrics"),
        finish=partial(finish, ahead=[at for at, family in enumerate(shown) if family.is_ahead]),
        doc=__doc__ or "",
    )


def _with_nameless(found: list[Family], lines: Sequence[str]) -> list[Family]:
    """Add the families of lines without a name where no other one is of metrics, or none tells a loss."""
    if not any(family.is_metric for family in found):
        found = [*found, *nameless(lines)]
    if any(map(_tells_a_loss, found)) and any(family.is_metric for family in found):
        return found
    rows = rows_alike(lines)
    if not any(family.is_metric for family in found):
        found = [*found, *unnamed(rows)]
    return found if any(map(_tells_a_loss, found)) else [*unnamed(rows, of_splits=True), *found]


def _tells_a_loss(family: Family) -> bool:
    return bool(family.pattern) or any(stands_for("printed_loss", column.key) for column in family.columns)


def _evaluations_first(found: list[Family], *, beside: bool) -> list[Family]:
    """Families of evaluations before those that would read their lines, too; where all are, it is the script's name."""
    own = (one for one in found if one.is_metric and not one.held_out)
    trains = beside or any(one.roles or one.pattern or _tells_a_loss(one) for one in own)
    held_out = found if trains else [replace(one, held_out=False) for one in found]
    return sorted(held_out, key=lambda one: not one.held_out)


def _with_lone_time(found: list[Family]) -> list[Family]:
    """Mark the only time in seconds that the records print as a step's time, by whatever name, where it is no clock.

    A time of an evaluation, one that is still to come (it only falls) and a wait do not count.
    """
    own = [one for one in found if one.is_metric and not one.held_out]
    times = [
        (one, c) for one in own for c in one.columns if c.key and c.key not in one.roles and seconds_of(c) is not None
    ]
    if len(times) != 1 or any(_is_time(c) for one in own for c in one.columns):
        return found
    family, column = times[0]
    name = in_english(column.key)
    others = stands_for("not_of_training", name) or stands_for("held_out_word", name)
    known = measured(column.key, column.units, lambda: column.values).canonical
    is_named = known != name and not known.endswith("_seconds")
    rises = any(a < b for a, b in pairwise(column.values))
    if others or is_named or stands_for("time_of_no_step", name) or not (rises and is_each_time(column.values)):
        return found
    return [replace(one, time=column.key) if one is family else one for one in found]


def _sections(lines: Sequence[str], titles: Sequence[int], repeats: int) -> Iterator[Line]:
    """The lines that part what is measured in training from what is measured in an evaluation, where some do."""
    if sum(stands_for("title_of_evaluation", lines[at]) for at in titles) >= repeats:
        yield Line("section", "", f"(?:{words_for('title_of_evaluation')})|(?:{words_for('title_of_training')})")


def _titles(lines: Sequence[str], shapes: Sequence[str]) -> list[int]:
    """Where the titles of what is measured in training or in an evaluation are."""
    short = [(at, shapes[at]) for at, line in enumerate(lines) if len(line) <= _MAX_TITLE]
    alike = {shape for _, shape in short if not shape.endswith("0")}  # few make a log
    named = {shape for shape in alike if any(stands_for(title, shape) for title in _TITLES)}
    return [at for at, shape in short if shape in named and not heads_splits(lines[at])]


def _parts_thousands(lines: Sequence[str]) -> bool:
    """Whether points part thousands: `Schritt 12.500: Verlust 0,81`, and decimals are behind a comma everywhere."""
    parted = [line for line in lines if "," in line and _THOUSANDS.search(line[:_MAX_CHARS])]
    commas = sum(_DECIMALS.search(line[:_MAX_CHARS]) is not None for line in parted)
    return commas > len(parted) / 2 and not any(_POINT.search(line[:_MAX_CHARS]) for line in parted)


def _parted(lines: Sequence[str]) -> Sequence[str]:
    """The lines with a blank between a counter and the letters that it is glued to: `c0 e01 n200 loss 0.31`.

    Its numbers tell that it counts, on in every such line, and so may one beside it that counts epochs.
    """
    told: dict[str, list[float]] = {}
    shapes = shapes_of(lines)  # few, and which of them have such a counter decides of all lines
    glued = {shape for shape in set(shapes) if _GLUED.search(shape[:_MAX_CHARS])}
    near = [
        _GLUED.findall(line[:_MAX_CHARS]) if shape in glued else () for line, shape in zip(lines, shapes, strict=True)
    ]
    for name, number in chain.from_iterable(near):
        told.setdefault(name, []).append(float(number))
    counted = {name for name, values in told.items() if counts(values)}
    if not counted:
        return lines
    names = counted | {name for name, values in told.items() if enumerates(values)}
    return [
        _GLUED.sub(lambda at: f"{at[1]} {at[2]}" if at[1] in names else at[0], line) if counters else line
        for line, counters in zip(lines, near, strict=True)
    ]


def _speakers(lines: Sequence[str], ranks: Sequence[int | None]) -> Sequence[int | None]:
    """The rank that each line names itself, else that of its prefix."""
    whole = "\n".join(lines).lower()
    if not any(word in whole for word in _NAMED):
        return ranks
    low = [line.lower() for line in lines]
    said = [_SPEAKER.search(line[:_MAX_CHARS]) if "rank" in own else None for line, own in zip(lines, low, strict=True)]
    if not any(said):
        near = [
            line[:_MAX_CHARS] if any(word in own for word in _NAMED) else ""
            for line, own in zip(lines, low, strict=True)
        ]
        said = [_NUMBERED.search(line) for line in near]
        if not _are_ranks(int(hit[1]) for hit in said if hit is not None):
            return ranks
    named = ranks or (None,) * len(lines)
    return [int(own[1]) if own is not None else known for own, known in zip(said, named, strict=True)]


def _are_ranks(numbers: Iterable[float]) -> bool:
    """Whether numbers are the ranks of a job: two at least, all from 0 on."""
    known = {*numbers}
    return len(known) > 1 and known == {*range(len(known))}


def _families(
    groups: _Groups, ranks: Sequence[int | None], repeats: int, titles: Sequence[int], *, excerpt: bool
) -> Iterator[Family]:
    """Groups of lines with the same keys in the same order, the commonest first; `titles` part records, too."""
    heads: list[list[int]] = []
    counters: list[tuple[int, Family, _Group]] = []
    rest: list[_Group] = []
    told: list[tuple[Family, list[int]]] = []
    for signature, found in sorted(groups.items(), key=lambda kv: -len(kv[1])):
        found.sort(key=itemgetter(0))
        places, rows = [at for at, _ in found], [row for _, row in found]
        who = [ranks[at] for at in places] if ranks else []
        rare = bool(heads) and len(rows) >= (_MIN_EVALUATIONS if _is_evaluation(signature) else _MIN_TINY)
        rare &= _is_evaluation(signature) or _is_of_epochs(signature)
        trusted = len(rows) >= repeats or rare or (excerpt and any(map(_is_lost, rows)))
        if trusted and (family := _family(signature, rows, who, places)) is not None:
            family = replace(family, held_out=_HELD_OUT in signature)
            if family.is_metric:
                heads += [places] * (not _COUNTERS.isdisjoint(family.roles.values()))
                told.append((family, places))
            else:
                counters.append((places[0], family, (signature, places, rows)))
        elif trusted:
            rest.append((signature, places, rows))
    for _, family, group in sorted(counters, key=itemgetter(0)):
        if continues(*group[1:], heads) or (heads and _counts_saves(family, told)):
            rest.append(group)  # the second counter of one record, or one that names a file
        else:
            heads.append(group[1])
            told.append((family, group[1]))
    for signature, places, rows in rest:
        if continues(places, rows, [*heads, titles]) or (heads and _is_of_folds(signature)):
            columns = tuple(_columns(_keys_of(signature), rows, []))
            told.append((Family(columns, {}, is_metric=True, held_out=_HELD_OUT in signature), places))
    told = list(_with_sums(told))
    own = [places for family, places in told if not family.roles and not _is_held_out(family)]
    closes = not titles and any(is_closed(places, heads) for places in own)
    for family, places in told:
        is_ahead = closes and not family.roles and is_closed(places, heads)
        yield replace(family, is_ahead=True) if is_ahead else family


def _with_sums(told: Sequence[tuple[Family, list[int]]]) -> Iterator[tuple[Family, list[int]]]:
    """Families, where one that sums an evaluation up is of it: ` * Prec@1 61.2` below `Test: [150/196] Prec@1 61.4`."""
    tests = [(family, places) for family, places in told if family.held_out and family.is_metric]
    keys = {column.key for family, _ in tests for column in family.columns}
    held_out = sorted(place for _, places in tests for place in places)
    heads = sorted(place for family, places in told if family.roles and not family.held_out for place in places)
    for family, places in told:
        own = {column.key for column in family.columns if column.key}
        is_plain = family.is_metric and not family.roles and not _is_held_out(family)
        is_sum = is_plain and bool(own) and own <= keys and sums_up(places, held_out, heads)
        yield (replace(family, held_out=True) if is_sum else family), places


def _counts_saves(family: Family, told: Sequence[tuple[Family, object]]) -> bool:
    """Whether lines name files of weights and count something else than the records: `saved pop_2500.pt | gen=12`."""
    counted = {key for one, _ in told for key, role in one.roles.items() if role in {"step", "iter"}}
    named = [c for c in family.columns if c.key in family.roles and c.key not in counted]
    return bool(named) and all(_WEIGHTS.search(cell.before) for c in named for cell in c.cells)


def _is_held_out(family: Family) -> bool:
    return family.held_out or any(stands_for("held_out_word", column.key) for column in family.columns)


def _is_evaluation(signature: tuple[str, ...]) -> bool:
    """Whether the keys of a line belong to an evaluation at a step."""
    metrics = (key for key in signature if stands_for("printed_metric", key))
    held_out = _HELD_OUT in signature or any(stands_for("printed_evaluation", key) for key in metrics)
    return held_out and any(map(_names_a_step, signature))


def _begins_as_evaluation(row: Sequence[Slot]) -> bool:
    """Whether a line names held-out data up to its first metric, and the data of training nowhere."""
    first = next((at for at, slot in enumerate(row) if slot.key and names_a_metric(slot.key)), None)
    if first is None or any(stands_for("names_training", slot.before) for slot in row):
        return False
    return any(stands_for("line_of_evaluation", slot.before) for slot in row[: first + 1])


def _is_of_epochs(signature: tuple[str, ...]) -> bool:
    """Whether a line gives the mean loss of an epoch, a score on held-out data, its number or that of a fold alone."""
    keys = _keys_of(signature)
    counts = all(stands_for("counter_of_epochs", last_word(key)) for key in keys) or _is_of_folds(signature)
    scores = _HELD_OUT in signature and all(stands_for("printed_metric", key) for key in keys)
    return len(keys) == 1 and (counts or scores or canonical(keys[0]).canonical in {"loss", "eval_loss"})


def _is_of_folds(signature: tuple[str, ...]) -> bool:
    """Whether a line gives nothing but the number of a fold, as a header above its epochs does."""
    keys = _keys_of(signature)
    return len(keys) == 1 and stands_for("counter_of_folds", last_word(keys[0]))


def _is_lost(row: tuple[Slot, ...]) -> bool:
    """Whether a line prints NaN as its loss or gradient norm, and not as the best or least of them so far."""
    gone = (slot.key for slot in row if slot.key and math.isnan(slot.value))
    return any(stands_for("printed_loss", key) and not stands_for("printed_rate", key) for key in gone)


def _grouped(lines: Iterable[tuple[int, str]], shapes: Sequence[str]) -> _Groups:
    """Lines by their keys; what lines of one shape are is decided once, and few shapes make a log."""
    groups: _Groups = {}
    signatures: dict[str, tuple[str, ...]] = {}
    for at, line in lines:
        if len(line) > _MAX_CHARS:
            continue
        signature, row = signatures.get(shape := shapes[at]), None
        if signature is None:
            row = slots(line, shape)
            signature = _read(line, row)
            if names_hold(shape) and "%|" not in line:  # the label of a bar may say by its digits what it counts
                signatures[shape] = signature
        if signature:
            groups.setdefault(signature, []).append((at, slots(line, shape) if row is None else row))
    return groups


def _read(line: str, row: tuple[Slot, ...]) -> tuple[str, ...]:
    """The signature of a line that may be one of metrics; none of program text, of a bar of data and of a table."""
    if _is_code(line) or is_of_data(line):
        return ()
    signature = _once(_signature(row))
    if signature and _begins_as_evaluation(row):
        signature = (_HELD_OUT, *signature)
    return signature if len(signature) <= _MAX_COLUMNS else ()


def _once(signature: tuple[str, ...]) -> tuple[str, ...]:
    """The keys of a line; where few of them stand twice (`best test acc` … `test acc`) beside a loss, the others.

    A counter at the start of the line counts it, even if the counter of the best record follows: `(best 0.3 at epoch
    4)`.
    """
    twice = {key for key, count in Counter(signature).items() if count > 1}
    head = [key for key in signature[:1] if key in twice and _counts(key)]
    kept = (*head, *(key for key in signature if key not in twice))
    twice -= {*head}
    if twice and not (len(twice) < len(kept) > _MOST_TWICE and any(stands_for("printed_loss", key) for key in kept)):
        return ()
    return kept


def _counts(key: str) -> bool:
    word = last_word(key.removesuffix(_OVER))
    return stands_for("counter_of_steps", word) or stands_for("counter_of_epochs", word)


def _signature(row: tuple[Slot, ...]) -> tuple[str, ...]:
    """The keys of a line in order, marked where a maximum stands beside the number; the mark alone has no key."""
    out: list[str] = []
    for i, slot in enumerate(row):
        over = i + 1 < len(row) and row[i + 1].over
        if slot.key and (not _is_junk(slot.key) or _is_speaker(slot) or _is_to_come(slot)):
            out.append(slot.key + _OVER * over)
        elif over and _OVER not in out:
            out.append(_OVER)
    return tuple(out)


def _keys_of(signature: tuple[str, ...]) -> list[str]:
    """The keys of a signature without their marks, each once."""
    return list(dict.fromkeys(key.removesuffix(_OVER) for key in signature if key not in {_OVER, _HELD_OUT}))


def _is_code(line: str) -> bool:
    ends = line.rstrip()[-1:]
    return ends == "{" or (ends == ";" and _PARTED.search(line) is None) or _CODE.match(line) is not None


@lru_cache(maxsize=1024)
def _is_junk(key: str) -> bool:
    """Whether a key is a place in a program or a folder, or a word for something else than a metric."""
    _, _, below = key.rpartition("/")
    is_path = key.count("/") > _MOST_FOLDERS or (key.count("/") > 1 and not stands_for("last_word_of_a_metric", below))
    return is_path or stands_for("place_in_a_program", key) or stands_for("key_of_no_metric", key)


def _is_to_come(slot: Slot) -> bool:
    """Whether a number is the time until the end."""
    return stands_for("time_to_come", slot.key) and (slot.is_time or slot.is_clocked)


def _is_speaker(slot: Slot) -> bool:
    """Whether a number says who printed the line, or may do so."""
    return _is_rank(slot.key) and bool(
        _NUMBERED.search(slot.before + slot.text) or _SPEAKER.search(slot.before + slot.text)
    )


def _is_rank(key: str) -> bool:
    return key.lower() in _RANKS | _PROCESSES


def _is_shorter(short: tuple[str, ...], long: tuple[str, ...]) -> bool:
    """Whether a line is a longer one that leaves values out; one that leaves the step out is of another kind."""
    rest = iter(long)
    return all(key in rest for key in short) and not any(map(_names_a_step, {*long} - {*short}))


def _names_a_step(key: str) -> bool:
    return stands_for("counter_of_steps", last_word(key.removesuffix(_OVER)))


def _merged(groups: _Groups) -> _Groups:
    """Fold a group into one with more columns that begins the same way and keeps its order (an optional `val_loss`)."""
    out: _Groups = {}
    starts: dict[str, list[tuple[str, ...]]] = {}
    for signature in sorted(groups, key=len, reverse=True):
        near = starts.setdefault(signature[0], [])
        metric = any(stands_for("printed_metric", key) for key in signature)
        home = next((long for long in near if metric and _is_shorter(signature, long)), None)
        if home is None and len(near) < _MAX_HOMES:
            near.append(signature)
        out.setdefault(home or signature, []).extend(groups[signature])
    return out


def _family(
    signature: tuple[str, ...], rows: list[tuple[Slot, ...]], ranks: list[int | None], places: Sequence[int]
) -> Family | None:
    """Decide what each column is; None when the group is not a trainer's."""
    columns = _columns(_keys_of(signature), rows, ranks)
    counters = _nameless_counters(columns, rows)
    columns = [*(c for c in columns if c.place not in {one.place for one in counters}), *counters]
    columns = [half for column in columns for half in _halves(column)]
    speaker = {c.key: "rank" for c in columns if _is_rank(c.key) and not c.optional and _speaks(c)}
    columns = [c for c in columns if c.key.lower() not in _RANKS or c.key in speaker]
    roles = roles_of([c for c in columns if c.key not in speaker])
    if _is_search(columns, roles):
        return None
    if not ranks and [*roles.values()] == ["step"]:
        counter = next(c for c in columns if c.key in roles)
        roles = (
            {counter.key: "iter"} if len(counter.cells) == len(places) and counts_batches(counter, places) else roles
        )
    named = [c for c in columns if c.key and c.key not in speaker and roles.get(c.key) is None]
    players = players_of([c.key for c in named])
    metric = [c for c in named if c.key in players or (names_a_metric(c.key) and _is_value(c)) or _is_memory(c)]
    measured = [c for c in named if c.varies]
    if not roles and not (metric and (_varies(metric) or _HELD_OUT in signature)):
        return None  # a score of an evaluation may well be 0 each time
    if named and not metric and all(map(_is_time, named)):
        return Family(tuple(columns), roles | speaker, is_metric=True)  # `Epoch 3 completed in 12.1s`
    moves = any(r in {"step", "iter"} for r in roles.values()) or any(c.has_a_course for c in measured)
    moves |= any(c.maxima and c.counts_evenly for c in columns if roles.get(c.key) == "epoch")  # `fps 120 epoch: 3/500`
    if not metric and not (measured and moves):
        return Family(tuple(columns), roles | speaker, is_metric=False) if any(roles) and not measured else None
    return Family(tuple(columns), roles | speaker, is_metric=True)


def _is_memory(column: Column) -> bool:
    """Whether each number is one of bytes, under a name of a memory: `RAM used: 12.5 GB`, in a line of its own."""
    return measured(column.key, column.units, lambda: column.values).canonical.endswith("_gib")


def _is_search(columns: Sequence[Column], roles: Mapping[str, str]) -> bool:
    """Whether each line is the result of a training of its own: trials count, and a setting goes back and forth.

    What one training has of a schedule turns once or twice.
    """
    counters = [c for c in columns if c.key in roles and stands_for("counter_of_trials", last_word(c.key))]
    settings = [c for c in columns if stands_for("setting_of_a_trial", c.key)]
    measures = any(names_a_metric(c.key) for c in columns if c not in settings)
    return bool(counters) and measures and any(_turns(c.values) > _MOST_TURNS for c in settings)


def _turns(values: Sequence[float]) -> int:
    """How often numbers that rose fall next, or rise after they fell."""
    moves = [b > a for a, b in pairwise(values) if a != b]
    return sum(a != b for a, b in pairwise(moves))


def _speaks(column: Column) -> bool:
    """Whether the numbers of a column say who printed each line."""
    return all(_SPEAKER.search(c.before + c.text) for c in column.cells) or _are_ranks(column.values)


def _columns(keys: Iterable[str], rows: list[tuple[Slot, ...]], ranks: list[int | None]) -> list[Column]:
    names = [[slot.key for slot in row] for row in rows]
    alike = not ranks and names.count(names[0]) == len(names)
    return [_even_column(key, rows, names[0]) if alike else _column(key, rows, names, ranks) for key in keys]


def _even_column(key: str, rows: list[tuple[Slot, ...]], keys: list[str]) -> Column:
    """All values of one key, where every row has the same `keys` and one rank printed them all."""
    at = keys.index(key)
    has_maxima = at + 1 < len(keys) and all(row[at + 1].over for row in rows)
    maxima = tuple([row[at + 1] for row in rows]) if has_maxima else ()
    return Column(key, tuple([row[at] for row in rows]), maxima, place=at)


def _column(key: str, rows: list[tuple[Slot, ...]], names: list[list[str]], ranks: list[int | None]) -> Column:
    """All values of one key, with the texts before them and the maximum printed beside them; `names` are all keys."""
    cells: list[Slot] = []
    maxima: list[Slot] = []
    begins: set[int] = set()
    place = 0
    for at, row in enumerate(rows):
        if ranks and at and ranks[at] != ranks[at - 1]:
            begins.add(len(cells))
        keys = names[at]
        if key in keys:
            i = keys.index(key)
            cells.append(row[i])
            place = max(place, i)
            maxima.extend(row[i + 1 : i + 2] if i + 1 < len(row) and row[i + 1].over else ())
    limits = tuple(maxima) if len(maxima) == len(cells) else ()
    optional = len(cells) < len(rows)
    return Column(key, tuple(cells), limits, place=place, optional=optional, begins=frozenset(begins))


#: The name of a clock that has none, and by how much its rises differ in the middle half.
_ELAPSED, _UNEVEN = "elapsed", 1.005
#: Seconds since 1970 of any log: a time before its line, and no counter of steps.
_UNIX_S = 1e9


def _nameless_counters(columns: Sequence[Column], rows: list[tuple[Slot, ...]]) -> list[Column]:
    """What counts without a key: an epoch and its batches (`[2,   500]`), `N/M`, or the first number before metrics."""
    every = list(_bare(rows))
    stamps = [replace(c, role="t") for c in every[:1] if min(c.values) >= _UNIX_S]
    stamps = stamps or [replace(c, key=_ELAPSED) for c in every[:1] if _is_elapsed(c)]
    bare = every[len(stamps) :]
    both = next((pair for pair in pairwise(bare) if _counts_within(*pair)), None)
    if both is not None:
        return [*stamps, replace(both[0], role="epoch"), both[1]]
    by_place = sorted(columns, key=lambda c: c.place) if bare else ()
    first = next((c.place for c in by_place if not c.maxima and (_moves(c) or c.has_a_course)), 0)
    ahead = [c for c in bare if c.place < first and not any(cell.key for cell in c.cells)]
    # the last row may be that of the best, at an early stop
    even = [c for c in ahead if replace(c, cells=c.cells[:-1], maxima=()).counts_evenly]
    return stamps + (_progress(rows) or [c for c in even if c is ahead[0] or c.is_marked][:1])


def _is_elapsed(column: Column) -> bool:
    """Whether the fraction that a line begins with is a clock that began with the program: it never rises evenly.

    A share of an epoch does, to the digits that are printed.
    """
    values = column.values
    whole = sum(value.is_integer() for value in values)
    if column.place or column.units != {""} or 2 * whole > len(values) or not is_since_start(values):
        return False
    rises = sorted(b - a for a, b in pairwise(values))
    return rises[0] > 0 and rises[len(rises) // 4] * _UNEVEN < rises[-len(rises) // 4]


def _bare(rows: list[tuple[Slot, ...]]) -> Iterator[Column]:
    """The numbers without a key that every row has; the word before `[train] (3/9)` and `train: [3, 40]` is none."""
    least = min(map(len, rows))
    for at in range(least):
        one = rows[0][at]
        names_a_split = stands_for("names_a_split_only", one.key)
        if one.over or (one.key and not names_a_split):  # most are named, and need no look at all rows
            continue
        cells = tuple(row[at] for row in rows)
        nexts = tuple(row[at + 1] for row in rows) if at + 1 < least else ()
        is_split = names_a_split and not any(cell.key for cell in nexts)
        if not any((cell.key and not is_split) or cell.over for cell in cells):
            maxima = nexts if nexts and all(cell.over for cell in nexts) else ()
            yield Column("", cells, maxima, place=at)


def _halves(column: Column) -> tuple[Column, ...]:
    """An epoch and its batch, where a counter has these and no plan beside it: `Batch 2/40`, `Batch 3/0`."""
    inner = Column("", column.maxima, (), place=column.place + 1)
    if not column.maxima or not _counts_within(column, inner):
        return (column,)
    return replace(column, maxima=(), role="epoch"), inner


def _counts_within(outer: Column, inner: Column) -> bool:
    """Whether two whole numbers are an epoch and its batch: the second starts again where the first goes on by one."""
    epochs, batches = outer.values, inner.values
    if any(cell.unit for cell in outer.cells + inner.cells) or not all(map(float.is_integer, epochs + batches)):
        return False
    turns = [(a, b) for a, b in pairwise(zip(epochs, batches, strict=True)) if a[0] != b[0]]
    within = [(a, b) for a, b in pairwise(zip(epochs, batches, strict=True)) if a[0] == b[0]]
    anew = all(b[0] - a[0] == 1 and b[1] <= a[1] for a, b in turns)
    return 0 < len(turns) < len(within) and anew and all(b[1] > a[1] for a, b in within)


def _progress(rows: list[tuple[Slot, ...]]) -> list[Column]:
    """The first `N/M` that has no key of its own, if every row has it; of two the first that goes on, no score.

    One that goes on in each row comes before one that stays, as the epoch of `[ 1/ 3][ 100/1000]` does.
    """
    if not any(cell.over for cell in rows[0]):
        return []
    pairs = [[(i, a, b) for i, (a, b) in enumerate(pairwise(row)) if b.over and not a.key] for row in rows]
    found = [
        Column("", tuple(a for _, a, _ in whole), tuple(b for _, _, b in whole), place=whole[0][0])
        for whole in zip(*pairs, strict=False)
    ]
    goes_on = [c for c in found if len(set(c.values)) > 1]
    goes_on.sort(key=lambda c: any(a >= b for a, b in pairwise(c.values)))
    return [c for c in goes_on if not _restates_a_score(c, rows)][:1] or goes_on[:1] or found[:1]


def _restates_a_score(column: Column, rows: list[tuple[Slot, ...]]) -> bool:
    """Whether counts say once more the share before them: `Acc: 55.2% (7040/12800)`."""
    before = [row[column.place - 1] for row in rows] if column.place else []
    return (
        bool(before)
        and stands_for("score", before[0].key)
        and all(
            abs(cell.value - _WHOLE * done / (plan.value or 1)) < 1
            for cell, done, plan in zip(before, column.values, column.maxima, strict=True)
        )
    )


def _moves(column: Column) -> bool:
    return names_a_metric(column.key) and not stands_for("printed_rate", column.key)


def _is_value(column: Column) -> bool:
    return column.is_finite or stands_for("printed_loss", column.key)


def _is_time(column: Column) -> bool:
    return measured(column.key, column.units, lambda: column.values).canonical == "step_time_s"


def _varies(columns: list[Column]) -> bool:
    """A loss or a score that is not printed alike every time, as a setting would be; or one that is NaN all along."""
    told = [c for c in columns if not stands_for("printed_rate", c.key)]
    lost = any(stands_for("printed_loss", c.key) and not c.is_finite for c in told)
    return lost or any(c.varies for c in told)
