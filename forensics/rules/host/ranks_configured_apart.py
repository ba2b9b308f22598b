"""Settings that ranks of one run have otherwise."""

from __future__ import annotations

from collections import Counter

import polars as pl

from forensics.case.rank_spans import ranks_text
from forensics.dialects.counters import plan_keys
from forensics.knowledge.settings import settings
from forensics.rules.kit import Findings, Onset, Row, Run, fact_evidence, proof, rule

_SEED = r"(?i)(?:^|[./_])seed$"
#: What may differ between ranks: how each reads its data.
_OWN = frozenset({"workers", "map_workers", "prefetch", "pin_memory", "allocator"})


@rule(
    "HST003 ranks-configured-apart",
    "facts sources",
    severity="warning",
    confidence="medium",
    cause="ranks_configured_apart",
)
def ranks_configured_apart(run: Run) -> Findings:
    """Find the settings that ranks have otherwise, and the rank that differs from most."""
    found = [one for _, part in _rows(run).group_by("key", maintain_order=True) if (one := _differs(part)) is not None]
    if not found:
        return
    row, other, odd = found[0]
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    who = ranks_text(odd) if odd else f"rank {row['rank']}"
    yield ranks_configured_apart.finding(
        f"{who} has {row['key']} = {row['value']} where rank {other['rank']} has {other['value']}{more}",
        "ranks that train one model need the same settings",
        proof(fact_evidence(row), fact_evidence(other)),
        Onset(rank=odd[0] if len(odd) == 1 else None),
        culprits=odd,
        numbers={"settings": len(found)},
    )


def _rows(run: Run) -> pl.DataFrame:
    """Facts of files of one rank each, of settings that all ranks share; none where fewer than two ranks have files."""
    ranks = run.scan("sources").filter(pl.col("rank").is_not_null()).select("source", who="rank").collect()
    if ranks["who"].n_unique() < 2:
        return run.scan("facts").clear().collect()
    keys = [rf"(?:^|[./]){known.keys}$" for known in settings() if known.name not in _OWN]
    key = pl.col("key").str.to_lowercase().str.replace_all("-", "_")
    shared = pl.any_horizontal(
        key.str.contains("|".join(keys)),
        *(key.str.contains(plan_keys(unit)) for unit in ("step", "epoch")),
        key.str.contains(_SEED),
    )
    rows = run.scan("facts").filter(shared & (pl.col("family") == "config")).drop("rank", strict=False)
    return rows.join(ranks.lazy(), on="source").rename({"who": "rank"}).sort("key", "rank", "source", "line").collect()


def _differs(rows: pl.DataFrame) -> tuple[Row, Row, tuple[int, ...]] | None:
    """Give a row of the odd value and one of another rank, and the ranks that differ from most, if any do."""
    own = rows.unique("rank", keep="first", maintain_order=True)
    votes = Counter(own["value"])
    if len(votes) < 2 or rows.select("rank", "value").unique().height > own.height:
        return None
    value, count = votes.most_common(1)[0]
    most = count * 2 > own.height
    if not most and own["key"].str.contains(_SEED)[0]:
        return None
    apart = own.filter(pl.col("value") != value)
    odd = tuple(apart["rank"]) if most else ()
    return apart.row(0, named=True), own.filter(pl.col("value") == value).row(0, named=True), odd
