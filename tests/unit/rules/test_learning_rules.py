"""Losses that went wrong and stayed finite."""

from __future__ import annotations

import math
import random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.model import Finding
from forensics.pipeline import ingest_bytes, report_of
from forensics.rules.learning.departures import diverged, loss_spike
from forensics.rules.learning.evaluations import eval_apart, frozen_eval
from forensics.rules.learning.flat import no_decrease
from forensics.rules.learning.overfit import overfit
from forensics.rules.learning.standstill import frozen_loss
from forensics.store.run import Run, run_of


def losses(values: list[float], every: int = 10, evals: dict[int, float] | None = None) -> Run:
    rows = [(i * every, "loss", v) for i, v in enumerate(values)] + [
        (s, "eval_loss", v) for s, v in (evals or {}).items()
    ]
    frame = pl.DataFrame(
        {
            "source": ["train.log"] * len(rows),
            "seq": list(range(len(rows))),
            "step": [r[0] for r in rows],
            "name": [r[1] for r in rows],
            "raw_name": [r[1] for r in rows],
            "value": [r[2] for r in rows],
        }
    )
    return run_of("made", {"metrics": frame})


def falling(count: int, seed: int = 1, noise: float = 0.05) -> list[float]:
    rng = random.Random(seed)
    return [2 + 4 * math.exp(-i / 20) + rng.gauss(0, noise) for i in range(count)]


def one(found: list[Finding]) -> Finding:
    (hit,) = found
    return hit


def test_a_loss_that_jumps_and_stays_has_diverged_at_the_jump() -> None:
    run = losses(falling(80) + [7 + 0.01 * i for i in range(40)])
    assert one(list(diverged(run))).onset.step == 800


@pytest.mark.parametrize(("ranks", "told"), [(128, [800]), (129, [])])
def test_two_ranks_of_many_beside_the_one_apart_leave_their_level_by_chance(ranks: int, told: list[int]) -> None:
    courses = [falling(120, seed) for seed in range(ranks)]
    courses[:3] = [falling(80, seed) + [7 + 0.01 * i for i in range(40)] for seed in range(3)]
    rows = [losses(values).scan("metrics").with_columns(rank=rank) for rank, values in enumerate(courses)]
    run = run_of("made", {"metrics": pl.concat(rows).collect()})
    assert [hit.onset.step for hit in diverged(run)] == told


def test_a_spike_that_recovers_is_no_divergence() -> None:
    values = falling(120)
    values[60:63] = [30.0, 20.0, 9.0]
    assert list(diverged(losses(values))) == []


@pytest.mark.parametrize(("times", "told"), [(1e9, [60]), (3000.0, [60]), (1500.0, [])])
def test_a_burst_that_is_learned_anew_is_told_with_the_level_before_it(times: float, told: list[int]) -> None:
    learned = [3.0 * 0.9**i + 0.004 for i in range(60)]
    anew = [times * 0.004 * 0.5**i + 0.2 * 0.97**i + 0.05 for i in range(60)]
    hits = [f for f in loss_spike(losses(learned + anew, every=1)) if "fell again" in f.title]
    assert [hit.onset.step for hit in hits] == told
    assert list(diverged(losses(learned + anew, every=1))) == []


@pytest.mark.parametrize(
    ("first", "after"),
    [
        (3.0, [1e6 * 0.5**i + 0.9 + 0.2 * 0.97**i for i in range(60)]),  # a third of what was learned: it diverged
        (900.0, [2.0 + i % 3 / 99 for i in range(60)]),  # it does not fall again
    ],
)
def test_a_burst_that_cost_what_was_learned_or_stayed_is_not_learned_anew(first: float, after: list[float]) -> None:
    learned = [first * 0.85**i + 0.004 for i in range(90)]
    assert [f for f in loss_spike(losses(learned + after, every=1)) if "fell again" in f.title] == []


def test_a_noisy_loss_is_no_divergence() -> None:
    assert list(diverged(losses(falling(400, noise=0.8)))) == []


def test_a_better_evaluation_contradicts_a_divergence() -> None:
    run = losses(falling(80) + [50.0] * 10 + [51.0] * 30, evals={500: 3.0, 900: 2.5, 1100: 2.25})
    assert list(diverged(run)) == []


def test_an_evaluation_that_was_better_once_and_is_worse_at_last_contradicts_nothing() -> None:
    run = losses(falling(80) + [50.0] * 10 + [51.0] * 30, evals={500: 3.0, 900: 2.5, 1000: 3.4, 1100: 3.5})
    assert one(list(diverged(run))).onset.step == 800


