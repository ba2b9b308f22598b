"""The file that a bug leaves: what was asked, on what set-up, and the traceback, without names and secrets."""

from __future__ import annotations

import os
import platform
import tempfile
import traceback
from collections.abc import Sequence

from forensics.io.redact import Redactor
from forensics.io.safe_text import printable
from forensics.values import tool_version


def write_crash_file(error: BaseException, args: Sequence[str]) -> str:
    """Write the crash file into the temporary folder and give its path, or say why there is none."""
    hidden = Redactor().text
    trace = hidden("".join(traceback.format_exception(error)))
    page = [
        f"forensics {tool_version()}, Python {platform.python_version()}, {platform.platform()}",
        "command: forensics " + printable(hidden(" ".join(args))),
        *(printable(line) for line in trace.splitlines()),
    ]
    try:
        handle, path = tempfile.mkstemp(prefix="forensics-crash-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write("\n".join(page) + "\n")
    except OSError as refused:
        return f"(could not be written: {refused.strerror})"
    return path
