"""Names of people and machines that a run states as such: in configuration, environment and metadata, or in paths."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

from forensics.store.run import Run

_USER = r"(?i)(?:^|[._/])(?:user(?:_?name)?|login|logname|email|owner|author|entity)$"
_HOST = r"(?i)(?:^|[._/])(?:host(?:_?name)?|node_?name|slurmd_nodename|master_addr|machine)$"
_HOME = re.compile(r"(?i)(?:/(?:home|users)/|[a-z]:[\\/]+users[\\/]+)([^/\\\s:\"'<>|,;]+)")
_NAME = re.compile(r"[\w.@-]{3,253}")


@dataclass(frozen=True, slots=True)
class Identities:
    """Users and hosts, sorted."""

    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


def identities_of(run: Run) -> Identities:
    """Find the names that facts state, and the users of home folders in facts and paths of sources."""
    facts = run.scan("facts").select("key", "value").drop_nulls().unique().sort("key", "value").collect()
    users = _values(facts.filter(pl.col("key").str.contains(_USER)))
    hosts = _values(facts.filter(pl.col("key").str.contains(_HOST)))
    texts = [*facts["value"].to_list(), run.name]
    users |= {name for text in texts for name in _HOME.findall(text)}
    users |= {name.split("@")[0] for name in users if "@" in name}
    hosts |= {name.split(".")[0] for name in hosts if "." in name and not name[0].isdigit()}
    return Identities(tuple(sorted(users)), tuple(sorted(hosts)))


def _values(facts: pl.DataFrame) -> set[str]:
    said = (value.strip().strip("\"'") for value in facts["value"].to_list())
    return {value for value in said if _NAME.fullmatch(value) and not value.replace(".", "").isdigit()}
