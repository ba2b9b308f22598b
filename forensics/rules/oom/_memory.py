"""What the memory rules share: which series grew, whether the run died of it, and how to show both."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Unpack

from forensics.analyses.memory.oom_messages import OomMessage, oom_messages
from forensics.analyses.memory.series import Series, series_of
from forensics.case.evidence import metric_evidence
from forensics.declared import Declared
from forensics.model import Evidence, EvidenceRole, Onset, Severity
from forensics.registry import Rule, rule
from forensics.rules.kit import Findings
from forensics.store.run import Run

GIB = 1 << 30


def fatal(run: Run) -> tuple[OomMessage, ...]:
    """List the messages of devices that the run did not survive, the first in time first where clocks are known."""
    kept = [m for m in oom_messages(run) if not m.survived and m.where == "device"]
    if all(m.t_ns is not None for m in kept):
        kept.sort(key=lambda m: (m.t_ns or 0, m.source, m.at))
    return tuple(kept)


def first_fatal(run: Run) -> OomMessage | None:
    """Give the first out-of-memory message of a device that the run did not survive."""
    return next(iter(fatal(run)), None)


def of_fatal(name: str, needs: str, **usual: Unpack[Declared]) -> Callable[[Callable[..., Findings]], Rule]:
    """Make a rule about the first fatal message of a device: why memory did not suffice, which that message decides."""
    fields: Declared = {"severity": "warning", "causal": "context", **usual}
    return rule(name, needs, about=first_fatal, **fields)


def killer(run: Run, one: Series, *, of_any_rank: bool = False) -> OomMessage | None:
    """Give the fatal message that a series of device memory leads up to: of its rank, in or after its last attempt."""
    later = [s for s in series_of(run) if s.source == one.source and s.attempt > one.attempt]
    if later:
        return None
    every = fatal(run)
    found = [m for m in every if m.rank is None or one.rank is None or m.rank == one.rank]
    return next(iter(found or (every if of_any_rank else ())), None)


def worst(found: Iterable[Series]) -> Series | None:
    """Give the series that grew most of all, relative to its level, preferring the one that was watched longest."""
    return max(found, key=lambda s: (s.form.rise / max(s.form.level, 0.1), len(s.y)), default=None)


def series_evidence(one: Series, *indices: int | None) -> tuple[Evidence, ...]:
    """Show a series by some of its records; the first is primary."""
    kept = list(dict.fromkeys(i % len(one.y) for i in indices if i is not None))
    roles = [EvidenceRole.PRIMARY, *[EvidenceRole.RELATED] * len(kept)]
    return tuple(metric_evidence(one.row(i), role) for i, role in zip(kept, roles, strict=False))


def message_evidence(one: OomMessage) -> Evidence:
    """Show an out-of-memory message."""
    return Evidence(one.source, one.locator, one.quote, one.step, one.rank, one.t_ns, one.code)


def onset_of(one: Series) -> Onset:
    """Say where a growth began."""
    index = one.form.onset if one.form.onset is not None else one.form.warmup
    row = one.row(index)
    before = one.step(index - 1) if index else None
    return Onset(step=one.step(index), t_ns=row["t_ns"], rank=one.rank, step_lo=before)


def ranks(*found: OomMessage | Series) -> tuple[int, ...]:
    """List the ranks that messages or series name."""
    return tuple(sorted({one.rank for one in found if one.rank is not None}))


def culprits(one: Series, died: Sequence[OomMessage]) -> tuple[int, ...]:
    """List the rank that died of a growth, else the one that logged it."""
    return ranks(*died) or ranks(one)


def size(bytes_: float | None) -> str:
    """Write bytes in the largest fitting binary unit."""
    if bytes_ is None:
        return "an unknown amount"
    for unit, scale in (("GiB", GIB), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(bytes_) >= scale:
            return f"{bytes_ / scale:.4g} {unit}"
    return f"{bytes_:.0f} bytes"


def amount(one: Series, value: float) -> str:
    """Write a value of a series with its unit."""
    return f"{value:.3g} %" if one.meaning.unit == "%" else size(value * GIB)


def until(one: Series, died: Sequence[OomMessage] = ()) -> str:
    """Say after which step memory ran out, else between which steps it would be full, or nothing."""
    if died:
        return "; memory then ran out" + (f" after step {died[0].step}" if died[0].step is not None else "")
    if one.reach is None:
        return ""
    words = "step" if one.by_step else "record"
    late = "at the latest " if one.reach.at_the_latest else ""
    return f"; at this rate it is full {late}between {words} {one.reach.low:.0f} and {one.reach.high:.0f}"


def severity_of(run: Run, one: Series) -> tuple[Severity, tuple[OomMessage, ...]]:
    """Judge a growth: an error when the run died of it, else a warning; with the message that it died with.

    The one rank that logs its memory speaks for all, where its device is nearly full: they do the same work.
    """
    devices = [s for s in series_of(run) if not s.meaning.is_host]
    own = [s.share for s in devices if s.rank == one.rank and s.attempt == one.attempt]
    shares = [share for share in (one.share, *own) if share is not None]
    alone = max(shares, default=0.0) >= _NEARLY and {s.rank for s in devices} == {one.rank}
    found = killer(run, one, of_any_rank=alone)
    if found is not None and found.reading != "others" and (one.share is None or max(shares) >= _NEARLY):
        return Severity.ERROR, (found,)
    return Severity.WARNING, ()


#: A device is nearly full above this share of any count of the rank's, so that an error there can come from what grew.
_NEARLY = 0.75


def reach_numbers(one: Series) -> dict[str, float]:
    """Give the projected interval as numbers of a finding."""
    return {} if one.reach is None else {"oom_step_lo": one.reach.low, "oom_step_hi": one.reach.high}


def grew(run: Run, quantities: Collection[str], kinds: Collection[str], fewest: int, least: float) -> list[Series]:
    """List device series of some quantities and shapes with enough samples and a rise of at least `least` (GiB)."""
    return [
        one
        for one in series_of(run)
        if one.meaning.quantity in quantities
        and one.meaning.unit == "GiB"
        and one.form.kind in kinds
        and one.form.samples - one.form.warmup >= fewest
        and one.form.rise >= max(least, 0.02 * abs(one.form.level))
    ]
