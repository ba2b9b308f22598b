"""Rules on restarts: what was lost, and restarts that lost nothing."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forensics.analyses.resume.around import mean_error
from forensics.api import triage
from forensics.model import Finding, Severity
from forensics.registry import load
from forensics.store.run import Run, run_of

RULES = [r for r in load("rules").rules if r.id.startswith("RSM")]
HOUR = 3_600_000_000_000
OLD = 100


def noisy(count: int, level: Callable[[int], float], seed: int = 1, noise: float = 0.01) -> list[float]:
    chance = random.Random(seed)
    return [level(i) * (1 + chance.gauss(0, noise)) for i in range(count)]


def life(
    attempt: int, first: int, name: str, values: Sequence[float], *, source: str = "a.log", t: int | None = None
) -> pl.DataFrame:
    place = [1000 * attempt + i for i in range(len(values))]
    return pl.DataFrame(
        {
            "source": source,
            "attempt": attempt,
            "seq": place,
            "line": place,
            "step": [first + i for i in range(len(values))],
            "t_ns": [None if t is None else t + i * HOUR // 20 for i in range(len(values))],
            "name": name,
            "raw_name": name,
            "value": values,
        },
        schema_overrides={"t_ns": pl.Int64, "value": pl.Float64},
    )


def points(*rows: tuple[str, int, int]) -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"source": "a.log", "seq": i, "kind": k, "step": s, "line": n, "path": f"out/{s}"}
            for i, (k, s, n) in enumerate(rows)
        ]
    )


def found(
    *parts: pl.DataFrame, checkpoints: pl.DataFrame | None = None, events: pl.DataFrame | None = None
) -> list[Finding]:
    tables = {"metrics": pl.concat(parts), "checkpoints": checkpoints, "events": events}
    run: Run = run_of("made", {t: f for t, f in tables.items() if f is not None})
    return [f for r in RULES for f in r(run)]


def warnings(every: list[Finding]) -> list[tuple[str, str]]:
    return [(f.rule, f.cause) for f in every if f.severity.rank >= Severity.WARNING.rank]


def falling(i: int) -> float:
    return 2 + 4 / (1 + i / 20)


def bumped(i: int) -> float:
    return falling(i + 80) * (1 + 0.3 * 0.93**i)


def test_a_clean_restart_is_told_as_replayed_steps_and_no_more() -> None:
    loss = noisy(160, falling)
    every = found(life(0, 0, "loss", loss[:OLD]), life(1, 80, "loss", loss[80:]), checkpoints=points(("saved", 79, 79)))
    assert warnings(every) == []
    assert [f.rule for f in every] == ["RSM006", "RSM008"]
    assert every[0].numbers["replayed_steps"] == 20


def test_a_bump_after_a_resume_is_a_lost_optimizer() -> None:
    every = found(life(0, 0, "loss", noisy(OLD, falling)), life(1, 80, "loss", noisy(80, bumped, 2)))
    assert warnings(every) == [("RSM001", "optimizer_lost")]


@pytest.mark.parametrize("seed", range(5))
def test_a_bump_that_is_over_within_a_few_records_is_a_lost_optimizer_also_after_a_short_first_life(seed: int) -> None:
    bump = [falling(i) * (1 + 0.9 * math.exp(-(i - 16) / 6)) * (1 + 0.04 * math.sin(i * i)) for i in range(16, 60)]
    before = noisy(16, falling, seed, 0.04)
    assert ("RSM001", "optimizer_lost") in warnings(found(life(0, 0, "loss", before), life(1, 16, "loss", bump)))
    calm = found(life(0, 0, "loss", before), life(1, 16, "loss", noisy(60, falling, seed + 9, 0.04)[16:]))
    assert [f for f in calm if f.rule == "RSM001"] == []


def test_a_short_life_whose_losses_are_all_back_where_the_run_began_has_lost_the_weights() -> None:
    first = [4.34, 4.02, 3.15, 1.84, 1.27, 1.40, 1.45, 1.28, 1.45, 1.44, 1.22, 1.23, 1.41, 1.14, 1.39, 1.67, 1.60]
    anew = [4.44, 3.75, 3.08, 2.22, 1.79, 1.47, 1.38, 1.63, 1.34, 1.61]
    said = points(("saved", 16, 16))
    lost = found(life(0, 0, "loss", first), life(1, 17, "loss", anew), checkpoints=said)
    assert ("RSM002", "restarted_from_scratch") in warnings(lost)
    one_high = found(life(0, 0, "loss", first), life(1, 17, "loss", [4.44, *anew[4:]]), checkpoints=said)
    assert [f for f in one_high if f.rule == "RSM002"] == []


def test_a_lasting_step_without_a_spike_of_the_gradients_is_only_a_remark() -> None:
    every = found(
        life(0, 0, "loss", noisy(OLD, falling)), life(1, 100, "loss", noisy(80, lambda i: 1.1 * falling(i + 100), 2))
    )
    assert warnings(every) == []
    assert [f.cause for f in every] == ["loss_step_at_resume"]


@pytest.mark.parametrize(
    ("factor", "first", "told"),
    [(1.5, 95, [("RSM001", "loss_step_at_resume")]), (1.15, 95, []), (1.5, 100, [])],
)
def test_a_far_higher_loss_of_steps_that_are_done_again_is_a_warning_where_it_stays(
    factor: float, first: int, told: list[tuple[str, str]]
) -> None:
    later = life(1, first, "loss", noisy(80, lambda i: factor * falling(i + first), 2))
    assert warnings(found(life(0, 0, "loss", noisy(OLD, falling)), later)) == told


def test_a_lasting_step_with_a_spike_of_the_gradients_is_a_warning() -> None:
    every = found(
        life(0, 0, "loss", noisy(OLD, falling)),
        life(1, 100, "loss", noisy(80, lambda i: 1.1 * falling(i + 100), 2)),
        life(0, 0, "grad_norm", noisy(OLD, lambda _: 1.0, 3)),
        life(1, 100, "grad_norm", noisy(80, lambda i: 8.0 if i < 10 else 1.0, 4)),
    )
    assert warnings(every) == [("RSM001", "optimizer_lost")]


def test_a_log_that_says_what_it_loaded_but_learns_from_the_start_has_lost_the_weights() -> None:
    every = found(
        life(0, 0, "loss", noisy(OLD, falling)),
        life(1, 100, "loss", noisy(60, falling, 2)),
        checkpoints=points(("saved", 90, 90), ("resumed", 99, 900)),
    )
    assert warnings(every) == [("RSM002", "restarted_from_scratch")]


def test_a_new_run_after_one_that_finished_is_not_a_failed_resume() -> None:
    parts = (life(0, 0, "loss", noisy(OLD, falling)), life(1, 0, "loss", noisy(60, falling, 2)))
    saved = points(("saved", 90, 90))
    assert warnings(found(*parts, checkpoints=saved)) == [("RSM002", "restarted_from_scratch")]
    done = pl.DataFrame({"source": ["a.log"], "seq": [1], "line": [500], "code": ["success"], "text": ["done"]})
    assert warnings(found(*parts, checkpoints=saved, events=done)) == []


def test_a_new_run_without_a_checkpoint_before_it_has_nothing_to_resume() -> None:
    assert warnings(found(life(0, 0, "loss", noisy(OLD, falling)), life(1, 0, "loss", noisy(60, falling, 2)))) == []


def rate(i: int) -> float:
    return 1e-3 * min(1, (i + 1) / 10) * (1 - i / 300)


@pytest.mark.parametrize(
    ("after", "cause"),
    [
        ([rate(i) for i in range(40)], [("RSM003", "warmup_again")]),
        ([1e-3 * (0.97 - i / 300) for i in range(40)], [("RSM003", "back_at_peak")]),
        ([rate(180 + i) for i in range(40)], []),
        ([0.5 * rate(180 + i) for i in range(40)], []),
        ([2.01 * 0.97e-3] * 40, [("RSM003", "lr_jump")]),
        ([1.99 * 0.97e-3] * 40, []),
        ([3e-3] + [rate(181 + i) for i in range(39)], []),
    ],
    ids=[
        "a new warm-up",
        "back at the peak",
        "as planned",
        "lowered by hand",
        "a jump",
        "raised by hand",
        "one record",
    ],
)
def test_the_learning_rate_is_compared_with_that_of_the_same_step(
    after: list[float], cause: list[tuple[str, str]]
) -> None:
    every = found(life(0, 0, "lr", [rate(i) for i in range(200)]), life(1, 180, "lr", after))
    assert warnings(every) == cause


@pytest.mark.parametrize(("times", "told"), [(1.9, []), (2.1, [("RSM003", "lr_jump")])])
def test_a_warm_up_goes_on_rising_over_steps_that_are_lost(times: float, told: list[tuple[str, str]]) -> None:
    old = life(0, 1, "lr", [1e-6 * i for i in range(1, 101)])
    later = life(1, 400, "lr", [times * 4e-4 + 1e-6 * i for i in range(40)])
    assert warnings(found(old, later)) == told


def test_samples_that_begin_anew_while_the_step_goes_on_are_a_lost_position() -> None:
    parts = [life(0, 0, "num_samples", [8.0 * i for i in range(OLD)]), life(0, 0, "loss", noisy(OLD, falling))]
    anew = life(1, 100, "num_samples", [8.0 * i for i in range(50)])
    on = life(1, 100, "num_samples", [8.0 * (i + 100) for i in range(50)])
    loss = life(1, 100, "loss", noisy(50, lambda i: falling(i + 100), 2))
    assert warnings(found(*parts, anew, loss)) == [("RSM005", "data_position_lost")]
    assert warnings(found(*parts, on, loss)) == []


def test_an_epoch_that_stands_beside_the_loss_is_a_counter_too() -> None:
    old = life(0, 0, "loss", noisy(OLD, falling)).with_columns(epoch=pl.col("step") / 50)
    new = life(1, 100, "loss", noisy(50, lambda i: falling(i + 100), 2))
    anew = new.with_columns(epoch=(pl.col("step") - 100) / 50)
    assert warnings(found(old, anew)) == [("RSM005", "data_position_lost")]
    assert warnings(found(old, new.with_columns(epoch=pl.col("step") / 50))) == []


def test_tokens_alone_that_begin_anew_are_a_remark() -> None:
    parts = [life(0, 0, "num_tokens", [8.0 * i for i in range(OLD)]), life(0, 0, "loss", noisy(OLD, falling))]
    parts += [life(1, 100, "num_tokens", [8.0 * i for i in range(50)])]
    every = found(*parts, life(1, 100, "loss", noisy(50, lambda i: falling(i + 100), 2)))
    assert [(f.rule, f.severity) for f in every] == [("RSM005", Severity.INFO)]


def test_equal_losses_of_steps_done_twice_are_no_nondeterminism() -> None:
    loss = noisy(160, falling)
    every = found(life(0, 0, "loss", loss[:OLD]), life(1, 80, "loss", loss[80:]))
    assert "RSM007" not in [f.rule for f in every]


@pytest.mark.parametrize(("size", "cause"), [(1e-4, "nondeterministic_kernels"), (2e-2, "other_data")])
def test_the_size_of_the_difference_tells_kernels_from_data(size: float, cause: str) -> None:
    loss, chance = noisy(160, falling), random.Random(5)
    again = [v * (1 + size * chance.gauss(0, 1)) for v in loss[80:]]
    every = found(life(0, 0, "loss", loss[:OLD]), life(1, 80, "loss", again))
    assert [f.cause for f in every if f.rule == "RSM007"] == [cause]


def test_hours_of_lost_work_are_told_even_when_they_are_few_steps() -> None:
    loss = noisy(2000, falling)
    old = life(0, 0, "loss", loss[:1000], t=10**18)
    new = life(1, 960, "loss", loss[960:], t=10**18 + 100 * HOUR)
    every = found(old, new, checkpoints=points(("saved", 950, 950)))
    [lost] = [f for f in every if f.rule == "RSM008"]
    assert lost.severity is Severity.INFO
    assert (lost.numbers["steps_lost"], lost.numbers["hours_lost"]) == (49, pytest.approx(2.4, abs=0.1))


def test_steps_lost_in_which_no_finite_number_was_logged_are_not_told() -> None:
    loss = noisy(400, falling)
    old = life(0, 0, "loss", [*loss[:100], *[float("nan")] * 200])
    every = found(old, life(1, 120, "loss", loss[120:]), checkpoints=points(("saved", 120, 120)))
    assert "RSM008" not in {f.rule for f in every}


def test_the_error_of_a_mean_grows_with_the_correlation_of_its_values() -> None:
    chance = random.Random(7)
    alone, last = [chance.gauss(0, 1) for _ in range(60)], 0.0
    tied: list[float] = []
    for value in alone:
        last = 0.8 * last + 0.6 * value
        tied.append(last)
    independent, correlated = (mean_error(pl.Series(v), count=20) for v in (alone, tied))
    assert 0.1 < independent < 0.6
    assert correlated > 1.5 * independent


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a.log", "b.log"]),
        st.integers(0, 2),
        st.none() | st.integers(-2, 60),
        st.sampled_from(["loss", "lr", "grad_norm", "num_samples", "epoch", "reward", "frac_reward_zero_std", "kl"]),
        st.none() | st.floats() | st.just(0.0),
        st.none() | st.integers(0, 10**18),
    ),
    max_size=120,
)


@given(
    ROWS, st.lists(st.tuples(st.sampled_from(["saved", "resumed"]), st.none() | st.integers(0, 60), st.integers(0, 90)))
)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_table_makes_a_rule_on_restarts_or_rewards_fail(rows: list[Any], loads: list[Any]) -> None:
    names = ["source", "attempt", "step", "name", "value", "t_ns"]
    types = {
        "source": pl.String,
        "attempt": pl.Int32,
        "step": pl.Int64,
        "name": pl.String,
        "value": pl.Float64,
        "t_ns": pl.Int64,
    }
    metrics = pl.DataFrame(rows, schema=types, orient="row").select(names).with_row_index("seq").cast({"seq": pl.Int64})
    metrics = metrics.with_columns(raw_name=pl.col("name"), line=pl.col("seq"), epoch=pl.col("value"))
    points = pl.DataFrame(loads, schema={"kind": pl.String, "step": pl.Int64, "line": pl.Int64}, orient="row")
    run = run_of("any", {"metrics": metrics, "checkpoints": points.with_columns(source=pl.lit("a.log"))})
    for rule in load("rules").rules:
        if rule.id.startswith(("RLX", "RSM")):
            assert all(f.evidence for f in rule(run))


_LOG = "2031-05-06 {:02d}:{:02d}:00 step {}/120 loss {:.4f}\n"


def _log(hour: int, first: int, last: int, level: float = 0.0) -> str:
    lines = ""
    for n in range(first, last + 1, 2):
        at = (n - first) // 2
        lines += _LOG.format(hour + at // 60, at % 60, n, 2 + 3 / (n + 1) + level * max(0, n - last + 20))
        lines += f"saved checkpoint to ckpts/{n:06d}\n" if n % 10 == 0 else ""
    return lines


@pytest.mark.parametrize(
    ("hour", "level", "rules"), [(4, 0.0, ["RSM009"]), (2, 0.0, []), (4, 0.2, [])],
    ids=["one after the other", "side by side", "a loss that had risen"],
)  # fmt: skip
def test_a_second_restart_from_one_checkpoint_passes_over_what_the_first_one_saved(
    tmp_path: Path, hour: int, level: float, rules: list[str]
) -> None:
    logs = _log(1, 0, 44), _log(2, 40, 84, level), _log(hour, 40, 120)
    for number, text in enumerate(logs):
        (tmp_path / f"run_{number}.log").write_text("resuming from ckpts/000040\n" * bool(number) + text)
    assert [f.rule for f in triage(tmp_path).findings if f.rule == "RSM009"] == rules


@pytest.mark.parametrize(
    ("epoch", "first", "told"), [(0.0, 0, [("RSM005", "data_position_lost")]), (1.0, 0, []), (0.0, 100, [])]
)
def test_batches_that_begin_anew_within_an_epoch_are_a_lost_position(
    epoch: float, first: int, told: list[tuple[str, str]]
) -> None:
    old = [life(0, 0, "batch", [float(i) for i in range(OLD)]), life(0, 0, "loss", noisy(OLD, falling))]
    new = [life(1, OLD, "batch", [float(first + i) for i in range(50)])]
    new += [life(1, OLD, "loss", noisy(50, lambda i: falling(i + OLD), 2))]
    parts = [part.with_columns(epoch=pl.lit(0.0)) for part in old]
    assert warnings(found(*parts, *(part.with_columns(epoch=pl.lit(epoch)) for part in new))) == told
