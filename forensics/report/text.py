"""The verdict for a terminal: at most 25 lines of at most 80 columns, and `file:line` is never cut."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from msgspec import Struct

from forensics.io.safe_text import printable
from forensics.model import Evidence, Finding, Outcome, Report
from forensics.patterns import lazily
from forensics.registry import renderer
from forensics.report import _losses, _many
from forensics.report import phrases as say
from forensics.report._layout import whole
from forensics.report.style import LABEL_CHARS, PLAIN, Paint, Style

_WORDS: dict[Outcome, tuple[str, Paint]] = {
    Outcome.FAILED: ("FAILED", "red"),
    Outcome.SUSPECT: ("SUSPECT", "magenta"),
    Outcome.HEALTHY: ("HEALTHY", "green"),
    Outcome.CANNOT_SAY: ("CANNOT SAY", "yellow"),
}
#: A verdict is read on one screen.
MOST_LINES = 25
#: A time is cut to its minute, so that the columns fit; the groups below have it whole.
_TIME = lazily(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d):.*$")


class _Room(Struct, frozen=True):
    """Lines for each part (`restart`: its reason); `evidence`, `fixes` and `links` say how many are shown.

    A style that shows everything uses the widest room, and cuts no part of it.
    """

    headline: int = 3
    cause: int = 3
    why: int = 3
    evidence: int = 3
    quote: int = 3
    confirm: int = 0
    fixes: int = 4
    fix: int = 3
    restart: int = 2
    step: int = 2
    record: int = 3
    links: int = 3
    link: int = 2
    other: int = 2
    names: int = 2
    notes: int = 1
    unseen: int = 2
    lost: int = 3


#: Tried in turn until the page fits; the last, with the parts that are always one line, makes 25 at most.
_ROOMS = (
    _Room(confirm=2, notes=3),
    _Room(),
    _Room(evidence=2, quote=2, fixes=3, record=2, link=1, other=1, unseen=1),
    _Room(evidence=2, quote=2, fixes=3, record=2, links=0, other=1, unseen=1),
    _Room(why=2, names=1, evidence=1, quote=2, fixes=3, record=2, links=0, other=1, unseen=1),
    _Room(why=2, names=0, evidence=1, quote=2, fixes=3, record=2, links=0, other=1, unseen=1, lost=1, step=0),
    _Room(
        why=2, names=0, evidence=1, quote=2, fixes=3, restart=1, record=2, links=0, other=1, unseen=1, lost=1, step=0
    ),
    _Room(why=2, names=0, evidence=1, quote=2, fixes=2, record=2, links=0, other=1, unseen=1, lost=1),
    _Room(why=0, names=0, evidence=1, quote=2, fixes=2, restart=1, record=2, links=0, other=1, unseen=1, lost=1),
    _Room(
        headline=2, why=0, evidence=1, quote=1, fixes=2, restart=0, step=0, record=2, links=0, names=0, unseen=1, lost=1
    ),
    _Room(
        headline=2, cause=1, why=0, evidence=1, quote=1, fixes=1, fix=1, restart=0, step=0, record=1, links=0, other=1,
        names=0, unseen=1, lost=1,
    ),
)  # fmt: skip


#: So many runs of one failure are listed unasked: two screens hold ten failures.
_MOST_RUNS = 8


def render_many(reports: Sequence[Report], style: Style = PLAIN) -> Iterator[str]:
    """Write the count of each shape, one headline for each group, and below it one line for each run."""
    yield style.paint(_many.tally(reports), "bold")
    yield from _losses.field(_losses.of_runs(reports), style)
    yield from _shapes(reports, style)
    for group in _many.groups(reports):
        lead = group.lead.verdict
        shape = f"  {lead.shape.value}" if lead.shape else ""
        count = say.plural(len(group.reports), "run")
        yield ""
        yield f"{paint_outcome(lead.outcome, style)}{shape}  {count}  {style.paint(group.key, 'dim')}"
        if group.headline:
            yield from style.field("", printable(group.headline), "bold", most=2)
        if group.seen.runs:
            yield from style.field("seen", group.seen.words, most=2)
        shown = style.first(group.reports, _MOST_RUNS)
        for report in shown:
            where = say.onset(report.verdict.onset)
            yield f"  {printable(report.run)}" + (f"  {where}" if where else "")
        if more := len(group.reports) - len(shown):
            yield f"  and {say.plural(more, 'run')} more: -v shows them"


def _shapes(reports: Sequence[Report], style: Style) -> Iterator[str]:
    head, rows = _many.SHAPE_HEAD, [[_TIME.sub(r"\1Z", cell) for cell in row.cells] for row in _many.by_shape(reports)]
    widths = [max(len(line[n]) for line in (head, *rows)) for n in range(len(head))]
    for number, line in enumerate((head, *rows)):
        told = "  ".join(f"{cell:<{wide}}" for cell, wide in zip(line, widths, strict=True)).rstrip()
        yield style.paint(told, "dim") if number == 0 else told


@renderer("text", many=render_many, styled=True)
def render(report: Report, style: Style = PLAIN) -> Iterator[str]:
    """Write the verdict as lines."""
    pages = ([*_page(report, style, room)] for room in _ROOMS)
    tight = _page(report, style, _ROOMS[-1])
    yield from next((page for page in pages if len(page) <= MOST_LINES or style.verbose), tight)
    if style.checklist or style.verbose:
        yield from ("", *_checklist(report, style))
    if style.verbose:
        yield from _everything(report, style)


def paint_outcome(outcome: Outcome, style: Style) -> str:
    """Give the outcome as its word, painted."""
    word, color = _WORDS[outcome]
    return style.paint(word, "bold", color)


def _page(report: Report, style: Style, room: _Room) -> Iterator[str]:
    yield from _head(report, style, room)
    yield from _evidence(report, style, room)
    yield from _advice(report, style, room)
    yield from _chain(report, style, room)
    yield from _doubts(report, style, room)


def _head(report: Report, style: Style, room: _Room) -> Iterator[str]:
    verdict = report.verdict
    shape = f"  {verdict.shape.value}" if verdict.shape else ""
    yield f"{paint_outcome(verdict.outcome, style)}{shape}  {printable(report.run)}"
    yield from style.field("", printable(say.headline(verdict)), "bold", most=room.headline)
    yield from _losses.field(_losses.words(report.coverage), style, room.lost)
    if where := say.onset(verdict.onset):
        yield from style.field("onset", where)
    if verdict.culprits:
        yield from style.field("culprits", say.ranks(verdict.culprits), most=1)
    if verdict.cause or verdict.outcome in {Outcome.FAILED, Outcome.SUSPECT}:
        yield from style.field("cause", printable(say.cause(verdict)), most=room.cause)
    if words := say.seen_before(verdict):
        yield from style.field("before", words, most=1)


def _evidence(report: Report, style: Style, room: _Room) -> Iterator[str]:
    finding = say.lead(report)
    if finding is None:
        return
    if report.verdict.lead is None:  # nothing was found wrong: this is only worth a look
        for note in say.notes(report)[: room.notes]:
            yield from style.field("note", printable(f"{note.title} ({note.evidence[0].place})"), most=room.headline)
        return
    why = [*style.field("why", printable(finding.because))] if finding.because else []
    if style.verbose or len(why) <= room.why:  # half a reason helps nobody
        yield from why
    every = {(e.place, e.quote): e for e in reversed(finding.evidence)}
    distinct = list(reversed(every.values()))
    shown = style.first(distinct, room.evidence)
    for index, evidence in enumerate(shown):
        yield from _one_evidence("evidence" if not index else "", evidence, style, room.quote)
    if rest := len(distinct) - len(shown):
        yield from style.field("", f"and {say.plural(rest, 'more place')}: -v shows them", "dim")
    confirm = [*style.field("confirm", printable(words))] if (words := say.confirm(report.verdict)) else []
    if style.verbose or len(confirm) <= room.confirm:  # half a sentence helps nobody
        yield from confirm


def _one_evidence(label: str, evidence: Evidence, style: Style, most: int = 1) -> Iterator[str]:
    """Lay out a place, and below it its text: a long line from its own words on, after the prefix of a logger."""
    head = style.paint(f"{label:<{LABEL_CHARS}}", "dim")
    yield head + style.paint(printable(evidence.place), "cyan")
    room = max(20, style.width - LABEL_CHARS - 2)
    if said := say.stated(evidence, room, most):
        rows = textwrap.wrap(printable(said, room * most), room, break_on_hyphens=False)
        yield from (" " * (LABEL_CHARS + 2) + row for row in rows[:most])


def _advice(report: Report, style: Style, room: _Room) -> Iterator[str]:
    """The fix, the restart with its command, the next check, and the signals to record next time."""
    verdict = report.verdict
    yield from _fixes(report, style, room)
    if words := say.restart(verdict):
        yield from style.field("restart", printable(words))  # a checkpoint's path is never cut
        if (why := say.why_restart(verdict)) and room.restart:
            yield from style.field("", printable(why), most=room.restart)
        yield from _command(verdict.restart.command if verdict.restart is not None else None)
    if (check := say.open_check(verdict)) is not None and room.step:
        yield from style.field("next", printable(check.text), most=room.step)
        yield from _command(check.command)
    for gap in style.first(verdict.missing, 1):
        words = say.record(gap, briefly=room.record < _ROOMS[0].record)
        yield from style.field("record", printable(words), most=room.record)
        yield from _command(gap.command)


def _command(command: str | None) -> Iterator[str]:
    """One line that is copied, so it is never wrapped or cut."""
    if command is not None:
        yield " " * LABEL_CHARS + printable(command)


def _fixes(report: Report, style: Style, room: _Room) -> Iterator[str]:
    for index, action in enumerate(style.first(report.verdict.actions, room.fixes)):
        label = "fix" if not index else ""
        most = room.fix + (not index)  # the first has room for its setting and place
        yield from style.field(label, printable(say.fix(action)), most=most)
        yield from _command(action.command)


def _chain(report: Report, style: Style, room: _Room) -> Iterator[str]:
    links = report.verdict.chain
    if len(links) < 2:  # one link says no more than the headline
        return
    shown = style.first(links, room.links)
    for index, link in enumerate(shown):
        arrow = "-> " if index else ""
        more = f" (+{len(links) - len(shown)} more)" if index == len(shown) - 1 and len(links) > len(shown) else ""
        yield from style.field("chain" if not index else "", arrow + printable(link) + more, most=room.link)


def _doubts(report: Report, style: Style, room: _Room) -> Iterator[str]:
    verdict = report.verdict
    if verdict.runner_up:
        yield from style.field("or else", printable(verdict.runner_up), most=room.other)
    if verdict.against:
        first = verdict.against[0]
        place = printable(first.place)
        quote = printable(first.quote.strip(), max(20, style.width - LABEL_CHARS - len(place) - 1))
        yield style.paint(f"{'against':<{LABEL_CHARS}}", "dim") + f"{place} {quote}"
    yield from style.field("seen", printable(say.seen(report.coverage)), most=1)
    if verdict.missing and (names := say.unrecognised(report.coverage)) and room.names:
        hint = "; [metrics] in forensics.toml names them"
        yield from style.field("names", printable(names + hint), most=room.names)
    if unseen := say.unseen(report):
        yield from style.field("not seen", printable("; ".join(unseen)), most=room.unseen)
    if style.verbose or verdict.lead is None or say.open_check(verdict) is None:
        for index, step in enumerate(style.first(say.next_steps(report), 1)):
            label = "more" if not index else ""
            if say.is_command(step):  # it is copied, so it is never wrapped or cut
                yield whole(label, step, style)
            else:
                yield from style.field(label, printable(step), most=room.step)


def _everything(report: Report, style: Style) -> Iterator[str]:
    yield from chain.from_iterable(_finding(f, style) for f in report.findings)
    for file in report.coverage.files:
        reason = f": {file.reason}" if file.reason else ""
        counts = f"{file.read_bytes:,} of {file.size_bytes:,} bytes, {say.plural(file.records, 'record')}"
        yield from style.field(file.status.value, printable(f"{file.source} ({counts}){reason}"))
    for issue in report.issues:
        place = f"{issue.source}:{issue.line}" if issue.line is not None else f"{issue.source}@{issue.byte}"
        yield from style.field("issue", printable(f"{place} {issue.code} x{issue.count}: {issue.message}"))
    for plugin in report.plugins:
        yield from style.field("plugin", printable(plugin))


def _checklist(report: Report, style: Style) -> Iterator[str]:
    """Every check of the playbook with its state: its evidence, or how to record the missing signal."""
    gaps = {gap.signal: gap for gap in report.verdict.missing}
    for check in report.verdict.playbook:
        done = f" [{check.evidence}]" if check.evidence else ""
        yield from style.field(check.state, printable(check.text + done))
        if check.state == "next":
            yield from _command(check.command)
        for gap in (gaps[signal] for signal in check.signals if signal in gaps):
            yield from style.field("", printable(f"record: {gap.how_to_record}"), "dim")
            yield from _command(gap.command)


def _finding(finding: Finding, style: Style) -> Iterable[str]:
    where = say.onset(finding.onset)
    title = f"{finding.rule} {finding.severity.value} ({finding.confidence.value}) {finding.title}"
    yield from style.field("finding", printable(title + (f" [{where}]" if where else "")))
    for evidence in finding.evidence:
        yield from _one_evidence("", evidence, style)
