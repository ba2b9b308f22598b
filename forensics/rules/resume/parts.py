"""Checkpoints on disk from which nothing can be resumed."""

from __future__ import annotations

from forensics.case.checkpoints import known, lacking
from forensics.case.endings import ending
from forensics.rules.kit import Evidence, Findings, Locator, Onset, Run, rule


@rule(
    "RSM010 checkpoint-lacks-parts",
    "metrics checkpoints",
    severity="warning",
    confidence="high",
    cause="checkpoint_incomplete",
)
def lacks_parts(run: Run) -> Findings:
    """Find the newest checkpoint, or one without a step, of which parts are not there or whose save did not end."""
    found, saved = lacking(run), known(run).filter("on_disk")
    newest = saved["step"].max()
    for one in found:
        if one.step is not None and one.step != newest:
            continue
        yield lacks_parts.finding(
            f"{one.path or 'the checkpoint'} has {one.has} of {one.parts} parts of its weights",
            "each part says in its name how many there are, and loading asks for all",
            (Evidence(one.source, Locator(), f"a part of {one.parts}", step=one.step),),
            Onset(step=one.step),
            numbers={"parts": one.parts, "there": one.has},
        )
        return
    if saved.height and saved["complete"][-1] is False:
        last, reach = saved.row(-1, named=True), ending(run).reach
        # the run went past it and reached its plan: only a resume from there would miss it
        is_past = reach.is_reached and reach.unit == "step" and (reach.done or 0) > (last["step"] or 0)
        yield lacks_parts.finding(
            f"the save of {last['path'] or 'the newest checkpoint'} did not end",
            "the folder still has the name of one that is being written, lacks the file that is written last, or holds"
            " a file that was cut",
            (Evidence(last["source"], Locator(), "of a save that did not end", step=last["step"]),),
            Onset(step=last["step"]),
            severity="info" if is_past else "warning",
            confidence="medium",
        )
