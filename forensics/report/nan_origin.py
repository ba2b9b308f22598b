"""Where a run stopped being finite, laid out: `forensics.nan-origin/1`, text and Markdown."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from forensics.io.safe_text import for_markdown, markdown_block, printable
from forensics.model import Coverage, Evidence, Issue
from forensics.report import _phrases as say
from forensics.report._payload import Payload, evidence_payload, read_payload, tool
from forensics.report._style import LABEL_CHARS, PLAIN, Style
from forensics.report.json_v1 import encoded

if TYPE_CHECKING:
    from forensics.nan_origin import NanOrigin

SCHEMA = "forensics.nan-origin/1"
FORMATS = ("text", "json", "markdown")
_EVIDENCE_SHOWN = 4
_KINDS = {
    "optimization_blowup": "the optimization blew up: the gradient norm rose before the first non-finite value",
    "data_or_numerics": "one bad batch or an operation's numerics: nothing rose before the first non-finite value",
    "loss_scale_collapse": "the fp16 loss scale collapsed: updates were skipped until nothing was left to scale",
    "from_start": "non-finite from the first step on: initialization, data or configuration",
    "filtered_by_writer": "the writer prints another number for NaN, so the first bad step is the first sign of it",
    "none": "every value that was read is finite",
    "unknown": "cannot say: no metric values were recognised",
}


@dataclass(frozen=True, slots=True)
class Page:
    """What the analysis found, and the account of its input."""

    origin: NanOrigin
    run: str
    coverage: Coverage
    issues: tuple[Issue, ...] = ()


def render(page: Page, form: str, style: Style = PLAIN) -> Iterator[str]:
    """Write the page as text, JSON or Markdown."""
    if form == "json":
        yield encoded(payload(page))
    elif form == "markdown":
        yield from _markdown(page)
    else:
        yield from _text(page, style)


def payload(page: Page) -> Payload:
    """Give the document `forensics.nan-origin/1`."""
    found = page.origin
    return {
        "schema": SCHEMA,
        "tool": tool(),
        "run": page.run,
        "kind": str(found.kind),
        "first_bad_step": found.first_bad_step,
        "first_bad_metric": found.first_bad_metric,
        "last_clean_step": found.last_clean_step,
        "last_clean_checkpoint": _plain(found.last_clean_checkpoint),
        "precursor": _plain(found.precursor),
        "restart": found.restart,
        "evidence": [evidence_payload(e) for e in found.evidence],
        **read_payload(page.coverage, page.issues),
    }


def _plain(value: Any) -> Any:  # noqa: ANN401 - a dataclass, a mapping or None
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


def _facts(page: Page) -> Iterator[tuple[str, str]]:
    found = page.origin
    if found.first_bad_metric is not None:
        step = f"step {found.first_bad_step}" if found.first_bad_step is not None else "no step printed"
        yield "first bad", f"{step}, {found.first_bad_metric}"
    elif found.first_bad_step is not None:
        yield "first bad", f"step {found.first_bad_step}"
    if found.last_clean_step is not None:
        yield "last clean", f"step {found.last_clean_step}"
    checkpoint: Mapping[str, Any] | None = _plain(found.last_clean_checkpoint)
    if checkpoint:
        where = f", {checkpoint['path']}" if checkpoint.get("path") else ""
        yield "checkpoint", f"step {checkpoint.get('step')}{where}"
    precursor: Mapping[str, Any] | None = _plain(found.precursor)
    if precursor:
        ratio = precursor.get("ratio")
        times = f", {ratio:.3g} times its usual value" if isinstance(ratio, (int, float)) else ""
        yield "before it", f"{precursor.get('metric')} at step {precursor.get('step')}{times}"
    if found.restart:
        yield "restart", found.restart


def _text(page: Page, style: Style) -> Iterator[str]:
    kind = str(page.origin.kind)
    word = {"none": style.paint("FINITE", "bold", "green"), "unknown": style.paint("CANNOT SAY", "bold", "yellow")}
    yield f"{word.get(kind, style.paint('NOT FINITE', 'bold', 'red'))}  {kind}  {printable(page.run)}"
    yield from style.field("", _KINDS.get(kind, kind), "bold")
    for label, value in _facts(page):
        if label in {"restart", "checkpoint"}:  # a command or a path is copied whole
            yield style.paint(f"{label:<{LABEL_CHARS}}", "dim") + printable(value)
        else:
            yield from style.field(label, printable(value))
    shown = page.origin.evidence if style.verbose else page.origin.evidence[:_EVIDENCE_SHOWN]
    for index, evidence in enumerate(shown):
        yield from _evidence("evidence" if not index else "", evidence, style)
    yield from style.field("seen", printable(say.seen(page.coverage)), most=1)
    if page.coverage.lost_bytes or page.issues:
        count = say.plural(sum(i.count for i in page.issues), "issue")
        yield from style.field("lost", f"{say.plural(page.coverage.lost_bytes, 'byte')}; {count}")


def _evidence(label: str, evidence: Evidence, style: Style) -> Iterator[str]:
    yield style.paint(f"{label:<{LABEL_CHARS}}", "dim") + style.paint(printable(evidence.place), "cyan")
    if evidence.quote.strip():
        yield " " * (LABEL_CHARS + 2) + printable(evidence.quote.strip(), max(20, style.width - LABEL_CHARS - 2))


def _markdown(page: Page) -> Iterator[str]:
    kind = str(page.origin.kind)
    yield f"## NaN origin: {kind}"
    yield ""
    yield _KINDS.get(kind, kind)
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield f"| run | {for_markdown(page.run, cell=True)} |"
    for label, value in _facts(page):
        yield f"| {label} | {for_markdown(value, cell=True)} |"
    for evidence in page.origin.evidence[:_EVIDENCE_SHOWN]:
        yield ""
        yield for_markdown(evidence.place)
        if evidence.quote.strip():
            yield ""
            yield markdown_block(evidence.quote).rstrip("\n")
