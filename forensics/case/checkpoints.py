"""Which checkpoints a run left, from lines about them and folders on disk, and which are safe to use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

import polars as pl
from msgspec import Struct

from forensics.case.epochs import EpochScale, epoch_scale
from forensics.case.errors.failures import Failure, standing
from forensics.case.processes.attempts import attempts
from forensics.case.series import metric_records
from forensics.case.steps import at
from forensics.knowledge.causes import is_kind
from forensics.knowledge.paths import is_weights, whose
from forensics.knowledge.vocabulary import words_for
from forensics.patterns import lazily
from forensics.store.run import Run, derived, nothing

_BEST_FIRST = {"directory": 0, "committed": 1, "saved": 2}
_WRITTEN = tuple(_BEST_FIRST)
#: A name that says what its number counts.
_SAYS_STEP = lazily(r"(?i)step|iter|update|batch")
#: Steps of an epoch from which on its number and that of a step cannot be confounded.
_STEPS_OF_EPOCH = 5


@derived
def known(run: Run) -> pl.DataFrame:
    """One row per step, sorted by step.

    Columns: `step`, `path`, `source`, `line`, `committed`, `removed`, `on_disk`, `complete`, `ruined`. A path of a
    folder on disk is preferred to a commit line's, and that to a save line's. A step saved again after its removal is
    not removed; one that is missing on disk between others of its folder is. `ruined`: an error names it. `replaced`: a
    later step was saved into its file.
    """
    told = run.collect("checkpoints")
    return _known(run, told.sort("source", "attempt", "seq", maintain_order=True)) if told.height else _none_known()


@cache
def _none_known() -> pl.DataFrame:
    return _known(Run(""), nothing("checkpoints"))


def _known(run: Run, told: pl.DataFrame) -> pl.DataFrame:
    rows = _placed(run, told)
    bad = pl.col("path").str.contains(words_for("bad_by_name")).fill_null(value=False)
    frame = rows.filter(pl.col("step").is_not_null(), ~bad).with_columns(
        written=pl.col("kind").is_in(_WRITTEN),
        order=pl.col("kind").replace_strict(_BEST_FIRST, default=9, return_dtype=pl.Int32),
    )
    fates = pl.col("kind").filter(pl.col("kind").is_in([*_WRITTEN, "removed"]) & (pl.col("kind") != "directory"))
    best = frame.group_by("step", maintain_order=True).agg(
        pl.col("written").any(),
        _best("path", pl.col("written") & pl.col("path").is_not_null()),
        _best("source", pl.col("written")),
        _best("line", pl.col("written")),
        (pl.col("kind") == "committed").any().alias("committed"),
        (pl.col("kind") == "directory").any().alias("on_disk"),
        (fates.last() == "removed").fill_null(value=False).alias("removed"),
        pl.col("complete").filter(pl.col("kind") == "directory").max(),
    )
    removed = (pl.col("removed") | _missing(best)) & ~pl.col("on_disk")
    file = pl.col("path").is_in([path for path in best["path"].drop_nulls().unique() if is_weights(path)])
    best = best.with_columns(
        removed=removed,
        ruined=_ruined(run, best["path"].to_list()),
        replaced=file & (pl.col("step") < pl.col("step").max().over("path")),
        complete=pl.when(
            _is_cut(told) | pl.col("path").is_in([*_uncommitted(told), *(one.path for one in lacking(run))])
        )
        .then(pl.lit(value=False))
        .otherwise("complete"),
    )
    return best.filter("written").drop("written").sort("step")


#: A part of weights that says how many there are, from 0 or 1: `model-00002-of-00004.safetensors`.
_PART = lazily(r"(?:.*/)?(?P<stem>[^/]+)-(?P<part>\d{5})-of-(?P<parts>\d{5})\.\w+", re.ASCII)


class Lacking(Struct, frozen=True):
    """A checkpoint on disk of whose parts some are there and some are not, and one that is."""

    path: str
    step: int | None
    source: str
    has: int
    parts: int


@derived
def lacking(run: Run) -> tuple[Lacking, ...]:
    """Give the checkpoints on disk that lack parts, by the names of the others, in the order of their paths."""
    if "checkpoints" not in run.frames:
        return ()
    rows = run.scan("checkpoints").filter((pl.col("kind") == "directory") & pl.col("source").str.contains("-of-"))
    found: dict[tuple[str, str, int], dict[int, tuple[str, int | None]]] = {}
    for source, path, step in rows.select("source", "path", "step").sort("source").collect().iter_rows():
        if (part := _PART.fullmatch(source)) is not None:
            key = (path or "", source.rpartition("/")[0] + part["stem"], int(part["parts"]))
            found.setdefault(key, {})[int(part["part"])] = source, step
    short = ((key, own) for key, own in sorted(found.items()) if len(own) < key[2])
    return tuple(
        Lacking(path, one[1], one[0], len(own), parts) for (path, _, parts), own in short for one in [min(own.values())]
    )


def nearest_words(run: Run, step: int | None) -> str:
    """Name the checkpoint of a step, or the one that was saved nearest to it."""
    if step is None:
        return "an earlier checkpoint"
    saved = known(run).filter(~pl.col("removed"))["step"].to_list()
    if not saved or step in saved:
        return f"the checkpoint of step {step}"
    return f"the checkpoint of step {min(saved, key=lambda one: abs(one - step))}, the nearest one to step {step}"


def _placed(run: Run, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows with the path and the step of the checkpoint that their path names: a file inside of one is none itself."""
    found = {path: whose(path) for path in rows["path"].drop_nulls().unique()}
    bare = {
        path: one.step for path, one in found.items() if one and one.step is not None and not _SAYS_STEP.search(path)
    }
    asked = bool(bare) or any(one is not None and one.step is None for one in found.values())
    scale = epoch_scale(run) if asked else None
    numbers = sorted(set(bare.values()))
    counted_epochs = scale is not None and _count_epochs(run, numbers, scale)
    from_zero = counted_epochs and numbers[0] == 0  # written when epoch 0 was over
    by_save = _by_save(run, rows, {} if counted_epochs else bare)
    places: list[tuple[str, str, int | None]] = []
    for path, one in found.items():
        if one is None:
            continue
        if counted_epochs and scale is not None and path in bare:
            places.append((path, one.path, scale.step_of(bare[path] + from_zero)))
            continue
        if by_save and path in bare:
            places.append((path, one.path, by_save.get(bare[path])))
            continue
        by_epoch = scale.step_of(one.epoch) if scale is not None and one.epoch is not None else None
        places.append((path, one.path, one.step if one.step is not None else by_epoch))
    told = pl.DataFrame(places, schema={"path": pl.String, "own": pl.String, "at": pl.Int64}, orient="row")
    # a bare number of a path may count epochs; a line that says which step was committed knows better
    says = (pl.col("kind") == "committed") & pl.col("path").is_in(list(bare))
    step = pl.when(says).then(pl.coalesce("step", "at")).otherwise(pl.coalesce("at", "step"))
    return (
        rows.join(told, on="path", how="left", maintain_order="left")
        .with_columns(path=pl.coalesce("own", "path"), step=step)
        .drop("own", "at")
    )


