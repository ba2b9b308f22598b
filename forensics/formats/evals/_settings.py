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

_LONG = 120
_MOST = 200
_MEMBERS = 50_000
_SECRET = re.compile(r"token(?!iz|s\b|_id)|secret|passw|api[_-]?key|credential|\bauth", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"\b(?:hf_|sk-|ghp_|gho_|xox[abp]-|AKIA|glpat-)[A-Za-z0-9_\-]{8,}")
_ADDRESS = re.compile(r"<function|<bound method| at 0x[0-9a-f]+")
_PAIR = re.compile(r"\s*([\w.\-]+)\s*=\s*((?:\{[^}]*\}|\[[^\]]*\]|[^,])*)")
#: What a task's own configuration says of its prompt, its documents and its score.
TASK_KEYS = (
    "dataset_path",
    "dataset_name",
    "test_split",
    "validation_split",
    "fewshot_split",
    "doc_to_text",
    "doc_to_target",
    "doc_to_choice",
    "description",
    "target_delimiter",
    "fewshot_delimiter",
    "output_type",
    "generation_kwargs",
    "filter_list",
    "metric_list",
    "repeats",
    "use_prompt",
    "generation_size",
    "stop_sequence",
    "hf_repo",
    "hf_subset",
    "hf_avail_splits",
    "evaluation_splits",
    "few_shots_split",
    "few_shots_select",
    "prompt_function",
)
#: What holds for the whole file, by place in the document.
FILE_KEYS = (
    "chat_template",
    "system_instruction",
    "fewshot_as_multiturn",
    "max_length",
    "tokenizer_pad_token",
    "tokenizer_eos_token",
    "tokenizer_bos_token",
    "eot_token_id",
    "git_hash",
    "lm_eval_version",
    "transformers_version",
    "model_source",
)
CONFIG_KEYS = (
    "model",
    "model_num_parameters",
    "model_dtype",
    "model_revision",
    "model_sha",
    "peft_sha",
    "batch_size",
    "batch_sizes",
    "device",
    "use_cache",
    "no_cache",
    "limit",
    "bootstrap_iters",
    "gen_kwargs",
    "random_seed",
    "numpy_seed",
    "torch_seed",
    "fewshot_seed",
    "system_prompt",
)


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
