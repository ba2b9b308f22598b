"""A printed line with its numbers taken out: the literal text between them, the numbers, and what each is called.

This is the first half of learning an unknown log format. A line is cut at its numbers into `pieces`; the piece before a
number usually ends with the number's key (`loss: `, `"lr": `, `Train loss `, `acc=`). Progress bars, clocks, dates and
dotted versions are opaque: they are neither numbers nor literal text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from forensics.dialects._numbers import CLOCKED, seconds_of
from forensics.dialects._numbers import SUFFIXES as THOUSANDS
from forensics.dialects.names import is_duration, of_each_rank, of_rank, table
from forensics.dialects.spec import DECIMAL_COMMA, N
from forensics.knowledge.vocabulary import keys_of, stands_for, words_for
from forensics.patterns import lazily
from forensics.values import replace

OPAQUE, BAR, CLOCK, NUMBER = "\x01", "\x02", "\x03", "\x04"
_UNIT = (
    r"(?:%| ?[kKMGT]i?B(?:/s)?| ?[KMG]o\b|[kKMGBT]|[mun]?s(?:/it|/step|/iter|/batch)?|[mh]|x"
    r"|(?: ?[a-z]+)?/s(?:ec)?(?:/gpu)?"
    r"| ?[^\W\d_]{1,8}/(?:\u0441(?:\u0435\u043a)?|秒|초)"
    r"| ?(?:[mu]?s|m?sn|secs?|seconds|min(?:s|utes)?|hours?|hrs?|м?сек|мс|毫秒|秒|초)| ?dB|°C|k?W|[kMG]?Hz|px|it\b)"
)
#: What a bar without an end counts: `400it [00:12, 3.2it/s, loss=0.5]`.
_COUNTED_UNIT = "it"
#: What stands for each placeholder in a learned pattern; none needs look-around.
SOURCE = {
    OPAQUE: r"\d[-\d:.,TZ/ hms]*(?:[AP]M\b)?",
    BAR: r"\d+%\|[^|]*\|",
    CLOCK: r"\[[\d:?]+<[^,\]]*(?:, *[\d.?]+ ?[A-Za-z]+/[A-Za-z]+)?",
    NUMBER: rf"(?:{N}){_UNIT}?",
}
UNIT_SOURCE = _UNIT + "?"
#: Behind the number of a process: `root[26709] INFO`, as coloredlogs prints it.
_LEVEL = re.sub(r"[\^$]", "", words_for("level_of_a_line"))  # anywhere in a line
#: A counter, or a rank, may be glued to its name: `e3 b120`, `iter120`, `[rank3]`, and with its plan `S40/300`.
_GLUED_TO = ("e", "b", "ep", "it", "epoch", "iter", "step", "batch", "rank")
_BEHIND = "|".join(rf"(?<=\b{name})(?=\d+\b)" for word in _GLUED_TO for name in (word, word.title()))
_OF_A_PLAN = r"(?<=\b[Ss])(?=\d+/\d)"
_TOKEN = lazily(
    rf"(?P<bar>{SOURCE[BAR]})|(?P<clock>{SOURCE[CLOCK]})"
    r"|(?P<opaque>\d{4}[-/.]\d\d[-/.]\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?Z?)?"
    r"|\d{1,2}/\d{1,2}/\d{4}\b|\d\d[-/]\d\d(?:[-/]\d\d)?(?=[ ,]+\d\d:\d\d)"
    rf"|(?<=\w\[)\d{{1,10}}(?=\]:? {_LEVEL}\b)"
    r"|\d+(?::\d\d)+(?:[.,]\d+)?(?: [AP]M\b)?|(?<!\w)(?:\d+h ?)?\d+m ?\d{1,2}s\b|(?<![\w.])\d+\.\d+\.\d[\w.]*)"
    rf"|(?:(?:(?<![^\W\u3041-\ud7a3])(?<![.+\-\\])|(?<=\b[Ee]p\.))(?<!\w@)(?<![^\d\s\]kKM]/)|{_BEHIND}|{_OF_A_PLAN})"
    r"(?P<number>[-+]?(?:(?<![\[(])\d+,(?:\d{4,}|\d{1,2})(?![\d,.\])])|\d+(?:,\d{3})*(?:\.\d*(?:[dD][-+]\d+)?)?(?:[eE][-+]?\d+)?"
    r"|\.\d+(?:[eE][-+]?\d+|[dD][-+]\d+)?|(?:nan|NaN|NAN|inf|Inf|INF|[iI]nfinity)(?:\.0)?(?!\w|\.\w))"
    rf")(?P<unit>(?=\S){_UNIT}|{_UNIT}(?!\s*[:=]|\s*/(?! ?\d)|\s+[-+]?[\d.]))?(?![^\W\u3041-\ud7a3]|@|\.\d|-[A-Za-z])"
)
#: A key right behind the name of the group that it begins.
_INSIDE = lazily(
    r"(?P<group>[A-Za-z_]\w*)(?: ?[:\[] ?|['\"]?: ?\{['\"]?)(?P<key>[A-Za-z_]\w*)['\"]? ?[:=]? ?(?<!['\"])$"
)
_ITEM = lazily(r",\s*['\"]\w+['\"]: ?")
#: A word that says of which data a quantity is, glued to its name in brackets: `loss(val)=0.3`, not `mean(loss)=0.3`.
_QUALIFIED = lazily(r"(?P<name>[A-Za-z_][\w.]*)\((?P<word>[A-Za-z_][\w-]*)\)\s*[:=]\s*$")
#: Names may be of any alphabet, or Chinese, Japanese or Korean, whose colons and commas are wide.
LETTERS = (
    r"A-Za-z_\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0386-\u06ff\u0900-\u0e7f\u1e00-\u1eff"
    r"\u3041-\u3096\u30a1-\u30fa\u30fc\u4e00-\u9fff\uac00-\ud7a3"
)
_KEY_WORD = rf"[{LETTERS}][^\s,|;:=(){{}}\[\]<>\"'\x01-\x04\uff1a\uff0c\uff1b\uff08\uff09]*"
#: A norm as it is written: `||g||`, `‖∇L‖`, `|g|`.
_NORM = rf"(?:(?:\|\||‖)[{LETTERS}∇][{LETTERS}∇ ()]{{0,20}}(?:\|\||‖)(?:_?2)?|\|(?:g|grad|∇[{LETTERS}]?)\|)"
#: The unit of a quantity, glued to its name: `fwd(ms): 52.0`.
_IN_UNITS = r"(?:\((?:[mun]?s|sec|min|hrs?|%|[kKMGT]i?B|[KMG]o|[A-Za-z]+/[A-Za-z]+)(?=\)))?"
_KEY = lazily(
    rf"(?P<key>{_NORM}|{_KEY_WORD}(?:'s(?= [{LETTERS}]))?{_IN_UNITS}"
    rf"(?: (?:/ )?[{LETTERS}@(][^\s,|;:=(){{}}\[\]<>\"'\x01-\x04\uff1a\uff0c\uff1b]*){{0,3}})"
    r"(?P<sep>(?:['\"],|['\"]?[\])]?)\s*(?:->|=>|:=|[:=\uff1a]{0,2})\s*[\[(#]?\s*(?:[A-Za-z_][\w.]*\([\[(]{0,3})?['\"]?\s*)$"
)
#: What stands before the value in a row of a table of key and value: `| mean return (100) | 12.5 |`.
_ROW = lazily(r"\s*(?P<bar>[|│┃║])\s*(?P<key>[A-Za-z][^|│┃║\x01-\x04]*?)\s*(?P=bar)\s*")
_ROWS = lazily(rf"{_ROW.pattern}(?={SOURCE[NUMBER]}\s*(?P=bar)?\s*$)")
#: The same behind what a logger prints before a message.
_CELL = lazily(rf"(?:^|[^\w\s]|\b(?:INFO|DEBUG))\s*[|│┃║]\s*(?P<key>{_KEY_WORD}(?: {_KEY_WORD}){{0,3}})\s*[|│┃║]\s*$")
#: A name, and a bar before the value that ends the line: `Step 100: eval Accuracy |  0.31`, as Trax prints it.
_BARRED = lazily(rf"(?:^|[:\]] )\s*(?P<key>{_KEY_WORD}(?: +{_KEY_WORD}){{0,2}}) +[|│] +$")
_COUNTER = r"(?:epoch|step|iter(?:ation)?|batch|update)"
#: A quantity whose counter comes before its value: `Loss for epoch 3: 0.5`.
_COUNTED = lazily(
    rf"(?P<key>{_KEY_WORD}(?: {_KEY_WORD}){{0,2}}?) \(?(?:(?:for|at|of|in|after|on) )?{_COUNTER}\s*#?\s*$",
    re.IGNORECASE,
)
#: The same with the counter's name behind its number: `Loss after 82 updates: 1.9`.
_QUANTITY_AT = lazily(rf"(?P<key>{_KEY_WORD}(?: {_KEY_WORD}){{0,2}}?) \(?(?:for|at|of|in|after|on)\s+$", re.IGNORECASE)
#: What a mean is taken over stands before its value: `avg loss over last 200 = 1.83`, `loss (last 100 updates): 1.9`.
_MEAN_OVER = lazily(
    rf"(?P<key>{_KEY_WORD}(?: {_KEY_WORD}){{0,2}}?),? \(?(?:(?:over|of|for|in) )?(?:the )?(?:last|past|previous)\s+$",
    re.IGNORECASE,
)
_IS = lazily(r"(?: ?[^\W\d_]+)?\)?\s*(?:[:=]|->|is|was)\s*")
_COUNTER_BEHIND = lazily(rf" ?(?P<counter>{_COUNTER}(?:e?s)?)\)?\s*(?:[:=]|->|is|was)\s*", re.IGNORECASE)
#: A counter whose name stands behind its number: `第 3 轮`.
_ORDINAL = lazily(r"第\s*$")
_COUNTED_AS = lazily(r" ?(?P<key>[\u3041-\u9fff]{1,2}|[A-Za-z]+)")
#: What stands between a counter in brackets or without and the value of its quantity: `loss(40) = 0.3`.
_VALUE_OF = lazily(r"\s*(?::|[)\]]\s*[:=])\s*")
_BRACKETED = lazily(rf"\({_COUNTER}", re.IGNORECASE)
_OTHER = "[\u0400-\u052f\u3041-\ud7a3]"
_MIXED = lazily(rf"(?P<before>{_OTHER}(?:[{LETTERS} ]*?{_OTHER})? ?)\(?(?P<latin>[A-Za-z_][\x20-\x7e]*)")
#: Letters of the longest abbreviation with a point: `Valid. loss`; a longer word ends a sentence.
_ABBREVIATED = 6
_OVER = frozenset(keys_of("word_before_a_maximum"))
_OLD = frozenset(keys_of("word_before_an_old_value"))
_WRAPPERS = frozenset(keys_of("wrapper_of_a_number"))
#: A counter glued to its name, which would make another key of every row (`E3 iter[ 14/ 15]`).
_GLUED = lazily(r"(?i)(?:e(?:p(?:och)?)?|it(?:er)?|s(?:tep)?)\d+")
#: What stands before a time that no word names: a mark or blanks, behind words perhaps that a comma ends.
_MARKED = lazily(r"(?:^|[,;])[^\w\x01-\x04]+$")
_TIMES = ("s", "ms", "us", "sec", "secs", "seconds", "min", "mins", "minutes", "sn", "msn", "сек", "мс", "秒", "초")
#: A quantity and its counter before a value: `Train loss 2500 nan`.
_COUNTED_NAN = lazily(r"(?P<key>[A-Za-z_]\w*) \d+$")
#: Behind a word that ends a sentence another one begins.
_SENTENCE = lazily(r"\. [A-Z]")
_LETTER, _LETTER_WORD = lazily(r"[rR](\d{1,5})"), lazily(r"\b[rR]\d{1,5}\W*$")
_FEWEST_RANKS = 2
_RANK_WORD = lazily(r"(?i)\brank\W*$")
_NEXT_ITEM = lazily(r"\s*,\s*|\s+")
#: Loguru's `module:function:line`.
_SITE = lazily(r"[\w.]+:[\w.<>]+:$")
#: What glog puts before a line: level and day, time, thread, and the line of code.
_GLOG = lazily(r"[IWEFD]\d{4} \d\d:\d\d:\d\d(?:\.\d+)? +\d+ [\w./<>-]+:\d+\]")
#: The one place where a digit says what is a number: `nan.0` is one, `nan.5` is none.
_SPELLED = lazily(r"(?:nan|inf(?:inity)?)\.\d")
#: What every line with a number holds; lines of words alone are many in some logs, and cost the most to search.
_ANY_NUMBER = lazily(r"\d|(?:nan|NaN|NAN|inf|Inf|INF|[iI]nfinity)(?!\w)")
_ANY_DIGIT = str.maketrans("123456789", "0" * 9)
_STOP = frozenset(keys_of("word_beside_a_key"))
#: What stands before a number that is added to the one before it, and before the sum of both; each may be named behind.
_ADDED = lazily(r"\s*(?:\([^()]*\)\s*)?\+\s*")
_EQUALS = lazily(r"\s*(?:\([^()]*\)\s*)?=\s*")


#: A rate or a duration of steps or of what they work on, behind its number: `748,982 tok/s`, `410 ms/step`.
_RATE = lazily(
    r" ?((?:(?!(?:[kMGT]?i?B|bytes?|[MGTP]?flops?)/)[A-Za-z]{2,12}/(?:s(?:ec)?|min)(?:/(?:gpu|device))?"
    r"|(?:[mun]?s|secs?|seconds)(?:/| per )[^\W\d_]+))(?![\w/])",
    re.IGNORECASE,
)


#: The name behind a number, up to the next number, the end of the line, or a sign that parts it from the next.
_NAME_BEHIND = lazily(
    rf"[ \t](?P<key>{_KEY_WORD}(?: {_KEY_WORD}){{0,2}})(?P<rest>\s*(?:(?:[|,;·]|\s-\s|\s::?\s|\s\s|\t).*)?)$"
)
#: The word behind a number, before the next number or a sign that parts it from what follows.
_NEXT = lazily(rf" (?P<key>{_KEY_WORD})(?=\s*(?:[|,;·\t]|  |$)|\s+[-+]?(?:\d|nan|inf))")
_WORD = lazily(rf"[{LETTERS}]")
#: A decimal, and a word alone behind it.
_VALUE_BEFORE = lazily(r"\d\.\d+ +[A-Za-z]\w*$")


class Slot(Struct, frozen=True, gc=False):
    """One number of a line: its key (empty when it has none), its text, its unit, and the masked text before it.

    `behind`: the key, where it is the unit behind a number that has none before it.
    """

    key: str
    text: str
    unit: str
    before: str
    over: bool
    behind: str = ""

    @property
    def rest(self) -> tuple[str, str, bool, str]:
        """What is alike in all lines of a shape: all but the text, and the key perhaps."""
        return self.unit, self.before, self.over, self.behind

    @property
    def is_clocked(self) -> bool:
        """Whether it is a duration as a clock shows it."""
        return ":" in self.text or self.text.endswith("s")

    @property
    def is_time(self) -> bool:
        """Whether a unit of seconds stands behind it."""
        return self.unit in _TIMES

    @property
    def value(self) -> float:
        """The number, `424k` multiplied out; NaN for a printed nan."""
        if self.is_clocked:
            return seconds_of(self.text)
        try:
            return float(self.text) if self.unit not in THOUSANDS else round(float(self.text) * THOUSANDS[self.unit], 6)
        except ValueError:  # `1,024`, `0,25`, or `nan.0`
            plain = self.text.replace(",", "." if re.match(DECIMAL_COMMA, self.text) else "")
            plain = plain.replace("D", "e").replace("d", "e") if plain[-1:].isdigit() else plain
            return float(plain.removesuffix(".0") if plain[-3:-2].isalpha() else plain) * THOUSANDS.get(self.unit, 1.0)


class _Place(NamedTuple):
    """Where a number stands in every line that has the same shape; `before` are texts and spans of what is before it.

    `slot` holds but for the number where no digit is printed before it; `named` is where the name behind it stands.
    """

    begin: int
    end: int
    before: tuple[str | tuple[int, int], ...]
    slot: Slot
    holds: bool
    named: tuple[int, int] | None = None


def _is_word(line: str, found: re.Match[str]) -> bool:
    """`nan` or `inf` inside a name (`number of nan iterations: 0`) or at the end of a sentence (`is nan. Skipped`).

    It is the value of a name in `loss nan lr 0.1`, and of any between two others: `tl 0.3 vl nan va 0.1`.
    """
    if found["number"][-1].isalpha() and _SENTENCE.match(line, found.end()):
        return True
    if not found["number"][-1].isalpha() or not re.match(r" \w", line[found.end() : found.end() + 2]):
        return False
    before = line[max(0, found.start() - 40) : found.start()].rstrip()
    counted = _COUNTED_NAN.search(before)
    if counted is not None and names_a_metric(counted["key"]):
        return False
    is_named = stands_for("key_of_a_value", before) or names_a_metric(
        re.split(r"[^\w|]", before.removesuffix(" is"))[-1]
    )
    behind = _NEXT.match(line, found.end())
    is_next = behind is not None and (names_a_metric(behind["key"]) or _VALUE_BEFORE.search(before) is not None)
    return before[-1:].isalnum() and not is_named and not is_next


def _is_share(line: str, found: re.Match[str], before: _Place) -> bool:
    """Whether a percentage stands behind the stroke, as a score beside a loss: `2.31/10.4%`."""
    parts = found["number"] or "", line[before.begin : before.end]
    return found["unit"] == "%" and before.slot.unit != "%" and all("." in part for part in parts)


def _is_site(line: str, found: re.Match[str]) -> bool:
    """The line of code that printed it, behind its module and function: `__main__:train:57 - step 3`."""
    return (
        found["number"].isdigit()
        and line[found.end() : found.end() + 2] in {" -", " |"}
        and _SITE.search(line[max(0, found.start() - 120) : found.start()]) is not None
    )


def _is_duration(text: str, before: str) -> bool:
    """Whether a clock shows how long something took or will take: `time: 0:06:23`, `eta 1:20:33`; no time of day."""
    key = key_of(before)
    return re.fullmatch(CLOCKED, text) is not None and (is_duration(key) or stands_for("time_to_come", key))


def _is_counter(line: str, place: _Place) -> bool:
    """The whole number between a quantity's name and its value: `Validation loss 6312: 0.149`, `Loss 20 1.3`."""
    named = stands_for("key_of_a_value", place.slot.before.rstrip(" (["))
    return named and line[place.begin : place.end].isdigit()


