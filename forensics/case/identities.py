"""Names of people and machines that a run states as such: in configuration, environment, metadata or file names."""

from __future__ import annotations

import re

import polars as pl
from msgspec import Struct

from forensics.knowledge.vocabulary import stands_for, words_for
from forensics.patterns import lazily
from forensics.store.run import Run

_HOME = lazily(r"(?i)(?:/(?:home|users)/|[a-z]:[\\/]+users[\\/]+)([^/\\\s:\"'<>|,;]+)")
_NAME = lazily(r"[\w.@-]{3,253}")
#: Files that their writer names by the host: event files of TensorBoard, traces of torch's profiler, dumps of a group.
_HOST_FILES = (
    lazily(r"events\.out\.tfevents\.\d+\.(.+?)(?:\.\d+){0,2}(?:\.v2|\.profile-empty)?"),
    lazily(r"(.+?)_\d+(?:\.\d+)?\.pt\.trace\.json(?:\.gz)?"),
    lazily(r"comm_lib_trace_rank_(.+)_\d+"),
)
_LISTED = lazily(r"[\w.,\[\]-]{3,4000}")
_NODE_NAMES = lazily(r"([A-Za-z](?:[\w.-]*[A-Za-z.-])?)(?:\[(\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*)\]|(\d*))(?=,|$)")
_MOST_NODES = 2000


class Identities(Struct, frozen=True):
    """Users and hosts, sorted."""

    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


def identities_of(run: Run) -> Identities:
    """Find the names that facts and names of files state, and the users of home folders in facts and paths."""
    facts = run.scan("facts").select("key", "value").drop_nulls().unique().sort("key", "value").collect()
    users = _values(facts.filter(pl.col("key").str.contains(words_for("user_setting"))))
    hosts = _values(facts.filter(pl.col("key").str.contains(words_for("host_setting"))))
    hosts |= {
        name
        for text in _values(facts.filter(pl.col("key").str.contains(words_for("node_list_setting"))), _LISTED)
        for name in _nodes(text)
    }
    paths = run.scan("sources").select("source").drop_nulls().unique().sort("source").collect()["source"].to_list()
    hosts |= {name for path in paths for name in _named_by(path)}
    texts = [*facts["value"].to_list(), *paths, run.name]
    users |= {name for text in texts for name in _HOME.findall(text)}
    users |= {name.split("@")[0] for name in users if "@" in name}
    hosts |= {name.split(".")[0] for name in hosts if "." in name and not name[0].isdigit()}
    return Identities(tuple(sorted(users)), tuple(sorted(hosts)))


def _values(facts: pl.DataFrame, form: re.Pattern[str] = _NAME) -> set[str]:
    said = (value.strip().strip("\"'") for value in facts["value"].to_list())
    return {value for value in said if form.fullmatch(value) and not value.replace(".", "").isdigit()}


def _nodes(listed: str) -> set[str]:
    """Every node of a list, and what their names begin with: `atlas`, `atlas-01`, `atlas-02` of `atlas-[01-02]`."""
    found = set[str]()
    for stem, inside, number in _NODE_NAMES.findall(listed):
        found.add(stem.rstrip("-"))
        found.add(stem + number)
        for part in inside.split(","):
            first, _, last = part.partition("-")
            numbers = range(int(first), int(last or first) + 1) if first else range(0)
            found |= {f"{stem}{n:0{len(first)}d}" for n in numbers[:_MOST_NODES]}
    return {name for name in found if not stands_for("no_host", name)}


def _named_by(path: str) -> set[str]:
    """The host in the name of a file that its writer named so."""
    name = path.rsplit("/", 1)[-1]
    found = (hit[1] for form in _HOST_FILES if (hit := form.fullmatch(name)) is not None)
    return {host for host in found if _NAME.fullmatch(host) and not stands_for("no_host", host)}
