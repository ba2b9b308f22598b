"""A run beside a baseline: its evaluations compared, as a table that rules read (`comparisons`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from forensics.compare.config.audit import Difference
from forensics.compare.evals.comparison import Pair, compare_all
from forensics.compare.evals.words import cause_of
from forensics.compare.model import joined
from forensics.store.run import Run
from forensics.store.schema import TABLES, conform
from forensics.values import firsts


def against(run: Run, *bases: Run) -> Run:
    """Give the same run with the table of its comparisons with its baselines; places of the first carry its name."""
    base = bases[0]
    pairs = compare_all(bases, run)
    real = [p for p in pairs if p.significant]
    causes = cause_of(bases, run, real) if real else ()
    rows = [_row(pair, base.name, causes[0] if causes else None) for pair in pairs]
    schema = dict(TABLES["comparisons"])
    frame = conform("comparisons", pl.DataFrame(rows, schema=schema) if rows else pl.DataFrame(schema=schema))
    return Run(run.name, {**run.frames, "comparisons": frame.lazy()}, bases)


def _row(pair: Pair, base: str, cause: Difference | None) -> Mapping[str, Any]:
    task, metric, by = pair.key
    row = {
        **{name: pair.cand[name] for name in ("source", "line", "value", "stderr", "step", "n")},
        **{f"base_{name}": pair.base[name] for name in ("line", "value", "stderr", "n")},
        "task": task,
        "metric": metric,
        "filter": by,
        "base_source": joined(base, str(pair.base["source"])),
        "p": pair.p_holm,
        "worse": pair.worse,
        # a harness and its task both state how they decode
        "blocks": "; ".join(one.words for one in firsts(pair.settings.blocks, lambda u: (u.task, u.name))[:4]) or None,
    }
    if cause is None or not pair.significant:
        return row
    stated = cause.cand_evidence
    return {
        **row,
        "family": cause.family,
        "cause": f"{cause.what} {cause.base} → {cause.cand}",
        "cause_source": stated.source if stated else None,
        "cause_line": stated.locator.line if stated else None,
    }
