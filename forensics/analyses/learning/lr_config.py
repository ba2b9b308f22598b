"""What a configuration says of the learning rate, the vocabulary and the kind of training: one value for each key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from forensics.store.run import Run

#: What a key must end in, behind a dot or at its start.
KEYS: Mapping[str, str] = {
    "peak": r"(?:learning_rate|lr|max_lr|max_learning_rate|base_lr)",
    "min_lr": r"(?:min_lr|lr_min|min_learning_rate|eta_min)",
    "warmup_steps": r"(?:(?:lr_|num_)?warmup_(?:steps|iters|iterations|num_steps))",
    "warmup_ratio": r"(?:(?:lr_)?warmup_(?:ratio|fraction))",
    "scheduler": r"(?:lr_scheduler_type|lr_scheduler|lr_decay_style|scheduler_type|lr_schedule)",
    "vocab": r"(?:padded_vocab_size|vocab_size|n_vocab)",
    "classes": r"(?:num_classes|n_classes|num_labels)",
    "weight_decay": r"weight_decay",
    "adapter": r"(?:adapter|finetuning_type|peft_type|lora_r|lora_rank|use_lora|use_peft)",
    "mock": r"(?:mock_data|synthetic_data|use_synthetic|fake_data|dummy_data|random_data)",
}


@dataclass(frozen=True, slots=True)
class Said:
    """One value of the configuration, and the fact row that says it; `number` is None where it is no number."""

    text: str
    number: float | None
    row: Mapping[str, Any]


def configured(run: Run, what: str) -> Said | None:
    """Give the value of one of `KEYS`; None when no file or several different values say it."""
    facts = run.derived(_told)
    rows = facts.filter(facts["key"].str.contains(rf"(?i)(?:^|[./]){KEYS[what]}(?:[./]value)?$"))
    same = rows["number"] if rows["number"].null_count() == 0 else rows["said"]
    if rows.height == 0 or same.n_unique() != 1:
        return None
    first = rows.row(0, named=True)
    return Said(first["said"], first["number"], first)


def _told(run: Run) -> pl.DataFrame:
    """Facts that have a value, with the value as text (`said`) and as a `number`, where it is one."""
    value = pl.col("value").fill_null("").str.strip_chars().str.strip_chars("\"'")
    return (
        run.scan("facts")
        .with_columns(said=value, number=value.cast(pl.Float64, strict=False))
        .filter(~pl.col("said").str.to_lowercase().is_in(["", "null", "none", "-1"]))
        .collect()
    )


def number_of(run: Run, what: str) -> float | None:
    """Give the same as a number; None when it is none or not positive."""
    said = configured(run, what)
    return said.number if said is not None and said.number is not None and said.number > 0 else None


def adapter_of(run: Run) -> Said | None:
    """Give what says that only an adapter (LoRA and its kind) is trained; None when nothing does."""
    said = configured(run, "adapter")
    return said if said is not None and said.text.lower() not in {"full", "freeze", "false", "0", "0.0"} else None
