"""The series that several stores could share: what is compared, and between which sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import polars as pl
from msgspec import Struct, field

from forensics.case.series import keys_of, metric_rows
from forensics.case.steps import SERIES, at
from forensics.knowledge.vocabulary import stands_for, words_for
from forensics.patterns import lazily
from forensics.store.run import Run

#: Metrics that are compared; of the readings of many devices each would meet each.
_COMPARED = ("measured", "judged", "of_pace")
_SAMPLE = 64
#: So many equal records make two beginnings one: `Match` asks five distinct values, and a requeued run may be short.
_BEGINNING = 3
#: A number with as many digits as this is printed in full.
FULL_DIGITS = 9
_EVENTS = lazily(r"tfevents\.\d+\.(?P<writer>.+?)(?:\.\d+)?(?:\.v2)?$")
_WANDB = lazily(r"(?:^|/)(?:offline-)?run-\d{8}_\d{6}-(?P<id>[^/]+)/")
_STATE = lazily(r"(?:(?:tmp-)?checkpoint-\d+/)?[^/]+$")
_KINDS = (
    ("tfevents", lazily(r"tfevents[^/]*$")),
    ("wandb", lazily(r"\.wandb$")),
    ("trainer_state", lazily(r"trainer_state[^/]*\.json$")),
    ("json", lazily(r"\.(?:json|jsonl|ndjson)$")),
    ("table", lazily(r"\.(?:csv|tsv|parquet)$")),
    ("database", lazily(r"\.(?:db|sqlite3?)$|(?:^|/)mlruns/")),
)
KINDS = (*(kind for kind, _ in _KINDS), "text")
#: Which of two stores that hold the same is kept: a line of a log can be read beside the errors around it.
_KEPT_FIRST = ("text", "json", "table", "trainer_state", "tfevents", "database", "wandb")


#: What one process wrote into one file: its source, attempt and rank.
Unit = tuple[str, int | None, int | None]


class Strand(Struct, frozen=True, eq=False):
    """One series of one store, without records that hold no number.

    `at` are the steps, or the positions of the records where the store prints no step (`numbered` is false). `value` is
    NaN where `bad`, the class of a value that is not finite, is not null. `decimals` and `digits` are how many of them
    the store prints at most.
    """

    source: str
    attempt: int | None
    rank: int | None
    raw_name: str
    name: str
    at: pl.Series
    t_ns: pl.Series
    value: pl.Series
    bad: pl.Series
    seq: pl.Series
    numbered: bool
    decimals: int
    digits: int

    def __len__(self) -> int:
        """Count the records."""
        return self.at.len()

    @property
    def unit(self) -> Unit:
        """The file, attempt and rank that hold it."""
        return self.source, self.attempt, self.rank


def kind_of(source: str) -> str:
    """The kind of store, by its path: `tfevents`, `wandb`, `trainer_state`, `json`, `table`, `database` or `text`."""
    return next((kind for kind, pattern in _KINDS if pattern.search(source)), "text")


def keeps_console(source: str) -> bool:
    """Whether a store holds what was printed beside what was logged."""
    return kind_of(source) == "wandb"


def preference(source: str) -> tuple[int, str]:
    """Sort key of the sources that hold the same; the smallest is kept."""
    return _KEPT_FIRST.index(kind_of(source)), source


def is_measured(name: str) -> bool:
    """Whether a metric differs between two runs of one configuration, so that it identifies a run."""
    return stands_for("measured", name)


def is_core(name: str) -> bool:
    """Whether rules judge a metric: a store is left out only when all it holds of these is found elsewhere."""
    return stands_for("judged", name)


def without_numbers(path: str) -> str:
    """The path, or a part of it, with each number as 0."""
    return re.sub(r"\d+", "0", path)


def process_of(source: str) -> str | None:
    """The process, run or training that the path of an event file, a log of W&B or a trainer state names, else None."""
    kind = kind_of(source)
    if kind == "trainer_state":
        return _STATE.sub("", source)
    if kind == "tfevents":
        return found["writer"] if (found := _EVENTS.search(source)) else source
    if kind == "wandb":
        return found["id"] if (found := _WANDB.search(source)) else source
    return None


def may_be_one(a: str, b: str) -> bool:
    """Whether two sources can be stores of one process, by their paths.

    Two files of one kind whose paths differ in numbers or folders only belong to two ranks, nodes or runs; so do event
    files of two processes, and logs of W&B with two run ids. States of one Hugging Face training are copies.
    """
    kind = kind_of(a)
    if kind != kind_of(b):
        return True
    folders, base = zip(*(s.rpartition("/")[::2] for s in (a, b)), strict=True)
    if (process := process_of(a)) is not None:
        alike = kind != "tfevents" or folders[0] == folders[1] or base[0] == base[1]
        return alike and process == process_of(b)
    return base[0] != base[1] and without_numbers(a) != without_numbers(b)


class Held(Protocol):
    """What pairing asks of a series: its rank, its canonical name, and the number of its records."""

    @property
    def rank(self) -> int | None:
        """The rank that logged it."""
        ...

    @property
    def name(self) -> str:
        """The canonical name."""
        ...

    def __len__(self) -> int:
        """Count the records that a comparison has."""
        ...


class Known(Struct, frozen=True):
    """A series of a store by its `row` in the table of `Strands`; `records` is the length of its strand."""

    row: int
    rank: int | None
    name: str
    raw_name: str
    records: int

    def __len__(self) -> int:
        """Count the records of its strand."""
        return self.records


class Strands(Struct, frozen=True, eq=False):
    """The series of names that more than one source holds, in the order of the sources.

    `table` has a row for each, with lists of its records; only series of files that can be one are made strands.
    `alone` are the files that also hold a metric that rules judge and that no other source has, `anew` those of a
    source that trained the same beginning twice.
    """

    table: pl.DataFrame = field(default_factory=pl.DataFrame)
    units: Mapping[Unit, Sequence[Known]] = field(default_factory=dict[Unit, Sequence[Known]])
    alone: frozenset[Unit] = frozenset()
    anew: frozenset[Unit] = frozenset()

    def of(self, unit: Unit) -> list[Strand]:
        """Give the series of one file."""
        return list(_strands(self.table[[known.row for known in self.units[unit]]]))


def strands(run: Run) -> Strands:
    """Read what stores could share; nothing where there is one source, or no measured metric in two."""
    keys = keys_of(run)
    sources = keys["source"].unique().drop_nulls().to_list()
    if len(sources) < 2 and not any(keeps_console(s) for s in sources):
        return Strands()
    compared = "|".join(map(words_for, _COMPARED))
    held = keys.filter(pl.col("name").str.contains(compared)).select(*SERIES, "name")
    names = held.group_by("name").agg(
        files=pl.col("source").n_unique(), printed=pl.struct("source", "raw_name").n_unique()
    )
    shared = names.filter(pl.col("printed") > 1)["name"].drop_nulls()
    if not any(is_measured(name) for name in shared):
        return Strands()
    elsewhere = names.filter(pl.col("files") > 1)["name"]
    own = held.filter(pl.col("name").str.contains(words_for("judged")) & ~pl.col("name").is_in(elsewhere.implode()))
    alone = frozenset(own.select("source", "attempt", "rank").iter_rows())
    found = (
        metric_rows(run, pl.col("name").is_in(shared.to_list()))
        .filter(pl.col("value_class") != "null")
        .select(*SERIES, "name", "seq", at(), "t_ns", "value", "value_class")
        .collect()
    )
    number = pl.col("value").is_finite().fill_null(value=False)  # what a writer put in a NaN's place is a number too
    table = (
        found.with_columns(
            value=pl.when(number).then("value").otherwise(float("nan")),
            bad=pl.when(~number).then(pl.col("value_class").replace("null-suspected-nan", "nan")),
        )
        .sort("seq", maintain_order=True)
        .group_by(*SERIES, "name", maintain_order=True)
        .agg("at", "t_ns", "value", "bad", "seq")
        .sort("source", "attempt", "rank", "raw_name", nulls_last=False)
    )
    units: dict[Unit, list[Known]] = {}
    stepped = pl.col("at").list.drop_nulls().list.len()
    records = pl.when(stepped > 0).then(stepped).otherwise(pl.col("at").list.len())
    for row, (source, attempt, rank, raw_name, name, count) in enumerate(
        table.select(*SERIES, "name", records).iter_rows()
    ):
        units.setdefault((source, attempt, rank), []).append(Known(row, rank, name, raw_name or name, count))
    return Strands(table, units, alone, _begun_twice(table))


def _begun_twice(table: pl.DataFrame) -> frozenset[Unit]:
    """The files of a source whose attempts begin with the same values of a measured metric at the same steps."""
    measured = table.filter(
        pl.col("name").str.contains(words_for("measured")) & (pl.col("at").list.len() >= _BEGINNING)
    )
    begun = measured.with_columns(pl.col("at", "value").list.head(_BEGINNING))
    again = begun.filter(pl.len().over("source", "rank", "raw_name", "name", "at", "value") > 1)
    return frozenset(again.select("source", "attempt", "rank").iter_rows())


def _strands(table: pl.DataFrame) -> Iterator[Strand]:
    for row, (source, attempt, rank, raw_name, name) in enumerate(table.select(*SERIES, "name").iter_rows()):
        columns = {column: table[column][row] for column in ("at", "t_ns", "value", "bad", "seq")}
        numbered = columns["at"].null_count() < columns["at"].len()
        if not numbered:
            columns["at"] = pl.Series(range(columns["at"].len()), dtype=pl.Int64)
        kept = pl.DataFrame(columns).filter(pl.col("at").is_not_null())
        decimals, digits = _precision(kept["value"])
        yield Strand(
            source, attempt, rank, raw_name or name, name,
            kept["at"], kept["t_ns"], kept["value"], kept["bad"], kept["seq"],
            numbered, decimals, digits,
        )  # fmt: skip


def _precision(values: pl.Series) -> tuple[int, int]:
    """How many decimals, and how many digits, the finite values of a sample have at most."""
    finite = values.drop_nans().drop_nulls()
    sample = finite.gather_every(max(1, finite.len() // _SAMPLE)).to_list()
    decimals = digits = 0
    for value in sample:
        mantissa, _, exponent = f"{abs(value)!r}".partition("e")
        whole, _, part = mantissa.partition(".")
        part = part.rstrip("0")
        decimals = max(decimals, len(part) - int(exponent or 0))
        digits = max(digits, len((whole + part).strip("0") if not part else (whole + part).lstrip("0")))
    return decimals, digits
