"""Whether a document is a configuration: by its name, and by what stands in it."""

from __future__ import annotations

import re

from forensics.formats.configs._parse import Parsed

_NAMES = re.compile(
    r"config|args|arguments|params|settings|cfg|options|recipe|deepspeed|(?:^|/)ds_|zero[_-]?\d|metadata|\.hydra/"
    r"|environment|(?:^|/)env|run_?spec|experiment|job|preset|(?:^|/)git|sweep|flags|card|conf/|launch|dataset_info"
    r"|mixture|data_?mix"
)
_NOT = re.compile(
    r"(?:^|/)(?:package(?:-lock)?|tsconfig|composer|docker-compose|mkdocs|codecov|\.pre-commit-config)\."
    r"|(?:^|/)\.(?:github|vscode|idea|circleci|ipynb_checkpoints)/"
)
#: A top-level key that only measurements, traces, evaluation results or data have.
_OTHERS = frozenset(
    {
        *("traceEvents", "log_history", "entries", "pg_config", "segments", "device_traces", "results", "samples"),
        *("predictions", "task_hashes", "n-samples", "versions", "weight_map", "cells", "nbformat", "features"),
        *("image_id", "runs", "charts", "events", "records", "history", "scores"),
    }
)
_COMMON = re.compile(
    r"^(?:lr|learning_rate|max_lr|seed|(?:\w+_)?batch_size|max_steps|num_(?:train_)?epochs|weight_decay|optimizer"
    r"|model(?:_name(?:_or_path)?|_type)?|vocab_size|hidden_size|num_(?:hidden_)?layers|dataset(?:_name)?|data_path"
    r"|seq_(?:len|length)|block_size|train_iters|precision|dtype|torch_dtype|bf16|fp16|temperature|top_p"
    r"|warmup_steps|scheduler|lr_scheduler(?:_type)?|max_seq_len(?:gth)?|gradient_accumulation_steps|d_model|n_layer"
    r"|n_embd|n_head|tokenizer(?:_name|_path)?|adam_beta[12]|betas|world_size|git_commit)$"
)
_FEWEST_COMMON, _MOST_LIST, _LIST_SHARE = 2, 2000, 0.9


def is_config(path: str, parsed: Parsed) -> bool:
    """Tell whether settings were read, not measurements: several documents in one file, long lists and results are not.

    `.yaml` and `.toml` are taken unless their content speaks against it; `.json` needs a name or keys that fit.
    """
    lowered = path.lower()
    if _NOT.search(lowered):
        return False
    tops = {s.key.split(".", 1)[0] for s in parsed.settings}
    if parsed.rest[:1] in (b"{", b"[") or tops & _OTHERS:
        return False
    if _is_long_lists(parsed):
        return False
    if lowered.rsplit(".", 1)[-1].removesuffix(".gz") not in {"json", "json5"}:
        return True
    if _NAMES.search(lowered.rsplit("/", 1)[-1]) or ".hydra/" in lowered:
        return True
    lasts = {s.key.rsplit(".", 1)[-1].lower() for s in parsed.settings}
    return sum(bool(_COMMON.match(last)) for last in lasts) >= _FEWEST_COMMON and not _is_measurement(tops)


def _is_long_lists(parsed: Parsed) -> bool:
    items = sum(s.key.rsplit(".", 1)[-1].isdigit() for s in parsed.settings)
    return items > _MOST_LIST and items > _LIST_SHARE * len(parsed.settings)


def _is_measurement(tops: set[str]) -> bool:
    """Whether one record of a log: a step and a loss at the top."""
    lowered = {t.lower() for t in tops}
    return bool(lowered & {"loss", "train_loss", "eval_loss", "train/loss"})
