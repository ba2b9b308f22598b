"""Runs of reinforcement learning on language models: rewards, entropy, KL, samplers, lengths, as TRL and verl log them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence

from make._logs import done, jsons, start, steady
from make.base import NAN, Label, Made, Noise, Table, line, lines

_COUNT = 120


def runs() -> Iterator[Made]:
    """One run for each way in which the reward is not learned, then runs in which it is."""
    yield from _rewards()
    yield from _episodes()
    yield from _policies()
    yield from _lengths()
    yield from _numbers()
    yield from _fine()


def _usual(count: int = _COUNT) -> dict[str, Sequence[float]]:
    """What a healthy GRPO run logs."""
    rewards = Noise(0.05, 2).on([0.2 + 0.5 * at / count for at in range(count)])
    return {
        "loss": Noise(0.5, 3).on([0.01] * count),
        "grad_norm": steady(0.4, count, 0.1, 4),
        "learning_rate": line(1e-6, -0.9e-6 / count, count),
        "reward": rewards,
        "reward_std": steady(0.3, count, 0.1, 5),
        "rewards/accuracy/mean": rewards,
        "rewards/accuracy/std": steady(0.3, count, 0.1, 6),
        "frac_reward_zero_std": steady(0.2, count, 0.2, 7),
        "completions/mean_length": steady(240, count, 0.05, 8),
        "completions/max_length": steady(480, count, 0.03, 9),
        "completions/clipped_ratio": steady(0.05, count, 0.2, 10),
        "entropy": Noise(0.05, 11).on(line(0.55, -0.2 / count, count)),
        "kl": Noise(0.1, 12).on(line(0.001, 0.0006, count)),
    }


def _run(
    name: str,
    label: Label,
    *,
    every: int = 1,
    config: Mapping[str, object] | None = None,
    ended: bool = True,
    **changed: Sequence[float],
) -> Made:
    """The console of a trainer that prints a dictionary a record, with some of its numbers changed."""
    columns = _usual() | changed
    rows = [{key: round(values[at], 7) for key, values in columns.items()} for at in range(_COUNT if ended else 70)]
    state = [row | {"step": every * (at + 1)} for at, row in enumerate(rows)]
    files = {
        "console.log": lines(
            start("tiny-rl"), *(_printed(row, at) for at, row in enumerate(rows, 1)), [done(_COUNT)] if ended else []
        ),
        "metrics.jsonl": lines(json.dumps(row) for row in state),
        "config.json": jsons(
            {"num_generations": 8, "max_completion_length": 512, "max_steps": _COUNT * every, "logging_steps": every}
            | dict(config or {})
        ),
    }
    del files["console.log" if every > 1 else "metrics.jsonl"]
    if every > 1:
        files["train.log"] = lines(start("tiny-rl"), [done(_COUNT * every)] if ended else [])
    return Made(name, files, label)


def _printed(row: Mapping[str, float], step: int) -> list[str]:
    bar = f"{100 * step // _COUNT:3d}%|{'█' * (10 * step // _COUNT):10s}| {step}/{_COUNT} [{step * 4 // 60:02d}:{step * 4 % 60:02d}<08:12,  4.10s/it]"
    return [bar, str(dict(row) | {"epoch": round(step / 400, 4)})]


def _wrong(*causes: str, onset: int | None = None, within: int = 10) -> Label:
    return Label("suspect", "learning", causes, onset=onset, within=within)


def _episodes() -> Iterator[Made]:
    lost = Table({"episode_reward_mean": [-21.0] * 12}, 76000, 76000).csv()
    ended = lines(start("tiny-rl"), done(12 * 76000))
    label = _wrong("episode_reward_constant", onset=76000, within=76000)
    yield Made("rl-episodes-are-lost-alike", {"progress.csv": lost, "train.log": ended}, label)


def _rewards() -> Iterator[Made]:
    none = [0.0] * _COUNT
    zero = {
        "reward": none,
        "reward_std": none,
        "rewards/accuracy/mean": none,
        "rewards/accuracy/std": none,
        "frac_reward_zero_std": [1.0] * _COUNT,
    }
    yield _run("rl-reward-always-zero", _wrong("reward_zero", onset=1), **zero)
    same = {
        "reward_std": none,
        "rewards/accuracy/std": none,
        "frac_reward_zero_std": [1.0] * _COUNT,
        "reward": steady(0.25, _COUNT, 0.02),
        "rewards/accuracy/mean": steady(0.25, _COUNT, 0.02),
    }
    yield _run("rl-no-advantage", _wrong("no_advantage", onset=1), **same)
    falls = Noise(0.03, 2).on([*line(0.3, 0.01, 40), *line(0.7, -0.0075, 80)])
    yield _run(
        "rl-reward-falls", _wrong("reward_falls", onset=41, within=30), reward=falls, **{"rewards/accuracy/mean": falls}
    )


def _policies() -> Iterator[Made]:
    flat = steady(0.31, _COUNT, 0.06)
    kept = {"reward": flat, "rewards/accuracy/mean": flat}
    collapsed = [*steady(0.5, 60, 0.05), 0.3, 0.1, 0.03, *steady(0.004, 57, 0.1)]
    yield _run("rl-entropy-collapses", _wrong("entropy_collapse", onset=62), entropy=collapsed, **kept)
    away = Noise(0.08, 3).on([*[0.05] * 70, *[0.05 * 1.25**at for at in range(20)], *[6.0] * 30])
    yield _run("rl-kl-runs-away", _wrong("kl_divergence", onset=88), kl=away, **kept)
    apart = {
        "sampling/sampling_logp_difference/mean": [*steady(0.04, 60, 0.1), *steady(1.9, 60, 0.1)],
        "sampling/importance_sampling_ratio/min": [*steady(0.5, 60, 0.1), *steady(0.002, 60, 0.1)],
    }
    yield _run("rl-sampler-runs-other-weights", _wrong("sampler_divergence", onset=61), **apart, **kept)


def _lengths() -> Iterator[Made]:
    grows = [min(500.0, one) for one in Noise(0.01, 2).on(line(120, 3.6, _COUNT))]
    longest = [512.0] * _COUNT
    clipped = [min(0.95, max(0.02, (one - 250) / 260)) for one in grows]
    yield _run("rl-answers-grow-to-the-maximum", _wrong("length_growth", "truncated", onset=1, within=120),
               **{"completions/mean_length": grows, "completions/max_length": longest, "completions/clipped_ratio": clipped,
                  "completions/mean_terminated_length": [0.6 * one for one in grows]})  # fmt: skip
    cut = {
        "completions/clipped_ratio": steady(0.9, _COUNT, 0.03),
        "completions/mean_length": steady(500, _COUNT, 0.01),
        "completions/max_length": longest,
    }
    yield _run("rl-most-answers-cut", _wrong(onset=1, within=20), **cut)


def _numbers() -> Iterator[Made]:
    bad = [0.0] * 70 + [0.4 + 0.1 * (at % 3) for at in range(50)]
    yield _run(
        "rl-losses-not-finite", Label("failed", "nan", ("hidden_nan", "filtered_by_writer"), onset=71, within=2), frac_non_finite_loss=bad, loss=[*[0.012] * 70, *[0.0] * 50],
        grad_norm=[*steady(0.4, 70), *[NAN] * 50],
    )  # fmt: skip
    share = Label("failed", "nan", ("hidden_nan", "filtered_by_writer"), onset=71, within=2)
    yield _run("rl-share-of-losses-not-finite", share, frac_non_finite_loss=bad)
    now_and_then = [math.nan if at in {40, 77} else one for at, one in enumerate(steady(0.4, _COUNT, 0.1))]
    yield _run("rl-norm-not-finite-twice", Label("suspect", "nan", onset=41, within=1), grad_norm=now_and_then)
    wild = [*steady(0.5, 50, 0.1), *steady(17.0, 70, 0.2)]
    yield _run("rl-gradient-norm-high", _wrong("grad_norm", onset=51), grad_norm=wild)


def _fine() -> Iterator[Made]:
    yield _run("healthy-rl", Label("healthy"))
    yield _run("healthy-rl-logged-every-tenth-step", Label("healthy"), every=10)
    yield _run("cannot-say-rl-cut-short", Label("cannot_say"), ended=False)
