"""Launchers' prefixes: who printed the line. They stack (`7: [rank7]: …`); the innermost global rank wins.

kubectl `[pod/x/y] `, mpirun `[1,3]<stdout>: `, srun -l `  3: `, torchrun `[default3]:`, PyTorch `[rank3]:`, pdsh and
DeepSpeed `worker-2: [rank20]:`, Ray `(Worker pid=7, ip=1.2.3.4) `, multi-node `[12345] `.
"""

from __future__ import annotations

import polars as pl

from forensics.patterns import lazily

#: What mpirun's time stamps put before its tag: `Fri Aug  1 12:31:45 2031[1,0]<stdout>:`.
_DATE = r"[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [\d:]{8} \d{4}"
#: A host counts as a prefix before the tag of a rank only: `step: ` begins a line, too.
_HOST = r"[A-Za-z0-9][\w.-]{0,63}: ?"
_PARTS = (
    r"(?:\[pod/\S+\] |pod/\S+ )?"
    r"(?:(?:" + _DATE + r")?\[\d+,(?P<mpi>\d{1,7})\]<(?:stdout|stderr|stddiag)>: ?)?"
    r"(?: {0,4}(?P<srun>\d{1,5}): )?"
    r"(?:\[default(?P<local>\d{1,7})\]:\s?)?"
    r"(?:(?:" + _HOST + r")?\[(?:[Rr]ank|RANK)[ _:]?(?P<rank>\d{1,7})\][: ] ?)?"
    r"(?:\((?:\w+(?: pid=\d+)?|pid=\d+)(?:, ip=[\d.]+)?\) )?"
    r"(?:\[\d{5,}\] )?"
)
PATTERN = rf"^{_PARTS}"
_PREFIX = lazily(PATTERN)
#: Groups that name a rank, the most telling first.
_RANKS = ("rank", "mpi", "srun", "local")
_MAYBE = (
    r"^(?:"
    + _DATE
    + r"\[\d+,|\[(?:pod/|\d+,\d+\]<|\d{5,}\] |default\d|[Rr]ank|RANK)|pod/|\((?:\w+ )?pid=|"
    + _HOST
    + r"\[(?:[Rr]ank|RANK)[ _:]?\d)"
)
_TASK = r"^ {0,4}(\d{1,5}): "
#: Finds every line that may begin with a prefix.
MAYBE = rf"{_MAYBE}|{_TASK}"
#: How a line with a prefix may begin.
MAY_BEGIN = lazily(r"[\[(pA-Z0-9 ]")
_ANY, _NO_TASK = lazily(MAYBE), lazily(_MAYBE)
_TASK_LINE = lazily(_TASK)
_ENOUGH = 3
_LEARNED = 16
#: So many lines are read one by one in less time than one round over columns takes.
_FEW = 1000


def split(line: str) -> tuple[str, int | None]:
    """One line's prefix, and the rank it names (None when it names none)."""
    found = _PREFIX.match(line)
    assert found is not None
    ranks = [found[name] for name in _RANKS if found[name] is not None]
    return found[0], int(ranks[0]) if ranks else None


def rank_span(line: str) -> tuple[int, int]:
    """Where the prefix of a line names the rank: begin and end, both 0 where it names none."""
    found = _PREFIX.match(line)
    assert found is not None
    return next((found.span(name) for name in _RANKS if found[name] is not None), (0, 0))


def numbers_tasks(sample: pl.Series) -> bool:
    """Whether a number and a colon at the start of lines is a task of `srun -l`, and not a count that only grows."""
    if len(sample) <= _FEW and not any(map(_TASK_LINE.match, sample.to_list())):
        return False
    numbers = sample.str.extract(_TASK, 1).drop_nulls().cast(pl.Int64)
    grows = bool((numbers.diff().drop_nulls() > 0).all())
    return len(numbers) > 0 and not (len(numbers) >= _ENOUGH and grows)


def strip(frame: pl.DataFrame, *, tasks: bool = True) -> pl.DataFrame:
    """Take the prefixes off the column `text`; add `raw` (as printed) and `rank` (Int64, null where none was named).

    Few ranks write most lines, so prefixes are learned from the first line that has an unknown one and then compared
    as literals; after 16 of them the pattern does the rest. `tasks`: whether `3: ` at the start is a task of srun.
    """
    rank = pl.Series("rank", [None], dtype=pl.Int64).new_from_index(0, frame.height)
    frame = frame.hstack([frame["text"].alias("raw")])
    if not frame.height:
        return frame.hstack([rank])
    text = frame["text"]
    if frame.height <= _FEW:
        maybe = _ANY if tasks else _NO_TASK
        lines = text.to_list()
        parts = {at: split(line) for at, line in enumerate(lines) if maybe.match(line)}
        if not parts:
            return frame.hstack([rank])
        rests = [line[len(parts[at][0]) :] if at in parts else line for at, line in enumerate(lines)]
        ranks = pl.Series("rank", [parts[at][1] if at in parts else None for at in range(len(lines))], dtype=pl.Int64)
        frame = frame.replace_column(frame.columns.index("text"), pl.Series("text", rests, dtype=pl.String))
        return frame.hstack([ranks])
    todo = text.str.contains(MAYBE if tasks else _MAYBE).arg_true()
    for _ in range(_LEARNED):
        if todo.is_empty():
            return frame.with_columns(text=text, rank=rank)
        lines = text.gather(todo)
        prefix, number = split(lines[0])
        if not prefix:
            break
        rest = lines.str.slice(len(prefix))
        longer = MAYBE if prefix.endswith(" ") else rf"{MAYBE}|^ "
        same = lines.str.starts_with(prefix) & ~rest.str.contains(longer)
        if not same.any():
            break
        hit, stripped = todo.filter(same), rest.filter(same)
        text = stripped.rename("text") if len(hit) == len(text) else text.scatter(hit, stripped)
        if number is not None:
            rank = rank.scatter(hit, number)
        todo = todo.filter(~same)
    lines = text.gather(todo)
    parts = lines.str.extract_groups(PATTERN).struct.unnest()
    found = parts.select(pl.coalesce("rank", "mpi", "srun", "local").cast(pl.Int64, strict=False)).to_series()
    text = text.scatter(todo, lines.str.replace(PATTERN, ""))
    return frame.with_columns(text=text, rank=rank.scatter(todo, found))
