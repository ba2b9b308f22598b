"""Whether a run may be called healthy: shown by its losses, its pace and its end, never by what was not found.

What leaves no trace cannot be excluded: a run that prints no time may have become slower at any step, and one loss
shows no course. Health is therefore never of high confidence, and of low confidence without a time: on five seeds of
the lab 95 of 97 jobs that were called healthy beside a clock were, and 7 of 10 without one.
"""

from __future__ import annotations

import polars as pl
from msgspec import Struct

from forensics.analyses.evals.curves import eval_curves
from forensics.analyses.pace.account import paced
from forensics.analyses.recorded import is_evaluation_only
from forensics.analyses.rl.series import episode_series
from forensics.case.curves.loss import curves
from forensics.case.endings import Ending, ending
from forensics.case.evidence import number
from forensics.case.joined.stores import counted, counted_record_pieces
from forensics.case.nonfinite import BAD_CLASSES, NO_VALUE, role
from forensics.case.processes.attempts import judged_rows
from forensics.case.series import holding, keys_of, of_each_source
from forensics.case.steps import at, first_of_each, of_training, rises
from forensics.knowledge.scores import counts_right
from forensics.model import Confidence
from forensics.stats.spread import median_of
from forensics.store.run import Run

#: Fewer records than this are no series.
MIN_RECORDS = 2
#: Losses at fewer steps than this are no course: a bar that is printed once, at the end, shows the last one.
MIN_LOSSES = 3
#: A clock with a printing unit above this share of a step shows no slowdown by 30 %, which needs three units (SLO001).
COARSEST = 0.1
#: At twice its first loss a model is worse than untrained. One whose first of five evaluations was its best learned
#: nothing that holds elsewhere, where it ends further above it than two seeds differ (Dodge et al. 2020: 1 to 5 %).
_LOST, _WORSE = 2.0, 1.05
_EVALUATIONS = 5
#: A share of right answers is below this much of its first one where what the model knew at first is gone. Above one it
#: is a percentage, unless a loss could have that value: that of a guess among 200,000 tokens (MLPerf logs one so).
_FORGOTTEN, _LOSS_OF_A_GUESS = 0.75, 12.2
#: A part of a loss may rise while the whole falls, and a generator's does where the other network wins: tenfold is no
#: health. In a run that logs rewards a loss is of moving targets, and its level says nothing.
_RISEN = 10.0
#: The objective itself may be negative, as a likelihood or a similarity that is maximised; it falls by nature. One that
#: is by this share of its first level above it, later on, has lost what was learned.
_GIVEN_BACK = 0.25
_QUOTED_CHARS = 80
_NO_TIME = "; no time of a step tells whether it became slower"
_SETTLES = "an exit code of 0, or the scheduler's record of the job, would settle it"


class Health(Struct, frozen=True):
    """How far health is shown: `confidence` is None when it is not."""

    confidence: Confidence | None
    why: str


class _Records(Struct, frozen=True):
    """Training records (once where several stores hold them), losses or rewards, and how many losses are not finite.

    `steps` counts the steps at which training printed a loss. Of a run that was started again only the last attempt's
    losses must be finite: it has got over what came before.
    """

    count: int
    losses: int
    bad: int
    steps: int


def health_of(run: Run) -> Health:
    """Judge the training records and the end of a run in which nothing was found."""
    end, records = ending(run), _records(run)
    if end.is_broken:
        return Health(None, f"its tracker recorded {end.status}, and no error was found")
    if records.count < MIN_RECORDS:
        return _unseen(end, records, evaluated=is_evaluation_only(run))
    if records.bad:
        every = "no finite loss was logged" if records.bad == records.losses else None
        return Health(None, every or f"{records.bad} of {records.losses} losses are not finite")
    if (lost := _lost(run)) is not None:
        return Health(None, lost)
    return _of_end(end, records, is_paced=any(one.steady.resolution <= COARSEST for one in paced(run)))


def _lost(run: Run) -> str | None:
    """Say where an evaluation loss ended above its first, or a score below: too little was learned that holds."""
    for curve in curves(run, "eval_loss"):
        values = curve.values
        first, last = float(values[0]), float(values[-1])
        best_first = len(values) >= _EVALUATIONS and values.min() == first
        if len(values) >= MIN_LOSSES and last > (_WORSE if best_first else _LOST) * first > 0:
            return f"{curve.raw_name} ended at {number(last)}, and began at {number(first)}"
    for score in eval_curves(run):
        first, last = float(score.values[0]), median_of(score.values[-MIN_LOSSES:])
        is_share = counts_right(score.name) and not 1 < first <= _LOSS_OF_A_GUESS
        if len(score.values) >= _EVALUATIONS and is_share and last < _FORGOTTEN * first:
            return f"{score.name} ended at {number(last)}, and began at {number(first)}"
    return _risen(run)


