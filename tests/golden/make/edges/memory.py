"""Memory on either side of what decides its shape: slopes, stairs, teeth, spikes, shifts, warm-ups, coarse digits."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping

from make.base import Label, Made, Series, Table, decay

_STEPS = 200
_HEALTHY = Label(outcome="healthy|cannot_say")
_GROWS = Label(outcome="suspect|healthy|cannot_say", shape="none|oom")
#: Shapes with a level that goes on rising below what else they show.
_RISES_TOO = ("spike-on-slope", "warmup-then", "running-shift-and-more", "running-early-jump", "teeth-floor-rises-0.1")
_LEVEL = frozenset(("slope-none", "slope-below", "slope-falls", "slope-ends-before-last-third", "stairs-end-at-90"))


def runs() -> Iterator[Made]:
    """Runs of one rank that log memory at every record beside a loss that falls."""
    for name, columns in _shapes():
        grows = name.startswith(("slope", "stairs", "rss", "gap", "running-stairs", "running-slope", *_RISES_TOO))
        yield _made(name, columns, _GROWS if grows and name not in _LEVEL else _HEALTHY)
    for count in (7, 8, 12):
        yield _made(f"slope-of-{count}", {"mem_allocated_gib": _noisy(lambda at: 10 + 0.2 * at, 0.01, count)}, _GROWS)
    for count in (301,):
        values = [round(v, 2) for v in _noisy(lambda at, n=count: 10 + 0.02 * max(0, at - n // 3), 0.02, count)]
        yield Made(f"edge-memory-slope-of-{count}", {"metrics.csv": Table({"mem_allocated_gib": values}).csv()}, _GROWS)
    for name, level in (("slope", lambda at: 10 + 0.001 * at), ("spikes", lambda at: 10 + 2.0 * (at % 700 == 500))):
        values = [round(v, 2) for v in _noisy(level, 0.02, 4300)]
        label = _GROWS if name == "slope" else _HEALTHY
        yield Made(f"edge-memory-long-{name}", {"metrics.csv": Table({"mem_allocated_gib": values}).csv()}, label)


def _made(name: str, columns: Mapping[str, Series], label: Label) -> Made:
    count = max(map(len, columns.values()))
    table = Table({"loss": [round(value, 4) for value in decay(5, 2, count)], **columns}, every=1)
    return Made(f"edge-memory-{name}", {"metrics.jsonl": table.jsonl()}, label)


def _noisy(level: Callable[[int], float], sd: float, count: int = _STEPS, seed: int = 7) -> Series:
    rng = random.Random(f"{seed} {count}")
    return [round(level(at) + rng.gauss(0, sd), 6) for at in range(count)]


def _wandering(level: Callable[[int], float], sd: float, keep: float, count: int = _STEPS, seed: int = 3) -> Series:
    rng, value, found = random.Random(seed), 0.0, []
    for at in range(count):
        value = keep * value + rng.gauss(0, sd)
        found.append(round(level(at) + value, 6))
    return found


def _peaks(values: Series) -> Series:
    return [max(values[: at + 1]) for at in range(len(values))]


def _shapes() -> Iterator[tuple[str, Mapping[str, Series]]]:
    yield from _slopes()
    yield from _stairs()
    yield from _teeth_and_spikes()
    yield from _shifts()
    yield from _running()
    yield from _pairs()


def _slopes() -> Iterator[tuple[str, Mapping[str, Series]]]:
    for word, per_step in (("none", 0.0), ("below", 0.0003), ("above", 0.0008), ("clear", 0.01), ("falls", -0.01)):
        yield f"slope-{word}", {"mem_allocated_gib": _noisy(lambda at, per=per_step: 10 + per * at, 0.02)}
    for word, from_step in (("begins-early", 40), ("begins-late", 120), ("begins-last", 185)):
        yield (
            f"slope-{word}",
            {"mem_allocated_gib": _noisy(lambda at, begin=from_step: 10 + 0.01 * max(0, at - begin), 0.02)},
        )
    for word, until in (("ends-before-last-third", 120), ("ends-in-last-third", 150)):
        yield f"slope-{word}", {"mem_allocated_gib": _noisy(lambda at, end=until: 10 + 0.01 * min(at, end), 0.02)}
    yield "slope-in-noise-that-wanders", {"mem_allocated_gib": _wandering(lambda at: 10 + 0.004 * at, 0.03, 0.9)}
    yield "flat-in-noise-that-wanders", {"mem_allocated_gib": _wandering(lambda _: 10.0, 0.03, 0.9, seed=5)}
    for count in (40, 80):
        yield f"slope-of-{count}-in-noise-that-wanders", {"mem_allocated_gib": _wandering(lambda at: 10 + 0.01 * at, 0.05, 0.7, count)}  # fmt: skip
    yield "slope-bends", {"mem_allocated_gib": _noisy(lambda at: 10 + 0.0001 * at * at, 0.02)}
    yield "slope-slackens", {"mem_allocated_gib": _noisy(lambda at: 10 + 0.2 * math.sqrt(at), 0.02)}
    yield "rss-slope", {"process_rss_gib": _noisy(lambda at: 4 + 0.003 * at, 0.01)}
    yield "slope-of-free", {"gpu_mem_free_gib": _noisy(lambda at: 30 - 0.02 * at, 0.05)}
    yield "slope-with-gaps", {"mem_allocated_gib": [v if at % 9 else 1e12 for at, v in enumerate(_noisy(lambda at: 10 + 0.01 * at, 0.02))]}  # fmt: skip
    for digits in (0, 1, 2):
        yield (
            f"slope-printed-to-{digits}",
            {"mem_allocated_gib": [round(v, digits) for v in _noisy(lambda at: 10 + 0.006 * at, 0.004)]},
        )
    for digits, rise in ((1, 0.02), (1, 0.06)):
        yield (
            f"slope-steep-{rise}-printed-to-{digits}",
            {"mem_allocated_gib": [round(v, digits) for v in _noisy(lambda at, per=rise: 10 + per * at, 0.01)]},
        )


def _stairs() -> Iterator[tuple[str, Mapping[str, Series]]]:
    for every in (3, 5, 10, 20, 40):
        yield f"stairs-every-{every}", {"mem_allocated_gib": _noisy(lambda at, e=every: 10 + 0.1 * (at // e), 0.01)}
    for height in (0.05, 0.3):
        yield f"stairs-high-{height}", {"mem_allocated_gib": _noisy(lambda at, h=height: 10 + h * (at // 25), 0.02)}
    for rise in (1, 2, 4):
        yield (
            f"stairs-rise-in-{rise}",
            {"mem_allocated_gib": _noisy(lambda at, r=rise: 10 + 0.2 * (at // 25 + min(1.0, (at % 25) / r) - 1), 0.01)},
        )
    for last in (90, 120, 150):
        yield f"stairs-end-at-{last}", {"mem_allocated_gib": _noisy(lambda at, e=last: 10 + 0.2 * (min(at, e) // 20), 0.01)}  # fmt: skip
    uneven = (20, 27, 60, 66, 110, 170)
    yield "stairs-uneven", {"mem_allocated_gib": _noisy(lambda at: 10 + 0.2 * sum(at >= e for e in uneven), 0.01)}
    yield "stairs-uneven-low", {"mem_allocated_gib": _noisy(lambda at: 10 + 0.05 * sum(at >= e for e in uneven), 0.02)}
    yield "stairs-unlike", {"mem_allocated_gib": _noisy(lambda at: 10 + sum(0.05 * (k + 1) for k in range(at // 30)), 0.01)}  # fmt: skip
    yield "stairs-on-slope", {"mem_allocated_gib": _noisy(lambda at: 10 + 0.1 * (at // 25) + 0.002 * at, 0.01)}
    yield "stairs-on-steep-slope", {"mem_allocated_gib": _noisy(lambda at: 10 + 0.1 * (at // 25) + 0.008 * at, 0.01)}
    yield "stairs-one-falls", {"mem_allocated_gib": _noisy(lambda at: 10 + 0.2 * (at // 25) - 0.5 * (at >= 130), 0.01)}
    yield "stairs-two", {"mem_allocated_gib": _noisy(lambda at: 10 + 0.2 * (at >= 60) + 0.2 * (at >= 130), 0.01)}
    yield "stairs-wander", {"mem_allocated_gib": _wandering(lambda at: 10 + 0.08 * (at // 25), 0.02, 0.6)}
    yield "stairs-low-evenly", {"mem_allocated_gib": _noisy(lambda at: 10 + 0.045 * (at // 20), 0.025, seed=11)}
    for digits in (1, 2):
        yield f"stairs-printed-to-{digits}", {"mem_allocated_gib": [round(v, digits) for v in _noisy(lambda at: 10 + 0.15 * (at // 20), 0.004)]}  # fmt: skip


def _teeth_and_spikes() -> Iterator[tuple[str, Mapping[str, Series]]]:
    for every in (4, 10, 20, 90, 120):
        yield f"teeth-every-{every}", {"mem_allocated_gib": _noisy(lambda at, e=every: 10 + 1.5 * (at % e) / e, 0.02)}
    for height in (0.05, 0.12, 0.25):
        yield f"teeth-high-{height}", {"mem_allocated_gib": _noisy(lambda at, h=height: 10 + h * (at % 20) / 20, 0.01)}
    for floor in (0.01, 0.04, 0.1):
        yield f"teeth-floor-rises-{floor}", {"mem_allocated_gib": _noisy(lambda at, f=floor: 10 + (at % 20) / 20 + f * (at // 20), 0.01)}  # fmt: skip
    yield "teeth-sudden", {"mem_allocated_gib": _noisy(lambda at: 10 + 1.0 * (at % 20 >= 10), 0.02)}
    yield "teeth-half-sudden", {"mem_allocated_gib": _noisy(lambda at: 10 + 0.6 * (at % 20 >= 10) + 0.02 * (at % 20), 0.01)}  # fmt: skip
    for long in (1, 10, 11):
        yield (
            f"spike-long-{long}",
            {"mem_allocated_gib": _noisy(lambda at, w=long: 10 + 2.0 * (90 <= at < 90 + w), 0.02)},
        )
    for height in (0.14, 0.3):
        yield f"spike-high-{height}", {"mem_allocated_gib": _noisy(lambda at, h=height: 10 + h * (at in {60, 120, 170}), 0.02)}  # fmt: skip
    yield "spike-regular", {"mem_allocated_gib": _noisy(lambda at: 10 + 1.0 * (at % 50 == 25), 0.02)}
    yield "spike-uneven", {"mem_allocated_gib": _noisy(lambda at: 10 + 1.0 * (at in {30, 42, 130, 160}), 0.02)}
    yield "spike-at-the-end", {"mem_allocated_gib": _noisy(lambda at: 10 + 1.0 * (at >= 198), 0.02)}
    yield "spike-on-slope", {"mem_allocated_gib": _noisy(lambda at: 10 + 0.01 * at + 2.0 * (at % 60 == 30), 0.02)}
    yield "spike-that-grows", {"mem_allocated_gib": _noisy(lambda at: 10 + 0.2 * max(0, 5 - abs(at - 100)), 0.02)}


def _shifts() -> Iterator[tuple[str, Mapping[str, Series]]]:
    for height in (0.09, 0.12):
        yield f"shift-up-{height}", {"mem_allocated_gib": _noisy(lambda at, h=height: 10 + h * (at >= 110), 0.02)}
    yield "shift-down", {"mem_allocated_gib": _noisy(lambda at: 10 - 0.5 * (at >= 110), 0.02)}
    yield "shift-down-low", {"mem_allocated_gib": _noisy(lambda at: 10 - 0.11 * (at >= 110), 0.02)}
    yield "shift-up-and-down", {"mem_allocated_gib": _noisy(lambda at: 10 + 0.5 * (60 <= at < 130), 0.02)}
    for at_step in (2, 19, 22):
        yield f"warmup-until-{at_step}", {"mem_allocated_gib": _noisy(lambda at, e=at_step: 6 + 4.0 * (at >= e), 0.02)}
    yield "warmup-twice", {"mem_allocated_gib": _noisy(lambda at: 5 + 3.0 * (at >= 3) + 2.0 * (at >= 9), 0.02)}
    yield "warmup-comes-back", {"mem_allocated_gib": _noisy(lambda at: 6 + 4.0 * (at >= 4) - 2.0 * (at >= 100), 0.02)}
    yield "warmup-then-slope", {"mem_allocated_gib": _noisy(lambda at: 6 + 4.0 * (at >= 4) + 0.01 * at, 0.02)}
    yield "warmup-then-stairs", {"mem_allocated_gib": _noisy(lambda at: 6 + 0.5 * (at // 12), 0.02)}
    yield "warmup-like-stairs", {"mem_allocated_gib": _noisy(lambda at: 6 + 0.5 * (at >= 12) + 0.5 * (at >= 70), 0.02)}
    yield "warmup-small", {"mem_allocated_gib": _noisy(lambda at: 10 + 0.11 * (at >= 5), 0.01)}
    yield "warmup-of-24", {"mem_allocated_gib": _noisy(lambda at: 6 + 4.0 * (at >= 3), 0.02, count=24)}


def _running() -> Iterator[tuple[str, Mapping[str, Series]]]:
    yield "running-peak-of-noise", {"mem_peak_gib": _peaks(_noisy(lambda _: 10.0, 0.05))}
    yield "running-slope", {"mem_peak_gib": _peaks(_noisy(lambda at: 10 + 0.01 * at, 0.01))}
    yield "running-slope-rare", {"mem_peak_gib": _peaks(_noisy(lambda at: 10 + 0.002 * at, 0.05))}
    for every in (3, 5, 50):
        yield f"running-stairs-every-{every}", {"mem_peak_gib": [10 + 0.25 * (at // every) for at in range(_STEPS)]}
    yield "running-stairs-unlike", {"mem_peak_gib": [10 + sum(0.1 * (k + 1) for k in range(at // 40)) for at in range(_STEPS)]}  # fmt: skip
    yield "running-stairs-nearly-even", {"mem_peak_gib": [10 + 0.25 * sum(at >= e for e in (30, 63, 91, 125, 158, 188)) for at in range(_STEPS)]}  # fmt: skip
    yield "running-stairs-end", {"mem_peak_gib": [10 + 0.25 * (min(at, 100) // 20) for at in range(_STEPS)]}
    yield "running-shift-late", {"mem_peak_gib": [10 + 0.02 * (at >= 40) + 2.0 * (at >= 150) for at in range(_STEPS)]}
    yield "running-shift-and-few", {"mem_peak_gib": [10 + 2.0 * (at >= 120) + 0.1 * sum(at >= e for e in (130, 150)) for at in range(_STEPS)]}  # fmt: skip
    yield "running-shift-and-more", {"mem_peak_gib": [10 + 2.0 * (at >= 120) + 0.4 * sum(at >= e for e in (130, 150, 170, 190)) for at in range(_STEPS)]}  # fmt: skip
    yield "running-small", {"mem_peak_gib": [10 + 0.02 * (at // 50) for at in range(_STEPS)]}
    yield "running-early-jump", {"mem_peak_gib": [6 + 3.0 * (at >= 3) + 0.5 * (at // 45) for at in range(_STEPS)]}
    yield "running-jump-of-a-third", {"mem_peak_gib": [6 + 1.0 * (at >= 3) + 0.5 * (at // 45) for at in range(_STEPS)]}
    yield "running-cache", {"mem_reserved_gib": [10 + 0.25 * sum(at >= e for e in (5, 9, 30, 120, 140, 170)) for at in range(_STEPS)]}  # fmt: skip
    yield "running-stairs-with-noise", {"mem_peak_gib": _peaks(_noisy(lambda at: 10 + 0.3 * (at // 25), 0.03))}
    yield "running-slope-coarse", {"mem_peak_gib": [round(10 + 0.004 * at, 1) for at in range(_STEPS)]}


def _pairs() -> Iterator[tuple[str, Mapping[str, Series]]]:
    level = _noisy(lambda _: 10.0, 0.01)
    yield "gap-climbs", {"mem_allocated_gib": level, "mem_reserved_gib": _noisy(lambda at: 14 + 0.02 * at, 0.02)}
    yield "gap-climbs-by-a-third", {"mem_allocated_gib": level, "mem_reserved_gib": _noisy(lambda at: 14 + 0.007 * at, 0.02)}  # fmt: skip
    yield "gap-both-climb", {"mem_allocated_gib": _noisy(lambda at: 10 + 0.01 * at, 0.01), "mem_reserved_gib": _noisy(lambda at: 14 + 0.01 * at, 0.02, seed=9)}  # fmt: skip
    yield "gap-shift", {"mem_allocated_gib": _noisy(lambda at: 10 + 3.0 * (at == 100), 0.01), "mem_reserved_gib": _noisy(lambda at: 12 + 2.0 * (at >= 100), 0.01)}  # fmt: skip
