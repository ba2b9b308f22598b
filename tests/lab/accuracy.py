"""Write the page that says how often answers are right, from the scores of seeds that nobody tuned for.

python tests/lab/accuracy.py OUT_OF_SEED... > docs/explanation/accuracy.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import score

_FIELDS = {
    "outcome": "failed, suspect, healthy, or cannot say",
    "shape": "which of the failure shapes, or none",
    "onset": "the first bad step, to one log interval",
    "culprits": "the ranks at fault, exactly",
    "cause": "the cause of a failure",
    "checkpoint": "the last clean checkpoint, of the runs for which one is named",
    "action": "whether the first action names the cause",
    "all right": "outcome, shape, onset and culprits together",
}
#: A fault with at least so many jobs is listed among the weak ones where less than this share is right.
_FEWEST, _WEAK = 3, 0.5
_HEAD = """# How often the answers are right

<!-- written by `make accuracy`; do not edit -->

The lab (`tests/lab/`) runs real small training jobs, injects a fault
at a step and a rank that only a truth file outside of the run knows, and compares the answer of `forensics triage` with
it. About one job in four has no fault but looks as if it had. A job whose fault does not show on disk is left out before
any answer is known.

Each share has its 95 % interval (Wilson) behind it. The jobs are small: a model that learns for a minute on a CPU. What
they cannot show are the losses, clocks and collectives of large GPU jobs; take the table as a comparison of releases and
of faults, not as a promise for a cluster.
"""


def page(documents: Sequence[Mapping[str, Any]]) -> str:
    """The page for the scores of some seeds."""
    rows = [row for document in documents for row in document["rows"]]
    seeds = ", ".join(f"{document['seed']} ({len(document['rows'])} jobs)" for document in documents)
    planned = sum(document["planned"] for document in documents)
    fields = [(f"{name}: {_FIELDS[name]}", *told) for name, told in score.shares(rows).items()]
    faults = score.grouped(rows, score.by_fault)
    weak = {name: told for name, told in faults.items() if told[1] >= _FEWEST and told[0] < _WEAK * told[1]}
    return "\n".join([
        _HEAD,
        f"Seeds {seeds}; {planned - len(rows)} of {planned} jobs were left out. Version {version('ml-run-forensics')}.",
        "",
        "## Each part of the answer",
        "",
        *_table("part", fields),
        "",
        "## Where it is not",
        "",
        *(
            [f"Fewer than half of these are answered with the right outcome and shape: {_names(weak)}."]
            if weak
            else [f"No fault with at least {_FEWEST} jobs is answered wrongly more often than rightly."]
        ),
        "",
        "## By fault",
        "",
        "Outcome and shape are right. Rows that begin with `fine` are controls: nothing is wrong with them.",
        "",
        *_table("fault", [(f"`{name}`", *told) for name, told in faults.items()]),
        "",
        "## By trainer",
        "",
        *_table("trainer", [(f"`{name}`", *told) for name, told in score.grouped(rows, score.by_trainer).items()]),
        "",
        "## What a confidence is worth",
        "",
        *_table("confidence", [(name, *told) for name, told in score.grouped(rows, score.by_confidence).items()]),
        "",
        "## Try it",
        "",
        "`make lab SEED=12345 N=100` runs jobs of a seed that nobody has used, and prints every answer that is wrong beside",
        "its truth. `make accuracy` writes this page anew.",
        "",
    ])  # fmt: skip


def _table(head: str, rows: Sequence[tuple[str, int, int]]) -> list[str]:
    lines = [f"| {head} | right | of | share | 95 % |", "|---|---:|---:|---:|---:|"]
    for name, right, of in rows:
        low, high = score.interval(right, of)
        spans = (f"{100 * right / of:.0f} %", f"{100 * low:.0f}-{100 * high:.0f} %") if of else ("", "")
        lines.append(f"| {name} | {right} | {of} | {spans[0]} | {spans[1]} |")
    return lines


def _names(faults: Mapping[str, tuple[int, int]]) -> str:
    return ", ".join(f"`{name}` ({right} of {of})" for name, (right, of) in faults.items())


def main() -> int:
    """Print the page."""
    documents = [json.loads((Path(out) / "scores.json").read_text()) for out in sys.argv[1:]]
    print(page(documents), end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
