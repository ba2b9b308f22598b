"""How often the rules on reinforcement learning find what is there, and how often what is not, on seeded noise.

`FORENSICS_RATES=1000` measures over so many series of each kind; the default keeps the test short.
`FORENSICS_SEED` moves the seeds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from forensics.model import Finding, Severity
from forensics.registry import load
from forensics.store.run import Run, run_of

Floats = npt.NDArray[np.float64]
RULES = [r for r in load("rules").rules if r.id.startswith("RLX")]
COUNT = int(os.environ.get("FORENSICS_RATES", "30"))
SEED = int(os.environ.get("FORENSICS_SEED", "0"))
CANONICAL = {"actor/pg_loss": "loss", "policy_loss": "loss", "actor/grad_norm": "grad_norm"}
Series = dict[str, Floats]


def wander(chance: np.random.Generator, count: int, rho: float, *, heavy: bool = False) -> Floats:
    """Unit noise with a lag-one correlation of `rho`; `heavy` draws from a t distribution of three degrees."""
    raw = chance.standard_t(3, count) / np.sqrt(3) if heavy else chance.standard_normal(count)
    found, last = np.empty(count), float(chance.standard_normal())
    for i, value in enumerate(raw):
        last = rho * last + np.sqrt(1 - rho * rho) * value
        found[i] = last
    return found


def metrics_run(series: Mapping[str, Floats], canonical: Mapping[str, str]) -> Run:
    frames = [
        pl.DataFrame(
            {
                "source": "train.log",
                "attempt": 0,
                "seq": np.arange(len(values)),
                "line": np.arange(len(values)) + 1,
                "step": (np.arange(len(values)) + 1),
                "name": canonical.get(name, name),
                "raw_name": name,
                "value": np.asarray(values, dtype=np.float64),
            }
        )
        for name, values in series.items()
    ]
    return run_of("made", {"metrics": pl.concat(frames).sort("seq", maintain_order=True)})


def healthy_rl(seed: int) -> dict[str, Floats]:
    """A run that learns: what a trainer prints of it, under one of three trainers' names."""
    chance = np.random.default_rng(seed)
    count = int(chance.choice([40, 100, 300, 1000]))
    rho, heavy = float(chance.choice([0.0, 0.3, 0.6])), bool(chance.random() < 0.3)

    def noise() -> Floats:
        return wander(chance, count, rho, heavy=heavy)

    t = np.linspace(0, 1, count)
    start, end = float(chance.uniform(0.02, 0.3)), float(chance.uniform(0.4, 0.85))
    reward = np.clip(start + (end - start) * (1 - np.exp(-3 * t)) + 0.06 * noise(), 0, 1)
    entropy = chance.uniform(0.35, 0.6) * np.exp(-t * chance.uniform(0.2, 1.3)) * np.exp(0.1 * noise())
    kl = chance.uniform(0.02, 0.3) * t * np.exp(0.3 * noise()) + 1e-4
    grads = chance.uniform(0.05, 0.6) * np.exp(0.5 * noise())
    grads[chance.random(count) < 0.02] *= 30
    none = chance.random(count) < 0.1
    grads[none] = 0.0
    length = chance.uniform(150, 400) * (1 + chance.uniform(-0.3, 0.6) * t) * np.exp(0.06 * noise())
    cap = float(2 ** int(chance.integers(10, 13)))
    longest = np.minimum(cap, length * np.exp(np.abs(0.5 * noise()) + 0.8))
    clip = np.clip(chance.uniform(0, 0.05) * np.exp(0.5 * noise()), 0, 1)
    cut = np.clip(chance.uniform(0, 0.15) + 0.05 * noise(), 0, 1)
    spread = np.clip(0.3 + 0.05 * noise(), 0, None)
    trainer = str(chance.choice(["trl", "verl", "openrlhf"]))
    if trainer == "verl":
        return {
            "actor/pg_loss": 0.01 * noise(), "critic/score/mean": reward, "actor/entropy": entropy,
            "actor/kl_loss": kl, "actor/grad_norm": grads, "actor/pg_clipfrac": clip,
            "response_length/mean": length, "response_length/max": longest, "response_length/clip_ratio": cut,
        }  # fmt: skip
    if trainer == "openrlhf":
        return {
            "policy_loss": 0.01 * noise(),
            "reward": reward,
            "kl": kl,
            "response_length": length,
            "actor_grad_norm": grads,
        }
    return {
        "loss": np.where(none, 0.0, 0.02 * noise()), "grad_norm": grads, "rewards/exact/mean": reward * 0.8,
        "rewards/exact/std": spread, "reward": reward, "reward_std": np.where(none, 0.0, spread),
        "frac_reward_zero_std": np.clip(0.3 + 0.15 * noise(), 0, 0.95), "kl": kl, "entropy": entropy,
        "clip_ratio/region_mean": clip, "completions/mean_length": length, "completions/max_length": longest,
        "completions/mean_terminated_length": length * 0.9, "completions/clipped_ratio": cut,
        "sampling/sampling_logp_difference/mean": 0.02 * np.exp(0.4 * noise()),
        "sampling/importance_sampling_ratio/min": np.clip(0.4 * np.exp(0.4 * noise()), 0, 1),
        "frac_non_finite_loss": np.zeros(count),
    }  # fmt: skip


