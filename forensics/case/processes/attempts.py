"""Attempts of a run, over all of its stores: which process each place belongs to, and which one is judged.

Inside a source an attempt begins where a process does (`starts`) or where the steps go back; `lives` puts sources in
order that go on from each other. The source that tells most attempts numbers them all: one that tells fewer ends with
the last, one that only counts on is cut at the checkpoint that another names, and what none places has its time.

The last attempt that trained, failed or said that it finished is judged; what ended an earlier one decides nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

import polars as pl
from msgspec import Struct, field

from forensics.case.end_markers import ends_of
from forensics.case.joined.stores import kind_of, stores_of
from forensics.case.processes.fold_counters import is_next_fold
from forensics.case.processes.launches import launches
from forensics.case.processes.lives import Boundary, Life, boundaries, is_new, lives, steps_of_copies, steps_of_launches
from forensics.case.processes.starts import Start, is_failure, is_last_word, openings, starts
from forensics.case.series import metric_rows
from forensics.case.steps import at
from forensics.store.run import Run, derived
from forensics.values import replace

#: An attempt that logs so many records has got over what ended the one before it; fewer may still be in a buffer.
GOES_ON_RECORDS = 3
#: Tables whose rows have a place in the order of their source.
_PLACED = frozenset(("metrics", "events", "checkpoints"))


class Cut(Struct, frozen=True):
    """A place of a source from which on it belongs to attempt `number`."""

    number: int
    seq: int
    line: int | None = None
    byte: int | None = None


class Attempt(Struct, frozen=True):
    """One process, or one group of ranks: where it began, the steps that it logged, and whether it can be judged.

    `start` is None for the first one. `first` and `last` are the steps of its training records, `records` their number
    in the source that has most; `t_ns` is when it began. `failed` says that it contains an error.
    """

    number: int
    start: Start | None = None
    first: int | None = None
    last: int | None = None
    records: int = 0
    t_ns: int | None = None
    failed: bool = False
    ended: bool = False

    @property
    def speaks(self) -> bool:
        """Whether what it did is enough to be judged by."""
        by_launcher = self.start is not None and self.start.by_launcher
        return self.records >= GOES_ON_RECORDS or self.ended or (self.failed and not by_launcher)


class Attempts(Struct, frozen=True):
    """All attempts in order of time, at least one, and where they begin in each source."""

    every: tuple[Attempt, ...]
    cuts: Mapping[str, tuple[Cut, ...]] = field(default_factory=dict[str, tuple[Cut, ...]])

    @property
    def judged(self) -> Attempt:
        """The last attempt that did enough to be judged by."""
        return next((one for one in reversed(self.every) if one.speaks), self.every[-1])

    @property
    def loop(self) -> tuple[Attempt, ...]:
        """The attempts that died where the judged one did, itself included; none where they are fewer than two."""
        last = self.judged
        if not last.failed or last.ended or last.last is None:
            return ()
        near = max(1, round((last.last - (last.first or 0)) / max(1, last.records - 1)))
        same = [
            one for one in self.every
            if one.failed and one.last is not None and one.number <= last.number and abs(one.last - last.last) <= near
        ]  # fmt: skip
        return tuple(same) if len(same) > 1 else ()

    @property
    def stuck(self) -> int:
        """How many attempts in a row, up to the last that failed, got no further than the first of them; at least 1.

        One without a step is taken for one that got no further: nothing says that it did. What an attempt reached is
        lost where the next one began no later than it did.
        """
        count, furthest = 1, None
        failed = [one.number for one in self.every if one.failed]
        tried = self.every[: max([self.judged.number, *failed[-1:]]) + 1]
        for one, following in zip(tried, (*tried[1:], None), strict=True):
            gap = round((one.last - (one.first or 0)) / max(1, one.records - 1)) if one.last is not None else 0
            further = one.last is not None and (furthest is None or one.last > furthest + max(1, gap))
            count = 1 if one is tried[0] or (further and _is_kept(one, following)) else count + 1
            furthest = one.last if further else furthest
        return count

    def of(self, source: str, *, line: int | None = None, byte: int | None = None, t_ns: int | None = None) -> int:
        """Give the number of the attempt that contains a place; the last one where nothing tells."""
        told = self._told(source, line, byte, t_ns)
        return self.every[-1].number if told is None else told

    def _told(self, source: str, line: int | None, byte: int | None, t_ns: int | None) -> int | None:
        cuts = self.cuts.get(source)
        if cuts is not None:
            behind = bisect_left(cuts, x=True, key=lambda cut: not _reached(cut, line, byte))
            return cuts[max(behind - 1, 0)].number
        times = [one.t_ns for one in self.every[1:]]
        if t_ns is not None and times and all(t is not None for t in times):
            return bisect_right([t for t in times if t is not None], t_ns)
        return None

    def end_of(self, source: str, at: int) -> int | None:
        """Give the place of a source, a line or a byte, at which the attempt after that of another place begins."""
        places = [cut.line if cut.line is not None else cut.byte for cut in self.cuts.get(source, ())]
        return min((place for place in places if place is not None and place > at), default=None)

    def start_of(self, life: Life) -> Start | None:
        """Give what says best that the process began which trained a life, in whichever store it stands."""
        cuts = self.cuts.get(life.source, ())
        behind = bisect_right(cuts, life.seq_first, key=lambda cut: cut.seq)
        return self.every[cuts[behind - 1].number if behind else 0].start or life.start

    def is_over(
        self, source: str, *, line: int | None = None, byte: int | None = None, t_ns: int | None = None
    ) -> bool:
        """Whether a place is in an attempt that a later one, which is judged instead, went on from.

        Where nothing tells the attempt of a failure it is not that of a process that says how well it ended.
        """
        if len(self.every) == 1:
            return False
        told = self._told(source, line, byte, t_ns)
        return self.judged.ended if told is None else told < self.judged.number


def _is_kept(one: Attempt, following: Attempt | None) -> bool:
    """Whether the attempt after one went on from a later step; it counts as kept where nothing tells."""
    if following is None or one.first is None or following.first is None:
        return True
    return following.first > one.first


def _reached(cut: Cut, line: int | None, byte: int | None) -> bool:
    if cut.byte is not None and byte is not None:
        return byte >= cut.byte
    if cut.line is not None and line is not None:
        return line >= cut.line
    return cut.seq < 0


@derived
def attempts(run: Run) -> Attempts:
    """Give the attempts of a run."""
    inside, edges = starts(run), boundaries(run)
    joins = [edge for edge in edges if edge.before.source != edge.after.source]
    fresh = _counts_anew(run, inside, edges)
    inside = {source: kept for source, own in inside.items() if (kept := tuple(s for s in own if s not in fresh))}
    launched = _spaced(launches(run), inside)
    base = _bases(inside, joins, launched)
    base |= _as_copies(run, inside, base)
    copies = [(start, step) for start, step in steps_of_copies(run) if start.source not in {*inside, *base}]
    last = max((base.get(source, 0) + len(inside.get(source, ())) for source in {*inside, *base}), default=0)
    if not inside and not base and not copies:
        return Attempts((Attempt(0),))
    count = 1 + max(last, len(copies))
    base |= {start.source: count - len(copies) + i for i, (start, _) in enumerate(copies)}
    cuts = {source: _cuts(source, inside.get(source, ()), base, count) for source in {*inside, *base}}
    begins = _begins(run, cuts, inside, joins, launched)
    loaded = {number: start.step for number, start in enumerate(begins) if start is not None and start.step}
    loaded |= {launched[start.source]: int(step) - 1 for start, step in steps_of_launches(run)}
    loaded |= {base[start.source]: int(step) - 1 for start, step in copies}
    cuts |= _by_steps(run, cuts, loaded)
    return Attempts(_described(run, cuts, begins), cuts)


def of_judged(run: Run) -> Run:
    """Give the run as if only the attempt that is judged, and later ones, had written.

    Rules that tell the first find of a run then tell theirs.
    """
    own = {table: judged_rows(run, rows) if table in _PLACED else rows for table, rows in run.frames.items()}
    return replace(run, frames=own, held={})


def judged_rows(run: Run, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Rows (with `source` and `seq`) that the attempt wrote that is judged, or a later one."""
    tried = attempts(run)
    begins = {
        source: min((cut.seq for cut in cuts if cut.number >= tried.judged.number), default=None)
        for source, cuts in tried.cuts.items()
    }
    gone = [source for source, seq in begins.items() if seq is None]
    places = [(source, seq) for source, seq in begins.items() if seq is not None]
    since = pl.LazyFrame(places, schema={"source": pl.String, "since": pl.Int64}, orient="row")
    kept = rows.filter(~pl.col("source").is_in(gone)).join(since, on="source", how="left", maintain_order="left")
    return kept.filter(pl.col("since").is_null() | pl.col("seq").is_null() | (pl.col("seq") >= pl.col("since"))).drop(
        "since"
    )


