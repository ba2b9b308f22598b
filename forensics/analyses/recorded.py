"""The signals that a run recorded: each with the file that holds most of it, and its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import polars as pl

from forensics.analyses.memory.kinds import MEANINGS
from forensics.analyses.pace.clocks import clocks
from forensics.analyses.pace.names import pace_name
from forensics.analyses.pace.parts import is_part
from forensics.case.endings import ending
from forensics.case.errors.coded import codes
from forensics.case.series import Index, index_of, keys_of
from forensics.case.settings import keyed, keys_with, settings
from forensics.case.world import world
from forensics.knowledge.recordings import Recording, recordings
from forensics.model import Recorded
from forensics.patterns import compiled, having
from forensics.store.run import Run, derived

#: Names of metrics that an analysis knows, by the kind of signal that they are: from the canonical and the raw name.
_KINDS: Mapping[str, Callable[[str, str], bool]] = MappingProxyType(
    {
        "data_time": lambda name, raw: is_part(name, "data") or is_part(raw, "data"),
        "pace": lambda name, raw: (pace_name(raw) or pace_name(name)) is not None,
        "device_memory": lambda name, _: name in MEANINGS and not MEANINGS[name].is_host,
        "host_memory": lambda name, _: name in MEANINGS and MEANINGS[name].is_host,
    }
)


@derived
def recorded(run: Run) -> Mapping[str, Recorded]:
    """Give the signals that were seen, in the order of the table of signals."""
    index, metrics = index_of(run), {one.signal: own for one, own in _metrics(_covered(run))}
    found = ((one, _most(one, metrics.get(one.signal), index) or _elsewhere(one, run)) for one in recordings().values())
    return {one.signal: seen for one, seen in found if seen is not None}


def asked(run: Run) -> tuple[Recording, ...]:
    """List the signals that a run like this one could have recorded."""
    alone = len(world(run)) <= 1
    return tuple(one for one in recordings().values() if not (one.ranks and alone))


def is_evaluation_only(run: Run) -> bool:
    """Whether a place holds results of evaluations, and nothing of a training."""
    seen = recorded(run)
    return "evaluations" in seen and not {"loss", "end"}.intersection(seen)


def _covered(run: Run) -> pl.DataFrame:
    """Each name of each source: its series in the index, and how many records they have."""
    names = keys_of(run).with_row_index("series").group_by("source", "name", "raw_name", maintain_order=True)
    return names.agg(pl.col("series"), records=pl.col("n").sum())


def _metrics(covered: pl.DataFrame) -> Iterator[tuple[Recording, pl.DataFrame]]:
    """The rows of each signal that metrics show; those without one are left out."""
    if covered.is_empty():
        return
    every = recordings()
    names = list(covered.select("name", "raw_name").iter_rows())
    named = {one.signal: {*having(covered["name"], f"^(?i:{one.metrics})$")} for one in every.values() if one.metrics}
    marks = {signal: pl.Series([name in own for name, _ in names]) for signal, own in named.items()}
    for one in every.values():
        if one.kind in _KINDS:
            marks[one.signal] = pl.Series([_KINDS[one.kind](name, raw) for name, raw in names])
    yield from ((every[signal], covered.filter(mark)) for signal, mark in marks.items() if mark.any())


def _most(one: Recording, own: pl.DataFrame | None, index: Index) -> Recorded | None:
    """The source with most records of a signal; None where no metric is one."""
    if own is None:
        return None
    most = _first_with_most(own)
    return Recorded(one.signal, one.label, most["source"], most["records"], *index.reach(most["series"]))


def _first_with_most(rows: pl.DataFrame) -> Mapping[str, Any]:
    records = rows["records"].to_list()
    return rows.row(records.index(max(records)), named=True)


def _elsewhere(one: Recording, run: Run) -> Recorded | None:
    """The first source of a signal that is no metric, and how many rows it has."""
    for frame in _frames(one, run):
        rows = frame.group_by("source", maintain_order=True).agg(records=pl.len()).collect()
        if rows.height:
            most = _first_with_most(rows)
            return Recorded(one.signal, one.label, most["source"], most["records"])
    if one.kind == "settings" and (known := settings(run)):
        place = next(iter(known.values())).place
        return Recorded(one.signal, one.label, place.rsplit(":", 1)[0], len(known))
    if one.kind == "pace" and (found := clocks(run)):
        longest = max(found, key=len)
        at = longest.rows["at"]
        return Recorded(one.signal, one.label, longest.source, len(longest), at[0], at[-1])
    if one.kind == "end" and (mark := ending(run).success) is not None:
        return Recorded(one.signal, one.label, mark.source, 1)
    return None


def _frames(one: Recording, run: Run) -> list[pl.LazyFrame]:
    """Rows that show a signal, in the tables in which it may be."""
    found = [run.scan(table) for table in one.tables if table in run.frames]
    if one.events and (own := [code for code in codes(run) if compiled(f"^(?:{one.events})$").search(code)]):
        found.append(run.scan("events").filter(pl.col("code").is_in(own)))
    if one.facts and keys_with(run, pattern := f"(?i)(?:^|[./]){one.facts}$"):
        found.append(keyed(run, pattern))
    if one.formats:
        found.append(run.scan("sources").filter(pl.col("format").str.contains(f"^(?:{one.formats})$")))
    if one.ranks:
        ranked = run.collect("sources").drop_nulls("rank")
        found += [ranked.lazy()] if ranked["rank"].n_unique() > 1 else []
    return found
