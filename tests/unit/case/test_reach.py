"""How far training came of what it planned: by its counters, its plans and its epochs, to the step."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, pi

import polars as pl
import pytest

from forensics.analyses.health import Health, health_of
from forensics.case.endings import Ending, Reach, ending
from forensics.case.progress import Counter, Ledger, Plan, is_close, ledger
from forensics.model import Confidence
from forensics.store.run import Run, run_of
from forensics.values import replace

BAR = Counter("a.log", 0, None, "train", "step", "", 99, 100, first=1, is_bar=True)
LINE = replace(BAR, is_bar=False)


@pytest.mark.parametrize(
    ("done", "every", "near"),
    [(95, 5, False), (95, 6, True), (94, 7, False), (100, 1, True), (101, 0, True), (100, 0, False), (96, 4, False)],
)
def test_a_plan_is_close_where_the_next_record_lies_beyond_it_and_a_twentieth_is_left(
    done: int, every: int, near: bool
) -> None:
    assert is_close(done, 100, every) is near


def test_a_loop_from_0_ends_one_before_its_plan_and_a_bar_at_it() -> None:
    assert (replace(LINE, first=0).last, replace(LINE, first=1).last, replace(BAR, first=0).last) == (99, 100, 100)
    assert replace(LINE, first=0, done=100).last == 100


@pytest.mark.parametrize(
    ("counter", "is_reached"),
    [
        (replace(BAR, done=100), True),
        (replace(BAR, done=99), False),
        (replace(BAR, done=99, every=9), False),
        (replace(LINE, done=99, every=1), False),
        (replace(LINE, done=99, every=2), True),
        (replace(LINE, done=99, first=0), True),
        (replace(LINE, done=None), False),
        (replace(LINE, done=140), True),
    ],
)
def test_a_counter_is_at_its_end_where_no_later_frame_is_to_come(counter: Counter, is_reached: bool) -> None:
    assert counter.is_reached is is_reached


def test_counters_are_of_the_last_attempt_of_their_own_file() -> None:
    old, new, other = BAR, replace(BAR, attempt=1), replace(BAR, source="b.log")
    found = Ledger((new, old, other, replace(new, what="eval"), replace(new, unit="batch")))
    assert found.of("train", "step") == (new, other)
    assert found.of("eval", "step") == (replace(new, what="eval"),)
    assert Ledger().of("train", "step") == ()


def test_a_plan_of_the_lines_comes_before_one_of_the_settings_and_of_several_the_largest() -> None:
    lines = tuple(replace(LINE, done=None, plan=plan) for plan in (30, 80, 50))
    settings = tuple(Plan(unit, count) for unit, count in (("step", 7), ("step", 900)))
    assert Ledger(lines, settings).planned("step") == 80
    assert Ledger((LINE,), settings).planned("step") == 900
    assert Ledger(lines, settings).planned("epoch") is None
    assert Ledger().planned("step") is None


def losses(
    steps: Sequence[int | None], *, epochs: Sequence[float | None] | None = None, attempt: int | None = 0,
    source: str = "a.log", value_class: str = "finite", name: str = "loss", seq: int = 0,
) -> pl.DataFrame:  # fmt: skip
    """One loss for each step; epochs beside them where they are told."""
    rows = pl.DataFrame({"step": steps}, schema={"step": pl.Int64}).with_columns(
        epoch=pl.Series(epochs or [None] * len(steps), dtype=pl.Float64), seq=pl.int_range(pl.len()) + seq,
        value=pl.lit(2.0), attempt=pl.lit(attempt, dtype=pl.Int32),
    )  # fmt: skip
    named = {"source": source, "name": name, "raw_name": name, "value_class": value_class}
    return rows.with_columns(pl.lit(v).alias(k) for k, v in named.items()).with_columns(line=pl.col("seq") + 1)


def plans(**told: float | str) -> pl.DataFrame:
    rows = [("c.json", "config", key, str(value)) for key, value in told.items()]
    return pl.DataFrame(rows, schema=["source", "family", "key", "value"], orient="row")


def run(*frames: pl.DataFrame, **tables: pl.DataFrame) -> Run:
    return run_of("made", {"metrics": pl.concat(frames)} | tables if frames else tables)


@pytest.mark.parametrize(
    ("steps", "plan", "is_reached"),
    [
        (range(1, 100), 100, True),  # 99: one before the plan
        (range(1, 99), 100, False),
        (range(99), 100, False),
        (range(0, 96, 5), 100, True),  # from 0 the next one, 100, lies beyond the last, 99
        (range(5, 96, 5), 100, False),  # from 5 the next one is the last
        (range(0, 91, 6), 100, False),  # a tenth is left
        (range(2, 97, 5), 100, False),
        (range(2, 98, 5), 100, True),
        (range(1, 141), 100, True),
    ],
)
def test_records_reach_a_plan_of_the_settings(steps: Sequence[int], plan: int, is_reached: bool) -> None:
    told = ending(run(losses(list(steps)), facts=plans(max_steps=plan))).reach
    assert told == Reach(steps[-1], plan, "step", is_reached)


def test_a_plan_of_steps_comes_before_one_of_epochs() -> None:
    made = losses(list(range(1, 61)), epochs=[at / 20 for at in range(1, 61)])
    both, epochs = plans(max_steps=100, num_train_epochs=3), plans(num_train_epochs=3)
    assert ending(run(made, facts=both)).reach == Reach(60, 100, "step", is_reached=False)
    assert ending(run(made, facts=epochs)).reach == Reach(3, 3, "epoch", is_reached=True)
    assert ending(run(losses([None] * 4, epochs=[2.5, 2.7, 2.9, 3.0]), facts=both)).reach.unit == "epoch"


@pytest.mark.parametrize(("last", "is_reached"), [(2.99, True), (2.986, True), (2.984, False)])
def test_a_share_of_an_epoch_is_an_end_up_to_half_a_percent_before_the_plan(last: float, is_reached: bool) -> None:
    made = run(losses([1, 2, 3], epochs=[0.5, 1.5, last]), facts=plans(num_train_epochs=3))
    assert ending(made).reach == Reach(2, 3, "epoch", is_reached)


@pytest.mark.parametrize(
    ("epochs", "is_reached"),
    [
        ([1, 1, 2, 2, 3, 3], True),
        ([1, 1, 2, 2, 3], False),
        ([1, 1, 2, 2, 3, 3, 3], True),
        ([0, 0, 1, 1, 2, 2], True),
        ([1, 1, 2, 2], False),
        ([0, 0, 1, 1], False),
        ([3, 3, 3], False),
    ],
)
def test_whole_epochs_end_where_the_last_of_them_holds_no_fewer_records(epochs: list[float], is_reached: bool) -> None:
    made = run(losses(list(range(len(epochs))), epochs=epochs), facts=plans(num_train_epochs=3))
    assert ending(made).reach == Reach(int(epochs[-1]), 3, "epoch", is_reached)


def test_an_epoch_of_any_file_that_is_full_is_enough() -> None:
    full = losses([1, 2, 3, 4], epochs=[1, 1, 2, 2])
    cut = losses([1, 2, 3], epochs=[1, 1, 2], source="b.log")
    assert ending(run(full, cut, facts=plans(num_train_epochs=2))).reach.is_reached
    assert not ending(run(cut, facts=plans(num_train_epochs=2))).reach.is_reached


def test_records_without_a_plan_reach_no_end_and_say_how_far_they_came() -> None:
    assert ending(run(losses([3, 5, 9]))).reach == Reach(9)
    assert ending(run(losses([None, None]))).reach == Reach()
    assert ending(run()).reach == Reach()


def cosine(steps: int, peak: float = 2e-4) -> list[float]:
    """A warm-up of a tenth, then a cosine to nothing."""
    warm, rest = steps // 10, steps - steps // 10
    return [
        *(peak * at / warm for at in range(warm)),
        *(peak * (1 + cos(pi * at / (rest - 1))) / 2 for at in range(rest)),
    ]


RATES = cosine(100)


@pytest.mark.parametrize(
    ("rates", "is_reached"),
    [
        (RATES, True),
        ([*RATES[:-1], 1e-4 * 2e-4], True),
        ([*RATES[:-1], 1.1e-4 * 2e-4], False),
        (RATES[:-5], False),
        ([*RATES, 0.0], False),  # trains on without a rate
        ([*RATES, *RATES], False),  # a schedule that comes again
        ([*RATES, *RATES[:-5]], False),
        ([2e-4 * (1 - at / 100) for at in range(101)], True),
        ([2e-4 * 0.9**at for at in range(100)], False),
        ([2e-4] * 70 + [2e-4 * (1 - at / 10) for at in range(11)], True),
        ([2e-4] * 70 + [2e-4 * (1 - at / 9) for at in range(10)], False),  # nine falls
    ],
)
def test_a_rate_that_decayed_to_nothing_with_the_last_step_shows_the_end(rates: list[float], is_reached: bool) -> None:
    steps = list(range(1, len(rates) + 1))
    rate = losses(steps, name="lr").with_columns(value=pl.Series(rates))
    assert ending(run(losses(steps), rate)).reach == Reach(steps[-1], None, "step", is_reached)
    assert not ending(run(losses([*steps, len(steps) + 1]), rate)).reach.is_reached
    assert not ending(run(losses(steps), rate, facts=plans(max_steps=len(steps) * 2))).reach.is_reached


def test_steps_are_those_of_the_last_attempt_of_the_file_that_came_furthest() -> None:
    again = losses([10, 20, 30], attempt=1, seq=50)
    assert ending(run(losses(list(range(90))), again, facts=plans(max_steps=100))).reach.done == 30
    two = run(losses([1, 2, 3]), losses([4, 5], source="b.log"), losses([4], source="c.log"))
    assert ending(two).reach.done == 5


def counters(*drawn: tuple[int | None, int], seq: int = 1000, **columns: str | int) -> pl.DataFrame:
    """Frames of one counter of training steps: how many are done of how many."""
    rows = pl.DataFrame(drawn, schema={"done": pl.Int64, "plan": pl.Int64}, orient="row")
    own = {"source": "a.log", "label": "train", "unit": "step", "per": "", "dialect": "made", **columns}
    return rows.with_columns(pl.lit(v).alias(k) for k, v in own.items()).with_columns(
        seq=pl.int_range(pl.len()) + seq, line=pl.int_range(pl.len()) + seq, attempt=pl.lit(0, dtype=pl.Int32)
    )


def reach(*frames: pl.DataFrame, steps: int = 40) -> Reach:
    return ending(run(losses(list(range(1, steps + 1))), progress=pl.concat(frames, how="diagonal"))).reach


def test_a_counter_that_began_again_is_no_count_of_the_run() -> None:
    assert reach(counters((1, 50), (25, 50), (50, 50))) == Reach(50, 50, "step", is_reached=True)
    assert reach(counters((1, 50), (50, 50), (1, 50), (50, 50))) == Reach(40)


def test_a_counter_at_its_end_decides_and_else_the_one_of_the_largest_plan() -> None:
    short, long = counters((1, 50), (50, 50)), counters((1, 80), (30, 80), seq=2000)
    assert reach(short, long) == Reach(50, 50, "step", is_reached=True)
    cut = counters((1, 50), (20, 50))
    assert reach(cut, long) == reach(long, cut) == Reach(30, 80)


@pytest.mark.parametrize(
    ("epoch", "batch", "is_reached"), [((3, 3), 20, True), ((3, 3), 9, False), ((2, 3), 20, False), ((3, 4), 20, False)]
)
def test_epochs_end_with_the_last_batch_of_the_last_of_them(
    epoch: tuple[int, int], batch: int, is_reached: bool
) -> None:
    batches = counters((1, 20), (batch, 20), unit="batch")
    assert reach(batches, counters((1, epoch[1]), epoch, unit="epoch")) == Reach(*epoch, "epoch", is_reached)


def test_batches_that_stand_long_before_their_epoch_are_not_of_it() -> None:
    batches, epochs = counters((1, 20), (20, 20), unit="batch", seq=10), counters((1, 3), (3, 3), unit="epoch", seq=12)
    assert not reach(batches, epochs).is_reached
    assert reach(counters((1, 20), (20, 20), unit="batch", seq=11), epochs).is_reached
    assert reach(counters((1, 20), (20, 20), unit="batch", seq=500), epochs).is_reached
    other = counters((1, 20), (20, 20), unit="batch", source="b.log")
    assert not reach(other, epochs).is_reached


@pytest.mark.parametrize(("passes", "is_reached"), [(3, True), (2, False)])
def test_batches_that_ran_once_for_each_epoch_end_the_last_one_wherever_its_line_is(
    passes: int, is_reached: bool
) -> None:
    batches = counters(*[(1, 20), (20, 20)] * passes, unit="batch", seq=10)
    epochs = counters((1, 3), (2, 3), (3, 3), unit="epoch", seq=40)
    assert reach(batches, epochs).is_reached is is_reached


def test_frames_of_one_place_are_one_counter_of_the_fuller_reader() -> None:
    named, plain = counters((5, 9), label="train"), counters((5, 9), label="", dialect="other")
    (one,) = ledger(run(progress=pl.concat([plain, named]))).counters
    assert (one.label, one.done, one.first, one.passes, one.every) == ("train", 5, 5, 1, 0)


def test_a_counter_tells_its_least_number_its_usual_distance_and_how_often_it_began() -> None:
    (one,) = ledger(run(progress=counters((4, 90), (8, 90), (12, 90), (2, 90), (6, 90), (9, 90)))).counters
    assert (one.first, one.every, one.passes, one.done, one.seq) == (2, 4, 2, 9, 1005)
    (drawn_again,) = ledger(run(progress=counters((4, 90), (4, 90), (4, 90), (8, 90)))).counters
    assert (drawn_again.every, drawn_again.passes) == (4, 1)


def test_a_counter_without_words_counts_training_where_records_or_the_plan_of_the_settings_say_so() -> None:
    unnamed = counters((1, 50), (20, 50), label="", per="it/s")
    far = counters((1, 50), (20, 50), label="", per="it/s", seq=0)
    made = losses(list(range(1, 9)))
    assert [c.what for c in ledger(run(made, progress=unnamed)).counters] == [""]
    assert [c.what for c in ledger(run(made, progress=far)).counters] == ["train"]
    assert [c.what for c in ledger(run(made, progress=unnamed, facts=plans(max_steps=50))).counters] == ["train"]
    assert [c.what for c in ledger(run(made, progress=unnamed, facts=plans(max_steps=51))).counters] == [""]
    assert [c.what for c in ledger(run(made, progress=counters((None, 50), label=""))).counters] == ["train"]


def test_settings_plan_whole_numbers_above_0() -> None:
    told = plans(max_steps=0, total_steps=2.5, train_steps=70, num_train_epochs="3", epochs=1e16)
    assert [(p.unit, p.count) for p in ledger(run(facts=told)).plans] == [("epoch", 3), ("step", 70)]


def exits(*told: tuple[str, str]) -> pl.DataFrame:
    return pl.DataFrame(
        [("m.yaml", "exit", k, v) for k, v in told], schema=["source", "family", "key", "value"], orient="row"
    )


@pytest.mark.parametrize(
    ("told", "status", "broken"),
    [
        ((("mlflow.status", '"FINISHED"'),), "FINISHED", False),
        ((("mlflow.status", "FAILED"),), "FAILED", True),
        ((("mlflow.status", "KILLED"),), "KILLED", True),
        ((("mlflow.status", "RUNNING"),), "RUNNING", False),
        ((("wandb.exit_code", "1"),), "exit code 1", True),
        ((("wandb.exit_code", "0"),), "", False),
        ((("mlflow.status", "RUNNING"), ("wandb.exit_code", "3")), "exit code 3", True),
    ],
)
def test_a_tracker_tells_how_a_run_ended(told: tuple[tuple[str, str], ...], status: str, broken: bool) -> None:
    found = ending(run(losses([1, 2, 3]), facts=exits(*told)))
    assert (found.status, found.is_broken, found.success is not None) == (status, broken, status == "FINISHED")


def test_an_exit_record_that_is_missing_is_told() -> None:
    assert ending(run(losses([1]), facts=exits(("wandb.exit_record", "false")))).lacks_exit
    assert not ending(run(losses([1]), facts=exits(("wandb.exit_record", "true")))).lacks_exit


DONE = pl.DataFrame({"source": ["a.log"], "seq": [0], "line": [900], "code": ["success"], "text": ["all done"]})


def health(*frames: pl.DataFrame, **tables: pl.DataFrame) -> Health:
    return health_of(run(*frames, **tables))


def test_health_needs_two_records_and_losses_at_three_steps() -> None:
    assert health(losses([1]), events=DONE).why.startswith("too few training metrics were recognised; the run says")
    two, three = health(losses([1, 2]), events=DONE), health(losses([1, 2, 3]), events=DONE)
    assert (two.confidence, three.confidence) == (None, Confidence.LOW)
    assert "a loss was printed at 2 steps only" in two.why
    assert "a loss was printed at 1 step only" in health(losses([1, 1]), events=DONE).why
    assert health(events=DONE).why.startswith("no training metrics were recognised; the run says")
    assert health().why == "no training metrics were recognised"


def test_one_loss_that_is_no_number_is_no_health_and_all_of_them_are_told_apart() -> None:
    bad = losses([4], value_class="nan", seq=3)
    assert health(losses([1, 2, 3]), bad, events=DONE) == Health(None, "1 of 4 losses are not finite")
    alone = losses([1, 2, 3, 4], value_class="nan")
    assert health(alone, events=DONE) == Health(None, "no finite loss was logged")


def test_losses_that_a_later_attempt_got_over_are_forgiven() -> None:
    bad, good = losses([1, 2, 3], value_class="nan"), losses([1, 2, 3, 4], attempt=1, seq=10)
    assert health(bad, good, events=DONE).confidence is Confidence.LOW
    again = losses([1, 2, 3], value_class="nan", attempt=1, seq=10)
    assert health(losses([1, 2, 3]), again, events=DONE).why == "3 of 6 losses are not finite"


def test_without_an_end_only_a_plan_that_was_reached_is_health() -> None:
    made = losses(list(range(1, 101)))
    reached = health(made, facts=plans(max_steps=100))
    assert (reached.confidence, "which is the end of its plan" in reached.why) == (Confidence.LOW, True)
    cut = health(made, facts=plans(max_steps=200))
    assert cut.confidence is None
    assert cut.why.startswith("the records end at step 100 of 200, without an end marker; ")
    lacking = health(made, facts=exits(("wandb.exit_record", "false")))
    assert "the records end at step 100, and its tracker wrote no exit record" in lacking.why
    assert health(losses([1, 2, 3], name="grad_norm")).why.endswith("without a loss, and no end marker")
    assert (
        health(losses([1, 2]), facts=plans(max_steps=2)).why
        == "a loss was printed at 2 steps only, too few to show a trend"
    )


def test_a_run_that_its_tracker_calls_broken_is_not_healthy_whatever_else_it_says() -> None:
    broken = health(losses([1, 2, 3]), events=DONE, facts=exits(("wandb.exit_code", "2")))
    assert broken == Health(None, "its tracker recorded exit code 2, and no error was found")
    assert Ending(Reach(), status="exit code 2").is_broken


def test_a_line_of_80_characters_is_quoted_whole_and_of_a_longer_one_its_last_words() -> None:
    def quoted(text: str) -> str:
        why = health(losses([1, 2, 3]), events=DONE.with_columns(text=pl.lit(text))).why
        return why.split("'")[1]

    assert quoted("x" * 80) == "x" * 80
    assert quoted("x" * 81) == "…" + "x" * 80
    assert quoted("x" * 50 + " " + "y" * 40) == "… " + "y" * 40


def _by_ones(first: int, last: int, epochs: int, every: int = 1) -> Run:
    steps = range(first, last + 1, every)
    columns = {"source": ["m.tsv"] * len(steps), "seq": range(len(steps)), "step": steps, "name": ["loss"] * len(steps)}
    metrics = pl.DataFrame(columns | {"raw_name": ["loss"] * len(steps), "value": [1.0] * len(steps)})
    facts = pl.DataFrame({"source": ["params.yaml"], "key": ["epochs"], "value": [str(epochs)], "family": ["config"]})
    return run_of("run", {"metrics": metrics, "facts": facts})


@pytest.mark.parametrize(
    ("first", "last", "every", "is_reached"),
    [(0, 39, 1, True), (1, 40, 1, True), (0, 38, 1, False), (0, 40, 1, False), (1, 39, 1, False), (2, 40, 1, False)],
)
def test_records_without_epochs_that_count_by_ones_to_a_plan_of_epochs_are_one_each(
    first: int, last: int, every: int, *, is_reached: bool
) -> None:
    assert ending(_by_ones(first, last, 40, every)).reach.is_reached is is_reached


def test_records_at_every_second_step_are_no_epochs() -> None:
    assert not ending(_by_ones(1, 41, 41, 2)).reach.is_reached
