"""What a printed name means that no table knows: the only loss or gradient norm of a run, a memory by its size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations

import numpy as np
import polars as pl

from forensics.case.names.splits import without_split
from forensics.dialects.names import counted, falls, is_anew, sized, to_gib
from forensics.knowledge.vocabulary import in_english, stands_for
from forensics.patterns import lazily
from forensics.stats.spread import Floats, median_of
from forensics.store.packed import Packed

#: What is no loss, whatever its course.
_NO_LOSS = ("no_objective", "held_out_word", "part_of_loss", "names_a_split_only", "lowest_of")
_BETWEEN = lazily(r"[\W_]+")
_PLACE = lazily(r"_\d+")
_LAST_WORD = lazily(r"[/_. -]?[^/_. -]+$")
#: A longer step than this, in seconds without a unit, is one in milliseconds.
_LONGEST_S = 60.0
#: Of more words that no table knows, the loss cannot be found.
_MOST_OWN_WORDS = 4
#: Fewer numbers show no course.
_LEAST_COURSE = 12
#: No share of a memory, in percent, is larger.
_WHOLE = 100.0
#: A loss on held-out data begins within this factor of that of training, which a first epoch may already have made
#: small; a percentage becomes more times what it was at first, and a share is never above one.
_NEAR, _FAR, _SHARE = 3.0, 5.0, 1.0
#: What training leaves of a loss at most, of a sum of parts whose names no table knows.
_SUNK = 0.9
#: Numbers of four digits that are added up differ so much from their sum.
_ROUNDED = 2e-3
#: A sum has so many parts.
_FEWEST_PARTS = 2
#: The first level of a loss: a twentieth, as trends have it, and no fewer than three.
_FIRST = 3


def understood(table: Packed) -> Packed:
    """Give the rows with the canonical name of each quantity that the run logs under one unknown name only.

    Two such names are two parts of a sum, or two models: neither is the quantity.
    """
    known = set(table.names["name"].drop_nulls().unique())
    as_printed = pl.col("name").str.replace_all(r"[^\p{L}\d]+", "_").str.strip_chars("_") == pl.col("raw_name")
    english = pl.col("raw_name").map_elements(lambda raw: _words_of(in_english(raw)), pl.String)
    translated = pl.col("name").map_elements(_words_of, pl.String) == english
    bare = table.names.filter((pl.col("name") == pl.col("raw_name")) | as_printed | translated)
    unknown = bare["raw_name"].unique(maintain_order=True).to_list()
    losses = [raw for raw in _losses(known, unknown) if len(raw) > 1 or not _are_whole(_finite(table, raw))]
    held_out = [raw for raw in losses if stands_for("held_out_word", raw)]
    meant = {
        "loss": [raw for raw in losses if raw not in held_out],
        "eval_loss": held_out,
        "grad_norm": [raw for raw in unknown if stands_for("norm_of_gradients", raw)],
    }
    alone = {names[0]: name for name, names in meant.items() if name not in known and names and _is_one(names)}
    alone |= {} if "loss" in known else _of_epochs(table)
    known |= {*alone.values()} & {"loss"}
    alone |= {} if known & {"loss", "eval_loss"} else _of_places(table, held_out)
    told = known | {*alone.values()}
    if not told & {"loss", "eval_loss"}:
        alone |= _of_splits(table, unknown)
    elif "loss" in told and "eval_loss" not in told:
        alone |= _held_out_beside(table, [raw for raw, name in alone.items() if name == "loss"], unknown)
    if not {"loss", "eval_loss"} & (known | {*alone.values()}) and not is_of_rewards(known, unknown):
        rest = [raw for raw in unknown if raw not in alone]
        alone |= next((found for way in _WAYS if (found := way(table, rest))), dict[str, str]())
    alone |= _of_waits(table, unknown) if "step_time_s" not in known else {}
    memories = {raw: name for raw in unknown if (name := counted(raw)) is not None}
    shares = {raw: name for raw in unknown if (name := sized(raw)) is not None}
    factors = _to_gib(table, memories, 0.0) | _to_gib(table, shares, _WHOLE)
    found = alone | {raw: (memories | shares)[raw] for raw in factors}
    named = table.renamed(found) if found else table
    return named.scaled(factors) if factors else named


def _words_of(name: str) -> str:
    """Give the words of a name in one order: a translated one begins with that of its data."""
    return " ".join(sorted(_BETWEEN.split(name.lower())))


def _is_one(names: Sequence[str]) -> bool:
    """Whether names mean one quantity: a single one, or functions of the same named data: the first is minimised."""
    data = {_LAST_WORD.sub("", raw) for raw in names}
    return len(names) == 1 or (len(data) == 1 and "" not in data and all(stands_for("objective", raw) for raw in names))


def _of_epochs(table: Packed) -> dict[str, str]:
    """Give the mean loss of each epoch as the loss of a run that prints no other."""
    means = table.names.filter(pl.col("name") == "loss_epoch_avg")["raw_name"].drop_nulls().unique().to_list()
    return {means[0]: "loss"} if len(means) == 1 else {}


def _of_places(table: Packed, held_out: Sequence[str]) -> dict[str, str]:
    """Give `validation_0/rmse` and `validation_1/rmse` their meaning, where only the place of the data is named.

    The first is of the data that is trained on where it is lowest at its end, and lower than the others are.
    """
    placed = [raw for raw in held_out if stands_for("set_by_its_place", raw)]
    placed = [raw for raw in placed if _PLACE.sub("", raw, 1) == _PLACE.sub("", placed[0], 1)]
    values = {raw: _finite(table, raw) for raw in placed}
    if len(placed) < 2 or min(map(len, values.values())) < _LEAST_COURSE:
        return {}
    first, *others = values.values()
    late = len(first) - max(_FIRST, len(first) // 20)
    is_trained = min(first[late:]) <= min(first[:late]) and all(first[-1] < one[-1] for one in others)
    return dict.fromkeys(placed, "eval_loss") | ({placed[0]: "loss"} if is_trained else {})


def _of_splits(table: Packed, unknown: Iterable[str]) -> dict[str, str]:
    """Give `train 0.4 | valid 0.5` its meaning, where only the data is named: a number that falls or is not finite."""
    splits = [raw for raw in unknown if stands_for("names_a_split_only", raw)]
    held_out = [raw for raw in splits if stands_for("held_out_word", raw)]
    own = [raw for raw in splits if raw not in held_out]
    if len(own) != 1 or len(held_out) > 1:
        return {}
    values = table.values_of(own[0]).drop_nulls()
    if values.is_finite().all() and not falls(values.to_list()):
        return {}
    return {own[0]: "loss"} | dict.fromkeys(held_out, "eval_loss")


def _held_out_beside(table: Packed, own: Sequence[str], unknown: Iterable[str]) -> dict[str, str]:
    """Give the `val` of `loss 2.3 val 2.4` its meaning: it begins near the loss, is no share and no percentage."""
    held_out = [raw for raw in unknown if stands_for("names_a_split_only", raw) and stands_for("held_out_word", raw)]
    losses = own or table.names.filter(pl.col("name") == "loss")["raw_name"].drop_nulls().to_list()
    if len(held_out) != 1 or len(losses) != 1:
        return {}
    loss, other = (_finite(table, raw) for raw in (losses[0], held_out[0]))
    if min(len(other), len(loss)) < _FIRST or min(loss) <= 0:
        return {}
    begins = loss[0] / _NEAR <= other[0] <= loss[0] * _NEAR
    return {held_out[0]: "eval_loss"} if begins and _SHARE < max(other) <= _FAR * other[0] else {}


def _parts_of_both(table: Packed, unknown: Iterable[str]) -> dict[str, str]:
    """Give `train/box_loss` and `train/obj_loss` their meaning where the sum is not logged: each has a held-out twin.

    A part that is nothing in every record, as the loss of classes is with one class, tells nothing.
    """
    costs = [raw for raw in unknown if stands_for("of_loss", raw) and not stands_for("beside_the_objective", raw)]
    held_out = {without_split(raw): raw for raw in costs if stands_for("held_out_word", raw)}
    own = [raw for raw in costs if without_split(raw) in held_out and stands_for("names_training", raw)]
    told = [raw for raw in own if table.values_of(raw).fill_null(0.0).ne(0.0).any()]
    if len(told) < _FEWEST_PARTS:
        return {}
    return dict.fromkeys(told, "loss") | {held_out[without_split(raw)]: "eval_loss" for raw in told}


def _finite(table: Packed, raw: str) -> list[float]:
    values = table.values_of(raw).drop_nulls()
    return values.filter(values.is_finite()).to_list()


def _of_waits(table: Packed, unknown: Sequence[str]) -> dict[str, str]:
    """Give `Data 0.08 Batch 0.09` its meaning, the wait for a batch and the whole step: the whole is never less."""
    waits = [raw for raw in unknown if stands_for("wait_for_a_batch", in_english(raw))]
    steps = [raw for raw in unknown if stands_for("whole_of_a_step", in_english(raw))]
    if len(waits) != 1 or len(steps) != 1:
        return {}
    wait, step = table.values_of(waits[0]), table.values_of(steps[0])
    if len(wait) != len(step) or not ((wait >= 0) & (step >= wait) & (step < _LONGEST_S)).all() or step.equals(wait):
        return {}
    return {waits[0]: "data_time_s", steps[0]: "step_time_s"}


def is_of_rewards(names: Iterable[str], raw_names: Iterable[str], *, returns: bool = True) -> bool:
    """Whether names of metrics are those of a run that learns by rewards, or that has losses of several networks.

    Beside what is rebuilt from a code, a KL is that of the code from its prior, and of no policy. `returns`: whether
    the word alone says so.
    """
    rebuilds = any(
        stands_for("bound_of_evidence", raw) or stands_for("loss_of_reconstruction", raw) for raw in raw_names
    )
    told = [name for name in names if not (rebuilds and stands_for("divergence_from_prior", name))]
    if any(stands_for("of_reinforcement", name) or stands_for("of_two_players", name) for name in told):
        return True
    return returns and any(stands_for("of_reward", name) for name in told)


def _by_its_course(table: Packed, unknown: Sequence[str]) -> dict[str, str]:
    """Give the loss of a loop that has its own word for it: of few numbers the only one that falls, or is lost."""
    told = [raw for raw in unknown if not any(stands_for(means, raw) for means in _NO_LOSS)]
    if not told or len(unknown) > _MOST_OWN_WORDS:
        return {}
    every = {raw: table.values_of(raw).drop_nulls() for raw in unknown}
    values = {raw: every[raw] for raw in told}
    wholes = [raw for raw in told if _is_whole(every, raw)]
    falling = [raw for raw, own in values.items() if _trains(own)]
    lost = [raw for raw, own in values.items() if _is_lost(own)]
    if not wholes and not falling and len({int(values[raw].is_finite().sum()) for raw in lost}) == 1:
        return {lost[0]: "loss"}  # parts of one that is not printed
    meant = wholes or falling
    return {meant[0]: "loss"} if len(meant) == 1 else {}


def _minimised(means: str, table: Packed, unknown: Sequence[str]) -> dict[str, str]:
    """Give the only name of a meaning that of a loss, where its numbers fall and none is below 0.

    A bound that is maximised is printed below 0: the reconstruction beside it then is the loss.
    """
    named = [raw for raw in unknown if stands_for(means, raw)]
    told = _finite(table, named[0]) if len(named) == 1 else []
    is_one = told and min(told) >= 0 and not all(map(float.is_integer, told)) and falls(told)
    return {named[0]: "loss"} if is_one else {}


def _is_whole(every: Mapping[str, pl.Series], raw: str) -> bool:
    """Whether the numbers of a name are in each record the sum of others, to the digits printed."""
    own: Floats = every[raw].to_numpy()
    others: list[Floats] = [
        values.to_numpy() for name, values in every.items() if name != raw and len(values) == len(own)
    ]
    finite = np.isfinite(own)
    told = own[finite]
    if len(told) < _LEAST_COURSE or not is_anew((-told).tolist()) or not (_sinks(told) or _is_lost(every[raw])):
        return False
    sums: list[Floats] = [np.sum(parts, axis=0) for n in range(2, len(others) + 1) for parts in combinations(others, n)]
    return any(np.allclose(whole[finite], told, rtol=_ROUNDED, atol=0) for whole in sums)


def _sinks(told: Floats) -> bool:
    """Whether the last third lies below the first by a tenth, as no time and no count does."""
    third = len(told) // 3
    return median_of(told[-third:]) <= _SUNK * median_of(told[:third])


def _is_lost(values: pl.Series) -> bool:
    """Whether numbers were finite, and went up and down, until none of them was any more."""
    finite = values.is_finite()
    told = int(finite.sum())
    lost = len(values) - told
    if min(told, lost) < _FIRST or not finite[:told].all():
        return False
    course = values[:told].to_list()
    return is_anew(course) and is_anew([-value for value in course])


def _trains(values: pl.Series) -> bool:
    """Whether numbers go to half of their first ones or less, and up and down on the way, as no schedule does.

    Numbers that are all whole count something, such as games that were lost.
    """
    told = values.filter(values.is_finite()).to_list()
    if len(told) < _LEAST_COURSE or min(told) < 0 or _are_whole(told):
        return False
    first, last = told[: max(_FIRST, len(told) // 20)], told[-(len(told) // 3) :]
    return 2 * median_of(last) <= median_of(first) and is_anew([-value for value in told])


def _are_whole(values: Sequence[float]) -> bool:
    """Whether no number of many has a fraction: a count, or a letter of a text with digits behind it."""
    return len(values) >= _LEAST_COURSE and all(value.is_integer() for value in values)


def _losses(known: set[str], unknown: list[str]) -> list[str]:
    """Names that a loss may have, whether of training or held out; a function such as `mse` where nothing says loss."""
    losses = [raw for raw in unknown if stands_for("whole_loss", raw) and not stands_for("part_of_loss", raw)]
    own = (name for name in known if not stands_for("held_out_word", name))
    if losses or any(stands_for("of_loss", name) or stands_for("of_reward", name) for name in own):
        return losses
    return [raw for raw in unknown if stands_for("objective", raw)]


def _to_gib(table: Packed, memories: Iterable[str], least: float) -> dict[str, float]:
    """Names of memories without a unit → the factor to GiB; those whose numbers have the size of none are left out.

    So are those whose largest number is no larger than `least`.
    """
    values = {raw: table.values_of(raw) for raw in memories}
    largest = {raw: one.filter(one.is_finite()).max() for raw, one in values.items()}
    factors = {raw: to_gib(most) for raw, most in largest.items() if isinstance(most, float) and most > least}
    return {raw: factor for raw, factor in factors.items() if factor is not None}


#: How the loss of a run is found whose names do not say which it is, the surest way first: a whole before its parts,
#: parts before a word of the loop's own, and what is rebuilt last, as a bound may hold it.
_WAYS: tuple[Callable[[Packed, Sequence[str]], dict[str, str]], ...] = (
    partial(_minimised, "bound_of_evidence"),
    partial(_minimised, "sum_of_parts"),
    _parts_of_both,
    _by_its_course,
    partial(_minimised, "loss_of_reconstruction"),
)
