"""From the words of NaN detectors to candidates: a guard's line, a watcher's exception, a sampler fed with NaN."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from msgspec import Struct

from forensics.analyses.nan.series import Candidate, Status, step_after
from forensics.case.end_markers import ends_the_log, last_lines
from forensics.case.errors.coded import codes, ending_with, events_of
from forensics.case.errors.kinds import Weight, attributes, of_exception, of_line
from forensics.case.evidence import Row
from forensics.case.last_steps import last_step
from forensics.case.nonfinite import Watched, watched
from forensics.case.steps import SERIES
from forensics.knowledge.errors import telling
from forensics.knowledge.vocabulary import words_for
from forensics.patterns import lazily
from forensics.store.run import Run, derived
from forensics.values import replace

#: So many finite losses after a detector's last line mean that training went on; so many lines at most are a stumble.
_SURVIVED = 2
_STUMBLES = 3
_NAN_SHAPE = r'"shape":\s*"nan"'
_BLAMED, _CONTEXT = r'"role":\s*"(?:root|symptom)"', r'"role":\s*"context"'
_OP = r'"op":\s*"([^"]+)"'
_BACKWARD = r"Function '(\w+Backward\d*)' returned nan values"
_NAMED = r"(?i)(?:nan|inf|nan/inf|non-?finite)(?: values?| gradients?)? (?:in|at|for) ([A-Za-z_][\w]*(?:\.[\w]+)+)"
_FINITE_LOSS = pl.col("role").is_in(["loss", "part"]) & ~pl.col("bad")
_PLACE = pl.coalesce("line", "seq").fill_null(0)
#: A detector's own words for when it fired.
_WHEN = lazily(r"(?i)\b(?:iter(?:ation)?|(?:global[_ ])?step)\b\s*(?:number|no\.?)?\s*[=#:]?\s*(\d{1,12})\b")


class _Line(Struct, frozen=True):
    """A detector's line; `skipped`: it says that the update was left out, so that the weights are those from before.

    `worded`: its step is the one that its words name.
    """

    row: Row
    line: int
    echo: bool
    skipped: bool = False
    worded: bool = False


def detector_candidates(run: Run) -> list[Candidate]:
    """Judge the detectors' lines of every source."""
    lines = [*_dialect_lines(run)]
    spoken = {(item.row["source"], item.line) for item in lines}
    lines += [item for item in _errors(run) if (item.row["source"], item.line) not in spoken]
    by_source: dict[str, list[_Line]] = {}
    for item in sorted(lines, key=lambda item: (item.row["source"], item.line)):
        by_source.setdefault(item.row["source"], []).append(item)
    return [candidate for own in by_source.values() for candidate in _judge(run, own, watched(run, every=True))]


def detector_lines(run: Run) -> list[Row]:
    """The event rows of dialects' own NaN lines, in file order."""
    return [item.row for item in _dialect_lines(run)]


def _dialect_lines(run: Run) -> Iterator[_Line]:
    rows = events_of(run, ending_with(run, ".nan"), ("source", "seq"))
    for row in rows.iter_rows(named=True):
        yield _Line(row, row["line"] or row["seq"] or 0, echo=False)


def _errors(run: Run) -> Iterator[_Line]:
    """Signatures that report NaN as an error, and exceptions whose words do."""
    attrs, code = pl.col("attrs").fill_null(""), pl.col("code")
    says, alone = attrs.str.contains(_NAN_SHAPE) & attrs.str.contains(_BLAMED), telling("exception")
    if raising := codes(run) & {"traceback", *alone}:  # the pattern of these words takes a millisecond to compile
        says |= code.is_in(raising) & attrs.str.contains(words_for("may_be_of_nan"))
    rows = run.scan("events").filter(says & ~code.str.ends_with(".nan")).sort("source", "seq").collect()
    if rows.is_empty():
        return
    last = last_lines(run)
    told = set(rows.filter(code == "traceback").select("source", "line").iter_rows())
    speaking = rows.select("source", "line", "rank").drop_nulls().iter_rows()
    named = {(source, line): rank for source, line, rank in speaking}
    skips = _skips(run) if len(rows) else frozenset[tuple[str, int]]()
    for row in rows.iter_rows(named=True):
        said = attributes(row["attrs"])
        message = said.get("message", said.get("msg", ""))
        lone = row["code"] in alone
        raises = lone or row["code"] == "traceback"
        asked = said.get("statement", "")
        judged = of_exception(said.get("exc", ""), message, (), asked) if raises else of_line(row["code"], said)
        if judged is None or judged[1] != "nan":
            continue
        place = (row["source"], row["line"])
        if lone and (place in told or not ends_the_log(*place, last)):
            continue
        echo = judged[0] == Weight.ECHO
        timed, skipped = _timed(row), echo and place in skips
        # an exception whose words name a rank is printed by a launcher that has none
        whose = timed if row["rank"] is not None else {**timed, "rank": named.get(place)}
        yield _Line(whose, row["line"] or row["seq"] or 0, echo=echo, skipped=skipped, worded=timed is not row)


def _skips(run: Run) -> frozenset[tuple[str, int]]:
    """The places of lines that say that an update was skipped."""
    rows = events_of(run, telling("skipped_update")).select("source", "line")
    return frozenset(rows.drop_nulls("line").iter_rows())


def _timed(row: Row) -> Row:
    """The row with the step that its words name, where it has none of its own."""
    said = _WHEN.search(row["text"] or "") if row["step"] is None else None
    return row if said is None else {**row, "step": int(said[1])}


