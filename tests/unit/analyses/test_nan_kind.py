"""What kind of origin a NaN has, and how the fp16 loss scale tells."""

from __future__ import annotations

import math
import random

import polars as pl
import pytest

from forensics.analyses.nan.kind import kind_of, lost_from
from forensics.analyses.nan.onset import nan_onset
from forensics.analyses.nan.origin import origin
from forensics.analyses.nan.scale import collapse_of
from forensics.case import nonfinite
from forensics.knowledge.errors import telling
from forensics.store.run import Run, run_of

NAN = math.nan


def frame(name: str, values: list[float], first: int = 1, every: int = 1) -> pl.DataFrame:
    steps = [first + i * every for i in range(len(values))]
    columns = {"step": steps, "seq": steps, "value": [float(v) for v in values]}
    return pl.DataFrame(columns).with_columns(source=pl.lit("a"), name=pl.lit(name), raw_name=pl.lit(name))


def run(*frames: pl.DataFrame) -> Run:
    return run_of("test", {"metrics": pl.concat(frames)})


def noisy(count: int, mean: float, seed: int = 1, spread: float = 0.05) -> list[float]:
    rng = random.Random(seed)
    return [mean * math.exp(rng.gauss(0, spread)) for _ in range(count)]


def kind(sick: Run) -> str:
    return kind_of(sick).name


@pytest.mark.parametrize("seed", range(20))
def test_a_rise_of_the_gradient_norm_before_the_nan_is_a_blowup(seed: int) -> None:
    norms = [*noisy(80, 1.0, seed), 4.0, 16.0, 64.0]
    losses = [*noisy(83, 3.0, seed), NAN, NAN]
    assert kind(run(frame("loss", losses), frame("grad_norm", norms))) == "optimization_blowup"


@pytest.mark.parametrize("seed", range(20))
def test_a_nan_out_of_a_flat_gradient_norm_is_data_or_numerics(seed: int) -> None:
    losses = [*noisy(83, 3.0, seed), NAN, NAN]
    assert kind(run(frame("loss", losses), frame("grad_norm", noisy(83, 1.0, seed + 50)))) == "data_or_numerics"


@pytest.mark.parametrize(("height", "name"), [(10.1, "optimization_blowup"), (9.9, "data_or_numerics")])
def test_a_rise_that_is_longer_than_its_past_is_measured_from_long_before(height: float, name: str) -> None:
    rise = [math.exp(math.log(height) * min(n, 50) / 50) for n in range(1, 56)]
    losses = [*noisy(195, 3.0), NAN, NAN]
    norms = [*noisy(140, 1.0, spread=0.0), *rise]
    assert kind(run(frame("loss", losses), frame("grad_norm", norms))) == name


def test_a_single_spike_long_before_the_nan_is_not_its_precursor() -> None:
    norms = noisy(83, 1.0)
    norms[40] = 30.0
    losses = [*noisy(83, 3.0), NAN, NAN]
    assert kind(run(frame("loss", losses), frame("grad_norm", norms))) == "data_or_numerics"


@pytest.mark.parametrize(
    ("norms", "cause"),
    [
        ([], "unknown"),
        ([1.1, 1.0, 1.2, NAN], "norms_too_few"),
        ([1.1, 1.0, 1.2, 1.0, 1.1, 1.2, NAN], "data_or_numerics"),
    ],
)
def test_a_cause_says_whether_the_gradient_norm_is_missing_or_too_short(norms: list[float], cause: str) -> None:
    sick = run(frame("loss", noisy(8, 3.0), 193), *([frame("grad_norm", norms, 200 - len(norms))] if norms else []))
    sick = sick if norms else run(frame("loss", [*noisy(8, 3.0), NAN, NAN], 193))
    assert kind_of(sick).cause == cause


def test_few_gradient_norms_are_counted_in_words() -> None:
    sick = run(frame("loss", noisy(8, 3.0), 193), frame("grad_norm", [1.1, 1.0, NAN, NAN], 197))
    assert kind_of(sick).words == "2 gradient norms before it are too few to tell a rise from calm"


def test_a_loss_that_leaps_tells_of_a_blowup_where_no_gradient_norm_is_logged() -> None:
    assert kind(run(frame("loss", [*noisy(60, 3.0), 9.0, 40.0, NAN, NAN]))) == "optimization_blowup"


