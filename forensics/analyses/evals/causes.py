"""The setting of the evaluation that changed when its scores fell: the most telling one that can act on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl
from msgspec import Struct

from forensics.analyses.evals.falls import Fall, first_fall, rises_beside
from forensics.analyses.evals.results import Row, settings_of
from forensics.analyses.evals.settings import RANKS, Unlike, compared, family_of, place_of
from forensics.analyses.evals.sittings import Sitting, evaluated_step, filed_step, of_wrong_checkpoint, weights_of
from forensics.formats.evals.checkpoint_names import stamp_ns, step_in
from forensics.store.run import Run, derived
from forensics.values import firsts

#: Slugs of changes; settings of every other family are `eval_settings_change`.
_CAUSES = {"checkpoint": "wrong_checkpoint", "tokenizer": "tokenizer_mismatch", "labels": "labels_changed"}
_ORDER = {family: place for place, family in enumerate(("checkpoint", "labels", *RANKS[1:]))}
#: Families whose change alone does not make a score fall far.
_WEAK = frozenset(("seed",))
#: Settings of unknown meaning are believed where so many sound evaluations had them all alike.
_CONSTANT = 2
_MOST_TASKS = 20
#: Shares of the documents in common that must be alike, and that must differ.
_ALIKE, _DIFFER = 0.9, 0.5
#: Hashes that make another tokenizer, and what each is of.
_HASHES = {
    "tokenizer.base_sha256": ("vocabulary", "tokenizer"),
    "tokenizer.merges_sha256": ("merges", "tokenizer"),
    "tokenizer.chat_template_sha256": ("chat template", "prompt"),
}


class Diagnosed(Struct, frozen=True):
    """A fall and its cause: settings that changed with it, the most telling first; none where nothing recorded did.

    `is_traded`: another task got better by as much, so that the model gave one skill for another.
    """

    fall: Fall
    cause: str
    changed: tuple[Unlike, ...]
    is_traded: bool = False

    @property
    def is_of_wrong_weights(self) -> bool:
        """Whether the results are filed under another step than the loaded weights have."""
        return bool(self.changed) and self.changed[0].family == "checkpoint"


@derived
def diagnosed(run: Run) -> Diagnosed | None:
    """The first fall of the scores of a run, with its cause."""
    fall = first_fall(run)
    if fall is None:
        return None
    changed = [one for one in _changed(run, fall) if one.family not in _WEAK]
    if changed:
        return Diagnosed(fall, _CAUSES.get(changed[0].family, "eval_settings_change"), tuple(changed))
    if rises_beside(run, fall):
        return Diagnosed(fall, "forgetting", (), is_traded=True)
    return Diagnosed(fall, "cause_not_recorded" if fall.is_abrupt else "eval_falls", ())


def _changed(run: Run, fall: Fall) -> list[Unlike]:
    found: list[Unlike] = []
    for test in fall.tasks[:_MOST_TASKS]:
        before = _row_like(fall.sound[-1], test.after) or test.before
        unlike = compared(before, test.after)
        found += (
            *_wrong_weights(fall, test.after),
            *tokenizer_unlike(run, before, test.after),
            *documents_unlike(run, before, test.after),
            *unlike.blocks,
            *unlike.care,
            *_others(fall, test.after),
        )
    once = firsts(found, lambda one: (one.family, one.name))
    return sorted(once, key=lambda one: (_ORDER[one.family], {one.base, one.cand} <= {"True", "False", "not set"}))


def _wrong_weights(fall: Fall, after: Row) -> Iterator[Unlike]:
    """The weights that were loaded, where they are of another step than the results are filed under."""
    rows = [row for one in (*fall.sound, *fall.fallen) for row in one.rows.values()]
    if any(row is after for row in of_wrong_checkpoint(rows)):
        place, made = place_of(after), weights_of(after) or f"of step {evaluated_step(after)}"
        yield Unlike("checkpoint", f"of step {fall.step}", made, place, place, family="checkpoint")


def _others(fall: Fall, after: Row) -> Iterator[Unlike]:
    """Settings of unknown meaning that all sound evaluations had alike, and the fallen one has not."""
    known = [settings_of(row) for one in fall.sound if (row := _row_like(one, after)) is not None]
    if len(known) < _CONSTANT:
        return
    now = settings_of(after)
    later = [settings_of(row) for one in fall.fallen if (row := _row_like(one, after)) is not None]
    for key, cell in now.items():
        if family_of(key) is not None or not _is_plain(cell) or cell == known[0].get(key, cell):
            continue
        if all(one.get(key) == known[0].get(key) for one in known) and all(one.get(key) == cell for one in later):
            source = str(after["source"])
            yield Unlike(key, str(known[0][key]), str(cell), source, source, family="other")


def _row_like(one: Sitting, row: Row) -> Row | None:
    return next((o for o in one.rows.values() if all(o[c] == row[c] for c in ("task", "metric", "filter"))), None)


def _is_plain(cell: object) -> bool:
    """Whether a value is one that a person sets: no time and no measured number."""
    return isinstance(cell, (bool, str, int)) or (isinstance(cell, float) and cell == round(cell, 3))


def words_of(changed: Sequence[Unlike]) -> str:
    """Give the settings that changed, the first three of the most telling family."""
    own = [one.words for one in changed if one.family == changed[0].family]
    return "; ".join(own[:3])


# Whether two evaluations asked the same of the same documents, by the hashes of their samples.


def documents_unlike(run: Run, before: Row, after: Row) -> Iterator[Unlike]:
    """Tell labels that changed under the same prompts, and prompts that changed of the same documents."""
    first, second = _hashes(run, before), _hashes(run, after)
    shared = [doc for doc in first if doc in second]
    if not shared:
        return
    same_words = sum(first[doc][1] == second[doc][1] for doc in shared) / len(shared)
    same_docs = sum(first[doc][0] == second[doc][0] for doc in shared) / len(shared)
    places = str(before["source"]), str(after["source"])
    count = f"other in {round((1 - min(same_docs, same_words)) * len(shared))} of {len(shared)} documents"
    if same_words >= _ALIKE and same_docs <= _DIFFER:
        yield Unlike("labels of the documents", "as asked before", count, *places, family="labels")
    elif same_docs >= _ALIKE and same_words <= _DIFFER:
        yield Unlike("prompts of the documents", "as asked before", count, *places, family="prompt")


def _hashes(run: Run, row: Row) -> Mapping[str, tuple[str | None, str | None]]:
    """Hashes of document and prompt, by document, of the samples beside a result."""
    folder, stamp = str(row["source"]).rpartition("/")[0], stamp_ns(str(row["source"]))
    samples = run.scan("eval_samples").filter(
        (pl.col("task") == row["task"])
        & pl.col("source").str.starts_with(f"{folder}/" if folder else "")
        & pl.col("doc_hash").is_not_null()
        & pl.col("prompt_hash").is_not_null()
    )
    frame = samples.select("source", "doc", "doc_hash", "prompt_hash").collect()
    by_source = {str(source): part for (source,), part in frame.group_by("source", maintain_order=True)}
    near = [source for source in by_source if stamp_ns(source) == stamp] or list(by_source)
    if not near:
        return {}
    rows = by_source[near[-1]].iter_rows(named=True)
    return {str(one["doc"]): (one["doc_hash"], one["prompt_hash"]) for one in rows}


# The tokenizer beside the results, and the one beside the weights they were computed with.


class _Beside(Struct, frozen=True):
    source: str
    value: str


def tokenizer_unlike(run: Run, before: Row, after: Row) -> Iterator[Unlike]:
    """Hashes of a result's tokenizer that differ from its weights' tokenizer, else from the result before."""
    folders = _by_folder(run)
    own = _of_result(folders, after)
    if not own:
        return
    weights = _of_weights(folders, after)
    first = weights or _of_result(folders, before)
    for key, (what, family) in _HASHES.items():
        if key in own and key in first and own[key].value != first[key].value:
            words = (first[key].value[:8], own[key].value[:8])
            yield Unlike(f"tokenizer {what}", *words, first[key].source, own[key].source, family=family)


@derived
def _by_folder(run: Run) -> Mapping[str, Mapping[str, _Beside]]:
    """Hashes of the tokenizer files, by their folder."""
    rows = run.scan("facts").filter((pl.col("family") == "tokenizer") & pl.col("key").is_in(list(_HASHES))).collect()
    found: dict[str, dict[str, _Beside]] = {}
    for row in rows.iter_rows(named=True):
        folder = str(row["source"]).rpartition("/")[0]
        found.setdefault(folder, {})[str(row["key"])] = _Beside(str(row["source"]), str(row["value"]).strip('"'))
    return found


def _of_result(folders: Mapping[str, Mapping[str, _Beside]], row: Row) -> Mapping[str, _Beside]:
    """Those in the folder of a result, or in the one above it."""
    folder = str(row["source"]).rpartition("/")[0]
    return folders.get(folder) or (folders.get(folder.rpartition("/")[0], {}) if "/" in folder else {})


def _of_weights(folders: Mapping[str, Mapping[str, _Beside]], row: Row) -> Mapping[str, _Beside]:
    """Those beside the weights that were loaded: in the folder of their name, else in one of their step."""
    named = (weights_of(row) or str(row["model"] or "")).rstrip("/")
    here = str(row["source"]).rpartition("/")[0]
    others = {folder: told for folder, told in folders.items() if folder and not f"{here}/".startswith(f"{folder}/")}
    exact = [told for folder, told in others.items() if named and (folder == named or named.endswith(f"/{folder}"))]
    step = step_in([named]) if named and step_in([named]) is not None else filed_step(row)
    of_step = [told for folder, told in others.items() if step is not None and step_in([folder]) == step]
    every = [*exact, *of_step]
    return every[0] if every else {}
