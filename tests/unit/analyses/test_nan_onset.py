"""Where training went non-finite: what counts, what does not, and which place is named."""

from __future__ import annotations

import math
from collections.abc import Iterable

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.analyses.nan.onset import nan_onset
from forensics.analyses.nan.series import Status
from forensics.model import Finding, Severity
from forensics.pipeline import ingest_bytes
from forensics.registry import load
from forensics.store.run import Run, run_of

NAN, INF = math.nan, math.inf
Points = Iterable[tuple[int, float]]


def rows(name: str, points: Points, raw: str | None = None, **columns: object) -> pl.DataFrame:
    """Metric rows of one series; the record's number is its step."""
    steps, values = zip(*points, strict=True)
    frame = pl.DataFrame({"step": steps, "seq": steps, "line": steps, "value": values}, strict=False)
    fixed = {"source": "run.log", "name": name, "raw_name": raw or name, **columns}
    return frame.with_columns(pl.col("value").cast(pl.Float64), **{k: pl.lit(v) for k, v in fixed.items()})


def run(*frames: pl.DataFrame, events: pl.DataFrame | None = None) -> Run:
    tables = {"metrics": pl.concat(frames, how="diagonal")} if frames else {}
    return run_of("test", tables if events is None else {**tables, "events": events})


def events(*lines: tuple[int, int | None, str], source: str = "run.log", code: str = "mytrainer.nan") -> pl.DataFrame:
    return pl.DataFrame(
        [
            {"source": source, "seq": n, "line": n, "step": step, "code": code, "text": text, "attrs": "{}"}
            for n, step, text in lines
        ],
        schema_overrides={"step": pl.Int64},
    )


def steady(last: int, first: int = 1, value: float = 2.0) -> list[tuple[int, float]]:
    return [(s, value + 0.01 * (s % 3)) for s in range(first, last + 1)]


def found(run: Run) -> list[Finding]:
    rules = [r for r in load("rules").rules if r.id.startswith("NAN")]
    return [f for r in rules for f in r(run)]


def loud(run: Run) -> list[Finding]:
    return [f for f in found(run) if f.severity is not Severity.INFO]


def test_the_first_nan_that_stays_is_the_onset_and_the_record_before_it_the_last_clean_one() -> None:
    onset = nan_onset(run(rows("loss", [*steady(40), *((s, NAN) for s in range(41, 60))])))
    assert onset is not None
    assert (onset.status, onset.step, onset.clean_step) == (Status.FAILED, 41, 40)


@pytest.mark.parametrize(("bad_step", "clean_step"), [(41, 40), (1, 0), (0, None)])
def test_of_micro_batches_of_one_step_the_clean_ones_make_the_step_before_the_last_clean_one(
    bad_step: int, clean_step: int | None
) -> None:
    micro = rows("loss", [(bad_step, 2.0), (bad_step, 2.1), (bad_step, NAN), (bad_step + 1, NAN)])
    onset = nan_onset(run(micro.with_columns(seq=pl.int_range(1, 5))))
    assert onset is not None
    assert (onset.step, onset.clean_step) == (bad_step, clean_step)


@pytest.mark.parametrize(("name", "severity"), [("loss", Severity.WARNING), ("grad_norm", Severity.INFO)])
def test_one_update_without_a_number_warns_where_the_loss_itself_was_none(name: str, severity: Severity) -> None:
    sick = run(rows("loss", steady(200)), rows(name, [*steady(40), (41, NAN), *steady(200, first=42)], raw=f"{name}_"))
    assert {f.severity for f in found(sick)} == {severity}


def test_a_loss_that_is_nan_every_tenth_step_is_a_warning() -> None:
    sick = run(rows("loss", [(s, NAN if s % 10 == 5 else 2.0) for s in range(1, 101)]))
    assert {f.severity for f in loud(sick)} == {Severity.WARNING}


def test_an_infinite_gradient_norm_while_the_loss_scaler_calibrates_is_no_failure() -> None:
    norms = [(1, INF), (2, INF), *steady(100, first=3, value=0.8)]
    assert not loud(run(rows("loss", steady(100)), rows("grad_norm", norms)))


