"""The metrics of reinforcement learning on a language model, as one series per quantity.

Printed names differ from trainer to trainer; `names.tsv` maps them to quantities, with the trainer of each row. Only
sources that print a name marked there, or a reward beside a KL or its spread, are read, and all sources where
the settings name such a training: entropy, KL and reward alone mean other things elsewhere (supervised
fine-tuning prints an entropy, preference tuning prints rewards, a game's reward is zero for long).
"""

from __future__ import annotations

from functools import cache

import polars as pl
from msgspec import Struct

from forensics.case.regimes import named_regime
from forensics.case.series import metric_names, metric_rows
from forensics.case.steps import ordered
from forensics.io.tables import table_rows
from forensics.knowledge.vocabulary import in_english, words_for
from forensics.patterns import having
from forensics.store.run import Run, derived

#: A dialect names a group of its pattern `rewards_mean` where the line says `rewards/mean`; the line's name is shown.
_PRINTED = (
    pl.when(pl.col("name").str.to_lowercase().str.replace_all(r"\W", "_") == pl.col("raw_name").str.to_lowercase())
    .then(pl.col("name"))
    .otherwise(pl.coalesce("raw_name", "name"))
)
_PREFIX = r"^train(?:ing)?/"
#: Quantities that mark it when one source prints both: only here is a reward weighed against a reference policy, or
#: printed beside its spread within a group.
_TOGETHER = (("reward", "kl"), ("reward", "reward_std"))
#: The judged quantities of a policy that plays.
_OF_GAMES = ("episode_reward", "update_kl", "clip_ratio", "entropy", "entropy_cost")


class RlSeries(Struct, frozen=True):
    """One quantity over the run, restarts included, in the order of the records.

    `rows` are metric rows with `at`, the step; `finite` are those with a finite value.
    """

    quantity: str
    raw_name: str
    rows: pl.DataFrame

    @property
    def finite(self) -> pl.DataFrame:
        """Rows with a finite value."""
        return self.rows.filter(pl.col("value_class") == "finite")


@cache
def name_table() -> tuple[tuple[str, str, bool], ...]:
    """Rows of `names.tsv`: quantity, pattern, and whether the name marks reinforcement learning."""
    rows = table_rows("forensics.analyses.rl", "names.tsv")
    return tuple((quantity, pattern, mark == "mark") for quantity, pattern, mark, *_ in rows)


@cache
def any_name() -> str:
    """Give the pattern of all names of the table."""
    return "|".join(f"(?:{pattern})" for _, pattern, _ in name_table())


def rl_series(run: Run, *quantities: str) -> tuple[RlSeries, ...]:
    """Give the series of some quantities; `loss` is the training loss of a source that does reinforcement learning.

    A name that several stores or ranks print is given once, from where it has the most records.
    """
    named = _named(run)
    if not named.height:
        return ()
    return _series(run, named.filter(pl.col("quantity").is_in([*quantities])))


@derived
def episode_series(run: Run) -> tuple[RlSeries, ...]:
    """Give the rewards of an environment's episodes, and the change of the policy by each update.

    A mean reward is one of episodes where its source prints the length of episodes, too, or an entropy or an update of
    a policy that is no language model's, and so is a score where no loss is printed, or its source prints what only a
    policy has (the share of random moves, the value of a move); a name as short as `R` needs that or an entropy.
    """
    named = _by_short_names(_printed(run))
    is_scored = not having(metric_names(run)["name"].unique(), words_for("of_loss"))
    earned = ["episode_reward", "episode_length", *(["score"] if is_scored else [])]
    if not named.height or not named["quantity"].is_in([*earned, "reward"]).any():
        return ()
    has_length = (pl.col("quantity") == "episode_length").any().over("source")
    has_policy = pl.col("quantity").is_in(["entropy", "update_kl", "clip_ratio"]).any().over("source")
    is_played = has_policy & ~pl.col("source").is_in(_named(run)["source"].to_list())
    is_mean = (pl.col("quantity") == "reward") & (has_length | is_played)
    is_game = (pl.col("quantity").is_in(earned) | is_mean).any().over("source")
    is_reward = is_mean | pl.col("quantity").is_in(earned[2:])
    own = named.with_columns(quantity=pl.when(is_reward).then(pl.lit("episode_reward")).otherwise("quantity"))
    return _series(run, own.filter(is_game & pl.col("quantity").is_in(_OF_GAMES)))


def _by_short_names(named: pl.DataFrame) -> pl.DataFrame:
    """Give short names their meaning in sources with metrics of a policy."""
    is_policy = pl.col("quantity").is_in(["policy", "entropy_short"]).any().over("source")
    meant = {"short_score": "episode_reward", "score": "episode_reward", "entropy_short": "entropy"}
    return named.with_columns(quantity=pl.when(is_policy).then(pl.col("quantity").replace(meant)).otherwise("quantity"))