def found(run: Run, *ids: str) -> list[Finding]:
    rules = [r for r in RULES if not ids or r.id in ids]
    return [f for r in rules for f in r(run)]


def rl_run(series: Series) -> Run:
    return metrics_run(series, CANONICAL)


def warned(run: Run, *ids: str) -> list[Finding]:
    return [f for f in found(run, *ids) if f.severity.rank >= Severity.WARNING.rank]


def of(series: Series, *names: str) -> str:
    return next(n for n in names if n in series)


def part(series: Series, share: float) -> slice:
    count = len(next(iter(series.values())))
    return slice(min(round(count * share), count - 25), None)


def dead_reward(series: Series, _: np.random.Generator) -> None:
    for name in ("reward", "rewards/exact/mean", "rewards/exact/std", "reward_std", "critic/score/mean"):
        if name in series:
            series[name] = np.zeros_like(series[name])


def no_spread(series: Series, _: np.random.Generator) -> None:
    like = next(iter(series.values()))
    series["reward_std"], series["frac_reward_zero_std"] = np.zeros_like(like), np.ones_like(like)


def low_entropy(series: Series, chance: np.random.Generator) -> None:
    like = next(iter(series.values()))
    name = next((n for n in ("entropy", "actor/entropy") if n in series), "entropy")
    where = part(series, 0.5)
    values = series.get(name, np.full_like(like, 0.4)).copy()
    values[where] = 0.004 * np.exp(0.3 * chance.standard_normal(len(values[where])))
    series[name] = values
    reward = of(series, "reward", "critic/score/mean")
    series[reward] = 0.2 + 0.05 * chance.standard_normal(len(like))


def far_policy(series: Series, chance: np.random.Generator) -> None:
    name, where = of(series, "kl", "actor/kl_loss"), part(series, 0.5)
    series[name] = series[name].copy()
    series[name][where] = 4 * np.exp(0.3 * chance.standard_normal(len(series[name][where])))


def stale_sampler(series: Series, chance: np.random.Generator) -> None:
    like = next(iter(series.values()))
    values = 0.03 * np.exp(0.3 * chance.standard_normal(len(like)))
    values[part(series, 0.5)] *= 60
    series["sampling/sampling_logp_difference/mean"] = values


def long_answers(series: Series, chance: np.random.Generator) -> None:
    like = next(iter(series.values()))
    name = of(series, "completions/mean_length", "response_length/mean", "response_length")
    ramp = np.minimum(np.linspace(200, 1300, len(like)), 1000)
    series[name] = np.minimum(ramp * np.exp(0.04 * chance.standard_normal(len(like))), 1020)
    series["completions/max_length"] = np.full_like(like, 1024)


def cut_answers(series: Series, chance: np.random.Generator) -> None:
    like = next(iter(series.values()))
    name = next(
        (n for n in ("completions/clipped_ratio", "response_length/clip_ratio") if n in series),
        "completions/clipped_ratio",
    )
    series[name] = np.clip(0.92 + 0.04 * chance.standard_normal(len(like)), 0, 1)


def steep_gradients(series: Series, chance: np.random.Generator) -> None:
    name, where = of(series, "grad_norm", "actor/grad_norm", "actor_grad_norm"), part(series, 0.4)
    series[name] = series[name].copy()
    series[name][where] = 25 * np.exp(0.4 * chance.standard_normal(len(series[name][where])))


def hard_clipping(series: Series, chance: np.random.Generator) -> None:
    like = next(iter(series.values()))
    name = next((n for n in ("clip_ratio/region_mean", "actor/pg_clipfrac") if n in series), "clip_ratio/region_mean")
    series[name] = np.clip(0.45 + 0.06 * chance.standard_normal(len(like)), 0, 1)


