"""Where a run stopped being finite, laid out: `forensics.nan-origin/1`, text and Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from forensics.analyses.checkpoints import why_unusable
from forensics.analyses.nan.kind import told
from forensics.io.safe_text import printable
from forensics.model import Shape, Verdict
from forensics.report._layout import Layout, markdown_facts, markdown_proof, proof, text_facts
from forensics.report.payload import Accounted, Payload, evidence_payload
from forensics.report.style import Paint, Style
from forensics.values import named, plain

if TYPE_CHECKING:
    from forensics.analyses.nan.origin import NanOrigin

_EVIDENCE_SHOWN = 4
_PAINTS: dict[str, Paint] = {"FINITE": "green", "RECOVERED": "green", "CANNOT SAY": "yellow", "NOT FINITE": "red"}


class Page(Accounted, frozen=True):
    """The result of the analysis, and the options to restart with."""

    origin: NanOrigin
    run: str
    restart: str | None = None


def restart_of(verdict: Verdict) -> str | None:
    """The options to restart with, and the change in them, where the verdict is about the same failure."""
    return verdict.restart.command if verdict.shape is Shape.NAN and verdict.restart is not None else None


def _fields(page: Page) -> Payload:
    found = page.origin
    return {
        "run": page.run,
        **named(found, "kind first_bad_step first_bad_metric last_clean_step last_clean_checkpoint precursor"),
        "restart": page.restart or found.restart,
        "checkpoints": plain(found.checkpoints),
        "evidence": [evidence_payload(e) for e in found.evidence],
    }


#: What rose before the first non-finite value, in words.
_ROSE = {"grad_norm": "the gradient norm", "loss": "the loss", "lr": "the learning rate"}


def kind_of(found: NanOrigin) -> tuple[str, str]:
    """Give the answer in two words and in one sentence."""
    if found.kind == "none" and found.first_bad_metric is not None:
        return "RECOVERED", "values were not finite for a while, and training went on after that"
    if found.kind == "unknown" and found.first_bad_metric is not None:
        return "NOT FINITE", "nothing that was logged tells what came before the first non-finite value"
    words = {"none": "FINITE", "unknown": "CANNOT SAY"}
    what = "the gradient norm" if found.precursor is None else _ROSE.get(found.precursor.metric, found.precursor.metric)
    return words.get(found.kind, "NOT FINITE"), told(found.kind)[1].replace("{what}", what)


def _facts(page: Page) -> Iterator[tuple[str, str]]:
    found = page.origin
    if found.first_bad_metric is not None or found.first_bad_step is not None:
        step = f"step {found.first_bad_step}" if found.first_bad_step is not None else "no step printed"
        yield "first bad", step + (f", {found.first_bad_metric}" if found.first_bad_metric else "")
    if found.last_clean_step is not None:
        yield "last clean", f"step {found.last_clean_step}"
    if found.last_clean_checkpoint is not None:
        path = found.last_clean_checkpoint.path
        yield "checkpoint", f"step {found.last_clean_checkpoint.step}" + (f", {path}" if path else "")
    elif found.first_bad_metric is not None and found.kind != "none":
        why = why_unusable(found.checkpoints)
        yield "checkpoint", f"none is usable: {why}" if why else "none was found, in the log or on disk"
    if found.precursor is not None:
        rise = found.precursor
        when = f" at step {rise.step}" if rise.step is not None else ""
        yield "before it", f"{rise.metric}{when}, {rise.ratio:.3g} times its usual value"
    if restart := page.restart or found.restart:
        yield "restart", restart


def _text(page: Page, style: Style) -> Iterator[str]:
    word, sentence = kind_of(page.origin)
    yield f"{style.paint(word, 'bold', _PAINTS[word])}  {page.origin.kind}  {printable(page.run)}"
    yield from style.field("", sentence, "bold")
    yield from text_facts(_facts(page), style)
    shown = style.first(page.origin.evidence, _EVIDENCE_SHOWN)
    for index, evidence in enumerate(shown):
        yield from proof(evidence, style, first=not index)


def _markdown(page: Page) -> Iterator[str]:
    yield f"## NaN origin: {page.origin.kind}"
    yield from ("", kind_of(page.origin)[1], "", *markdown_facts((("run", page.run), *_facts(page))))
    yield from markdown_proof(page.origin.evidence[:_EVIDENCE_SHOWN])


LAYOUT = Layout("forensics.nan-origin/1", _fields, _text, _markdown)
