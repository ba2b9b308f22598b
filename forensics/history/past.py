"""One diagnosis as it is kept: what failed, where, and in which run; a line of JSON."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
import polars as pl
from msgspec import Struct

from forensics.io.safe_text import printable
from forensics.model import (
    Confidence,
    Evidence,
    Finding,
    Identity,
    Locator,
    Onset,
    Outcome,
    Report,
    SeenBefore,
    Severity,
    Shape,
    Verdict,
)
from forensics.store.run import Run
from forensics.values import field_names, replace, tool_version

SCHEMA = "forensics.diagnosis/1"
_KEY_CHARS = 16
_WORDS_CHARS = 300


#: As polars and a clock hold it.
Whole = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class Past(Struct, frozen=True, tag_field="schema", tag=SCHEMA):
    """A diagnosis of the past.

    `run` is what the run was called, `key` a hash of the names, sizes and times of its files, `ended_ns` when it
    failed or, where nothing tells that, when the last of them was written, `judged_ns` when it was judged, both in
    nanoseconds since 1970. `root` and `entity` are the
    identities of the failure; empty where it has none. `rule` and `severity` are of the finding that led the answer,
    `source`, `line` and `quote` of its first evidence.
    """

    run: str
    key: str
    tool: str
    judged_ns: Whole
    ended_ns: Whole
    outcome: str
    shape: str = ""
    cause: str = ""
    headline: str = ""
    root: str = ""
    entity: str = ""
    step: Whole | None = None
    checkpoint: str = ""
    confidence: str = "low"
    rule: str = ""
    severity: str = ""
    source: str = ""
    line: Whole | None = None
    quote: str = ""


def key_of(files: Iterable[tuple[str, int, int]]) -> str:
    """Give the key of a run: a hash of the path, the size in bytes and the time (ns) of each of its files."""
    digest = hashlib.sha256()
    for path, size_bytes, mtime_ns in sorted(files):
        digest.update(f"{path}\0{size_bytes}\0{mtime_ns}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:_KEY_CHARS]


def past_of(run: Run, report: Report, now_ns: int) -> Past:
    """Give what is kept of a report; its words are fit for every output, and cut."""
    columns = [pl.col("path").fill_null(""), pl.col("size").fill_null(0), pl.col("mtime_ns").fill_null(0)]
    files = run.scan("sources").select(columns).collect().rows()
    verdict = report.verdict
    known = verdict.identity
    lead = report.findings[verdict.lead] if verdict.lead is not None else None
    proof = lead.evidence[0] if lead is not None else None
    return Past(
        run=printable(report.run, _WORDS_CHARS),
        key=key_of(files),
        tool=tool_version(),
        judged_ns=now_ns,
        ended_ns=verdict.onset.t_ns or max((mtime_ns for _, _, mtime_ns in files), default=0),
        outcome=verdict.outcome.value,
        shape=verdict.shape.value if verdict.shape is not None else "",
        cause=verdict.cause,
        headline=printable(verdict.headline, _WORDS_CHARS),
        root=known.root if known is not None else "",
        entity=printable(known.entity or "", _WORDS_CHARS) if known is not None else "",
        step=verdict.onset.step,
        checkpoint=printable(verdict.checkpoint.path or "", _WORDS_CHARS) if verdict.checkpoint is not None else "",
        confidence=verdict.confidence.value,
        rule=lead.rule if lead is not None else "",
        severity=lead.severity.value if lead is not None else "",
        source=printable(proof.source, _WORDS_CHARS) if proof is not None else "",
        line=proof.locator.line if proof is not None else None,
        quote=printable(proof.quote, _WORDS_CHARS) if proof is not None else "",
    )


def report_of(past: Past) -> Report:
    """Give the answer of the past again, as far as it was kept: the verdict, and the finding that led it.

    Raises `ValueError` for an outcome, a shape or a severity that this version does not know.
    """
    onset = Onset(step=past.step)
    shape = Shape(past.shape) if past.shape else None
    confidence = Confidence(past.confidence)
    verdict = Verdict(
        outcome=Outcome(past.outcome), headline=past.headline, shape=shape, onset=onset, cause=past.cause,
        confidence=confidence, identity=Identity(past.root, past.entity or None) if past.root else None,
    )  # fmt: skip
    if not past.rule or shape is None:
        return Report(past.run, verdict)
    proof = Evidence(past.source, Locator(line=past.line), past.quote, step=past.step)
    lead = Finding(
        past.rule, shape, Severity(past.severity), confidence, past.headline, "", (proof,), onset, cause=past.cause
    )
    return Report(past.run, replace(verdict, lead=0), (lead,))


def known_as(name: str, files: Iterable[tuple[str, int, int]]) -> tuple[str, str]:
    """Give what a run is found again by while it does not change: its name as it is kept, and the key of its files."""
    return printable(name, _WORDS_CHARS), key_of(files)


def judged_already(past: Iterable[Past]) -> Mapping[tuple[str, str], Past]:
    """Give the diagnoses that this version has made, by what their runs are known as."""
    tool = tool_version()
    return {(one.run, one.key): one for one in past if one.tool == tool}


def line_of(past: Past) -> bytes:
    """Give the line that is kept, with its line feed."""
    return msgspec.json.encode(past) + b"\n"


def past_in(line: bytes) -> Past | None:
    """Read a line that was kept; None for any other."""
    if SCHEMA.encode() not in line:
        return None
    try:
        found = msgspec.json.decode(line, type=Past)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    said = ((name, getattr(found, name)) for name in field_names(Past))
    return replace(found, **{name: printable(text, _WORDS_CHARS) for name, text in said if isinstance(text, str)})


def seen_before(past: Iterable[Past], now: Past) -> SeenBefore | None:
    """Give how often other runs failed for the same reason, and when first and last; None where none did.

    A run that was judged several times, as it grew, counts once.
    """
    if not now.root:
        return None
    ends = {one.run: one.ended_ns for one in past if one.root == now.root and now.run != one.run and now.key != one.key}
    return None if not ends else SeenBefore(len(ends), min(ends.values()), max(ends.values()))


# A history by failure: runs that failed for the same reason are together, the newest failure first.


class Group(Struct, frozen=True):
    """Runs of one identity, by the newest diagnosis of each, in the order in which they ended."""

    runs: tuple[Past, ...]

    @property
    def last(self) -> Past:
        """The run that ended last."""
        return self.runs[-1]

    @property
    def first(self) -> Past:
        """The run that ended first."""
        return self.runs[0]


def newest(past: Iterable[Past]) -> tuple[Past, ...]:
    """Give the newest diagnosis of each run, in the order in which the runs ended."""
    by_run = {one.run: one for one in sorted(past, key=lambda one: one.judged_ns)}
    return tuple(sorted(by_run.values(), key=lambda one: (one.ended_ns, one.run)))


def groups(past: Iterable[Past]) -> tuple[Group, ...]:
    """Give the failures of a history; runs in which nothing was found belong to none."""
    by_root: dict[str, list[Past]] = {}
    for one in newest(past):
        if one.root:
            by_root.setdefault(one.root, []).append(one)
    found = (Group(tuple(own)) for own in by_root.values())
    return tuple(sorted(found, key=lambda group: (-group.last.ended_ns, group.last.run)))


def outcomes(past: Iterable[Past]) -> Mapping[str, int]:
    """Count the runs of each outcome, the most frequent first."""
    return dict(Counter(one.outcome for one in newest(past)).most_common())