def _two_counters(key: str) -> tuple[str, str] | None:
    """The names of both numbers of `epoch/iter: 2/601`."""
    first, _, second = key.partition("/")
    is_epoch, is_step = stands_for("counter_of_epochs", first.lower()), stands_for("counter_of_steps", second.lower())
    return (first, second) if is_epoch and is_step else None


def _around_a_counter(earlier: str, before: str) -> tuple[str, str] | None:
    """The quantity and the counter of `Loss after 82 updates: 1.9`, by the texts before both numbers."""
    behind = _COUNTER_BEHIND.fullmatch(before)
    quantity = _QUANTITY_AT.search(earlier[-120:]) if behind is not None else None
    return None if behind is None or quantity is None else (quantity["key"], behind["counter"])


def _counted_as(behind: str) -> str:
    """The name of a counter behind its number, as far as it is one: `轮` of `第 3 轮结束`."""
    found = _COUNTED_AS.match(behind)
    word = found["key"] if found is not None else ""
    return next((name for name in (word, word[:1]) if _is_counter_name(name)), "")


def _is_counter_name(name: str) -> bool:
    return any(stands_for(means, name.lower()) for means in ("counter_of_steps", "counter_of_epochs"))


def _paired(line: str, last: _Place, slot: Slot, before: str, *, first: bool) -> tuple[_Place, Slot] | None:
    """The place before a number and the number, where the one counts and the other has its name, or both count."""
    told = last.slot
    if (_VALUE_OF.fullmatch(before) or (first and before.isspace())) and _is_counter(line, last):
        return last._replace(slot=replace(told, key="step")), replace(slot, key=told.key)
    if slot.over and (both := _two_counters(told.key)) is not None:
        return last._replace(slot=replace(told, key=both[0])), replace(slot, key=both[1], over=False)
    over = _MEAN_OVER.search(told.before[-120:]) if _IS.fullmatch(before) is not None else None
    if over is not None and names_a_metric(over["key"]):
        return last._replace(slot=replace(told, key="")), replace(slot, key=key_of(f"{over['key']}: "))
    if (pair := _around_a_counter(told.before, before)) is not None:
        return last._replace(slot=replace(told, key=pair[1])), replace(slot, key=pair[0])
    return None