def _counts_anew(run: Run, inside: Mapping[str, Sequence[Start]], edges: Sequence[Boundary]) -> set[Start]:
    """Steps that went back without a sign of a new process, and whose loss goes on: the next epoch of the same one."""
    silent = {
        source: [start for start in own if not start.quote and not start.resumed] for source, own in inside.items()
    }
    anew = set[Start]()
    for edge in edges:
        low, high = edge.before.seq_last, edge.after.seq_first
        own = silent.get(edge.after.source, ())
        begins = own[bisect_right(own, low, key=_seq) : bisect_right(own, high, key=_seq)]
        if edge.kind not in {"scratch", "stage"} or not begins or is_next_fold(run, edge.after.source, low, high):
            continue
        if not is_new(run, edge) and not _is_told(edge, inside):
            anew.update(begins)
    return anew


def _seq(start: Start) -> int:
    return start.seq


def _is_told(edge: Boundary, inside: Mapping[str, Sequence[Start]]) -> bool:
    """Whether another source says that a process went on from a checkpoint of the life before an edge."""
    old = edge.before
    others = [s for source, own in inside.items() if source != old.source for s in own if s.quote and s.step]
    return any(old.first < (s.step or 0) <= old.last + 2 * max(old.every, 1) for s in others)


def _spaced(launched: Mapping[str, int], inside: Mapping[str, Sequence[Start]]) -> dict[str, int]:
    """The number of the first attempt of each launch: in the log of one, others may have begun."""
    own = dict[int, int]()
    for source, number in launched.items():
        own[number] = max(own.get(number, 0), len(inside.get(source, ())))
    before = {number: number + sum(own[earlier] for earlier in own if earlier < number) for number in own}
    return {source: before[number] for source, number in launched.items()}


