"""Facts of a report as short phrases, used by every renderer for people."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from math import inf

from forensics.action import Action, Check, Gap
from forensics.case.rank_spans import ranks_text
from forensics.identity import spoken
from forensics.knowledge.causes import causes
from forensics.knowledge.errors import by_id
from forensics.model import (
    WEIGHTS,
    Causal,
    Checkpoint,
    Confidence,
    Coverage,
    Evidence,
    FileStatus,
    Finding,
    Onset,
    Outcome,
    Report,
    Verdict,
)
from forensics.patterns import lazily

_RANKS_SHOWN = 8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: A clock that shows the year 1970 counts from when a machine or a process began.
_UPTIME_NS = 365 * 86_400 * 1_000_000_000
_OPTION = lazily(r"--[a-z]")


def plural(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def utc(t_ns: int | None) -> str | None:
    """Nanoseconds since 1970 as ISO-8601 in UTC (microseconds only where there are any); None when it is no date."""
    if t_ns is None or 0 <= t_ns < _UPTIME_NS:
        return None
    try:
        when = _EPOCH + timedelta(microseconds=t_ns // 1000)
    except OverflowError:
        return None
    return when.isoformat().replace("+00:00", "Z")


def checkpoint(saved: Checkpoint) -> str:
    """Name the checkpoint, and its place if the run says it."""
    return f"step {saved.step}" + (f", {saved.path}" if saved.path else "")


def ranks(culprits: Iterable[int]) -> str:
    """`rank 3`, `ranks 1, 2 and 5`, or the first of them with the tail counted."""
    every = sorted(culprits)
    if len(every) <= _RANKS_SHOWN:
        return ranks_text(every)
    return "ranks " + ", ".join(str(r) for r in every[:_RANKS_SHOWN]) + f" and {len(every) - _RANKS_SHOWN} more"


def stated(evidence: Evidence, room: float = inf, rows: float = 1) -> str:
    """Give the text at a place: the line, a long one from its own words on, else the number; empty without either.

    Where a line is longer than `rows` of `room` characters, and the words by which it is known are behind them, it
    begins there.
    """
    words = (evidence.quote or (f"{evidence.name} = {evidence.value}" if evidence.name else "")).strip()
    if len(words) <= room or evidence.locator.line is None:
        return words
    words = spoken(words) or words  # the prefix of a logger goes before the message
    row = by_id().get(evidence.name or "") if len(words) > room * rows else None
    known = row.compiled.search(words) if row is not None else None
    return words if known is None or known.end() <= room * rows else f"… {words[known.start() :]}"


def onset(value: Onset) -> str:
    """`step 412 (last good 411), rank 3, 2026-01-02T03:04:05Z`, or an empty text when nothing is known.

    Where the last step that was logged was good, it is `after step 412`: no step says when it went wrong.
    """
    parts: list[str] = []
    if value.step is not None and value.step == value.step_lo:
        parts.append(f"after step {value.step}")
    elif value.step is not None:
        good = f" (last good {value.step_lo})" if value.step_lo is not None else ""
        parts.append(f"step {value.step}{good}")
    if value.rank is not None:
        parts.append(f"rank {value.rank}")
    if (when := utc(value.t_ns)) is not None:
        parts.append(when)
    return ", ".join(parts)


def lead(report: Report) -> Finding | None:
    """Give the finding that the verdict rests on; of a run without one, the most severe and certain finding."""
    if report.verdict.lead is not None:
        return report.findings[report.verdict.lead]
    return next(iter(notes(report)), None)


def notes(report: Report) -> list[Finding]:
    """Remarks on a run without a failure: the most severe, what may be a cause before its context, the most certain.

    Without a verdict, all that is at least likely is part of the answer.
    """

    def order(f: Finding) -> tuple[int, bool, int]:
        may_be_cause = f.causal is not Causal.CONTEXT and f.confidence is not Confidence.LOW
        return -f.severity.rank, not may_be_cause, -f.confidence.rank

    ranked = sorted(report.findings, key=order)
    many = report.verdict.outcome is Outcome.CANNOT_SAY
    return ranked[:1] + [f for f in ranked[1:] if many and f.confidence is not Confidence.LOW]


def unseen(report: Report) -> tuple[str, ...]:
    """Gaps below the verdict: signals that nobody recorded, files skipped, bytes lost, issues."""
    coverage = report.coverage
    skipped = [f for f in coverage.files if f.status is FileStatus.SKIPPED and f.reason != WEIGHTS]
    parts: list[str] = []
    if gaps := report.verdict.missing[1:]:  # the first has its recipe beside it
        parts.append("no " + ", no ".join(gap.label for gap in gaps))
    if skipped:
        example = skipped[0]
        reason = f" ({example.reason})" if example.reason else ""
        parts.append(f"{plural(len(skipped), 'file')} skipped, first {example.source}{reason}")
    if coverage.lost_bytes:
        parts.append(f"{plural(coverage.lost_bytes, 'byte')} lost")
    if report.issues:
        parts.append(f"{plural(sum(i.count for i in report.issues), 'issue')}, first: {report.issues[0].message}")
    if report.suppressed:
        parts.append(f"{plural(report.suppressed, 'finding')} suppressed")
    if report.plugins:
        parts.append(f"{plural(len(report.plugins), 'plugin')} broken")
    return tuple(parts)


#: Of more names only the number is given.
_NAMES_SHOWN = 8


def unrecognised(coverage: Coverage) -> str:
    """`2 metrics read and not recognised: foo, bar`; empty where all were."""
    names = coverage.unrecognised
    if not names:
        return ""
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"{plural(len(names), 'metric')} read and not recognised: {', '.join(names[:_NAMES_SHOWN])}{more}"


def seen(coverage: Coverage) -> str:
    """`3 files read (kempnerforge, tfevents)`."""
    read = [f for f in coverage.files if f.status is not FileStatus.SKIPPED]
    kinds = sorted({kind for f in read for kind in (f.format or f.ingester).split(",") if kind.strip()})
    return plural(len(read), "file") + " read" + (f" ({', '.join(k.strip() for k in kinds)})" if kinds else "")


def fix(action: Action) -> str:
    """Say one action, with the present value of the setting that it changes."""
    now = action.setting
    return action.text + (f" (now {now.key} = {now.value}, {now.place})" if now is not None else "")


def headline(verdict: Verdict) -> str:
    """The headline without the word of its outcome above it."""
    return verdict.headline.removeprefix("Cannot say: ")


def fixes(report: Report) -> tuple[str, ...]:
    """Every action of the verdict in words, each followed by its command where it has one."""
    return tuple(line for a in report.verdict.actions for line in (fix(a), a.command) if line)


def cause(verdict: Verdict) -> str:
    """The cause in a sentence, with its slug and how sure it is; `not known` without one."""
    if not verdict.cause:
        return "not known"
    row = causes().get(verdict.cause)
    sure = verdict.cause_confidence or verdict.confidence
    slug = f"{verdict.cause}, confidence {sure.value}"
    return f"{row.says.rstrip('.')} ({slug})" if row is not None else slug


def confirm(verdict: Verdict) -> str:
    """A check that would confirm the cause; empty for a certain or unknown cause."""
    row = causes().get(verdict.cause)
    certain = (verdict.cause_confidence or verdict.confidence) is Confidence.HIGH
    return row.confirms if row is not None and row.is_known and not certain else ""


_DECISIONS = {
    "as_is": "as it is",
    "after_change": "after the change",
    "elsewhere": "on another machine",
    "stop": "not yet",
    "unknown": "unknown",
}


def restart(verdict: Verdict) -> str:
    """Advice to start again: from a checkpoint, how often; empty for a run that finished."""
    decided = verdict.restart
    if decided is None:
        return ""
    words = _DECISIONS[decided.decision]
    if decided.avoid:
        words += f" than {', '.join(decided.avoid)}"
    if verdict.checkpoint is not None and decided.decision != "stop":
        words += f", from the checkpoint of {checkpoint(verdict.checkpoint)}"
    if decided.no_checkpoint and decided.decision != "stop":
        words += f"; no checkpoint is usable: {decided.no_checkpoint}"
    if decided.tries > 1:
        words += f"; at most {plural(decided.tries, 'time')} without progress"
    return words


def seen_before(verdict: Verdict) -> str:
    """How often the same failure ended other runs, and when; empty where no history was asked, or none is like it."""
    seen = verdict.seen_before
    if seen is None:
        return ""
    first, last = ((utc(ns) or "")[:10] for ns in (seen.first_ns, seen.last_ns))
    when = f"on {first}" if first == last else f"from {first} to {last}"
    return f"the same failure ended {plural(seen.count, 'other run')} {when}"


def why_restart(verdict: Verdict) -> str:
    """Why a restart is decided so; empty where the change that comes first says it."""
    decided = verdict.restart
    if decided is None or (decided.decision == "after_change" and decided.change):
        return ""
    return decided.basis


#: So many first words make two sentences the same advice.
_SAME_WORDS = 3


def open_check(verdict: Verdict) -> Check | None:
    """The first check of the playbook that is still to be made, unless the cause is certain and has a fix."""
    sure = verdict.cause_confidence or verdict.confidence
    if verdict.actions and sure is Confidence.HIGH:
        return None
    told = {tuple(action.text.lower().split()[:_SAME_WORDS]) for action in verdict.actions}
    fresh = (c for c in verdict.playbook if tuple(c.text.lower().split()[:_SAME_WORDS]) not in told)
    return next((check for check in fresh if check.state == "next"), None)


def record(gap: Gap, *, briefly: bool = False) -> str:
    """A signal that was not recorded, why it matters if there is room, and how to record it next time."""
    return f"no {gap.label}: {gap.how_to_record if briefly else f'{gap.why_it_matters}. {gap.how_to_record}'}"


def next_steps(report: Report) -> tuple[str, ...]:
    """Further steps of the lead finding, each once; beside actions, which are the advice, only its commands.

    Where nothing was recognised, the formats that are. RUN in a command becomes the run.
    """
    finding = lead(report)
    if finding is None:
        unread = report.verdict.outcome is Outcome.CANNOT_SAY and not report.coverage.signals
        return ("forensics formats",) if unread else ()
    told = fixes(report)
    fresh = [step for step in finding.next if is_command(step) or not told]
    named = (re.sub(r"\bRUN\b", lambda _: shlex.quote(report.run), s) if is_command(s) else s for s in fresh)
    return tuple(dict.fromkeys((*(s for s in named if s not in told), f"forensics explain {finding.rule}")))


def is_command(step: str) -> bool:
    """Whether a next step is a command to copy rather than a sentence."""
    words = step.split()
    return bool(words) and (
        words[0] in {"forensics", "torchrun", "python", "python3"} or any(map(_OPTION.match, words))
    )
