"""The coverage of a run: read and lost bytes, absent signals, and metrics with unknown names."""

from __future__ import annotations

import polars as pl

from forensics.analyses.memory.kinds import MEANINGS
from forensics.analyses.pace.names import pace_name
from forensics.analyses.pace.parts import is_part
from forensics.analyses.recorded import asked, recorded
from forensics.analyses.rl.series import any_name
from forensics.case.nonfinite import role
from forensics.case.series import keys_of
from forensics.dialects.names import meanings
from forensics.knowledge.scores import direction
from forensics.model import Coverage
from forensics.patterns import having
from forensics.store.gather import stored_coverage
from forensics.store.run import Run, derived
from forensics.values import replace


def coverage_of(run: Run) -> Coverage:
    """Give the account of the files, the signals that were seen or not, and names that no table of names knows."""
    seen = recorded(run)
    absent = tuple(one.label for one in asked(run) if one.signal not in seen)
    names = _unrecognised(run)
    return replace(stored_coverage(run), absent=absent, unrecognised=names, signals=tuple(seen.values()))


@derived
def _unrecognised(run: Run) -> tuple[str, ...]:
    """Each name once, in the order of their first records."""
    names = keys_of(run).select("name", "raw_name").unique(maintain_order=True).with_columns(role())
    unknown = names.filter(
        pl.col("role").is_null()
        & ~pl.col("name").is_in([*meanings(), *MEANINGS])
        & ~pl.col("name").str.contains("^(?:eval|epoch_)")
    )
    left = [
        (name, raw)
        for name, raw in unknown.select("name", "raw_name").iter_rows()
        if pace_name(raw) is None and pace_name(name) is None and not is_part(raw) and direction(name) is None
    ]
    plain = pl.Series([text.lower() for pair in left for text in pair], dtype=pl.String)
    rewards = frozenset(having(plain, any_name()))
    return tuple(dict.fromkeys(raw for name, raw in left if rewards.isdisjoint((raw.lower(), name.lower()))))