def _judge(run: Run, lines: list[_Line], rows: Watched) -> Iterator[Candidate]:
    source = lines[0].row["source"]
    losses = rows.filter((pl.col("source") == source) & _FINITE_LOSS)
    # a record with several losses is one
    at = losses.filter(pl.col("value") != 0.0).frame("line", "seq").select(_PLACE).to_series().unique()
    after = int((at > lines[-1].line).sum()) if len(at) else _later_elsewhere(run, lines[-1], rows)
    ended = after >= _SURVIVED
    first = lines[0] if ended else _last_stretch(lines, at)
    before = losses.filter(first.line > _PLACE) if len(losses) else _elsewhere(run, first, rows)
    clean = before.row(-1) if len(before) else None
    of_record = rows.filter((pl.col("source") == source) & (pl.col("line") == first.line))["at"].drop_nulls()
    # `epoch: 3 step: 201, loss is nan` counts within its epoch; a bar before `step 67: loss is nan` is of another step
    if first.worded and len(of_record) and first.row["step"] not in of_record:
        first = replace(first, row={**first.row, "step": int(of_record[0])})
    step = first.row["step"] if first.row["step"] is not None else _next(run, first, before)
    if step is None and not len(losses):
        step = _reached(run, first)
    if ended:
        few = len(lines) <= max(_STUMBLES, (len(at) or after) // 20)
        status = Status.TRANSIENT if few else Status.INTERMITTENT
    elif len(lines) <= _STUMBLES and all(line.skipped for line in lines):
        status = Status.TRANSIENT
    else:
        status = Status.FAILED
    yield Candidate(
        status=status,
        role="echo" if first.echo else "detector",
        row=first.row,
        clean=clean,
        step=step,
        n=len(at) + len(lines),
        n_bad=len(lines),
        n_after=after,
        own_step=first.row["step"] is not None,
    )


def _next(run: Run, line: _Line, before: Watched) -> int | None:
    """The step of the record that is due at a line; a bar that has counted on since the last record says it exactly."""
    due, reached = step_after(before), _reached(run, line) if len(before) else None
    steps = before["at"].drop_nulls()
    return due if due is None or reached is None or not steps[-1] < reached < due else reached + 1


def _elsewhere(run: Run, line: _Line, rows: Watched) -> Watched:
    """The finite losses before a line of a file that holds none: of the store nearest to it that reached its step."""
    reached = _reached(run, line)
    if reached is None:
        return rows[:0]
    found = rows.filter(_FINITE_LOSS & (pl.col("at") <= reached))
    last = found.highest("at")
    return found.of(last.row(0)) if len(last) else last


def _later_elsewhere(run: Run, line: _Line, rows: Watched) -> int:
    """How many finite losses the store with most of them holds behind the step of a line of a file without losses."""
    step = line.row["step"] if line.row["step"] is not None else _reached(run, line)
    if step is None:
        return 0
    later = rows.filter(_FINITE_LOSS & (pl.col("at") > step))
    return max(later.count(*SERIES)["len"].to_list(), default=0)


def _reached(run: Run, line: _Line) -> int | None:
    """The step that a run had reached at a line, whatever the line says."""
    row = line.row
    return last_step(run, row["source"], line.line, row["t_ns"], row["rank"])


def _last_stretch(lines: list[_Line], at: pl.Series) -> _Line:
    """The first line of those at the end between which no run of finite losses lies."""
    first = len(lines) - 1
    while first and int(((at > lines[first - 1].line) & (at < lines[first].line)).sum()) <= _SURVIVED:
        first -= 1
    return lines[first]


# What a debug aid of the run's own names as the first that was not finite: an operation, a layer, a parameter.


class Named(Struct, frozen=True):
    """The name in a line: the event row, the name, and `frame`, the forward call that anomaly detection prints.

    `says_nan` is whether a line says that a value was not finite: anomaly detection names the forward call of every
    exception of the backward pass, whatever it was.
    """

    row: Row
    name: str
    frame: str
    says_nan: bool


@derived
def named_operation(run: Run) -> Named | None:
    """Give the first operation or module that a line names, by source and line; None where none does."""
    text, attrs = pl.col("text").fill_null(""), pl.col("attrs").fill_null("")
    nan = attrs.str.contains(_NAN_SHAPE) | pl.col("code").str.ends_with(".nan") | (pl.col("code") == "traceback")
    named = pl.coalesce(attrs.str.extract(_OP), *(text.str.extract(p) for p in (_BACKWARD, _NAMED)))
    told = run.scan("events").filter(nan).sort("source", "line", "seq").collect()
    if told.is_empty():  # the patterns below take 4 ms to compile
        return None
    rows = told.with_columns(named=named)
    first = rows.filter(pl.col("named").is_not_null()).head(1)
    if first.is_empty():
        return None
    row = first.row(0, named=True)
    calls = rows.filter((pl.col("code") == "forward_call") & (pl.col("source") == row["source"]))
    near = calls.sort((pl.col("line") - (row["line"] or 0)).abs()).head(1).rows(named=True)
    own = nan & ~attrs.str.contains(_CONTEXT) & (pl.col("code") != "traceback")
    says_nan = rows.filter(own | text.str.contains(_BACKWARD) | text.str.contains(_NAMED)).height > 0
    return Named(row, str(row["named"]), attributes(near[0]["attrs"]).get("frame", "") if near else "", says_nan)
