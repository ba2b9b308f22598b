"""Loss scales and skipped updates on either side of what decides a collapse: falls, counters, words; later attempts."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

from make.base import Label, Made, Series, lines
from make.edges.nan import HEALTHY, STEPS, STUMBLE, falling, log_of, lost, norms, one, records, spoilt


def runs() -> Iterator[Made]:
    """Runs of fp16 training, and runs of several attempts."""
    yield from _scales()
    yield from _counters()
    yield from _scale_lines()
    yield from _attempts()


def _scales() -> Iterator[Made]:
    """The loss scale of fp16: how it falls, how far, how often, and whether it stays there."""
    loss = falling()

    def scale(falls: Sequence[int], rises: Sequence[int] = (), top: float = 65536.0) -> Series:
        return [top * 0.5 ** sum(at >= one for one in falls) * 2.0 ** sum(at >= one for one in rises) for at in range(STEPS)]  # fmt: skip

    def collapse(onset: int) -> Label:
        return lost(onset, "loss_scale_collapse")

    for count in (4, 5, 6):
        yield one(f"scale-falls-{count}-at-the-end", {"loss": loss, "loss_scale": scale([*range(118 - count, 118)])}, collapse(119 - count) if count > 4 else HEALTHY)  # fmt: skip
        yield one(f"scale-falls-{count}-in-the-middle", {"loss": loss, "loss_scale": scale([*range(70, 70 + count)])}, HEALTHY)  # fmt: skip
    for every in (2, 12, 13):
        falls = [*range(118 - 5 * every, 118, every)]
        yield one(f"scale-falls-every-{every}", {"loss": loss, "loss_scale": scale(falls)}, STUMBLE)
    for quiet in (2, 12, 14):
        falls = [*range(112 - quiet, 119 - quiet)]
        yield one(f"scale-falls-{quiet}-before-the-end", {"loss": loss, "loss_scale": scale(falls)}, STUMBLE)
    for floor, top in ((1.0, 65536.0), (1.0, 8.0), (1.0, 16.0), (2.0, 65536.0)):
        count = int(math.log2(top / floor))
        values = scale([*range(60, 60 + count)], top=top)
        yield one(f"scale-from-{top:g}-to-{floor:g}", {"loss": loss, "loss_scale": values}, STUMBLE if floor > 1 or top < 16 else collapse(61))  # fmt: skip
    for left in (2, 3, 4):
        values = scale([*range(STEPS - left - 4, STEPS - left)], top=16.0)
        yield one(f"scale-at-one-for-{left}", {"loss": loss, "loss_scale": values}, STUMBLE)
    yield one("scale-rises-between", {"loss": loss, "loss_scale": scale([100, 103, 106, 109, 112, 115], [101, 104, 107, 110, 113])}, HEALTHY)  # fmt: skip
    yield one("scale-rises-after", {"loss": loss, "loss_scale": scale([*range(60, 76)], [90])}, HEALTHY)
    for first in (30, 49, 51):
        yield one(f"scale-calibrates-from-{first}", {"loss": loss, "loss_scale": scale([*range(first, first + 16)])}, STUMBLE)  # fmt: skip
    both = {"loss": spoilt(loss, lambda at: at >= 110), "loss_scale": scale([*range(100, 118)])}
    yield one("scale-falls-then-loss", both, lost(111, "loss_scale_collapse"))
    both = {"loss": spoilt(loss, lambda at: at >= 90), "loss_scale": scale([*range(100, 118)])}
    yield one("scale-falls-after-loss", both, lost(91))
    rare = [None if at % 10 else v for at, v in enumerate(loss)]
    yield one("scale-falls-between-losses", {"loss": rare, "loss_scale": scale([*range(106, 118)])}, collapse(107))
    yield one("scale-printed-once", {"loss": loss, "loss_scale": [None] * 60 + [65536.0]}, HEALTHY)
    once = {"loss": spoilt(loss, lambda at: at == 104), "loss_scale": scale([*range(100, 118)])}
    yield one("scale-falls-and-a-stumble", once, collapse(101))


def _counters() -> Iterator[Made]:
    """Updates that were skipped, counted for each record or since the start."""
    loss = falling()
    for share in (0.04, 0.06, 0.3):
        rng = random.Random(3)
        hits = [float(at >= 60 and rng.random() < 2 * share) for at in range(STEPS)]
        yield one(f"skipped-{share}", {"loss": loss, "skipped_steps": hits}, STUMBLE)
        totals = [sum(hits[: at + 1]) for at in range(STEPS)]
        yield one(f"skipped-in-all-{share}", {"loss": loss, "skipped_steps_total": totals}, STUMBLE)
    for count in (9, 10):
        hits = [float(100 <= at < 100 + count) for at in range(STEPS)]
        yield one(f"skipped-{count}-times", {"loss": loss, "skipped_steps": hits}, STUMBLE)
    for until in (107, 112, 114):
        hits = [float(until - 20 <= at < until) for at in range(STEPS)]
        yield one(f"skipped-until-{until}", {"loss": loss, "skipped_steps": hits}, STUMBLE)
    hits = [float(at >= 110) for at in range(STEPS)]
    yield one("skipped-10-of-1190", {"loss": loss, "skipped_steps": hits}, STUMBLE, 1, 10)
    for count in (8, 9):
        hits = [float(at == 50 or at >= STEPS - count) for at in range(STEPS)]
        yield one(f"skipped-in-the-second-record-and-{count}-times", {"loss": loss, "skipped_steps": hits}, STUMBLE)
    hits = [float(at in {55, 60} or at >= 100) for at in range(STEPS)]
    yield one("skipped-now-and-then-then-always", {"loss": loss, "skipped_steps": hits}, STUMBLE)
    yield one("skipped-in-the-warm-up", {"loss": loss, "skipped_steps": [float(at < 40) for at in range(STEPS)]}, HEALTHY)  # fmt: skip
    yield one("nan-steps-counted", {"loss": loss, "nan_steps": [float(at >= 90) for at in range(STEPS)]}, lost(91))
    for left in (2, 3, 30):
        gone = [v if at < STEPS - left else None for at, v in enumerate(loss)]
        cells = {"loss": gone, "loss_scale": [1024.0] * STEPS}
        yield one(f"loss-vanishes-for-{left}", cells, lost(STEPS - left + 1) if left > 2 else STUMBLE)
    never = {"loss": [None if at % 10 else v for at, v in enumerate(loss)], "skipped_steps": [0.0] * STEPS}
    yield one("loss-printed-rarely", never, HEALTHY)


def _scale_lines() -> Iterator[Made]:
    """DeepSpeed's own words for a loss scale that falls, or that can fall no further."""
    over = "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {0}, reducing to {1}"
    floor = "Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."
    for count in (9, 10, 25):
        for rest in (0, 20):
            body = log_of(falling(100 - count - rest))
            scale, storm = 65536.0, list[str]()
            for at in range(count):
                storm += [over.format(scale, max(1.0, scale / 2)), *log_of([2.0], 101 - count - rest + at)]
                scale = max(1.0, scale / 2)
            text = lines(body, storm, log_of(falling(rest, seed=3), 101 - rest) if rest else [])
            yield Made(f"edge-nan-overflows-{count}-then-{rest}", {"train.log": text}, STUMBLE)
    for count in (2, 3, 4):
        text = lines(log_of(falling(80)), [part for at in range(count) for part in (floor, *log_of([2.0], 81 + at))])
        yield Made(f"edge-nan-scale-at-minimum-{count}", {"train.log": text}, STUMBLE)


