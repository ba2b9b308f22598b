"""Scores in a document of any layout: the task of each, and everything stated beside it.

A score is a number under the name of one (`accuracy`, `gsm8k_acc`), under `value` beside a `metric`, or in a table of
tasks whose own key is the name (`{"accuracy": {"gsm8k": 0.6}}`). Its task is what a field beside or above it says, else
the keys that lead to it. Values beside it and above it, and in objects there that hold no score, are settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import isfinite
from typing import cast

from msgspec import Struct, field

from forensics.formats.evals._settings import flat
from forensics.io.tolerant_json import as_object
from forensics.knowledge.scores import metric_of
from forensics.knowledge.vocabulary import keys_of
from forensics.patterns import lazily
from forensics.values import replace

Path = tuple[str | int, ...]
#: Deeper objects and more scores of one document than this are no table of results.
_DEEPEST, _MOST = 12, 100_000
#: Settings of one object, nested ones included, that are kept.
_MOST_SETTINGS = 100
TASKS = keys_of("task_of_result")
METRICS = keys_of("metric_of_result")
_VALUES = keys_of("value_of_result")
#: Keys that say where results are, not of what, unless they are beside tasks.
_SUMMARIES = frozenset(keys_of("summary_of_results"))
#: Keys that say where results are, not of what.
_CONTAINERS = frozenset(keys_of("container_of_results"))
#: What is logged of single documents, or of training.
_NOT_RESULTS = frozenset(keys_of("not_of_results"))
_OF_ONE_DOCUMENT = keys_of("of_one_document")
_ERROR = lazily(r"(?i)(?:^|_)(?:stderr|std_?err(?:or)?|se|sem)$")
#: Counts of documents, the plainest first.
COUNTS = keys_of("documents_of_result")


class Scored(Struct, frozen=True):
    """One score: its place, task, metric and error, and what is stated beside it, the nearest last."""

    path: Path
    task: str
    metric: str
    value: float
    stderr: float | None = None
    around: Mapping[str, object] = field(default_factory=dict[str, object])

    def said(self, names: Sequence[str]) -> object:
        """The nearest value of the first of these names that has one; None where none is."""
        near = {key.rpartition(".")[2].lower(): cell for key, cell in self.around.items()}
        return next((near[name] for name in names if near.get(name) is not None), None)


def scores_in(document: object) -> list[Scored]:
    """Every score of a document, in order; two that nothing tells apart get the number of their place in a list."""
    bare = list(_walk(document, (), 0))[:_MOST]
    inside = {one.path[:end] for one in bare for end in range(len(one.path) + 1)}
    settings: dict[Path, dict[str, object]] = {}
    return _told_apart(_by_split([_with_settings(one, document, inside, settings) for one in bare]))


def _walk(node: object, path: Path, depth: int) -> Iterator[Scored]:
    if depth > _DEEPEST:
        return
    if isinstance(node, list):
        for at, child in enumerate(cast("list[object]", node)):
            yield from _walk(child, (*path, at), depth + 1)
    elif isinstance(node, dict):
        cells = cast("dict[str, object]", node)
        if not any(isinstance(cells.get(key), (str, int, list)) for key in _OF_ONE_DOCUMENT):
            yield from _of_object(cells, path)
            for key, child in cells.items():
                held = _held(key, child)
                if held is not None:
                    yield replace(held, path=(*path, *held.path))
                elif isinstance(child, (dict, list)) and key.lower() not in _NOT_RESULTS:
                    yield from _walk(cast("object", child), (*path, key), depth + 1)


def _held(key: str, child: object) -> Scored | None:
    """The score in an object that holds its value, under the name of the metric: `{"accuracy": {"value": 0.5}}`."""
    told = metric_of(key)
    if told is None or not isinstance(child, dict):
        return None
    cells = cast("dict[str, object]", child)
    name = next((name for name in _VALUES if _number(cells.get(name)) is not None), None)
    value = None if name is None else _number(cells[name])
    if name is None or value is None:
        return None
    return Scored((key, name), told[0] or "", told[1], value, _error_of(cells, name, told[1]))


def _of_object(cells: Mapping[str, object], path: Path) -> Iterator[Scored]:
    """Scores that an object holds itself."""
    named = _named(cells)
    if named is not None:
        key, metric = named
        value = _number(cells[key])
        if value is not None:
            yield Scored((*path, key), "", metric, value, _error_of(cells, key, metric))
        return
    found = [(key, metric_of(key), value) for key, cell in cells.items() if (value := _number(cell)) is not None]
    scores = [(key, told, value) for key, told, value in found if told is not None]
    for key, (task, metric), value in scores:
        if metric.lower() == "precision" and len(scores) == 1:
            continue  # of numbers, not of answers
        yield Scored((*path, key), task or "", metric, value, _error_of(cells, key, metric))
    yield from _table(cells, path)


def _named(cells: Mapping[str, object]) -> tuple[str, str] | None:
    """The key of the value of an object that names its metric, and the metric."""
    metric = next((cells[key] for key in METRICS if isinstance(cells.get(key), str)), None)
    if metric is None:
        name = cells.get("name")
        name = cast("dict[str, object]", name).get("name") if isinstance(name, dict) else name
        metric = name if isinstance(name, str) and metric_of(name) is not None else None
    key = next((key for key in _VALUES if _number(cells.get(key)) is not None), None)
    return (key, str(metric)) if metric is not None and key is not None else None


def _table(cells: Mapping[str, object], path: Path) -> Iterator[Scored]:
    """Numbers by task, in an object whose own key is a metric, or a word for results: then they are plain scores."""
    last = next((str(key) for key in reversed(path) if isinstance(key, str)), "")
    told = metric_of(last)
    if told is None and last.lower() not in ("results", "scores"):
        return
    metric = told[1] if told is not None else "score"
    values = {key: value for key, cell in cells.items() if (value := _number(cell)) is not None}
    if len(values) < len(cells) or all(value == int(value) for value in values.values() if isfinite(value)):
        return
    for key, value in values.items():
        is_task = metric_of(key) is None and not _ERROR.search(key) and key.lower() not in (*COUNTS, *_VALUES, "step")
        if is_task and 0 <= value <= 100:
            yield Scored((*path, key), key, metric, value)


def _number(cell: object) -> float | None:
    """A number, not a truth value; text that prints one may be a setting, save `nan`."""
    if isinstance(cell, bool):
        return None
    if isinstance(cell, (int, float)):
        return float(cell)
    return float("nan") if isinstance(cell, str) and cell.lower() == "nan" else None


def _error_of(cells: Mapping[str, object], key: str, metric: str) -> float | None:
    """The standard error beside a score: under its own name (`acc_stderr,none`), else the only one of the object."""
    plain, comma, by = key.partition(",")
    names = (f"{plain}_stderr{comma}{by}", f"{metric}_stderr", f"{key}_se", f"{key}_std_err", f"{key}_error")
    own = next((cells[name] for name in names if name in cells), None)
    if own is None:
        every = [cell for name, cell in cells.items() if _ERROR.fullmatch(name)]
        own = every[0] if len(every) == 1 else None
    value = _number(own)
    return value if value is not None and value >= 0 else None


def _with_settings(one: Scored, document: object, inside: set[Path], known: dict[Path, dict[str, object]]) -> Scored:
    around: dict[str, object] = {}
    names: list[str] = []
    node = document
    for end, key in enumerate(one.path):
        if isinstance(node, dict):
            at, cells = one.path[:end], cast("dict[str, object]", node)
            if at not in known:
                known[at] = dict(islice(_settings(cells, at, inside), _MOST_SETTINGS))
            around |= known[at]
            own = next((str(cells[name]) for name in TASKS if isinstance(cells.get(name), str)), None)
            names = names if own is None else [own]
        if end + 1 < len(one.path) and isinstance(key, str) and _names_task(key, cast("object", node)):
            names.append(key)
        node = cast("Mapping[str | int, object]", node)[key]
    return replace(one, task="/".join(dict.fromkeys(filter(None, (*names, one.task)))), around=around)


def _names_task(key: str, node: object) -> bool:
    if key.lower() in _SUMMARIES:
        return any(isinstance(cell, dict) and not _is_container(name) for name, cell in as_object(node).items())
    return not _is_container(key)


def _is_container(key: str) -> bool:
    return key.lower() in _CONTAINERS | _SUMMARIES or metric_of(key) is not None


def _settings(cells: Mapping[str, object], at: Path, inside: set[Path]) -> Iterator[tuple[str, object]]:
    """What an object says beside its scores; a null is said, too."""
    for key, cell in cells.items():
        if (*at, key) in inside or (metric_of(key) is not None and _number(cell) is not None) or _ERROR.search(key):
            continue
        if isinstance(cell, dict):
            yield from flat(key, cast("dict[str, object]", cell))
        else:
            yield from flat("", {key: cell})


#: The word of a split that a key of a score begins with: `val_accuracy`.
_SPLIT = lazily(r"(?i)(val(?:id(?:ation)?)?|dev|eval(?:uation)?|test|train(?:ing)?|predict)[_/. -]")


def _by_split(scores: list[Scored]) -> list[Scored]:
    """The scores, with the splits that their keys name as tasks where nothing else tells two of them apart."""
    words = [
        "" if one.task else (told[1].lower() if (told := _SPLIT.match(str(one.path[-1]))) else "") for one in scores
    ]
    found: dict[tuple[Path, str], set[str]] = {}
    for one, word in zip(scores, words, strict=True):
        if not one.task:
            found.setdefault((one.path[:-1], one.metric), set()).add(word)
    apart = {key for key, names in found.items() if len(names) > 1 and "" not in names}
    return [
        replace(one, task=word) if word and (one.path[:-1], one.metric) in apart else one
        for one, word in zip(scores, words, strict=True)
    ]


def _told_apart(scores: list[Scored]) -> list[Scored]:
    seen: dict[tuple[object, ...], int] = {}
    kept: list[Scored] = []
    for one in scores:
        what = (one.task, one.metric, *(str(one.said((name,))) for name in ("step", "model", "checkpoint", "split")))
        place = next((key for key in reversed(one.path) if isinstance(key, int)), None)
        again = seen.get(what, 0)
        seen[what] = again + 1
        kept.append(one if not again else replace(one, task=f"{one.task}[{place if place is not None else again}]"))
    return kept
