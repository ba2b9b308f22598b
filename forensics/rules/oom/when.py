"""When memory ran out: in an evaluation, before the first steps, after a resume, or in a run that went on."""

from __future__ import annotations

import polars as pl

from forensics.analyses.memory.oom_messages import OomMessage, oom_messages
from forensics.case.processes.lives import Boundary, boundaries, lives
from forensics.case.series import metric_records
from forensics.case.steps import in_file
from forensics.rules.kit import Evidence, Findings, Locator, Run, Struct, at_step, proof, remark, times
from forensics.rules.oom._memory import fatal, message_evidence, of_fatal, ranks, size


@of_fatal("OOM005 oom-during-evaluation", "events metrics", confidence="medium")
def during_evaluation(_run: Run, first: OomMessage) -> Findings:
    """Find the first fatal device error that was raised in an evaluation."""
    if first.phase not in {"evaluation", "generation"}:
        return
    tried = f" (tried to allocate {size(first.sizes.tried)})" if first.sizes.tried else ""
    yield during_evaluation.finding(
        f"memory ran out in {first.phase}{tried}, after {at_step(first.step)} of training",
        "the traceback runs through it: the training step fits",
        proof(message_evidence(first)),
        culprits=ranks(first),
        cause=f"oom_in_{first.phase}",
        likely=(
            "gradients are recorded: no torch.no_grad()",
            "its batch is larger than the training batch",
            "outputs of all batches are kept on the device for a metric",
        ),
    )


#: What each phase allocates, and the phase after which its cause is named.
_ALLOCATED = {
    "loading": ("weights", "loading"),
    "forward": ("activations", "forward"),
    "logits": ("logits", "forward"),
    "backward": ("activations", "backward"),
    "optimizer": ("optimizer states", "optimizer"),
}


class TooBigFromTheStart(Struct, frozen=True):
    """Threshold of OOM006: the optimizer's states exist after the first step, workspaces after the second."""

    steps: int = 2


@of_fatal("OOM006 too-big-from-the-start", "events metrics checkpoints")
def too_big_from_the_start(run: Run, first: OomMessage, cfg: TooBigFromTheStart) -> Findings:
    """Find a fatal device error before the run had really begun."""
    if (first.step or 0) > cfg.steps or first.phase in {"evaluation", "generation", "checkpoint", "restoring"}:
        return
    if any(life.last > cfg.steps for life in lives(run)) or first.reading in {"others", "limit"}:
        return
    if first.step is None and _records_before(run, first) > cfg.steps:
        return
    what, phase = _ALLOCATED.get(first.phase, ("model or batch", "unknown"))
    tried = f" (tried to allocate {size(first.sizes.tried)})" if first.sizes.tried else ""
    held = f"; {size(first.sizes.allocated)} were allocated" if first.sizes.allocated else ""
    yield too_big_from_the_start.finding(
        f"the job did not fit from the start: memory ran out for {what}{tried}",
        f"the error came before step {cfg.steps + 1}, in the phase that allocates them{held}",
        proof(message_evidence(first)),
        confidence="medium" if first.phase in _ALLOCATED else "low",
        culprits=ranks(first),
        cause=f"too_big_{phase}",
    )


def _records_before(run: Run, first: OomMessage) -> int:
    """Count the training records above a message in its own file, for logs that number no step."""
    place = in_file()
    above = metric_records(run).filter(pl.col("trains") & (pl.col("source") == first.source) & (place < first.at))
    return above.select("seq").unique().collect().height


class AfterResume(Struct, frozen=True):
    """Thresholds of OOM012: records of the new life, and how many times longer the life before had trained."""

    records: int = 3
    longer: float = 3.0


@of_fatal("OOM012 oom-after-resume", "events metrics checkpoints", confidence="medium", cause="oom_after_resume")
def after_resume(run: Run, first: OomMessage, cfg: AfterResume) -> Findings:
    """Find a fatal device error that came while a checkpoint was loaded, or right after a restart."""
    if first.phase == "restoring":
        yield after_resume.finding(
            "memory ran out while a checkpoint was loaded",
            "the traceback runs through it: what is loaded is on the device beside the model's own",
            proof(message_evidence(first)),
            culprits=ranks(first),
        )
        return
    found = [b for b in boundaries(run) if b.after.source == first.source and _short(b, first, cfg)]
    if not found:
        return
    last = found[-1]
    resumed = f"resumed at step {last.after.first}"
    yield after_resume.finding(
        f"memory ran out {last.after.records} record{'s' if last.after.records != 1 else ''} after the run was"
        f" {resumed}; before, {last.before.records} fitted",
        "the same steps fitted before the restart, so what is new is the resume itself",
        proof(
            message_evidence(first),
            Evidence(last.after.source, Locator(line=last.after.line_first), resumed, step=last.after.first),
        ),
        culprits=ranks(first),
    )


def _short(boundary: Boundary, message: OomMessage, cfg: AfterResume) -> bool:
    """Whether a life that went on from a much longer one is short, and ended with the message."""
    life = boundary.after
    if boundary.kind == "scratch" and life.resumed_step is None:
        return False
    here = life.line_last is None or message.locator.line is None or life.line_last <= message.locator.line
    return here and life.records <= cfg.records and boundary.before.records >= cfg.longer * life.records


@remark("OOM019 survived-oom", "events metrics", confidence="high", cause="oom_survived")
def survived_oom(run: Run) -> Findings:
    """Count the device errors that were survived, in a run that no such error ended."""
    found = [m for m in oom_messages(run) if m.survived == "progress" and m.where == "device"]
    if not found or fatal(run):
        return
    yield survived_oom.finding(
        f"device memory ran out {times(len(found))}, and the run went on",
        "the same rank logged further steps after it",
        tuple(message_evidence(m) for m in found[:3]),
        culprits=ranks(*found),
        numbers={"times": len(found)},
    )
