"""Rows of results in a layout that no program of its own has: the statements beside each score, and in its path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forensics.errors import NotMine
from forensics.formats.evals._rows import EvalRow, text_of, whole
from forensics.formats.evals._settings import settings_text
from forensics.formats.evals._tree import COUNTS, TASKS, Scored
from forensics.formats.evals.checkpoint_names import stamp_ns, step_in
from forensics.formats.rows.json_records import Offsets
from forensics.knowledge.scores import is_share
from forensics.knowledge.vocabulary import keys_of, stands_for
from forensics.patterns import lazily

_MODELS = keys_of("model_of_result")
_STEPS = (*keys_of("step_of_result"), "steps")
_SHOTS = keys_of("shots_of_result")
_VERSIONS = keys_of("version_of_result")
#: What only records of training hold.
_TRAINS = frozenset(keys_of("only_in_training"))
#: Words of a file's name that name no task.
_NO_TASK = lazily(
    r"(?i)(?:eval(?:uation)?s?|results?|scores?|metrics?|summary|output|benchmarks?|accuracy|final|last|best|latest|all"
    r"|(?:global[_-]?step|checkpoint|iteration|step|iter|ckpt|epoch)[_\-=]?\d*|\d[\d\-T.:]*|baseline|candidate|run)"
    r"(?=[_\-.]|$)[_\-.]?"
)
_WORDS = lazily(r"[A-Za-z]{2}")
#: No share and no percentage.
_MOST_SHARE = 100.0


def own_rows(scores: Sequence[Scored], path: str, where: Offsets, *, strict: bool = True) -> Iterator[EvalRow]:
    """Give a row for each score of one file.

    Raises `NotMine` when it is strict, and nothing says that they are results of an evaluation.
    """
    sound = [one for one in scores if not is_share(one.metric) or not one.value > _MOST_SHARE]
    is_evaluation = not trains(sound) and (stands_for("path_of_evaluations", path) or identifies(sound))
    if strict and not (sound and is_evaluation):
        raise NotMine("no results of an evaluation")
    by_name = _task_in(path)
    for seq, one in enumerate(sound):
        line, byte = where.of(one.path)
        yield row_of(one, path, (seq, line, byte), by_name)


def row_of(one: Scored, path: str, at: tuple[int, int | None, int | None], by_name: str = "") -> EvalRow:
    """Give a row; the step is taken from the evaluated weights, else from the file, else from the path."""
    model = text_of(one.said(_MODELS))
    stated = whole(one.said(_STEPS))
    evaluated = step_in([model]) if model is not None else None
    key = str(one.path[-1]) if one.path else ""
    seq, line, byte = at
    return EvalRow(
        seq=seq,
        line=line,
        byte=byte,
        task=one.task or text_of(one.said(TASKS)) or by_name or "eval",
        task_version=text_of(one.said(_VERSIONS)),
        metric=one.metric,
        filter=key.partition(",")[2] or text_of(one.said(("filter",))),
        value=one.value,
        stderr=one.stderr,
        n=_count(one),
        fewshot=whole(one.said(_SHOTS)),
        higher_is_better=None,
        model=model,
        step=next(
            (step for step in (evaluated, stated, step_in([path.rpartition("/")[2], path])) if step is not None), None
        ),
        t_ns=stamp_ns(path),
        settings=settings_text((key, "none" if cell is None else cell) for key, cell in one.around.items()),
    )


def _count(one: Scored) -> int | None:
    found = whole(one.said(COUNTS))
    return found if found is not None and found > 0 else None


def trains(scores: Sequence[Scored]) -> bool:
    """Whether the values beside the scores are a record of training."""
    return any(not _TRAINS.isdisjoint(one.around) for one in scores[:1])


def identifies(scores: Sequence[Scored], path: str = "") -> bool:
    """Whether a task or a number of documents is beside the scores, or weights where the path says evaluation."""
    names = (*TASKS, *COUNTS, *(_MODELS if stands_for("path_of_evaluations", path) else ()))
    return any(one.said(names) is not None for one in scores)


def _task_in(path: str) -> str:
    """The task that the name of a file gives, or the folder of the results of one task; empty for none."""
    *folders, name = path.split("/")
    own = _NO_TASK.sub("", name.partition(".")[0]).strip("_-.")
    if _WORDS.search(own):
        return own
    if len(folders) > 1 and stands_for("path_of_evaluations", folders[-2]) and not _NO_TASK.fullmatch(folders[-1]):
        return folders[-1]
    return ""
