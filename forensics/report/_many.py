"""Several runs at once: groups that failed the same way, their shapes, and when each was first and last seen.

When a run failed is the wall time of its onset, else the earliest time on the evidence of the finding that the verdict
rests on; a run whose files print no time there has none, and is counted as such instead of being dated by its files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec import Struct

from forensics.model import Outcome, Report
from forensics.report import phrases as say

#: The fingerprint of a run without a finding.
NOTHING = "-"
_UNDATED = "time not known"


class Seen(Struct, frozen=True):
    """When the failures of some runs were first and last seen, ns since 1970; `undated` of `runs` print no time."""

    runs: int
    first_ns: int | None
    last_ns: int | None
    undated: int

    @property
    def first(self) -> str:
        return say.utc(self.first_ns) or _UNDATED

    @property
    def last(self) -> str:
        return say.utc(self.last_ns) or _UNDATED

    @property
    def words(self) -> str:
        """Both, and how many runs have no time."""
        if self.undated == self.runs:
            return _UNDATED
        span = f"at {self.first}" if self.first == self.last else f"first {self.first}, last {self.last}"
        return span + (f"; {_UNDATED} of {self.undated} of {self.runs} runs" if self.undated else "")


class Group(Struct, frozen=True):
    """Runs of one finding, or of none; `places` are their numbers in the order given."""

    key: str
    reports: tuple[Report, ...]
    places: tuple[int, ...]
    seen: Seen

    @property
    def lead(self) -> Report:
        """The run whose headline represents the group."""
        return self.reports[0]

    @property
    def headline(self) -> str:
        """The words for the group: the first run's for one finding, else those that all runs share."""
        said = {r.verdict.headline for r in self.reports}
        return self.lead.verdict.headline if self.key != NOTHING or len(said) == 1 else ""


#: Columns of the table by shape; `ways` counts distinct failures.
SHAPE_HEAD = ("outcome", "shape", "runs", "ways", "first seen", "last seen", "no time")


class ShapeRow(Struct, frozen=True):
    """All runs of one outcome and shape; `failures` is the number of different failures, or weaknesses, among them."""

    outcome: Outcome
    shape: str
    runs: int
    failures: int
    seen: Seen

    @property
    def cells(self) -> tuple[str, ...]:
        """The row in words, as `SHAPE_HEAD` names its columns."""
        seen = self.seen
        times = (seen.first, seen.last, f"{seen.undated:,}") if seen.runs else (NOTHING, NOTHING, NOTHING)
        ways = f"{self.failures:,}" if self.failures else NOTHING
        return self.outcome.value.replace("_", " "), self.shape, f"{self.runs:,}", ways, *times


def fingerprint(report: Report) -> str:
    """Give a key that is equal for runs that failed, or are suspect, the same way; `-` without a finding."""
    return report.verdict.identity.root if report.verdict.identity is not None else NOTHING


def failed_at(report: Report) -> int | None:
    """Give the wall time of the failure; None where the run did not fail, or nothing prints one."""
    if report.verdict.outcome is not Outcome.FAILED:
        return None
    if report.verdict.onset.t_ns is not None:
        return report.verdict.onset.t_ns
    finding = say.lead(report)
    times = [e.t_ns for e in finding.evidence if e.t_ns is not None] if finding is not None else []
    return min(times, default=None)


def groups(reports: Sequence[Report]) -> tuple[Group, ...]:
    """Group runs by fingerprint: failures first, the largest group first; runs stay in the order they were given."""

    def kind(place: int) -> tuple[str, str, str]:
        key, verdict = fingerprint(reports[place]), reports[place].verdict
        alone = key == NOTHING and verdict.outcome is not Outcome.HEALTHY
        return key, verdict.outcome.value, verdict.headline if alone else ""

    same = [(key[0], tuple(places)) for key, places in groupby(sorted(range(len(reports)), key=kind), key=kind)]
    found = (Group(k, tuple(reports[p] for p in ps), ps, seen(reports[p] for p in ps)) for k, ps in same)
    return tuple(sorted(found, key=lambda g: (g.key == NOTHING, not g.seen.runs, -len(g.reports), g.key)))


def by_shape(reports: Sequence[Report]) -> tuple[ShapeRow, ...]:
    """Count runs by outcome and shape: failures first, the most frequent shape first."""
    outcomes = tuple(Outcome)
    rows: list[ShapeRow] = []
    for outcome in outcomes:
        own = [r for r in reports if r.verdict.outcome is outcome]
        for shape in {r.verdict.shape for r in own}:
            same = [r for r in own if r.verdict.shape is shape]
            kinds = len({fingerprint(r) for r in same} - {NOTHING})
            rows.append(ShapeRow(outcome, shape.value if shape else NOTHING, len(same), kinds, seen(same)))
    return tuple(sorted(rows, key=lambda row: (outcomes.index(row.outcome), -row.runs, row.shape)))


def seen(reports: Iterable[Report]) -> Seen:
    """Give the first and the last time of the failures among some runs."""
    failed = [r for r in reports if r.verdict.outcome is Outcome.FAILED]
    times = [t for r in failed if (t := failed_at(r)) is not None]
    return Seen(len(failed), min(times, default=None), max(times, default=None), len(failed) - len(times))


def tally(reports: Sequence[Report]) -> str:
    """`12 runs: 7 failed in 3 ways, 1 suspect, 3 healthy, 1 cannot say`."""
    counts = {outcome: sum(r.verdict.outcome is outcome for r in reports) for outcome in Outcome}
    ways = len({fingerprint(r) for r in reports if r.verdict.outcome is Outcome.FAILED} - {NOTHING})
    words = [f"{n} {o.value.replace('_', ' ')}" for o, n in counts.items() if n]
    if ways > 1:
        words[0] += f" in {ways} ways"
    elif ways == 1 and counts[Outcome.FAILED] > 1:
        words[0] += " in the same way"
    return f"{say.plural(len(reports), 'run')}{': ' * bool(words)}{', '.join(words)}"
