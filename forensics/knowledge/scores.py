"""Names of scores: which keys of a result are one, and which way each is better, from `training/scores.jsonl`.

A row has `row` (its name), `kind`, `names` (a pattern of whole names), `where` (`logged` where it holds among logged
metrics alone: as a key of any file it may be something else) and `source`. A `share` is one of documents, 1 being best;
of `higher` more is better, of `lower` less; what is `of_loss` is computed from the loss; of what is `of_pairs` a guess
gets half, of what is `of_none` nothing; what is `of_positives` counts one class alone; of what is `wrong`, the rest is
right. `split` are words that tell no task before a name, `bound` those of a key that is a limit or a goal.
"""

from __future__ import annotations

import re
from functools import cache

from forensics.knowledge._rows import bare_rows

_MOST_CHARS = 200


def metric_of(key: str) -> tuple[str | None, str] | None:
    """The task that a key names, if it does, and its metric: `gsm8k_accuracy`, `eval/f1`, `acc,none`; else None."""
    name = key.partition(",")[0].strip()
    if not name or len(name) > _MOST_CHARS or _bound().search(name):
        return None
    plain, of_loss, with_task = _keys()
    if (found := plain.fullmatch(name) or of_loss.fullmatch(name)) is not None:
        return None, found["metric"]
    both = with_task.fullmatch(name)
    return (both["task"], both["metric"]) if both is not None else None


def is_share(metric: str) -> bool:
    """Whether a metric is a share of documents, so that its error follows from their number."""
    return _whole("share").fullmatch(metric) is not None


def is_higher_better(metric: str) -> bool | None:
    """Direction of a metric by its whole name; None where the name does not tell."""
    if _whole("share", "higher").fullmatch(metric):
        return True
    return False if _whole("lower").fullmatch(metric) or metric.lower() in ("loss", "nll") else None


def direction(name: str) -> bool | None:
    """Direction of a logged metric by a word of its name: whether higher is better; None where no word tells."""
    if _word("lower").search(name):
        return False
    return True if _word("share", "higher").search(name) else None


def counts_right(name: str) -> bool:
    """Whether a logged metric is the share of samples that are right, in percent or not."""
    return direction(name) is True and _word("share").search(name) is not None


def is_of_overlap(metric: str) -> bool:
    """Whether a metric counts what an answer has in common with the right one, not only a whole right answer."""
    return _whole("of_overlap").fullmatch(metric) is not None


def is_of_loss(name: str) -> bool:
    """Whether a logged metric is the loss, or computed from it."""
    return _word("of_loss").search(name) is not None


def is_error_rate(name: str) -> bool:
    """Whether a logged metric is the share of what is wrong, in percent or not."""
    return _word("wrong").search(name) is not None


def is_of_pairs(name: str) -> bool:
    """Whether a logged metric is the share of pairs in the right order, half of which a guess gets."""
    return _word("of_pairs").search(name) is not None


def is_of_positives(name: str) -> bool:
    """Whether a logged metric is zero where no sample of the class that is sought was found."""
    return _word("of_positives").search(name) is not None


def is_of_none(name: str) -> bool:
    """Whether a logged metric is zero for an answer that does not depend on the sample."""
    return _word("of_none").search(name) is not None


@cache
def _names(*kinds: str, logged: bool) -> str:
    rows = (
        r for r in bare_rows("training/scores.jsonl") if r["kind"] in kinds and (logged or r.get("where") != "logged")
    )
    return "|".join(row["names"] for row in rows)


@cache
def _whole(*kinds: str) -> re.Pattern[str]:
    return re.compile(f"(?i)(?:{_names(*kinds, logged=False)})")


@cache
def _word(*kinds: str) -> re.Pattern[str]:
    return re.compile(rf"(?i)(?:^|[/_. -])(?:{_names(*kinds, logged=True)})(?:$|[/_. @(-])")


@cache
def _bound() -> re.Pattern[str]:
    return re.compile(rf"(?i)(?:^|[/_. -])(?:{_names('bound', logged=False)})(?:$|[/_. -])")


@cache
def _keys() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Keys of a score, of an evaluation's loss, and of a score with its task."""
    metric = f"(?P<metric>{_names('share', 'higher', 'lower', logged=False)})"
    return (
        re.compile(rf"(?i)(?:(?:{_names('split', logged=False)})[_/. -])*{metric}(?:\s*\(?%\)?)?"),
        re.compile(r"(?i)(?:eval|test|val(?:id(?:ation)?)?|heldout)[_/. -](?P<metric>loss|nll)"),
        re.compile(rf"(?i)(?P<task>.*\w)[_/. :|-]{metric}"),
    )