@derived
def preference_series(run: Run) -> tuple[RlSeries, ...]:
    """Give the metrics of preferred answers from a training on pairs."""
    named = _printed(run)
    return _series(run, named.filter(pl.col("quantity") == "chosen_logps")) if named.height else ()


def _series(run: Run, wanted: pl.DataFrame) -> tuple[RlSeries, ...]:
    if not wanted.height:
        return ()
    near = pl.all_horizontal(pl.col(name).is_in(wanted[name].to_list()) for name in ("source", "raw_name"))
    own = metric_rows(run, near).join(wanted.lazy(), on=["source", "raw_name"], how="inner", maintain_order="left")
    rows = ordered(own).filter(pl.col("value_class") != "null").collect()
    found: dict[tuple[str, str], RlSeries] = {}
    for (quantity, plain, _, _), part in rows.group_by("quantity", "plain", "source", "rank", maintain_order=True):
        key = str(quantity), str(plain)
        if key not in found or part.height > found[key].rows.height:
            found[key] = RlSeries(str(quantity), str(part["printed"][0]), part)
    return tuple(found[key] for key in sorted(found))


@derived
def _printed(run: Run) -> pl.DataFrame:
    """Names that mean a quantity, in sources of any kind: source, raw_name, printed, plain, quantity."""
    return _meaning(_known(run))


@derived
def _named(run: Run) -> pl.DataFrame:
    """Names that mean a quantity, in sources of reinforcement learning: source, raw_name, printed, plain, quantity."""
    known, stated = _known(run), named_regime(run) == "rl"
    quantities = set(known["quantity"])
    if not (stated or known["mark"].any() or any(quantities.issuperset(pair) for pair in _TOGETHER)):
        return known.clear()
    together = pl.any_horizontal(
        pl.all_horizontal((pl.col("quantity") == one).any().over("source") for one in pair) for pair in _TOGETHER
    )
    quantity = pl.when(pl.col("name") == "loss").then(pl.lit("loss")).otherwise(pl.col("quantity"))
    named = known.with_columns(quantity=quantity)
    return _meaning(named.filter(pl.lit(stated) | pl.col("mark").any().over("source") | together))


def _meaning(names: pl.DataFrame) -> pl.DataFrame:
    once = names.drop_nulls("quantity").unique(["source", "raw_name"], maintain_order=True)
    return once.select("source", "raw_name", "printed", "plain", "quantity").sort("source", "raw_name")


@derived
def _known(run: Run) -> pl.DataFrame:
    """The names of training metrics of each source, with what `_quantities` says of them."""
    names = metric_names(run).select("source", "name", raw_name=pl.coalesce("raw_name", "name"), printed=_PRINTED)
    names = names.unique(["source", "name", "raw_name"], maintain_order=True)
    known = _quantities(names.select("raw_name", "name", "printed").unique(maintain_order=True))
    return names.join(known, on=["raw_name", "name", "printed"], how="inner", maintain_order="left")


def _quantities(names: pl.DataFrame) -> pl.DataFrame:
    """Names of training metrics with `plain`, their `quantity` or null, and whether they are a `mark`."""
    english = pl.col("printed").map_elements(in_english, pl.String)
    plain = english.str.to_lowercase().str.replace_all("[ _]+", "_").str.replace(_PREFIX, "")
    named = names.with_columns(plain=plain).drop_nulls("plain")
    by_plain, by_name = (_meanings(named[column].unique()) for column in ("plain", "name"))
    pairs = named.select("plain", "name").iter_rows()
    told = ([meant for meant in (by_plain.get(plain), by_name.get(name)) if meant] for plain, name in pairs)
    found = [min(meant, key=lambda one: one[0] == "short_score", default=(None, False)) for meant in told]
    quantity = pl.Series([quantity for quantity, _ in found], dtype=pl.String)
    mark = pl.Series([marks for _, marks in found], dtype=pl.Boolean)
    others = having(named["plain"], words_for("held_out_reward")) + having(named["plain"], words_for("implicit_reward"))
    return named.with_columns(quantity=quantity, mark=mark).filter(~pl.col("plain").is_in(others))


def _meanings(texts: pl.Series) -> dict[str, tuple[str, bool]]:
    """What some names mean, by the first row that fits each, and whether that is a mark; the others are left out."""
    known = pl.Series(having(texts, any_name()), dtype=pl.String)
    rows = reversed(name_table())
    return {text: (name, marks) for name, pattern, marks in rows for text in having(known, pattern)}


#: The value of each quantity at which no answer of a group is better than another.
_NONE_AT = {"reward_std": 0.0, "frac_zero_std": 1.0}


def lacks_advantage(run: Run, share: float) -> bool:
    """Whether in at least `share` of the records all answers to each prompt got one reward."""
    return any(
        series.finite.height
        and (series.finite["value"] == _NONE_AT[series.quantity]).sum() >= share * series.finite.height
        for series in rl_series(run, *_NONE_AT)
    )
