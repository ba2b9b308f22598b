"""Which events of a trace tell of the device's time: all but operators, Python frames, instants, flows and counters.

Of operators and frames a few are marks that an analysis of the device reads by name: steps, the data loader's, and
collectives on the host; calls of the runtime that give the device no work do not. `Limits.device_only` leaves the
others out.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import numpy as np
import polars as pl

from forensics.formats.trace._event import Args, Event
from forensics.formats.trace._rows import Coded, attrs, category_of, paired
from forensics.formats.trace._times import Bools
from forensics.formats.trace.calls import QUIET_CALLS

_MARKS = ("enumerate(DataLoader)", "ProfilerStep#")
_COLLECTIVES = ("c10d::", "nccl:", "gloo:", "mpi:", "record_param_comms", "## ")
#: How the names of wanted events begin in a category of mostly unwanted ones.
WANTED = {"cpu_op": (*_MARKS, *_COLLECTIVES), "python_function": _MARKS}
#: Categories of calls of the runtimes whose quiet calls are known.
CALLS = ("cuda_runtime", "hip_runtime")
_cat, _name = attrgetter("cat"), attrgetter("name")


def may_be_left(category: str, name: str) -> bool:
    """Whether a duration of this category (as the trace spells it) and name does not tell of the device's time."""
    spelled = category_of(category)
    if spelled in CALLS:
        return name in QUIET_CALLS
    begins = WANTED.get(spelled)
    return begins is not None and not name.startswith(begins)


def wanted(events: Sequence[Event]) -> Bools:
    """Which of these durations account for the device's time."""
    kinds, index = paired(Coded.of(map(_cat, events)), Coded.of(map(_name, events)))
    return ~np.array([may_be_left(*one) for one in kinds], np.bool_)[index]


def collective_attrs(args: Sequence[Args]) -> pl.Series:
    """JSON text of the arguments of collectives that are no columns, null for all else."""
    rows = [at for at, one in enumerate(args) if one.collective is not None]
    texts = pl.Series([None], dtype=pl.String).new_from_index(0, len(args))
    return texts.scatter(rows, attrs([args[at] for at in rows])) if rows else texts
