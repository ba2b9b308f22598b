"""Launches: the groups of workers that torchrun started, each with a folder of its own, in the order of their starts.

An agent keeps `<run id>_<random>/attempt_<n>/<local rank>/`. Attempts of one folder follow each other. Of two folders
beside each other the later one is another launch of the job where it holds ranks of the earlier one, or begins after
its last line by training or by loading a checkpoint; else they are two nodes of one launch. What nothing puts in order
stays one launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl
from msgspec import Struct

from forensics.case.processes.starts import openings
from forensics.patterns import lazily
from forensics.store.run import Run, derived
from forensics.values import replace

_FOLDER = lazily(r"^(?P<agent>(?P<parent>.*/)?[^/]+/)attempt_(?P<number>\d{1,6})/\d{1,6}/")


class _Agent(Struct, frozen=True):
    """The folder of one agent: its attempts, the global ranks of its workers, when it printed, and what it loaded."""

    sources: Mapping[str, int]
    ranks: frozenset[int]
    first_ns: int | None
    last_ns: int | None
    trains: bool
    loaded: int | None

    def follows(self, before: _Agent) -> bool:
        """Whether it was launched when an earlier one, by the clock, was over."""
        if self.ranks & before.ranks:
            return True
        apart = self.first_ns is not None and before.last_ns is not None and self.first_ns > before.last_ns
        return apart and (self.trains or self.loaded is not None)


@derived
def launches(run: Run) -> Mapping[str, int]:
    """Give the number of the group of workers that each source belongs to; empty where there is one or none."""
    folders: dict[str, dict[str, dict[str, int]]] = {}
    known = dict(run.scan("sources").select("source", "rank").sort("source").collect().iter_rows())
    for source in known:
        if (hit := _FOLDER.match(source)) is not None:
            agents = folders.setdefault(hit["parent"] or "", {})
            agents.setdefault(hit["agent"], {})[source] = int(hit["number"])
    if sum(len({*own.values()}) for agents in folders.values() for own in agents.values()) < 2:
        return {}
    found = [_numbered(_ordered(list(_agents(run, agents, known)))) for agents in folders.values()]
    return max(found, key=lambda one: max(one.values(), default=0))


def _agents(run: Run, folders: Mapping[str, Mapping[str, int]], ranks: Mapping[str, int | None]) -> Iterable[_Agent]:
    loaded = openings(run)
    spans = {
        source: (first, last, trains)
        for source, first, last, trains in pl.concat(
            run.scan(table).select("source", "t_ns", trains=pl.lit(value=table == "metrics"))
            for table in ("events", "metrics")
        )
        .group_by("source")
        .agg(first=pl.col("t_ns").min(), last=pl.col("t_ns").max(), trains=pl.col("trains").any())
        .collect()
        .iter_rows()
    }
    for sources in folders.values():
        own = [spans[source] for source in sources if source in spans]
        steps = [loaded[source].step or 0 for source in sources if source in loaded]
        yield _Agent(
            sources,
            frozenset(rank for source in sources if (rank := ranks.get(source)) is not None),
            min((first for first, _, _ in own if first is not None), default=None),
            max((last for _, last, _ in own if last is not None), default=None),
            any(trains for _, _, trains in own),
            max(steps, default=None),
        )


def _ordered(agents: Sequence[_Agent]) -> list[list[_Agent]]:
    """The agents by launch: by the clock, else by what they loaded; all in one where neither tells."""
    timed = all(agent.first_ns is not None for agent in agents)
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