LEARNED = [4.1, 3.8, 3.2, 2.4, 1.7, 1.6, 1.65, 1.58]


@pytest.mark.parametrize(
    ("values", "onsets"),
    [
        ([*LEARNED, 4.3, 3.1, 2.9, 2.8, 2.7], [80]),
        ([*LEARNED, 4.3, 3.1, 2.9, 2.8], []),  # four records may come back
        ([*LEARNED, 4.3, 3.1, 2.9, 2.8, 2.5], [80]),
        ([*LEARNED, 4.3, 3.1, 2.9, 2.8, 2.4], []),  # less than 1.5 times the third lowest
        ([4.1, 3.8, 3.7, 1.6, 1.5, 4.3, 4.1, 4.0, 4.2, 4.1], []),  # a dip of two records
        ([4.1, 3.8, 1.7, 1.6, 1.5, 4.3, 4.1, 4.0, 4.2, 4.1], [50]),
    ],
)
def test_few_records_that_give_back_what_was_learned_are_suspect(values: list[float], onsets: list[int]) -> None:
    found = list(diverged(losses(values)))
    assert [hit.onset.step for hit in found] == onsets
    assert [hit.severity.value for hit in found] == ["warning"] * len(onsets)


@pytest.mark.parametrize(
    ("lowest", "kept", "died"),
    [
        (0.0002, 0.0003, False),
        (0.0002, 0.0004, True),
        (0.2, 0.3001, True),
        (0.0011, 0.0014, False),
        (0.0011, 0.0015, True),
    ],
)
def test_a_loss_whose_last_digit_may_be_the_difference_to_its_best_did_not_die(
    lowest: float, kept: float, died: bool
) -> None:
    found = list(frozen_loss(losses([2.5, 1.3, 0.4013, 0.0052, lowest, *[kept] * 12])))
    assert [hit.cause for hit in found] == ["loss_died"] * died


def test_a_frozen_loss_names_the_uniform_answer() -> None:
    hit = one(list(frozen_loss(losses([1.75, 9.5, *[math.log(32000)] * 8]))))
    assert (hit.cause, hit.onset.step) == ("loss_died", 10)
    assert "32000" in hit.because


def test_a_loss_that_explodes_in_its_last_records_is_seen() -> None:
    assert one(list(diverged(losses([*falling(40), 30.0, 25.0])))).onset.step == 400


def test_a_loss_that_ends_in_nan_is_left_to_the_rules_about_nan() -> None:
    assert list(diverged(losses([*falling(40), 30.0, 25.0, math.nan]))) == []


def swinging(middle: float, factor: float, count: int = 30) -> list[float]:
    """A loss that moves by a factor from each record to the next, around its middle."""
    return [middle * factor ** (0.5 if at % 2 else -0.5) for at in range(count)]


@pytest.mark.parametrize(
    ("middle", "factor", "warns"),
    [(1200, 2.8, True), (800, 2.8, False), (1200, 2.6, False)],
    ids=["large and wild", "not so large", "not so wild"],
)
def test_a_large_loss_that_swings_is_a_warning(middle: float, factor: float, *, warns: bool) -> None:
    assert [(f.severity.value, f.cause) for f in diverged(losses(swinging(middle, factor)))] == (
        [("warning", "diverged_from_start")] if warns else []
    )


def test_a_loss_that_swings_and_then_explodes_has_diverged() -> None:
    hit = one(list(diverged(losses([*swinging(1200, 2.8), *(1e9 * 3.0**at for at in range(6))]))))
    assert (hit.severity.value, hit.confidence.value) == ("error", "high")


def test_an_absurd_loss_needs_no_better_past() -> None:
    assert one(list(diverged(losses([4e30 + i for i in range(30)])))).cause == "diverged"


def test_an_evaluation_that_only_rises_while_training_vanishes_is_overfit() -> None:
    run = losses([2 * 0.9**i for i in range(60)], evals={100: 1.0, 200: 1.1, 300: 1.2, 400: 1.3, 500: 1.4})
    assert one(list(overfit(run))).onset.step == 200


