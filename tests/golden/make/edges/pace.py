"""Step times on either side of what decides a slowdown: rises, ramps, pauses, stalls, clocks, ranks, coarse digits."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from make.base import Label, Made, Series, Table, decay

_STEPS = 300
#: A series of so many records is written as a table: it is smaller.
_LONG = 600
_HEALTHY = Label(outcome="healthy|cannot_say")
_NOTE = Label(outcome="healthy|suspect|cannot_say", shape="none|slowdown")


def times(
    level: Callable[[int], float] = lambda _: 0.5,
    sd: float = 0.01,
    count: int = _STEPS,
    keep: float = 0.0,
    seed: int = 1,
) -> Series:
    """Seconds of each step: a level by record times 1 + noise, each deviation holding `keep` of the one before."""
    rng, value, found = random.Random(seed), 0.0, []
    for at in range(count):
        value = keep * value + rng.gauss(0, sd * (1 - keep * keep) ** 0.5)
        found.append(round(level(at) * (1 + value), 5))
    return found


def slow(onset: int, within: int = 5) -> Label:
    """The label of a run that is slow from a step on."""
    return Label(outcome="suspect|failed", shape="slowdown", onset=onset, within=within)


def runs() -> Iterator[Made]:
    """Runs that log the seconds of each step, or another clock, beside a loss that falls."""
    for name, series, label in _levels():
        yield run(name, {"step_time": series}, label)
    for name, series, label in _pauses():
        yield run(name, {"step_time": series}, label)
    for name, columns, label in _clocks():
        yield run(name, columns, label)
    yield _evaluated(1.2)
    yield _evaluated(1.7)
    yield from _timestamps()
    yield from _ranks()


def run(name: str, columns: Mapping[str, Series], label: Label, every: int = 1) -> Made:
    """One run of JSON lines: a loss and the columns given."""
    count = max(map(len, columns.values()))
    loss = [round(value, 4) for value in decay(5, 2, count)]
    table = Table({"loss": loss, **columns} if count < 2 * _LONG else columns, every=every)
    files = {"metrics.jsonl": table.jsonl()} if count < _LONG else {"metrics.csv": table.csv()}
    return Made(f"edge-pace-{name}", files, label)


def _levels() -> Iterator[tuple[str, Series, Label]]:
    """A jump to a ratio, and all else."""
    for ratio in (1.04, 1.06, 1.09, 1.12, 1.25, 1.32, 1.45, 1.55, 2.2):
        label = slow(151) if ratio > 1.1 else _NOTE
        yield f"jump-{ratio}", times(lambda at, r=ratio: 0.5 * (r if at >= 150 else 1)), label
    yield from _places()
    yield from _noisy()
    yield from _shapes()


def _places() -> Iterator[tuple[str, Series, Label]]:
    """Where in a run the jump lies, and how long the run is."""
    for onset in (8, 19, 22, 52, 279, 283, 293):
        yield f"jump-at-{onset}", times(lambda at, o=onset: 0.5 * (1.6 if at >= o else 1)), slow(onset + 1) if 20 < onset < 280 else _NOTE  # fmt: skip
    for count in (10, 12, 13, 24, 41):
        yield f"jump-of-{count}", times(lambda at, c=count: 0.5 * (2.2 if at >= c // 2 else 1), count=count), slow(count // 2 + 1) if count > 20 else _NOTE  # fmt: skip


def _noisy() -> Iterator[tuple[str, Series, Label]]:
    """A jump, or none, in noise of one kind or another."""
    for noise in (0.001, 0.06, 0.2):
        yield f"jump-in-noise-{noise}", times(lambda at: 0.5 * (1.2 if at >= 150 else 1), sd=noise, seed=4), slow(151, 10) if noise < 0.1 else _NOTE  # fmt: skip
    for keep in (0.3, 0.7, 0.97):
        yield f"jump-in-noise-that-stays-{keep}", times(lambda at: 0.5 * (1.15 if at >= 150 else 1), sd=0.04, keep=keep, seed=6), _NOTE  # fmt: skip
        yield f"flat-in-noise-that-stays-{keep}", times(sd=0.05, keep=keep, seed=8), _HEALTHY


def _shapes() -> Iterator[tuple[str, Series, Label]]:
    """Stairs, slow stretches, ramps and warm-ups."""
    for first, second in ((1.3, 1.3), (1.3, 1.1), (1.3, 1.02), (1.8, 1.15), (1.8, 1.25)):
        yield f"two-jumps-{first}-{second}", times(lambda at, a=first, b=second: 0.5 * (a if at >= 100 else 1) * (b if at >= 200 else 1)), slow(101)  # fmt: skip
    for length in (18, 22, 60, 150):
        yield f"slow-for-{length}", times(lambda at, w=length: 0.5 * (1.5 if 100 <= at < 100 + w else 1)), _NOTE
    for ratio in (1.08, 1.2):
        yield f"slow-for-a-while-{ratio}", times(lambda at, r=ratio: 0.5 * (r if 100 <= at < 180 else 1)), _NOTE
    yield "back-and-slower", times(lambda at: 0.5 * (1.3 if 60 <= at < 110 or at >= 200 else 1)), slow(201)
    yield "faster-then-back", times(lambda at: 0.5 * (0.7 if 100 <= at < 180 else 1)), _HEALTHY
    for length in (5, 30, 120, 250):
        yield f"ramp-over-{length}", times(lambda at, w=length: 0.5 * (1 + 0.4 * min(1, max(0, (at - 40) / w)))), slow(41, 40)  # fmt: skip
    for rise in (0.07, 0.12, 0.5):
        yield (
            f"ramp-to-{rise}",
            times(lambda at, r=rise: 0.5 * (1 + r * at / 300)),
            _NOTE if rise < 0.1 else slow(1, 60),
        )
    for rise in (0.85, 1.05, 1.4):
        yield f"drift-to-{rise}", times(lambda at, r=rise: 0.5 * (1 + r) ** (at / 300), sd=0.03, seed=2), slow(1, 120)
    for last in (1.9, 2.1):
        yield f"schedule-of-stairs-{last}", times(lambda at, r=last: 0.5 * r ** (at // 75 / 3)), _HEALTHY
    yield "long-jump", [round(v, 2) for v in times(lambda at: 0.5 * (1.2 if at >= 1500 else 1), sd=0.02, count=1900)], slow(1501, 20)  # fmt: skip
    yield "very-long-jump", [round(v, 2) for v in times(lambda at: 0.5 * (1.2 if at >= 3000 else 1), sd=0.03, count=4200)], slow(3001, 40)  # fmt: skip
    yield "faster", times(lambda at: 0.5 * (0.8 if at >= 150 else 1)), _HEALTHY
    yield "cold-start", times(lambda at: 0.5 * (3 if at < 6 else 1.3 if at < 14 else 1)), _HEALTHY
    yield "cold-start-then-slow", times(lambda at: 0.5 * (3 if at < 6 else 1) * (1.25 if at >= 180 else 1)), slow(181)
    yield "long-cold-start", times(lambda at: 0.5 * (1.4 if at < 75 else 1)), _HEALTHY
    yield "warm-by-a-tenth", times(lambda at: 0.5 * (1.1 if at < 20 else 1)), _HEALTHY


def _pauses() -> Iterator[tuple[str, Series, Label]]:
    for every in (3, 7, 50, 90):
        yield f"pause-every-{every}", times(lambda at, e=every: 2.0 if at % e == e - 1 else 0.5), _NOTE
    for height in (1.2, 1.3, 6.0):
        yield f"pause-high-{height}", times(lambda at, h=height: 0.5 * (h if at % 25 == 24 else 1)), _NOTE
    missed = {74, 149, 224, 249, 274}
    yield "pause-missed-often", times(lambda at: 2.0 if at % 25 == 24 and at not in missed else 0.5), _NOTE
    yield "pause-missed-once", times(lambda at: 2.0 if at % 25 == 24 and at != 149 else 0.5), _NOTE
    yield "pause-two-periods", times(lambda at: 2.0 if at % 30 == 29 else 1.2 if at % 17 == 5 else 0.5), _NOTE
    yield "pause-and-jump", times(lambda at: (2.0 if at % 25 == 24 else 0.5) * (1.3 if at >= 150 else 1)), slow(151)
    rng = random.Random(12)
    for share in (0.02, 0.05, 0.1, 0.25):
        often = {at for at in range(150, _STEPS) if rng.random() < share}
        yield f"stalls-in-{share}", times(lambda at, some=often: 3.0 if at in some else 0.5), slow(151, 20) if share > 0.04 else _NOTE  # fmt: skip
    some = {at for at in range(_STEPS) if rng.random() < 0.06}
    yield "stalls-all-along", times(lambda at: 2.0 if at in some else 0.5), _NOTE
    more = {at for at in range(_STEPS) if rng.random() < (0.03 if at < 180 else 0.14)}
    yield "stalls-more-often", times(lambda at: 1.6 if at in more else 0.5), slow(181, 20)
    for begin, label in ((150, slow(155, 9)), (0, _NOTE)):
        yield f"pauses-every-8-from-{begin}", times(lambda at, b=begin: 3.0 if at >= b and at % 8 == 2 else 0.5), label
    for count in (8, 10):
        late = {200 + 9 * k for k in range(count)}
        yield f"stalls-{count}", times(lambda at, some=late: 4.0 if at in some else 0.5), _NOTE
    burst = {at + k for at in (60, 130, 190, 210, 230, 250, 270, 290) for k in range(3)}
    yield "stalls-in-bursts", times(lambda at: 2.0 if at in burst else 0.5), _NOTE
    for ratio in (1.1, 1.2, 1.8):
        long = [rng.random() < 0.35 for _ in range(_STEPS)]
        yield f"two-modes-{ratio}", times(lambda at, r=ratio, m=long: 0.5 * (r if m[at] else 1)), _HEALTHY
        yield f"two-modes-slower-{ratio}", times(lambda at, r=ratio, m=long: 0.5 * (r if m[at] else 1) * (1.2 if at >= 150 else 1)), slow(151, 20)  # fmt: skip
    for period in (2, 9):
        yield f"pattern-of-{period}", times(lambda at, p=period: 0.5 * (1.5 if at % p == 0 else 1)), _HEALTHY
        yield f"pattern-of-{period}-slower", times(lambda at, p=period: 0.5 * (1.5 if at % p == 0 else 1) * (1.2 if at >= 150 else 1)), slow(151, 20)  # fmt: skip


def _clocks() -> Iterator[tuple[str, Mapping[str, Series], Label]]:
    jump = times(lambda at: 0.5 * (1.2 if at >= 150 else 1))
    total, clock = 0.0, []
    for one in jump:
        total += one
        clock.append(round(total, 3))
    twice = times(lambda at: 0.5 * (2 if at >= 150 else 1))
    for name, more in (("doubles", 2.0), ("stays", 1.0)):
        work = [8192.0 * (more if at >= 150 else 1) for at in range(_STEPS)]
        yield f"twice-the-time-and-work-{name}", {"step_time": twice, "num_tokens_step": work}, _HEALTHY if more > 1 else slow(151)  # fmt: skip
    tokens = [8192.0 * (1.2 if at >= 150 else 1) for at in range(_STEPS)]
    far = times(lambda at: 0.5 * (1.7 if at >= 150 else 1))
    averages = [round(value / (at + 1), 5) for at, value in enumerate(clock)]
    calm = times()
    for digits in (1, 2, 3):
        yield f"printed-to-{digits}", {"step_time": [round(v, digits) for v in jump]}, slow(151, 10) if digits > 1 else _NOTE  # fmt: skip
    yield "printed-in-quarters", {"step_time": [round(4 * v) / 4 for v in times(lambda at: 6.0 * (1.2 if at >= 150 else 1))]}, slow(151, 10)  # fmt: skip
    yield "milliseconds", {"step_time_ms": [1000 * v for v in jump]}, slow(151)
    yield "milliseconds-as-seconds", {"step_time": [1000 * v for v in jump], "train_time_s": clock}, slow(151)
    yield (
        "two-coarse-clocks",
        {"step_time": [round(v / 2, 1) for v in far], "dt": [round(v / 3, 2) for v in far]},
        _NOTE,
    )
    totals = [sum(tokens[: at + 1]) for at in range(_STEPS)]
    yield "longer-steps-hold-more-tokens-in-all", {"step_time": jump, "num_tokens": totals}, _HEALTHY
    stamps = [1_767_225_600 + round(sum(jump[: at + 1]), 3) for at in range(_STEPS)]
    yield (
        "milliseconds-as-seconds-with-a-clock",
        {"step_time": [1000 * v for v in jump], "timestamp": stamps},
        slow(151),
    )
    yield "running-clock", {"train_time_s": clock}, slow(151)
    yield "average-since-start", {"avg_step_time": averages}, slow(151, 10)
    yield "average-under-a-plain-name", {"step_time": averages}, slow(151, 10)
    yield "average-of-a-calm-run", {"step_time": [round(sum(calm[: at + 1]) / (at + 1), 5) for at in range(len(calm))]}, _HEALTHY  # fmt: skip
    yield "tokens-per-second", {"tokens_per_sec": [round(8192 / v, 1) for v in jump]}, slow(151)
    yield "samples-per-second", {"samples_per_sec": [round(64 / v, 3) for v in jump]}, slow(151)
    yield "longer-steps-hold-more", {"step_time": jump, "tokens_per_sec": [round(t / v, 1) for t, v in zip(tokens, jump, strict=True)]}, _HEALTHY  # fmt: skip
    yield "longer-steps-hold-more-tokens", {"step_time": jump, "num_tokens_step": tokens}, _HEALTHY
    yield "much-longer-steps-hold-more", {"step_time": far, "tokens_per_sec": [round(8192 * (1.7 if at >= 150 else 1) / v, 1) for at, v in enumerate(far)]}, _HEALTHY  # fmt: skip
    yield "longer-steps-hold-some-more", {"step_time": far, "tokens_per_sec": [round(8192 * (1.25 if at >= 150 else 1) / v, 1) for at, v in enumerate(far)]}, slow(151)  # fmt: skip


def _evaluated(ratio: float) -> Made:
    """Every thirtieth record holds an evaluation, and takes longer for it."""
    jump = times(lambda at: 0.5 * (ratio if at >= 150 else 1))
    rows = [
        {"step": at + 1, "loss": round(5 - at / 100, 4), "step_time": took + (3.0 if at % 30 == 0 else 0)}
        | ({"eval_loss": round(4 - at / 200, 3)} if at % 30 == 0 else {})
        for at, took in enumerate(jump)
    ]
    return Made(
        f"edge-pace-evaluations-between-{ratio}",
        {"metrics.jsonl": "".join(json.dumps(r) + "\n" for r in rows)},
        slow(151),
    )


def _timestamps() -> Iterator[Made]:
    """Logs whose only clock are the times of their lines, to the second and to the millisecond."""
    for name, digits, level in (("seconds", 0, 5.0), ("milliseconds", 3, 0.5), ("coarse-seconds", 0, 0.7)):
        for ratio in (1.0, 1.3) if digits == 0 else (1.3,):
            now, lines = datetime(2026, 1, 1, 12, tzinfo=UTC), []
            for at, took in enumerate(times(lambda at, r=ratio, s=level: s * (r if at >= 100 else 1), count=200)):
                now += timedelta(seconds=took)
                stamp = now.strftime("%Y-%m-%d %H:%M:%S") + (f",{now.microsecond // 1000:03d}" if digits else "")
                lines.append(f"{stamp} INFO step {at + 1} loss {5 - at / 100:.4f}\n")
            label = slow(101) if ratio > 1 and name != "coarse-seconds" else _NOTE
            yield Made(f"edge-pace-stamps-{name}-{ratio}", {"train.log": "".join(lines)}, label)


def _ranks() -> Iterator[Made]:
    """Jobs of several ranks, of which one computes longer, or waits less, from the start or from some step on."""
    for ranks in (2, 3):
        yield _fleet(f"straggler-of-{ranks}", ranks, lambda rank, _: 1.4 if rank == 1 else 1.0, ranks > 2)
    for ratio in (1.05, 1.12):
        yield _fleet(f"straggler-by-{ratio}", 4, lambda rank, _, r=ratio: r if rank == 2 else 1.0, ratio > 1.1)
    for onset in (20, 50, 70):
        yield _fleet(f"straggler-from-{onset}", 4, lambda rank, at, o=onset: 1.5 if rank == 3 and at >= o else 1.0, onset < 90)  # fmt: skip
    yield _fleet("straggler-now-and-then", 4, lambda rank, at: 1.5 if rank == 3 and at % 40 < 20 else 1.0, False)
    yield _fleet("straggler-few-steps", 4, lambda rank, _: 1.5 if rank == 3 else 1.0, True, count=19)
    yield _fleet("straggler-of-a-mixed-fleet", 4, lambda rank, _: 1 + 0.1 * rank, False)
    yield _fleet("straggler-waits-less", 4, lambda rank, _: 0.3 if rank == 0 else 1.0, True, name="allreduce_time")


def _fleet(
    word: str,
    ranks: int,
    level: Callable[[int, int], float],
    stands_out: bool,
    *,
    count: int = 100,
    name: str = "forward_time",
) -> Made:
    files: dict[str, str] = {}
    whole = times(count=count, seed=40)
    for rank in range(ranks):
        own = times(lambda at, r=rank: 0.2 * level(r, at), sd=0.02, count=count, seed=50 + rank)
        rows = [
            {"step": at + 1, "rank": rank, "loss": round(4 - at / count, 4), name: value, "step_time": whole[at]}
            for at, value in enumerate(own)
        ]
        files[f"rank_{rank}/metrics.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows)
    label = Label(outcome="suspect|failed", shape="slowdown") if stands_out else _NOTE
    return Made(f"edge-pace-{word}", files, label)
