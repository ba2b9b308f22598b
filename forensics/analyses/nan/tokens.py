"""Token ids of a batch against the vocabulary: an id outside of it reads memory of nobody."""

from __future__ import annotations

import polars as pl
from msgspec import Struct

from forensics.analyses.evals.vocabulary import Stated, embedding_rows
from forensics.case.series import metric_rows
from forensics.case.steps import ordered
from forensics.knowledge.metrics import telling
from forensics.store.run import Run, derived

#: The label of a position that takes no part in the loss (PyTorch, CrossEntropyLoss, `ignore_index`).
_MASKED = -100


class Outside(Struct, frozen=True):
    """The metric rows of ids that are no row of the embedding, in order, at least one, and how many rows it has."""

    rows: pl.DataFrame
    size: Stated

    @property
    def step(self) -> int | None:
        """The step of the first of them."""
        return self.rows["at"][0]


@derived
def tokens_outside(run: Run) -> Outside | None:
    """Give the ids outside of the vocabulary; None without any, or without a known vocabulary."""
    size = embedding_rows(run)
    if size is None:
        return None
    value, name = pl.col("value"), pl.coalesce("raw_name", "name")
    highest, lowest = (name.str.contains(telling(f"{end}_token_id")) for end in ("highest", "lowest"))
    outside = (highest & (value >= size.value)) | (lowest & (value < 0) & (value != _MASKED))
    rows = ordered(metric_rows(run, highest | lowest).filter(outside)).collect()
    return Outside(rows, size) if rows.height else None