def _bases(
    inside: Mapping[str, Sequence[Start]], joins: Sequence[Boundary], launched: Mapping[str, int]
) -> dict[str, int]:
    """The number of the first attempt of each source that goes on from another, or that another goes on from.

    Two sources of a rank and of one kind that went on from one checkpoint are one attempt after the other.
    """
    base = {**launched}
    taken: dict[tuple[int | None, str, int], str] = {}
    for edge in sorted(joins, key=_in_time):  # each source has one parent, which comes before it
        old, source = edge.before, edge.after.source
        before = base.setdefault(old.source, 0) + _begun(inside, old.source, old.seq_first)
        if source in launched:
            continue
        number, kind = max(base.get(source, 0), before + 1), kind_of(source)
        while taken.setdefault((edge.after.rank, kind, number), source) != source:
            number += 1
        base[source] = number
    return base


def _as_copies(run: Run, inside: Mapping[str, Sequence[Start]], base: Mapping[str, int]) -> dict[str, int]:
    """The number of the first attempt of each source that nothing places and that a placed one holds in full."""
    found: dict[str, int] = {}
    for match in [m for link in stores_of(run).links for m in link.same] if base else ():
        (a, at_a), (b, at_b) = (match.a.source, match.first[0]), (match.b.source, match.first[1])
        for own, seq, other, place, covered in (a, at_a, b, at_b, match.covers_a), (b, at_b, a, at_a, match.covers_b):
            if covered and own not in base and other in base:
                number = base[other] + _begun(inside, other, place) - _begun(inside, own, seq)
                found.setdefault(own, max(number, 0))
    return found


def _begun(inside: Mapping[str, Sequence[Start]], source: str, seq: int) -> int:
    """How many processes had begun inside of a source before a place of it."""
    return sum(start.seq <= seq for start in inside.get(source, ()))


def _in_time(edge: Boundary) -> tuple[int, int, list[tuple[int, str]]]:
    """The order of attempts: by the steps they went on from, their clocks, and the numbers in the names of logs."""
    after = edge.after
    pieces = re.findall(r"\d+|\D+", after.source)
    name = [(int(piece), "") if piece.isdigit() else (0, piece) for piece in pieces]
    return edge.before.first, after.t_first or 0, name


def _cuts(source: str, own: Sequence[Start], base: Mapping[str, int], count: int) -> tuple[Cut, ...]:
    """The attempts of a source; one that nothing puts in order ends with the last attempt."""
    first = base.get(source, count - 1 - len(own))
    places = [Cut(first + 1 + i, start.seq, start.line, start.byte) for i, start in enumerate(own)]
    return (Cut(first, -1), *places)


