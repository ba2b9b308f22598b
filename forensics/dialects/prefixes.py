"""The text before a line: launchers' prefixes, which tell who printed it, and what a carrier of the whole log adds.

Prefixes stack (`7: [rank7]: …`); the innermost global rank wins. A carrier's lead is a row of `leads.tsv`. A tag that
is no more than a number, or that names a node and a device, is a row of `tags.tsv`: it is believed where the lines of a
log say that it counts ranks.

kubectl `[pod/x/y] `, mpirun `[1,3]<stdout>: `, horovodrun `[3]<stdout>:`, SageMaker `[1,mpirank:3,algo-1]<stdout>:`,
srun -l `  3: `, torchrun `[default3]:`, PyTorch `[rank3]:`, a program's `[r3] `, also behind a time and a level
(`09:12:07 ERROR (rank 3) `), pdsh and DeepSpeed `worker-2: [rank20]:`, Ray `(Worker pid=7, ip=1.2.3.4) `, multi-node
`[12345] `.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import polars as pl
from msgspec import Struct

from forensics.io.tables import table_rows
from forensics.patterns import lazily

#: What mpirun's time stamps put before its tag: `Fri Aug  1 12:31:45 2031[1,0]<stdout>:`.
_DATE = r"[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [\d:]{8} \d{4}"
#: A host counts as a prefix before the tag of a rank only: `step: ` begins a line, too.
_HOST = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}: ?"
#: What a logger puts before the words of a program: a time and a level, in either order, and marks.
_TIME = (
    r"[\[(]?(?:(?:\d{4}[-/]\d\d[-/]\d\d|\d\d[-/]\d\d)[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?[\])]?"
)
_LEVEL = r"[\[(<]?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)[\])>]?"
_MARKS = r"[ \t]*(?:[|,:-][ \t]+)?"
_HEAD = rf"(?:{_LEVEL}{_MARKS})?(?:{_TIME}{_MARKS})?(?:{_LEVEL}{_MARKS})?"
#: The tag of a rank: `[rank3]`, `[r3]`, `<rk3>`, `(rank 3)`, `rank=3 |`.
_OPEN, _RANK = r"[\[<](?:[Rr]ank|RANK|[Rr]k?)", r"(?:[Rr]ank|RANK)"
_SEPARATOR = r"(?:[:|] ?| (?:[:|-] )?)"
_TAGGED = (
    rf"(?:{_OPEN}[ _:=]?(?P<rank>\d{{1,7}})[\]>]{_SEPARATOR}"
    rf"|\({_RANK}[ _:=]{{0,2}}(?P<round>\d{{1,7}})\){_SEPARATOR}"
    rf"|{_RANK}[ =](?P<word>\d{{1,7}}) [|-] )"
)
_PARTS = (
    r"(?:\[pod/\S+\] |pod/\S+ )?"
    rf"(?:(?:{_DATE})?\[(?:\d+,)?(?:mpirank:)?(?P<mpi>\d{{1,7}})(?:,algo-\d+)?\]<(?:stdout|stderr|stddiag)>: ?"
    r"| {0,4}(?P<srun>\d{1,5}): )?"
    r"(?:\[default(?P<local>\d{1,7})\]:\s?)?"
    rf"(?:(?:{_HOST}|(?P<head>{_HEAD})){_TAGGED})?"
    r"(?:\((?:\w+(?: pid=\d+)?|pid=\d+)(?:, ip=[\d.]+)?\) )?"
    r"(?:\[[1-9]\d{4,}\] )?"
)
_PREFIX = lazily(_PARTS)
#: Groups that name a rank, the most telling first.
_RANKS = ("rank", "round", "word", "mpi", "srun", "local")
_MAYBE = (
    r"^(?:"
    + _DATE
    + r"\[\d+,|\[(?:pod/|\d+\]<std|\d+,(?:\d+\]<|mpirank:)|default\d)|pod/|\((?:\w+ )?pid=|"
    + rf"(?:{_HOST}|{_HEAD})(?:{_OPEN}[ _:=]?\d|\({_RANK}[ _:=]{{0,2}}\d|{_RANK}[ =]\d{{1,7}} [|-] ))"
)
_TASK = r"^(?: {0,4}(?P<task>\d{1,5}): |\[(?P<node>[1-9]\d{4,})\] )"
#: Finds every line that may begin with a prefix.
MAYBE = rf"{_MAYBE}|{_TASK}"
#: How a line with a prefix may begin.
MAY_BEGIN = lazily(r"[\[(<A-Za-z0-9 ]")
_ANY, _NO_TASK = lazily(MAYBE), lazily(_MAYBE)
_TASK_LINE = lazily(_TASK)
_ENOUGH, _FEW_LINES = 3, 8
_LEADS = tuple(lazily(pattern) for pattern, _ in table_rows("forensics.dialects", "leads.tsv"))
_TAGS = tuple(lazily(f"(?>{_HEAD}){pattern}") for pattern, _ in table_rows("forensics.dialects", "tags.tsv"))
#: Most lines of a log of many ranks have a tag: one of so many at its head has, and the next ones tell what it is.
_TAG_HEAD, _TAG_LINES, _TAG_SHARE = 32, 2048, 0.5
#: A whole number behind the tag, as a step is, which ranks that print in turn have in common: two of them do so for
#: every second line, more ranks more often.
_COUNT = lazily(r"(?<![\d.:-])(?<!\d,)\d{1,9}(?![\d:]|[.,-]\d)")
_IN_TURN = 0.4
#: A lead holds a time of day, or milliseconds since 1970.
_TIMED = lazily(r".{0,80}?\d\d:\d\d|1\d{12}")
#: A carrier leads all lines; the others were cut where the log was taken out of it.
_LED_SHARE, _LED_LINES, _MOST_LINES = 0.98, 5, 256
#: So many lines are looked at one by one in less time than a search over a column takes to begin.
_FEW = 200


class Lead(Struct, frozen=True):
    """What stands before each line of a log, behind which its prefixes begin, and the rank that it names perhaps.

    `per_node`: the ranks of a node, where the rank is told as a node and a device.
    """

    pattern: re.Pattern[str]
    per_node: int = 0

    @property
    def tells_rank(self) -> bool:
        """Whether it says who printed a line."""
        return "who" in self.pattern.groupindex

    def match(self, line: str) -> tuple[int, int | None]:
        """Where the lead of a line ends, 0 where it has none, and the rank that it names."""
        found = self.pattern.match(line)
        if found is None:
            return 0, None
        return found.end(), self.rank_in(found) if self.tells_rank else None

    def rank_in(self, found: re.Match[str]) -> int:
        """The rank that a match of the pattern names."""
        return int(found["who"]) + (self.per_node and int(found["node"]) * self.per_node)


def lead_of(parts: Sequence[bytes]) -> Lead | None:
    """What a log has before each of its lines, from parts of whole lines; None where nothing."""
    every = [line for part in parts for line in part.split(b"\n") if line.strip()]
    return _tag_of(_decoded(every[:_TAG_LINES])) or _carried(_decoded(every[:: len(every) // _MOST_LINES + 1]))


def _decoded(lines: Sequence[bytes]) -> list[str]:
    return [line.decode("utf-8", "replace") for line in lines]


def _carried(lines: Sequence[str]) -> Lead | None:
    least = max(_LED_LINES, _LED_SHARE * len(lines))
    if sum(map(bool, map(_TIMED.match, lines))) < least:  # most logs: no row is compiled
        return None
    return next((Lead(lead) for lead in _LEADS if sum(map(bool, map(lead.match, lines))) >= least), None)


def _tag_of(lines: Sequence[str]) -> Lead | None:
    """The tag of the rank in the lines of a log: from 0 on, and those who print in turn tell of one step."""
    for tag in _TAGS:
        if not any(map(tag.match, lines[:_TAG_HEAD])):
            continue
        hits = [hit for line in lines if (hit := tag.match(line)) is not None]
        if len(hits) >= max(_LED_LINES, _TAG_SHARE * len(lines)):
            lead = Lead(tag, _per_node(hits))
            if _are_ranks([lead.rank_in(hit) for hit in hits]) and _in_turn(lead, hits):
                return lead
    return None


def _are_ranks(numbers: Sequence[int]) -> bool:
    """Whether numbers may be those of ranks, of which some may be silent: from 0 on, and most of them."""
    ranks = {*numbers}
    return 0 in ranks and max(ranks) < 2 * len(ranks) > _ENOUGH


def _per_node(hits: Sequence[re.Match[str]]) -> int:
    """How many ranks a node has, where its devices count from 0 on; 0 where there are no nodes or ranks count on."""
    if "node" not in hits[0].re.groupindex:
        return 0
    pairs = {(hit["node"], int(hit["who"])) for hit in hits}
    numbers = {who for _, who in pairs}
    return 0 if len(numbers) == len(pairs) else max(numbers) + 1


def _in_turn(lead: Lead, hits: Sequence[re.Match[str]]) -> bool:
    """Whether neighbours of different ranks have a whole number in common, which is not in every line."""
    counts = [frozenset(_COUNT.findall(hit.string, hit.end())) for hit in hits]
    always = counts[0].intersection(*counts)
    pairs = [(a, b) for a, b in pairwise(range(len(hits))) if lead.rank_in(hits[a]) != lead.rank_in(hits[b])]
    alike = sum(bool((counts[a] & counts[b]) - always) for a, b in pairs)
    return alike >= max(1, _IN_TURN * len(pairs))


def split(line: str, lead: Lead | None = None) -> tuple[str, int | None]:
    """One line's prefix, behind what leads it, and the rank it names (None when it names none)."""
    begin, told = lead.match(line) if lead is not None else (0, None)
    found = _PREFIX.match(line, begin)
    assert found is not None
    rank = _rank_in(found)
    return line[: found.end()], told if rank is None else rank


