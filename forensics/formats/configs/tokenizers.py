"""Tokenizer files of Hugging Face: how many tokens, which special ones, and hashes; never the vocabulary itself.

`tokenizer.json`, `tokenizer_config.json`, `special_tokens_map.json`, `added_tokens.json`, `vocab.json`, `merges.txt`
and the chat template. Sentencepiece models are binary and not read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import cast

from forensics.formats.configs._parse import json_settings
from forensics.formats.kit import InputError, Limits, NotMine, Opened, Out, Sniff, ingester
from forensics.formats.rows.facts import ConfigFacts
from forensics.formats.rows.text import document, settle_document
from forensics.io.budget import Budget
from forensics.io.tolerant_json import as_list, dumps, loads

_MOST_BYTES = 64 << 20
_SPECIALS = 64
_PARTS = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
_GLOBS = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json"),
    *("merges.txt", "chat_template.jinja", "chat_template.json"),
)


@ingester("tokenizer_files", version=1, sniff=Sniff(glob=_GLOBS), emits=("facts",))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one file of a tokenizer; raises `NotMine` when the content is not what the name says."""
    if opened.size_bytes > _MOST_BYTES:
        raise NotMine("too large for a tokenizer")
    name = opened.source.path.rsplit("/", 1)[-1].lower().removesuffix(".gz").removesuffix(".zst")
    data = document(opened, limits)
    facts = ConfigFacts()
    good = len(data)
    if name == "merges.txt":
        _merges(data, facts)
    elif name == "chat_template.jinja":
        facts.put("tokenizer.chat_template_sha256", _hash(data.strip()), 1, "tokenizer")
    elif name in {"tokenizer_config.json", "special_tokens_map.json"}:
        good = _settings(data, facts, opened.budget)
    else:
        try:
            _document(data, name, facts)
        except NotMine:
            raise
        except InputError as error:
            out.issue("damaged", error.message)
            out.account(skipped_bytes=opened.size_bytes, reason="the document is cut or damaged")
            return
    if not len(facts):
        raise NotMine("no file of a tokenizer")
    facts.write(out)
    if good < len(data):
        out.issue("damaged", f"the object is not closed; {len(facts)} values before it were read", byte=good)
    out.format(f"tokenizer ({name})")
    settle_document(opened, out, records=len(facts), lost_bytes=len(data) - good)


def _merges(data: bytes, facts: ConfigFacts) -> None:
    lines = data.splitlines()
    pairs = [line for line in lines if line.strip() and not line.startswith(b"#version")]
    if not pairs or any(line.count(b" ") != 1 for line in pairs[:100]):
        raise NotMine("no merges")
    facts.put("tokenizer.n_merges", len(pairs), None, "tokenizer")
    facts.put("tokenizer.merges_sha256", _hash(b"\n".join(pairs)), None, "tokenizer")


def _settings(data: bytes, facts: ConfigFacts, budget: Budget) -> int:
    """Put the settings of a tokenizer, its template as a hash, the number of added tokens; give the good bytes."""
    parsed = json_settings(data, budget)
    added: dict[int, str] = {}
    for setting in parsed.settings:
        parts = setting.key.split(".")
        if parts[0] == "added_tokens_decoder":
            if len(parts) == 3 and parts[1].isdecimal() and len(parts[1]) < 10 and parts[2] == "content":
                added[int(parts[1])] = str(setting.value)
        elif parts[0] == "chat_template":
            text = str(setting.value).strip().encode("utf-8", "replace")
            facts.put(f"tokenizer.chat_template_sha256{setting.key[13:]}", _hash(text), setting.line, "tokenizer")
        elif len(parts) == 1 or parts[-1] == "content" or parts[0].startswith("additional"):
            key = setting.key.removesuffix(".content")
            facts.put(f"tokenizer.{key}", setting.value, setting.line, "tokenizer")
    _added(added, facts)
    return parsed.good_bytes


