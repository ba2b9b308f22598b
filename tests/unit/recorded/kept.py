"""What is said of made series and runs, beside what was said when it was last looked at.

    python tests/unit/recorded/kept.py [NAME]     write down what is said today; read the diff before you commit it

Numbers may differ in the last digits that are written, as sums do on another processor; answers may not. Sentences are
not kept: how something is said decides nothing.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
MAKERS = ("memory_series", "paces", "processes", "evaluations", "pairs", "lost_numbers", "stalls")
_NUMBER = re.compile(r"-?\b\d[\d.]*(?:e[+-]?\d+)?\b")


def kept(maker: str) -> dict[str, str]:
    """Names and answers of one file."""
    rows = (HERE / f"{maker}.txt").read_text(encoding="utf-8").splitlines()
    return dict(row.split("\t") for row in rows)


def alike(said: str, before: str) -> bool:
    """Whether two answers say the same, numbers to one in a thousand."""
    if said == before or _NUMBER.sub("#", said) != _NUMBER.sub("#", before):
        return said == before
    pairs = zip(_NUMBER.findall(said), _NUMBER.findall(before), strict=True)
    return all(float(a) == pytest.approx(float(b), rel=1e-3, abs=1e-9) for a, b in pairs)


def written(rows: Iterable[tuple[str, str]]) -> str:
    return "".join(f"{name}\t{answer}\n" for name, answer in rows)


if __name__ == "__main__":
    sys.path[:0] = [str(HERE), str(HERE.parents[2])]
    for one in sys.argv[1:] or MAKERS:
        (HERE / f"{one}.txt").write_text(written(importlib.import_module(one).answers()), encoding="utf-8")