def test_the_calibration_of_the_scaler_does_not_become_the_onset_of_a_later_failure() -> None:
    norms = [(1, INF), (2, INF), *steady(80, first=3, value=0.8), *((s, NAN) for s in range(81, 100))]
    losses = [*steady(81), *((s, NAN) for s in range(82, 100))]
    onset = nan_onset(run(rows("loss", losses), rows("grad_norm", norms)))
    assert onset is not None
    assert (onset.step, onset.metric, onset.clean_step) == (81, "grad_norm", 80)


@pytest.mark.parametrize("name", ["AP", "mAP", "reward_std", "step_time_s", "mfu", "loss_scale_std", "val_loss/table"])
def test_numbers_that_are_nan_by_design_are_not_watched(name: str) -> None:
    assert not found(run(rows("loss", steady(30)), rows(name, [(s, NAN) for s in range(1, 31)])))


def test_a_part_of_the_loss_that_was_never_a_number_is_no_failure_beside_a_finite_loss() -> None:
    assert not found(run(rows("loss", steady(30)), rows("aux_loss", [(s, NAN) for s in range(1, 31)])))


def test_a_gradient_norm_that_is_never_computed_is_no_failure_beside_a_finite_loss() -> None:
    assert not found(run(rows("loss", steady(30)), rows("grad_norm", [(s, NAN) for s in range(1, 31)])))


def test_a_masked_evaluation_is_no_failure_of_training() -> None:
    assert not found(run(rows("loss", steady(30)), rows("eval_loss", [(10, 2.0), (20, NAN), (30, NAN)])))


def test_a_last_summary_line_with_a_finite_average_does_not_heal_a_lost_run() -> None:
    losses = rows("loss", [*steady(20), *((s, NAN) for s in range(21, 31))], raw="loss")
    summary = rows("loss", [(30, 1.7)], raw="train_loss")
    onset = nan_onset(run(losses, summary))
    assert onset is not None
    assert (onset.status, onset.step) == (Status.FAILED, 21)


def test_a_later_healthy_attempt_of_the_same_file_turns_the_failure_into_information() -> None:
    first = rows("loss", [*steady(20), *((s, NAN) for s in range(21, 31))], attempt=0)
    again = rows("loss", steady(90, first=11), attempt=1).with_columns(seq=pl.col("seq") + 100)
    assert not loud(run(first, again))


def test_the_last_attempt_is_judged_when_both_are_lost() -> None:
    first = rows("loss", [*steady(20), *((s, NAN) for s in range(21, 31))], attempt=0)
    again = rows("loss", [*steady(50, first=11), (51, NAN), (52, NAN)], attempt=1).with_columns(
        seq=pl.col("seq") + 100, line=pl.col("line") + 100
    )
    onset = nan_onset(run(first, again))
    assert onset is not None
    assert (onset.status, onset.step) == (Status.FAILED, 51)


def test_a_detectors_line_between_two_printed_losses_gives_the_exact_step() -> None:
    losses = rows("loss", [(10, 2.0), (20, 2.0), (30, 2.0), (40, NAN), (50, NAN)])
    onset = nan_onset(run(losses, events=events((33, 34, "the loss is not finite"))))
    assert onset is not None
    assert (onset.step, onset.clean_step) == (34, 30)


def test_the_step_that_a_record_names_within_its_epoch_is_that_of_the_record() -> None:
    """A line `epoch: 3 step: 7, loss is nan` is the record of step 27, and its words count within the epoch."""
    losses = rows("loss", [*steady(26), *((s, NAN) for s in range(27, 31))])
    said = events((27, None, "epoch: 3 step: 7, loss is nan"), code="loss-nonfinite-message").with_columns(
        attrs=pl.lit('{"shape": "nan", "role": "symptom"}')
    )
    onset = nan_onset(run(losses, events=said))
    assert onset is not None
    assert onset.step == 27
    beside = said.with_columns(line=pl.lit(100))
    elsewhere = nan_onset(run(losses, events=beside))
    assert elsewhere is not None
    assert {c.step for c in (elsewhere.first, *elsewhere.others)} == {7, 27}


def test_a_line_that_a_bar_shares_with_a_detector_gives_the_step_of_the_words() -> None:
    """A frame `64/133` is not yet ended by a newline when `step 67: grad norm is nan` is printed behind it."""
    before = rows("loss", [(s, 2.0) for s in range(2, 65, 2)])
    norms = rows("grad_norm", [(s, NAN) for s in range(67, 90)]).with_columns(pl.col("line") - 3)
    said = events((64, None, "step 67: grad norm is nan"), code="loss-nonfinite-message").with_columns(
        attrs=pl.lit('{"shape": "nan", "role": "symptom"}')
    )
    onset = nan_onset(run(before, norms, events=said))
    assert onset is not None
    assert {c.step for c in (onset.first, *onset.others)} == {67}


