"""Facts of a report as short phrases, used by every renderer for people."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from forensics.action import Action
from forensics.checkpoint import Checkpoint
from forensics.model import Coverage, FileStatus, Finding, Onset, Outcome, Report

_RANKS_SHOWN = 8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OPTION = re.compile(r"--[a-z]")


def plural(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def utc(t_ns: int | None) -> str | None:
    """Nanoseconds since 1970 as ISO-8601 in UTC (microseconds only where there are any); None when out of range."""
    if t_ns is None:
        return None
    try:
        when = _EPOCH + timedelta(microseconds=t_ns // 1000)
    except OverflowError:
        return None
    return when.isoformat().replace("+00:00", "Z")


def checkpoint(saved: Checkpoint) -> str:
    """Say which checkpoint, and where it is where the run says so."""
    return f"step {saved.step}" + (f", {saved.path}" if saved.path else "")


def ranks(culprits: Iterable[int]) -> str:
    """`rank 3`, or `ranks 1, 2, 5` with the tail counted."""
    every = sorted(culprits)
    if len(every) == 1:
        return f"rank {every[0]}"
    more = f" and {len(every) - _RANKS_SHOWN} more" if len(every) > _RANKS_SHOWN else ""
    return "ranks " + ", ".join(str(r) for r in every[:_RANKS_SHOWN]) + more


def onset(value: Onset) -> str:
    """`step 412 (last good 411), rank 3, 2026-01-02T03:04:05Z`, or an empty text when nothing is known."""
    parts: list[str] = []
    if value.step is not None:
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
    return min(report.findings, key=lambda f: (-f.severity.rank, -f.confidence.rank), default=None)


def unseen(report: Report) -> tuple[str, ...]:
    """What the verdict could not rest on: absent kinds of evidence, files skipped, bytes lost, issues, suppressions."""
    coverage = report.coverage
    skipped = [f for f in coverage.files if f.status is FileStatus.SKIPPED]
    parts: list[str] = []
    if coverage.absent:
        parts.append("no " + ", no ".join(coverage.absent))
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


#: More names are told by their number.
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
    """Say one action, and what the run has set now where it is about a setting."""
    now = action.setting
    return action.text + (f" (now {now.key} = {now.value}, {now.place})" if now is not None else "")


def fixes(report: Report) -> tuple[str, ...]:
    """Every action of the verdict in words, each followed by its command where it has one."""
    return tuple(line for a in report.verdict.actions for line in (fix(a), a.command) if line)


def next_steps(report: Report) -> tuple[str, ...]:
    """Further steps of the lead finding, each once; beside actions, which are the advice, only its commands.

    RUN in a command becomes the run.
    """
    finding = lead(report)
    if finding is None:
        return ("forensics formats",) if report.verdict.outcome is Outcome.CANNOT_SAY else ()
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