def _before(line: str, pieces: tuple[str | tuple[int, int], ...]) -> str:
    return "".join(piece if isinstance(piece, str) else line[piece[0] : piece[1]] for piece in pieces)


@lru_cache(maxsize=1024)
def _places(line: str) -> tuple[_Place, ...]:
    """The numbers of a line, and of every line that differs from it in its digits only."""
    if _ANY_NUMBER.search(line) is None:
        return ()
    places: list[_Place] = []
    ends: list[int] = []
    pieces: list[str | tuple[int, int]] = []
    start = 0
    lead = _GLOG.match(line) or _ROWS.match(line)
    led = 0 if lead is None else lead.end()
    for found in _TOKEN.finditer(line):
        pieces.append((start, found.start()))
        start = found.end()
        clocked = found["opaque"] is not None and _is_duration(found["opaque"], _before(line, tuple(pieces)))
        if not clocked and (
            found["number"] is None or found.start() < led or _is_word(line, found) or _is_site(line, found)
        ):
            mask = {"bar": BAR, "clock": CLOCK, "opaque": OPAQUE}.get(found.lastgroup or "")
            pieces.append(found.span() if mask is None else mask)
            continue
        earlier, before = places[-1].slot.before if places else "", _before(line, tuple(pieces))
        unit = "s" if clocked else (found["unit"] or "").strip()
        slot = Slot(
            "", "", unit, before, bool(places) and before.strip() in _OVER and not _is_share(line, found, places[-1])
        )
        ordinal = _counted_as(before) if _ORDINAL.search(earlier) else ""
        if ordinal:
            last = places.pop()
            places.append(last._replace(slot=replace(last.slot, key=ordinal)))
            before = before.lstrip().removeprefix(ordinal)
        bare = replace(slot, before=_ORDINAL.sub("", before))
        slot = replace(slot, key=_key(bare, places[-1].slot if places else None))
        keys = {place.slot.key for place in places}
        within = _within(slot, keys, places[-1].slot if places else None)
        slot = replace(slot, key=_of_its_part(within, [place.slot.key for place in places]))
        number = found.span("opaque" if clocked else "number")
        rate = None if slot.key else _RATE.match(line, number[1]) or _RATE.match(line, start)
        if rate is not None:  # of a pair, of source and target, the second
            slot, start = replace(slot, key=rate[1], behind=rate[1], over=False), rate.end()
        slot = replace(slot, key=slot.key or _time_of(slot, keys))
        if not slot.key and slot.unit == _COUNTED_UNIT and line[found.end() : found.end() + 2] == " [":
            slot = replace(slot, key=slot.unit, behind=slot.unit)
        if places and (pair := _paired(line, places[-1], slot, before, first=len(places) == 1)) is not None:
            places[-1] = pair[0]
            slot = pair[1]
        holds = not any(map(str.isdigit, earlier + before))
        places.append(_Place(*number, tuple(pieces), slot, holds))
        ends.append(found.end())
        pieces = []
    return _named_behind(line, _listed(line, _summed(places)), ends)


