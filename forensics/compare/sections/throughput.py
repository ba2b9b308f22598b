"""Throughput of two runs: the ratio of their steady times, and whether it can be told from noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import expm1, sqrt
from statistics import fmean, variance

import numpy as np
from msgspec import Struct

from forensics.analyses.pace.change import Change, change_of
from forensics.analyses.pace.pauses import share_of_time
from forensics.analyses.pace.steady import Steady, steady
from forensics.case.evidence import metric_evidence
from forensics.compare._comparable import Difference, differences
from forensics.compare._pair import Estimate, Side, estimate, sides_of
from forensics.compare._series import FEWEST, Series, matched
from forensics.compare.decide import Answer, Decision, Policy, decide
from forensics.compare.diff import SectionKind
from forensics.compare.model import Options, Section, SideSummary
from forensics.model import Evidence, EvidenceRole
from forensics.stats.running import block_means
from forensics.stats.student import hypot
from forensics.store.run import Run
from forensics.values import named, replace

_COARSE = 0.025
_SHARE = 0.01
_TITLE = "Throughput"
#: What is believed of run-to-run noise before it is measured: its deviation, and the degrees of freedom of that.
_PRIOR_SD, _PRIOR_DF = 0.01, 4.0
_DIFFERENT = 1.5


class Prepared(Struct, frozen=True):
    """One run's series made steady, and the part of it that is compared: `since` is the step of a change, or None."""

    series: Series
    whole: Steady
    part: Steady
    since: int | None

    def at(self, index: int) -> int:
        """Give the step of a steady record."""
        return int(self.whole.steps[index])


def compare(bases: Sequence[Run], cand: Run, options: Options) -> Section | None:
    """Compare the throughput of a candidate with that of the baselines."""
    found = matched([*bases, cand], options.metric)
    if isinstance(found, str):
        return _nothing(found)
    prepared = [one for series in found if (one := _prepared(series)) is not None]
    if len(prepared) < len(found):
        return _nothing(f"fewer than {FEWEST} records of {found[0].clock.name} are left after the warm-up")
    every = _by_regime(prepared)
    asked = ((b.part, every[-1].part, (b.series, every[-1].series)) for b in every[:-1])
    known = [estimate for pair in asked if (estimate := estimate_over_intervals(*pair)) is not None]
    if len(known) < len(every) - 1:
        return _nothing(f"fewer than {FEWEST} steady records of {found[0].clock.name} are left")
    decision = decide_all(known, options.policy, noise_given=options.noise_given)
    return _section(every, known, decision, (differences(bases[0], cand), options))


def _prepared(series: Series) -> Prepared | None:
    found = steady(series.seconds, series.steps, series.clock.quantum, fewest=FEWEST)
    return None if found is None else Prepared(series, found, found, None)


def _by_regime(every: list[Prepared]) -> list[Prepared]:
    """Compare the last level of the candidate with the levels that the bases held before any slowdown of their own.

    A level that changes in mid-run is no noise about a mean: the part after a lasting, confirmed slowdown of the
    candidate speaks for it, the part before one speaks for a base. Where all became slower at one step that is what
    they were to do from there on: their last levels are compared.
    """
    last = [_after(one) for one in every]
    if all(_fell_together(base, last[-1]) for base in last[:-1]):
        return [replace(one, since=None) for one in last]
    return [*(_before(base) for base in every[:-1]), last[-1]]


def _fell_together(base: Prepared, cand: Prepared) -> bool:
    near = FEWEST * max(base.series.interval, cand.series.interval)
    return base.since is not None and cand.since is not None and abs(base.since - cand.since) < near


def _slowdown(one: Prepared) -> Change | None:
    change = change_of(one.whole)
    if change is None or change.kind != "lasting" or not change.confirmed or change.form in {"stalls", "pauses"}:
        return None
    return change


