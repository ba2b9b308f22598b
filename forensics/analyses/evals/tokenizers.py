"""The tokenizer that lies beside results, and the one that lies beside the weights they were made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl
from msgspec import Struct

from forensics.analyses.evals.results import Row
from forensics.analyses.evals.settings import Unlike
from forensics.analyses.evals.sittings import filed_step, weights_of
from forensics.formats.evals.checkpoint_names import step_in
from forensics.store.run import Run, derived

#: Hashes that make another tokenizer, and what each is of.
_HASHES = {
    "tokenizer.base_sha256": ("vocabulary", "tokenizer"),
    "tokenizer.merges_sha256": ("merges", "tokenizer"),
    "tokenizer.chat_template_sha256": ("chat template", "prompt"),
}


class _Beside(Struct, frozen=True):
    source: str
    value: str


def tokenizer_unlike(run: Run, before: Row, after: Row) -> Iterator[Unlike]:
    """Hashes of the tokenizer of a result that differ from those of its weights, else from those of the one before."""
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
    """Hashes of the tokenizer files, by the folder they lie in."""
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