def _listed(line: str, places: list[_Place]) -> list[_Place]:
    """Name each number of a list that has one of each rank: `rank_times=[0.41, 0.62]`; whole ones may be the ranks."""
    begins = 0
    while begins < len(places):
        ends = begins + 1
        while ends < len(places) and not places[ends].slot.key and _NEXT_ITEM.fullmatch(places[ends].slot.before):
            ends += 1
        first, own = places[begins].slot, places[begins:ends]
        name = of_each_rank(first.key) if ends > begins + 1 and first.before[-1:] == "[" else ""
        if name and not any(line[one.begin : one.end].isdigit() for one in own):
            for rank, one in enumerate(own):
                places[begins + rank] = one._replace(slot=replace(one.slot, key=of_rank(name, rank)))
        begins = ends
    return places


def _summed(places: list[_Place]) -> list[_Place]:
    """Give the name of a sum to the number behind its parts: `total = 0.8 + 1.3 + 0.5 = 2.6`."""
    begins = 0
    while begins < len(places):
        ends = begins + 1
        while ends < len(places) and _ADDED.fullmatch(places[ends].slot.before) is not None:
            ends += 1
        key = places[begins].slot.key
        if key and begins + 1 < ends < len(places) and _EQUALS.fullmatch(places[ends].slot.before) is not None:
            for at in range(begins, ends):
                part = replace(places[at].slot, key=f"{key} part {at - begins + 1}")
                places[at] = places[at]._replace(slot=part)
            places[ends] = places[ends]._replace(slot=replace(places[ends].slot, key=key))
        begins = ends
    return places


