"""The settings of a run by their names in the table of knowledge: what each file says, and what all agree on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

import polars as pl

from forensics.action import Setting
from forensics.knowledge.settings import Known, setting
from forensics.knowledge.settings import settings as known_settings
from forensics.knowledge.vocabulary import keys_of
from forensics.patterns import having
from forensics.store.run import Run, derived

#: Facts of these families are no settings of the training.
_NOT_OF_TRAINING = ("versions", "weights", "tokenizer", "generation", "progress", "evals", "success")
#: So many keys are asked for each setting at once: the pattern of all settings takes as long to compile.
_FEW = 50
#: Values that say nothing, that turn a setting on, and that turn it off, in lower case.
NOTHING, ON = frozenset(keys_of("value_of_nothing")), frozenset(keys_of("value_of_on"))
OFF = frozenset(keys_of("value_of_off"))


@derived
def settings(run: Run) -> Mapping[str, Setting]:
    """Settings by the name that the table of knowledge gives them; one that files disagree on is left out."""
    facts = _facts(run).filter(~pl.col("family").is_in(_NOT_OF_TRAINING) & ~pl.col("said").is_in(NOTHING))
    found = {
        name: _agreed(setting(name), facts.filter(pl.col("whole").is_in(keys))) for name, keys in _keys(run).items()
    }
    return {name: agreed for name, agreed in found.items() if agreed is not None}


def stated(run: Run, name: str) -> pl.DataFrame:
    """Give the facts that state one setting, in their order, of every family and with any value.

    Beside the columns of the table: `last`, the last part of the key, and `said`, the value without quotes around it,
    both in lower case.
    """
    facts, keys = _facts(run), _keys(run).get(setting(name).name)
    return facts.filter(pl.col("whole").is_in(keys)) if keys else facts.clear()


def keys_with(run: Run, pattern: str) -> list[str]:
    """Give the keys of facts, as they are written, in which a pattern is found."""
    return having(_written(run), pattern)


def keyed(run: Run, *patterns: str) -> pl.LazyFrame:
    """Give the facts in whose key one of some patterns is found, in the order of the table."""
    own, facts = {key for pattern in patterns for key in keys_with(run, pattern)}, run.scan("facts")
    return facts.filter(pl.col("key").is_in(sorted(own))) if own else facts.head(0)


@derived
def _written(run: Run) -> pl.Series:
    """The keys of facts as they are written, each once."""
    if "facts" not in run.frames:
        return pl.Series("key", [], pl.String)
    return run.scan("facts").select(pl.col("key").drop_nulls().unique(maintain_order=True)).collect().to_series()


@derived
def _keys(run: Run) -> Mapping[str, tuple[str, ...]]:
    """The keys of facts that state each setting; settings of none are left out, and cost no query."""
    if "facts" not in run.frames:
        return {}
    whole = _facts(run)["whole"].drop_nulls().unique(maintain_order=True)
    hits = (whole if len(whole) <= _FEW else whole.filter(whole.str.contains(_any()))).to_list()
    if not hits:
        return {}
    stating = {name: tuple(key for key in hits if pattern.search(key)) for name, pattern in _each().items()}
    return {name: keys for name, keys in stating.items() if keys}


@cache
def _any() -> str:
    """What is in the key of any setting: by it most keys are told to be of none. Python takes 5 ms to compile it."""
    return rf"(?:^|[./])(?:{'|'.join(one.keys for one in known_settings())})\z"


@cache
def _each() -> Mapping[str, re.Pattern[str]]:
    """What is in the key of each setting."""
    return {one.name: re.compile(rf"(?:^|[./]){one.keys}\Z") for one in known_settings()}


@derived
def _facts(run: Run) -> pl.DataFrame:
    whole = pl.col("key").str.to_lowercase().str.replace_all("-", "_").str.replace(r"[./]value$", "")
    return (
        run.scan("facts")
        .with_columns(
            whole=whole,
            last=whole.str.extract(r"([^./]+)$", 1),
            said=pl.col("value").fill_null("").str.strip_chars().str.strip_chars("\"'").str.to_lowercase(),
        )
        .collect()
    )


def _agreed(known: Known, rows: pl.DataFrame) -> Setting | None:
    stands = {key: (row, _meaning(known, row)) for key, row in enumerate(rows.iter_rows(named=True))}
    told = [(row, value) for row, value in stands.values() if value is not None]
    exact = [(row, value) for row, value in told if known.alike.get(value) != ""]
    if not told or len({known.alike.get(value, value) for _, value in exact}) > 1:
        return None
    row, value = (exact or told)[0]
    place = f"{row['source']}:{row['line']}" if row["line"] is not None else str(row["source"])
    return Setting(key=row["key"], value=value, place=place)


def _meaning(known: Known, row: Mapping[str, str]) -> str | None:
    """The value of a row; a switch means what it stands for when it is on, and nothing when it is off."""
    flag = known.flags.get(row["last"])
    if flag is not None:
        return flag if row["said"] in ON else None
    hit = re.fullmatch(known.values, row["said"]) if known.values else None
    return row["said"] if not known.values else hit[1] if hit is not None else None