def _begins(
    run: Run,
    cuts: Mapping[str, Sequence[Cut]],
    inside: Mapping[str, Sequence[Start]],
    joins: Sequence[Boundary],
    launched: Mapping[str, int],
) -> list[Start | None]:
    """What says best that each attempt begins: a line with the step that was loaded, with a time, or any."""
    found: list[list[Start]] = [[] for _ in range(1 + max(cut.number for own in cuts.values() for cut in own))]
    first = openings(run)
    for source, number in launched.items():
        if number:
            found[number].append(first.get(source, Start(source, -1)))
    for source, own in inside.items():
        for start, cut in zip(own, cuts[source][1:], strict=True):
            found[cut.number].append(start)
    for edge in joins:
        after = edge.after
        place = after.start or Start(after.source, after.seq_first, after.line_first, None, after.t_first)
        found[cuts[after.source][0].number].append(place)
    return [
        max(own, key=lambda s: (s.step is not None, s.t_ns is not None, s.resumed, bool(s.quote)), default=None)
        for own in found
    ]


def _by_steps(run: Run, cuts: Mapping[str, Sequence[Cut]], loaded: Mapping[int, int]) -> dict[str, tuple[Cut, ...]]:
    """Cuts of the sources that only went on counting: at their first record after the step that was loaded."""
    alone = {life.source for life in lives(run)} - {*cuts}
    if not loaded or not alone:
        return {}
    rows = (
        metric_rows(run, pl.col("source").is_in(sorted(alone)) & (pl.col("name") == "loss"))
        .select("source", "seq", "line", "byte", at())
        .filter(pl.col("at").is_not_null())
        .sort("source", "seq")
        .collect()
    )
    found: dict[str, tuple[Cut, ...]] = {}
    for (source,), part in rows.group_by("source", maintain_order=True):
        places = [Cut(0, -1)]
        for number, step in sorted(loaded.items()):
            later = part.filter(pl.col("at") > step)
            if 0 < later.height < part.height:
                row = later.row(0, named=True)
                places.append(Cut(number, row["seq"], row["line"], row["byte"]))
        if len(places) > 1:
            found[str(source)] = tuple(places)
    return found


def _described(run: Run, cuts: Mapping[str, Sequence[Cut]], begins: Sequence[Start | None]) -> tuple[Attempt, ...]:
    marks = [(source, cut.seq, cut.number) for source, own in cuts.items() for cut in own]
    frame = pl.LazyFrame(marks, schema={"source": pl.String, "seq": pl.Int64, "number": pl.Int64}, orient="row").sort(
        "seq"
    )

    def numbered(rows: pl.LazyFrame) -> pl.LazyFrame:
        own = rows.filter(pl.col("source").is_in(sorted(cuts)) & pl.col("seq").is_not_null()).sort("seq")
        return own.join_asof(frame, on="seq", by="source", strategy="backward", check_sortedness=False)

    told = numbered(metric_rows(run, pl.col("name") == "loss").select("source", "seq", at()))
    trained = (
        told.group_by("number", "source")
        .agg(first=pl.col("at").min(), last=pl.col("at").max(), records=pl.len(), until=pl.col("seq").max())
        .sort("records", "source")
        .collect()
    )
    steps = {row["number"]: row for row in trained.iter_rows(named=True)}
    good, bad = ends_of(run).lazy(), run.scan("events").filter(is_failure())
    words = numbered(run.scan("events").filter(is_last_word()).select("source", "seq"))
    until = trained.lazy().select("number", "source", "until")
    last = words.join(until, ["number", "source"], "left").filter(pl.col("seq") > pl.col("until").fill_null(-1))
    marked = (
        *(
            numbered(rows.select("source", "seq")).select("number", good=pl.lit(value=rows is good))
            for rows in (good, bad)
        ),
        last.select("number", good=pl.lit(value=False)),
    )
    ends = set(pl.concat(marked).unique().collect().iter_rows())
    unplaced = good.filter(~pl.col("source").is_in(sorted(cuts)))
    if unplaced.head(1).collect().height:  # a source that nothing places ends with the last attempt
        ends.add((len(begins) - 1, True))
    return tuple(
        Attempt(
            number, start,
            first=steps[number]["first"] if number in steps else None,
            last=steps[number]["last"] if number in steps else None,
            records=steps[number]["records"] if number in steps else 0,
            t_ns=None if start is None else start.t_ns,
            failed=(number, False) in ends, ended=(number, True) in ends,
        )
        for number, start in enumerate(begins)
    )  # fmt: skip