def test_a_detector_that_fired_once_before_training_went_on_warns_of_the_batch_and_of_no_failure() -> None:
    found = loud(run(rows("loss", steady(60)), events=events((20, 21, "skipping a step"))))
    assert [(f.severity.value, f.onset.step) for f in found] == [("warning", 21)]


@pytest.mark.parametrize(("losses", "status"), [(120, Status.TRANSIENT), (119, Status.INTERMITTENT)])
def test_a_detector_that_fired_at_one_of_twenty_records_at_most_met_a_stumble(losses: int, status: Status) -> None:
    said = events(*((10 * n, 10 * n, "the loss is not finite") for n in range(1, 7)))
    onset = nan_onset(run(rows("loss", steady(losses)), events=said))
    assert onset is not None
    assert onset.status is status


def test_a_gradient_that_was_nan_one_step_before_the_detector_is_the_onset() -> None:
    onset = nan_onset(
        run(
            rows("loss", steady(40)),
            rows("grad_norm", [*steady(39, value=0.9), (40, NAN)]),
            events=events((41, 41, "the loss is not finite"), (42, 42, "the loss is not finite")),
        )
    )
    assert onset is not None
    assert (onset.step, onset.metric, onset.clean_step) == (40, "grad_norm", 39)


def test_a_sampler_that_met_nan_probabilities_takes_the_step_after_the_last_finite_record() -> None:
    died = events((30, None, "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0"), code="x")
    died = died.with_columns(attrs=pl.lit('{"role":"symptom","shape":"nan"}'))
    onset = nan_onset(run(rows("loss", steady(13)), events=died))
    assert onset is not None
    assert (onset.status, onset.step) == (Status.FAILED, 14)


@pytest.mark.parametrize(("counted", "step"), [(37, 38), (30, 40), (45, 40)])
def test_a_bar_that_counted_on_says_which_step_words_without_one_are_of(counted: int, step: int) -> None:
    lines = list[str]()
    for at in range(1, counted + 1):
        lines.append(f" {at / 9:.0f}%|##        | {at}/900 [{at // 60:02}:{at % 60:02}<14:59,  1.00s/it]")
        lines += [f"{{'loss': {2.4 - at / 100:.4f}, 'learning_rate': 1e-05, 'epoch': {at / 900:.2f}}}"] * (
            at % 10 == 0 and at <= 30
        )
    onset = nan_onset(ingest_bytes("train.log", "\n".join([*lines, "FloatingPointError: loss is NaN\n"]).encode()))
    assert onset is not None
    assert (onset.step, onset.clean_step) == (step, 30)


def test_words_in_a_file_without_steps_follow_the_last_loss_of_their_process() -> None:
    said = events((1, None, "Loss is nan, stopping training"), source="logs/0/stderr.log")
    numbers = rows("loss", [(s, 2.0 + 0.01 * (s % 3)) for s in range(2, 42, 2)], source="logs/0/stdout.log")
    onset = nan_onset(run(numbers, events=said))
    assert onset is not None
    assert (onset.step, onset.clean_step, onset.n_before) == (42, 40, 20)


def test_words_that_are_dated_so_beat_a_number_that_has_no_step() -> None:
    said = events((1, None, "Loss is nan, stopping training"), source="logs/0/stderr.log")
    numbers = rows("loss", steady(40), source="logs/0/stdout.log")
    bare = rows("loss", [(1, NAN)], "Loss", source="logs/0/stderr.log").with_columns(step=None)
    onset = nan_onset(run(numbers, bare, events=said))
    assert onset is not None
    assert onset.step == 41


def test_words_of_another_time_are_not_dated_by_what_came_after_them() -> None:
    said = events((1, None, "Loss is nan, stopping training"), source="err.log").with_columns(t_ns=10**18)
    times = pl.col("step").cast(pl.Int64) * 10**10 + 10**18 - 10**11
    onset = nan_onset(run(rows("loss", steady(40), source="out.log").with_columns(t_ns=times), events=said))
    assert onset is not None
    assert onset.step == 11


