"""Every file with the use of its bytes, the losses, and the kinds of evidence that were absent."""

from __future__ import annotations

from forensics.report import phrases as say
from forensics.report.html._elements import Markup, join, tag
from forensics.report.html._figures import data_table
from forensics.report.html._section import Section, Shown
from forensics.report.html._words import more

_ISSUES, _FILES = 100, 400


def coverage(shown: Shown) -> Markup:
    report = shown.report
    files = report.coverage.files
    rows = [
        (
            f.source,
            f.status.value,
            f.format or f.ingester,
            f"{f.read_bytes:,} of {f.size_bytes:,}",
            f"{f.records:,}",
            f.reason,
        )
        for f in files[:_FILES]
    ]
    head = ("file", "status", "format", "bytes read", "records", "reason")
    issues = [
        (f"{i.source}:{i.line}" if i.line is not None else f"{i.source}@{i.byte}", i.code, f"{i.count:,}", i.message)
        for i in report.issues[:_ISSUES]
    ]
    absent, count = ", ".join(report.coverage.absent), len(report.coverage.absent)
    seen = say.seen(report.coverage)
    parts = [tag("h2", "What was read"), tag("p", seen, f"; {say.plural(report.coverage.lost_bytes, 'byte')} lost.")]
    if absent:
        summary = tag("summary", say.plural(count, "signal"), " not recorded")
        parts.append(tag("details", summary, tag("p", f"{absent}.")))
    if unknown := say.unrecognised(report.coverage):
        parts.append(tag("p", f"{unknown}."))
    if rows:
        table = data_table(head, rows, f"Files of {report.run}")
        parts.append(tag("details", tag("summary", "Every file"), table, more(len(files) - _FILES, "file")))
    if issues:
        places = data_table(("place", "code", "times", "message"), issues, f"Issues of {report.run}")
        parts += [tag("h3", "What could not be read"), places]
    parts.append(more(len(report.issues) - _ISSUES, "issue"))
    if report.plugins:
        parts.append(tag("p", "Broken plugins: ", "; ".join(report.plugins)))
    return join(parts)


SECTIONS = (Section(100, coverage),)