def _after(cand: Prepared) -> Prepared:
    change = _slowdown(cand)
    if change is None or len(cand.whole) - change.first < FEWEST:
        return cand
    last = max([change.first, *(cut for cut in change.cuts if len(cand.whole) - cut >= FEWEST)])
    part = cand.whole.slice(change.first).without_climb() if change.form == "ramp" else cand.whole.slice(last)
    return Prepared(cand.series, cand.whole, part, cand.at(change.first))


def _before(base: Prepared) -> Prepared:
    change = _slowdown(base)
    if change is None or change.first < FEWEST:
        return base
    return Prepared(base.series, base.whole, base.whole.slice(0, change.first), None)


def _section(
    every: list[Prepared],
    estimates: list[Estimate],
    decision: Decision,
    asked: tuple[tuple[Difference, ...], Options],
) -> Section:
    unlike, options = asked
    blocked = bool(unlike) and not options.anyway
    answer = Answer.INCONCLUSIVE if blocked else decision.answer
    cand = every[-1]
    sides = [_summary(p) for p in every]
    return Section(
        name="throughput",
        title=_TITLE,
        answer=answer,
        headline=headline_of(answer, decision, cand.since, unlike if blocked else ()),
        facts=tuple(facts_of(sides, cand.series, estimates, decision, options)),
        notes=tuple(dict.fromkeys(notes_of([p.series for p in every], estimates, decision, unlike, options))),
        numbers=_numbers(every, estimates, decision, options),
        evidence=tuple(_evidence(p, last=n == len(every) - 1) for n, p in enumerate(every)),
        base=sides[0],
        cand=sides[-1],
        metric=str(cand.series.clock.row(0)["name"] if cand.series.clock.form != "wall" else "timestamps"),
        change=decision.change,
        interval=decision.interval,
        min_detectable=decision.min_detectable,
    )


def _summary(prepared: Prepared) -> SideSummary:
    whole, part = prepared.whole, prepared.part
    used = int((~part.spikes.far).sum())
    middle = float(np.median(part.seconds))
    return SideSummary(
        run=prepared.series.clock.source,
        n=used,
        median=1 / middle if is_rate(prepared.series) else middle,
        dropped=len(prepared.series.seconds) - used + prepared.series.dropped,
        warmup=whole.warmup + prepared.series.dropped,
        pauses=int(whole.paused.sum()),
        pause_share=share_of_time(whole.seconds, whole.paused),
    )


def _numbers(
    every: list[Prepared], estimates: list[Estimate], decision: Decision, options: Options
) -> dict[str, float | int | str | None]:
    cand, base = every[-1], every[0]
    return {
        "tier": "confirmed" if decision.answer is decision.possible else "possible",
        **named(decision, "possible p run_noise_max steps_needed runs_needed"),
        **named(estimates[0], "method n_effective=effective"),
        **named(cand, "unit=series.clock.unit since_step=since"),
        "run_noise": options.policy.run_noise if len(estimates) == 1 or options.noise_given else None,
        "max_slowdown": max(options.policy.max_slowdown, options.policy.tolerance),
        "baselines": len(estimates),
        "end_to_end": _end_to_end(base, cand),
    }


def _end_to_end(base: Prepared, cand: Prepared) -> float | None:
    """Change of throughput with every pause included, over the steps that both runs have."""
    common = np.intersect1d(base.whole.steps, cand.whole.steps, return_indices=True)
    if len(common[0]) < FEWEST:
        return None
    first, second = base.whole.seconds[common[1]].sum(), cand.whole.seconds[common[2]].sum()
    return float(expm1(np.log(first / second)))


def _evidence(prepared: Prepared, *, last: bool) -> Evidence:
    clock = prepared.series.clock
    row = clock.row(0)
    if last:
        at = clock.rows["at"] >= (prepared.since if prepared.since is not None else int(prepared.part.steps[0]))
        row = clock.row(int(at.arg_true()[0]) if at.any() else 0)
    return metric_evidence(row, EvidenceRole.PRIMARY if last else EvidenceRole.RELATED)


def _nothing(why: str) -> Section:
    return Section("throughput", _TITLE, Answer.INCONCLUSIVE, f"throughput cannot be compared: {why}")


# The words: headline, facts and notes.