def _attempts() -> Iterator[Made]:
    """What a later attempt of the same run says of an earlier one that was lost."""
    gone = records({"loss": spoilt(falling(60), lambda at: at >= 40), "grad_norm": norms(count=60)})
    for after in (2, 3, 40):
        again = records({"loss": falling(after, seed=8), "grad_norm": norms(count=after)})
        label = HEALTHY if after > 3 else Label(outcome="failed|suspect|healthy|cannot_say", shape="nan|none")
        yield Made(f"edge-nan-then-{after}-anew", {"metrics.jsonl": gone + again}, label)
    zeros = records({"loss": [0.0] * 30, "grad_norm": norms(count=30)})
    yield Made("edge-nan-then-zeros-anew", {"metrics.jsonl": gone + zeros}, lost(41))
    ones = records({"loss": [1.0] * 30, "grad_norm": norms(count=30)})
    yield Made("edge-nan-then-ones-anew", {"metrics.jsonl": gone + ones}, STUMBLE)
    good = records({"loss": falling(60), "grad_norm": norms(count=60)})
    yield Made("edge-nan-after-a-good-attempt", {"metrics.jsonl": good + gone}, lost(41))
    on = records({"loss": spoilt(falling(20), lambda at: at >= 1)}, first=61)
    yield Made("edge-nan-soon-after-going-on", {"metrics.jsonl": good + on}, lost(62))