def test_a_leap_of_a_loss_that_falls_is_measured_from_its_last_records() -> None:
    fell = [4.0 * math.exp(-at / 300) * one for at, one in enumerate(noisy(100, 1.0, spread=0.01))]
    assert kind(run(frame("loss", [*fell, 1.6 * fell[-1], 1.6 * fell[-1], NAN, NAN, NAN]))) == "optimization_blowup"
    assert kind(run(frame("loss", [*fell, 1.2 * fell[-1], NAN, NAN, NAN]))) == "unknown"


@pytest.mark.parametrize(("growth", "name"), [(1.6, "optimization_blowup"), (1.02, "unknown")])
def test_a_loss_that_grows_over_more_records_than_a_leap_is_measured_from_long_before(growth: float, name: str) -> None:
    grown = [one * growth**at for at, one in enumerate(noisy(22, 0.07), 1)]
    assert kind(run(frame("loss", [*noisy(300, 0.07), *grown, NAN, NAN]))) == name


def test_a_quiet_loss_alone_tells_nothing() -> None:
    assert kind(run(frame("loss", [*noisy(60, 3.0), NAN, NAN]))) == "unknown"


def test_a_nan_in_the_second_record_is_there_from_the_start() -> None:
    assert kind(run(frame("loss", [10.9, NAN, NAN, NAN], first=0))) == "from_start"


def test_a_nan_in_the_second_record_of_a_log_that_begins_in_the_middle_tells_nothing_of_the_start() -> None:
    assert kind(run(frame("loss", [2.3, NAN, NAN], first=98))) == "unknown"
    assert kind(run(frame("loss", [2.3, NAN, NAN], first=100, every=100))) == "from_start"


def test_the_first_record_of_a_rare_interval_is_the_start_and_a_lone_late_one_is_not() -> None:
    assert kind(run(frame("loss", [NAN] * 4, first=100, every=100))) == "from_start"
    assert kind(run(frame("loss", [NAN] * 4, first=300, every=100))) == "unknown"
    assert kind(run(frame("loss", [NAN], first=140))) == "unknown"
    assert kind(run(frame("loss", [NAN], first=40))) == "from_start"


def test_a_resumed_attempt_begins_where_it_was_resumed() -> None:
    losses = frame("loss", [2.3, NAN, NAN], first=98)
    resumed = pl.DataFrame({"source": ["a"], "kind": ["resumed"], "step": [97], "line": [1]})
    assert kind(run_of("test", {"metrics": losses, "checkpoints": resumed})) == "from_start"


@pytest.mark.parametrize(
    ("losses", "since"),
    [
        ([8.0, 9e4, 2e5, 7e6, 5e6], 2),
        ([8.0, 7.0, 6.0, 17.0, 18.0, 19.0], 4),
        ([8.0, 7.0, 6.0, 16.0, 18.0, 19.0], None),  # at twice its first it is as good as untrained, and two are too few
        ([8.0, 90.0, 6.0, 5.0, 4.0], None),
        ([-8.0, -7.0, -6.0, -5.0], None),
    ],
)
def test_a_loss_that_stays_over_twice_its_first_puts_what_was_saved_since_then_in_doubt(
    monkeypatch: pytest.MonkeyPatch, losses: list[float], since: int | None
) -> None:
    sick = run(frame("loss", [*losses, NAN, NAN]))
    onset = nan_onset(sick)
    assert onset is not None
    assert lost_from(sick, onset) == since
    monkeypatch.setattr(nonfinite, "PIECE_RECORDS", 3)
    assert lost_from(sick, onset) == since


def test_no_checkpoint_of_a_loss_that_was_lost_from_the_start_is_clean() -> None:
    losses = frame("loss", [8.0, 9e4, *noisy(40, 4e6), NAN, NAN])
    saved = pl.DataFrame({"source": ["a"] * 3, "kind": ["saved"] * 3, "step": [1, 20, 40], "line": [1, 2, 3]})
    for steps, clean in (([1, 20, 40], 1), ([20, 40], None)):
        found = origin(run_of("test", {"metrics": losses, "checkpoints": saved.filter(pl.col("step").is_in(steps))}))
        assert (None if found.last_clean_checkpoint is None else found.last_clean_checkpoint.step) == clean


def scale(values: list[float], every: int = 1) -> Run:
    return run(frame("loss_scale", values, every=every))


def test_a_scale_that_falls_to_one_after_warmup_has_collapsed_from_its_first_fall() -> None:
    falls = [65536.0 / 2**i for i in range(17)]
    collapse = collapse_of(scale([65536.0] * 200 + falls[1:] + [1.0] * 10))
    assert collapse is not None
    assert collapse.step == 201


