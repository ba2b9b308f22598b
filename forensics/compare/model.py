"""The values of a comparison, as renderers see them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from forensics.compare.decide import Answer, Policy
from forensics.model import Evidence, Number


class Options(Struct, frozen=True):
    """The caller's request: a metric by name, the policy, and whether to compare runs that are not comparable."""

    metric: str | None = None
    policy: Policy = field(default_factory=Policy)
    noise_given: bool = False
    anyway: bool = False


class SideSummary(Struct, frozen=True):
    """One run of a comparison: records used, their median as the metric is printed, what was set aside."""

    run: str
    n: int
    median: float
    dropped: int
    warmup: int
    pauses: int
    pause_share: float


class Section(Struct, frozen=True):
    """One part of a comparison.

    `answer` is None for a section that only tells. `facts` are lines of label and text for people, `numbers` are for
    programs, `notes` whole sentences, `rows` a table for programs, best first. `base` and `cand` are None where nothing
    could be compared.
    """

    name: str
    title: str
    answer: Answer | None
    headline: str
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    numbers: Mapping[str, Number | None] = field(default_factory=dict[str, "Number | None"])
    evidence: tuple[Evidence, ...] = ()
    base: SideSummary | None = None
    cand: SideSummary | None = None
    metric: str | None = None
    change: float | None = None
    interval: tuple[float, float] | None = None
    min_detectable: float | None = None
    rows: tuple[Mapping[str, Number | None], ...] = ()


class Diff(Struct, frozen=True):
    """A whole comparison; a regression of any section decides, else the first section that could compare something."""

    bases: tuple[str, ...]
    cand: str
    sections: tuple[Section, ...]

    @property
    def deciding(self) -> Section | None:
        """Give the section whose answer is the answer."""
        answered = [s for s in self.sections if s.answer is not None]
        worse = [s for s in answered if s.answer is Answer.REGRESSION]
        return next(iter((*worse, *(s for s in answered if s.metric is not None), *answered)), None)

    @property
    def answer(self) -> Answer:
        """Give the answer; inconclusive where no section has one."""
        deciding = self.deciding
        return deciding.answer if deciding is not None and deciding.answer is not None else Answer.INCONCLUSIVE


def joined(run: str, source: str) -> str:
    """Give the path of a source as the caller would write it; a run that is one file is that file."""
    return run if run == source or run.endswith(f"/{source}") else f"{run.rstrip('/')}/{source}"
