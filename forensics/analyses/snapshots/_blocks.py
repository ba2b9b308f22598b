"""Free memory of one device at the end of a recording: what empty_cache cannot give back, and the memory pools."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.analyses.snapshots._values import Pool

_ACTIVE = pl.col("state").str.starts_with("active")


@dataclass(frozen=True, slots=True)
class Free:
    """Bytes of free blocks in segments that an active block keeps, the largest of them, and all free bytes."""

    unreleasable: int
    largest: int
    total: int

    @property
    def scatter(self) -> float:
        """1 less the largest over all: 0 is one piece."""
        return 1 - self.largest / self.unreleasable if self.unreleasable else 0.0


def free_of(segments: pl.DataFrame, blocks: pl.DataFrame) -> Free:
    """Free blocks of one device; those of expandable segments unmap page by page and count as releasable."""
    kept = blocks.filter(_ACTIVE)["segment"].unique()
    expandable = segments.filter(pl.col("is_expandable"))["seq"]
    free = blocks.filter(pl.col("state") == "inactive")
    stuck = free.filter(pl.col("segment").is_in(kept) & ~pl.col("segment").is_in(expandable))["size"]
    return Free(int(stuck.sum()), int(stuck.max() or 0) if stuck.len() else 0, int(free["size"].sum()))  # pyright: ignore[reportArgumentType]  # a column of integers


def pools_of(segments: pl.DataFrame, blocks: pl.DataFrame) -> tuple[Pool, ...]:
    """Reserved and active bytes by pool, the default pool first; where no pool is named all is the default pool."""
    active = blocks.filter(_ACTIVE).group_by("segment").agg(active=pl.col("size").sum())
    rows = (
        segments.join(active, left_on="seq", right_on="segment", how="left")
        .group_by(pl.col("pool_owner").fill_null(0), pl.col("pool").fill_null(0))
        .agg(reserved=pl.col("total_size").sum(), active=pl.col("active").fill_null(0).sum())
        .sort("pool_owner", "pool")
    )
    return tuple(Pool((a, b), reserved, held) for a, b, reserved, held in rows.iter_rows())
