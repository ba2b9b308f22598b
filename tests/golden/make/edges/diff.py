"""Pairs of runs on either side of what decides a comparison of throughput: change, noise, length, modes, work."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from make.base import Label, Made, Pair, Series, Table
from make.edges.pace import slow, times

_HEALTHY = Label(outcome="healthy|cannot_say", shape="none")
#: A short rise at the very end may be a warning, or too short to judge.
_LATE = Label(outcome="suspect|healthy|cannot_say", shape="slowdown|none")
_SAME, _WORSE, _BETTER, _OPEN = "no_change", "regression", "improvement", "inconclusive"


def runs() -> Iterator[Made]:
    """Both runs of every pair, a base that several have once."""
    for name, base, cand, _ in _measured():
        if _base_of(base) == name:
            yield _made(f"{name}-base", base)
        yield _made(f"{name}-cand", cand)
    for seed in range(4):
        yield _made(f"several-{seed}", {"step_time": times(lambda _, s=seed: 0.5 * (1 + 0.01 * (s - 1.5)), seed=70 + seed, count=80)})  # fmt: skip
    for word, ratio in (("same", 1.0), ("slower", 1.04), ("much-slower", 1.1), ("faster", 0.95)):
        yield _made(f"several-{word}", {"step_time": times(lambda _, r=ratio: 0.5 * r, seed=80, count=80)})
    yield from _unlike()


def pairs() -> Iterator[Pair]:
    """Which two stand beside each other, and what is right to say."""
    for name, base, _, right in _measured():
        yield _pair(name, right, _base_of(base))
    for word, right in (("same", _SAME), ("slower", _WORSE), ("much-slower", _WORSE), ("faster", _BETTER)):
        for many in (2, 4):
            bases = tuple(f"edge-diff-several-{seed}" for seed in range(many))
            yield Pair(f"edge-diff-against-{many}-{word}", bases, f"edge-diff-several-{word}", f"{right}|{_OPEN}")
    for name in ("precision", "batch", "same-settings", "batch-of-evaluations"):
        yield _pair(f"unlike-{name}", _OPEN if name in {"precision", "batch"} else _WORSE, f"unlike-{name}")


def _pair(name: str, right: str, base: str) -> Pair:
    return Pair(f"edge-diff-{name}", (f"edge-diff-{base}-base",), f"edge-diff-{name}-cand", right)


def _base_of(base: Mapping[str, Series]) -> str:
    """The pair whose base stands beside a candidate: the first with such a base."""
    return next(name for name, own, _, _ in _measured() if own == base)


def _made(name: str, columns: Mapping[str, Series], *, settings: str = "", every: int = 1) -> Made:
    """One run as a table: every record has a loss."""
    every = 10 if name.startswith("interval") and name.endswith("cand") else every
    count = max(map(len, columns.values()))
    table = Table({"loss": [round(5 - 3 * at / count, 4) for at in range(count)], **columns}, every=every)
    files = {"metrics.csv": table.csv()} | ({"config.yaml": settings} if settings else {})
    late = name in {"since-later-cand", "since-short-cand"}
    label = slow(151, 20) if name == "since-cand" else _LATE if late else _HEALTHY
    return Made(f"edge-diff-{name}", files, label)


def _measured() -> Iterator[tuple[str, Mapping[str, Series], Mapping[str, Series], str]]:
    """Name, columns of both runs, and the right verdict."""

    def two(ratio: float, *, sd: float = 0.01, count: int = 200, keep: float = 0.0, seed: int = 1) -> tuple[Mapping[str, Series], Mapping[str, Series]]:  # fmt: skip
        base = times(sd=sd, count=count, keep=keep, seed=seed)
        return {"step_time": base}, {"step_time": times(lambda _: 0.5 * ratio, sd, count, keep, seed + 1)}

    for ratio in (0.9, 0.97, 0.985, 0.995, 1.0, 1.009, 1.012, 1.018, 1.025, 1.05):
        right = (
            _SAME if abs(ratio - 1) < 0.01 else _OPEN if abs(ratio - 1) < 0.022 else _WORSE if ratio > 1 else _BETTER
        )
        yield f"ratio-{ratio}", *two(ratio), right
    for sd in (0.0005, 0.1, 0.3):
        yield f"noise-{sd}", *two(1.05, sd=sd), _WORSE if sd < 0.1 else f"{_OPEN}|{_WORSE}"
        yield f"noise-{sd}-same", *two(1.0, sd=sd), _SAME if sd < 0.1 else _OPEN
    for count in (8, 9, 12, 30, 45):
        yield f"length-{count}", *two(1.06, sd=0.02, count=count, seed=3), _OPEN if count < 9 else f"{_WORSE}|{_OPEN}"
    for keep in (0.2, 0.5, 0.8, 0.99):
        yield f"noise-stays-{keep}", *two(1.06, sd=0.04, keep=keep, seed=5), f"{_WORSE}|{_OPEN}"
        yield f"noise-stays-{keep}-same", *two(1.0, sd=0.04, keep=keep, seed=5), f"{_SAME}|{_OPEN}"
    yield from _shaped()
    yield from _other_clocks()


def _shaped() -> Iterator[tuple[str, Mapping[str, Series], Mapping[str, Series], str]]:
    """Series that hold more than a level: the same work step by step, modes, pauses, a change in mid-run."""
    rng = random.Random(21)
    work = [rng.choice((1.0, 1.06, 1.12, 1.3)) for _ in range(200)]
    for share in (1.0, 0.3):
        other = [one if rng.random() < share else rng.choice((1.0, 1.06, 1.12, 1.3)) for one in work]
        for ratio in (1.0, 1.03):
            base = times(lambda at: 0.5 * work[at], count=200, seed=22)
            cand = times(lambda at, o=other, r=ratio: 0.5 * r * o[at], count=200, seed=23)
            right = _SAME if ratio == 1 else _WORSE
            yield f"paired-{share}-{ratio}", {"step_time": base}, {"step_time": cand}, f"{right}|{_OPEN}"
    small = [1 + rng.gauss(0, 0.02) for _ in range(200)]
    for count in (19, 21, 40):
        base = times(lambda at: 0.5 * small[at], 0.01, count, seed=24)
        cand = times(lambda at: 0.515 * small[at], 0.01, count, seed=25)
        yield f"paired-{count}-steps", {"step_time": base}, {"step_time": cand}, f"{_WORSE}|{_OPEN}"
    for share, gap in ((0.3, 1.8), (0.05, 1.8), (0.3, 1.12)):
        modes = [[rng.random() < share for _ in range(200)] for _ in range(2)]
        for ratio in (1.0, 1.05):
            base = times(lambda at, m=modes[0], g=gap: 0.5 * (g if m[at] else 1), count=200, seed=26)
            cand = times(lambda at, m=modes[1], g=gap, r=ratio: 0.5 * r * (g if m[at] else 1), count=200, seed=27)
            right = _SAME if ratio == 1 else _WORSE
            yield f"modes-{share}-{gap}-{ratio}", {"step_time": base}, {"step_time": cand}, f"{right}|{_OPEN}"
    more = [[rng.random() < share for _ in range(200)] for share in (0.2, 0.55)]
    yield (
        "modes-more-slow",
        {"step_time": times(lambda at: 0.5 * (1.8 if more[0][at] else 1), count=200, seed=28)},
        {"step_time": times(lambda at: 0.5 * (1.8 if more[1][at] else 1), count=200, seed=29)},
        f"{_WORSE}|{_OPEN}",
    )
    for every in (25,):
        base = times(lambda at, e=every: 3.0 if at % e == e - 1 else 0.5, count=200, seed=30)
        cand = times(lambda at, e=every: 3.0 if at % e == e - 1 else 0.52, count=200, seed=31)
        yield f"pauses-every-{every}", {"step_time": base}, {"step_time": cand}, _WORSE
    yield "since", {"step_time": times(seed=32)}, {"step_time": times(lambda at: 0.5 * (1.15 if at >= 150 else 1), seed=33)}, _WORSE  # fmt: skip
    yield "since-later", {"step_time": times(seed=32)}, {"step_time": times(lambda at: 0.5 * (1.3 if at >= 272 else 1), seed=33)}, _WORSE  # fmt: skip
    yield "since-short", {"step_time": times(seed=32)}, {"step_time": times(lambda at: 0.5 * (1.3 if at >= 278 else 1), seed=33)}, f"{_WORSE}|{_OPEN}"  # fmt: skip
    yield "warm-up", {"step_time": times(lambda at: 0.5 * (4 if at < 8 else 1), seed=34)}, {"step_time": times(lambda at: 0.5 * (4 if at < 25 else 1), seed=35)}, _SAME  # fmt: skip
    outliers = {at: 1 + rng.random() for at in rng.sample(range(200), 8)}
    yield "outliers", {"step_time": times(count=200, seed=36)}, {"step_time": times(lambda at: 0.5 * outliers.get(at, 1.0), count=200, seed=37)}, _SAME  # fmt: skip


def _other_clocks() -> Iterator[tuple[str, Mapping[str, Series], Mapping[str, Series], str]]:
    """Rates, running clocks, coarse digits, and runs that log at different intervals."""

    def rate(values: Series, work: float) -> Series:
        return [round(work / one, 2) for one in values]

    fast, slower = times(count=200, seed=41), times(lambda _: 0.53, count=200, seed=42)
    yield "tokens", {"tokens_per_sec": rate(fast, 8192)}, {"tokens_per_sec": rate(slower, 8192)}, _WORSE
    yield "samples", {"samples_per_sec": rate(fast, 64)}, {"samples_per_sec": rate(slower, 64)}, _WORSE
    yield "other-units", {"tokens_per_sec": rate(fast, 8192)}, {"samples_per_sec": rate(slower, 64)}, _OPEN
    yield "no-clock", {"lr": [0.001] * 60}, {"step_time": slower[:60]}, _OPEN
    for digits in (1, 2):
        yield f"digits-{digits}", {"step_time": [round(v, digits) for v in fast]}, {"step_time": [round(v, digits) for v in slower]}, _OPEN if digits == 1 else _WORSE  # fmt: skip
    yield "work", {"step_time": fast, "num_tokens_step": [8192.0] * 200}, {"step_time": slower, "num_tokens_step": [8300.0] * 200}, _OPEN  # fmt: skip
    yield "work-same", {"step_time": fast, "num_tokens_step": [8192.0] * 200}, {"step_time": slower, "num_tokens_step": [8250.0] * 200}, _WORSE  # fmt: skip
    near, further = [round(v, 2) for v in fast], [round(v, 2) for v in slower]
    both = ({"step_time": [round(v, 1) for v in one], "dt": [round(v / 5, 2) for v in one]} for one in (near, further))
    yield "digits-of-two-clocks", *both, f"{_WORSE}|{_OPEN}"
    far = [round(v + 0.07 * (at % 50 == 7), 2) for at, v in enumerate(slower)]
    yield "digits-with-outliers", {"step_time": near}, {"step_time": far}, _WORSE
    for first, second in (("tokens_per_sec_per_device", "samples_per_sec"), ("samples_per_sec", "step_time")):  # fmt: skip
        two = ({first: rate(one, 64), second: one if second == "step_time" else rate(one, 8)} for one in (fast, [v * 1.03 for v in slower]))  # fmt: skip
        yield f"{first.replace('_', '-')}-before-{second.replace('_', '-')}", *two, _WORSE
    few = [3.0 if at in {4, 8} else 0.53 for at in range(11)]
    for count in (10, 11):
        yield f"few-and-pauses-{count}", {"step_time": fast}, {"step_time": few[:count]}, f"{_OPEN}|{_WORSE}"
    for ratio in (1.0, 1.05):
        paused = times(lambda at: 3.0 if at % 50 == 49 else 0.5, count=400, seed=45)
        noted = times(lambda _, r=ratio: 0.5 * r, 0.01, 400, seed=46)
        means = [round(sum(noted[at : at + 10]) / 10, 5) for at in range(0, 400, 10)]
        yield f"interval-with-pauses-{ratio}", {"step_time": paused}, {"step_time": means}, f"{_SAME if ratio == 1 else _WORSE}|{_OPEN}"  # fmt: skip
    for ratio in (1.0, 1.05):
        single = times(count=400, seed=43)
        noted = times(lambda _, r=ratio: 0.5 * r, 0.01, 400, seed=44)
        means = [round(sum(noted[at : at + 10]) / 10, 5) for at in range(0, 400, 10)]
        yield f"interval-{ratio}", {"step_time": single}, {"step_time": means}, _SAME if ratio == 1 else _WORSE


def _unlike() -> Iterator[Made]:
    """Runs of which one was given other settings."""
    settings = "model: tiny\ntraining:\n  precision: {0}\n  batch_size: {1}\nevaluation:\n  batch_size: {2}\n"
    for name, first, second in (
        ("precision", ("bf16", 8, 32), ("fp32", 8, 32)),
        ("batch", ("bf16", 8, 32), ("bf16", 16, 32)),
        ("same-settings", ("bf16", 8, 32), ("torch.bfloat16", 8.0, 32)),
        ("batch-of-evaluations", ("bf16", 8, 32), ("bf16", 8, 64)),
    ):
        yield _made(f"unlike-{name}-base", {"step_time": times(count=100, seed=61)}, settings=settings.format(*first))
        cand = times(lambda _: 0.55, count=100, seed=62)
        yield _made(f"unlike-{name}-cand", {"step_time": cand}, settings=settings.format(*second))