def test_a_loss_that_is_printed_in_every_tenth_record_is_not_gone_in_between() -> None:
    counts = rows("skipped_steps", [(s, 0.0) for s in range(1, 121)])
    assert found(run(rows("loss", [(s, 2.0 + 0.01 * (s % 3)) for s in range(1, 121, 10)]), counts)) == []
    gone = run(rows("loss", [(s, 2.0 + 0.01 * (s % 3)) for s in range(1, 91, 10)]), counts)
    assert {f.rule for f in loud(gone)} >= {"NAN009"}


def test_a_loss_that_is_nan_in_the_very_first_record_is_a_mean_of_nothing_and_later_a_warning() -> None:
    first = found(run(rows("loss", [(1, NAN), *steady(40, 2)])))
    assert {(f.rule, f.severity) for f in first} == {("NAN001", Severity.INFO)}
    later = found(run(rows("loss", [*steady(20), (21, NAN), *steady(60, 22)])))
    assert Severity.WARNING in {f.severity for f in later}


def test_a_loss_that_is_nan_at_first_and_finite_for_longer_ever_since_is_not_lost() -> None:
    found_again = nan_onset(run(rows("loss", [(1, NAN), (2, NAN), *steady(8, 3)])))
    assert found_again is not None
    assert found_again.status is Status.INTERMITTENT
    hardly = nan_onset(run(rows("loss", [*((s, NAN) for s in range(1, 6)), *steady(8, 6)])))
    assert hardly is not None
    assert hardly.status is Status.FAILED


def test_zeros_after_a_plunge_are_a_hidden_nan_but_a_slow_fall_to_zero_is_not() -> None:
    plunge = run(rows("loss", [*steady(20), *((s, 0.0) for s in range(21, 31))]))
    assert {f.cause for f in loud(plunge)} == {"filtered_by_writer"}
    slow = run(rows("loss", [*((s, 2.0 / s**2) for s in range(1, 40)), *((s, 0.0) for s in range(40, 60))]))
    assert not found(slow)


def test_zeros_of_reinforcement_learning_are_no_failure() -> None:
    losses = rows("loss", [*steady(20), *((s, 0.0) for s in range(21, 31))])
    assert not found(run(losses, rows("reward", steady(30))))


def test_the_rank_that_went_first_is_the_culprit() -> None:
    early = rows("loss", [*steady(20), *((s, NAN) for s in range(21, 31))], source="r3.log", rank=3)
    late = rows("loss", [*steady(21), *((s, NAN) for s in range(22, 31))], source="r0.log", rank=0)
    ranked = next(f for f in found(run(late, early)) if f.rule == "NAN010")
    assert (ranked.culprits, ranked.onset.step) == ((3,), 21)


def test_a_forward_traceback_of_anomaly_mode_alone_says_nothing_of_nan() -> None:
    said = events(
        (9, None, "Error detected in IndexPutBackward0. Traceback of forward call"), code="anomaly-forward-op"
    )
    said = said.with_columns(attrs=pl.lit('{"role":"root","shape":"nan"}'))
    assert not found(run(rows("loss", steady(5)), events=said))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.one_of(st.floats(0.01, 20), st.sampled_from([NAN, INF, -INF])), min_size=1, max_size=60),
    st.lists(st.one_of(st.none(), st.integers(0, 50)), min_size=1, max_size=60),
)
def test_any_series_is_judged_without_an_error_and_every_onset_names_a_bad_row(
    values: list[float], steps: list[int | None]
) -> None:
    n = min(len(values), len(steps))
    frame = pl.DataFrame(
        {"source": "a", "seq": range(n), "name": "loss", "raw_name": "loss", "value": values[:n], "step": steps[:n]},
        schema_overrides={"step": pl.Int64, "value": pl.Float64},
        strict=False,
    )
    sick = run_of("any", {"metrics": frame})
    onset = nan_onset(sick)
    assert (onset is None) == all(math.isfinite(v) for v in values[:n])
    if onset is not None:
        assert not math.isfinite(onset.first.row["value"])
        assert onset.clean is None or math.isfinite(onset.clean["value"])
    found(sick)