def _by_save(run: Run, rows: pl.DataFrame, bare: Mapping[str, int]) -> Mapping[int, int]:
    """Give the step of each bare number where a log numbers its saves: `model-5.pt` is saved at step 100000.

    The step of a save is the one that its line says, else the one of the record before it. All numbers are one exact
    share of their steps, or they count up by one at steps that lie further apart.
    """
    if not bare:
        return {}
    records = metric_records(run).select("source", "seq", last=at()).drop_nulls().sort("seq").collect()
    saved = rows.filter(pl.col("kind").is_in(["saved", "committed"]) & pl.col("path").is_in(list(bare)))
    saved = saved.select("source", "seq", "path", "step").sort("seq")
    beside = saved.join_asof(records, on="seq", by="source", check_sortedness=False)  # both are sorted
    for column in ("step", "last"):
        placed = beside.filter(pl.col(column).is_not_null()).select("path", column)
        steps = dict(sorted((bare[path], step) for path, step in placed.iter_rows()))
        if found := _shares(steps, [*bare.values()]) or _counts(steps):
            return found
    return {}


def _shares(steps: Mapping[int, int], numbers: Sequence[int]) -> Mapping[int, int]:
    """Give the step of each number where at least two are known and each is the same share of its step."""
    if len(steps) < 2 or min(steps) < 1:  # one number is a share of any step
        return {}
    first = min(steps)
    apart, rest = divmod(steps[first], first)
    if rest or apart < 2 or any(step != apart * number for number, step in steps.items()):
        return {}
    return {number: apart * number for number in numbers}


