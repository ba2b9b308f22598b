"""The exit code of a job, where its script wrote it into a file of its own: `echo $? > exitcode`."""

from __future__ import annotations

from forensics.formats.kit import Limits, NotMine, Opened, Out, Sniff, ingester, lazily
from forensics.formats.rows.facts import write_facts
from forensics.formats.rows.out import write_row
from forensics.formats.rows.text import document, settle_document
from forensics.io.tolerant_json import dumps

_GLOBS = (
    *("exitcode*", "exit_code*", "exit-code*", "exit_status*", "exitstatus*", "returncode*", "return_code*"),
    *("*.exitcode", "*.exit_code", "*.rc", "rc", "rc.txt"),
)
_CODE = lazily(r"\s*(?:[A-Za-z][\w ]{0,20}[:= ]\s*)?(-?\d{1,3})\s*")
_MOST_BYTES = 64


@ingester("exit_code", version=1, sniff=Sniff(glob=_GLOBS), emits=("events", "facts"))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one code; raises `NotMine` when the file holds anything but one number."""
    if opened.size_bytes > _MOST_BYTES:
        raise NotMine("no exit code")
    told = _CODE.fullmatch(document(opened, limits).decode("utf-8", "replace"))
    if told is None:
        raise NotMine("no exit code")
    code, is_zero = int(told[1]), int(told[1]) == 0
    row = {
        "seq": 0,
        "line": 1,
        "byte": 0,
        "level": "info" if is_zero else "error",
        "code": "process.ended" if is_zero else "process.exit",
        "text": f"the job's script recorded exit code {code}",
        "attrs": dumps({"role": "benign" if is_zero else "context", "shape": "", "exit_code": str(code)}).decode(),
    }
    write_row(out, "events", row)
    write_facts(out, [("exit_code", code, "exit")], line=1)
    out.format("exit code of a job")
    settle_document(opened, out, records=1)
