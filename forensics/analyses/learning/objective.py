"""What kind of training a run is, what its loss measures, and what contradicts a claim about it."""

from __future__ import annotations

import numpy as np
import polars as pl

from forensics.analyses.learning.lr_config import adapter_of
from forensics.case.curves.loss import Curve, curves
from forensics.case.folds import has_folds
from forensics.case.joined.stores import counted
from forensics.case.names.inferred import is_of_rewards
from forensics.case.regimes import named_regime
from forensics.case.series import metric_names
from forensics.case.settings import NOTHING, OFF, keyed
from forensics.knowledge.scores import direction
from forensics.knowledge.vocabulary import keys_of, stands_for, words_for
from forensics.patterns import having
from forensics.stats.spread import Floats, bending, median_of
from forensics.store.run import Run, derived

_NOT_TRAINED = frozenset((*OFF, *NOTHING, *keys_of("value_of_new_weights")))


@derived
def reinforced(run: Run) -> bool:
    """Whether the run logs rewards, or has two players: then its loss need not fall."""
    names = metric_names(run)
    own = [name for name in names["name"].drop_nulls().unique() if not stands_for("of_preference", name)]
    return is_of_rewards(own, names["raw_name"].drop_nulls().unique(), returns=False)


@derived
def paired(run: Run) -> bool:
    """Whether the run compares pairs of a batch: such a loss may stay near the logarithm of their count."""
    names = metric_names(run)
    return any(having(names[column], words_for("of_pairs")) for column in ("name", "raw_name"))


@derived
def preferring(run: Run) -> bool:
    """Whether the run learns which of two answers is preferred: a guess has a loss of the logarithm of two."""
    names = metric_names(run)
    printed = (names[column].str.to_lowercase() for column in ("name", "raw_name"))
    return any(having(part, words_for("implicit_reward")) for part in printed)


@derived
def tuned(run: Run) -> bool:
    """Whether the settings say that the run goes on from a trained model, whose loss may have little left to fall."""
    said = pl.col("value").fill_null("").str.strip_chars("\"' ").str.to_lowercase()
    rows = keyed(run, words_for("start_weights_setting")).filter(~said.is_in(_NOT_TRAINED))
    return bool(rows.head(1).collect().height)


def improved(run: Run, curve: Curve, onset: int, risen: int | None = None) -> bool:
    """Whether an evaluation loss is no worse, in the later half from `risen` on, than at last before the onset.

    Of folds only that of the same one.
    """
    step, since = curve.step(onset), curve.step(onset if risen is None else risen)
    if step is None or since is None:
        return False
    for attempt, at, values in _evaluations(run):
        if attempt != curve.attempt and has_folds(run):
            continue
        known = ~np.isnan(at)
        before, after = values[known & (at < step)], values[known & (at >= since)]
        if len(before) and len(after) and median_of(after[len(after) // 2 :]) <= float(before[-1]):
            return True
    return False


@derived
def _evaluations(run: Run) -> tuple[tuple[int, Floats, Floats], ...]:
    """The attempt, the steps, NaN where none was printed, and the values of every evaluation loss."""
    found = curves(run, "eval_loss")
    return tuple((c.attempt, c.at.cast(pl.Float64).fill_null(float("nan")).to_numpy(), c.values) for c in found)


#: A score that rose by so much of itself, and so many times its noise, says that the model learns; of so many records.
_ROSE, _SURE, _FEWEST = 0.1, 3.0, 10
#: The first level is a twentieth of the records, as trends have it, and no fewer than three.
_FIRST_SHARE, _FIRST = 20, 3


@derived
def scored_more(run: Run) -> bool:
    """Whether a score of which more is better rose from its first records to the last third, whatever the loss.

    A sum whose largest part stays, as a distance that no model lowers, hides what is learned.
    """
    names = [name for name in metric_names(run)["name"].drop_nulls().unique() if stands_for("score", name)]
    names = [name for name in names if direction(name)]
    if not names:
        return False
    rows = counted(run, pl.col("name").is_in(names)).filter(pl.col("value_class") == "finite").sort("source", "seq")
    parts = rows.collect().partition_by("source", "attempt", "rank", "name", "raw_name", maintain_order=True)
    return any(_rose(part["value"].to_numpy()) for part in parts)


def _rose(values: Floats) -> bool:
    if len(values) < _FEWEST:
        return False
    first, last = median_of(values[: max(_FIRST, len(values) // _FIRST_SHARE)]), median_of(values[-len(values) // 3 :])
    return first > 0 and last - first > max(_ROSE * first, _SURE * bending(values))


#: Regimes of supervised fine-tuning: only an adapter, or all weights, are trained.
ADAPTER, FULL = "adapter", "full"


@derived
def regime_of(run: Run) -> str:
    """Give `rl`, `preference`, `adapter` or `full`; empty where nothing says what is trained, as in pretraining."""
    if reinforced(run):
        return "rl"
    said = named_regime(run)
    if said in {"rl", "preference"}:
        return said
    if adapter_of(run) is not None:
        return ADAPTER
    return FULL if said else ""