@pytest.mark.parametrize(("fall", "hits"), [(0.12, 1), (0.0, 0)])
def test_a_training_loss_that_falls_within_its_noise_still_falls_over_many_records(fall: float, hits: int) -> None:
    chance = random.Random(3)
    level = [1.9 - 1.5 * min(1.0, n / 100) - fall * max(0, n - 100) / 200 for n in range(300)]
    evals = {200 * n: 1.25 - 0.04 * min(n, 5) + 0.07 * max(0, n - 5) for n in range(1, 16)}
    run = losses([value + chance.gauss(0, 0.05) for value in level], evals=evals)
    assert len(list(overfit(run))) == hits


def test_an_evaluation_that_rises_a_little_is_not_overfit() -> None:
    run = losses([2 * 0.9**i for i in range(60)], evals={100: 1.0, 200: 1.01, 300: 1.02, 400: 1.05, 500: 1.1})
    assert list(overfit(run)) == []


@settings(deadline=None)
@given(st.lists(st.floats(0.1, 10), min_size=25, max_size=25, unique=True))
def test_a_loss_that_only_falls_never_diverges(values: list[float]) -> None:
    assert list(diverged(losses(sorted(values, reverse=True)))) == []


def test_a_loss_that_fell_from_a_peak_far_above_its_start_has_not_come_back() -> None:
    values = [3.0, 40.0, 900.0, *[2e5 - 3000 * i for i in range(40)]]
    found = one(list(diverged(losses(values))))
    assert (found.onset.step, found.severity.value) == (10, "error")


def test_a_loss_that_rises_from_almost_nothing_is_left_alone() -> None:
    assert list(diverged(losses([1e-4, *[0.02 - 1e-4 * i for i in range(60)]]))) == []


def test_an_evaluation_that_doubles_while_training_vanishes_is_an_error_even_where_it_wavers_at_the_end() -> None:
    evals = {10 * i: 3.0 + min(i, 8) + (0.2 if i % 2 else 0.0) for i in range(1, 14)}
    run = losses([4.0 * 0.9**i for i in range(140)], every=1, evals=evals)
    assert one(list(overfit(run))).severity.value == "error"


def test_an_accuracy_that_still_rises_makes_it_a_warning() -> None:
    evals = {10 * i: 3.0 + min(i, 8) + (0.2 if i % 2 else 0.0) for i in range(1, 14)}
    run = losses([4.0 * 0.9**i for i in range(140)], every=1, evals=evals)
    scores = pl.DataFrame(
        {
            "source": ["train.log"] * 13,
            "seq": range(1000, 1013),
            "step": list(evals),
            "name": ["eval/accuracy"] * 13,
            "raw_name": ["eval/accuracy"] * 13,
            "value": [0.5 + 0.01 * i for i in range(13)],
            "value_class": ["finite"] * 13,
        }
    )
    both = run_of("made", {"metrics": pl.concat([run.collect("metrics"), scores], how="diagonal_relaxed")})
    assert one(list(overfit(both))).severity.value == "warning"


def test_four_evaluations_part_from_the_training_loss_where_each_is_worse() -> None:
    training = [0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45, 0.4]
    hit = one(list(overfit(losses(training, evals={10: 0.70, 30: 0.73, 50: 0.75, 70: 0.79}))))
    assert (hit.cause, hit.severity.value, hit.confidence.value, hit.onset.step_lo) == ("overfit", "warning", "low", 10)


@pytest.mark.parametrize("evals", [(0.70, 0.71, 0.70, 0.72), (0.70, 0.705, 0.71, 0.715), (0.79, 0.75, 0.73, 0.70)])
def test_four_evaluations_that_come_back_or_rise_by_a_hundredth_part_from_nothing(evals: tuple[float, ...]) -> None:
    training = [0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45, 0.4]
    assert list(overfit(losses(training, evals=dict(zip((10, 30, 50, 70), evals, strict=True))))) == []


def test_a_loss_that_comes_to_rest_on_many_digits_after_it_moved_has_died() -> None:
    hit = one(list(frozen_loss(losses([0.6773, 2.4587, 5.3353, 1.0234, *[0.6931] * 9]))))
    assert (hit.cause, hit.onset.step) == ("loss_died", 40)


def test_a_loss_that_rests_on_few_digits_or_below_its_start_has_not_died() -> None:
    assert list(frozen_loss(losses([0.6, 2.4, 5.3, 1.0, *[0.7] * 9]))) == []
    assert list(frozen_loss(losses([2.6773, 2.4587, 1.0234, *[0.6931] * 9]))) == []


def test_a_loss_that_differs_by_the_rounding_of_a_mean_is_frozen() -> None:
    hit = one(list(frozen_loss(losses([10.845988, 10.845994, 10.845989, 10.84598, 10.845976, 10.845982, 10.845993]))))
    assert hit.cause == "frozen_loss"
    assert list(frozen_loss(losses([10.8460, 10.8459, 10.8458, 10.8457, 10.8456, 10.8455, 10.8454]))) == []


