"""Counters that any log may draw, whatever its trainer: bars of tqdm, Rich, fastai and Keras, and sentences of a plan.

They give no metrics: each match is a row of the table `progress`, which says how far something came and of how much.
Whether it counts training, an evaluation, a data set or a download is told by the words before the bar and by the unit
of its rate.
"""

from __future__ import annotations

from functools import cache

import polars as pl

from forensics.dialects.counters import kind_of, plan_names
from forensics.dialects.spec import Line
from forensics.dialects.trainers.tables import ANY_LOG
from forensics.patterns import lazily
from forensics.values import replace

#: The number behind a name of a plan: `Total optimization steps = 3,000`, `max_steps: 500`.
_IS = {
    unit: rf"['\"]?\s*(?:[:=]|is|to)\s*(?P<{group}>\d[\d,]*)\b"
    for unit, group in (("step", "max_steps"), ("epoch", "epochs"))
}
_BARS = ANY_LOG["counters"]
_PLANS = tuple(Line("progress", n.needle, rf"(?i)\b{n.pattern}{_IS[n.unit]}") for n in plan_names() if n.needle)
COUNTERS = replace(_BARS, lines=_BARS.lines + _PLANS)

_BAR = lazily(COUNTERS.lines[0].pattern)
_PROGRESS = {
    "seq": pl.Int64(), "line": pl.Int64(), "byte": pl.Int64(), "t_ns": pl.Int64(), "rank": pl.Int64(),
    "attempt": pl.Int32(), "label": pl.String(), "unit": pl.String(), "done": pl.Int64(), "plan": pl.Int64(),
    "elapsed_s": pl.Float64(), "mean_s": pl.Float64(), "per": pl.String(), "dialect": pl.String(),
}  # fmt: skip
#: What a bar's rate is in seconds: `s/it` of tqdm, `ms/step` of Keras; `it/s` is one over it.
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
#: Of one counter of a piece of a log so many rows are kept, beside its ends and the places where it starts again.
_EVENLY = 256
#: No bar has more words before it that say what it counts: Ultralytics puts a path and five numbers between.
_LABEL_CHARS = 160
_WHAT = ("label", "unit", "plan", "rank")


def sparse(found: pl.DataFrame) -> pl.DataFrame:
    """Leave frames out of a crowd of bars: a match costs 5 µs, and a bar is drawn ten times a second.

    What is kept: some evenly, the ends of each run of frames, whole bars, and the frame after a whole one.
    """
    if found.height <= 2 * _EVENLY:
        return found
    drawn = found["text"].str.contains("%|", literal=True)
    count = int(drawn.sum())
    if count <= 2 * _EVENLY:
        return found
    whole = found["text"].str.contains("100%|", literal=True)
    edge = ~drawn.shift(1, fill_value=False) | ~drawn.shift(-1, fill_value=False)
    evenly = drawn.cast(pl.Int64).cum_sum() % (count // _EVENLY) == 0
    return found.filter(~drawn | edge | whole | whole.shift(1, fill_value=False) | evenly)


def is_of_data(line: str) -> bool:
    """Whether a line is a bar that counts a data set, files or samples that are drawn, and can be no training step."""
    found = _BAR.match(line) if "%|" in line else None
    return found is not None and kind_of(found["label"], found["per"] or "") in {"data", "download", "sampling"}


@cache
def empty() -> pl.DataFrame:
    """The table without rows."""
    return pl.DataFrame(schema=_PROGRESS)


def rows_of(frame: pl.DataFrame, dialect: str) -> pl.DataFrame:
    """Counters with a plan in assembled matches: steps of a run, batches of an epoch, and epochs, each a row."""
    parts = [
        _counter(frame, unit, done, plan)
        for unit, done, plan in (
            ("step", "step", "max_steps"),
            ("batch", "iter", "iters"),
            ("epoch", "epoch", "epochs"),
        )
        if frame[plan].null_count() < frame.height
    ]
    if not parts:
        return empty()
    said = pl.col("said").str
    label = said.json_path_match("$.label").fill_null("").str.strip_chars().str.tail(_LABEL_CHARS)
    rows = _thinned(pl.concat(parts).with_columns(label=label))
    elapsed = said.json_path_match("$.elapsed").str.split(":").list
    clock = (elapsed.get(-1, null_on_oob=True), elapsed.get(-2, null_on_oob=True), elapsed.get(-3, null_on_oob=True))
    seconds = pl.sum_horizontal(part.cast(pl.Float64, strict=False) * 60**power for power, part in enumerate(clock))
    per = said.json_path_match("$.per")
    speed = said.json_path_match("$.speed").cast(pl.Float64, strict=False)
    scale = per.str.extract("^([a-z]+)/").replace_strict(_SECONDS, default=None, return_dtype=pl.Float64)
    inverse = pl.when(per.str.ends_with("/s") & (speed > 0)).then(1 / speed)
    rows = rows.with_columns(
        elapsed_s=pl.when(clock[0].is_not_null()).then(seconds),
        mean_s=pl.coalesce(speed * scale, inverse),
        per=per.fill_null(""),
        dialect=pl.lit(dialect),
    )
    return rows.select(*_PROGRESS).cast(_PROGRESS)  # type: ignore[arg-type] # a mapping of names to types


def _counter(frame: pl.DataFrame, unit: str, done: str, plan: str) -> pl.DataFrame:
    return frame.filter(pl.col(plan).is_not_null() & (pl.col(plan) > 0)).select(
        "seq",
        "line",
        "byte",
        "t_ns",
        "rank",
        "attempt",
        "said",
        unit=pl.lit(unit),
        done=pl.col(done).cast(pl.Int64, strict=False),
        plan=pl.col(plan).cast(pl.Int64),
    )


def _thinned(rows: pl.DataFrame) -> pl.DataFrame:
    """The ends of each counter, the frames before and after it starts again, and some evenly between."""
    at, many = pl.int_range(pl.len()).over(_WHAT), pl.len().over(_WHAT)
    turns = (pl.col("done").shift(-1) < pl.col("done")).over(_WHAT).fill_null(value=False)
    after = turns.shift(1).over(_WHAT).fill_null(value=False)
    spread = at % pl.max_horizontal(many // _EVENLY, pl.lit(1)) == 0
    return rows.filter((at == 0) | (at == many - 1) | turns | after | spread)
