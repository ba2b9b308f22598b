"""The settings of one run: facts with their meaning, lists put together, tables in lists named by their names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
from msgspec import Struct

from forensics.compare.config._keys import OTHER, Concept, concept_of, normalised
from forensics.compare.config.values import Value, value_of
from forensics.knowledge.vocabulary import keys_of, stands_for
from forensics.store.run import Run

_FAMILIES = ("config", "generation", "tokenizer", "versions", "weights")
_NAMES = keys_of("name_in_a_list_of_tables")


class Entry(Struct, frozen=True):
    """One setting: its normalised key, meaning, value, and the row that says it (source, line, key as written)."""

    key: str
    concept: Concept
    value: Value
    row: Mapping[str, Any]

    @property
    def leaf(self) -> str:
        return self.key.rsplit(".", 1)[-1]

    @property
    def shown(self) -> str:
        """The value as text, of a list all of its items."""
        return shown(self.value)


def shown(value: Value) -> str:
    """A value as a person writes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, tuple):
        return f"[{', '.join(shown(v) for v in value)}]"
    text = str(value)
    return text if len(text) <= 120 else text[:117] + "..."


def entries(run: Run) -> tuple[Entry, ...]:
    """Every setting of a run that may matter, noise left out, in the order of sources and lines."""
    facts = (
        run.scan("facts")
        .filter(pl.col("family").is_in(_FAMILIES))
        .with_row_index("at")
        .sort("source", "at", maintain_order=True)
        .collect()
    )
    found: list[Entry] = []
    for _, rows in facts.group_by("source", "family", maintain_order=True):
        found += _of_source(list(rows.iter_rows(named=True)))
    return tuple(found)


def _of_source(rows: list[dict[str, Any]]) -> Iterable[Entry]:
    if rows and rows[0]["family"] == "versions":
        return [_version(row) for row in rows]
    names = _names_in_lists(rows)
    whole: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        key = _renamed(normalised(str(row["key"])), names)
        whole.setdefault(re.sub(r"\.\d+$", "", key), []).append(row)
    found: list[Entry] = []
    for key, parts in whole.items():
        concept = concept_of(key)
        if concept is None or key.startswith("runs."):
            continue
        is_list = any(re.search(r"[./]\d+$", str(part["key"])) for part in parts)
        values = [value_of(part["value"]) for part in parts]
        if is_list:
            found.append(Entry(key, concept, tuple(values), parts[0]))
        else:
            found += [Entry(key, concept, _of_words(v, key), p) for v, p in zip(values, parts, strict=True)]
    return found


def _of_words(value: Value, key: str) -> Value:
    """`0.9 0.95` of a command line is a list, as are the weights and paths of a blend."""
    if isinstance(value, str) and " " in value and re.search(r"betas|data_path|milestones|_modules|probs|weights", key):
        return tuple(value_of(part) for part in value.split())
    return value


def _names_in_lists(rows: list[dict[str, Any]]) -> dict[str, str]:
    """For `a.0` the name of that table, where every table of the list has another one."""
    named: dict[str, dict[str, str]] = {}
    for wanted in _NAMES:
        for row in rows:
            parts = normalised(str(row["key"])).rsplit(".", 2)
            if len(parts) == 3 and parts[1].isdigit() and parts[2] == wanted:
                name = str(value_of(row["value"])).lower().replace(".", "_")
                named.setdefault(parts[0], {}).setdefault(f"{parts[0]}.{parts[1]}", name)
    told = (members for members in named.values() if len(set(members.values())) == len(members))
    return {place: name for members in told for place, name in members.items()}


def _renamed(key: str, names: Mapping[str, str]) -> str:
    for place, name in names.items():
        if key.startswith(f"{place}."):
            return f"{place.rsplit('.', 1)[0]}.[{name}].{key[len(place) + 1 :]}"
    return key


def _version(row: dict[str, Any]) -> Entry:
    """A version: of the run's own code, of a package that takes part in the arithmetic, or of another one."""
    key = normalised(str(row["key"]))
    own = concept_of(key)
    if own is not None and own is not OTHER and own.name.startswith("code."):
        return Entry("git_commit" if own.name == "code.commit" else "git_dirty", own, value_of(row["value"]), row)
    name = key.rsplit(".", 1)[-1].removesuffix("_version").replace("_", "-")
    weight = 6.0 if stands_for("package_of_training", name) else 1.0
    raw = value_of(row["value"])
    value = str(row["value"]).strip('"') if isinstance(raw, float) else raw
    concept = Concept(f"version of {name}", "code and versions", weight, "version", "the program")
    return Entry(f"version.{name}", concept, value, row)