def test_a_progress_bar_that_counts_otherwise_does_not_move_the_onset_of_another_store() -> None:
    table = rows("loss", [*steady(134), *((s, NAN) for s in range(135, 150))], source="metrics.csv")
    bar = rows("loss", [(100, NAN)], source="train.log")
    onset = nan_onset(run(table, bar))
    assert onset is not None
    assert (onset.step, onset.clean_step) == (135, 134)


def test_a_part_that_was_finite_for_long_is_not_nan_from_the_start_although_no_whole_loss_is_printed() -> None:
    part = rows("train_gen_loss", [*steady(12), *((s, NAN) for s in range(13, 21))])
    other = rows("train_disc_loss", [*steady(12), *((s, NAN) for s in range(13, 21))])
    assert "NAN004" not in {f.rule for f in found(run(part, other))}


def test_a_detector_in_a_file_without_losses_fired_at_the_step_that_the_run_had_reached() -> None:
    rates = rows("lr", steady(60, value=0.1), source="train.log")
    jobs = events((9, None, "NaN in affine4"), source="log/train.60.log")
    onset = nan_onset(run(rates, events=jobs))
    assert onset is not None
    assert onset.step == 60
    told = nan_onset(run(rates, events=events((9, 7, "NaN in affine4"), source="log/train.60.log")))
    assert told is not None
    assert told.step == 7


@pytest.mark.parametrize(
    ("bad", "value", "status"),
    [
        ({20, 60}, INF, Status.TRANSIENT),
        ({20, 60}, NAN, Status.FAILED),
        ({17, 18, 19, 60}, INF, Status.FAILED),
        ({20, 59, 60}, INF, Status.FAILED),
    ],
    ids=["two of sixty", "no overflow", "more than a twentieth", "the last two"],
)
def test_an_overflow_in_the_last_record_is_one_of_those_that_passed_while_the_loss_is_finite(
    bad: set[int], value: float, status: Status
) -> None:
    norms = [(s, value if s in bad else one) for s, one in steady(60, value=0.5)]
    onset = nan_onset(run(rows("loss", steady(60)), rows("grad_norm", norms)))
    assert onset is not None
    assert onset.status is status


@pytest.mark.parametrize(("last", "step"), [(NAN, 40), (1.0, 41)])
def test_a_gradient_that_is_bad_in_its_last_record_only_belongs_to_the_loss_that_is_lost_after_it(
    last: float, step: int
) -> None:
    norms = [*((s, 1.0) for s in range(10, 40, 10)), (40, last)]
    onset = nan_onset(run(rows("loss", [*steady(40), *((s, NAN) for s in range(41, 60))]), rows("grad_norm", norms)))
    assert onset is not None
    assert onset.step == step


@pytest.mark.parametrize(
    ("bad", "step"),
    [
        (range(4, 101, 4), 4),
        ((*range(4, 81, 4), 98, 100), 4),
        ((*range(4, 81, 4), 97, 99, 100), 97),
        ((*range(4, 81, 4), 100, 101), 100),
    ],
    ids=["every fourth record", "two near a finite end", "three near it", "two at the very end"],
)
def test_a_loss_that_is_bad_all_along_is_dated_by_its_first_bad_record(bad: Iterable[int], step: int) -> None:
    every = {*bad}
    onset = nan_onset(run(rows("loss", [(s, NAN if s in every else 2 + 0.01 * (s % 3)) for s in range(1, 102)])))
    assert onset is not None
    assert (onset.status, onset.step) == (Status.FAILED, step)


def test_a_loss_that_ends_finite_is_never_said_to_stay_lost() -> None:
    for last, words in ((100, "alternates between finite"), (101, "does not become finite again")):
        points = [(s, NAN if s % 4 == 0 or s >= last > 100 else 2.0) for s in range(1, 102)]
        (finding,) = [f for f in found(run(rows("loss", points))) if f.rule == "NAN001"]
        assert words in finding.because


@pytest.mark.parametrize(("whole", "nans", "told"), [("box_loss", 3, True), ("box_loss", 2, False), ("loss", 3, False)])
def test_a_part_that_is_lost_is_a_failure_where_another_part_stands_for_the_loss(
    whole: str, nans: int, *, told: bool
) -> None:
    cls = [*steady(20), *((s, NAN) for s in range(21, 21 + nans))]
    both = run(rows("loss", steady(20 + nans), raw=whole), rows("cls_loss", cls))
    assert bool(loud(both)) is told
