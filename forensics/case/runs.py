"""Runs in one place: which sources belong together, and by what that was decided.

A place holds several runs where folders beside each other (`seed-1/`, `seed-2/`, W&B or MLflow run folders, leaves of
event files with hyperparameters) each hold training records of their own that begin at the start, or are called
`seed-1` and `seed-2` and hold a log each; where nothing that trains is outside of them, none of them goes on from
another, and they are not the ranks of one job. Logs of several jobs in one folder (`slurm-4001.out`, `slurm-4002.out`)
are runs where all of that holds and they trained at the same time: one after the other they are attempts of one run.
Folders that each hold the file which a program writes once for a run (Hydra) are runs whatever they are called; what
their launcher printed of all of them tells nothing anew. A tracker's database may hold several runs, too
(`tracked_runs`), where it is the only store that trains. Everything else is one run: its stores, the logs of its ranks,
its attempts. A false split costs as much as a false merge, so that whatever is not shown stays one run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import polars as pl
from msgspec import Struct

from forensics.case.end_markers import ends_of
from forensics.case.processes.launches import launches
from forensics.case.processes.lives import Life, boundaries, lives
from forensics.case.series import metric_names
from forensics.case.tracked_runs import Tracked, own_frames, tracked
from forensics.errors import UsageError
from forensics.knowledge.paths import home_of, is_part_of_job, is_run
from forensics.patterns import lazily
from forensics.store.run import Run, derived
from forensics.store.schema import TABLES
from forensics.values import replace

#: Run folders of trackers, which are named by an id: W&B, MLflow.
_TRACKED = (lazily(r"^(?:offline-)?run-\d{8}_\d{6}-\w{4,}$"), lazily(r"^[0-9a-f]{32}$"))
#: A job's id in the name of its log; a task's or a rank's number behind it is shorter or follows it.
_JOB = lazily(r"(?<![0-9A-Za-z])\d{3,}(?!\d)")
#: Where the begin of a folder's name may end, and the words of a line that may be one.
_CUT, _WORD = lazily(r"(?<=\d)[_.-]"), lazily(r"[\w.=-]*\d[\w.=-]*")
#: So many names of runs are told.
_TOLD = 3
#: Share of file names, digits apart, that folders of the same layout have in common.
_ALIKE = 0.5
#: A life that begins within so many of its intervals begins at the start.
_INTERVALS = 2.0


class Part(Struct, frozen=True):
    """One of several runs of a place: its folder, relative to the place, the sources that are its own, and why.

    `tracked` says what of a tracker's database is the run's own; `retold` are logs that tell all the runs again.
    """

    folder: str
    sources: frozenset[str]
    why: str
    tracked: Tracked | None = None
    retold: frozenset[str] = frozenset()


@derived
def parts(run: Run) -> tuple[Part, ...]:
    """List the runs of a place in the order of their folders; none where it is one run."""
    trained: dict[str, list[Life]] = {}
    for life in lives(run):
        trained.setdefault(life.source, []).append(life)
    every = run.scan("sources").select("source", "ingester").collect()
    logs = set(every.filter(pl.col("ingester") == "text_log")["source"].to_list())
    paths = [str(source) for source in every["source"].to_list()]
    if by_home := _by_home(run, trained, paths, logs):
        return by_home
    for parent in _parents(trained if len(trained) > 1 else {*trained, *logs}):
        groups = _groups(parent, paths)
        named = all(is_run(name) for name in groups)
        own = {name: {s for s in sources if s in trained} for name, sources in groups.items()}
        groups = {name: sources for name, sources in groups.items() if own[name] or (named and sources & logs)}
        if len(groups) > 1 and _are_runs(run, groups, own, trained, logs):
            why = f"each folder of {parent or 'the place'} trains from its own start"
            return tuple(Part(f"{parent}{name}", frozenset(groups[name]), why) for name in sorted(groups))
    return _by_tracker(run, trained) or _by_job(run, trained, paths)


def only(run: Run) -> Run:
    """Give the run of a place; raises `UsageError` when the place holds several."""
    found = parts(run)
    if not found:
        return run
    names = [part.folder for part in found]
    more = f" and {len(names) - _TOLD} more" if len(names) > _TOLD else ""
    message = f"{run.name} holds {len(names)} runs: {', '.join(names[:_TOLD])}{more}"
    one = f"give one of them, as {run.name.rstrip('/')}/{names[0]}"
    raise UsageError(message, help=one if found[0].tracked is None else f"forensics triage {run.name} tells of each")


def split(run: Run) -> tuple[Run, ...]:
    """Give the runs of a place, the place itself where it is one; what belongs to none of them belongs to all."""
    found = parts(run)
    if not found:
        return (run,)
    theirs = frozenset[str]().union(*(part.sources | part.retold for part in found))
    speaks = _spoken_of(run, found, theirs)
    return tuple(_only(run, part, theirs - part.sources, speaks) for part in found)


def _spoken_of(run: Run, found: Sequence[Part], theirs: frozenset[str]) -> pl.DataFrame:
    """The events of logs that belong to none of the runs, each with the folder of the run that it names.

    A line is about the runs that it names by their folder, or by the begin of that (a trial's id), else about those
    that print the same line themselves; where nothing tells, it is about all, and has no row.
    """
    events = run.scan("events").select("source", "seq", "text").collect()
    homes = {source: part.folder for part in found for source in part.sources}
    named: dict[str, set[str]] = {}
    for part in found:
        name = part.folder.rpartition("/")[2]
        for end in (*(cut.start() for cut in _CUT.finditer(name)), len(name)):
            named.setdefault(name[:end], set()).add(part.folder)
    told: dict[str, set[str]] = {}
    for source, text in events.select("source", "text").iter_rows():
        if source in homes and text:
            told.setdefault(text, set()).add(homes[source])
    rows: list[tuple[str, int, str]] = []
    for source, seq, text in events.filter(~pl.col("source").is_in([*theirs])).select("source", "seq", "text").rows():
        every = [named[word] for word in _WORD.findall(text or "") if len(named.get(word, found)) < len(found)]
        rows.extend((source, seq, folder) for folder in set[str]().union(*every) or told.get(text, set()))
    return pl.DataFrame(rows, schema={"source": pl.String, "seq": pl.Int64, "folder": pl.String}, orient="row")


def _only(run: Run, part: Part, others: frozenset[str], speaks: pl.DataFrame) -> Run:
    """The tables without other runs, and without what is about them; its own sources are named from its folder."""
    name = f"{run.name.rstrip('/')}/{part.folder}"
    if part.tracked is not None:
        return replace(run, name=name, frames=own_frames(run, part.tracked), held={})
    source = pl.col("source")
    keep = ~source.is_in(sorted(others))
    own = source.str.strip_prefix(f"{part.folder}/")
    frames = {
        table: frame.filter(keep).with_columns(source=own) if "source" in TABLES[table] else frame
        for table, frame in run.frames.items()
    }
    own_rows = speaks.filter(pl.col("folder") == part.folder)
    strange = speaks.join(own_rows, on=["source", "seq"], how="anti").select("source", "seq").unique()
    if strange.height:
        frames["events"] = frames["events"].join(
            strange.lazy(), on=["source", "seq"], how="anti", maintain_order="left"
        )
    return replace(run, name=name, frames=frames, held={})


def _by_home(run: Run, trained: Mapping[str, Sequence[Life]], paths: Sequence[str], logs: set[str]) -> tuple[Part, ...]:
    """The folders in which a program keeps what is of one run alone; beside them only logs that tell all of them again.

    A log that tells the very losses of one has no life of its own.
    """
    homes = {home for path in paths if (home := home_of(path)) is not None}
    own = {home: {path for path in paths if path.startswith(f"{home}/")} for home in sorted(homes)}
    inside = {home: {source for source in sources if source in trained} for home, sources in own.items()}
    if len(own) < 2 or not any(inside.values()) or _joined(run, inside):
        return ()
    beside = frozenset(trained).difference(*inside.values())
    told = _courses(trained[source] for sources in inside.values() for source in sources)
    if not _courses(trained[source] for source in beside) <= told:
        return ()
    measured = logs & set(metric_names(run)["source"].to_list())
    beside |= measured.difference(*own.values())
    why = "each folder holds the settings of a run of its own"
    return tuple(Part(home, frozenset(sources), why, retold=beside) for home, sources in own.items())


def _courses(every: Iterable[Sequence[Life]]) -> set[tuple[int, int]]:
    """The first and last steps of the lives in some sources."""
    return {(life.first, life.last) for lives_of in every for life in lives_of}


def _by_tracker(run: Run, trained: Mapping[str, Sequence[Life]]) -> tuple[Part, ...]:
    """The runs in the only database that trains."""
    if len(trained) != 1:
        return ()
    source, own = next(iter(trained.items()))
    found = tracked(run, source, own) if all(map(_from_start, own)) else ()
    why = f"{source} keeps several runs, each from its own start"
    return tuple(Part(f"{source}:{one.name}", frozenset((source,)), why, one) for one in found)


def _by_job(run: Run, trained: Mapping[str, Sequence[Life]], paths: Sequence[str]) -> tuple[Part, ...]:
    """Logs of jobs that trained at the same time, each by the id in its name."""
    folders = {source.rpartition("/")[0] for source in trained}
    jobs: dict[str, set[str]] = {}
    for source in trained if len(folders) == 1 else ():
        if (job := _JOB.search(source.rpartition("/")[2])) is not None:
            jobs.setdefault(job[0], set()).add(source)
    names = {_masked(source) for source in trained}
    if len(jobs) < 2 or len(names) > 1 or set().union(*jobs.values()) != set(trained):
        return ()
    started = all(_from_start(life) for lives_of in trained.values() for life in lives_of)
    if not started or _joined(run, jobs) or _are_ranks(jobs, trained) or not _at_the_same_time(jobs, trained):
        return ()
    folder = folders.pop()
    own = {job: {path for path in paths if path.rpartition("/")[0] == folder and job in path} for job in jobs}
    why = "logs of several jobs train at the same time, each from its own start"
    return tuple(Part(min(jobs[job]), frozenset(own[job]), why) for job in sorted(jobs))


def _at_the_same_time(own: Mapping[str, set[str]], trained: Mapping[str, Sequence[Life]]) -> bool:
    """Whether the records of each group begin before those of any other one end."""
    every = [[life for source in sources for life in trained[source]] for sources in own.values()]
    firsts = [life.t_first for group in every for life in group[:1]]
    lasts = [life.t_last for group in every for life in group[-1:]]
    known = [t for t in firsts if t is not None], [t for t in lasts if t is not None]
    return len(known[0]) == len(known[1]) == len(own) and max(known[0]) < min(known[1])


def _parents(sources: Iterable[str]) -> Iterator[str]:
    """Folders that hold all of these sources, the upper ones first, each with a slash behind it."""
    split_paths = [source.split("/")[:-1] for source in sources]
    if len(split_paths) < 2:
        return
    shared = ""
    yield shared
    for level in zip(*split_paths, strict=False):
        if len(set(level)) > 1:
            return
        shared += f"{level[0]}/"
        yield shared


def _groups(parent: str, paths: Sequence[str]) -> dict[str, set[str]]:
    groups: dict[str, set[str]] = {}
    for path in paths:
        name, slash, _ = path.removeprefix(parent).partition("/")
        if path.startswith(parent) and slash:
            groups.setdefault(name, set()).add(path)
    return groups


def _are_runs(
    run: Run,
    groups: Mapping[str, set[str]],
    own: Mapping[str, set[str]],
    trained: Mapping[str, Sequence[Life]],
    logs: set[str],
) -> bool:
    if set().union(*(own[name] for name in groups)) != set(trained) or any(map(is_part_of_job, groups)):
        return False
    alike = _named_alike(groups) or _laid_out_alike(run, groups, own, logs)
    if not alike and not _have_settings(run, groups):
        return False
    started = all(
        is_run(name) or any(_from_start(life) for source in own[name] for life in trained[source]) for name in groups
    )
    return started and not _joined(run, own) and not _are_ranks(own, trained) and not _in_turn(run, own)


def _in_turn(run: Run, own: Mapping[str, set[str]]) -> bool:
    """Whether each folder was begun when the one before it had died, with the same settings: attempts of one run."""
    number = launches(run)
    tried = {name: {number[source] for source in sources if source in number} for name, sources in own.items()}
    apart = all(len(numbers) == 1 for numbers in tried.values()) and len(set[int]().union(*tried.values())) == len(own)
    finished = {number.get(source) for source in ends_of(run)["source"]}
    if not apart or not finished <= {max(number.values()), None}:
        return False
    homes = {source.rpartition("/")[0]: name for name, sources in own.items() for source in sources}
    said = {name: set[tuple[str, str]]() for name in own}
    facts = run.scan("facts").filter(pl.col("family") == "config").select("source", "key", "value").collect()
    for source, key, value in facts.iter_rows():
        if (name := homes.get(source.rpartition("/")[0])) is not None:
            said[name].add((key, value))
    return len({frozenset(one) for one in said.values()}) == 1


def _named_alike(names: Iterable[str]) -> bool:
    every = list(names)
    return any(all(form.match(name) for name in every) for form in _TRACKED) or len({_masked(n) for n in every}) == 1


def _masked(name: str) -> str:
    return re.sub(r"\d+", "#", name)


def _laid_out_alike(run: Run, groups: Mapping[str, set[str]], own: Mapping[str, set[str]], logs: set[str]) -> bool:
    """Whether folders of any name hold a log, or training records and settings, each and mostly files of like names."""
    stated = set(run.scan("facts").filter(pl.col("family") == "config").select("source").collect()["source"].to_list())
    if not all(sources & logs or (own[name] and sources & stated) for name, sources in groups.items()):
        return False
    layouts = [{_masked(path.split(f"{name}/", 1)[1]) for path in sources} for name, sources in groups.items()]
    first = layouts[0]
    return all(len(first & other) >= _ALIKE * len(first | other) for other in layouts[1:])


def _have_settings(run: Run, groups: Mapping[str, set[str]]) -> bool:
    """Whether each folder holds event files with hyperparameters of their own, which differ."""
    rows = run.scan("facts").filter(pl.col("source").str.contains("tfevents") & (pl.col("family") == "config"))
    said: dict[str, set[tuple[str, str]]] = {}
    for source, key, value in rows.select("source", "key", "value").collect().iter_rows():
        said.setdefault(source, set()).add((key, value))
    own = [set[tuple[str, str]]().union(*(said.get(path, ()) for path in sources)) for sources in groups.values()]
    return all(own) and len({frozenset(one) for one in own}) == len(own)


def _from_start(life: Life) -> bool:
    resumed = life.start is not None and bool(life.start.step)
    return not resumed and life.first <= _INTERVALS * max(life.every, 1)


def _joined(run: Run, own: Mapping[str, set[str]]) -> bool:
    """Whether one of the folders goes on from another."""
    home = {source: name for name, sources in own.items() for source in sources}
    return any(home[edge.before.source] != home[edge.after.source] for edge in boundaries(run))


def _are_ranks(own: Mapping[str, set[str]], trained: Mapping[str, Sequence[Life]]) -> bool:
    """Whether the folders are of different ranks: then they are one job."""
    ranks = [
        {life.rank for source in sources for life in trained[source] if life.rank is not None}
        for sources in own.values()
    ]
    return any(a and b and not a & b for a, b in combinations(ranks, 2))