def percent(value: float) -> str:
    """`-9.1 %`, with a sign and a digit more below one percent."""
    return f"{100 * value:+.2f} %" if abs(value) < 0.01 else f"{100 * value:+.1f} %"


def size(value: float) -> str:
    """`9.1 %`, without a sign."""
    return percent(abs(value))[1:]


def is_rate(series: Series) -> bool:
    """Whether the metric is printed as a rate: more is faster."""
    return series.clock.form in {"rate", "mean-rate"}


def printed_unit(series: Series) -> str:
    """Give the unit of a median, as the metric is printed."""
    unit = series.clock.unit
    if unit == "flop":
        return f"{series.clock.name}"
    if is_rate(series):
        return f"{unit.replace('token', 'tokens').replace('sample', 'samples').replace('step', 'steps')}/s"
    return f"s per {unit}"


def headline_of(answer: Answer, decision: Decision, since: int | None, unlike: Sequence[Difference]) -> str:
    """Give the answer in one sentence."""
    low, high = decision.interval
    measured = f"{percent(decision.change)} throughput (99 % interval {percent(low)} to {percent(high)})"
    where = f" from step {since} on" if since is not None else ""
    if unlike:
        return f"not comparable ({', '.join(dict.fromkeys(d.what for d in unlike))}); measured {measured}"
    if answer is Answer.REGRESSION:
        return f"slower{where}: {measured}"
    if answer is Answer.IMPROVEMENT:
        return f"faster{where}: {measured}"
    if answer is Answer.NO_CHANGE:
        return f"no change that matters: {measured}"
    return f"cannot say: {measured}; {decision.why}"


def facts_of(
    sides: Sequence[SideSummary], series: Series, estimates: Sequence[Estimate], decision: Decision, options: Options
) -> Iterator[tuple[str, str]]:
    """Give the lines of the section: both sides, the error, and its basis."""
    unit = printed_unit(series)
    for number, side in enumerate(sides):
        label = "cand" if number == len(sides) - 1 else "base"
        pauses = f", {side.pauses} pauses ({size(side.pause_share)} of the time)" if side.pauses else ""
        median = f"{side.median:.6g} {unit}, median of {side.n} records"
        yield label, f"{median}; set aside: {side.warmup} warm-up{pauses}"
    yield "smallest", f"a slowdown of {size(decision.min_detectable)} would have been seen in nine of ten cases"
    if len(estimates) > 1 and not options.noise_given:
        yield "run noise", f"measured over {len(estimates)} baselines, with a prior of 1 %"
    else:
        holds = f"; the verdict holds up to {size(most)}" if (most := decision.run_noise_max) is not None else ""
        yield "run noise", f"identical runs are taken to differ by {size(options.policy.run_noise)} (sd){holds}"
    if decision.answer is Answer.INCONCLUSIVE:
        yield "to settle", _to_settle(decision, len(estimates))


def _to_settle(decision: Decision, baselines: int) -> str:
    steps = f"{decision.steps_needed:,} records in each run" if decision.steps_needed else "more steps cannot tell"
    runs = f", or {decision.runs_needed} runs of each kind" if decision.runs_needed else ""
    return steps + runs + (f" (there are {baselines} baselines)" if baselines > 1 else "")


def notes_of(
    series: Sequence[Series],
    estimates: Sequence[Estimate],
    decision: Decision,
    unlike: Sequence[Difference],
    options: Options,
) -> Iterator[str]:
    """Give the notes for a reader; one may come twice."""
    said = " (compared all the same, as asked)" if options.anyway else ""
    for difference in unlike:
        yield f"differs: {difference}{said}"
    if decision.possible is Answer.REGRESSION and decision.answer is not Answer.REGRESSION:
        yield "a slowdown is possible, but not confirmed: more runs of either kind would tell"
    for one in series:
        yield from (f"{one.clock.name}: {note}" for note in one.clock.notes)
        if one.resolution > _COARSE:
            yield f"{one.clock.name} is rounded to {size(one.resolution)}, so small changes are invisible"
    share = estimates[0].slow_share
    if share is not None and abs(share[2]) > 3 and abs(share[1] - share[0]) > _SHARE:
        yield f"the share of slow steps went from {size(share[0])} to {size(share[1])}"
    yield f"compared by {estimates[0].method}"