@pytest.mark.parametrize("top", [2.0**16, 2.0**24, 2.0**32])
def test_the_halvings_at_the_start_are_calibration(top: float) -> None:
    start = [top / 2**i for i in range(17)]
    assert collapse_of(scale(start + [start[-1]] * 300)) is None


@pytest.mark.parametrize(
    ("lost", "after", "name"),
    [
        ("+inf", 12, "loss_scale_collapse"),
        ("+inf", 13, "optimization_blowup"),
        ("nan", 1, "data_or_numerics"),
        ("nan", 0, "loss_scale_collapse"),
    ],
)
def test_a_scale_that_falls_for_infinite_norms_does_so_within_twelve_steps_of_the_first(
    lost: str, after: int, name: str
) -> None:
    bad = [math.inf if lost == "+inf" else NAN] * 40
    norms = frame("grad_norm", [*noisy(300, 1.0), *bad]).with_columns(
        value_class=pl.when(pl.col("step") > 300).then(pl.lit(lost)).otherwise(pl.lit("finite"))
    )
    falls = [65536.0 * 0.5**n for n in range(1, 17)]
    scales = frame("loss_scale", [65536.0] * (300 + after) + falls + [1.0] * 10)
    sick = run_of("test", {"metrics": pl.concat([norms, scales], how="diagonal")})
    assert kind(sick) == name


def test_a_scale_that_falls_and_rises_now_and_then_is_healthy() -> None:
    assert collapse_of(scale(([65536.0] * 60 + [32768.0] * 40) * 10)) is None


def test_a_static_scale_of_one_is_healthy() -> None:
    assert collapse_of(scale([1.0] * 300)) is None


def test_a_fall_long_before_the_collapse_is_not_its_beginning() -> None:
    values = [65536.0] * 100 + [32768.0] * 300 + [32768.0 / 2**i for i in range(1, 16)] + [1.0] * 5
    collapse = collapse_of(scale(values))
    assert collapse is not None
    assert collapse.step == 401


@pytest.mark.parametrize(("share", "expected"), [(0.01, False), (0.5, True)])
def test_skipped_updates_count_only_as_a_storm(share: float, expected: bool) -> None:
    rng = random.Random(4)
    total, counts = 0, []
    for _ in range(1000):
        total += rng.random() < share
        counts.append(float(total))
    assert (collapse_of(run(frame("skipped_steps_total", counts))) is not None) is expected


def overflow_events(steps: list[int], code: str) -> pl.DataFrame:
    return pl.DataFrame({"step": steps, "seq": steps, "line": steps}).with_columns(
        source=pl.lit("a"), code=pl.lit(code), text=pl.lit("overflow, step skipped")
    )


def test_overflow_lines_of_every_step_to_the_end_are_a_collapse_and_rare_ones_are_not() -> None:
    losses = frame("loss", [2.0] * 100, every=10)
    storm = run_of("a", {"metrics": losses, "events": overflow_events(list(range(600, 991)), "mytrainer.overflow")})
    rare = run_of("a", {"metrics": losses, "events": overflow_events([1, 2, 3, 4, 5, 300, 700], "mytrainer.overflow")})
    found = collapse_of(storm)
    assert found is not None
    assert found.step == 600
    assert collapse_of(rare) is None


@pytest.mark.parametrize(("first", "expected"), [(50, True), (49, False)])
def test_ten_skipped_updates_behind_the_record_of_step_fifty_are_a_storm(first: int, expected: bool) -> None:
    skips = frame("skipped_steps", [0.0, *[1.0] * 10], first=first)
    assert (collapse_of(run(skips)) is not None) is expected


@pytest.mark.parametrize(
    ("count", "steps", "expected"), [(3, True, True), (2, True, False), (10, False, True), (9, False, False)]
)
def test_three_words_of_a_scale_at_its_floor_are_believed_and_ten_that_name_no_step(
    count: int, steps: bool, expected: bool
) -> None:
    (code, *_) = sorted(telling("scale_at_floor"))
    said = overflow_events(list(range(100, 100 + count)), code)
    said = said if steps else said.with_columns(step=pl.lit(None, pl.Int64))
    later = overflow_events([900], "mytrainer.said").with_columns(text=pl.lit("saved"))
    events = pl.concat([said, later], how="diagonal_relaxed")
    losses = frame("loss", [2.0] * 100, every=10)
    assert (collapse_of(run_of("a", {"metrics": losses, "events": events})) is not None) is expected