def _risen(run: Run) -> str | None:
    """Name the training loss, of parts too, that is many times higher in its last third than in its first."""
    if episode_series(run) or keys_of(run).select(holding(run, "of_reward").any()).item():
        return None
    of_loss = holding(run, "of_loss") & ~holding(run, "no_objective") & ~holding(run, "beside_the_objective")
    rows = judged_rows(run, counted(run, of_loss & of_training()).filter(pl.col("value_class") == "finite"))
    third = pl.len() // 3
    levels = rows.group_by("source", "rank", "name", "raw_name", maintain_order=True).agg(
        pl.len(), first=pl.col("value").head(third).median(), last=pl.col("value").tail(third).median()
    )
    first, last = pl.col("first"), pl.col("last")
    given_back = (pl.col("name") == "loss") & (first < 0) & (last > (1 - _GIVEN_BACK) * first)
    risen = levels.filter(pl.col("len") >= 3 * MIN_LOSSES, ((first > 0) & (last > _RISEN * first)) | given_back)
    for name, before, after in risen.select("raw_name", "first", "last").collect().iter_rows():
        return f"{name} rose from {number(before)} to {number(after)}"
    return None


def _of_end(end: Ending, records: _Records, *, is_paced: bool) -> Health:
    """Judge the end of a run whose losses are finite; `is_paced`: a clock would show that its steps became slower."""
    span = f"{records.count} training records" + (f" up to {end.reach}" if end.reach.done is not None else "")
    proved, caveat = (Confidence.MEDIUM, "") if is_paced else (Confidence.LOW, _NO_TIME)
    if end.success is not None:
        ended = f"{span}, then {_ending(end.success.quote)!r}"
        if records.steps < MIN_LOSSES:
            return Health(Confidence.LOW if is_paced and records.losses else None, f"{ended}; {_no_course(records)}")
        return Health(proved, ended + caveat)
    if not records.losses:
        return Health(None, f"{span} without a loss, and no end marker")
    if records.steps < MIN_LOSSES:
        return Health(None, _no_course(records))
    if end.reach.is_reached:
        return Health(proved, f"{span}, which is the end of its plan{caveat}")
    where = f" at {end.reach}" if end.reach.done is not None else ""
    return Health(None, f"the records end{where}, {_without(end)}; {_SETTLES}")


def _ending(quote: str) -> str:
    """The end of a line: what it says, where stamps, levels and names of loggers begin it."""
    said = quote.strip()
    if len(said) <= _QUOTED_CHARS:
        return said
    _, _, whole_words = said[-_QUOTED_CHARS:].partition(" ")
    return f"… {whole_words}" if whole_words else f"…{said[-_QUOTED_CHARS:]}"


def _unseen(end: Ending, records: _Records, *, evaluated: bool) -> Health:
    if evaluated and not records.count:
        return Health(None, "results of evaluations alone, and no baseline to compare them with")
    why = "no training metrics were recognised" if not records.count else "too few training metrics were recognised"
    if end.success is None:
        return Health(None, why)
    return Health(None, f"{why}; the run says that it finished ({end.success.place}), and nothing shows how it went")


def _no_course(records: _Records) -> str:
    if not records.losses:
        return "no loss and no reward was recognised that would show whether it learned"
    if not records.steps:
        return "no loss of training was recorded, that of evaluations alone"
    return f"a loss was printed at {records.steps} step{'s' if records.steps > 1 else ''} only, too few to show a trend"


def _without(end: Ending) -> str:
    if end.lacks_exit:
        return "and its tracker wrote no exit record: the run did not end itself"
    return "without an end marker"


def _records(run: Run) -> _Records:
    earned = [one.rows["name"][0] for one in episode_series(run) if one.quantity == "episode_reward"]
    of_loss = holding(run, "of_loss") | holding(run, "of_reward") | pl.col("name").is_in(earned)
    told = ~pl.col("value_class").is_in(NO_VALUE)  # of millions of numbers none is read to see that it is there
    rows = counted(run, of_loss & (of_training() | (role() == "eval")))
    finite = (told & (pl.col("value_class") == "finite")).any().alias("finite")
    losses, finite = rows.select(told.sum().alias("losses"), finite).collect().row(0)
    trained = counted(run, of_loss & of_training()).filter(told)
    steps = trained.select(pl.coalesce(at(), "seq")).collect().to_series()
    numbered = len(steps) if rises(steps) else steps.n_unique()
    del steps  # of millions
    bad = counted(run, of_loss & (pl.col("name") == "loss")).filter(pl.col("value_class").is_in(BAD_CLASSES))
    failed = judged_rows(run, bad).select(pl.len()).collect().item()
    return _Records(_count(run), losses, failed if finite else losses, numbered)


def _count(run: Run) -> int:
    """Count the records of training and of evaluations, each once."""
    evaluated = counted(run, role() == "eval").select("source", "attempt", "seq")
    trained = (rows.filter("trains").select("source", "attempt", "seq") for rows in counted_record_pieces(run))
    places: dict[str, list[pl.DataFrame]] = {}
    for pieces in (trained, [evaluated]):
        for source, part in of_each_source(
            run, *(rows.with_columns(pl.col("attempt").fill_null(0)) for rows in pieces)
        ).items():
            places.setdefault(source, []).append(part)
    return sum(first_of_each(pl.concat(own, how="vertical_relaxed"), "seq").height for own in places.values())
