"""A hang, laid out: `forensics.hang/1`, text and Markdown: culprits, cause, who waits for whom, when each was seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from forensics.case.rank_spans import ranks_do, ranks_text, spans
from forensics.io.safe_text import for_markdown, printable
from forensics.model import Shape, Verdict
from forensics.report._layout import Layout, markdown_facts, proof, text_facts
from forensics.report.payload import Accounted, Payload, evidence_payload
from forensics.report.style import LABEL_CHARS, Paint, Style, markdown_table
from forensics.values import named

if TYPE_CHECKING:
    from forensics.diagnosis.hang import Hang, RankState

_WAITS, _RANKS, _NODES, _EVIDENCE = 6, 12, 16, 4
_PAINTS: dict[str, Paint] = {"HANG": "red", "DEAD RANK": "red", "UNDECIDABLE": "yellow", "NO HANG": "green"}
#: Shapes whose failed rank keeps the others waiting.
_RANK_SHAPES = frozenset({Shape.HANG, Shape.CRASH, Shape.OOM})


class Page(Accounted, frozen=True):
    """The verdict, and the picture of the ranks."""

    hang: Hang
    verdict: Verdict
    run: str


def is_hang(page: Page) -> bool:
    """Whether ranks waited for one that failed or did not come."""
    if page.verdict.shape is Shape.HANG:
        return True
    return page.verdict.shape in _RANK_SHAPES and page.hang.decision is not None


def _fields(page: Page) -> Payload:
    found, hangs = page.hang, is_hang(page)
    tied = found.decision.tied if found.decision is not None and hangs else ()
    return {
        "run": page.run,
        "hang": hangs,
        **named(page.verdict, "shape headline"),
        "culprits": sorted(page.verdict.culprits) if hangs else [],
        "cause": (page.verdict.cause or None) if hangs else None,
        "confidence": page.verdict.confidence.value,
        "undecidable_between": list(tied),
        **named(found, "last_common waits per_rank stacks"),
        "clock_offsets_s": dict(found.clocks),
        "collect_next": list(found.collect),
        "clues": [named(c, "kind ranks cause weight why") for c in (found.decision.clues if found.decision else ())],
        "evidence": [evidence_payload(e) for e in found.evidence],
    }


def _word(page: Page) -> str:
    if not is_hang(page):
        return "NO HANG"
    if page.hang.decision is not None and page.hang.decision.tied and not page.verdict.culprits:
        return "UNDECIDABLE"
    return "HANG" if page.verdict.shape is Shape.HANG else "DEAD RANK"


def _facts(page: Page, most: int = _WAITS) -> Iterator[tuple[str, str]]:
    """Label and sentence of everything but ranks, stacks and evidence."""
    found, verdict = page.hang, page.verdict
    yield "verdict", verdict.headline
    if is_hang(page):
        named = ranks_text(sorted(verdict.culprits)) if verdict.culprits else "nobody can be named"
        yield "culprits", f"{named}  (cause: {verdict.cause or 'unknown'}, confidence: {verdict.confidence.value})"
    if found.last_common is not None:
        common = found.last_common
        site = f", called at {common.site}" if common.site else ""
        yield "in common", f"{common.op} seq {common.seq} of group {common.group}{site}"
    for index, wait in enumerate(found.waits[:most]):
        site = f", called at {wait.site}" if wait.site else ""
        who = ranks_do(wait.waiting, f"wait for {ranks_text(wait.awaited)}")
        yield "waits" if not index else "", f"{who}: {wait.op} seq {wait.seq} of group {wait.group}{site}"
    if len(found.waits) > most:
        yield "", f"and {len(found.waits) - most} more (--format json)"
    for node, ahead in found.clocks.items():
        if ahead:
            yield "clock", f"{node} is {ahead:+.3f} s from the first node"


def _ranks(page: Page) -> list[tuple[str, RankState]]:
    """Culprits first, then one rank for each other way of standing, with the ranks that share it."""
    culprits = set(page.verdict.culprits)
    rows = [(str(r.rank), r) for r in page.hang.per_rank if r.rank in culprits]
    shared: dict[tuple[str, int | None, int | None], list[RankState]] = {}
    for state in page.hang.per_rank:
        if state.rank not in culprits:
            shared.setdefault((state.doing, state.last_step, state.exit_code), []).append(state)
    for states in shared.values():
        last = max(states, key=lambda s: s.last_time or "")
        rows.append((",".join(spans([s.rank for s in states])), last))
    return rows


def _rank_words(state: RankState) -> str:
    parts = [state.doing]
    if state.last_step is not None:
        parts.append(f"last step {state.last_step}")
    if state.last_time is not None:
        parts.append(f"last seen {state.last_time}")
    if state.exit_code is not None:
        parts.append(f"exit code {state.exit_code}")
    return ", ".join(part for part in parts if part)


def _text(page: Page, style: Style) -> Iterator[str]:
    word = _word(page)
    yield f"{style.paint(word, 'bold', _PAINTS[word])}  {printable(page.run)}"
    yield from text_facts(_facts(page, 10_000 if style.verbose else _WAITS), style)
    rows = _ranks(page)
    shown = style.first(rows, _RANKS)
    for index, (ranks, state) in enumerate(shown):
        yield from style.field("ranks" if not index else "", printable(f"{ranks}: {_rank_words(state)}"))
        if state.rank in page.verdict.culprits and state.place:
            yield " " * LABEL_CHARS + "  " + style.paint(printable(state.place), "cyan")
            room = max(20, style.width - LABEL_CHARS - 4)
            yield " " * (LABEL_CHARS + 4) + printable(state.last_words.strip(), room)
    if len(rows) > len(shown):
        yield from style.field("", f"and {len(rows) - len(shown)} more groups of ranks (--verbose)")
    yield from _tree(page, style)
    if is_hang(page):
        for index, evidence in enumerate(style.first(page.hang.evidence, _EVIDENCE)):
            yield from proof(evidence, style, first=not index)
    for index, item in enumerate(page.hang.collect):
        yield from style.field("next time" if not index else "", printable(item))


def _tree(page: Page, style: Style) -> Iterator[str]:
    nodes = style.first(page.hang.stacks, _NODES)
    for index, node in enumerate(nodes):
        lack = f" | lack {','.join(spans(node.lack))}" if node.lack else ""
        label = "stacks" if not index else ""
        text = f"{'  ' * min(node.depth, 8)}{node.frame}"
        room = max(20, style.width - LABEL_CHARS)
        yield style.paint(f"{label:<{LABEL_CHARS}}", "dim") + printable(text, room)
        yield from style.field("", f"{'  ' * min(node.depth, 8)}  have {','.join(spans(node.have))}{lack}")
    if len(page.hang.stacks) > len(nodes):
        yield from style.field("", f"and {len(page.hang.stacks) - len(nodes)} more frames (--verbose)")


def _markdown(page: Page) -> Iterator[str]:
    yield f"## Hang: {_word(page).lower()}"
    yield from ("", *markdown_facts((("run", page.run), *_facts(page))), "")
    rows = ((ranks, for_markdown(_rank_words(state), cell=True)) for ranks, state in _ranks(page)[:_RANKS])
    yield from markdown_table(("ranks", "state"), rows)
    for evidence in page.hang.evidence[:_EVIDENCE]:
        yield from ("", f"- {for_markdown(evidence.place)}: {for_markdown(evidence.quote.strip()[:200])}")


LAYOUT = Layout("forensics.hang/1", _fields, _text, _markdown)