def _document(data: bytes, name: str, facts: ConfigFacts) -> None:
    try:
        document = loads(data)
    except InputError as error:
        if data.lstrip()[:1] != b"{" or name not in {"tokenizer.json", "added_tokens.json", "vocab.json"}:
            raise NotMine("no JSON object") from error
        raise
    if not isinstance(document, dict):
        raise NotMine("no JSON object")
    whole = cast("dict[str, object]", document)
    if name == "tokenizer.json":
        _tokenizer(whole, facts)
    elif name == "chat_template.json":
        if isinstance(whole.get("chat_template"), str):
            text = str(whole["chat_template"]).strip().encode("utf-8", "replace")
            facts.put("tokenizer.chat_template_sha256", _hash(text), None, "tokenizer")
    else:
        ids = {token: cast("int", index) for token, index in whole.items() if _is_id(index)}
        if len(ids) != len(whole) or not ids:
            raise NotMine("no table of tokens")
        if name == "added_tokens.json":
            _added({index: token for token, index in ids.items()}, facts)
        else:
            _vocabulary(ids, facts)


def _tokenizer(whole: dict[str, object], facts: ConfigFacts) -> None:
    model = whole.get("model")
    if not isinstance(model, dict):
        raise NotMine("no model in it")
    inside = cast("dict[str, object]", model)
    facts.put("tokenizer.model_type", inside.get("type"), None, "tokenizer")
    ids = dict(_ids(inside.get("vocab")))
    _vocabulary(ids, facts)
    merges = inside.get("merges")
    if isinstance(merges, list):
        facts.put("tokenizer.n_merges", len(cast("list[object]", merges)), None, "tokenizer")
        pairs = [
            " ".join(map(str, cast("list[object]", m) if isinstance(m, list) else [m]))
            for m in cast("list[object]", merges)
        ]
        facts.put("tokenizer.merges_sha256", _hash("\n".join(pairs).encode("utf-8", "replace")), None, "tokenizer")
    added = _added_tokens(whole.get("added_tokens"))
    every = set(ids.values()) | set(added)
    facts.put("tokenizer.n_tokens", len(every), None, "tokenizer")
    facts.put("tokenizer.max_id", max(every, default=None), None, "tokenizer")
    _added(added, facts)
    for part in _PARTS:
        if whole.get(part) is not None:
            facts.put(f"tokenizer.{part}_sha256", _hash(dumps(whole[part], compact=True)), None, "tokenizer")


def _ids(vocabulary: object) -> Iterator[tuple[str, int]]:
    """Tokens with their ids: a mapping (BPE, WordPiece) or a list of pairs (Unigram)."""
    if isinstance(vocabulary, dict):
        for token, index in cast("dict[str, object]", vocabulary).items():
            if _is_id(index):
                yield token, cast("int", index)
    elif isinstance(vocabulary, list):
        for index, pair in enumerate(cast("list[object]", vocabulary)):
            if isinstance(pair, list) and pair:
                yield f"{index}:{cast('list[object]', pair)[0]}", index


def _added_tokens(cell: object) -> dict[int, str]:
    maps = [cast("dict[str, object]", row) for row in as_list(cell) if isinstance(row, dict)]
    return {cast("int", row["id"]): str(row.get("content")) for row in maps if _is_id(row.get("id"))}


def _is_id(cell: object) -> bool:
    return isinstance(cell, int) and not isinstance(cell, bool) and 0 <= cell < 1 << 31


def _vocabulary(ids: dict[str, int], facts: ConfigFacts) -> None:
    facts.put("tokenizer.n_base_tokens", len(ids), None, "tokenizer")
    facts.put("tokenizer.max_base_id", max(ids.values(), default=None), None, "tokenizer")
    digest = hashlib.sha256()
    for token, index in sorted(ids.items(), key=lambda pair: (pair[1], pair[0])):
        digest.update(f"{index}\0{token}\0".encode("utf-8", "replace"))
    facts.put("tokenizer.base_sha256", digest.hexdigest()[:16], None, "tokenizer")


def _added(added: dict[int, str], facts: ConfigFacts) -> None:
    if not added:
        return
    facts.put("tokenizer.n_added", len(added), None, "tokenizer")
    facts.put("tokenizer.max_added_id", max(added), None, "tokenizer")
    shown = sorted(added.items())
    for index, token in shown[:_SPECIALS]:
        facts.put(f"tokenizer.special.{index}", token[:100], None, "tokenizer")
    facts.put("tokenizer.added_sha256", _hash(repr(shown).encode("utf-8", "replace")), None, "tokenizer")


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
