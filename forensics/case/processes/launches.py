"""Launches: the processes, or groups of workers, that were started one after the other, in the order of their starts.

Three things tell them. torchrun's agent keeps `<run id>_<random>/attempt_<n>/<local rank>/`: attempts of one folder
follow each other, and of two folders beside each other the later one is another launch where it holds ranks of the
earlier one, or begins after its last line by training or by loading a checkpoint; else they are two nodes of one
launch. Other folders say a number (`attempt_1/`). Logs beside each other whose names differ in their numbers alone, a
job's id or a time (which their folder may say), are of one launch after the other where each but the last ends with a
failure, a stop or an end, and the clocks part them or, without clocks, the later one loads a checkpoint, has a name
that a scheduler gave or one that says a later time. What nothing puts in order stays one launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import polars as pl
from msgspec import Struct

from forensics.case.end_markers import is_end
from forensics.case.processes.starts import is_failure, is_last_word, of_one_clock, openings
from forensics.knowledge.vocabulary import stands_for, words_for
from forensics.patterns import compiled, lazily
from forensics.store.run import Run, derived
from forensics.values import replace

_FOLDER = lazily(r"^(?P<agent>(?P<parent>.*/)?[^/]+/)attempt_(?P<number>\d{1,6})/\d{1,6}/")
_NUMBERS = lazily(r"\d+")
#: A log's name up to its last ending: what a job prints on two streams has one such name. A rotated log has a number
#: for an ending (`train.log.1`), and goes on from a process that did not end.
_LOG = lazily(r"^(?P<stem>.*)\.(?P<ending>out|err|log|txt|[oe]\d{1,12})$")


class _Agent(Struct, frozen=True):
    """What one agent or job wrote: the attempts of its files, the global ranks of its workers, times, what it loaded.

    `dead`: below all that it trained it says how it ended. `order` are the numbers of its name, `moment` is the time
    that it says, as one number (0: none), `speakers` the ranks that its lines name.
    """

    sources: Mapping[str, int]
    ranks: frozenset[int]
    first_ns: int | None
    last_ns: int | None
    trains: bool
    loaded: int | None
    dead: bool = False
    order: tuple[int, ...] = ()
    moment: int = 0
    speakers: frozenset[int] = frozenset()

    def follows(self, before: _Agent) -> bool:
        """Whether it was launched when an earlier one, by the clock, was over."""
        if self.ranks & before.ranks:
            return True
        first, last = self.first_ns, before.last_ns
        apart = first is not None and last is not None and of_one_clock(first, last) and first > last
        return apart and (self.trains or self.loaded is not None)

    def comes_after(self, before: _Agent) -> bool:
        """Whether its log is of a job that was started when that of an earlier one had died, and not of its peers."""
        are_peers = self.speakers and before.speakers and self.speakers.isdisjoint(before.speakers)
        if not before.dead or are_peers:
            return False
        first, last = self.first_ns, before.last_ns
        if first is not None and last is not None and first != last and of_one_clock(first, last):
            return first > last
        by_scheduler = all(stands_for("log_of_a_scheduler", source.rpartition("/")[2]) for source in self.sources)
        return self.loaded is not None or by_scheduler or self.moment > before.moment > 0


@derived
def launches(run: Run) -> Mapping[str, int]:
    """Give the number of the group of workers that each source belongs to; empty where there is one or none."""
    table = run.scan("sources").select("source", "rank", "attempt", "ingester").sort("source").collect()
    known = dict(table.select("source", "rank").iter_rows())
    return _of_agents(run, known) or _of_folders(table) or _of_jobs(run, table)


def _of_agents(run: Run, known: Mapping[str, int | None]) -> Mapping[str, int]:
    folders: dict[str, dict[str, dict[str, int]]] = {}
    for source in known:
        if (hit := _FOLDER.match(source)) is not None:
            agents = folders.setdefault(hit["parent"] or "", {})
            agents.setdefault(hit["agent"], {})[source] = int(hit["number"])
    if sum(len({*own.values()}) for agents in folders.values() for own in agents.values()) < 2:
        return {}
    found = [_numbered(_ordered(list(_agents(run, agents.values(), known)))) for agents in folders.values()]
    return max(found, key=lambda one: max(one.values(), default=0))


def _of_folders(table: pl.DataFrame) -> Mapping[str, int]:
    """The numbers that folders say, from 0 on without a gap."""
    told = table.filter(pl.col("attempt").is_not_null())
    numbers = {number: i for i, number in enumerate(sorted({*told["attempt"]}))}
    places = told.select("source", "attempt").iter_rows() if len(numbers) > 1 else ()
    return {source: numbers[number] for source, number in places}


def _of_jobs(run: Run, table: pl.DataFrame) -> Mapping[str, int]:
    """The order of logs that jobs of one name wrote beside each other."""
    families: dict[str, dict[tuple[int, ...], dict[str, int]]] = {}
    logs = table.filter(pl.col("rank").is_null() & (pl.col("ingester") == "text_log"))["source"]
    for source in logs:
        if (hit := _LOG.match(source)) is not None:
            named = _named(source)
            numbers = tuple(map(int, _NUMBERS.findall(named)))
            kind = f"{source[: -len(named)]}/{_NUMBERS.sub('#', named.removesuffix(hit['ending']))}"
            families.setdefault(kind, {}).setdefault(numbers, {})[source] = 0
    found: list[dict[str, int]] = []
    for jobs in families.values():
        if len(jobs) > 1 and all(jobs):
            known = dict.fromkeys(logs)
            agents = _agents(run, jobs.values(), known)
            told = [
                replace(agent, order=order, moment=_moment(_named(next(iter(agent.sources)))))
                for agent, order in zip(agents, jobs, strict=True)
            ]
            found.append(_in_turn(told))
    return max(found, key=len, default=dict[str, int]())


def _named(source: str) -> str:
    """The name of a log, with its folder where that says a time: `2031-05-06_11-21-00/main.log`."""
    folder, _, name = source.rpartition("/")
    last = folder.rpartition("/")[2]
    return f"{last}/{name}" if _moment(last) else name


def _moment(name: str) -> int:
    """The time that a name says, as one number; 0 where it says none."""
    hit = compiled(words_for("moment_in_a_name")).search(name)
    return int("".join(filter(str.isdigit, hit[0])).ljust(14, "0")) if hit is not None else 0


def _in_turn(jobs: Sequence[_Agent]) -> dict[str, int]:
    """The jobs by launch, in the order of their clocks, else of the numbers in their names; none where two overlap."""
    timed = all(of_one_clock(jobs[0].first_ns, job.first_ns) for job in jobs)
    order = sorted(jobs, key=lambda one: ((one.first_ns or 0) if timed else 0, one.order))
    if not all(after.comes_after(before) for before, after in pairwise(order)):
        return {}
    return {source: number for number, job in enumerate(order) for source in job.sources}


def _agents(run: Run, folders: Iterable[Mapping[str, int]], ranks: Mapping[str, int | None]) -> Iterable[_Agent]:
    loaded = openings(run)
    spans = {
        source: (first, last, trains, dead, speakers)
        for source, first, last, trains, dead, speakers in pl.concat(
            run.scan(table).select("source", "seq", "t_ns", "rank", trains=pl.lit(value=table == "metrics"), ends=ends)
            for table, ends in (("events", is_failure() | is_end() | is_last_word()), ("metrics", pl.lit(value=False)))
        )
        .group_by("source")
        .agg(
            first=pl.col("t_ns").min(),
            last=pl.col("t_ns").max(),
            trains=pl.col("trains").any(),
            dead=pl.col("seq").filter("ends").max() > pl.col("seq").filter("trains").max().fill_null(-1),
            speakers=pl.col("rank").drop_nulls().unique(),
        )
        .collect()
        .iter_rows()
    }
    for sources in folders:
        own = [spans[source] for source in sources if source in spans]
        steps = [loaded[source].step or 0 for source in sources if source in loaded]
        yield _Agent(
            sources,
            frozenset(rank for source in sources if (rank := ranks.get(source)) is not None),
            min((first for first, *_ in own if first is not None), default=None),
            max((last for _, last, *_ in own if last is not None), default=None),
            any(trains for _, _, trains, *_ in own),
            max(steps, default=None),
            any(dead for *_, dead, _ in own),
            speakers=frozenset(rank for *_, speakers in own for rank in speakers),
        )


def _ordered(agents: Sequence[_Agent]) -> list[list[_Agent]]:
    """The agents by launch: by the clock, else by what they loaded; all in one where neither tells."""
    timed = all(of_one_clock(agents[0].first_ns, agent.first_ns) for agent in agents)
    loads = [-1 if agent.loaded is None else agent.loaded for agent in agents]
    if not timed and len({*loads}) < len(loads):
        return [list(agents)]
    order = sorted(agents, key=lambda a: (a.first_ns or 0) if timed else (-1 if a.loaded is None else a.loaded))
    rounds = [[order[0]]]
    widest = order[0]  # all of the last launch as one
    for agent in order[1:]:
        if agent.follows(widest):
            rounds.append([agent])
            widest = agent
        else:
            rounds[-1].append(agent)
            lasts = [one for one in (widest.last_ns, agent.last_ns) if one is not None]
            widest = replace(widest, ranks=widest.ranks | agent.ranks, last_ns=max(lasts, default=None))
    return rounds


def _numbered(rounds: Sequence[Sequence[_Agent]]) -> dict[str, int]:
    found: dict[str, int] = {}
    before = 0
    for agents in rounds:
        numbers = sorted({number for agent in agents for number in agent.sources.values()})
        places = {number: before + i for i, number in enumerate(numbers)}
        found |= {source: places[number] for agent in agents for source, number in agent.sources.items()}
        before += len(numbers)
    return found if before > 1 else {}
