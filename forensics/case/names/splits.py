"""Which files hold the numbers of evaluations, where only their paths say so: `valid/acc.tsv` beside `train/acc.tsv`.

TensorBoard's callback of Keras, `add_scalars`, CatBoost and dvclive write one name into two files. A file counts as one
of held-out data where another has its path but for the word, that of training in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from forensics.dialects.names import canonical
from forensics.knowledge.vocabulary import stands_for
from forensics.patterns import lazily
from forensics.store.packed import Packed

_WORD = lazily(r"[^/_. -]+")
#: What event files and files of a process have behind their names: when, where and by whom they were written.
_MADE = lazily(r"(?<=tfevents).*")


def told_apart(table: Packed) -> Packed:
    """Give the rows of held-out files with the word of their data before each name that says of none."""
    sources = table.shared("source").unique()
    held = split_by_path([] if len(sources) < 2 else map(str, sources.drop_nulls()))
    if not held:
        return table
    names = table.names["raw_name"].unique().drop_nulls().to_list()
    own = [raw for raw in names if not (stands_for("held_out_word", raw) or stands_for("names_training", raw))]
    for word in sorted({*held.values()}):
        within = [source for source, one in held.items() if one == word]
        means = {raw: (_held_out(raw, f"{word}/{raw}"), f"{word}/{raw}") for raw in own}
        table = table.renamed_within(within, means)
    return table


def _held_out(raw: str, printed: str) -> str:
    """What a name means in an evaluation, whichever word says so: itself where no table knows it."""
    known, own = canonical(f"val/{raw}").canonical, f"val/{raw}"
    return printed if known == own else known


def without_split(printed: str) -> tuple[str, ...]:
    """Give the words of a printed name in order, without those that say on which data it was measured."""
    words = _WORD.findall(printed.lower())
    return tuple(
        word for word in words if not (stands_for("held_out_word", word) or stands_for("names_training", word))
    )


def split_by_path(paths: Iterable[str]) -> Mapping[str, str]:
    """Files of held-out data, and the word that says so, of paths that have a like one of training."""
    told = {path: _told(path) for path in paths}
    trained = {frame for frame, word in told.values() if word == ""}
    return {path: word for path, (frame, word) in told.items() if word and frame in trained}


def _told(path: str) -> tuple[str, str | None]:
    """A path without its words of splits, and the held-out one; nothing for training, None where they disagree."""
    plain = _MADE.sub("", path)
    words = {word.lower() for word in _WORD.findall(plain)}
    held = {word for word in words if stands_for("held_out_word", word)}
    own = {word for word in words if word not in held and stands_for("names_a_split_only", word)}
    frame = _WORD.sub(lambda found: "*" if found[0].lower() in held | own else found[0], plain)
    return frame, None if bool(held) == bool(own) or len(held) > 1 else next(iter(held), "")
