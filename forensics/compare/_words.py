"""A throughput comparison in words: headline, facts and notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forensics.compare._comparable import Difference
from forensics.compare._pair import Estimate
from forensics.compare._series import Series
from forensics.compare.decide import Answer, Decision
from forensics.compare.model import Options, SideSummary

_COARSE = 0.025
_SHARE = 0.01


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
    """Give the unit in which a median is told, as the metric is printed."""
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
    """Give the lines of the section: both sides, the error, and what it rests on."""
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
    """Give what a reader must know besides; a note may come twice."""
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