def _named_behind(line: str, places: list[_Place], ends: list[int]) -> tuple[_Place, ...]:
    """Give numbers the names behind them, where a line prints these so: `[3, 40] 2.31 loss, 0.52 acc`.

    A row of such numbers begins without a name before it, names a metric, and ends its line or a part of it.
    """
    begins = [place.begin for place in places]
    gaps = list(zip(ends, [*begins, len(line)][1:], strict=bool(places)))
    first = next((i for i, place in enumerate(places) if _begins_a_row(line, place, gaps[i])), None)
    if first is None:
        return tuple(places)
    row: list[re.Match[str]] = []
    for begin, end in gaps[first:]:
        name = _NAME_BEHIND.match(line, begin, end)
        row += [name] if name is not None else []
        if name is None or _WORD.search(name["rest"]) is not None:
            break
    is_cut = first + len(row) < len(places) and _WORD.search(row[-1]["rest"]) is None
    if is_cut or not any(names_a_metric(name["key"]) for name in row):
        return tuple(places)
    for i, name in enumerate(row, first):
        slot = replace(places[i].slot, key=name["key"], behind=name["key"])
        places[i] = places[i]._replace(slot=slot, named=name.span("key"))
    return tuple(places)


def _begins_a_row(line: str, place: _Place, gap: tuple[int, int]) -> bool:
    """Whether a number without a name before it has one right behind it."""
    slot = place.slot
    bare = not slot.key and not slot.over and slot.before[-1:] not in {"/", ":", "="}
    return bare and _NAME_BEHIND.match(line, *gap) is not None


