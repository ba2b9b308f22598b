"""What a log and its settings say of memory: an error, the allocator's own table, and settings that save memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from forensics.analyses.memory.oom_messages import OomMessage
from forensics.case.errors.coded import events_telling
from forensics.case.errors.failures import Failure, standing
from forensics.case.errors.kinds import Weight, attributes
from forensics.case.errors.timeline import in_order, is_before
from forensics.case.last_steps import last_step
from forensics.case.settings import OFF, stated
from forensics.knowledge.causes import causes, is_kind
from forensics.knowledge.errors import table
from forensics.patterns import lazily
from forensics.rules._errors import evidence_of, onset_of, ranks_of, when, who
from forensics.rules.kit import Findings, Onset, Run, Struct, event_evidence, fact_evidence, proof, remark, rule
from forensics.rules.oom._memory import fatal, first_fatal, message_evidence, ranks
from forensics.rules.oom.growth import died_of
from forensics.values import replace

_TRIED = lazily(r"Tried to allocate ([\d.]+ (?:bytes|[KMGT]i?B))")
#: The kind of a cause that is about the memory of the host.
_HOST = "host_memory"
#: What the program was doing, where that decides what to change.
_IN_PHASE = {
    "evaluation": " in an evaluation",
    "generation": " while it generated text",
    "loading": " while it loaded the model",
    "forward": " in the forward pass",
    "logits": " while it computed the logits",
    "backward": " in the backward pass",
    "optimizer": " in the optimizer step",
    "checkpoint": " while it saved a checkpoint",
}


@rule("OOM001 log-says-oom", "events metrics", severity="error", confidence="high")
def log_says_oom(run: Run) -> Findings:
    """Find the first out-of-memory error that the run did not survive."""
    found = in_order(f for f in standing(run) if f.shape == "oom" and f.weight >= Weight.ECHO)
    if not found:
        return
    first = found[0]
    onset = onset_of(run, first)
    tried = _TRIED.search(first.quote) or _TRIED.search(first.message)
    host = bool(_of_host(first)) and not tried
    cause = _of_host(first) if host else "gpu_out_of_memory"
    deed = causes()[cause].deed or f"ran out of {'host' if host else 'GPU'} memory"
    size = f" (tried to allocate {tried[1]})" if tried else ""
    phase = next((_IN_PHASE[m.phase] for m in fatal(run) if m.source == first.source and m.phase in _IN_PHASE), "")
    shown = evidence_of(found)
    yield log_says_oom.finding(
        f"{who(first.rank)} {deed}{phase}{size}{when(onset)}",
        "the log says so, and no later step of that rank was logged",
        (replace(shown[0], apart=phase), *shown[1:]),
        onset,
        culprits=ranks_of(_named(found)),
        cause=cause,
        causal="symptom" if not host and any(died_of(run)) else "root",
        numbers={"messages": len(found)},
    )


def _of_host(failure: Failure) -> str:
    """Give its cause, or that of the first line of the catalogue that its quote fits, where it is of host memory."""
    fits = (row.cause for row in table() if is_kind(row.cause, _HOST) and row.compiled.search(failure.quote))
    return failure.cause if is_kind(failure.cause, _HOST) else next(fits, "")


def _named(found: Sequence[Failure]) -> Sequence[Failure]:
    """Give the first error and those that may have come as early: where nothing orders them, all ranks ran out.

    Of an error that names no rank the first line of its log that tells of the same event, and names one.
    """
    first, *others = found
    same = [f for f in others if f.rank is not None and (f.cause == first.cause or (_of_host(f) and _of_host(first)))]
    if first.rank is None:
        return [f for f in same if f.source == first.source][:1]
    return [first, *(f for f in same if not is_before(first, f))]


_SIZE = lazily(r"([\d.]+) *([KMGT]?)i?B?$")
_SCALE = {unit: 1024**power for power, unit in enumerate(("", "K", "M", "G", "T"))}
_RESERVED, _LOST = "GPU reserved memory", "Non-releasable memory"


class MemorySummary(Struct, frozen=True):
    """Threshold of OOM027: the share of reserved memory that cannot be given back."""

    share: float = 0.2


@rule("OOM027 memory-summary", "events metrics", cause="fragmentation", confidence="medium")
def memory_summary(run: Run, cfg: MemorySummary) -> Findings:
    """Judge the last table of each log, and tell the worst."""
    rows = events_telling(run, "memory_summary", "memory_retries", order=("source", "line", "seq"))
    if rows.is_empty():
        return
    tables = [_table(part) for _, part in rows.group_by("source", maintain_order=True)]
    found = [(share, retries, last) for last, retries, share in tables if share >= cfg.share or retries]
    if not found:
        return
    share, retries, row = max(found, key=lambda one: one[:2])
    step = last_step(run, row["source"], row["line"] or row["byte"] or 0, row["t_ns"], row["rank"])
    again = f"; it freed its cache and tried again {retries} time{'s' if retries > 1 else ''}" if retries else ""
    yield memory_summary.finding(
        f"{100 * share:.0f} % of the memory that the allocator reserves cannot be given back{again}",
        "free pieces between live blocks serve no larger request and go back to no other program",
        proof(event_evidence(row)),
        Onset(step=step, rank=row["rank"]),
        severity="warning" if share >= cfg.share else "info",
        numbers={"share": share, "retries": retries},
    )


def _table(rows: pl.DataFrame) -> tuple[Mapping[str, Any], int, float]:
    """The last row of a log's last table, its retries, and the share of reserved memory that is not releasable."""
    told: dict[str, float] = {}
    retries = 0
    for row in rows.iter_rows(named=True):
        attrs = attributes(row["attrs"])
        retries = int(attrs.get("retries") or retries)
        if hit := _SIZE.match(attrs.get("now", "").strip()):
            told[attrs.get("what", "")] = float(hit[1]) * _SCALE[hit[2]]
    reserved = told.get(_RESERVED, 0.0)
    return rows.row(-1, named=True), retries, told.get(_LOST, 0.0) / reserved if reserved else 0.0


@remark("OOM017 unused-levers", "events metrics facts", about=first_fatal, confidence="low", cause="unused_levers")
def levers(run: Run, first: OomMessage) -> Findings:
    """List the settings that the configuration leaves unused, when memory ran out."""
    found = list(_unused(run))
    if not found or first.reading in {"others", "limit"}:
        return
    yield levers.finding(
        f"the configuration leaves {len(found)} way{'s' if len(found) > 1 else ''} of saving memory unused",
        "; ".join(f"{row['key']} = {row['value']}" for row in found),
        proof(*(fact_evidence(row) for row in found), message_evidence(first)),
        Onset(first.step, first.t_ns, first.rank),
        culprits=ranks(first),
    )


def _unused(run: Run) -> Iterator[dict[str, Any]]:
    """Give the facts that say so: no recomputation, whole batches at once, attention that keeps its scores."""
    recompute = stated(run, "recompute")
    if recompute.height and recompute["said"].is_in(OFF).all():
        yield recompute.row(0, named=True)
    batch, often = stated(run, "micro_batch").head(1), stated(run, "accumulation").head(1)
    if often["said"].to_list() == ["1"] and batch["said"].cast(pl.Int64, strict=False).gt(1).any():
        yield batch.row(0, named=True)
    yield from stated(run, "attention").filter(pl.col("said") == "eager").head(1).iter_rows(named=True)