CALM = [0.063, 0.1628, 0.0577, 0.09, 0.05]


@pytest.mark.parametrize(
    ("every", "burst", "cause"),
    [(1, 5.4e19, "burst_at_once"), (10, 5.4e19, "diverged"), (1, 20.0, "diverged")],
    ids=["a step", "ten steps", "by a hundred times"],
)
def test_a_batch_is_suspect_where_the_loss_explodes_within_one_step(every: int, burst: float, cause: str) -> None:
    run = losses([*CALM, burst, 4 * burst, 20 * burst, 70 * burst], every=every)
    assert one(list(diverged(run))).cause == cause


@pytest.mark.parametrize(
    ("epochs", "score", "told"), [(12, 0.1, ["warning"]), (11, 0.1, []), (12, None, ["info"]), (12, 0.6, ["info"])]
)
def test_the_loss_of_a_dozen_epochs_at_chance_does_not_fall(epochs: int, score: float | None, told: list[str]) -> None:
    rows = [
        {
            "source": "a.log",
            "seq": n,
            "line": n,
            "step": n,
            "name": name,
            "raw_name": name,
            "value": value + n % 3 / 999,
        }
        for n in range(1, epochs + 1)
        for name, value in (("loss", 2.31), ("Accuracy", score))
        if value is not None
    ]
    assert [f.severity.value for f in no_decrease(run_of("run", {"metrics": pl.DataFrame(rows)}))] == told


@pytest.mark.parametrize(
    ("level", "told"), [(0.6931, ["warning"]), (0.6964, ["warning"]), (0.6967, ["info"]), (0.6, ["info"])]
)
def test_a_loss_that_stays_at_the_cost_of_a_coin_has_learned_nothing(level: float, told: list[str]) -> None:
    found = no_decrease(losses([level + n % 3 / 9999 for n in range(100)]))
    assert [f.severity.value for f in found] == told


def split_in_two(evals: list[float], at: int) -> Run:
    """Losses that fall by a fifth beside evaluations, in two files of one run that was started again at a step."""
    rows = [
        ("a.csv" if step < at else "b.csv", step, name, value)
        for step, value in enumerate(evals)
        for name, value in (("loss", 1.0 - 0.2 * step / len(evals)), ("val_loss", value))
    ]
    source, step, raw, value = (list(column) for column in zip(*rows, strict=True))
    metrics = {"source": source, "step": step, "raw_name": raw, "value": value}
    names = ["eval_loss" if name == "val_loss" else name for name in raw]
    return run_of("made", {"metrics": pl.DataFrame({**metrics, "name": names, "seq": list(range(len(rows)))})})


def test_evaluations_that_go_on_in_a_second_file_are_no_first_ones() -> None:
    drifting = [1.2 + 0.05 * step for step in range(8)] + [1.8 + 0.001 * step for step in range(8)]
    assert list(eval_apart(split_in_two(drifting, at=8))) == []
    assert [found.cause for found in eval_apart(split_in_two(drifting[8:], at=8))] == ["eval_shifted"]


@pytest.mark.parametrize(("fall", "told"), [(0.11, ["stale_evaluation"]), (0.09, [])])
def test_an_evaluation_that_never_moves_is_told_where_training_learned_a_tenth(fall: float, told: list[str]) -> None:
    run = losses(
        [2 * (1 - fall * i / 40) for i in range(20)] + [2 * (1 - fall)] * 20,
        evals=dict.fromkeys(range(5, 400, 50), 1.38403),
    )
    assert [found.cause for found in frozen_eval(run)] == told


@pytest.mark.parametrize(
    ("line", "culprits"),
    [
        ("param checksum mismatch: ranks 0,1,2: 8f31aa02 rank 3: 51c0ffee", (3,)),
        ("parameter checksum mismatch on rank 6", (6,)),
        ("[Rank 3] param hash a1b2 does not match rank 0 hash c3d4", (3,)),
        ("weights differ across ranks: rank 0=12.50 rank 1=12.50 rank 2=12.61", (2,)),
        ("weights differ across ranks: rank 0=12.50 rank 1=12.61", ()),
        ("model is out of sync on ranks 1-3", ()),
        ("param checksum ok on 4 ranks", None),
        ("model file checksum mismatch: expected aa01, got bb02", None),
        ("learning rates differ across ranks", None),
    ],
)
def test_a_check_of_the_weights_over_the_ranks_names_who_has_others(
    line: str, culprits: tuple[int, ...] | None
) -> None:
    steps = [f"step {n} loss {2 + 3 / n:.4f}" for n in range(1, 40)]
    log = "\n".join([*steps[:20], line, *steps[20:], "training finished", ""])
    verdict = report_of(ingest_bytes("train.log", log.encode())).verdict
    assert (verdict.culprits if verdict.cause == "ranks_parted" else None) == culprits