def names_a_metric(key: str) -> bool:
    """Whether a printed name is one of a metric, a loss of any name among them."""
    return any(stands_for(means, key) for means in ("printed_metric", "whole_loss", "objective"))


def _key(slot: Slot, previous: Slot | None) -> str:
    """The key of a number, by the text before it and, for one behind its counter, that before the number before it."""
    if slot.over:
        return ""
    row = _ROW.fullmatch(slot.before) if previous is None else None
    if row is not None:
        return row["key"]
    cell = _CELL.search(slot.before[-120:])
    if cell is not None and (previous is None or cell.start()):
        return key_of(f"{cell['key']}: ")
    barred = _BARRED.search(slot.before[-120:])
    if barred is not None and names_a_metric(barred["key"]):
        return key_of(f"{barred['key']}: ")
    return key_of(slot.before) or ("" if previous is None else _counted_key(previous.before, slot.before))


def _time_of(slot: Slot, earlier: AbstractSet[str]) -> str:
    """The key of a time without a name behind a mark, where it is the only one and begins no line: `loss 0.4 (12s)`."""
    bare = not slot.over and slot.unit in _TIMES and _MARKED.search(slot.before) is not None
    return "time" if bare and earlier and "time" not in earlier else ""


def _within(slot: Slot, earlier: AbstractSet[str], last: Slot | None) -> str:
    """The key, with the name before its colon or bracket where that is of held-out data or a loss, or it stands twice.

    `train: loss 2.3 top1 9 | test: loss 2.4 top1 8`, `loss[loss=0.3, over 6400], tot_loss[loss=0.4]`.
    """
    near = slot.before[-120:]
    said = _QUALIFIED.search(near) if slot.key else None
    if said is not None and said["word"] == slot.key and names_a_metric(said["name"]) and not _is_quantity(slot.key):
        return f"{said['name']} ({slot.key})"
    found = _INSIDE.search(near) if slot.key else None
    if found is None and last is not None and _ITEM.fullmatch(near) and " " in last.key:
        return f"{last.key.split(' ')[0]} {slot.key}"  # the next item of the same object
    if found is None or found["key"] != slot.key:
        return slot.key
    is_part = stands_for("whole_loss", found["group"]) and not stands_for("printed_loss", slot.key)
    told = is_part or stands_for("held_out_word", found["group"])
    return f"{found['group']} {slot.key}" if told or slot.key in earlier else slot.key


