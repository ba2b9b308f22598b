"""What the name of an evaluated checkpoint says: its step, and when the results were written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from forensics.patterns import lazily

_STEP = lazily(
    r"(?:^|[^a-z])(?:global[_-]?step|checkpoint|iteration|step|iter|ckpt)[_\-=/]?(\d{1,15})(?!\d|\.\d*[bm]\b)",
    re.IGNORECASE,
)
_STAMP = lazily(r"(\d{4})-(\d\d)-(\d\d)T(\d\d)[-:](\d\d)[-:](\d\d)(?:\.(\d{1,6}))?")


def step_in(names: Iterable[str]) -> int | None:
    """Step of the first name that has one (`step3000`, `checkpoint-500`, `iter_0001000`); of several in it the last."""
    for name in names:
        found = _STEP.findall(name)
        if found:
            return int(found[-1])
    return None


def stamp_ns(path: str) -> int | None:
    """Time in the name of a file (`results_2031-02-03T04-05-06.789.json`), as if it were UTC, in ns; or None."""
    found = list(_STAMP.finditer(path))
    if not found:
        return None
    *whole, part = found[-1].groups()
    try:
        when = datetime(*(int(x) for x in whole), tzinfo=UTC)  # type: ignore[arg-type] - six numbers
    except ValueError:
        return None
    seconds = int((when - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    if not 0 <= seconds < 9_000_000_000:
        return None
    return seconds * 1_000_000_000 + int((part or "0").ljust(6, "0")) * 1_000
