"""Runs in one place, side by side: the differences of a failed run from its siblings, and their meaning.

A run that failed is compared with each that did not: what differs between them is a check that somebody made. Two that
failed alike tell which change did not help. Two whose settings are equal should log one loss: where they part,
something is not determined. `checklist.tsv` holds what a change of each setting tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations

import numpy as np
import polars as pl
from msgspec import Struct

from forensics.case.settings import OFF, settings
from forensics.compare.config.audit import Difference, audit, bisected, longest, together
from forensics.compare.evals.comparison import compare_all
from forensics.io.tables import table_rows
from forensics.knowledge.settings import setting
from forensics.model import Outcome, Report, Shape
from forensics.store.run import Run

#: Sweeps have more runs than anybody reads of; each pair costs a comparison of all settings.
MOST = 8
#: So many differences are named; the last level is that of this share of the common records, ten at least.
_TOLD, _LAST, _FEWEST = 3, 0.2, 10
#: Losses of one program that differ by more than the last digits of a float.
_SAME = 1e-6
#: A last level that is worse by so many standard errors, and by this share, is worse.
_SIGMAS, _WORSE = 3.0, 0.01
#: A loss of a repeated batch that is as good as nothing: two examples are learned until it is almost zero.
_BY_HEART = 0.1


class Sibling(Struct, frozen=True):
    """One run of a place and its report."""

    run: Run
    report: Report

    @property
    def name(self) -> str:
        """Its folder or file."""
        return self.run.name.rstrip("/").rpartition("/")[2]

    @property
    def failed(self) -> bool:
        """Whether it failed."""
        return self.report.verdict.outcome is Outcome.FAILED

    @property
    def ill(self) -> bool:
        """Whether it failed, or something of it is suspect."""
        return self.failed or self.report.verdict.outcome is Outcome.SUSPECT


def notes(every: Sequence[Sibling]) -> Iterator[str]:
    """Say in a line each how the runs of a place compare; nothing of one run, or of too many."""
    if not 1 < len(every) <= MOST:
        return
    for first, second in combinations(every, 2):
        if first.failed != second.failed:
            yield from _one_failed(*((first, second) if first.failed else (second, first)))
        elif first.ill and second.ill and first.report.verdict.shape is second.report.verdict.shape:
            yield from _both_ill(first, second)
        elif not first.failed:
            yield from _none_failed(first, second)
    yield from _left(every)


def _one_failed(bad: Sibling, good: Sibling) -> Iterator[str]:
    if (learned := _one_batch(good)) is not None:
        yield f"{good.name} trains on a single batch and {learned}"
        return
    found = _differences(bad, good)
    if found:
        yield f"{bad.name} failed and {good.name} did not, which differs in {_list(found)}{_telling('stops', found)}"
        yield from bisected(_differences(good, bad))
    elif settings(bad.run) and settings(good.run):
        alike = "with the same settings: compare their seeds, data order and hosts"
        yield f"{bad.name} failed and {good.name} did not, {alike}"


def _both_ill(first: Sibling, second: Sibling) -> Iterator[str]:
    if found := _differences(first, second):
        yield f"{second.name} fails as {first.name} does, with {_list(found)}{_telling('early', found)}"


def _none_failed(first: Sibling, second: Sibling) -> Iterator[str]:
    """Findings of two runs that both trained: scores, a worse minimum on more devices, or losses that part."""
    pairs = compare_all((first.run,), second.run)
    worse = [p for p in pairs if p.significant]
    if worse:
        pair = max(worse, key=lambda p: abs(float(p.cand["value"]) - float(p.base["value"])))
        low, high = (second, first) if pair.worse else (first, second)
        values = sorted((float(pair.cand["value"]), float(pair.base["value"])))
        found = _differences(high, low)
        differs = f"; they differ in {_list(found)}" if found else ""
        yield (
            f"{low.name} scores below {high.name} ({pair.key[0]} {values[0]:.4g} and {values[1]:.4g}){differs}:"
            f" forensics triage {low.run.name} --baseline {high.run.name}"
        )
        yield from bisected(found)
        return
    if unlike := next((p.settings.blocks[0].words for p in pairs if p.settings.blocks), ""):
        yield f"{first.name} and {second.name} were evaluated unlike ({unlike}): evaluate both again with one command"
        return
    both = together(first.run, second.run, "loss")
    if both is None:
        return
    (one, mine), (other, theirs), at = both
    a, b = one.values[mine], other.values[theirs]
    sizes = _devices(first.run), _devices(second.run)
    if sizes[0] and sizes[1] and sizes[0] != sizes[1]:
        yield from _on_more_devices(*(((first, a), (second, b)) if sizes[0] < sizes[1] else ((second, b), (first, a))))
    elif settings(first.run) and settings(second.run) and not audit(first.run, second.run).differences:
        off = np.abs(a - b) > _SAME * np.maximum(np.abs(a), np.abs(b))
        if off.any():
            step = int(at[int(off.argmax())])
            why = "the seed or the order of the data" if off[0] else "kernels that are not deterministic"
            yield (
                f"{first.name} and {second.name} have the same settings, and their losses part at step {step}: {why}."
                " Set all seeds and torch.use_deterministic_algorithms(True); some kernels stay nondeterministic"
            )


def _on_more_devices(few: tuple[Sibling, np.ndarray], many: tuple[Sibling, np.ndarray]) -> Iterator[str]:
    """Say that the run on more devices ends at a higher loss, where noise does not explain it."""
    last = max(_FEWEST, int(_LAST * len(few[1])))
    ends = [(one, float(np.mean(losses[-last:]))) for one, losses in (few, many)]
    gap = many[1][-last:] - few[1][-last:]
    if ends[1][1] - ends[0][1] > max(_SIGMAS * float(np.std(gap)) / last**0.5, _WORSE * abs(ends[0][1])):
        (alone, low), (spread, high) = ends
        yield (
            f"{spread.name} on {_devices(spread.run):.0f} devices ends at a loss of {high:.4g}, and {alone.name} on"
            f" {_devices(alone.run):.0f} at {low:.4g}: gradients may not be averaged. Check the DDP or FSDP wrapper,"
            " the normalisation of the loss on each rank, and gradient hooks"
        )


def _devices(run: Run) -> float | None:
    """The number of processes of a run, by its environment or its settings."""
    counts = rf"(?:^|\.){setting('device_count').keys}$"
    rows = run.scan("facts").filter(pl.col("key").str.to_lowercase().str.contains(counts)).select("value").collect()
    said = {number for (text,) in rows.iter_rows() if (number := _number(str(text).strip('"')))}
    return max(said) if said else None


def _left(every: Sequence[Sibling]) -> Iterator[str]:
    """Name the checks that nobody made where each run failed to train."""
    shapes = {one.report.verdict.shape for one in every if one.ill}
    if not all(one.ill for one in every) or not shapes <= {Shape.NAN, Shape.LEARNING}:
        return
    tried = {d.name for first, second in combinations(every, 2) for d in audit(first.run, second.run).differences}
    left = [words for concept, when, _, words in _table() if when == "untried" and concept not in tried]
    if left:
        yield f"all {len(every)} runs fail; not tried yet: {', '.join(left)}, and the data of the failing step printed"


def _one_batch(one: Sibling) -> str | None:
    """How a run that repeats one batch ended, where it is one."""
    said = settings(one.run).get("one_batch")
    loss = longest(one.run, "loss")
    if said is None or said.value.lower() in OFF or loss is None:
        return None
    last = float(loss.values[-1])
    if last <= _BY_HEART:
        return f"learns it by heart (loss {last:.3g}): the loop is right, look at the data and the settings"
    return f"does not learn it by heart (loss {last:.3g}): the bug is in the model, the loss or the labels"


def _differences(base: Sibling, cand: Sibling) -> list[Difference]:
    return [d for d in audit(base.run, cand.run).differences if d.score > 0 and d.family != "seeds"]


def _list(found: Sequence[Difference]) -> str:
    told = [f"{d.key} {d.base} → {d.cand}" for d in found[:_TOLD]]
    return ", ".join(told) + (f" and {len(found) - _TOLD} more" if len(found) > _TOLD else "")


def _telling(when: str, found: Sequence[Difference]) -> str:
    """The meaning of the first difference that the table knows, behind a colon."""
    rows = ((d, row) for d in found for row in _table())
    told = (words for d, (name, of, way, words) in rows if (name, of) == (d.name, when) and _went(way, d))
    return next((f": {words}" for words in told), "")


def _went(way: str, difference: Difference) -> bool:
    base, cand = _number(difference.base), _number(difference.cand)
    if way == ".":
        return True
    return cand is not None and (not base if way == "set" else base is not None and cand < base)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@cache
def _table() -> tuple[tuple[str, ...], ...]:
    return tuple(map(tuple, table_rows("forensics.compare", "checklist.tsv")))
