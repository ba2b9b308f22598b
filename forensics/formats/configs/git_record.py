"""The commit of a run: a file that holds nothing but a commit, or what `git log` or `git rev-parse` wrote."""

from __future__ import annotations

import re

from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.facts import ConfigFacts
from forensics.formats.rows.text import document, settle_document

_GLOBS = ("*git*", "*commit*", "*revision*", "*sha.txt", "version.txt", "codever*")
_LINE = lazily(
    r"^\s*(?:(?:git[_ -]?)?(?:commit|hash|sha1?|revision|head)(?:[_ -]?(?:hash|sha|id))?\s*[:= ]\s*)?"
    r"([0-9a-f]{40}|[0-9a-f]{7,12})"
    r"(?:[ -]dirty)?\s*$",
    re.IGNORECASE,
)
_DIRTY = lazily(r"-dirty\b|^ M |^Changes not staged", re.MULTILINE)
_MOST_BYTES = 64 << 10


@ingester("git_record", version=1, sniff=Sniff(glob=_GLOBS), emits=("facts",))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one record of a commit; raises `NotMine` when none of the first lines is a commit."""
    if opened.size_bytes > _MOST_BYTES or b"\0" in opened.head(1024):
        raise NotMine("no record of a commit")
    data = document(opened, limits)
    lines = data.decode("utf-8", "replace").split("\n")
    first = ((n, _LINE.match(line)) for n, line in enumerate(lines[:8], 1) if len(line) < 200)
    found = next(((n, match[1]) for n, match in first if match), None)
    if found is None or (len(found[1]) < 40 and not any(c.isdigit() for c in found[1])):
        raise NotMine("no record of a commit")
    facts = ConfigFacts()
    facts.put("git_commit", found[1].lower(), found[0], "versions")
    if _DIRTY.search("\n".join(lines)):
        facts.put("git_dirty", value=True, line=None, family="versions")
    facts.write(out)
    out.format("git commit")
    settle_document(opened, out, records=len(facts))