def _is_quantity(key: str) -> bool:
    """Whether a name is one of a metric, and no word for the data that one is of."""
    return names_a_metric(key) and not _says_which_data(key)


def _says_which_data(word: str) -> bool:
    return stands_for("held_out_word", word) or stands_for("names_training", word)


def _of_its_part(key: str, earlier: Sequence[str]) -> str:
    """The key, with the data that its part of the line began with where it stands twice.

    `train loss 0.3 acc 0.9 | val loss 0.4 acc 0.8`: the second is the accuracy of the validation.
    """
    if key not in earlier or _says_which_data(key):
        return key
    begun = [one.split(" ")[0] for one in earlier[earlier.index(key) + 1 :] if " " in one]
    return next((f"{word} {key}" for word in reversed(begun) if stands_for("held_out_word", word)), key)


def _latin(key: str) -> str:
    """A Latin name without the Chinese, Japanese or Korean words written before it, but for those of a validation."""
    mixed = _MIXED.fullmatch(key)
    if mixed is None:
        return key
    return f"val {mixed['latin']}" if stands_for("held_out_word", mixed["before"]) else mixed["latin"]


@lru_cache(maxsize=1024)
def key_of(before: str) -> str:
    """The key at the end of the text before a number, without filler words; empty when there is none."""
    found = _KEY.search(before[-120:])
    if found is None or stands_for("level_of_a_line", found["key"]):
        return ""
    words = _latin(found["key"]).split(" ")
    words = words[1:] if len(words) > 1 and stands_for("level_of_a_line", words[0]) else words  # `INFO loss: 0.3`
    ends = [at for at, word in enumerate(words[:-1]) if word[-1:] == "." and len(word) > _ABBREVIATED]
    words = words[ends[-1] + 1 :] if ends else words  # `Epoch[3] complete. Time taken: 82 s`
    if words[-1].lower() in _OLD and not found["sep"].strip():
        return ""
    if _BRACKETED.fullmatch(words[-1]) and (len(words) == 1 or found["sep"][:1] != ")"):
        return words[-1][1:]
    if _BRACKETED.fullmatch(words[-1]):  # `loss (batch)=0.3`
        words = words[:-1]
    elif "(" in words[-1] and found["sep"][:1] == ")":
        words[-1] += ")"
    is_value = before[-120:][: found.start()][-1:] == "=" and "=" in found["sep"]  # of another key: `ckpt=ema.pt fid=3`
    words = words[1:] if len(words) > 1 and is_value and not _says_which_data(words[0]) else words
    if len(words) > 1 and found.start() == 0 and stands_for("counter_of_epochs", words[0]):
        words = words[1:]  # `第21轮 训练损失`
    while len(words) > 1 and (words[0].lower() in _STOP or (words[0].lower() == "epoch" and len(words) > 2)):
        words = words[1:]
    words = words[1:] if len(words) > 1 and _GLUED.fullmatch(words[0]) else words
    while len(words) > 1 and (words[-1].lower() in _STOP or words[-1] in _WRAPPERS):
        words = words[:-1]
    if len(words) == 1 or " ".join(words).lower() in table():
        return " ".join(words)
    return _without_fillers(words)


def _without_fillers(words: list[str]) -> str:
    """What stands behind the last filler word; of `time for epoch`, which counts none, the first."""
    stops = [i for i, word in enumerate(words) if word.lower() in _STOP]
    if stops and _is_counter_name(words[-1]) and is_duration(words[0]):
        return words[0]  # `time for epoch: 12.1` counts none
    return " ".join(words[stops[-1] + 1 :] if stops and stops[-1] + 1 < len(words) else words)


