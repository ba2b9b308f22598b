"""Evaluation metrics that a run logged while it trained, as curves over steps, and which way each is better."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import polars as pl
from msgspec import Struct

from forensics.case.joined.stores import counted
from forensics.case.series import metric_names
from forensics.knowledge.scores import direction
from forensics.knowledge.vocabulary import stands_for, words_for
from forensics.patterns import having
from forensics.stats.spread import Floats
from forensics.store.run import Run, derived
from forensics.values import replace

_NAMES = ("name", "raw_name")
_MOST_NAMES = 60
_COLUMNS = (
    *("source", "line", "byte", "seq", "attempt", "rank", "step", "gstep", "name", "raw_name"),
    *("value", "value_class", "t_ns"),
)


class EvalCurve(Struct, frozen=True, eq=False):
    """One evaluation metric by step, the last value of each step; `higher` tells whether more is better, if known."""

    name: str
    higher: bool | None
    rows: pl.DataFrame

    @property
    def values(self) -> Floats:
        """The values in the order of steps."""
        return self.rows["value"].to_numpy()

    @property
    def steps(self) -> Floats:
        """The steps, in order, each once."""
        return self.rows["at"].to_numpy()

    def row(self, index: int) -> Mapping[str, Any]:
        """Give one row of metrics by its position."""
        return self.rows.row(index, named=True)


@derived
def eval_curves(run: Run) -> tuple[EvalCurve, ...]:
    """Every evaluation metric that was logged at two steps or more, in the order of names; remembered with the run."""
    held_out = tuple(one for one in _of_splits(run) if not stands_for("training_split", one.name))
    return (*_curves(run, _meaning(run, words_for("evaluation_metric"))), *held_out)


#: A score that a line names by its split alone is a share or a percentage, and in training it rises by so much of it.
_MOST, _ROSE = 100.0, 0.1


@derived
def _of_splits(run: Run) -> tuple[EvalCurve, ...]:
    """Scores that are named by their split alone, as in `Train: 0.95, Val: 0.71`."""
    found = _curves(run, _meaning(run, words_for("split_alone")))
    training = [one.values for one in found if stands_for("training_split", one.name)]
    rose = [float(v[-1] - v[0]) >= _ROSE * float(v.max()) > 0 for v in training]
    if not rose or not all(rose) or any(one.values.min() < 0 or one.values.max() > _MOST for one in found):
        return ()
    return tuple(replace(one, higher=True) for one in found)


@derived
def training_scores(run: Run) -> tuple[EvalCurve, ...]:
    """Every score of which more is better that the training itself logged, in the order of names."""
    held_out = {name for names in _meaning(run, words_for("evaluation_metric")).values() for name in names}
    meant = {
        c: [name for name in names if name not in held_out] for c, names in _meaning(run, words_for("score")).items()
    }
    named = (one for one in _curves(run, meant) if one.higher and one.row(0)["raw_name"] not in held_out)
    return (*named, *(one for one in _of_splits(run) if stands_for("training_split", one.name)))


def _meaning(run: Run, words: str) -> dict[str, list[str]]:
    """The names of metrics that fit a pattern, of either column."""
    known = metric_names(run)
    return {c: having(known[c], words) for c in _NAMES}


def _curves(run: Run, meant: Mapping[str, list[str]]) -> tuple[EvalCurve, ...]:
    if not any(meant.values()):
        return ()
    wanted = pl.any_horizontal(pl.col(c).is_in(names) for c, names in meant.items())
    at = pl.coalesce("gstep", "step")
    finite = counted(run, wanted).filter(pl.col("value_class") == "finite").select(_COLUMNS)
    rows = finite.with_columns(at=at).drop_nulls("at").collect()
    names = [n for n in rows["name"].unique(maintain_order=True).to_list() if not stands_for("cost_of_evaluation", n)]
    return tuple(filter(None, map(partial(_curve, rows), sorted(names)[:_MOST_NAMES])))


def _curve(rows: pl.DataFrame, name: str) -> EvalCurve | None:
    """The longest series of one name: of one source and rank; of a repeated step the last attempt counts."""
    own = rows.filter(pl.col("name") == name).sort("source", "rank", "attempt", "seq", maintain_order=True)
    groups = own.partition_by("source", "rank", "raw_name", maintain_order=True)
    best = max((g.unique("at", keep="last", maintain_order=True) for g in groups), key=lambda g: g.height)
    return EvalCurve(name, direction(name), best.sort("at", maintain_order=True)) if best.height > 1 else None
