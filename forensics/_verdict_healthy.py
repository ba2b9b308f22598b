"""Whether a run may be called healthy: shown by its training rows and its end, never by the absence of errors alone."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.model import Confidence, Evidence, EvidenceRole, Locator
from forensics.signals.endings import Mark, ending_of
from forensics.signals.stores import counted
from forensics.store.run import Run

#: Fewer records than this are no series.
MIN_RECORDS = 2
_LOSS = pl.col("name").str.contains(r"(?i)loss|perplexity|\bppl\b|bpb|cross[_-]?entropy|\bxent\b|\bnll\b")


@dataclass(frozen=True, slots=True)
class Health:
    """How far health is shown: `confidence` is None when it is not."""

    confidence: Confidence | None
    why: str
    success: Evidence | None = None


def health_of(run: Run) -> Health:
    """Judge the training rows and the end of a run in which nothing failed."""
    end = ending_of(run).final
    success = _evidence(end) if end is not None else None
    rows = _series(run)
    records, last_step, losses, bad = rows
    if records < MIN_RECORDS:
        why = "no training metrics were recognised" if not records else "too few training metrics were recognised"
        said = f", but the run says that it finished ({success.place})" if success is not None else ""
        return Health(Confidence.LOW if said else None, why + said, success)
    if losses and bad == losses:
        return Health(None, "no finite loss was logged", success)
    span = f"{records} training records" + (f" up to step {last_step}" if last_step is not None else "")
    if success is not None:
        return Health(
            Confidence.HIGH if losses else Confidence.MEDIUM, f"{span}, then {success.quote.strip()[:80]!r}", success
        )
    if not losses:
        return Health(None, f"{span} without a loss, and no end marker")
    planned = _planned(run)
    full = planned is not None and last_step is not None and last_step >= planned - 1
    if planned is not None and last_step is not None and not full:
        span += f" of {planned} planned"
    if not full and _lacks_exit_record(run):
        return Health(
            None, f"{span} with a finite loss, but its tracker wrote no exit record: the run did not end itself"
        )
    ending = "which is the last step planned" if full else "with a finite loss; no end marker was seen"
    return Health(Confidence.MEDIUM if full else Confidence.LOW, f"{span}, {ending}")


def _series(run: Run) -> tuple[int, int | None, int, int]:
    """Count records (once where several stores hold them), the last step, losses, and losses that are not finite."""
    loss = _LOSS & pl.col("value").is_not_null()
    row = (
        counted(run)
        .select(
            records=pl.struct("source", "seq").n_unique(),
            last=pl.col("step").max(),
            losses=loss.sum(),
            bad=(loss & (pl.col("value_class") != "finite")).sum(),
        )
        .collect()
        .row(0)
    )
    return int(row[0]), row[1], int(row[2] or 0), int(row[3] or 0)


def _planned(run: Run) -> int | None:
    """The last step that the run's settings name."""
    return (
        run.scan("facts")
        .filter(pl.col("key").str.contains(r"(?i)(?:^|[._])(?:max_steps|total_steps|num_iterations|train_iters)$"))
        .select(pl.col("value").str.strip_chars('"').cast(pl.Int64, strict=False).max())
        .collect()
        .item()
    )


def _lacks_exit_record(run: Run) -> bool:
    told = (pl.col("family") == "exit") & pl.col("key").str.ends_with("exit_record") & (pl.col("value") == "false")
    return run.scan("facts").filter(told).collect().height > 0


def _evidence(mark: Mark) -> Evidence:
    where = Locator(line=mark.line, byte=mark.byte)
    return Evidence(mark.source, where, mark.quote, t_ns=mark.t_ns, role=EvidenceRole.CONTRADICTS)