def shapes_of(lines: Sequence[str]) -> list[str]:
    """What each line has in common with all that differ from it in their digits only; few shapes make a log.

    All lines are masked at once, which takes a tenth of the time that they take one by one.
    """
    whole = "\n".join(lines)
    shapes = whole.translate(_ANY_DIGIT).split("\n")
    if len(shapes) != len(lines):  # none, or one with a break in it
        shapes = [line.translate(_ANY_DIGIT) for line in lines]
    lowered = whole.lower()
    if "nan." in lowered or "inf" in lowered:
        pairs = zip(lines, shapes, strict=True)
        return [line if _SPELLED.search(line.lower()) else shape for line, shape in pairs]
    return shapes


def names_hold(shape: str) -> bool:
    """Whether the numbers of all lines of a shape have the same keys, as no digit stands in the text before them."""
    return all(place.holds for place in _places(shape))


@lru_cache(maxsize=1024)
def _same(shape: str) -> list[tuple[int, int, str, tuple[str, str, bool, str]]] | None:
    """Where the numbers of a shape stand, with all else of their slots; None where that differs from line to line."""
    places = _places(shape)
    if any(place.named is not None or not place.holds for place in places):
        return None
    return [(begin, end, slot.key, slot.rest) for begin, end, _, slot, *_ in places]


def slots(line: str, shape: str | None = None) -> tuple[Slot, ...]:
    """The numbers of a line in order; `over` marks the second number of `N/M` (or `N of M`).

    Where they stand is looked for once for all lines of its `shape`.
    """
    shape = shape if shape is not None else shapes_of([line])[0]
    if (same := _same(shape)) is not None:
        return _of_each_rank([Slot(key, line[begin:end], *rest) for begin, end, key, rest in same])
    found: list[Slot] = []
    for place in _places(shape):
        key, (unit, before, over, behind) = place.slot.key, place.slot.rest
        text = line[place.begin : place.end]
        if not place.holds:
            before = _before(line, place.before)
            slot = Slot("", text, unit, before, over)
            slot = replace(slot, key=_key(slot, found[-1] if found else None))
            keys = {one.key for one in found}
            key = (
                _of_its_part(_within(slot, keys, found[-1] if found else None), [one.key for one in found])
                or behind
                or _time_of(slot, keys)
            )
        if place.named is not None:
            key = behind = line[slice(*place.named)]
        found.append(Slot(key, text, unit, before, over, behind))
    return _of_each_rank(found)


def _of_each_rank(found: list[Slot]) -> tuple[Slot, ...]:
    """The numbers of a line, in which one behind each of several ranks is that rank's: `rank0: 0.41s rank1: 0.62s`."""
    at = [i for i, (one, value) in enumerate(pairwise(found)) if _is_of_a_rank(one, value)]
    if len(at) < _FEWEST_RANKS:
        return _of_each_letter(found)
    said = key_of(_RANK_WORD.sub("", found[at[0]].before))
    name = of_each_rank(said) or said or ("time" if found[at[0] + 1].is_time else "")
    for i in at:
        found[i], rank = replace(found[i], key=""), int(found[i].text)
        found[i + 1] = replace(found[i + 1], key=of_rank(name, rank) if name else "")
    return tuple(found)


def _of_each_letter(found: list[Slot]) -> tuple[Slot, ...]:
    """The same where a letter stands for the word, and words before them say of what: `time per rank: r0=0.41 r1=1`."""
    at = {i: int(hit[1]) for i, one in enumerate(found) if (hit := _LETTER.fullmatch(one.key)) is not None}
    if len(at) < _FEWEST_RANKS:
        return tuple(found)
    name = of_each_rank(key_of(_LETTER_WORD.sub("", found[min(at)].before)))
    return tuple(replace(one, key=of_rank(name, at[i])) if name and i in at else one for i, one in enumerate(found))


def _is_of_a_rank(one: Slot, value: Slot) -> bool:
    return (
        one.key.lower() == "rank"
        and one.text.isdigit()
        and value.key in {"", "time"}
        and value.before[:1] in {":", "="}
    )


def _counted_key(earlier: str, before: str) -> str:
    """The key of a number behind the counter of its quantity; `earlier` is the text before that counter."""
    named = _COUNTED.search(earlier[-120:]) if before.strip() in {":", "=", "):", "-", "->", "is"} else None
    return named["key"] if named is not None and stands_for("key_of_a_value", named["key"]) else ""


def source(piece: str) -> str:
    """A masked piece as a pattern: runs of blanks stretch, placeholders match what they stand for."""
    parts = re.split(r"(\s+|[\x01-\x04])", piece)
    out: list[str] = []
    for i, part in enumerate(parts):
        if part in SOURCE:
            out.append(SOURCE[part])
        elif part.strip():
            out.append(re.escape(part))
        elif part:
            out.append(r"\s*" if i in {1, len(parts) - 2} else r"\s+")
    return "".join(out)