def _counts(steps: Mapping[int, int]) -> Mapping[int, int]:
    """Give the steps of three or more numbers that count up by one while their steps are further apart."""
    apart = [(after - before, steps[after] - steps[before]) for before, after in pairwise(steps)]
    counted = len(apart) > 1 and all(number == 1 and step >= _STEPS_OF_EPOCH for number, step in apart)
    return steps if counted else {}


def _count_epochs(run: Run, numbers: Sequence[int], scale: EpochScale) -> bool:
    """Whether bare numbers of checkpoints are epochs: one after the other, and no more than the run had."""
    if len(numbers) < 2 or scale.steps < _STEPS_OF_EPOCH or numbers[-1] - numbers[0] != len(numbers) - 1:
        return False
    last = metric_records(run).select(at().max()).collect().item()
    return last is not None and numbers[-1] <= int(last) / scale.steps + 1


def _missing(best: pl.DataFrame) -> pl.Expr:
    """Whether a checkpoint is not on disk although others of its folder are, by the end of their paths."""
    homes = {path.rpartition("/")[0] for path in best.filter("on_disk")["path"] if path}
    home = pl.col("path").str.replace(r"/?[^/]*$", "")
    beside = [(home == name) | (home.str.ends_with(f"/{name}") & bool(name)) for name in sorted(homes)]
    return pl.any_horizontal(beside).fill_null(value=False) if beside else pl.lit(value=False)


def _is_cut(told: pl.DataFrame) -> pl.Expr:
    """Whether the file that a path names lies on disk, under a name without a step, and lacks its end."""
    cut = told.filter((pl.col("kind") == "directory") & pl.col("step").is_null() & ~pl.col("complete"))
    found = [pl.format("/{}", "path").str.ends_with(f"/{source}") for source in cut["source"].unique()]
    return pl.any_horizontal(found).fill_null(value=False) if found else pl.lit(value=False)


#: A distributed checkpoint gets this file when all its parts are written.
_PARTS_OF_RANKS, _WRITTEN_LAST = ".distcp", "/.metadata"


def _uncommitted(told: pl.DataFrame) -> list[str]:
    """Folders of distributed checkpoints without the file that is written last, where another one has it."""
    parts = told.filter((pl.col("kind") == "directory") & pl.col("source").str.ends_with(_PARTS_OF_RANKS))
    last = told.filter(pl.col("source").str.ends_with(_WRITTEN_LAST))["path"].unique()
    return parts.filter(~pl.col("path").is_in(last.implode()))["path"].unique().to_list() if len(last) else []


def _ruined(run: Run, paths: Sequence[str | None]) -> pl.Series:
    """Whether an error that stands names a checkpoint or a file in it: it could not be read, or not be written."""
    said = [f"{f.message}\n{f.quote}\n{_loading(run, f)}" for f in standing(run)] if any(paths) else []
    return pl.Series([bool(path) and any(_names(text, path) for text in said) for path in paths], dtype=pl.Boolean)


