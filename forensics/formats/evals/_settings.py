"""Everything that two evaluation results must share to be comparable, as one flat object of short values.

Long texts (templates, code) become a hash; addresses of Python objects are left out, as they differ in every run;
values of keys that name a secret are never kept.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import cast

from forensics.io.tolerant_json import dumps
from forensics.knowledge.vocabulary import keys_of
from forensics.patterns import lazily

_LONG = 120
_MOST = 200
_MEMBERS = 50_000
_SECRET = lazily(r"token(?!iz|s\b|_id)|secret|passw|api[_-]?key|credential|\bauth", re.IGNORECASE)
_SECRET_VALUE = lazily(r"\b(?:hf_|sk-|ghp_|gho_|xox[abp]-|AKIA|glpat-)[A-Za-z0-9_\-]{8,}")
_ADDRESS = lazily(r"<function|<bound method| at 0x[0-9a-f]+")
_PAIR = lazily(r"\s*([\w.\-]+)\s*=\s*((?:\{[^}]*\}|\[[^\]]*\]|[^,])*)")


#: What a task's own configuration says of its prompt, its documents and its score.
TASK_KEYS = keys_of("task_setting")
#: What holds for the whole file, by place in the document.
FILE_KEYS = keys_of("results_setting")
CONFIG_KEYS = keys_of("results_config_setting")


def short(value: object) -> str | float | bool | None:
    """A value as a short scalar: numbers and booleans stay, long texts and structures become text or a hash."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return value if abs(value) < 1e15 else str(value)
    text = value if isinstance(value, str) else dumps(value, compact=True).decode()
    if _ADDRESS.search(text):
        return None
    text = _SECRET_VALUE.sub("<hidden>", text)
    return text if len(text) <= _LONG else f"sha256:{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:16]}"


def arguments(text: object) -> dict[str, object]:
    """Arguments of a model or of generation, given as `a=1,b=2` or as an object."""
    if isinstance(text, dict):
        return dict(list(cast("dict[str, object]", text).items())[:_MOST])
    if not isinstance(text, str):
        return {}
    return {found[1]: found[2].strip() for found in list(_PAIR.finditer(text[:20_000]))[:_MOST]}


def flat(prefix: str, cells: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Keys under a prefix, nested objects joined with a dot; what names a secret is left out."""
    for key, cell in cells.items():
        name = f"{prefix}.{key}" if prefix else key
        if _SECRET.search(key):
            continue
        if isinstance(cell, dict) and name.count(".") < 4:
            yield from flat(name, cast("dict[str, object]", cell))
        else:
            yield name, cell


def known(prefix: str, cells: Mapping[str, object], keys: tuple[str, ...]) -> Iterator[tuple[str, object]]:
    """The named keys that are there, under a prefix (none for an empty one)."""
    for key in keys:
        if key in cells:
            yield (f"{prefix}.{key}" if prefix else key), cells[key]


def settings_text(pairs: Iterator[tuple[str, object]]) -> str:
    """The object as compact JSON; nulls are left out, as a file that lacks a key says the same."""
    kept: dict[str, str | float | bool] = {}
    for key, cell in pairs:
        value = str(cell)[:_MEMBERS] if key == "members" else short(cell)
        if value is not None and len(kept) < _MOST:
            kept[key] = value
    return dumps(kept, compact=True).decode()
