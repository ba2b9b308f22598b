"""The trainers that wrote a run's files: what each hides of NaN, how it skips updates, by what it starts again."""

from __future__ import annotations

from collections.abc import Mapping

from forensics import registry
from forensics.dialects.spec import Dialect
from forensics.patterns import lazily
from forensics.store.run import Run, derived

#: A source's format names its dialects, the one that most of its lines speak first: `hf_trainer+deepspeed`.
_NAME = lazily(r"\w+")


def trainers(run: Run) -> tuple[Dialect, ...]:
    """List the trainers of a run, in the order of its sources; nothing where none is known."""
    return tuple({one.name: one for found in trainers_by_source(run).values() for one in found}.values())


@derived
def trainers_by_source(run: Run) -> Mapping[str, tuple[Dialect, ...]]:
    """Give the trainers that wrote each source."""
    rows = run.scan("sources").select("source", "format").drop_nulls().collect()
    names = {source: _NAME.findall(told) for source, told in rows.iter_rows()}
    known: dict[str, Dialect] = {}
    for dialect in registry.load("dialects").dialects if names else ():
        known |= dict.fromkeys((dialect.name, *dialect.stores), dialect)
    return {source: tuple(known[name] for name in found if name in known) for source, found in names.items()}
