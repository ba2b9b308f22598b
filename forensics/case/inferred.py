"""What a printed name means that no table knows, from what else the run logs: its only loss, its only gradient norm."""

from __future__ import annotations

import polars as pl

from forensics.knowledge.vocabulary import stands_for
from forensics.store.packed import Packed


def understood(table: Packed) -> Packed:
    """Give the rows with the canonical name of each quantity that the run logs under one unknown name only.

    Two such names are two parts of a sum, or two models: neither is the quantity.
    """
    known = set(table.names["name"].drop_nulls().unique())
    unknown = table.names.filter(pl.col("name") == pl.col("raw_name"))["raw_name"].unique(maintain_order=True).to_list()
    losses = [raw for raw in unknown if stands_for("whole_loss", raw) and not stands_for("part_of_loss", raw)]
    held_out = [raw for raw in losses if stands_for("held_out_word", raw)]
    meant = {
        "loss": [raw for raw in losses if raw not in held_out],
        "eval_loss": held_out,
        "grad_norm": [raw for raw in unknown if stands_for("norm_of_gradients", raw)],
    }
    alone = {names[0]: quantity for quantity, names in meant.items() if quantity not in known and len(names) == 1}
    return table.renamed(alone) if alone else table
