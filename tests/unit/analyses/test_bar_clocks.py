"""Progress bars as clocks: the times behind each kind of mean, and what no clock is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from forensics.analyses.pace.bars import bars
from forensics.pipeline import ingest_run
from forensics.rules.slowdown.changes import step_time_level_shift

_STEPS = 90


def slower(first: int = 50) -> list[float]:
    """Seconds of each step: three times as long from `first` on."""
    return [0.06 if at >= first else 0.02 for at in range(1, _STEPS + 1)]


def shown(label: str, done: int, total: int, elapsed: float, rate: str) -> str:
    clock = f"{int(elapsed) // 3600}:{int(elapsed) // 60 % 60:02d}:{int(elapsed) % 60:02d}"
    return f"{label}{done * 100 // total:3d}%|####| {done}/{total} [{clock}<00:10, {rate}]"


def forgetting(times: Sequence[float], label: str = "", total: int = _STEPS) -> Iterator[str]:
    """Draw as tqdm does: a new mean after a tenth of a second, and the old one again for new words in between."""
    steps = seconds = since = 0.0
    done_before, elapsed, rate = 0, 0.0, "?it/s"
    for done, took in enumerate(times, 1):
        since, elapsed = since + took, elapsed + took
        if since >= 0.1:
            steps = 0.3 * (done - done_before) + 0.7 * steps
            seconds = 0.3 * since + 0.7 * seconds
            since, done_before, rate = 0.0, done, f"{steps / seconds:5.2f}it/s"
            yield shown(label, done, total, elapsed, rate)
        yield shown(label, done, total, elapsed, f"{rate}, loss={3 - done / 100:.3f}")


def whole_means(times: Sequence[float], label: str = "") -> Iterator[str]:
    for done, elapsed in enumerate(np.cumsum(times), 1):
        yield shown(label, done, len(times), float(elapsed), f"{done / elapsed:5.2f}it/s")


def keras(times: Sequence[float], batches: int = 30) -> Iterator[str]:
    for epoch in range(len(times) // batches):
        own = times[epoch * batches : (epoch + 1) * batches]
        yield f"Epoch {epoch + 1}/{len(times) // batches}"
        for done in range(2, batches + 1):
            mean = 1000 * sum(own[1:done]) / (done - 1)
            yield f"{done}/{batches} ━━━━━━━━━━━━━━━━━━━━ 1s {mean:.0f}ms/step - loss: {3 - done / 100:.4f}"


def clocked(place: Path, lines: Iterator[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    (place / "train.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [(rows["at"].to_numpy(), rows["pace"].to_numpy()) for rows, _ in bars(ingest_run(place))]


@pytest.mark.parametrize("draw", [forgetting, whole_means, keras], ids=["forgetting", "since-begin", "keras"])
def test_the_times_behind_a_mean_change_where_the_steps_did(
    draw: Callable[[Sequence[float]], Iterator[str]],
    tmp_path: Path,
) -> None:
    [(at, pace)] = clocked(tmp_path, draw(slower()))
    assert np.median(pace[at < 45]) == pytest.approx(0.02, rel=0.1)
    assert np.median(pace[at > 55]) == pytest.approx(0.06, rel=0.1)
    [hit] = step_time_level_shift(ingest_run(tmp_path))
    assert hit.onset.step is not None
    assert abs(hit.onset.step - 50) <= 3


def test_a_bar_of_long_steps_is_timed_by_the_time_since_it_began(tmp_path: Path) -> None:
    hours = [180.0 if at > 50 else 60.0 for at in range(1, _STEPS + 1)]
    drawn = (
        shown("", done, _STEPS, float(sum(hours[:done])), "61.00s/it") for done in range(1, _STEPS + 1)
    )  # a mean that says nothing
    [(at, pace)] = clocked(tmp_path, drawn)
    assert (pace[at <= 50].max(), pace[at > 50].min()) == (60.0, 180.0)


@pytest.mark.parametrize("label", ["Validation: ", "Map: ", "Generating samples: ", "Loading shards: "])
def test_a_bar_that_counts_something_else_is_no_clock(label: str, tmp_path: Path) -> None:
    assert not clocked(tmp_path, forgetting(slower(), label))


def test_a_mean_since_the_begin_that_goes_on_from_a_checkpoint_is_no_clock(tmp_path: Path) -> None:
    assert all(not len(at) for at, _ in clocked(tmp_path, iter([*whole_means(slower())][40:])))


def epoch_lines(times: Sequence[float]) -> Iterator[str]:
    for epoch, took in enumerate(times, 1):
        yield f"Epoch {epoch}/{len(times)}"
        yield f"5/5 - {5 * took:.0f}s - {1000 * took:.0f}ms/step - loss: {3 - epoch / 100:.4f}"


def test_a_line_for_each_epoch_is_a_clock_of_epochs_where_records_count_epochs(tmp_path: Path) -> None:
    [(at, pace)] = clocked(tmp_path, epoch_lines([0.04] * 18 + [0.11] * 10))
    assert (int(at[-1]), float(pace[-1])) == (28, pytest.approx(0.11))
    [hit] = step_time_level_shift(ingest_run(tmp_path))
    assert hit.onset.step == 19


def test_a_short_bar_that_forgets_is_not_taken_for_a_mean_since_it_began(tmp_path: Path) -> None:
    times = [0.06 + 0.002 * (at % 3) for at in range(40)]
    [(_, pace)] = clocked(tmp_path, forgetting([*times, 0.24, 0.06]))
    assert np.median(pace) == pytest.approx(0.062, rel=0.1)
    assert pace.max() < 0.3


def test_a_mean_that_forgets_of_a_steady_run_of_minutes_is_none_since_it_began(tmp_path: Path) -> None:
    times = 0.245 * (1 + np.abs(0.03 * np.random.default_rng(0).standard_normal(60)))
    ends = np.cumsum(20 * times)
    drawn = (
        shown("", 20 * at, 2680, float(end), f"{1 / took:.2f}it/s")
        for at, (end, took) in enumerate(zip(ends, times, strict=True), 1)
    )
    [(_, pace)] = clocked(tmp_path, drawn)
    assert np.log(pace).std() < 0.2