def falling_reward(series: Series, chance: np.random.Generator) -> None:
    count = max(200, len(next(iter(series.values()))))
    values = np.interp(np.linspace(0, 1, count), [0, 0.5, 1], [0.3, 0.6, 0.1])
    series.clear()
    series["reward"] = values + 0.05 * chance.standard_normal(count)
    series["response_length"] = 300 + 10 * chance.standard_normal(count)


def hidden_nan(series: Series, _: np.random.Generator) -> None:
    like = next(iter(series.values()))
    bad = np.zeros_like(like)
    bad[part(series, 0.5)] = 1.0
    series["frac_non_finite_loss"] = bad


BROKEN: list[tuple[str, Callable[[Series, np.random.Generator], None], Severity]] = [
    ("RLX001", dead_reward, Severity.ERROR),
    ("RLX002", no_spread, Severity.WARNING),
    ("RLX003", low_entropy, Severity.ERROR),
    ("RLX004", far_policy, Severity.WARNING),
    ("RLX005", stale_sampler, Severity.WARNING),
    ("RLX006", long_answers, Severity.WARNING),
    ("RLX007", cut_answers, Severity.WARNING),
    ("RLX008", steep_gradients, Severity.WARNING),
    ("RLX008", hard_clipping, Severity.WARNING),
    ("RLX009", falling_reward, Severity.WARNING),
    ("RLX010", hidden_nan, Severity.ERROR),
]


def test_a_healthy_noisy_run_raises_no_warning(capsys: pytest.CaptureFixture[str]) -> None:
    alarms = [(seed, f) for seed in range(SEED, SEED + COUNT) for f in warned(rl_run(healthy_rl(seed)))]
    with capsys.disabled():
        print(f"\nhealthy RL runs: {len({s for s, _ in alarms})} of {COUNT} with a warning")  # noqa: T201 - the rates are what is measured
        for seed, finding in alarms:
            print(f"  seed {seed}: {finding.rule} {finding.title}")  # noqa: T201 - the rates are what is measured
    assert len({s for s, _ in alarms}) < max(1, 0.01 * COUNT)


@pytest.mark.parametrize(("rule", "damage", "severity"), BROKEN, ids=lambda v: getattr(v, "__name__", None))
def test_a_broken_run_is_found(
    rule: str,
    damage: Callable[[Series, np.random.Generator], None],
    severity: Severity,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hits, count = 0, max(10, COUNT // 4)
    for seed in range(count):
        series = healthy_rl(SEED + 50_000 + seed)
        damage(series, np.random.default_rng(seed))
        hits += any(f.severity.rank >= severity.rank for f in found(rl_run(series), rule))
    with capsys.disabled():
        print(f"\n{rule} {damage.__name__}: found in {hits} of {count}")  # noqa: T201 - the rates are what is measured
    assert hits >= 0.95 * count


def episodes(seed: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Rewards of episodes that learn, and some that are lost: of any scale and sign, with noise that wanders."""
    chance = np.random.default_rng(seed)
    count, rho = int(chance.choice([25, 50, 100, 400])), float(chance.choice([0.0, 0.5, 0.9]))
    scale, t = 10.0 ** chance.uniform(-2, 3), np.linspace(0, 1, count)
    base = float(chance.choice([0.0, -1.0, 0.2])) * scale
    noise = scale * chance.uniform(0.01, 0.1) * wander(chance, count, rho)
    learned = base + scale * (1 - np.exp(-chance.uniform(1, 6) * t)) + noise
    late = base + scale / (1 + np.exp(-12 * (t - chance.uniform(0.2, 0.8)))) + noise
    dip, begin = learned.copy(), int(count * chance.uniform(0.3, 0.6))
    dip[begin : begin + max(1, count // 12)] -= chance.uniform(0.3, 0.9) * scale
    knee = chance.uniform(0.3, 0.7)
    gone = (t > knee) * chance.uniform(0.8, 1.3) * np.minimum(1, (t - knee) / 0.1)
    return {"learned": learned, "late": late, "dip": dip}, {
        "lost": base + scale * (np.minimum(1, t / knee) - gone) + noise
    }


def test_rewards_of_episodes_that_are_lost_are_found_and_healthy_ones_are_not() -> None:
    healthy, lost = zip(*(episodes(SEED + i) for i in range(COUNT)), strict=True)
    quiet = [rl_run({"ep_rew_mean": values}) for kinds in healthy for values in kinds.values()]
    assert sum(bool(warned(run, "RLX012")) for run in quiet) <= 0.01 * len(quiet)
    fallen = [rl_run({"ep_rew_mean": kinds["lost"]}) for kinds in lost]
    assert sum(bool(warned(run, "RLX012")) for run in fallen) >= 0.9 * len(fallen)
