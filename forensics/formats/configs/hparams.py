"""`hparams.yaml` of Lightning's loggers: the arguments of the model, as facts with their lines.

The writer tags what is no plain value with the Python type that it had; the tags are read as text, and nothing of the
run's code is loaded. A cut file gives the part before the cut.
"""

from __future__ import annotations

from itertools import islice

from forensics.formats.configs.yaml_leaves import Leaf, leaves
from forensics.formats.kit import InputError, Limits, NotMine, Opened, Out, Sniff, ingester
from forensics.formats.rows.secrets import masked
from forensics.formats.rows.text import document, settle_document
from forensics.io.tolerant_json import dumps

#: Such files are a few kilobytes; the parser takes up to a second for this much of a damaged one.
_MOST_BYTES = 48 << 10
_FACTS = 10_000
_VALUE_CHARS = 10_000


@ingester("hparams_yaml", version=1, sniff=Sniff(glob=("hparams.yaml", "hparams.yml")), emits=("facts",))
def read(opened: Opened, out: Out, limits: Limits) -> None:
    """Read one file of hyperparameters; raises `NotMine` when it does not begin with a key."""
    data = document(opened, limits)
    text = data[:_MOST_BYTES].decode("utf-8-sig", "replace")
    found: list[Leaf] = []
    lost = max(len(data) - _MOST_BYTES, 0)
    try:
        for leaf in islice(opened.budget.each(leaves(text), lambda leaf: leaf.path), _FACTS):
            found.append(leaf)  # noqa: PERF402 - what came before an error is kept
    except InputError as error:
        if not any(leaf.path for leaf in found):
            raise NotMine("no YAML mapping") from error
        line = found[-1].line
        good = sum(len(part) + 1 for part in data.split(b"\n")[:line])
        out.issue("damaged", f"{error.message}; {len(found)} values before it were read", byte=good, line=line + 1)
        lost = max(len(data) - good, 0)
    else:
        if lost:
            out.issue("too-long", f"only the first {_MOST_BYTES} bytes were read", byte=_MOST_BYTES, count=lost)
        if found and not any(leaf.path for leaf in found):
            raise NotMine("no YAML mapping")
    if found:
        columns = {
            "line": [leaf.line for leaf in found],
            "key": [leaf.path for leaf in found],
            "value": [dumps(_short(leaf), compact=True).decode() for leaf in found],
            "family": ["config"] * len(found),
        }
        out.rows("facts", columns)
    out.format("hparams.yaml")
    settle_document(opened, out, records=len(found), lost_bytes=lost)


def _short(leaf: Leaf) -> object:
    shown = masked(leaf.path, leaf.value)
    return shown[:_VALUE_CHARS] if isinstance(shown, str) else shown
