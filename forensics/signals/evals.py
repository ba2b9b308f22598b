"""Evaluation results of a run as rules and comparisons need them: direction, chance, settings, results in order."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, cast

import polars as pl

from forensics.io.tolerant_json import loads
from forensics.store.run import Run

Row = Mapping[str, Any]
Key = tuple[str, str, str]
#: Metrics that are shares of documents, 1 being best.
SHARES = frozenset(
    ["acc", "acc_norm", "accuracy", "exact_match", "em", "pass@1", "qem", "pqem", "mc1", "prefix_exact_match"]
)
_LOWER = frozenset(
    [
        "ppl",
        "perplexity",
        "word_perplexity",
        "byte_perplexity",
        "bits_per_byte",
        "mae",
        "mse",
        "rmse",
        "loss",
        "ter",
        "wer",
        "cer",
        "brier_score",
        "toxicity",
        "hallucination",
    ]
)
_HIGHER = SHARES | frozenset(
    ["f1", "mcc", "bleu", "chrf", "rouge1", "rouge2", "rougeL", "mc2", "micro_f1", "macro_f1", "score", "bert_score"]
)
_EARLIEST = -(1 << 62)


def higher_is_better(*rows: Row) -> bool | None:
    """Direction of a metric: as a file says, else by its name; None where neither tells."""
    told = next((r["higher_is_better"] for r in rows if r.get("higher_is_better") is not None), None)
    if told is not None:
        return bool(told)
    metric = str(rows[0]["metric"])
    return True if metric in _HIGHER else False if metric in _LOWER else None


def settings_of(row: Row) -> Mapping[str, object]:
    """Settings of a result; empty when absent."""
    return _settings(row["settings"] or "{}")


@lru_cache(maxsize=4096)
def _settings(text: str) -> Mapping[str, object]:
    found = loads(text.encode())
    return MappingProxyType(cast("dict[str, object]", found) if isinstance(found, dict) else {})


def members_of(row: Row) -> tuple[str, ...]:
    """Give the tasks that a group is made of; empty for a task."""
    found = settings_of(row).get("members")
    return tuple(found.split(",")) if isinstance(found, str) else ()


def age(row: Row) -> tuple[int, int, str]:
    """Order of results of one task: by step, by time, by name of the file."""
    step, t_ns = row["step"], row["t_ns"]
    return step if step is not None else _EARLIEST, t_ns if t_ns is not None else _EARLIEST, row["source"]


def by_key(frame: pl.DataFrame) -> dict[Key, list[Row]]:
    """Rows by task, metric and filter (`none` where there is none), in the order of the frame."""
    found: dict[Key, list[Row]] = {}
    for row in frame.iter_rows(named=True):
        found.setdefault((row["task"], row["metric"], row["filter"] or "none"), []).append(row)
    return found


def courses(run: Run) -> dict[Key, list[Row]]:
    """Results with a value, by task, metric and filter, each from the earliest to the last."""
    known = by_key(run.collect("evals").filter(pl.col("value").is_not_null()))
    return {key: sorted(rows, key=age) for key, rows in known.items()}


@cache
def _chances() -> tuple[tuple[str, float], ...]:
    rows = (files("forensics.signals") / "eval_chance.tsv").read_text(encoding="utf-8").splitlines()
    cells = (row.split("\t") for row in rows if row and not row.startswith("#"))
    return tuple((name, float(share)) for name, share in cells)


def chance_of(task: str) -> float | None:
    """Share of right answers that guessing gives, where the number of choices of a task is known."""
    plain = task.rsplit("|", 1)[-1].removeprefix("leaderboard_").removeprefix("hendrycksTest-").lower()
    if task.rsplit("|", 1)[-1].startswith(("hendrycksTest-", "mmlu:", "mmlu_")) and "pro" not in plain[:8]:
        return 0.25
    return next((share for name, share in _chances() if plain in (name, name.replace("_", ":"))), None)
