"""Configuration files: JSON, YAML and TOML of any trainer, as facts with their lines.

Read are Hugging Face's `config.json`, `generation_config.json` and `training_args.json`, DeepSpeed's JSON, Hydra's
`.hydra/*.yaml`, W&B's `config.yaml` (its `{desc, value}` wrapping taken off) and a trainer's own files. A document that
holds measurements, a trace or evaluation results is left to others. Nothing is constructed from YAML, aliases are not
followed; secrets and persons are masked. The part before damage is kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics.formats.configs._parse import Parsed, Setting, json_settings, toml_settings, yaml_settings
from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.facts import ConfigFacts
from forensics.formats.rows.text import document, settle_document
from forensics.knowledge.vocabulary import keys_of, stands_for

_MOST_BYTES = 4 << 20
_READERS = {
    **dict.fromkeys(("json", "json5"), json_settings),
    **dict.fromkeys(("yaml", "yml"), yaml_settings),
    "toml": toml_settings,
}
_GENERATION = lazily(r"generation[_-]?config\.json$|(?:^|/)generation\.json$")
_PACKAGE = lazily(r"^(?P<name>[A-Za-z][\w.-]*)={1,3}(?P<version>[\w.+!-]+)")
#: A top-level key that only measurements, traces, evaluation results or data have.
_OTHERS = frozenset(keys_of("not_in_settings"))
_FEWEST_COMMON, _MOST_LIST, _LIST_SHARE = 2, 2000, 0.9


@ingester(
    "config_files",
    version=3,
    sniff=Sniff(glob=("config.json", "*.yaml", "*.yml", "*.toml", "*.json"), fallback=True),
    emits=("facts",),
)
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one file of settings.

    Raises `NotMine` when it has another ending, is too large for settings, or holds something else.
    """
    name = opened.source.path.rsplit("/", 1)[-1].lower().removesuffix(".gz").removesuffix(".zst")
    reader = _READERS.get(name.rsplit(".", 1)[-1]) if "." in name else None
    if reader is None or opened.size_bytes > _MOST_BYTES:
        raise NotMine("no file of settings by its name or size")
    data = document(opened, limits)
    if b"\0" in data[:4096]:
        raise NotMine("binary content")
    text = data.decode("utf-8", "replace")
    if stands_for("record_of_a_job", text) or stands_for("outcome_of_a_run", text):
        raise NotMine("what a service or a script keeps of a job, whose words are read")
    parsed = reader(data, opened.budget)
    settings = _unwrapped(parsed.settings)
    if not settings or not is_config(opened.source.path, parsed):
        raise NotMine("a document that holds no settings")
    facts = ConfigFacts()
    family = "generation" if _GENERATION.search(opened.source.path.lower()) else "config"
    for setting in settings:
        _put(facts, setting, family)
    facts.write(out)
    if parsed.problem:
        out.issue("damaged", f"{parsed.problem}; {len(settings)} values before it were read", byte=parsed.good_bytes)
    out.format(_format(name, parsed))
    settle_document(opened, out, records=len(settings), lost_bytes=len(data) - parsed.good_bytes)


def _put(facts: ConfigFacts, setting: Setting, family: str) -> None:
    key, value = setting.key, setting.value
    if key.startswith("_wandb."):
        if key in {"_wandb.cli_version", "_wandb.python_version", "_wandb.framework"}:
            facts.put(key.removeprefix("_wandb.").removesuffix("_version"), value, setting.line, "versions")
        return
    if re.match(r"dependencies\.(?:\d+\.)?(?:pip\.)?\d+$", key) and isinstance(value, str):
        found = _PACKAGE.match(value)
        if found:
            facts.put(found["name"].lower().replace("_", "-"), found["version"], setting.line, "versions")
        return
    facts.put(key, value, setting.line, _family(key, family))


def _family(key: str, family: str) -> str:
    """Give the family of a key: the commit and versions a configuration states are no settings."""
    last = key.rsplit(".", 1)[-1].lower()
    return "versions" if last in (*keys_of("commit_setting"), *keys_of("version_setting")) else family


def _unwrapped(settings: Sequence[Setting]) -> Sequence[Setting]:
    """Take the `{desc, value}` of W&B off, where a file has it."""
    parts = [s.key.split(".", 2) for s in settings]
    wrapped = [p for p in parts if len(p) > 1 and p[1] in {"value", "desc"}]
    single = [p for p in parts if p[0] == "wandb_version"]
    if len(wrapped) + len(single) < len(parts) or not wrapped or not (single or any(p[0] == "_wandb" for p in parts)):
        return settings
    return [
        Setting(".".join((p[0], *p[2:])), s.value, s.line)
        for p, s in zip(parts, settings, strict=True)
        if len(p) > 1 and p[1] == "value"
    ]


def _format(name: str, parsed: Parsed) -> str:
    keys = {s.key for s in parsed.settings}
    if "wandb_version" in keys or any(k.startswith("_wandb.value") for k in keys):
        return "settings (W&B)"
    if any(k.startswith("zero_optimization") for k in keys):
        return "settings (DeepSpeed)"
    if "transformers_version" in keys or "architectures.0" in keys:
        return "settings (Hugging Face)"
    return f"settings ({name.rsplit('.', 1)[-1].replace('yml', 'yaml')})"


# Whether a document is a configuration: by its name, and by its content.


def is_config(path: str, parsed: Parsed) -> bool:
    """Tell whether settings were read, not measurements: several documents in one file, long lists and results are not.

    `.yaml` and `.toml` are taken unless their content speaks against it; `.json` needs a name or keys that fit.
    """
    lowered = path.lower()
    if stands_for("never_settings_file", lowered):
        return False
    tops = {s.key.split(".", 1)[0] for s in parsed.settings}
    if parsed.rest[:1] in (b"{", b"[") or tops & _OTHERS:
        return False
    if _is_long_lists(parsed):
        return False
    if lowered.rsplit(".", 1)[-1].removesuffix(".gz") not in {"json", "json5"}:
        return True
    if stands_for("settings_file", lowered.rsplit("/", 1)[-1]) or ".hydra/" in lowered:
        return True
    lasts = {s.key.rsplit(".", 1)[-1].lower() for s in parsed.settings}
    return sum(stands_for("common_setting", last) for last in lasts) >= _FEWEST_COMMON and not _is_measurement(tops)


def _is_long_lists(parsed: Parsed) -> bool:
    items = sum(s.key.rsplit(".", 1)[-1].isdigit() for s in parsed.settings)
    return items > _MOST_LIST and items > _LIST_SHARE * len(parsed.settings)


def _is_measurement(tops: set[str]) -> bool:
    """Whether one record of a log: a step and a loss at the top."""
    lowered = {t.lower() for t in tops}
    return bool(lowered & {"loss", "train_loss", "eval_loss", "train/loss"})
