"""The text before a line: launchers' prefixes, which tell who printed it, and what a carrier of the whole log adds.

Prefixes stack (`7: [rank7]: …`); the innermost global rank wins. A carrier's lead is a row of `leads.tsv`.

kubectl `[pod/x/y] `, mpirun `[1,3]<stdout>: `, SageMaker `[1,mpirank:3,algo-1]<stdout>:`, srun -l `  3: `, torchrun
`[default3]:`, PyTorch `[rank3]:`, a program's `[r3] `, pdsh and DeepSpeed `worker-2: [rank20]:`,
Ray `(Worker pid=7, ip=1.2.3.4) `, multi-node `[12345] `.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import polars as pl

from forensics.io.tables import table_rows
from forensics.patterns import lazily

#: What mpirun's time stamps put before its tag: `Fri Aug  1 12:31:45 2031[1,0]<stdout>:`.
_DATE = r"[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [\d:]{8} \d{4}"
#: A host counts as a prefix before the tag of a rank only: `step: ` begins a line, too.
_HOST = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}: ?"
#: The word for a rank inside brackets: `[rank3]`, `[r3]`.
_WORD = r"(?:[Rr]ank|RANK|[Rr]k?)"
_PARTS = (
    r"(?:\[pod/\S+\] |pod/\S+ )?"
    r"(?:(?:" + _DATE + r")?\[\d+,(?:mpirank:)?(?P<mpi>\d{1,7})(?:,algo-\d+)?\]<(?:stdout|stderr|stddiag)>: ?"
    r"| {0,4}(?P<srun>\d{1,5}): )?"
    r"(?:\[default(?P<local>\d{1,7})\]:\s?)?"
    r"(?:(?:" + _HOST + r")?\[" + _WORD + r"[ _:]?(?P<rank>\d{1,7})\][: ] ?)?"
    r"(?:\((?:\w+(?: pid=\d+)?|pid=\d+)(?:, ip=[\d.]+)?\) )?"
    r"(?:\[[1-9]\d{4,}\] )?"
)
_PREFIX = lazily(_PARTS)
#: Groups that name a rank, the most telling first.
_RANKS = ("rank", "mpi", "srun", "local")
_MAYBE = (
    r"^(?:"
    + _DATE
    + r"\[\d+,|\[(?:pod/|\d+,(?:\d+\]<|mpirank:)|default\d|[Rr])|pod/|\((?:\w+ )?pid=|"
    + _HOST
    + r"\["
    + _WORD
    + r"[ _:]?\d)"
)
_TASK = r"^(?: {0,4}(?P<task>\d{1,5}): |\[(?P<node>[1-9]\d{4,})\] )"
#: Finds every line that may begin with a prefix.
MAYBE = rf"{_MAYBE}|{_TASK}"
#: How a line with a prefix may begin.
MAY_BEGIN = lazily(r"[\[(pA-Z0-9 ]")
_ANY, _NO_TASK = lazily(MAYBE), lazily(_MAYBE)
_TASK_LINE = lazily(_TASK)
_ENOUGH = 3
_LEADS = tuple(lazily(pattern) for pattern, _ in table_rows("forensics.dialects", "leads.tsv"))
#: A lead holds a time of day, or milliseconds since 1970.
_TIMED = lazily(r".{0,80}?\d\d:\d\d|1\d{12}")
#: A carrier leads all lines; the others were cut where the log was taken out of it.
_LED_SHARE, _LED_LINES, _MOST_LINES = 0.98, 5, 256
#: So many lines are looked at one by one in less time than a search over a column takes to begin.
_FEW = 200


def lead_of(parts: Sequence[bytes]) -> re.Pattern[str] | None:
    """What a carrier puts before each line of a log, from parts of whole lines; None where it adds nothing."""
    every = [line for part in parts for line in part.split(b"\n") if line.strip()]
    lines = [line.decode("utf-8", "replace") for line in every[:: len(every) // _MOST_LINES + 1]]
    least = max(_LED_LINES, _LED_SHARE * len(lines))
    if sum(map(bool, map(_TIMED.match, lines))) < least:  # most logs: no row is compiled
        return None
    return next((lead for lead in _LEADS if sum(map(bool, map(lead.match, lines))) >= least), None)


def split(line: str, lead: re.Pattern[str] | None = None) -> tuple[str, int | None]:
    """One line's prefix, behind a carrier's lead, and the rank it names (None when it names none)."""
    led = lead.match(line) if lead is not None else None
    found = _PREFIX.match(line, led.end() if led is not None else 0)
    assert found is not None
    ranks = [found[name] for name in _RANKS if found[name] is not None]
    return line[: found.end()], int(ranks[0]) if ranks else None


def rank_span(line: str) -> tuple[int, int]:
    """Where the prefix of a line names the rank: begin and end, both 0 where it names none."""
    found = _PREFIX.match(line)
    assert found is not None
    return next((found.span(name) for name in _RANKS if found[name] is not None), (0, 0))


def numbers_tasks(sample: pl.Series) -> bool:
    """Whether a number before lines, `3: ` of `srun -l` or `[12345] `, tells who printed them: a count only grows."""
    numbers = [
        int(found["task"] or found["node"])
        for line in sample.to_list()
        if (found := _TASK_LINE.match(line)) is not None
    ]
    grows = all(before < after for before, after in pairwise(numbers))
    return bool(numbers) and not (len(numbers) >= _ENOUGH and grows)


def strip(frame: pl.DataFrame, *, tasks: bool = True, lead: re.Pattern[str] | None = None) -> pl.DataFrame:
    """Take the prefixes off the column `text`; add `raw` (as printed) and `rank` (Int64, null where none was named).

    `tasks`: whether `3: ` or `[12345] ` at the start tells who printed a line. `lead`: what a carrier put before each
    line, taken off, too.
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
        led = lead.match(line) if lead is not None else None
        rest = line[led.end() :] if led is not None else line
        if maybe.match(rest) is not None:
            prefix, rank = split(rest)
            found.append((at, rest[len(prefix) :], rank))
        elif led is not None:
            found.append((at, rest, None))
    frame = frame.hstack([text.alias("raw")])
    if found:
        rows = [at for at, _, _ in found]
        text = text.scatter(rows, [rest for _, rest, _ in found])
        ranks = ranks.scatter(rows, [rank for _, _, rank in found])
        frame = frame.replace_column(frame.columns.index("text"), text)
    return frame.hstack([ranks])
