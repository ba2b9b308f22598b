"""Runs near the numbers that decide, on either side of them: paces, NaN that come and go, memory, losses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from make._logs import clock, cosine, done, falling, run_log, start, steady
from make.base import NAN, Label, Made, Noise, Pair, Series, Table, line, lines
from make.rules.slowdown import timed


def runs() -> Iterator[Made]:
    """Small differences of the kinds that other makers make large, and other clocks and units for the same."""
    yield from _paces()
    yield from _clocks()
    yield from _stumbles()
    yield from _scales()
    yield from _memory()
    yield from _losses()


def pairs() -> Iterator[Pair]:
    """Runs that differ by a little, and in other things than speed."""
    yield Pair(
        "seven-percent", ("edge-slower-7-percent",), "edge-slower-12-percent", "no_change|inconclusive|regression"
    )
    yield Pair("memory-grew", ("edge-memory-flat",), "edge-memory-slope-3-percent", "no_change|inconclusive|regression")


def _suspect(shape: str, onset: int | None = None, within: int = 3) -> Label:
    return Label("suspect", shape, onset=onset, within=within)


def _either(shape: str) -> Label:
    return Label("healthy|suspect", f"none|{shape}")


def _table(columns: dict[str, Sequence[float]], every: int = 1) -> dict[str, str]:
    count = max(map(len, columns.values()))
    return {"metrics.csv": Table(columns, every, every).csv(), "train.log": lines(start(), done(count * every))}


def _two(before: float, after: float, first: int, second: int, share: float = 0.01) -> Series:
    return [*steady(before, first, share), *steady(after, second, share, 2)]


def _paces() -> Iterator[Made]:
    for percent, label in ((7, _either("slowdown")), (12, _suspect("slowdown", 101, 5)), (27, _suspect("slowdown", 101)), (34, _suspect("slowdown", 101)), (60, _suspect("slowdown", 101))):  # fmt: skip
        times = _two(0.5, 0.5 * (1 + percent / 100), 100, 100)
        yield Made(f"edge-slower-{percent}-percent", _table({"loss": falling(200), "step_time": times}), label)
    for count, ratio in ((5, 1.7), (5, 2.4), (12, 1.7)):
        times = _two(0.5, 0.5 * ratio, 90, count)
        yield Made(
            f"edge-slow-for-the-last-{count}-by-{ratio}",
            _table({"loss": falling(90 + count), "step_time": times}),
            _suspect("slowdown", 91),
        )
    yield Made(
        "edge-faster-at-the-end", _table({"loss": falling(160), "step_time": _two(0.9, 0.5, 80, 80)}), Label("healthy")
    )
    stairs = Noise(0.01, 3).on([0.4 * 1.5 ** (at // 50) for at in range(200)])
    yield Made("edge-slower-in-stairs", _table({"loss": falling(200), "step_time": stairs}), _either("slowdown"))
    for count, ratio in ((15, 1.6), (30, 1.15), (30, 1.5)):
        times = [*steady(0.5, 90, 0.01), *steady(0.5 * ratio, count, 0.01, 2), *steady(0.5, 90, 0.01, 3)]
        label = _suspect("slowdown", 91) if ratio * count > 40 else _either("slowdown")
        yield Made(
            f"edge-slow-for-{count}-by-{ratio}", _table({"loss": falling(180 + count), "step_time": times}), label
        )
    yield Made(
        "edge-ramp-of-a-fifth",
        _table({"loss": falling(200), "step_time": Noise(0.01, 3).on(line(0.5, 0.0005, 200))}),
        _suspect("slowdown"),
    )
    for excess in (4, 9, 16, 24):
        files = {
            f"metrics/rank_{rank}.csv": Table(
                {
                    "loss": falling(60),
                    "forward_time": steady(0.2 * (1 + excess / 100 * (rank == 1)), 60, 0.005, rank),
                    "step_time": steady(0.3, 60, 0.005),
                }
            ).csv()
            for rank in range(3)
        }
        label = Label("suspect", "slowdown", culprits=(1,)) if excess > 5 else Label("healthy|suspect", "none|slowdown")
        yield Made(
            f"edge-straggler-by-{excess}-percent", {**files, "train.log": lines(start(world=3), done(60))}, label
        )


def _clocks() -> Iterator[Made]:
    halved = [32768 / one for one in _two(0.5, 0.8, 90, 90)]
    yield Made(
        "edge-tokens-per-second-fall",
        _table({"loss": falling(180), "tokens_per_sec": halved}),
        _suspect("slowdown", 91),
    )
    ms = [1000 * one for one in _two(0.21, 0.4, 90, 90)]
    yield Made("edge-step-time-in-ms", _table({"loss": falling(180), "step_time_ms": ms}), _suspect("slowdown", 91))
    times = _two(12, 21, 80, 80, 0.02)
    at = [30 + sum(times[: n + 1]) for n in range(160)]
    log = run_log({"loss": falling(160), "clock": [clock(one) for one in at]})
    yield Made(
        "edge-slow-by-the-clock-alone",
        {"train.log": lines(start(), log, done(160, at[-1] + 9))},
        _suspect("slowdown", 81),
    )
    own = _two(0.5, 0.95, 90, 90)
    total = [sum(own[: n + 1]) for n in range(180)]
    yield Made("edge-running-clock", _table({"loss": falling(180), "train_time_s": total}), _suspect("slowdown", 91))
    mean = [one / (n + 1) for n, one in enumerate(total)]
    yield Made(
        "edge-average-since-the-start", _table({"loss": falling(180), "avg_step_time": mean}), _suspect("slowdown", 91)
    )
    yield Made(
        "edge-slow-then-saves", {"train.log": timed(_two(0.5, 0.85, 80, 80), saves=20)}, _suspect("slowdown", 81)
    )


def _stumbles() -> Iterator[Made]:
    for count, label in (
        (3, _either("nan")),
        (12, Label("suspect", "nan", onset=31)),
        (32, Label("suspect|failed", "nan", onset=31)),
    ):
        loss = falling(120)
        loss[30 : 30 + count] = [NAN] * count
        yield Made(f"edge-nan-for-{count}-of-120", _table({"loss": loss, "lr": cosine(120)}), label)
    for times, back in ((2.2, 3), (4.0, 3), (4.0, 14)):
        norms = [*steady(1.0, 80, 0.04), *[NAN] * 6]
        norms[80 - back] = times
        yield Made(
            f"edge-nan-{back}-after-norm-of-{times}",
            _table({"loss": [*falling(80), *[NAN] * 6], "grad_norm": norms}),
            Label("failed", "nan", onset=81),
        )
    tiny = [max(0.0, round(one, 3)) for one in falling(120, 1.2, 0.0, 9)]
    yield Made(
        "edge-loss-really-is-zero", _table({"loss": tiny, "grad_norm": falling(120, 2, 1e-4, 9)}), Label("healthy")
    )
    sides = {"loss": falling(120), "aux_loss": [NAN] * 120, "miou": [NAN] * 120}
    yield Made("edge-other-columns-are-nan", _table(sides), Label("healthy|suspect", "none"))
    norms = [math.inf if at in {12, 40} else one for at, one in enumerate(steady(1.0, 120))]
    yield Made("edge-norm-infinite-twice", _table({"loss": falling(120), "grad_norm": norms}), Label("healthy"))
    middle = Table({"loss": [2.31, *[NAN] * 20], "lr": [1e-4] * 21}, 5010, 10)
    yield Made("edge-log-begins-in-the-middle", {"metrics.csv": middle.csv()}, Label("failed", "nan", onset=5020))
    two = {
        f"logs/rank{r}.log": lines(
            run_log({"loss": [NAN] * 30 if r else falling(30)}, f"rank={r} step {{step}} loss {{loss:.4f}}")
        )
        for r in (0, 1)
    }
    yield Made("edge-one-rank-is-nan-from-the-start", two, Label("failed", "nan", onset=1, culprits=(1,)))


def _scales() -> Iterator[Made]:
    fall = {"fell-and-came-back": [*[65536.0] * 60, 16384.0, 8192.0, *[16384.0] * 30, *[32768.0] * 28],
            "fell-to-one-at-last": [*[65536.0] * 110, *[2.0**n for n in range(13, 3, -1)]],
            "low-all-along": [2.0] * 120,
            "falls-in-calibration": [*[65536.0 / 2**n for n in range(12)], *[16.0] * 108]}  # fmt: skip
    labels = {"fell-to-one-at-last": Label("failed|suspect", "nan", onset=111, within=2)}
    for name, scale in fall.items():
        yield Made(
            f"edge-loss-scale-{name}",
            _table({"loss": falling(120), "loss_scale": scale}),
            labels.get(name, Label("healthy")),
        )


def _memory() -> Iterator[Made]:
    def noisy(values: Sequence[float]) -> Series:
        return [one + off for one, off in zip(values, Noise(1, 4).on([0.01] * len(values)), strict=True)]

    forms: dict[str, tuple[Sequence[float], Label]] = {
        "flat": ([20.0] * 60, Label("healthy")),
        "slope-1-percent": (line(20, 0.003, 60), Label("healthy")),
        "slope-3-percent": (line(20, 0.011, 60), _either("oom")),
        "slope-in-15-records": (line(20, 0.2, 15), _suspect("oom")),
        "sawtooth": ([20 + 0.4 * (at % 12) for at in range(96)], Label("healthy")),
        "plateau": ([20 + 4 * (1 - 0.5 ** (at / 5)) for at in range(90)], Label("healthy")),
        "spikes": ([31.0 if at in {20, 44, 71} else 20.0 for at in range(90)], Label("healthy")),
        "one-level-shift": ([20.0 if at < 40 else 26.0 for at in range(90)], Label("healthy")),
        "two-stairs": ([20.0 + 2 * (at // 30) for at in range(90)], _suspect("oom")),
        "stairs-that-end": ([20.0 + min(6.0, 2.0 * (at // 12)) for at in range(120)], _either("oom")),
        "falls": (line(24, -0.03, 90), Label("healthy")),
    }
    for name, (values, label) in forms.items():
        yield Made(
            f"edge-memory-{name}", _table({"loss": falling(len(values)), "allocated_gb": noisy(values)}, 10), label
        )
    peak = [max(noisy([20 + 0.05 * n for n in range(at + 1)])) for at in range(80)]
    yield Made("edge-memory-peak-rises", _table({"loss": falling(80), "peak_gb": peak}, 10), _suspect("oom"))
    coarse = [round(one, 1) for one in line(20, 0.012, 60)]
    yield Made(
        "edge-memory-printed-coarsely", _table({"loss": falling(60), "allocated_gb": coarse}, 10), _either("oom")
    )
    rss = noisy(line(9, 0.03, 60))
    yield Made("edge-host-memory-up-a-fifth", _table({"loss": falling(60), "rss_gb": rss}, 10), _either("oom"))


def _losses() -> Iterator[Made]:
    for percent, label in (
        (8, Label("healthy|suspect", "none|learning")),
        (15, _either("learning")),
        (30, _suspect("learning")),
        (90, _suspect("learning")),
    ):
        rise = [
            *falling(80, 6, 2.0, 12, share=0.008),
            *Noise(0.008, 5).on(line(2.0, 0.02 * percent / 40, 40)),
            *steady(2.0 * (1 + percent / 100), 40, 0.008),
        ]
        yield Made(f"edge-loss-up-by-{percent}-percent", _table({"loss": rise}, 10), label)
    harder = [*falling(80, 6, 2.0, 12), *steady(2.7, 60, 0.02)]
    evals = [6 - 0.025 * at for at in range(140)]
    yield Made(
        "edge-loss-up-but-evaluation-better",
        _table({"loss": harder, "eval_loss": evals}, 10),
        Label("healthy|suspect", "none|learning"),
    )
    late = [*falling(118, 6, 2.0, 15), 5.1, 6.3]
    yield Made("edge-last-two-records-double", _table({"loss": late}, 10), _suspect("learning", 1190, 10))
    for rise in (0.06, 0.2, 0.34):
        held = [2.0, 1.6, 1.4, 1.3, *[1.3 * (1 + rise * (n + 1) / 4) for n in range(4)]]
        rows = (
            f"{10 * at + 10},{one},{held[at // 12] if at % 12 == 11 else ''}"
            for at, one in enumerate(falling(96, 2.5, 0.3, 15))
        )
        label = _suspect("learning") if rise > 0.1 else _either("learning")
        yield Made(
            f"edge-evaluation-loss-up-by-{rise}",
            {"metrics.csv": lines("step,loss,eval_loss", rows), "train.log": lines(start(), done(960))},
            label,
        )
