"""Where a line of a launcher, a scheduler or a kernel's log names its host, from `machines/hosts.jsonl`.

A row has `host` (its id), `line` (a pattern with the group `host`) and its `source`; the first row that fits decides.
"""

from __future__ import annotations

import re
from functools import cache

from forensics.knowledge._rows import bare_rows

#: No more of a line is looked at: it may be hostile.
_MOST_READ = 2000


def host_of(line: str) -> str | None:
    """Give the host that a line names; None where it names none."""
    found = next((hit for one in _patterns() if (hit := one.search(line[:_MOST_READ])) is not None), None)
    return None if found is None else found["host"].rstrip(".-")


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(row["line"]) for row in bare_rows("machines/hosts.jsonl"))