SECTION = SectionKind("throughput", 0, compare)


# One candidate against several baseline runs: how far identical runs differ is measured, not assumed.


def decide_all(found: Sequence[Estimate], policy: Policy, *, noise_given: bool) -> Decision:
    """Judge a candidate against every baseline at once, by a moderated t on run means (Smyth 2004).

    The variance between baselines is mixed with a prior of 1 % and four degrees of freedom; a run-to-run noise that the
    caller gave is taken as known.
    """
    if len(found) == 1:
        return decide(found[0], policy)
    k = len(found)
    ratios = [each.log_ratio for each in found]
    middle = _central(found, fmean(ratios))
    if noise_given:
        return decide(middle, policy, runs_se=hypot(middle.se, policy.run_noise * sqrt(1 + 1 / k)))
    own = fmean(each.se**2 for each in found) / 2
    df = _PRIOR_DF + k - 1
    moderated = (_PRIOR_DF * (_PRIOR_SD**2 + own) + (k - 1) * variance(ratios)) / df
    return decide(middle, policy, runs_se=sqrt(moderated * (1 + 1 / k)), df=df)


def _central(found: Sequence[Estimate], log_ratio: float) -> Estimate:
    worst, least = max(found, key=lambda each: each.se), min(each.effective for each in found)
    count = min(each.count for each in found)
    return replace(worst, log_ratio=log_ratio, effective=least, count=count, slow_share=None)


# Runs that logged at different intervals: single steps against means of many, compared as means of as many.


def estimate_over_intervals(base: Steady, cand: Steady, series: tuple[Series, Series]) -> Estimate | None:
    """Estimate the ratio; None when fewer than eight records are left on a side.

    The mean of a log differs from the log of a mean by half the variance, and a mean over many steps may hold pauses.
    So where one run logs more rarely, the other is averaged to the same interval as well, without and with its pauses,
    and the smallest of the three changes is reported.
    """
    first, second, multimodal = sides_of(base, cand)
    if min(len(first.logs), len(second.logs)) < FEWEST:
        return None
    plain = _rounded(estimate(first, second, multimodal=multimodal), base, cand)
    ratio = series[0].interval / series[1].interval
    if 1 / _DIFFERENT < ratio < _DIFFERENT:
        return plain
    averaged = list(_averaged(base, cand, ratio))
    found = [plain, *(_rounded(estimate(*pair, multimodal=False), base, cand) for pair in averaged)]
    least = min(found, key=lambda e: abs(e.log_ratio))
    return replace(least, se=max(e.se for e in found), method=f"{least.method}, over different logging intervals")


def _averaged(base: Steady, cand: Steady, ratio: float) -> list[tuple[Side, Side]]:
    size = max(2, round(max(ratio, 1 / ratio)))
    fine, rare = (cand, base) if ratio > 1 else (base, cand)
    pairs: list[tuple[Side, Side]] = []
    for seconds, other in (
        (np.where(fine.paused, np.exp(fine.spikes.base), fine.seconds), rare.logs[~rare.spikes.far]),
        (fine.seconds, np.log(rare.seconds)),
    ):
        means = block_means(seconds, size)
        if len(means) >= FEWEST and len(other) >= FEWEST:
            a, b = Side(np.log(means), np.arange(len(means))), Side(other, -1 - np.arange(len(other)))
            pairs.append((b, a) if ratio > 1 else (a, b))
    return pairs


def _rounded(found: Estimate, base: Steady, cand: Steady) -> Estimate:
    """Add the error of printing where the unit is not small against the noise: then it does not average out."""
    parts = [
        run.resolution / sqrt(12) if run.resolution > 2 * run.spikes.sd else run.resolution / sqrt(12 * found.count)
        for run in (base, cand)
    ]
    return replace(found, se=hypot(found.se, *parts))