@pytest.mark.parametrize(("counted", "step"), [(True, 600), (False, 30)])
def test_a_rise_is_placed_by_the_step_of_the_optimizer_where_a_tracker_counts_its_records(
    *, counted: bool, step: int
) -> None:
    values = [*falling(30), *(4.0 + 0.01 * (n % 3) for n in range(40))]
    frame = pl.DataFrame(
        {
            "source": ["run.wandb"] * len(values),
            "seq": range(len(values)),
            "step": range(len(values)),
            "gstep": [20 * n if counted else None for n in range(len(values))],
            "name": ["loss"] * len(values),
            "raw_name": ["train/loss"] * len(values),
            "value": values,
        },
        schema_overrides={"gstep": pl.Int64},
    )
    found = list(diverged(run_of("made", {"metrics": frame})))
    assert [(f.onset.step, f.evidence[0].step) for f in found] == [(step, step)]
    assert f"from step {step}" in found[0].title


@pytest.mark.parametrize(
    ("names", "level", "fall", "told"),
    [
        (("fold_0.csv", "fold_1.csv", "fold_2.csv"), 0.693, 0.35, True),
        (("fold_0.csv", "fold_1.csv", "fold_2.csv"), 0.693, 0.25, False),  # the others fell by a quarter alone
        (("fold_0.csv", "fold_1.csv", "fold_2.csv"), 0.6, 0.35, True),
        (("fold_0.csv", "fold_1.csv", "fold_2.csv"), 0.55, 0.35, False),  # it learned before, as a later stage did
        (("fold_1.csv", "fold_2.csv"), 0.693, 0.35, False),
        (("teacher.csv", "student.csv", "critic.csv"), 0.693, 0.35, False),
    ],
)
def test_a_file_of_several_is_left_behind_where_the_others_began(
    names: tuple[str, ...], level: float, fall: float, *, told: bool
) -> None:
    rng = random.Random(4)
    rows = [
        {"source": name, "seq": n, "step": n + 1, "name": "loss", "raw_name": "loss", "value": value}
        for at, name in enumerate(names)
        for n in range(30)
        for value in [level + rng.gauss(0, 0.001) if at == 1 else 0.693 * (1 - fall * min(1.0, n / 15))]
    ]
    found = list(no_decrease(run_of("made", {"metrics": pl.DataFrame(rows)})))
    assert [f.evidence[0].source for f in found] == [names[1]] * told


def sums(steps: int, first: float, level: float) -> list[float]:
    """Losses of a log that sums over `steps` steps from its second line on; they fall to `level` of theirs."""
    return [first] + [first * steps * (level + (1 - level) * math.exp(-i / 8)) for i in range(40)]


@pytest.mark.parametrize(("level", "told"), [(0.3, 0), (0.9, 1)])
def test_a_log_that_sums_from_its_second_line_on_has_not_diverged_where_its_sums_fall(level: float, told: int) -> None:
    run = losses(sums(10, 4.0, level))
    assert len(list(diverged(run))) == told


def test_a_loss_that_burst_by_another_factor_than_the_steps_between_two_lines_has_diverged() -> None:
    run = losses(sums(30, 4.0, 0.3))
    assert one(list(diverged(run))).onset.step == 10


@pytest.mark.parametrize(("norms", "told"), [([0.08] + [0.8] * 40, 0), ([0.8] + [0.8] * 40, 1), ([0.8] + [80] * 40, 1)])
def test_a_gradient_norm_that_is_summed_as_well_tells_a_sum_that_does_not_fall(norms: list[float], told: int) -> None:
    course = losses(sums(10, 1.4, 0.95)).collect("metrics")
    gradients = course.with_columns(name=pl.lit("grad_norm"), raw_name=pl.lit("grad"), value=pl.Series(norms))
    run = run_of("made", {"metrics": pl.concat([course, gradients]).sort("seq", "name")})
    assert len(list(diverged(run))) == told