def _rank_in(found: re.Match[str]) -> int | None:
    return next((int(found[name]) for name in _RANKS if found[name] is not None), None)


def rank_span(line: str) -> tuple[int, int]:
    """Where the prefix of a line names the rank: begin and end, both 0 where it names none."""
    found = _PREFIX.match(line)
    assert found is not None
    return next((found.span(name) for name in _RANKS if found[name] is not None), (0, 0))


def numbers_tasks(sample: pl.Series) -> bool:
    """Whether a number before lines, `3: ` of `srun -l` or `[12345] `, tells who printed them: a count only grows.

    One number before few lines of many begins something else, as a list of ranks does.
    """
    lines: list[str] = sample.to_list()
    numbers = [int(hit["task"] or hit["node"]) for line in lines if (hit := _TASK_LINE.match(line)) is not None]
    grows = all(before < after for before, after in pairwise(numbers))
    is_rare = len({*numbers}) == 1 and 2 * len(numbers) < len(lines) and len(lines) > _FEW_LINES
    return bool(numbers) and not is_rare and not (len(numbers) >= _ENOUGH and grows)


def strip(frame: pl.DataFrame, *, tasks: bool = True, lead: Lead | None = None) -> pl.DataFrame:
    """Take the prefixes off the column `text`; add `raw` (as printed) and `rank` (Int64, null where none was named).

    `tasks`: whether `3: ` or `[12345] ` at the start tells who printed a line. `lead`: what a carrier put before each
    line, taken off, too. A line whose tag stands behind a time or a level stays whole: dialects know such heads.
    To split a line takes 2 µs in Python and 13 in the engine of columns, to see that it has no prefix 0.8 and 0.1.
    """
    text = frame["text"]
    ranks = pl.Series("rank", [None], dtype=pl.Int64).new_from_index(0, frame.height)
    near = None
    if lead is None and frame.height > _FEW:
        near = text.str.contains(MAYBE if tasks else _MAYBE).arg_true()
    maybe = _ANY if tasks else _NO_TASK
    lines: list[str] = (text if near is None else text.gather(near)).to_list()
    places = range(len(lines)) if near is None else near.to_list()
    found: list[tuple[int, str, int | None]] = []
    for at, line in zip(places, lines, strict=True):
        begin, told = lead.match(line) if lead is not None else (0, None)
        rest = line[begin:]
        if maybe.match(rest) is not None and (hit := _PREFIX.match(rest)) is not None:
            rank = _rank_in(hit)
            found.append((at, rest[0 if hit["head"] else hit.end() :], told if rank is None else rank))
        elif begin:
            found.append((at, rest, told))
    frame = frame.hstack([text.alias("raw")])
    if found:
        rows = [at for at, _, _ in found]
        text = text.scatter(rows, [rest for _, rest, _ in found])
        ranks = ranks.scatter(rows, [rank for _, _, rank in found])
        frame = frame.replace_column(frame.columns.index("text"), text)
    return frame.hstack([ranks])
