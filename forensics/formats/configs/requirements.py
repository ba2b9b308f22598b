"""Versions of packages: `requirements.txt`, `pip freeze` and `pip list`, as facts of the family `versions`.

A package from a repository keeps its commit and loses its address, which may hold a password.
"""

from __future__ import annotations

from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.facts import ConfigFacts
from forensics.formats.rows.text import lines_of, settle

_GLOBS = (
    *("requirements*.txt", "*pip*freeze*", "*pip*list*", "*freeze*.txt", "pip*.txt", "packages*.txt"),
    *("conda*.txt", "conda*list*", "constraints*.txt", "*requirements*.txt", "pip-freeze", "environment*.txt"),
)
_EQUAL = lazily(r"^([A-Za-z0-9][\w.-]*)(?:\[[\w,.-]*\])?\s*(===?|>=|<=|~=|>|<|!=)\s*([\w.*+!-]+)")
_CONDA = lazily(r"^([A-Za-z0-9_][\w.-]*)={1,2}([\w.+!-]+)=[\w.]+$")
_TABLE = lazily(r"^([A-Za-z0-9_][\w.-]*)\s+(v?\d[\w.+!-]*)(?:\s+\S+)*$")
_FROM = lazily(r"^(?:([A-Za-z0-9][\w.-]*)(?:\[[\w,.-]*\])?\s*@|-e\s|--editable[ =])\s*\S+")
_COMMIT = lazily(r"@([0-9a-f]{7,40})\b")
_EGG = lazily(r"#egg=([\w.-]+)")
_BARE = lazily(r"^[A-Za-z0-9][\w.-]*(?:\[[\w,.-]*\])?$")
_OTHER = lazily(r"^(?:#|--|-[a-z]\s|Package\s+Version|-{3,}|$|@EXPLICIT)")
_SHARE, _LINE_CHARS, _LINES = 0.8, 1000, 20_000


@ingester("requirements_txt", version=1, sniff=Sniff(glob=_GLOBS), emits=("facts",))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one list of packages; raises `NotMine` when fewer than four in five lines name a package."""
    del limits
    facts = ConfigFacts()
    packages = strange = 0
    for line in lines_of(opened):
        text = line.text[:_LINE_CHARS].decode("utf-8-sig" if line.number == 1 else "utf-8", "replace").strip()
        found = package(text)
        if found is not None:
            packages += 1
            facts.put(found[0].lower().replace("_", "-"), found[1], line.number, "versions")
        elif not _OTHER.match(text):
            strange += 1
        if line.number > _LINES or strange > 200:
            raise NotMine("too long for a list of packages")
    if not packages or packages < _SHARE * (packages + strange):
        raise NotMine("no list of packages")
    facts.write(out)
    if strange:
        out.issue("not-a-package", "lines that name no package", count=strange)
    out.format("package versions")
    settle(opened, out, records=packages)


def package(text: str) -> tuple[str, str | None] | None:
    """Name and version of one line: `name==1.2`, a range with its sign, `commit 0a1b2c3` for a repository."""
    if found := _CONDA.match(text):
        return found[1], found[2]
    if found := _EQUAL.match(text):
        return found[1], found[3] if found[2] in {"==", "==="} else f"{found[2]}{found[3]}"
    if found := _FROM.match(text):
        egg, commit = _EGG.search(text), _COMMIT.search(text)
        name = found[1] or (egg[1] if egg else None)
        return (name, f"commit {commit[1]}" if commit else "from an address") if name else ("editable", None)
    if found := _TABLE.match(text):
        return found[1], found[2]
    return (text, None) if _BARE.match(text) else None