def _loading(run: Run, failure: Failure) -> str:
    """The line that says what the process loads whose error speaks of a damaged checkpoint; empty for other errors."""
    if not is_kind(failure.cause, "damaged"):
        return ""
    tried = attempts(run)
    start = tried.every[tried.of(failure.source, line=failure.line, byte=failure.byte, t_ns=failure.t_ns)].start
    return start.quote if start is not None else ""


def _names(text: str, path: str | None) -> bool:
    """Whether a text names a path or one below it, from its beginning or as the end of a longer one."""
    named = rf"(?:^|[^\w.-]){re.escape(path or '')}(?:$|[^\w.-]|\.(?:$|\W))"
    return re.search(named, text, re.MULTILINE) is not None


def _best(column: str, kept: pl.Expr) -> pl.Expr:
    """The first value of a column among kept rows, folders on disk before commit lines before save lines."""
    return pl.col(column).filter(kept).sort_by(pl.col("order").filter(kept)).first()


def fates(rows: pl.DataFrame) -> pl.DataFrame:
    """Known checkpoints with `state` (removed or incomplete) and `why`; both are null of one that is whole."""
    kept = ~pl.col("committed") & ~pl.col("on_disk") & pl.lit(bool(rows["committed"].any()))
    broken = ~pl.col("complete").fill_null(value=True)
    return _by_first(
        rows,
        (pl.col("removed"), "removed", "a later line says that it was deleted"),
        (pl.col("replaced"), "removed", "a later step was saved into its file"),
        (pl.col("ruined"), "incomplete", "an error names it"),
        (broken, "incomplete", "the files on disk are not those of a finished save"),
        (kept, "incomplete", "its save began, but no line says that it was committed"),
    )


class Doubt(Struct, frozen=True):
    """Checkpoints from a step on may be bad although the loss was finite; `never`: not even where there is no other."""

    step: int
    why: str
    never: bool = False


def judged(
    rows: pl.DataFrame, *, first_bad: int, last_clean: int | None, proof: str, doubt: Doubt | None = None
) -> pl.DataFrame:
    """Known checkpoints with `state` (clean, unknown, dirty, removed, incomplete) and `why`.

    The loss of step s is computed before update s, so a checkpoint at the last step with a finite loss may already hold
    a bad update; `proof` says why it does not, empty where nothing proves it. All numbers are steps:
    `doubt` says from where on a finite loss proves nothing. Without a last clean step everything before
    the first bad one is unknown.
    """
    step, clean = pl.col("step"), pl.lit(last_clean, dtype=pl.Int64)
    edge = proof or "the loss of its own step is finite, that of the next is not known: look for NaN in it before use"
    whole = _by_first(
        rows,
        (step >= first_bad, "dirty", f"saved at or after the first bad step {first_bad}"),
        (clean.is_null(), "unknown", "no finite record comes before the first bad one"),
        (step > clean, "unknown", f"between the last clean record ({last_clean}) and the first bad one ({first_bad})"),
        *(() if doubt is None else ((step >= doubt.step, "unknown", doubt.why),)),
        (step == clean, "clean", edge),
        (step < clean, "clean", f"finite records follow it, up to step {last_clean}"),
    )
    return fates(rows).with_columns(pl.coalesce(name, whole[name]) for name in ("state", "why"))


def _by_first(rows: pl.DataFrame, *table: tuple[pl.Expr, str, str]) -> pl.DataFrame:
    """Rows with the state and the reason of the first condition that each meets."""
    state, why = pl.lit(None, dtype=pl.String), pl.lit(None, dtype=pl.String)
    for condition, name, reason in reversed(table):
        met = condition.fill_null(value=False)
        state = pl.when(met).then(pl.lit(name)).otherwise(state)
        why = pl.when(met).then(pl.lit(reason)).otherwise(why)
    return rows.with_columns(state=state, why=why)
